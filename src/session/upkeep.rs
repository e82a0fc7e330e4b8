//! Imports, removes and cleans up session files. A file that another process has locked is not changed.

use super::entry::VERSION;
use super::file::{self, Hold, SessionFile};
use super::place::{draft_of, with_suffix};
use super::store::{folder_name, read_dir, read_header};
use super::{beside, id, migrate};
use crate::base::file::{create_private, make_private_folder};
use crate::base::order::Order;
use crate::session::error::SessionError;
use crate::session::log::Log;
use crate::session::notice::Notice;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Removes a session or draft, with all files beside it.
pub fn remove(path: &Path) -> Result<(), SessionError> {
    let _hold = Hold::take(path)?;
    let fail = || SessionError::io("remove", path);
    // The session file is removed first: if this is interrupted, the rest belongs to no session and is found
    // as a leftover.
    std::fs::remove_file(path).map_err(fail())?;
    let is_draft = path.extension().is_some_and(|end| end == "draft");
    let path = path.with_extension(if is_draft { "" } else { "jsonl" });
    // What was typed after a draft is offered on its own.
    let unsent = Some(beside::unsent(&path)).filter(|unsent| !is_draft && unsent.exists());
    let removed = backups(&path).iter().chain(&unsent).try_for_each(std::fs::remove_file);
    removed.and_then(|()| beside::remove(&path)).map_err(SessionError::io("remove what belongs to", &path))
}

/// Removes a session with all files beside it. `trash` is called with the paths first; if the session file is
/// still there afterwards, everything is deleted. True if `trash` took the session.
pub fn throw_away(path: &Path, trash: impl FnOnce(&[PathBuf])) -> Result<bool, SessionError> {
    let hold = Hold::take(path)?;
    trash(&belongings(path));
    if !path.exists() {
        // Files that `trash` left would belong to no session.
        beside::remove(path).map_err(SessionError::io("remove what belongs to", path))?;
        return Ok(true);
    }
    drop(hold);
    remove(path).map(|()| false)
}

/// True on the first call for a draft, or if the mark cannot be stored. Used to tell the user of a draft only
/// once.
pub fn tell_once(draft: &Path) -> bool {
    let told = beside::told(&draft.with_extension(""));
    match create_private(&told) {
        Err(error) => error.kind() != io::ErrorKind::AlreadyExists,
        Ok(_) => true,
    }
}

/// Returns a session's file and everything that belongs to it.
fn belongings(path: &Path) -> Vec<PathBuf> {
    let others = [beside::outputs(path), beside::undo(path), beside::unsent(path)];
    let others = others.into_iter().filter(|other| other.exists());
    let mut all = vec![path.to_owned()];
    all.extend(backups(path).into_iter().chain(others));
    all
}

/// Returns the backups that migration made of `path`.
fn backups(path: &Path) -> Vec<PathBuf> {
    let Some(folder) = path.parent() else {
        return Vec::new();
    };
    let start = with_suffix(path, ".v");
    let belongs = |other: &PathBuf| {
        let (other, start) = (other.to_string_lossy(), start.to_string_lossy());
        let rest = other.strip_prefix(&*start);
        rest.is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(".bak"))
    };
    read_dir(folder).filter(belongs).collect()
}

/// The result of [`import`].
#[derive(Debug)]
pub struct Imported {
    pub path: PathBuf,
    /// `None` if the file was in the folder already.
    pub copy: Option<ImportedCopy>,
    pub notices: Vec<Notice>,
}

/// A copy that [`import`] made. Removed when it is dropped, unless it was kept.
#[derive(Debug)]
pub struct ImportedCopy {
    path: PathBuf,
    is_kept: AtomicBool,
}

