//! `pi mcp` of a build without servers of the Model Context Protocol.

use super::start::Launch;
use crate::base::feature;
use crate::mode::{exit, report};
use crate::resources::dirs::Dirs;
use crate::runtime::CancelToken;
use crate::runtime::session::Session;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::sync::Arc;

/// Says that the part is missing. Gives the exit code.
pub fn run(_: &[OsString]) -> u8 {
    report::error(feature::absent("mcp"));
    exit::FAILED
}

/// Name and entry of a server that a client lends.
type Lent = (String, Map<String, Value>);
type Lend = Arc<dyn Fn(Vec<Lent>) + Send + Sync>;

/// False, since this build has no servers.
pub const IS_THERE: bool = false;

/// Starts nothing.
pub fn start(_: &Session, _: &Launch, _: &Dirs, _: Vec<Lent>, _: &CancelToken) -> Lend {
    Arc::new(drop)
}

/// There is no `mcp.json` to describe.
pub fn schema() -> Option<Value> {
    None
}
