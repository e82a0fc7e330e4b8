//! `--mode mcp`.

use super::opener;
use super::start::Launch;
use crate::mode::mcp;

/// Serves a client of the Model Context Protocol until stdin ends, or those that connect to `listen`. Returns the exit
/// code.
pub fn serve(launch: Launch, listen: Option<&str>) -> Result<u8, String> {
    match listen {
        Some(address) => {
            opener::serve(launch, |host, cancel, watch| mcp::listen(host, address, cancel, watch))
        }
        None => opener::serve(launch, mcp::run),
    }
}
