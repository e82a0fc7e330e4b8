//! Ids of sessions and entries. They are unique, but not secret.

use crate::llm::message::now_ms;
use std::hash::{BuildHasher, RandomState};

/// Makes a session id: a UUID of version 7, so that ids sort by age.
pub fn session_id() -> String {
    let time = now_ms() & 0xffff_ffff_ffff;
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-7{:03x}-{:x}{:03x}-{:012x}",
        time >> 16,
        time & 0xffff,
        high & 0xfff,
        8 + (high >> 12 & 3),
        high >> 16 & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

/// True if `text` has the form of a UUID, like the ids of [`session_id`].
pub fn is_session_id(text: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|b| b.is_ascii_hexdigit());
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.split('-').all(is_hex)
}

/// Makes an entry id of eight hex digits for which `taken` is false.
pub fn entry_id(taken: impl Fn(&str) -> bool) -> String {
    (0..100)
        .map(|_| format!("{:08x}", random() & 0xffff_ffff))
        .find(|id| !taken(id))
        .unwrap_or_else(session_id)
}

/// True if a user may choose `id` for a session: the id becomes part of a file name.
pub fn is_valid(id: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let outer = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    id.bytes().all(inner) && outer(id.bytes().next()) && outer(id.bytes().last())
}

/// Returns a random number, taken from the keys of a hasher, which the system's random numbers seed.
fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_uuids_of_version_7() {
        let id = session_id();
        assert!(is_session_id(&id) && !is_session_id("bak") && !is_session_id(&id[1..]));
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
        assert!(id.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()));
        assert_eq!(id.as_bytes()[14], b'7');
        assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert!(is_valid(&id));
        assert_ne!(id, session_id());
    }

    #[test]
    fn entry_ids_avoid_those_that_are_taken() {
        let id = entry_id(|_| false);
        assert_eq!(id.len(), 8);
        assert_eq!(entry_id(|id| id.len() == 8).len(), 36);
    }

    #[test]
    fn ids_that_could_leave_the_folder_are_refused() {
        for id in ["a", "A9", "a.b_c-d", "0"] {
            assert!(is_valid(id), "{id}");
        }
        for id in ["", ".", "..", "-a", "a-", "a/b", "a b", "ä", "a\n"] {
            assert!(!is_valid(id), "{id}");
        }
    }
}
