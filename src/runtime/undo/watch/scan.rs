//! What a folder holds: files by content, links by target, folders by mode.
//!
//! A scan has two parts. The first looks at the stat of every known folder and file, on several threads, and
//! changes nothing. The second reads what differs. A folder whose own stat is unchanged is not listed again.
//!
//! A change within the resolution of the file system's clock leaves no trace in a stat. What was changed right
//! before it was read is therefore read again by the next scan.

use super::item::{
    Changed, Folder, Hash, Item, Meta, Thing, What, is_racy, is_rules, is_within, join, kept, now_ns, split,
    stat_at, thing,
};
use super::pack::Pack;
use super::{Extent, index};
use crate::base::file;
use crate::base::order::{self, Order};
use crate::base::thread::Thread;
use crate::tools::ignore::{Marks, Scope};
use crate::tools::local::Local;
use ring::digest::{SHA256, digest};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size in bytes of a file whose content is kept.
pub const FILE_MAX: u64 = 16 << 20;
/// Maximum changes that one command can make and that are known.
const CHANGES_MAX: usize = 10_000;
/// Folders that a thread looks at in one go.
const CHUNK: usize = 64;
const THREADS_MAX: usize = 8;

/// What a watch may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    files: usize,
    /// Contents of all files, in bytes.
    bytes: u64,
    /// Content of one file, in bytes. Larger files are known, but cannot be restored.
    file_bytes: u64,
    is_small: bool,
}

impl Limits {
    pub fn of(extent: Extent) -> Self {
        match extent {
            Extent::Small => Self { files: 10_000, bytes: 64 << 20, file_bytes: 1 << 20, is_small: true },
            Extent::All(bytes) => Self { files: 1_000_000, bytes, file_bytes: FILE_MAX, is_small: false },
        }
    }

    fn advice(self) -> &'static str {
        if self.is_small { "; the setting undo.commands can be \"on\"" } else { "" }
    }
}

pub struct Tree {
    root: PathBuf,
    store: PathBuf,
    device: u64,
    /// Rules that hold in the root, without its own files.
    scope: Scope,
    limits: Limits,
    pack: Pack,
    folders: BTreeMap<Vec<u8>, Folder>,
    files: usize,
    /// Sizes of the files whose contents are kept.
    bytes: u64,
    /// True while files are counted and not read.
    is_survey: bool,
    /// True if the index on disk differs from this.
    is_changed: bool,
    is_dropped: Arc<AtomicBool>,
}

/// The difference between a known folder and the disk.
enum Look {
    /// The folder itself differs.
    List,
    /// These items differ.
    Items(Vec<usize>),
}

/// The changes that a scan finds.
struct Found {
    /// When the commands began, in nanoseconds since 1970; `None` if nobody wants the changes.
    begun_ns: Option<i64>,
    changed: Vec<Changed>,
    scopes: HashMap<Vec<u8>, Scope>,
}

impl Found {
    fn add(&mut self, path: &[u8], before: Option<Thing>, after: Option<Thing>) -> Result<(), String> {
        if self.begun_ns.is_none() || before == after {
            return Ok(());
        }
        if self.changed.len() >= CHANGES_MAX {
            return Err(format!("a command changed more than {CHANGES_MAX} files"));
        }
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        self.changed.push(Changed { path, before, after });
        Ok(())
    }
}

impl Tree {
    /// Takes up what an earlier process knew of the folder.
    pub fn open(
        root: &Path,
        store: &Path,
        home: Option<&Path>,
        limits: Limits,
        is_dropped: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let (folders, held) = index::load(store).unwrap_or_default();
        let xdg_config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let mut tree = Self {
            device: fs::metadata(root)?.dev(),
            scope: Scope::load(&Local, root, root, home, xdg_config.as_deref()),
            root: root.to_owned(),
            store: store.to_owned(),
            pack: Pack::open(store, held)?,
            limits,
            folders,
            files: 0,
            bytes: 0,
            is_survey: false,
            is_changed: false,
            is_dropped,
        };
        let (pack, limits) = (&tree.pack, tree.limits);
        for item in tree.folders.values_mut().flat_map(|folder| &mut folder.items) {
            // A content that is gone, or that other limits allow, is read again.
            item.is_racy |= match &item.what {
                What::File(None) => item.meta.size <= limits.file_bytes,
                What::File(Some(hash)) => !pack.has(hash) || item.meta.size > limits.file_bytes,
                What::Link(_) => false,
            };
            tree.files += 1;
            tree.bytes += kept(item);
        }
        Ok(tree)
    }

