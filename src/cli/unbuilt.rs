//! Subcommands of the reference for parts that this version does not have. Their words are no prompts.

use crate::mode::{exit, report};
use std::ffi::OsString;

/// `pi mcp`.
pub fn mcp(_: &[OsString]) -> u8 {
    refuse("mcp", "MCP servers are")
}

/// `pi install`, `pi remove`, `pi uninstall` and `pi list`.
pub fn packages(_: &[OsString]) -> u8 {
    refuse("install, remove, uninstall and list", "Packages are")
}

fn refuse(commands: &str, what: &str) -> u8 {
    report::error(format_args!(
        "{what} not part of this version (pi {commands}). To send such words to a model: pi -- WORDS"
    ));
    exit::FAILED
}
