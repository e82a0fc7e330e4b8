//! The answers to the requests of one client that are under way: each is the body of an HTTP response.

use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Messages that may wait for a slow client, and progress among them; more progress is dropped.
const WAITING_MAX: usize = 64;
const PROGRESS_MAX: usize = 32;

#[derive(Default)]
pub struct Streams(Mutex<Vec<Stream>>);

/// The way to the client of a request.
struct Stream {
    id: Value,
    /// Names the request in notifications of progress.
    token: Value,
    sender: Sender<Part>,
}

/// A message for the client.
pub struct Part {
    pub message: Value,
    /// True for the answer, which is the last message.
    pub is_answer: bool,
}

impl Streams {
    /// Opens the way to the client of a request. None if a request with this id is under way.
    pub fn open(&self, id: &Value, params: &Value) -> Option<Receiver<Part>> {
        let mut all = self.lock();
        if all.iter().any(|stream| stream.id == *id) {
            return None;
        }
        let (sender, receiver) = bounded(WAITING_MAX);
        let token = params["_meta"]["progressToken"].clone();
        all.push(Stream { id: id.clone(), token, sender });
        Some(receiver)
    }

    /// Ends the response to a request that gets no answer.
    pub fn close(&self, id: &Value) {
        self.lock().retain(|stream| stream.id != *id);
    }

    /// True if no request is under way.
    pub fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    pub fn close_all(&self) {
        self.lock().clear();
    }

    /// Sends a message of the server: an answer or progress to the client of that request, a question to the client of
    /// the request that came last. False if nobody is there to take it.
    pub fn pass(&self, message: &Value) -> bool {
        let is_answer = message.get("method").is_none();
        let (sender, is_progress) = {
            let mut all = self.lock();
            let token = &message["params"]["progressToken"];
            let place = match (is_answer, token.is_null()) {
                (true, _) => all.iter().position(|stream| stream.id == message["id"]),
                (false, true) => all.len().checked_sub(1),
                (false, false) => all.iter().position(|stream| stream.token == *token),
            };
            let Some(place) = place else { return false };
            let sender = match is_answer {
                true => all.remove(place).sender,
                false => all[place].sender.clone(),
            };
            (sender, !token.is_null())
        };
        let part = Part { message: message.clone(), is_answer };
        match is_progress {
            true if sender.len() >= PROGRESS_MAX => true,
            true => sender.try_send(part).is_ok(),
            // Whoever writes to the client takes it, or drops its end when the client is too slow.
            false => sender.send(part).is_ok(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn messages_go_to_the_request_that_they_belong_to() {
        let streams = Streams::default();
        let open =
            |id: u64, token: Value| streams.open(&json!(id), &json!({"_meta": {"progressToken": token}}));
        let (one, two) = (open(1, json!("a")).unwrap(), open(2, Value::Null).unwrap());
        assert!(open(1, Value::Null).is_none());
        let progress =
            |token: &str| json!({"method": "notifications/progress", "params": {"progressToken": token}});
        assert!(streams.pass(&progress("a")) && !streams.pass(&progress("b")));
        assert!(streams.pass(&json!({"method": "elicitation/create", "id": 7, "params": {}})));
        assert!(streams.pass(&json!({"id": 1, "result": {}})));
        assert!(!streams.pass(&json!({"id": 1, "result": {}})));
        let seen = |stream: &Receiver<Part>| stream.try_iter().map(|part| part.is_answer).collect::<Vec<_>>();
        assert_eq!((seen(&one), seen(&two)), (vec![false, true], vec![false]));
        // A client that takes nothing misses progress.
        let slow = open(3, json!("c")).unwrap();
        assert!((0..100).all(|_| streams.pass(&progress("c"))));
        assert_eq!(slow.len(), PROGRESS_MAX);
        streams.close(&json!(3));
        assert!(!streams.pass(&json!({"id": 3, "result": {}})));
        drop(two);
        assert!(!streams.pass(&json!({"method": "elicitation/create", "id": 8, "params": {}})));
    }
}
