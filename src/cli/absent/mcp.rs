//! `pi mcp` of a build without servers of the Model Context Protocol.

use super::start::Launch;
use crate::base::feature;
use crate::mode::{exit, report};
use crate::resources::dirs::Dirs;
use crate::runtime::CancelToken;
use crate::runtime::lent::{Lend, LentServer};
use crate::runtime::session::Session;
use serde_json::Value;
use std::ffi::OsString;

/// Says that the part is missing. Gives the exit code.
pub fn run(_: &[OsString]) -> u8 {
    report::error(feature::absent("mcp"));
    exit::FAILED
}

/// False, since this build has no servers.
pub const IS_THERE: bool = false;

/// Starts nothing.
pub fn start(_: &Session, _: &Launch, _: &Dirs, _: Vec<LentServer>, _: &CancelToken) -> Option<Lend> {
    None
}

/// There is no `mcp.json` to describe.
pub fn schema() -> Option<Value> {
    None
}
