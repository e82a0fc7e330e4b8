//! Helpers: agents in processes of their own that work on tasks of a session.
//!
//! ```text
//! task tool ──> team ──> helper ──stdin──> pi --mode rpc
//!                 ^         │ <──stdout──  events, questions, calls of yield and task
//!                 └─ tasks of a helper
//! ```
//! A helper is a plain `pi --mode rpc`. What makes it a helper are two tools that the parent registers there and runs
//! itself: `yield` takes its result, `task` gives tasks to helpers of its own. One process therefore starts all helpers
//! of a session, counts what they spend against the limits of the run, and asks all questions. A helper ends when its
//! stdin is closed, so it does not outlive a parent that was killed.

mod command;
pub mod isolate;
mod place;
mod process;
mod report;
mod task;
mod team;
mod r#yield;

use crate::runtime::addition::{Addition, OWN, Owner};
use crate::runtime::control::Control;
use std::sync::Arc;

/// Adds the `task` tool to a session.
pub fn offer(control: &Control) {
    let addition = Addition { tools: vec![Arc::new(task::TaskTool::new(control))], ..Addition::default() };
    // A tool of the program itself is never refused.
    control.set_addition(Owner { rank: OWN, name: "helpers".into() }, addition);
}
