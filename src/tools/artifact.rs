//! Complete outputs of tools, stored by number: `artifact://3`.
//!
//! Each is a file `pi-TOOL-0000000000000003.log` in the session's output folder, so that a resumed session or
//! a fork finds it. Numbers count up from 1 for all tools together.

use crate::base::file::create_private;
use crate::tools::workspace::OutputDir;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const SCHEME: &str = "artifact://";

/// A new, empty file for one output, accessible to its owner only.
pub struct Artifact {
    pub number: u64,
    pub path: PathBuf,
    pub file: File,
}

/// Creates the file for the next output of `tool` (letters, digits, `_` and `-`; other characters are
/// dropped).
pub fn create(dir: &dyn OutputDir, tool: &str) -> io::Result<Artifact> {
    // Two tools may ask for the next number at once.
    static NEXT: Mutex<()> = Mutex::new(());
    let _next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = dir.path()?;
    let plain = |char: &char| char.is_ascii_alphanumeric() || "_-".contains(*char);
    let tool: String = tool.chars().filter(plain).collect();
    let mut number = numbered(&folder)?.map(|(number, _)| number).max();
    loop {
        let next = number.unwrap_or(0).saturating_add(1);
        let path = folder.join(format!("pi-{tool}-{next:016}.log"));
        let file = create_private(&path);
        match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number = Some(next),
            file => {
                return Ok(Artifact { number: next, path, file: file? });
            }
        }
    }
}

/// Stores `content` as an output of `tool`, and returns its number. A partially written file is removed.
pub fn store(dir: &dyn OutputDir, tool: &str, content: &[u8]) -> io::Result<u64> {
    let Artifact { number, path, mut file } = create(dir, tool)?;
    file.write_all(content).inspect_err(|_| {
        let _ = std::fs::remove_file(&path);
    })?;
    Ok(number)
}

/// The file with this number; `None` if it does not exist.
pub fn find(dir: &dyn OutputDir, number: u64) -> Option<PathBuf> {
    let mut there = numbered(&dir.if_there()?).ok()?;
    there.find_map(|(known, path)| (known == number).then_some(path))
}

/// The file that keeps the answer of the helper `name`, in the folder of outputs.
pub fn answer_path(folder: &Path, name: &str) -> PathBuf {
    folder.join("helpers").join(format!("{name}.md"))
}

/// The names of helpers whose answers or sessions are kept.
pub fn answers(dir: &dyn OutputDir) -> impl Iterator<Item = String> + use<> {
    let folder = dir.if_there().map(|folder| folder.join("helpers"));
    let files = folder.and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let answer = name.strip_suffix(".md").map(str::to_owned);
        // A session's file begins with the time of its start.
        answer.or_else(|| Some(name.split_once(".jsonl")?.0.split_once('_')?.1.to_owned()))
    })
}

/// The URI `artifact://3` for a number.
pub fn uri(number: u64) -> String {
    format!("{SCHEME}{number}")
}

/// The part after `agent://`.
pub fn helper(text: &str) -> Option<&str> {
    text.strip_prefix("agent://")
}

/// The part after `artifact://`.
pub fn named(text: &str) -> Option<&str> {
    text.strip_prefix(SCHEME)
}

/// The outputs in a folder, unordered.
fn numbered(folder: &Path) -> io::Result<impl Iterator<Item = (u64, PathBuf)> + use<>> {
    let number = |path: &Path| {
        let stem = path.file_name()?.to_str()?.strip_suffix(".log")?;
        let (tool, number) = stem.strip_prefix("pi-")?.rsplit_once('-')?;
        (!tool.is_empty() && number.len() >= 16).then(|| number.parse().ok())?
    };
    let paths = folder.read_dir()?.flatten().map(|entry| entry.path());
    Ok(paths.filter_map(move |path| Some((number(&path)?, path))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::TempDir;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn outputs_are_numbered_and_found_again() {
        let dir = TempDir::create();
        let outputs = dir.workspace().outputs;
        assert_eq!(find(&*outputs, 1), None);
        assert_eq!(store(&*outputs, "bash", b"one").unwrap(), 1);
        assert_eq!(store(&*outputs, "../mcp tool", b"two").unwrap(), 2);
        dir.write(".outputs/pi-bash-junk.log", "x");
        dir.write(".outputs/pi-bash-0000000000000007.log", "seven");
        assert_eq!(create(&*outputs, "").unwrap().number, 8);
        let two = find(&*outputs, 2).unwrap();
        assert_eq!(two, dir.path().join(".outputs/pi-mcptool-0000000000000002.log"));
        assert_eq!(std::fs::read(&two).unwrap(), b"two");
        assert_eq!(two.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(find(&*outputs, 3), None);
        assert_eq!(uri(3), "artifact://3");
    }

    #[test]
    fn no_number_is_given_twice() {
        let dir = TempDir::create();
        let outputs = dir.workspace().outputs;
        let mut numbers = std::thread::scope(|scope| {
            let store = || (0..20).map(|_| store(&*outputs, "x", b"").unwrap()).collect();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(store)).collect();
            let numbers = threads.into_iter().map(|thread| thread.join().unwrap());
            numbers.collect::<Vec<Vec<u64>>>().concat()
        });
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=80).collect::<Vec<u64>>());
    }
}
