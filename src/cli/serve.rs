//! `--mode mcp`.

use super::opener::Opener;
use super::start::Launch;
use crate::base::cancel::CancelToken;
use crate::mode::{mcp, signal};

/// Serves a client of the Model Context Protocol until stdin ends. Returns the exit code.
pub fn serve(launch: Launch) -> Result<u8, String> {
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    mcp::run(Opener { launch }, &cancel, &watch)
}