    pub fn content(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        self.pack.get(hash)
    }

    /// Writes the index. Without it the next process reads all files again.
    pub fn save(&mut self) {
        if self.is_changed && index::save(&self.store, &self.folders, self.pack.known()).is_ok() {
            self.is_changed = false;
        }
    }

    /// Takes up what is on the disk, and returns what has changed since the last call. `begun_ns` is `None` if
    /// nobody wants the changes. An error says why the folder cannot be watched.
    pub fn refresh(&mut self, begun_ns: Option<i64>) -> Result<Vec<Changed>, String> {
        let mut looks = self.look();
        if self.folders.is_empty() {
            self.survey()?;
            looks.push((Vec::new(), Look::List));
        }
        looks.order_by(|(one, _), (other, _)| one.cmp(other));
        self.is_changed |= !looks.is_empty();
        let mut found = Found { begun_ns, changed: Vec::new(), scopes: HashMap::new() };
        let taken = looks.into_iter().try_for_each(|(path, look)| match look {
            Look::List => self.list(&path, false, &mut found),
            Look::Items(places) => self.reread(&path, &places, &mut found),
        });
        // A folder that was listed in part would pass for a known one in the next process.
        self.is_changed &= taken.is_ok();
        taken.map(|()| merge(found.changed))
    }

    /// Returns an error for a folder that is too large, before anything of it is read and kept.
    fn survey(&mut self) -> Result<(), String> {
        self.is_survey = true;
        let mut found = Found { begun_ns: None, changed: Vec::new(), scopes: HashMap::new() };
        let surveyed = self.list(b"", false, &mut found);
        self.is_survey = false;
        self.folders.clear();
        (self.files, self.bytes) = (0, 0);
        surveyed
    }

