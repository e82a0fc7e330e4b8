//! The command line: flags, subcommands, and the way from both to a run.
pub mod flags;
pub mod table;
