//! Stored conversations: entries, the log file, the tree of entries, and the model's context.
//!
//! A session is an append-only file of JSON lines. A log keeps only an index of the entries in memory; the
//! content of an entry is read from the file when needed.

pub mod beside;
mod called_skill;
pub mod catalog;
pub mod compaction;
pub mod context;
mod conversation;
pub mod draft;
pub mod entry;
mod error;
pub mod export;
mod file;
pub mod id;
pub mod index;
pub mod info;
pub mod log;
mod migrate;
mod notice;
mod place;
pub mod prompt_history;
pub mod search;
pub mod store;
#[cfg(test)]
mod testing;
pub mod tree;
pub mod unsent;
pub mod upkeep;

pub use called_skill::CalledSkill;
pub use context::StoredModel;
pub use conversation::Conversation;
pub use error::SessionError;
pub use log::{Log, SyncMode};
pub use notice::Notice;
pub use store::Store;
