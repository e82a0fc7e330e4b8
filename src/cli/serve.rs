//! `--mode mcp`.

use super::opener;
use super::start::Launch;
use crate::mode::mcp;

/// Serves a client of the Model Context Protocol until stdin ends. Returns the exit code.
pub fn serve(launch: Launch) -> Result<u8, String> {
    opener::serve(launch, mcp::run)
}
