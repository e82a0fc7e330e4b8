//! Lists sessions quickly: rows are kept in an index, and only changed files are read.
//!
//! The index is `cache/sessions.jsonl` in the agent folder, with one row a line. The index can be removed at
//! any time, since it is made from the session files; a damaged row costs one read of its file. A row is
//! valid while size, time and inode of its file are unchanged.

use super::info::{Info, Row, Stamp};
use crate::base::file::{self, Temp};
use crate::base::json;
use crate::base::order::Order;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Files that are read before a part of the list is reported.
const PART: usize = 256;

/// Returns rows for `files`, most recently active first.
pub fn list(index: &Path, files: &[PathBuf]) -> Vec<Info> {
    list_in_parts(index, files, &mut |_| true)
}

/// Returns rows for `files`, and passes them to `tell` in parts while files are read. If `tell` returns
/// false, listing stops and the rows so far are returned.
pub fn list_in_parts(index: &Path, files: &[PathBuf], tell: &mut dyn FnMut(Vec<Info>) -> bool) -> Vec<Info> {
    let infos = |rows: &[Row]| rows.iter().map(|row| row.info.clone()).collect();
    let mut known = load(index);
    let stamps: Vec<Option<Stamp>> = in_parallel(files, |path| Stamp::of(path).ok());
    let mut rows: Vec<Row> = Vec::with_capacity(files.len());
    let mut stale: Vec<(PathBuf, Stamp, Mutex<Option<Row>>)> = Vec::new();
    let mut changed = false;
    for (path, stamp) in files.iter().zip(stamps) {
        let row = known.remove(path);
        match (stamp, row) {
            (None, row) => changed |= row.is_some(),
            (Some(stamp), Some(row)) if row.stamp == stamp => rows.push(row),
            (Some(stamp), row) => stale.push((path.clone(), stamp, Mutex::new(row))),
        }
    }
    changed |= !stale.is_empty();
    let mut is_wanted = stale.is_empty() || tell(infos(&rows));
    // Files that were written last are read first.
    stale.order_by_key(|(_, stamp, _)| std::cmp::Reverse(stamp.modified_ns));
    for part in stale.chunks(PART) {
        if !is_wanted {
            break;
        }
        let read = in_parallel(part, |(path, stamp, row)| {
            let row = row.lock().unwrap_or_else(PoisonError::into_inner).take();
            Row::read(path, *stamp, row)
        });
        let read: Vec<Row> = read.into_iter().flatten().collect();
        is_wanted = tell(infos(&read));
        rows.extend(read);
    }
    if changed {
        // Rows of other folders are kept, unless their files are gone.
        let others = known.into_values().filter(|row| row.info.path.exists());
        save(index, rows.iter().cloned().chain(others));
    }
    let mut infos: Vec<Info> = rows.into_iter().map(|row| row.info).collect();
    infos.order_by(|a, b| b.by_activity(a).then_with(|| b.path.cmp(&a.path)));
    infos
}

/// Applies `work` to all items on several threads. Results are in the order of `items`.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    const THREADS_MAX: usize = 8;
    const ITEMS_PER_THREAD: usize = 16;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(THREADS_MAX).min(items.len().div_ceil(ITEMS_PER_THREAD));
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        items.get(at).map(|item| (at, item))
    };
    let run = || std::iter::from_fn(take).map(|(at, item)| (at, work(item))).collect();
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let parts = threads.into_iter().map(|thread| thread.join());
        let parts: Vec<Vec<(usize, R)>> =
            parts.map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect();
        parts.into_iter().flatten().collect()
    });
    results.order_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

fn load(index: &Path) -> HashMap<PathBuf, Row> {
    let bytes = std::fs::read(index).unwrap_or_default();
    let rows = bytes.split(|byte| *byte == b'\n');
    rows.filter_map(|line| json::parse::<Row>(line).ok()).map(|row| (row.info.path.clone(), row)).collect()
}

