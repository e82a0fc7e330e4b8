//! What one client is sent: a stream of messages for each request, and one for what belongs to none.
//!
//! The messages of a stream are numbered, and stay for a while: a client whose connection breaks names the last one
//! that it has seen, and gets the rest. One connection follows a stream, the one that came last.

use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Messages of progress that may wait for a client; more are dropped.
const PROGRESS_MAX: u64 = 32;
/// Messages of a stream that stay.
const MESSAGES_MAX: usize = 64;
/// Answered requests whose streams stay, and the bytes of their messages.
const DONE_MAX: usize = 32;
const DONE_BYTES_MAX: usize = 8 << 20;
/// The number of the stream of what belongs to no request.
const NEWS: u64 = 0;

pub struct Streams {
    inside: Mutex<Inside>,
    changed: Condvar,
}

struct Inside {
    /// The oldest stands first.
    all: Vec<Stream>,
    /// Streams and readers so far.
    count: u64,
}

#[derive(Default)]
struct Stream {
    number: u64,
    /// The id of the request; null for none.
    id: Value,
    /// Names the request in notifications of progress.
    token: Value,
    messages: VecDeque<(u64, Arc<str>)>,
    /// Messages so far, and those that were taken.
    count: u64,
    taken: u64,
    is_done: bool,
    /// Who follows the stream; 0 for nobody.
    reader: u64,
}

impl Stream {
    fn push(&mut self, message: &Value) {
        self.count += 1;
        self.messages.push_back((self.count, message.to_string().into()));
        if self.messages.len() > MESSAGES_MAX {
            self.messages.pop_front();
        }
    }

    fn is_open(&self) -> bool {
        self.number != NEWS && !self.is_done
    }

    fn bytes(&self) -> usize {
        self.messages.iter().map(|(_, text)| text.len()).sum()
    }
}

/// What comes next on a stream.
pub enum Next {
    Message {
        /// Names the message, for a client that comes back.
        id: String,
        text: Arc<str>,
        /// True for the answer to the request.
        is_last: bool,
    },
    /// Nothing for as long as the reader waits.
    Quiet,
    /// Nothing comes any more.
    Over,
}

/// Follows a stream.
pub struct Reader<'a> {
    streams: &'a Streams,
    number: u64,
    reader: u64,
    /// The last message that was taken.
    after: u64,
}

impl Default for Streams {
    fn default() -> Self {
        let all = vec![Stream { number: NEWS, ..Stream::default() }];
        Self { inside: Mutex::new(Inside { all, count: 0 }), changed: Condvar::new() }
    }
}

