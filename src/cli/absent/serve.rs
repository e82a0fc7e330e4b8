//! Refuses `--mode mcp` in a build without MCP.

use super::start::Launch;
use crate::base::feature;

pub fn serve(_: Launch, _: Option<&str>) -> Result<u8, String> {
    Err(format!("There is no MCP mode: {}", feature::absent("mcp")))
}