    /// Compares all known folders with the disk.
    fn look(&self) -> Vec<(Vec<u8>, Look)> {
        let folders: Vec<(&Vec<u8>, &Folder)> = self.folders.iter().collect();
        let next = AtomicUsize::new(0);
        let looks = Mutex::new(Vec::new());
        let work = || {
            let mut own = Vec::new();
            loop {
                let from = next.fetch_add(CHUNK, Relaxed);
                let Some(chunk) =
                    folders.get(from..folders.len().min(from + CHUNK)).filter(|c| !c.is_empty())
                else {
                    break;
                };
                let differing = chunk
                    .iter()
                    .filter_map(|(path, folder)| Some(((*path).clone(), self.compare(path, folder)?)));
                own.extend(differing);
            }
            looks.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(THREADS_MAX).min(folders.len() / CHUNK);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Fewer threads do the same work.
                let _ = Thread::named("watch").start_in(scope, work);
            }
            work();
        });
        looks.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares a known folder with the disk; `None` if they are equal.
    fn compare(&self, path: &[u8], folder: &Folder) -> Option<Look> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
        let Ok(open) = options.open(self.full(path)) else {
            return Some(Look::List);
        };
        let is_same = open.metadata().is_ok_and(|about| Meta::of(&about) == folder.meta);
        if !is_same || folder.is_racy {
            return Some(Look::List);
        }
        let differs = |item: &Item| item.is_racy || stat_at(&open, &item.name).ok() != Some(item.meta);
        let places: Vec<usize> = folder
            .items
            .iter()
            .enumerate()
            .filter(|(_, item)| differs(item))
            .map(|(place, _)| place)
            .collect();
        let rules =
            |place: &usize| folder.items.get(*place).is_some_and(|item| is_rules(item.name.to_bytes()));
        match places.iter().any(rules) {
            true => Some(Look::List),
            false => (!places.is_empty()).then_some(Look::Items(places)),
        }
    }

    /// Reads files again whose stat differs.
    fn reread(&mut self, path: &[u8], places: &[usize], found: &mut Found) -> Result<(), String> {
        for &place in places {
            let Some(folder) = self.folders.get(path) else {
                return Ok(());
            };
            let Some(item) = folder.items.get(place) else { continue };
            let inside = join(path, item.name.to_bytes());
            let (old, name) = (thing(item), item.name.clone());
            let bytes = kept(item);
            self.bytes = self.bytes.saturating_sub(bytes);
            let Some(new) = self.read(&inside, name, None)? else {
                // It went without a trace in its folder, which the next scan lists.
                self.bytes += bytes;
                if let Some(folder) = self.folders.get_mut(path) {
                    folder.is_racy = true;
                }
                continue;
            };
            found.add(&inside, Some(old), Some(thing(&new)))?;
            if let Some(item) = self.folders.get_mut(path).and_then(|folder| folder.items.get_mut(place)) {
                *item = new;
            }
        }
        Ok(())
    }

    /// Lists a folder again, and takes up what is new, different and gone. `is_rules_changed`: rules above it
    /// have changed, so that what appears may have been there before.
    fn list(&mut self, path: &[u8], is_rules_changed: bool, found: &mut Found) -> Result<(), String> {
        if self.is_dropped.load(Relaxed) {
            return Err("it is not needed any more".into());
        }
        let full = self.full(path);
        let is_known = self.folders.contains_key(path);
        let about = match fs::symlink_metadata(&full) {
            Ok(about) if about.is_dir() => about,
            // Its parent is listed, too, and knows.
            _ if !path.is_empty() => return Ok(()),
            _ => return Err(format!("{} cannot be read", full.display())),
        };
        let meta = Meta::of(&about);
        // What was known of a folder that went and came back was dropped with it.
        if !is_known && !path.is_empty() && !self.parent_has(path) {
            return Ok(());
        }
        let now = now_ns();
        let mut names = match fs::read_dir(&full) {
            Ok(entries) => entries.flatten().collect::<Vec<_>>(),
            Err(error) if path.is_empty() => {
                return Err(format!("{} cannot be read: {error}", full.display()));
            }
            // What was known of a folder that can no longer be read may still be there.
            Err(_) => return self.note_mode(path, meta, found),
        };
        let has = |name: &str| names.iter().any(|entry| entry.file_name() == name);
        let marks = Marks { ignore: has(".ignore"), gitignore: has(".gitignore"), git: has(".git") };
        let old = self.folders.remove(path);
        let mode = meta.mode & 0o7777;
        match &old {
            Some(old) => {
                let before = Thing::Folder { mode: old.meta.mode & 0o7777 };
                found.add(path, Some(before), Some(Thing::Folder { mode }))?;
            }
            None if !path.is_empty() && is_new(&meta, is_rules_changed, found) => {
                found.add(path, None, Some(Thing::Folder { mode }))?;
            }
            None => {}
        }
        let old_marks = old.as_ref().map(|old| old.marks);
        let (mut items, old_folders) = old.map_or_else(Default::default, |old| (old.items, old.folders));
        let folder =
            Folder { meta, marks, is_racy: is_racy(&meta, now), items: Vec::new(), folders: Vec::new() };
        self.folders.insert(path.to_vec(), folder);
        found.scopes.retain(|known, _| !is_within(known, path));
        let scope = self.scope_of(path, found);
        let mut old_items = order::map(items.drain(..).map(|item| (item.name.to_bytes().to_vec(), item)));
        let rules_before = rules_of(&old_items);
        // Rules come first: what appears since they changed is not new.
        names.order_by_key(|entry| !is_rules(entry.file_name().as_bytes()));
        let mut changes_rules = is_rules_changed || old_marks.is_some_and(|old| old != marks);
        let mut are_rules_read = false;
        let mut new_items = Vec::new();
        let mut folders = Vec::new();
        for entry in names {
            let name = entry.file_name().into_vec();
            let inside = join(path, &name);
            let Ok(kind) = entry.file_type() else { continue };
            if is_known && !are_rules_read && !is_rules(&name) {
                are_rules_read = true;
                changes_rules |= rules_in(&new_items) != rules_before;
            }
            if name == b".git" || self.is_ignored(&scope, &inside, name.len(), kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                let is_here = entry.metadata().is_ok_and(|about| about.dev() == self.device);
                if is_here && self.full(&inside) != self.store {
                    folders.push(name);
                }
                continue;
            }
            let Ok(c_name) = CString::new(name.clone()) else { continue };
            let old = old_items.remove(&name);
            let before = old.as_ref().map(thing);
            if let Some(old) = &old {
                self.bytes = self.bytes.saturating_sub(kept(old));
                self.files = self.files.saturating_sub(1);
            }
            let Some(item) = self.read(&inside, c_name.into_boxed_c_str(), old)? else { continue };
            self.files += 1;
            if self.files > self.limits.files {
                let (most, advice) = (self.limits.files, self.limits.advice());
                return Err(format!("{} has more than {most} files{advice}", self.root.display()));
            }
            if before.is_some() || is_rules(&name) || is_new(&item.meta, changes_rules, found) {
                found.add(&inside, before, Some(thing(&item)))?;
            }
            new_items.push(item);
        }
        new_items.order_by(|one, other| one.name.cmp(&other.name));
        folders.order();
        changes_rules |= is_known && !are_rules_read && rules_in(&new_items) != rules_before;
        for (name, item) in old_items {
            self.files = self.files.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(kept(&item));
            let inside = join(path, &name);
            // What is ignored from now on is still there.
            if self.full(&inside).symlink_metadata().is_err() || !self.is_plain(&inside) {
                found.add(&inside, Some(thing(&item)), None)?;
            }
        }
        for name in old_folders.iter().filter(|name| folders.binary_search(name).is_err()) {
            self.forget(&join(path, name), found)?;
        }
        if let Some(folder) = self.folders.get_mut(path) {
            folder.items = new_items;
            folder.folders.clone_from(&folders);
        }
        for name in folders {
            let inside = join(path, &name);
            if changes_rules || old_folders.binary_search(&name).is_err() {
                self.list(&inside, changes_rules, found)?;
            }
        }
        Ok(())
    }

    /// Takes up the mode of a folder that cannot be listed.
    fn note_mode(&mut self, path: &[u8], meta: Meta, found: &mut Found) -> Result<(), String> {
        let Some(folder) = self.folders.get_mut(path) else {
            return Ok(());
        };
        let thing = |meta: &Meta| Some(Thing::Folder { mode: meta.mode & 0o7777 });
        let before = thing(&folder.meta);
        (folder.meta, folder.is_racy) = (meta, true);
        found.add(path, before, thing(&meta))
    }

    /// Drops a folder that is gone, with all in it. One that is ignored from now on is no change.
    fn forget(&mut self, path: &[u8], found: &mut Found) -> Result<(), String> {
        let is_there = fs::symlink_metadata(self.full(path)).is_ok_and(|about| about.is_dir());
        let inside: Vec<Vec<u8>> = self
            .folders
            .range(path.to_vec()..)
            .map(|(known, _)| known)
            .take_while(|known| known.starts_with(path))
            .cloned()
            .collect();
        for known in inside.into_iter().filter(|known| is_within(known, path)) {
            let Some(folder) = self.folders.remove(&known) else { continue };
            if !is_there {
                found.add(&known, Some(Thing::Folder { mode: folder.meta.mode & 0o7777 }), None)?;
            }
            for item in &folder.items {
                self.files = self.files.saturating_sub(1);
                self.bytes = self.bytes.saturating_sub(kept(item));
                if !is_there {
                    found.add(&join(&known, item.name.to_bytes()), Some(thing(item)), None)?;
                }
            }
        }
        Ok(())
    }

    /// True if a known folder holds the folder at `path`.
    fn parent_has(&self, path: &[u8]) -> bool {
        let (parent, name) = split(path);
        self.folders.get(parent).is_some_and(|folder| folder.folders.iter().any(|known| known == name))
    }

    /// True if a file or a link is at the path.
    fn is_plain(&self, path: &[u8]) -> bool {
        fs::symlink_metadata(self.full(path)).is_ok_and(|about| about.is_file() || about.is_symlink())
    }

    /// Reads a file or link; `None` if there is neither. An `old` item with an unchanged stat is not read again.
    fn read(&mut self, path: &[u8], name: Box<CStr>, old: Option<Item>) -> Result<Option<Item>, String> {
        let full = self.full(path);
        let Ok(about) = fs::symlink_metadata(&full) else {
            return Ok(None);
        };
        let mut meta = Meta::of(&about);
        if let Some(old) = old.filter(|old| !old.is_racy && old.meta == meta) {
            self.bytes += kept(&old);
            return Ok(Some(old));
        }
        let now = now_ns();
        let what = if about.is_symlink() {
            match fs::read_link(&full) {
                Ok(target) => What::Link(target.into_os_string().into_vec()),
                Err(_) => return Ok(None),
            }
        } else if !about.is_file() {
            return Ok(None);
        } else {
            match self.content_of(&full, &mut meta)? {
                Some(hash) => What::File(Some(hash)),
                None => What::File(None),
            }
        };
        let item = Item { name, is_racy: is_racy(&meta, now), meta, what };
        self.bytes += kept(&item);
        if self.bytes > self.limits.bytes {
            let (size, advice) = (self.limits.bytes >> 20, self.limits.advice());
            return Err(format!("{} holds more than {size} MB{advice}", self.root.display()));
        }
        Ok(Some(item))
    }

    /// Reads a file and keeps its content; `None` if it is too large or cannot be read. `meta` becomes that of
    /// the file that was read.
    fn content_of(&mut self, full: &Path, meta: &mut Meta) -> Result<Option<Hash>, String> {
        if meta.size > self.limits.file_bytes {
            return Ok(None);
        }
        if self.is_survey {
            self.bytes += meta.size;
            return Ok(None);
        }
        let read = || {
            let file = file::open_real(full)?;
            let meta = Meta::of(&file.metadata()?);
            io::Result::Ok((meta, file::read_open(file, self.limits.file_bytes)?))
        };
        let Ok((now, content)) = read() else {
            return Ok(None);
        };
        *meta = now;
        let Ok(hash) = Hash::try_from(digest(&SHA256, &content).as_ref()) else {
            return Ok(None);
        };
        let put = self.pack.put(&hash, &content);
        put.map_err(|error| format!("contents cannot be kept in {}: {error}", self.store.display()))?;
        Ok(Some(hash))
    }

    fn full(&self, path: &[u8]) -> PathBuf {
        match path.is_empty() {
            true => self.root.clone(),
            false => self.root.join(OsStr::from_bytes(path)),
        }
    }

    fn is_ignored(&self, scope: &Scope, path: &[u8], name: usize, is_dir: bool) -> bool {
        let full = self.full(path).into_os_string().into_vec();
        scope.ignores(&full, full.len() - name, is_dir)
    }

    /// The ignore rules that hold in a known folder.
    fn scope_of(&self, path: &[u8], found: &mut Found) -> Scope {
        if let Some(scope) = found.scopes.get(path) {
            return scope.clone();
        }
        let above = match path.is_empty() {
            true => self.scope.clone(),
            false => self.scope_of(split(path).0, found),
        };
        let marks = self.folders.get(path).map(|folder| folder.marks).unwrap_or_default();
        let full = self.full(path).into_os_string().into_vec();
        let scope = above.enter(&Local, full.strip_suffix(b"/").unwrap_or(&full), marks);
        found.scopes.insert(path.to_vec(), scope.clone());
        scope
    }
}

