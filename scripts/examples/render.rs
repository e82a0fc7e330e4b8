//! A renderer of one's own: what happens in a run, as a list of steps.
//!
//!     cargo run --example render -- faux/demo "What is in this folder?"

use pi::sdk::{AgentEvent, AgentMessage, AssistantEvent, CancelToken, Dirs, Event, Setup};
use pi::sdk::{end_children, plain_text};
use std::error::Error;

/// Puts together what comes in pieces.
#[derive(Default)]
struct Renderer {
    text: String,
    turns: usize,
    tokens: u64,
}

impl Renderer {
    fn event(&mut self, event: &Event<'_>) {
        let Event::Agent(event) = event else { return };
        match event {
            AgentEvent::TurnStart => self.turns += 1,
            AgentEvent::MessageUpdate { event: AssistantEvent::TextDelta { delta, .. }, .. } => {
                self.text.push_str(delta);
                // Whole lines only: nothing on the screen has to be taken back.
                while let Some((line, rest)) = self.text.split_once('\n') {
                    println!("  {}", plain_text(line.as_bytes()));
                    self.text = rest.to_owned();
                }
            }
            AgentEvent::MessageEnd { message: AgentMessage::Assistant(answer) } => {
                println!("  {}", plain_text(std::mem::take(&mut self.text).as_bytes()));
                self.tokens += answer.usage.total_tokens;
            }
            AgentEvent::ToolStart { name, arguments, .. } => {
                let arguments = serde_json::to_string(arguments).unwrap_or_default();
                println!("> {name} {}", plain_text(arguments.as_bytes()));
            }
            AgentEvent::ToolEnd { name, is_error, .. } => {
                println!("< {name} {}", if *is_error { "failed" } else { "done" });
            }
            AgentEvent::AgentEnd { .. } => {
                println!("= {} turns, {} tokens", self.turns, self.tokens);
            }
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(model), Some(text)) = (words.next(), words.next()) else {
        return Err("usage: render PROVIDER/ID TEXT".into());
    };
    let (mut session, warnings) = Setup::new(std::env::current_dir()?, Dirs::find()?.agent(), model)
        .builtin(&["read", "ls", "bash"])
        .start(&CancelToken::new())?;
    warnings.iter().for_each(|warning| eprintln!("{warning}"));
    let mut renderer = Renderer::default();
    session.prompt(text, Vec::new(), &mut |event| {
        renderer.event(event);
        Ok(())
    })?;
    end_children();
    Ok(())
}
