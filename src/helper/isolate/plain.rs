//! Copies of folders that are no git repositories: the files that no ignore rule excludes, twice. One copy is worked
//! in, the other one stays as it is, to compare with.

use super::{Changed, Id};
use crate::base::cancel::CancelToken;
use crate::base::failpoint;
use crate::base::hex::hex;
use crate::tools::diff;
use crate::tools::ignore::{Marks, Scope, path_bytes};
use crate::tools::local::Local;
use ring::digest::{SHA256, digest};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, FileType};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// The files and links of a folder.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    /// Repositories inside, which are left out.
    inside: Vec<PathBuf>,
}

/// Copies the files of `root` to `tree` and to `base`. Files that share their blocks cost nothing; of others at most
/// `bytes_max` are copied. Returns notes for the report.
pub fn copy(
    root: &Path,
    base: &Path,
    tree: &Path,
    bytes_max: u64,
    cancel: &CancelToken,
) -> Result<Vec<String>, String> {
    let mut found = Found::default();
    let all = Scope::load(&Local, root, root, None, None);
    let listed = list(root, Path::new(""), Some(all), &mut found, cancel);
    listed.map_err(|error| format!("{} cannot be read: {error}", root.display()))?;
    let mut left = bytes_max;
    for path in &found.files {
        for target in [base, tree] {
            if cancel.is_cancelled() {
                return Err("it was cancelled".into());
            }
            let copied = failpoint::hit("copy-file")
                .and_then(|()| copy_one(&root.join(path), &target.join(path)))
                .map_err(|error| format!("{} cannot be copied: {error}", path.display()))?;
            left = left.checked_sub(copied).ok_or_else(|| {
                format!(
                    "{} holds more than {} MB that must be copied (setting helpers.copyBytes); in a git \
                     repository, or on a file system that shares blocks, they need not be",
                    root.display(),
                    bytes_max >> 20
                )
            })?;
        }
    }
    for target in [base, tree] {
        fs::create_dir_all(target).map_err(|error| error.to_string())?;
    }
    let names: Vec<String> = found.inside.iter().map(|path| path.display().to_string()).collect();
    let note = format!("Not in the copy, as repositories of their own: {}", names.join(", "));
    Ok((!names.is_empty()).then_some(note).into_iter().collect())
}

/// Lists files and links below `folder`. Without a scope nothing is ignored.
fn list(
    root: &Path,
    folder: &Path,
    scope: Option<Scope>,
    found: &mut Found,
    cancel: &CancelToken,
) -> io::Result<()> {
    if cancel.is_cancelled() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let full = root.join(folder);
    let mut entries: Vec<(std::ffi::OsString, FileType)> = Vec::new();
    for entry in fs::read_dir(&full)? {
        let entry = entry?;
        entries.push((entry.file_name(), entry.file_type()?));
    }
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
    if has(".git") && !folder.as_os_str().is_empty() {
        found.inside.push(folder.to_owned());
        return Ok(());
    }
    let marks = Marks { ignore: has(".ignore"), gitignore: has(".gitignore"), git: false };
    let scope = scope.map(|scope| scope.enter(&Local, path_bytes(&full), marks));
    for (name, kind) in entries {
        let path = folder.join(&name);
        let place = full.join(&name);
        let bytes = place.as_os_str().as_bytes();
        let at = bytes.len() - name.len();
        if scope.as_ref().is_some_and(|scope| scope.ignores(bytes, at, kind.is_dir())) {
            continue;
        }
        if kind.is_dir() {
            list(root, &path, scope.clone(), found, cancel)?;
        } else if kind.is_file() || kind.is_symlink() {
            found.files.push(path);
        }
    }
    Ok(())
}

/// Copies a file or link. Returns the bytes that this took.
fn copy_one(from: &Path, to: &Path) -> io::Result<u64> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    if from.symlink_metadata()?.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
        return Ok(0);
    }
    let source = File::open(from)?;
    let target = File::options().write(true).create_new(true).open(to)?;
    target.set_permissions(source.metadata()?.permissions())?;
    if shares_blocks(&source, &target) {
        return Ok(0);
    }
    drop(target);
    fs::copy(from, to)
}

/// Has `target` share the blocks of `source`; false if the file system cannot.
#[cfg(target_os = "linux")]
fn shares_blocks(source: &File, target: &File) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: both descriptors are open until the call returns, and no pointer is passed.
    unsafe { libc::ioctl(target.as_raw_fd(), libc::FICLONE, source.as_raw_fd()) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn shares_blocks(_: &File, _: &File) -> bool {
    false
}

/// What is at a path.
pub fn id(path: &Path) -> io::Result<Option<Id>> {
    let about = match path.symlink_metadata() {
        Ok(about) => about,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if about.is_symlink() {
        let target = fs::read_link(path)?;
        return Ok(Some(Id { is_file: false, text: format!("link {}", target.display()) }));
    }
    if !about.is_file() {
        return Ok(Some(Id { is_file: false, text: "other".into() }));
    }
    let hash = hex(digest(&SHA256, &fs::read(path)?).as_ref());
    let runs = about.permissions().mode() & 0o100 != 0;
    Ok(Some(Id { is_file: true, text: format!("{runs} {hash}") }))
}

/// What differs between the two copies.
pub fn changes(base: &Path, tree: &Path, cancel: &CancelToken) -> io::Result<Vec<Changed>> {
    let (mut before, mut after) = (Found::default(), Found::default());
    list(base, Path::new(""), None, &mut before, cancel)?;
    // What the helper has built is ignored as in the folder itself.
    let scope = Scope::load(&Local, tree, tree, None, None);
    list(tree, Path::new(""), Some(scope), &mut after, cancel)?;
    let known: BTreeSet<PathBuf> = before.files.into_iter().chain(after.files).collect();
    let mut changed = Vec::new();
    for path in known {
        let (old, new) = (id(&base.join(&path))?, id(&tree.join(&path))?);
        if old != new {
            changed.push(Changed { path, base: old, end: new });
        }
    }
    Ok(changed)
}

/// The changes for people.
pub fn patch(changed: &[Changed], base: &Path, tree: &Path) -> Vec<u8> {
    let mut texts = BTreeMap::new();
    for Changed { path, .. } in changed {
        let read = |root: &Path| fs::read(root.join(path)).unwrap_or_default();
        let (old, new) = (read(base), read(tree));
        let name = path.display().to_string();
        let text = match (std::str::from_utf8(&old), std::str::from_utf8(&new)) {
            (Ok(old), Ok(new)) => diff::changes(&name, old, new).patch,
            _ => format!("--- {name}\n+++ {name}\nBinary files differ\n"),
        };
        texts.insert(path.as_os_str().as_bytes(), text);
    }
    texts.into_values().collect::<String>().into_bytes()
}

/// The folder's name as a part of other names.
pub fn plain_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(OsStr::new("root")).to_string_lossy();
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' })
        .take(40)
        .collect()
}
