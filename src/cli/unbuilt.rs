//! Refuses subcommands of the reference for features that this version lacks, so that they are not sent as
//! prompts.

use crate::mode::{exit, report};
use std::ffi::OsString;

/// Refuses `pi mcp`.
pub fn mcp(_: &[OsString]) -> u8 {
    refuse("mcp", "MCP servers are")
}

/// Refuses `pi install`, `pi remove`, `pi uninstall` and `pi list`.
pub fn packages(_: &[OsString]) -> u8 {
    refuse("install, remove, uninstall and list", "Packages are")
}

fn refuse(commands: &str, what: &str) -> u8 {
    report::error(format_args!(
        "{what} not part of this version (pi {commands}). To send such words to a model: pi -- WORDS"
    ));
    exit::FAILED
}
