//! Hides the value of `--api-key` from other users of the machine, who can read a process's arguments.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

const FLAG: &[u8] = b"--api-key";

/// Overwrites the key in the process's list of arguments, on Linux. The key is visible for some milliseconds
/// before. `words` are the arguments.
pub fn hide_key(words: &[OsString]) {
    if !words.iter().any(|word| word.as_bytes().starts_with(FLAG)) {
        return;
    }
    #[cfg(target_os = "linux")]
    if let Some((start, end)) = linux::arguments() {
        linux::hide(start, end);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::FLAG;

    /// Returns the first and the end address of this process's arguments, each of which ends in a NUL byte.
    pub fn arguments() -> Option<(usize, usize)> {
        let stat = std::fs::read("/proc/self/stat").ok()?;
        // The second field is the program's name, which may contain any character.
        let rest = stat.get(stat.iter().rposition(|byte| *byte == b')')? + 1..)?;
        let mut fields = std::str::from_utf8(rest).ok()?.split_whitespace();
        // Fields 48 and 49 of the line; `fields` begins with field 3.
        let start: usize = fields.nth(45)?.parse().ok()?;
        let end: usize = fields.next()?.parse().ok()?;
        (start > 0 && start < end).then_some((start, end))
    }

    pub fn hide(start: usize, end: usize) {
        // SAFETY: the kernel put the arguments there when the program started. The memory belongs to the
        // process for as long as it runs, can be written, and no Rust value lies in it: `std::env::args`
        // copies what it gives. No other thread runs yet.
        let memory = unsafe {
            std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u8>(start), end - start)
        };
        hide_in(memory);
    }

    pub fn hide_in(arguments: &mut [u8]) {
        let mut is_key = false;
        for argument in arguments.split_mut(|byte| *byte == 0) {
            let attached = argument.strip_prefix(FLAG).is_some_and(|rest| rest.starts_with(b"="));
            let from = match (is_key, attached) {
                (true, _) => 0,
                (false, true) => FLAG.len() + 1,
                (false, false) => argument.len(),
            };
            is_key = !is_key && argument == FLAG;
            if let Some(key) = argument.get_mut(from..) {
                key.fill(b'*');
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::*;

    #[test]
    fn only_keys_are_overwritten() {
        for (arguments, expected) in [
            ("pi\0--api-key\0sk-1\0-p\0x\0", "pi\0--api-key\0****\0-p\0x\0"),
            ("pi\0--api-key=sk-1\0x\0", "pi\0--api-key=****\0x\0"),
            ("pi\0--api-keys\0x\0", "pi\0--api-keys\0x\0"),
            ("pi\0--api-key\0--api-key\0x\0", "pi\0--api-key\0*********\0x\0"),
            ("pi\0--api-key", "pi\0--api-key"),
            ("", ""),
        ] {
            let mut bytes = arguments.as_bytes().to_vec();
            hide_in(&mut bytes);
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }

    #[test]
    fn the_arguments_are_found() {
        let (start, end) = arguments().unwrap();
        assert_eq!(std::fs::read("/proc/self/cmdline").unwrap().len(), end - start);
    }
}
