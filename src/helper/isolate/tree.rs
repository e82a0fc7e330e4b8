//! The files of a folder and of its copy: which there are, what each holds, and what differs.
//!
//! Files are compared byte for byte. What git says of them is not asked: its index can be out of date, its filters
//! run programs, and the copy's repository belongs to the helper.

use crate::base::cancel::CancelToken;
use crate::base::failpoint;
use crate::base::file;
use crate::base::order;
use crate::runtime::helpers::shown;
use crate::tools::diff;
use crate::tools::ignore::{Marks, Scope, path_bytes};
use crate::tools::local::Local;
use ring::digest::{Context, SHA256};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// Bytes that are read or copied before a cancel is noticed.
const CHUNK: u64 = 4 << 20;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    File {
        /// SHA-256 of the content.
        hash: Vec<u8>,
        /// True if its owner may run it.
        runs: bool,
    },
    Link(PathBuf),
    /// A folder, or a special file.
    Other,
}

/// What the files and links of a folder hold, by their paths below it.
pub type Record = BTreeMap<PathBuf, Id>;

#[derive(Debug)]
pub struct Changed {
    pub path: PathBuf,
    /// `None` where there was nothing.
    pub base: Option<Id>,
    /// `None` where nothing is left.
    pub end: Option<Id>,
}

/// What is in a folder.
#[derive(Default)]
pub struct Found {
    pub files: BTreeSet<PathBuf>,
    /// Repositories inside, which are not looked into.
    pub repositories: Vec<PathBuf>,
    /// Files and folders that ignore rules exclude.
    pub ignored: Vec<PathBuf>,
}

/// How the files of a folder are found.
pub struct Lister<'a> {
    pub root: &'a Path,
    pub is_git: bool,
    /// The user's home folder, which may have ignore rules for git.
    pub home: Option<&'a Path>,
    /// Files that are no news where they are ignored.
    pub known: &'a Record,
    pub cancel: &'a CancelToken,
}

