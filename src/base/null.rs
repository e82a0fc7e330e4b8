//! The null device for started programs, or a replacement if the device is missing, as in a bare chroot.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::process::Stdio;

const DEVICE: &str = "/dev/null";

/// A stdin without content.
pub fn input() -> io::Result<Stdio> {
    input_from(Path::new(DEVICE))
}

fn input_from(device: &Path) -> io::Result<Stdio> {
    if let Ok(file) = File::open(device) {
        return Ok(file.into());
    }
    let (reader, _) = io::pipe()?;
    Ok(reader.into())
}

/// A stdout or stderr that is discarded.
pub fn output() -> io::Result<Stdio> {
    output_to(Path::new(DEVICE))
}

fn output_to(device: &Path) -> io::Result<Stdio> {
    if let Ok(file) = OpenOptions::new().write(true).open(device) {
        return Ok(file.into());
    }
    let (_, writer) = io::pipe()?;
    Ok(writer.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn programs_start_without_a_null_device() {
        for device in ["/dev/null", "/nowhere/null"].map(Path::new) {
            let mut cat = Command::new("cat");
            let cat = cat.stdin(input_from(device).unwrap()).stderr(output_to(device).unwrap());
            let outcome = cat.output().unwrap();
            assert!(outcome.status.success() && outcome.stdout.is_empty(), "{device:?}");
        }
    }
}
