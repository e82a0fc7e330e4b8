//! `--mode acp`.

use super::opener;
use super::start::Launch;
use crate::mode::acp;

/// Serves an editor until stdin ends. Returns the exit code.
pub fn serve(launch: Launch) -> Result<u8, String> {
    opener::serve(launch, acp::run)
}
