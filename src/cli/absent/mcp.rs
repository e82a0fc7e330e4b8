//! `pi mcp` of a build without servers of the Model Context Protocol.

use crate::base::feature;
use crate::mode::{exit, report};
use std::ffi::OsString;

/// Says that the part is missing. Gives the exit code.
pub fn run(_: &[OsString]) -> u8 {
    report::error(feature::absent("mcp"));
    exit::FAILED
}