/// Joins the end of one thing and the begin of another at one path.
fn merge(mut changed: Vec<Changed>) -> Vec<Changed> {
    changed.order_by(|one, other| one.path.cmp(&other.path));
    changed.dedup_by(|later, kept| {
        let is_same = later.path == kept.path;
        if is_same {
            kept.before = kept.before.take().or(later.before.take());
            kept.after = kept.after.take().or(later.after.take());
        }
        is_same
    });
    changed
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.save();
    }
}

/// False for what was there before the commands began, and appears since rules were changed.
fn is_new(meta: &Meta, is_rules_changed: bool, found: &Found) -> bool {
    !is_rules_changed || found.begun_ns.is_some_and(|begun| meta.ctime >= begun.saturating_sub(10_000_000))
}

fn rules_of(items: &BTreeMap<Vec<u8>, Item>) -> Vec<(Vec<u8>, What)> {
    let rules = items.iter().filter(|(name, _)| is_rules(name));
    rules.map(|(name, item)| (name.clone(), item.what.clone())).collect()
}

/// The rules among items that were read in any order, by name.
fn rules_in(items: &[Item]) -> Vec<(Vec<u8>, What)> {
    let rules = items.iter().filter(|item| is_rules(item.name.to_bytes()));
    let mut rules: Vec<_> = rules.map(|item| (item.name.to_bytes().to_vec(), item.what.clone())).collect();
    rules.order_by(|(one, _), (other, _)| one.cmp(other));
    rules
}
