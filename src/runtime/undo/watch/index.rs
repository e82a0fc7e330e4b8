//! The file `index` of a watched folder: what was known of it at last.
//!
//! Numbers are little-endian, texts have their length in front, the SHA-256 of all comes last. A file that is
//! damaged, or of another version, is as good as none: the folder is read again.

use super::item::{Folder, Hash, Item, Meta, What};
use super::pack::{self, Held};
use crate::base::file;
use crate::tools::ignore::Marks;
use ring::digest::{SHA256, digest};
use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::io;
use std::path::Path;

const MAGIC: &[u8] = b"pi folder 1\n";
const NAME: &str = "index";

/// Folders by their relative path, and the kept contents.
pub type Index = (BTreeMap<Vec<u8>, Folder>, HashMap<Hash, Held>);

pub fn save(store: &Path, folders: &BTreeMap<Vec<u8>, Folder>, held: &HashMap<Hash, Held>) -> io::Result<()> {
    let mut out = Writer(MAGIC.to_vec());
    out.count(folders.len());
    for (path, folder) in folders {
        out.bytes(path);
        out.meta(&folder.meta);
        let Marks { ignore, gitignore, git } = folder.marks;
        let flags = [folder.is_racy, ignore, gitignore, git];
        out.0.extend(flags.map(u8::from));
        out.count(folder.items.len());
        for item in &folder.items {
            out.bytes(item.name.to_bytes());
            out.meta(&item.meta);
            out.0.push(u8::from(item.is_racy));
            match &item.what {
                What::File(None) => out.0.push(0),
                What::File(Some(hash)) => {
                    out.0.push(1);
                    out.0.extend(hash);
                }
                What::Link(target) => {
                    out.0.push(2);
                    out.bytes(target);
                }
            }
        }
        out.count(folder.folders.len());
        folder.folders.iter().for_each(|name| out.bytes(name));
    }
    let needed: Vec<(&Hash, &Held)> = {
        let files = folders.values().flat_map(|folder| &folder.items);
        let hashes = files.filter_map(|item| match &item.what {
            What::File(hash) => hash.as_ref(),
            What::Link(_) => None,
        });
        let unique: std::collections::HashSet<&Hash> = hashes.collect();
        unique.into_iter().filter_map(|hash| held.get_key_value(hash)).collect()
    };
    out.count(needed.len());
    for (hash, held) in needed {
        out.0.extend(hash);
        out.number(held.at);
        out.number(held.bytes.into());
    }
    let sum = digest(&SHA256, &out.0);
    out.0.extend(sum.as_ref());
    file::replace(&store.join(NAME), &out.0)
}

/// Reads the index; `None` if there is none that can be used.
pub fn load(store: &Path) -> Option<Index> {
    let bytes = pack::read(store, NAME).ok()?;
    let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
    if digest(&SHA256, body).as_ref() != sum {
        return None;
    }
    let mut reader = Reader(body.strip_prefix(MAGIC)?);
    let mut folders = BTreeMap::new();
    for _ in 0..reader.number()? {
        let path = reader.bytes()?.to_vec();
        let meta = reader.meta()?;
        let [is_racy, ignore, gitignore, git] = *reader.take(4)? else { return None };
        let marks = Marks { ignore: ignore == 1, gitignore: gitignore == 1, git: git == 1 };
        let mut folder =
            Folder { meta, marks, is_racy: is_racy == 1, items: Vec::new(), folders: Vec::new() };
        for _ in 0..reader.number()? {
            let name = CString::new(reader.bytes()?).ok()?.into_boxed_c_str();
            let meta = reader.meta()?;
            let [is_racy, kind] = *reader.take(2)? else { return None };
            let what = match kind {
                0 => What::File(None),
                1 => What::File(Some(reader.take(32)?.try_into().ok()?)),
                _ => What::Link(reader.bytes()?.to_vec()),
            };
            folder.items.push(Item { name, meta, what, is_racy: is_racy == 1 });
        }
        for _ in 0..reader.number()? {
            folder.folders.push(reader.bytes()?.to_vec());
        }
        folders.insert(path, folder);
    }
    let mut held = HashMap::new();
    for _ in 0..reader.number()? {
        let hash: Hash = reader.take(32)?.try_into().ok()?;
        let at = reader.number()?;
        held.insert(hash, Held { at, bytes: u32::try_from(reader.number()?).ok()? });
    }
    Some((folders, held))
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend(bytes);
    }

    fn meta(&mut self, meta: &Meta) {
        self.number(meta.mode.into());
        self.number(meta.size);
        self.number(meta.inode);
        self.number(meta.mtime.cast_unsigned());
        self.number(meta.ctime.cast_unsigned());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.take(usize::try_from(count).ok()?)
    }

    fn meta(&mut self) -> Option<Meta> {
        Some(Meta {
            mode: u32::try_from(self.number()?).ok()?,
            size: self.number()?,
            inode: self.number()?,
            mtime: self.number()?.cast_signed(),
            ctime: self.number()?.cast_signed(),
        })
    }
}