impl Lister<'_> {
    pub fn list(&self) -> io::Result<Found> {
        // Rules of folders above hold within a repository only, and a helper may have removed that of its copy.
        let scope = if self.is_git && self.root.join(".git").exists() {
            let xdg_config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            Scope::load(&Local, self.root, self.root, self.home, xdg_config.as_deref())
        } else {
            Scope::default()
        };
        let mut found = Found::default();
        self.enter(Path::new(""), Some(&scope), &mut found)?;
        Ok(found)
    }

    /// Lists a folder. Without a scope everything in it is ignored.
    fn enter(&self, folder: &Path, scope: Option<&Scope>, found: &mut Found) -> io::Result<()> {
        check(self.cancel)?;
        let full = self.root.join(folder);
        let entries = fs::read_dir(&full)?.collect::<io::Result<Vec<_>>>()?;
        let names: Vec<OsString> = entries.iter().map(fs::DirEntry::file_name).collect();
        let has = |name: &str| names.iter().any(|entry| entry == name);
        if !folder.as_os_str().is_empty() && names.iter().any(|name| is_git(name)) {
            found.repositories.push(folder.to_owned());
            return Ok(());
        }
        let git = self.is_git && folder.as_os_str().is_empty();
        let marks = Marks { ignore: !self.is_git && has(".ignore"), gitignore: has(".gitignore"), git };
        let scope = scope.map(|scope| scope.clone().enter(&Local, path_bytes(&full), marks));
        for (entry, name) in entries.iter().zip(&names).filter(|(_, name)| !is_git(name)) {
            let (path, kind) = (folder.join(name), entry.file_type()?);
            let place = full.join(name);
            let bytes = place.as_os_str().as_bytes();
            let ignores = |scope: &Scope| scope.ignores(bytes, bytes.len() - name.len(), kind.is_dir());
            let scope = scope.as_ref().filter(|scope| !ignores(scope));
            match scope {
                None if kind.is_dir() && self.knows_below(&path) => self.enter(&path, None, found)?,
                None if self.known.contains_key(&path) => {}
                None => found.ignored.push(path),
                Some(scope) if kind.is_dir() => self.enter(&path, Some(scope), found)?,
                Some(_) if kind.is_file() || kind.is_symlink() => drop(found.files.insert(path)),
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn knows_below(&self, folder: &Path) -> bool {
        self.known.range(folder.to_owned()..).next().is_some_and(|(path, _)| path.starts_with(folder))
    }
}

/// True for a name that git takes for its folder, also where names are equal but for case.
fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

fn check(cancel: &CancelToken) -> io::Result<()> {
    match cancel.is_cancelled() {
        true => Err(io::Error::other("it was cancelled")),
        false => Ok(()),
    }
}

/// Makes `to` a copy of the file or link `from`. Returns the bytes that this took: none if blocks are shared.
pub fn copy_one(from: &Path, to: &Path, cancel: &CancelToken) -> io::Result<u64> {
    check(cancel)?;
    let about = from.symlink_metadata()?;
    if about.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
        return Ok(0);
    }
    let source = file::open_real(from)?;
    let target = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    let mut copied = 0;
    if !shares_blocks(&source, &target) {
        loop {
            match io::copy(&mut (&source).take(CHUNK), &mut &target)? {
                0 => break,
                count => copied += count,
            }
            check(cancel)?;
        }
    }
    target.set_permissions(Permissions::from_mode(about.permissions().mode() & 0o777))?;
    Ok(copied)
}

/// Copies files below `root` to `target`, with the folders that they need. `cost` is told the bytes that each took.
pub fn copy(
    root: &Path,
    target: &Path,
    files: &BTreeSet<PathBuf>,
    cancel: &CancelToken,
    mut cost: impl FnMut(&Path, u64) -> Result<(), String>,
) -> Result<(), String> {
    let say = |path: &Path, error: io::Error| {
        format!("{} cannot be copied: {error}", shown(&path.to_string_lossy()))
    };
    fs::create_dir_all(target).map_err(|error| say(root, error))?;
    let mut made = target.to_owned();
    for path in files {
        let to = target.join(path);
        let copy_one = || {
            failpoint::hit("copy-file")?;
            if let Some(folder) = to.parent().filter(|folder| *folder != made) {
                fs::create_dir_all(folder)?;
                made = folder.to_owned();
            }
            copy_one(&root.join(path), &to, cancel)
        };
        cost(path, { copy_one }().map_err(|error| say(path, error))?)?;
    }
    Ok(())
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

/// What is at a path; `None` if there is nothing.
pub fn id(path: &Path, cancel: &CancelToken) -> io::Result<Option<Id>> {
    let about = match path.symlink_metadata() {
        Ok(about) => about,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if about.is_symlink() {
        return Ok(Some(Id::Link(fs::read_link(path)?)));
    }
    if !about.is_file() {
        return Ok(Some(Id::Other));
    }
    let file = file::open_real(path)?;
    let mut hash = Context::new(&SHA256);
    let mut bytes = Vec::new();
    loop {
        check(cancel)?;
        bytes.clear();
        if (&file).take(CHUNK).read_to_end(&mut bytes)? == 0 {
            break;
        }
        hash.update(&bytes);
    }
    let runs = about.permissions().mode() & 0o100 != 0;
    Ok(Some(Id::File { hash: hash.finish().as_ref().to_vec(), runs }))
}

/// True if no link leads from `root` to the folder of `path`.
pub fn is_direct(root: &Path, path: &Path) -> bool {
    let mut folder = root.to_owned();
    path.parent().into_iter().flat_map(Path::components).all(|part| {
        folder.push(part);
        matches!(part, Component::Normal(_)) && folder.symlink_metadata().is_ok_and(|about| about.is_dir())
    })
}

/// What the files hold now.
pub fn record(root: &Path, files: BTreeSet<PathBuf>, cancel: &CancelToken) -> io::Result<Record> {
    let mut record = Record::new();
    for path in files {
        if let Some(id) = id(&root.join(&path), cancel)? {
            record.insert(path, id);
        }
    }
    Ok(record)
}

/// What differs between a record and the files in `root`, of which `files` were found.
pub fn changes(
    root: &Path,
    record: &Record,
    files: &BTreeSet<PathBuf>,
    cancel: &CancelToken,
) -> io::Result<Vec<Changed>> {
    let mut changed = Vec::new();
    for path in order::set(record.keys().chain(files)) {
        let is_there = files.contains(path) || is_direct(root, path);
        let end = if is_there { id(&root.join(path), cancel)? } else { None };
        // A folder in the place of a file has files of its own.
        let end = end.filter(|end| *end != Id::Other);
        let base = record.get(path);
        if base != end.as_ref() {
            changed.push(Changed { path: path.clone(), base: base.cloned(), end });
        }
    }
    Ok(changed)
}

/// The changes for people.
pub fn patch(changed: &[Changed], base: &Path, tree: &Path) -> Vec<u8> {
    let mut texts = String::new();
    for Changed { path, base: old, end: new } in changed {
        let read = |root: &Path, id: &Option<Id>| match id {
            Some(Id::File { .. }) => fs::read(root.join(path)).unwrap_or_default(),
            Some(Id::Link(target)) => target.as_os_str().as_bytes().to_vec(),
            _ => Vec::new(),
        };
        let (old, new) = (read(base, old), read(tree, new));
        let name = shown(&path.to_string_lossy());
        match (std::str::from_utf8(&old), std::str::from_utf8(&new)) {
            (Ok(old), Ok(new)) => texts.push_str(&diff::changes(&name, old, new).patch),
            _ => texts.push_str(&format!("--- {name}\n+++ {name}\nBinary files differ\n")),
        }
    }
    texts.into_bytes()
}
