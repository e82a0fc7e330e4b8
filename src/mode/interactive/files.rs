//! Files of the project for `@`: listed on a thread, cached while typing, ranked for each key.

use super::effect::Effect;
use super::feed::Feed;
use crate::base::thread::Thread;
use crate::runtime::{CancelToken, Workspace, each_path};
use crate::tui::complete::{Candidate, Token, rank};
use crate::tui::select::Item;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum files listed.
const FILES_MAX: usize = 200_000;
/// Time limit of a listing.
const TIME: Duration = Duration::from_secs(10);
/// Files per batch that is shown before the listing is complete.
const BATCH: usize = 4096;
/// Age after which a listing is repeated.
const FRESH: Duration = Duration::from_secs(5);
/// Maximum candidates offered.
const OFFERED: usize = 20;

#[derive(Default)]
pub struct Files {
    /// The folder that was listed.
    folder: PathBuf,
    found: Vec<String>,
    begun: Option<Instant>,
    is_whole: bool,
    /// Cancels the current listing.
    cancel: Option<CancelToken>,
    /// Number of the current listing: batches of older ones are ignored.
    listing: u64,
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }
}

fn candidate(path: &str) -> Candidate<'_> {
    let folder = path.strip_suffix('/');
    Candidate { path: folder.unwrap_or(path), is_folder: folder.is_some() }
}

/// Parameters of a listing.
pub struct Lister<'a> {
    pub cwd: &'a Path,
    pub home: &'a Path,
    pub workspace: Arc<Workspace>,
    pub feed: &'a Arc<Feed>,
    /// Cancelled at the end of the program.
    pub cancel: &'a CancelToken,
}

impl Lister<'_> {
    /// Resolves a folder as it was typed.
    pub fn folder(&self, typed: &str) -> PathBuf {
        match typed.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.cwd.join(typed),
        }
    }
}

impl Files {
    /// Files that match the start of a path after `@`.
    pub fn offer(&mut self, token: &Token, lister: &Lister<'_>) -> Vec<Item> {
        // What is typed may go on below a folder that is.
        let (typed, query) = token.parts();
        let folder = lister.folder(typed);
        let (typed, query, folder) = match typed.is_empty() || !folder.is_dir() {
            true => ("", token.path.as_str(), lister.cwd.to_owned()),
            false => (typed, query, folder),
        };
        if self.is_stale(&folder) {
            self.list(folder, lister);
        }
        let candidates = self.found.iter().map(|path| candidate(path));
        token.file_items(typed, rank(candidates, query, OFFERED).into_iter())
    }

    fn is_stale(&self, folder: &Path) -> bool {
        let is_old = self.begun.is_none_or(|then| then.elapsed() > FRESH);
        self.folder != folder || (self.is_whole && is_old)
    }

    fn list(&mut self, folder: PathBuf, lister: &Lister<'_>) {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
        if self.folder != folder {
            self.found.clear();
        }
        self.folder.clone_from(&folder);
        self.begun = Some(Instant::now());
        self.is_whole = false;
        self.listing += 1;
        let cancel = lister.cancel.child();
        self.cancel = Some(cancel.clone());
        let (listing, feed, workspace) = (self.listing, lister.feed.clone(), lister.workspace.clone());
        let list = move || {
            let mut batch = Vec::new();
            let mut is_first = true;
            let mut give = |batch: &mut Vec<String>, is_whole| {
                let found = std::mem::take(batch);
                let is_first = std::mem::replace(&mut is_first, false);
                feed.effect(Effect::ListFiles { listing, found, is_first, is_whole });
            };
            let mut each = |path: String| {
                batch.push(path);
                if batch.len() >= BATCH {
                    give(&mut batch, false);
                }
            };
            // A folder that cannot be read has no files to offer.
            let _ = each_path(&workspace, &folder, FILES_MAX, TIME, &cancel, &mut each);
            give(&mut batch, true);
        };
        if Thread::named("files").start(list).is_err() {
            self.is_whole = true;
        }
    }

    /// Adds files that were found; false if another folder is being listed.
    pub fn take(&mut self, listing: u64, found: Vec<String>, is_first: bool, is_whole: bool) -> bool {
        if self.listing != listing {
            return false;
        }
        if is_first {
            self.found.clear();
        }
        self.found.extend(found);
        self.is_whole = is_whole;
        if is_whole {
            self.cancel = None;
        }
        true
    }
}