impl Streams {
    /// Opens the stream of a request. None if a request with this id is under way.
    pub fn open(&self, id: &Value, params: &Value) -> Option<Reader<'_>> {
        let mut inside = self.lock();
        if inside.all.iter().any(|stream| stream.is_open() && stream.id == *id) {
            return None;
        }
        inside.count += 1;
        let number = inside.count;
        let token = params["_meta"]["progressToken"].clone();
        inside.all.push(Stream { number, id: id.clone(), token, ..Stream::default() });
        self.follow(&mut inside, number, 0)
    }

    /// Follows what belongs to no request, from now on.
    pub fn news(&self) -> Option<Reader<'_>> {
        let mut inside = self.lock();
        let after = inside.all.iter().find(|stream| stream.number == NEWS)?.count;
        self.follow(&mut inside, NEWS, after)
    }

    /// Follows a stream from behind the message with this id. None if the stream is gone.
    pub fn resume(&self, id: &str) -> Option<Reader<'_>> {
        let (number, after) = id.split_once('-')?;
        self.follow(&mut self.lock(), number.parse().ok()?, after.parse().ok()?)
    }

    fn follow(&self, inside: &mut Inside, number: u64, after: u64) -> Option<Reader<'_>> {
        inside.count += 1;
        let reader = inside.count;
        let stream = inside.all.iter_mut().find(|stream| stream.number == number)?;
        stream.reader = reader;
        // Whoever followed it until now ends.
        self.changed.notify_all();
        Some(Reader { streams: self, number, reader, after })
    }

    /// Ends the stream of a request that gets no answer.
    pub fn close(&self, id: &Value) {
        self.lock().all.retain(|stream| !(stream.is_open() && stream.id == *id));
        self.changed.notify_all();
    }

    /// True if no request is under way, and no client listens.
    pub fn is_idle(&self) -> bool {
        !self.lock().all.iter().any(|stream| stream.is_open() || stream.reader != 0)
    }

    pub fn close_all(&self) {
        self.lock().all.clear();
        self.changed.notify_all();
    }

    /// Sends a message of the server: an answer or progress to the client of that request, a question to the client of
    /// the request that came last, anything else to whoever follows the news. False if nobody is there to take it.
    pub fn pass(&self, message: &Value) -> bool {
        let mut inside = self.lock();
        let all = &mut inside.all;
        let is_answer = message.get("method").is_none();
        let is_question = !is_answer && message.get("id").is_some();
        let token = &message["params"]["progressToken"];
        let found = match (is_answer, is_question) {
            (true, _) => all.iter_mut().find(|stream| stream.is_open() && stream.id == message["id"]),
            (_, true) => {
                let last = all.iter().rposition(Stream::is_open).unwrap_or(0);
                all.get_mut(last).filter(|stream| stream.reader != 0)
            }
            _ if token.is_null() => all.iter_mut().find(|stream| stream.number == NEWS),
            _ => all.iter_mut().find(|stream| stream.is_open() && stream.token == *token),
        };
        let Some(stream) = found else { return false };
        if token.is_null() || stream.count - stream.taken < PROGRESS_MAX {
            stream.push(message);
            stream.is_done = is_answer;
        }
        if is_answer {
            forget_oldest(all);
        }
        self.changed.notify_all();
        true
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves streams of answered requests that are too many, or too large together. The one answered last stays.
fn forget_oldest(all: &mut Vec<Stream>) {
    let (mut count, mut bytes) = (0, 0);
    for at in (0..all.len()).rev() {
        let Some(stream) = all.get(at).filter(|stream| stream.is_done) else { continue };
        (count, bytes) = (count + 1, bytes + stream.bytes());
        if count > 1 && (count > DONE_MAX || bytes > DONE_BYTES_MAX) && stream.reader == 0 {
            all.remove(at);
        }
    }
}

impl Reader<'_> {
    /// The id of a message before the first one.
    pub fn beginning(&self) -> String {
        format!("{}-{}", self.number, self.after)
    }

    /// Waits at most `limit` for the next message.
    pub fn next(&mut self, limit: Duration) -> Next {
        let until = Instant::now() + limit;
        let mut inside = self.streams.lock();
        loop {
            let mut all = inside.all.iter_mut();
            let Some(stream) =
                all.find(|stream| stream.number == self.number && stream.reader == self.reader)
            else {
                return Next::Over;
            };
            if let Some((number, text)) = stream.messages.iter().find(|(number, _)| *number > self.after) {
                self.after = *number;
                let is_last = stream.is_done && self.after == stream.count;
                let next = Next::Message { id: self.beginning(), text: text.clone(), is_last };
                stream.taken = stream.taken.max(self.after);
                return next;
            }
            if stream.is_done {
                return Next::Over;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Quiet;
            }
            let waited = self.streams.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Leaves the stream of an answer that the client has got whole.
    pub fn finish(self) {
        self.streams.lock().all.retain(|stream| stream.number != self.number);
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut inside = self.streams.lock();
        let mut all = inside.all.iter_mut();
        if let Some(stream) = all.find(|stream| stream.reader == self.reader) {
            stream.reader = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    /// The ids of all messages that are there; `!` behind the last of a request.
    fn seen(reader: &mut Reader<'_>) -> String {
        let mut all = Vec::new();
        while let Next::Message { id, is_last, .. } = reader.next(Duration::ZERO) {
            all.push(format!("{id}{}", if is_last { "!" } else { "" }));
        }
        all.join(" ")
    }

    fn progress(token: &str) -> Value {
        json!({"method": "notifications/progress", "params": {"progressToken": token}})
    }

    fn question() -> Value {
        json!({"method": "elicitation/create", "id": 7, "params": {}})
    }

    #[test]
    fn messages_go_to_the_request_that_they_belong_to() {
        let streams = Streams::default();
        assert!(!streams.pass(&question()));
        let open =
            |id: u64, token: Value| streams.open(&json!(id), &json!({"_meta": {"progressToken": token}}));
        let (mut one, mut two) = (open(1, json!("a")).unwrap(), open(2, Value::Null).unwrap());
        assert!(open(1, Value::Null).is_none());
        assert!(streams.pass(&progress("a")) && !streams.pass(&progress("b")));
        assert!(streams.pass(&question()));
        assert!(streams.pass(&json!({"id": 1, "result": {}})));
        assert!(!streams.pass(&json!({"id": 1, "result": {}})));
        assert_eq!((&*seen(&mut one), &*seen(&mut two)), ("1-1 1-2!", "3-1"));
        // A client that takes nothing misses progress.
        let mut slow = open(3, json!("c")).unwrap();
        assert!((0..100).all(|_| streams.pass(&progress("c"))));
        assert_eq!(seen(&mut slow).split(' ').count(), 32);
        streams.close(&json!(3));
        assert!(!streams.pass(&json!({"id": 3, "result": {}})));
        assert!(matches!(slow.next(Duration::ZERO), Next::Over));
        drop(two);
        assert!(!streams.pass(&question()));
    }

    #[test]
    fn a_stream_goes_on_where_its_client_left_it() {
        let streams = Streams::default();
        let (id, about) = (json!(1), json!({"_meta": {"progressToken": "a"}}));
        let mut first = streams.open(&id, &about).unwrap();
        assert_eq!(first.beginning(), "1-0");
        assert!(streams.pass(&progress("a")) && streams.pass(&progress("a")));
        assert_eq!(seen(&mut first), "1-1 1-2");
        let mut second = streams.resume("1-1").unwrap();
        assert!(matches!(first.next(Duration::ZERO), Next::Over));
        drop(first);
        assert!(streams.pass(&json!({"id": 1, "result": {}})));
        assert_eq!(seen(&mut second), "1-2 1-3!");
        assert_eq!(seen(&mut streams.resume("1-2").unwrap()), "1-3!");
        second.finish();
        for gone in ["1-0", "9-0", "1", "", "-", "a-b"] {
            assert!(streams.resume(gone).is_none(), "{gone}");
        }
        // What belongs to no request.
        let told = json!({"method": "notifications/tools/list_changed"});
        assert!(streams.pass(&told));
        assert!(streams.is_idle());
        let mut news = streams.news().unwrap();
        assert!(!streams.is_idle() && streams.pass(&told));
        assert_eq!((&*seen(&mut news), &*seen(&mut streams.resume("0-0").unwrap())), ("0-2", "0-1 0-2"));
        // Answers stay for a while.
        for id in 10..50 {
            drop(streams.open(&json!(id), &Value::Null));
            assert!(streams.pass(&json!({"id": id, "result": "x".repeat(1 << 20)})));
        }
        assert!(streams.lock().all.len() < 12 && streams.is_idle());
        streams.close_all();
        assert!(streams.news().is_none());
    }
}
