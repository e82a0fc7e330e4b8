//! Files of the project for `@`: listed on a thread, kept for as long as one types, ranked for each key.

use super::app::App;
use crate::runtime::{CancelToken, each_path};
use crate::tui::complete::{Candidate, Token, rank};
use crate::tui::select::Item;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files that are looked at.
const FILES_MAX: usize = 200_000;
/// How long they are looked for.
const TIME: Duration = Duration::from_secs(10);
/// Found files that are shown before all are found.
const BATCH: usize = 4096;
/// What was found is looked for again after this.
const FRESH: Duration = Duration::from_secs(5);
/// Candidates that are offered.
const OFFERED: usize = 20;

#[derive(Default)]
pub struct Files {
    /// The folder that was listed.
    folder: PathBuf,
    found: Vec<String>,
    begun: Option<Instant>,
    is_whole: bool,
    /// Of the listing under way.
    cancel: Option<CancelToken>,
    /// Counts listings: batches of an older one come too late.
    listing: u64,
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }
}

/// What fits the beginning of a path behind `@`.
pub fn offer(app: &mut App, token: &Token) -> Vec<Item> {
    // What is typed may go on below a folder that is.
    let (typed, query) = token.parts();
    let folder = app.folder(typed);
    let (typed, query, folder) = match typed.is_empty() || !folder.is_dir() {
        true => ("", token.path.as_str(), app.stage.cwd.clone()),
        false => (typed, query, folder),
    };
    if app.files.is_stale(&folder) {
        app.list_files(folder);
    }
    let candidates = app.files.found.iter().map(|path| candidate(path));
    token.file_items(typed, rank(candidates, query, OFFERED).into_iter())
}

fn candidate(path: &str) -> Candidate<'_> {
    let folder = path.strip_suffix('/');
    Candidate { path: folder.unwrap_or(path), is_folder: folder.is_some() }
}

impl Files {
    fn is_stale(&self, folder: &Path) -> bool {
        let is_old = self.begun.is_none_or(|then| then.elapsed() > FRESH);
        self.folder != folder || (self.is_whole && is_old)
    }
}

impl App {
    fn list_files(&mut self, folder: PathBuf) {
        let files = &mut self.files;
        if let Some(cancel) = files.cancel.take() {
            cancel.cancel();
        }
        if files.folder != folder {
            files.found.clear();
        }
        files.folder.clone_from(&folder);
        files.begun = Some(Instant::now());
        files.is_whole = false;
        files.listing += 1;
        let cancel = self.cancel.child();
        files.cancel = Some(cancel.clone());
        let listing = files.listing;
        let (feed, workspace) = (self.feed.clone(), self.control.config().workspace.clone());
        let list = move || {
            let mut batch = Vec::new();
            let mut is_first = true;
            let mut give = |batch: &mut Vec<String>, is_whole| {
                let found = std::mem::take(batch);
                let begins = std::mem::replace(&mut is_first, false);
                feed.task(move |app| app.found_files(listing, found, begins, is_whole));
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
        if std::thread::Builder::new().name("files".into()).spawn(list).is_err() {
            self.files.is_whole = true;
        }
    }

    fn found_files(&mut self, listing: u64, found: Vec<String>, begins: bool, is_whole: bool) {
        let files = &mut self.files;
        if files.listing != listing {
            return;
        }
        if begins {
            files.found.clear();
        }
        files.found.extend(found);
        files.is_whole = is_whole;
        if is_whole {
            files.cancel = None;
        }
        if self.completion.wants_files(self.editor.around_cursor().0, self.editor.is_in_first_line()) {
            self.offer(false);
        }
    }
}