impl ImportedCopy {
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for ImportedCopy {
    fn drop(&mut self) {
        if !*self.is_kept.get_mut() {
            let _ = remove(&self.path); // what is left is listed as a session
        }
    }
}

/// Copies a session file into `folder` and migrates it to the current version. The name gets a number if it
/// is taken; no file is replaced.
pub fn import(source: &Path, folder: &Path) -> Result<Imported, SessionError> {
    let mut log = Log::open_to_read(source)?;
    let notices = log.take_notices();
    drop(log);
    let read = || SessionError::io("read the session file", source);
    let source = source.canonicalize().map_err(read())?;
    make_private_folder(folder).map_err(SessionError::io("create the session folder", folder))?;
    if folder.canonicalize().ok().as_deref() == source.parent() {
        let path = source;
        return Ok(Imported { path, copy: None, notices });
    }
    let mut bytes = std::fs::read(&source).map_err(read())?;
    if let Some(header) = read_header(&source)
        && header.version < VERSION
    {
        bytes = migrate::migrate(&bytes, header.version);
    }
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_suffix(".jsonl").unwrap_or(&stem);
    let mut numbers = 1..;
    let mut name = format!("{stem}.jsonl");
    let temp = folder.join(format!("{stem}.jsonl.{}", id::session_id()));
    let mut file = SessionFile::create(&temp)?;
    let filled = file.append(&bytes).and_then(|_| file.sync());
    let named = filled.and_then(|()| {
        loop {
            let path = folder.join(&name);
            match file.rename(&path) {
                Ok(()) => return Ok(path),
                Err(SessionError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            name = format!("{stem}-{}.jsonl", numbers.next().unwrap_or(u64::MAX));
        }
    });
    match named {
        Ok(path) => {
            file.sync_name();
            beside::share_outputs(&source, &path);
            let copy = ImportedCopy { path: path.clone(), is_kept: AtomicBool::new(false) };
            Ok(Imported { path, copy: Some(copy), notices })
        }
        Err(error) => {
            let _ = file.remove();
            Err(error)
        }
    }
}

/// Moves sessions from the agent folder itself, where an early version stored them, to the folders of their
/// projects. Returns old and new paths. A session that is locked or whose new path is taken stays.
pub fn bring_home(agent: &Path) -> Vec<(PathBuf, PathBuf)> {
    let is_session = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let move_one = |from: PathBuf| {
        let header = read_header(&from).filter(|header| !header.cwd.is_empty())?;
        let _hold = Hold::take(&from).ok()?;
        let folder = agent.join("sessions").join(folder_name(Path::new(&header.cwd)));
        make_private_folder(&folder).ok()?;
        let to = folder.join(from.file_name()?);
        file::rename_exclusive(&from, &to).ok()?;
        Some((from, to))
    };
    read_dir(agent).filter(is_session).filter_map(move_one).collect()
}

/// Finds leftovers in a session folder: folders without their session file, incomplete copies, and, if
/// `drafts` is set, drafts and unsent text whose process is gone.
pub fn leftovers(folder: &Path, drafts: bool) -> Vec<PathBuf> {
    let is_leftover = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let end = path.extension().unwrap_or_default().to_string_lossy();
        match &*end {
            "outputs" | "undo" => {
                let session = path.with_extension("jsonl");
                path.is_dir() && !session.exists() && !draft_of(&session).exists()
            }
            "told" => path.is_file() && !draft_of(&path.with_extension("jsonl")).exists(),
            "unsent" => drafts && path.is_file() && !file::is_held(path),
            "draft" => drafts && name.ends_with(".jsonl.draft") && !file::is_held(path),
            end => {
                let cut_off = path.with_extension("");
                cut_off.extension().is_some_and(|end| end == "jsonl")
                    && id::is_session_id(end)
                    && !file::is_held(path)
            }
        }
    };
    let mut found: Vec<PathBuf> = read_dir(folder).filter(is_leftover).collect();
    found.order();
    found
}

/// Removes a path that [`leftovers`] found.
pub fn remove_leftover(path: &Path) -> Result<(), SessionError> {
    if path.is_dir() {
        return std::fs::remove_dir_all(path).map_err(SessionError::io("remove", path));
    }
    if path.extension().is_some_and(|end| end == "draft") {
        return remove(path);
    }
    let _hold = Hold::take(path)?;
    std::fs::remove_file(path).map_err(SessionError::io("remove", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use crate::session::log::SyncMode;

    const HEADER: &str = r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/x"}"#;

    #[test]
    fn what_is_thrown_away_is_offered_to_the_trash() {
        let scratch = TempDir::create();
        let path = scratch.write("s/a.jsonl", HEADER);
        scratch.write("s/a.outputs/1", "x");
        let held = Hold::take(&path).unwrap();
        assert!(throw_away(&path, |_| unreachable!("it is held")).is_err());
        drop(held);
        let taken = throw_away(&path, |paths| {
            assert_eq!(paths, [path.clone(), path.with_extension("outputs")]);
            std::fs::rename(&path, path.with_extension("gone")).unwrap();
        });
        assert!(taken.unwrap() && !path.exists());
        assert!(!path.with_extension("outputs").exists());
        let path = scratch.write("s/b.jsonl", HEADER);
        scratch.write("s/b.outputs/1", "x");
        assert!(!throw_away(&path, |_| ()).unwrap());
        assert!(!path.exists() && !path.with_extension("outputs").exists());
    }

    #[test]
    fn a_draft_is_told_once_and_its_mark_goes_with_it() {
        let scratch = TempDir::create();
        let draft = scratch.write("s/a.jsonl.draft", HEADER);
        assert!(tell_once(&draft));
        assert!(!tell_once(&draft));
        assert!(tell_once(Path::new("/proc/none/a.jsonl.draft")));
        remove(&draft).unwrap();
        assert_eq!(scratch.files(), [""; 0]);
    }

    #[test]
    fn a_session_goes_with_all_that_belongs_to_it() {
        let scratch = TempDir::create();
        let path = scratch.write("s/a.jsonl", HEADER);
        for name in
            ["s/a.outputs/pi-x-1.log", "s/a.undo/1", "s/a.unsent", "s/a.jsonl.v1.bak", "s/a.jsonl.v2.bak1"]
        {
            scratch.write(name, "x");
        }
        let others = ["s/ab.jsonl", "s/ab.outputs/x", "s/ab.jsonl.v1.bak", "s/z.jsonl"];
        for name in others {
            scratch.write(name, HEADER);
        }
        let open = Log::open(&path, Path::new("/x"), SyncMode::Never).unwrap();
        assert!(matches!(remove(&path), Err(SessionError::Held { .. })));
        drop(open);
        remove(&path).unwrap();
        let mut left = others.map(str::to_owned).to_vec();
        left.sort();
        assert_eq!(scratch.files(), left);
        assert!(remove(&path).is_err());
    }

    #[test]
    fn a_file_is_taken_in_whole_and_under_a_free_name() {
        let scratch = TempDir::create();
        let folder = scratch.path().join("s");
        let text = format!("{HEADER}\nbroken\n");
        let source = scratch.write("from/a.jsonl", &text);
        scratch.write("from/a.outputs/pi-bash-0000000000000001.log", "x");
        for name in ["a.jsonl", "a-1.jsonl", "a-2.jsonl"] {
            assert_eq!(import(&source, &folder).unwrap().path, folder.join(name)); // not kept
            let imported = import(&source, &folder).unwrap();
            imported.copy.as_ref().unwrap().keep();
            assert_eq!(imported.path, folder.join(name));
            assert_eq!(std::fs::read_to_string(&imported.path).unwrap(), text);
            assert!(matches!(&*imported.notices, [Notice::Damaged { lines, .. }] if lines == &[2]));
        }
        assert!(folder.join("a-2.outputs/pi-bash-0000000000000001.log").exists());
        let there = import(&folder.join("a.jsonl"), &folder).unwrap();
        assert_eq!(there.path, folder.join("a.jsonl"));
        assert!(there.copy.is_none());
        let old = scratch.write("old.jsonl", "{\"type\":\"session\",\"id\":\"o\"}\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n");
        let imported = import(&old, &folder).unwrap();
        imported.copy.unwrap().keep();
        let text = std::fs::read_to_string(&imported.path).unwrap();
        assert!(text.contains("\"version\":3") && text.contains("\"parentId\":null"), "{text}");
        for junk in ["", "junk", "{}"] {
            let junk = scratch.write("junk.jsonl", junk);
            assert!(matches!(import(&junk, &folder), Err(SessionError::NotASession { .. })));
        }
        assert!(import(Path::new("/nowhere.jsonl"), &folder).is_err());
        assert_eq!(scratch.files().iter().filter(|file| file.starts_with("s/")).count(), 7);
    }

    #[test]
    fn only_what_belongs_to_nothing_is_left_over() {
        let scratch = TempDir::create();
        let cut_off = format!("s/a.jsonl.{}", id::session_id());
        for name in [
            "s/a.jsonl",
            "s/a.outputs/x",
            "s/gone.outputs/x",
            "s/gone.undo/x",
            "s/d.jsonl.draft",
            "s/d.outputs/x",
            "s/d.told",
            "s/d.unsent",
            "s/a.told",
            "s/a.jsonl.v1.bak",
            "s/notes.txt",
            &cut_off,
        ] {
            scratch.write(name, HEADER);
        }
        let folder = scratch.path().join("s");
        let names = |drafts| -> Vec<String> {
            let found = leftovers(&folder, drafts);
            let relative = found.iter().map(|path| path.strip_prefix(scratch.path()).unwrap());
            relative.map(|path| path.to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(false), [cut_off.as_str(), "s/a.told", "s/gone.outputs", "s/gone.undo"]);
        assert_eq!(names(true).len(), 6);
        for path in leftovers(&folder, true) {
            remove_leftover(&path).unwrap();
        }
        assert_eq!(scratch.files(), ["s/a.jsonl", "s/a.jsonl.v1.bak", "s/a.outputs/x", "s/notes.txt"]);
    }
}
