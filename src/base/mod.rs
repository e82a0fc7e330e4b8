//! The ground floor, used by every room: cancelling, time, the environment, secrets, similar names.
//!
//! Nothing here knows of models, sessions or terminals, and nothing here uses another room.

pub mod cancel;
pub mod child;
pub mod distance;
pub mod env;
pub mod executable;
pub mod failpoint;
pub mod feature;
pub mod file;
pub mod file_url;
pub mod glob;
pub mod hex;
pub mod ignore;
pub mod json;
pub mod lenient;
pub mod memory;
pub mod null;
pub mod order;
pub mod packed;
pub mod patience;
pub mod poll;
pub mod random;
#[cfg(test)]
pub mod testing;
pub mod thread;
pub mod time;
pub mod visible;
pub mod watch;
