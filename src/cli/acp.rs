//! `--mode acp`.

use super::opener::Opener;
use super::start::Launch;
use crate::base::cancel::CancelToken;
use crate::mode::{acp, signal};

/// Serves an editor until stdin ends. Returns the exit code.
pub fn serve(launch: Launch) -> Result<u8, String> {
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    acp::run(Opener { launch }, &cancel, &watch)
}