/// Replaces the index. Errors are ignored: they only make the next list slower.
fn save(index: &Path, rows: impl Iterator<Item = Row>) {
    let mut bytes = Vec::new();
    for row in rows {
        let start = bytes.len();
        match serde_json::to_writer(&mut bytes, &row) {
            Ok(()) => bytes.push(b'\n'),
            Err(_) => bytes.truncate(start),
        }
    }
    let write = || {
        if let Some(folder) = index.parent() {
            file::make_private_folder(folder)?;
        }
        let mut temp = Temp::beside(index)?;
        temp.file.write_all(&bytes)?;
        temp.rename(index)
    };
    let _ = write();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    fn session(id: &str, time: u64) -> String {
        format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"2024-12-03T14:00:00.000Z\",\"cwd\":\"/x\"}}\n\
             {{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"{id}\",\"timestamp\":{time}}}}}\n"
        )
    }

    fn ids(infos: &[Info]) -> Vec<&str> {
        infos.iter().map(|info| info.id.as_str()).collect()
    }

    #[test]
    fn a_list_is_the_same_with_and_without_an_index() {
        let scratch = TempDir::create();
        let index = scratch.path().join("cache/sessions.jsonl");
        let mut files: Vec<PathBuf> = (0..50)
            .map(|n| scratch.write(&format!("{n}.jsonl"), session(&format!("s{n}"), 1000 + n)))
            .collect();
        files.push(scratch.path().join("missing.jsonl"));
        files.push(scratch.write("junk.jsonl", "junk"));
        let first = list(&index, &files);
        assert_eq!(first.len(), 50);
        assert_eq!(ids(&first)[..2], ["s49", "s48"]);
        assert_eq!(list(&index, &files), first);

        // A row is believed while the stamp is the same, and no longer.
        let text = std::fs::read_to_string(&index).unwrap();
        std::fs::write(&index, text.replace("\"s7\"", "\"lie\"")).unwrap();
        assert!(ids(&list(&index, &files)).contains(&"lie"));
        let file = std::fs::File::options().append(true).open(&files[7]).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(list(&index, &files), first);

        for junk in ["", "junk\n{}\n", "\u{0}\u{0}"] {
            std::fs::write(&index, junk).unwrap();
            assert_eq!(list(&index, &files), first, "{junk:?}");
        }
        std::fs::remove_file(&files[0]).unwrap();
        assert_eq!(list(&index, &files).len(), 49);
        // Other lists keep rows that they are not about.
        assert_eq!(list(&index, &files[1..2]).len(), 1);
        std::fs::write(&files[1], session("s1", 1) + " \n").unwrap();
        list(&index, &files[1..2]);
        let rows = load(&index);
        assert_eq!((rows.len(), rows.contains_key(&files[0])), (49, false));
    }

    #[test]
    fn rows_are_told_as_they_are_found_until_nobody_wants_more() {
        let scratch = TempDir::create();
        let index = scratch.path().join("index");
        let file = |n: usize| scratch.write(&format!("{n}.jsonl"), session(&format!("s{n}"), 1));
        let files: Vec<PathBuf> = (0..PART + 10).map(file).collect();
        let mut told = Vec::new();
        let whole = list_in_parts(&index, &files, &mut |infos| {
            told.push(infos.len());
            true
        });
        assert_eq!((whole.len(), told), (PART + 10, vec![0, PART, 10]));
        std::fs::write(&files[3], session("s3", 5)).unwrap();
        let mut told = Vec::new();
        let few = list_in_parts(&index, &files, &mut |infos| {
            told.push(infos.len());
            false
        });
        assert_eq!((few.len(), told), (PART + 9, vec![PART + 9]));
        assert_eq!(list(&index, &files).len(), PART + 10);
    }

    #[test]
    fn an_index_that_cannot_be_written_is_done_without() {
        let scratch = TempDir::create();
        let file = scratch.write("a.jsonl", session("a", 5));
        let blocked = scratch.write("cache", "a file").join("sessions.jsonl");
        assert_eq!(ids(&list(&blocked, &[file])), ["a"]);
    }

    #[test]
    fn results_keep_the_order_of_their_items() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(in_parallel(&items, |item| item * 2), items.iter().map(|n| n * 2).collect::<Vec<_>>());
        assert!(in_parallel(&[] as &[u8], |item| *item).is_empty());
    }
}
