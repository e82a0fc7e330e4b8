//! What was typed in the terminal and not sent: the text in the editor, and messages that wait for a run. It is
//! kept in a small file beside the session's place, so that it outlives a closed window and a kill.
//!
//! The file exists only while there is such text. Its process holds a lock on it: a file without a lock was
//! left by a process that is gone. Each version replaces the one before atomically. Files are not synced: they
//! survive the process, not a loss of power.

use super::beside;
use super::file;
use super::place::draft_of;
use super::store::{Store, read_dir, same_folder};
use crate::base::file::{Temp, make_private_folder, open, read_open};
use crate::base::json;
use crate::base::order::Order;
use crate::base::time::iso;
use crate::llm::message::now_ms;
use crate::session::error::SessionError;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Maximum size of a file, in bytes. A longer text is not kept.
const BYTES_MAX: u64 = 16 << 20;

/// Older files are not offered.
const AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Unsent {
    pub cwd: String,
    /// When it was kept, in ISO 8601.
    pub timestamp: String,
    pub steering: Vec<String>,
    pub follow_up: Vec<String>,
    /// The text in the editor.
    pub editor: String,
}

impl Unsent {
    pub fn is_empty(&self) -> bool {
        self.texts().next().is_none()
    }

    /// Returns all texts, separated by blank lines, in the order in which they would be sent.
    pub fn text(&self) -> String {
        self.texts().collect::<Vec<_>>().join("\n\n")
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let all = self.steering.iter().chain(&self.follow_up).chain([&self.editor]);
        all.map(|text| text.trim()).filter(|text| !text.is_empty())
    }
}

/// A locked file of unsent text.
pub struct Held {
    path: PathBuf,
    file: File,
}

impl Held {
    /// Takes over a file whose process is gone; `None` if another process holds it.
    fn take(path: &Path) -> Option<(Self, Unsent)> {
        let file = open(path).ok()?;
        file::lock(&file, path).ok()?;
        let age = file.metadata().and_then(|about| about.modified()).map(|time| time.elapsed());
        if age.is_ok_and(|age| age.is_ok_and(|age| age > AGE_MAX)) {
            return None;
        }
        let unsent = json::parse(&read_open(file.try_clone().ok()?, BYTES_MAX).ok()?).ok()?;
        Some((Self { path: path.to_owned(), file }, unsent))
    }

    /// Removes the file.
    pub fn remove(self) -> Result<(), SessionError> {
        // Another program may have put its own file there.
        if !file::is_at(&self.file, &self.path) {
            return Ok(());
        }
        std::fs::remove_file(&self.path).map_err(SessionError::io("remove", &self.path))
    }
}

impl Drop for Held {
    /// Unlocks explicitly: a child process being started holds a copy of the open file, which would keep the
    /// lock.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Keeps the unsent text of this process.
#[derive(Default)]
pub struct Keeper {
    held: Option<Held>,
    /// Files that were taken over. They go when their text is kept anew, or not needed any more.
    taken: Vec<Held>,
}

impl Keeper {
    pub fn take_over(&mut self, held: Held) {
        self.taken.push(held);
    }

