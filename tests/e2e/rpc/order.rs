//! Commands during a run in any order, beside a model of what must come of them.

use super::fuzz::Dice;
use super::{client, conversation, refusal};
use crate::agent::World;
use crate::server::{Reply, Server, gate};
use pi::client::Client;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What the program should be, as simply as it can be said.
#[derive(Default)]
struct Model {
    said: Vec<String>,
    steering: VecDeque<String>,
    follow_up: VecDeque<String>,
    /// The number of the answer that streams.
    running: Option<usize>,
    answers: usize,
}

impl Model {
    fn take_steering(&mut self) -> bool {
        let next = self.steering.pop_front();
        next.map(|text| self.said.push(format!("user: {text}"))).is_some()
    }

    fn ask(&mut self) {
        self.running = Some(self.answers);
        self.answers += 1;
    }

    fn prompt(&mut self, text: &str) {
        self.said.push(format!("user: {text}"));
        self.take_steering();
        self.ask();
    }

    /// The answer ends. True when another one is asked for.
    fn answered(&mut self) -> bool {
        let number = self.running.take().unwrap();
        self.said.push(format!("assistant: part {number} and the rest"));
        let goes_on = self.take_steering() || {
            let next = self.follow_up.pop_front();
            next.map(|text| self.said.push(format!("user: {text}"))).is_some()
        };
        if goes_on {
            self.ask();
        }
        goes_on
    }

    fn aborted(&mut self) {
        if let Some(number) = self.running.take() {
            self.said.push(format!("assistant: part {number}"));
        }
    }
}

/// The program, its model, and the gates behind which its answers wait.
struct Pair {
    client: Client,
    model: Model,
    gates: Receiver<Sender<()>>,
    open: Option<Sender<()>>,
}

impl Pair {
    /// The answer that is asked for has begun, and waits in its middle.
    fn begun(&mut self) {
        let begins = |event: &Value| {
            let delta = event["assistantMessageEvent"]["delta"].as_str();
            delta.is_some_and(|delta| delta.starts_with("part"))
        };
        while !begins(&self.client.next_event().expect("an event")) {}
        self.open = self.gates.recv().ok();
    }

    fn step(&mut self, kind: usize, text: &str) {
        let is_running = self.model.running.is_some();
        let message = json!({"message": text});
        match kind {
            0 | 1 if is_running => {
                refusal(&mut self.client, "prompt", message);
            }
            0 | 1 => {
                self.client.prompt(text).unwrap();
                self.model.prompt(text);
                self.begun();
            }
            2 if is_running => {
                let queued = json!({"message": text, "streamingBehavior": "followUp"});
                self.client.request("prompt", queued).unwrap();
                self.model.follow_up.push_back(text.to_owned());
            }
            2 | 3 => {
                self.client.steer(text).unwrap();
                self.model.steering.push_back(text.to_owned());
            }
            4 => {
                self.client.follow_up(text).unwrap();
                self.model.follow_up.push_back(text.to_owned());
            }
            5 => {
                let cleared = self.client.request("clear_queue", Value::Null).unwrap();
                let (steering, follow_up) = (&mut self.model.steering, &mut self.model.follow_up);
                let taken = json!({"steering": steering, "followUp": follow_up});
                assert_eq!(cleared, taken);
                steering.clear();
                follow_up.clear();
            }
            6 => {
                self.client.abort().unwrap();
                if is_running {
                    self.client.wait_until_settled().unwrap();
                }
                self.model.aborted();
            }
            7 => {
                self.client.request("abort_and_prompt", message).unwrap();
                if is_running {
                    self.client.wait_until_settled().unwrap();
                }
                self.model.aborted();
                self.model.prompt(text);
                self.begun();
            }
            _ => {
                if let Some(open) = self.open.take().filter(|_| is_running) {
                    open.send(()).unwrap();
                    match self.model.answered() {
                        true => self.begun(),
                        false => drop(self.client.wait_until_settled().unwrap()),
                    }
                }
            }
        }
        let state = self.client.state().unwrap();
        assert_eq!(state.is_streaming, self.model.running.is_some());
        let waiting = self.model.steering.len() + self.model.follow_up.len();
        assert_eq!(state.pending_message_count, waiting);
    }
}

#[test]
fn commands_in_any_order_do_what_the_model_does() {
    for seed in 1..=12 {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let (tell, gates) = channel();
        let server = Server::endless(move |n| {
            let (open, held) = gate();
            let _ = tell.send(open);
            let reply = Reply::text(&format!("part {n}"));
            reply.then_wait(held).then_text(" and the rest")
        });
        let world = World::new();
        world.use_server(&server);
        let mut pair = Pair { client: client(&world, ""), model: Model::default(), gates, open: None };
        println!("seed {seed}");
        let mut steps = Vec::new();
        for n in 0..40 {
            let kind = dice.roll(11);
            steps.push(kind);
            pair.step(kind, &format!("m{n}"));
        }
        pair.client.abort().unwrap();
        pair.model.aborted();
        assert_eq!(conversation(&mut pair.client), pair.model.said, "seed {seed}: {steps:?}");
        assert!(pair.client.close().unwrap().success());
    }
}
