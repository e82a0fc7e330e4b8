//! The sandbox of macOS: a profile for `sandbox-exec`.

use std::fmt::Write;
use std::path::PathBuf;

pub const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Everything but writing elsewhere and, unless `network`, sockets.
pub fn profile(writable: &[PathBuf], devices: &[&str], network: bool) -> String {
    let mut profile = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    let devices = devices.iter().map(PathBuf::from);
    for path in writable.iter().cloned().chain(devices) {
        let path = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
        // A later rule wins.
        let _ = writeln!(profile, "(allow file-write* (subpath \"{path}\"))");
    }
    if !network {
        profile.push_str("(deny network*)\n");
    }
    profile
}