    /// Keeps `unsent` beside the session at `session_file`. Without a session file, or if there is no text,
    /// nothing is kept.
    pub fn keep(&mut self, session_file: Option<&Path>, unsent: &Unsent) -> Result<(), SessionError> {
        let place = session_file.map(beside::unsent).filter(|_| !unsent.is_empty());
        let new = match place {
            Some(place) => {
                Some(write(&place, unsent).map_err(SessionError::io("keep what is typed in", &place))?)
            }
            None => None,
        };
        let place = new.as_ref().map(|new| new.path.clone());
        let old = std::mem::replace(&mut self.held, new).into_iter().chain(self.taken.drain(..));
        let removed = old.filter(|old| Some(&old.path) != place.as_ref()).map(Held::remove);
        removed.fold(Ok(()), Result::and)
    }
}

fn write(place: &Path, unsent: &Unsent) -> io::Result<Held> {
    if let Some(folder) = place.parent() {
        make_private_folder(folder)?;
    }
    let unsent = Unsent { timestamp: iso(now_ms()), ..unsent.clone() };
    let text = serde_json::to_vec(&unsent)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut temp = Temp::beside(place)?;
    temp.file.write_all(&text)?;
    let file = temp.file.try_clone()?;
    // Some file systems have no locks.
    let _ = file.try_lock();
    temp.rename(place)?;
    Ok(Held { path: place.to_owned(), file })
}

/// Takes over the unsent text of the session at `session_file`.
pub fn take_of_session(session_file: &Path) -> Option<(Held, Unsent)> {
    Held::take(&beside::unsent(session_file)).filter(|(_, unsent)| !unsent.is_empty())
}

impl Store {
    /// Takes over the latest unsent text of `cwd`. Without `any`, only text of conversations without a file,
    /// which cannot be opened any more.
    pub fn take_unsent(&self, cwd: &Path, any: bool) -> Option<(Held, Unsent)> {
        let modified = |path: &Path| path.metadata().and_then(|about| about.modified());
        let is_lone = |path: &Path| {
            let session = path.with_extension("jsonl");
            !session.exists() && !draft_of(&session).exists()
        };
        let mut left: Vec<(SystemTime, PathBuf)> = read_dir(&self.folder(cwd))
            .filter(|path| path.extension().is_some_and(|end| end == "unsent") && (any || is_lone(path)))
            .filter_map(|path| Some((modified(&path).ok()?, path)))
            .collect();
        left.order();
        let is_of_it =
            |(_, unsent): &(Held, Unsent)| !unsent.is_empty() && same_folder(Path::new(&unsent.cwd), cwd);
        left.iter().rev().find_map(|(_, path)| Held::take(path).filter(is_of_it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use crate::session::log::SyncMode;
    use std::os::unix::fs::PermissionsExt;

    fn typed(text: &str) -> Unsent {
        Unsent { cwd: "/x".into(), editor: text.into(), ..Unsent::default() }
    }

    #[test]
    fn unsent_text_is_kept_while_there_is_some() {
        let dir = TempDir::create();
        let session = dir.path().join("s/a.jsonl");
        let mut keeper = Keeper::default();
        keeper.keep(Some(&session), &typed(" ")).unwrap();
        assert_eq!(dir.files(), [""; 0]);
        for text in ["one", "two"] {
            keeper.keep(Some(&session), &typed(text)).unwrap();
        }
        assert_eq!(dir.files(), ["s/a.unsent"]);
        let mode = session.with_extension("unsent").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // Its process lives.
        assert!(take_of_session(&session).is_none());
        keeper.keep(Some(&dir.path().join("s/b.jsonl")), &typed("two")).unwrap();
        assert_eq!(dir.files(), ["s/b.unsent"]);
        keeper.keep(None, &typed("two")).unwrap();
        assert_eq!(dir.files(), [""; 0]);
    }

    #[test]
    fn what_a_process_left_is_taken_over_once() {
        let dir = TempDir::create();
        let store = Store::new(dir.path(), None, SyncMode::Never);
        let folder = store.folder(Path::new("/x"));
        let session = folder.join("a.jsonl");
        let left =
            Unsent { steering: vec!["first".into()], follow_up: vec!["second ".into()], ..typed("third") };
        let mut keeper = Keeper::default();
        keeper.keep(Some(&session), &left).unwrap();
        drop(keeper);
        std::fs::write(folder.join("other.unsent"), r#"{"cwd": "/y", "editor": "not here"}"#).unwrap();
        std::fs::write(folder.join("junk.unsent"), "junk").unwrap();
        std::fs::write(&session, "").unwrap();
        assert!(store.take_unsent(Path::new("/x"), false).is_none());
        let (held, unsent) = store.take_unsent(Path::new("/x"), true).unwrap();
        assert_eq!(unsent.text(), "first\n\nsecond\n\nthird");
        assert!(take_of_session(&session).is_none());
        // It is there until it is kept anew.
        let mut keeper = Keeper::default();
        keeper.take_over(held);
        let next = folder.join("b.jsonl");
        keeper.keep(Some(&next), &typed("fourth")).unwrap();
        drop(keeper);
        assert!(!session.with_extension("unsent").exists());
        assert_eq!(store.take_unsent(Path::new("/x"), false).unwrap().1.text(), "fourth");
    }

    #[test]
    fn text_that_cannot_be_kept_is_an_error_that_names_the_place() {
        let dir = TempDir::create();
        dir.write("s", "a file");
        let error = Keeper::default().keep(Some(&dir.path().join("s/a.jsonl")), &typed("x")).unwrap_err();
        assert!(error.to_string().contains("s/a.unsent"), "{error}");
    }
}
