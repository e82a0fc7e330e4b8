//! Refuses subcommands of the reference for features that this version lacks, so that they are not sent as
//! prompts.

use crate::mode::{exit, report};
use std::ffi::OsString;

/// Refuses `pi install`, `pi remove`, `pi uninstall` and `pi list`.
pub fn packages(_: &[OsString]) -> u8 {
    report::error(
        "Packages are not part of this version (pi install, remove, uninstall and list). To send such words to a \
         model: pi -- WORDS",
    );
    exit::FAILED
}
