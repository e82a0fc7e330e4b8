//! `pi mcp` of a build without servers of the Model Context Protocol.

use crate::base::feature;
use crate::mode::{exit, report};
use crate::resources::dirs::Dirs;
use crate::runtime::CancelToken;
use crate::runtime::session::Session;
use serde_json::Value;
use std::ffi::OsString;

/// Says that the part is missing. Gives the exit code.
pub fn run(_: &[OsString]) -> u8 {
    report::error(feature::absent("mcp"));
    exit::FAILED
}

/// Parts of a session that are switched on.
pub struct Parts {
    pub scripts: bool,
    pub servers: bool,
}

/// Starts nothing.
pub fn start(_: &Session, _: &Dirs, _: &CancelToken, _: bool, _: bool, _: Parts) {}

/// There is no `mcp.json` to describe.
pub fn schema() -> Option<Value> {
    None
}
