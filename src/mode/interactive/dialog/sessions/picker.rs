//! Chooses, renames and removes stored sessions: for `/resume`, and at the start before a conversation is
//! open.
//!
//! Threads read lists and search messages. They send results as [`Found`], in parts, and end early if no
//! longer wanted.

use super::list::{Entry, Found, Scope, Sessions, Shown, Sort, beginning, lines_before};
use crate::base::thread::Thread;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::dialog::{Dialog, Step, frame};
use crate::mode::interactive::effect::{Effect, Opened, Update};
use crate::mode::interactive::feed::Feed;
use crate::mode::interactive::keymap::{AppAction, SESSIONS};
use crate::mode::interactive::look::Look;
use crate::mode::interactive::program::{self, Job};
use crate::runtime::stored::{self, Info, Query};
use crate::runtime::{CancelToken, Store, age};
use crate::tui::key::Key;
use crate::tui::keymap::{self, Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::{Entered, TextInput, hints};
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum rows: two rules, the search field, a blank, a session.
const ROWS_MIN: usize = 5;
/// Maximum rows of sessions.
const ROWS_MAX: usize = 10;
/// Messages are searched after this time without typing.
const PAUSE: Duration = Duration::from_millis(80);
/// Hits are collected for this time.
const BATCH: Duration = Duration::from_millis(50);
/// Time between parts of a list.
const PART: Duration = Duration::from_millis(150);
/// Time limit of the trash program.
const TRASH_LIMIT: Duration = Duration::from_secs(10);

/// Where the sessions are stored, and the channels of the picker.
pub struct Place {
    pub store: Store,
    pub cwd: PathBuf,
    /// The session that is currently open.
    pub current: Option<PathBuf>,
    /// Cancels all work of the picker.
    pub cancel: CancelToken,
}

#[derive(Default)]
struct Loaded {
    sessions: Sessions,
    /// `None` before the list is requested.
    loading: Option<CancelToken>,
    is_whole: bool,
}

enum Mode {
    List,
    Rename(PathBuf, Box<TextInput>),
    Delete(PathBuf),
}

pub struct Picker {
    place: Place,
    feed: Arc<Feed>,
    scope: Scope,
    sort: Sort,
    only_named: bool,
    shows_paths: bool,
    current: Loaded,
    all: Loaded,
    search: TextInput,
    /// Sessions whose messages match the search, with the matching text.
    hits: HashMap<PathBuf, Option<String>>,
    searching: Option<CancelToken>,
    shown: Vec<Shown>,
    at: usize,
    /// True if the user has chosen a row; otherwise the first is selected.
    is_touched: bool,
    mode: Mode,
    /// Status text, and whether it is an error.
    status: Option<(String, bool)>,
}

impl Picker {
    pub fn new(place: Place, feed: Arc<Feed>) -> Self {
        let mut picker = Self {
            place,
            feed,
            scope: Scope::Current,
            sort: Sort::default(),
            only_named: false,
            shows_paths: false,
            current: Loaded::default(),
            all: Loaded::default(),
            search: TextInput::new("> "),
            hits: HashMap::new(),
            searching: None,
            shown: Vec::new(),
            at: 0,
            is_touched: false,
            mode: Mode::List,
            status: None,
        };
        picker.load(Scope::Current);
        picker
    }

    fn loaded(&self, scope: Scope) -> &Loaded {
        match scope {
            Scope::Current => &self.current,
            Scope::All => &self.all,
        }
    }

    fn loaded_mut(&mut self, scope: Scope) -> &mut Loaded {
        match scope {
            Scope::Current => &mut self.current,
            Scope::All => &mut self.all,
        }
    }

    fn sessions(&self) -> &Sessions {
        &self.loaded(self.scope).sessions
    }

    fn begin(&mut self, name: &str, work: impl FnOnce() + Send + 'static) {
        if let Err(error) = Thread::named(name).start(work) {
            self.status = Some((format!("Cannot start a thread: {error}"), true));
        }
    }

    /// Reads the sessions of a scope.
    fn load(&mut self, scope: Scope) {
        let cancel = self.place.cancel.child();
        let loaded = self.loaded_mut(scope);
        if let Some(before) = loaded.loading.replace(cancel.clone()) {
            before.cancel();
        }
        let (feed, store) = (self.feed.clone(), self.place.store.clone());
        let cwd = (scope == Scope::Current).then(|| self.place.cwd.clone());
        self.begin("sessions", move || {
            let mut entries: Vec<Entry> = Vec::new();
            let mut given: Option<Instant> = None;
            let give = |entries: &[Entry], is_whole| {
                let (sessions, cancel) = (Sessions::new(entries.to_vec()), cancel.clone());
                post(&feed, Found::Listed { scope, sessions, is_whole, cancel });
            };
            let part = &mut |infos: Vec<Info>| {
                entries.extend(infos.into_iter().map(Entry::new));
                if !entries.is_empty() && given.is_none_or(|given| given.elapsed() >= PART) {
                    give(&entries, false);
                    given = Some(Instant::now());
                }
                !cancel.is_cancelled()
            };
            let whole = store.infos_in_parts(cwd.as_deref(), part);
            give(&whole.into_iter().map(Entry::new).collect::<Vec<_>>(), true);
        });
    }

    fn put(&mut self, scope: Scope, sessions: Sessions) {
        let before = self.selected().map(|info| info.path.clone());
        self.loaded_mut(scope).sessions = sessions;
        if scope == self.scope {
            self.lay_out(before);
        }
    }

    fn selected(&self) -> Option<&Info> {
        let shown = self.shown.get(self.at)?;
        self.sessions().infos.get(shown.session).map(|info| &**info)
    }

    /// Rebuilds the rows. The selected session stays selected if still present.
    fn lay_out(&mut self, before: Option<PathBuf>) {
        let query = self.search.text();
        let sessions = self.sessions();
        let rows = match query.trim() {
            "" => Ok(sessions.all(self.sort, self.only_named)),
            query => sessions.found(query, self.sort, self.only_named, &self.hits),
        };
        self.shown = rows.unwrap_or_else(|reason| {
            self.status = Some((reason, true));
            Vec::new()
        });
        let infos = &self.sessions().infos;
        let again = before.filter(|_| self.is_touched).and_then(|path| {
            let is_it = |shown: &Shown| infos.get(shown.session).is_some_and(|i| i.path == path);
            self.shown.iter().position(is_it)
        });
        self.at = again.unwrap_or(match self.is_touched {
            true => self.at.min(self.shown.len().saturating_sub(1)),
            false => 0,
        });
    }

    fn changed(&mut self) {
        let before = self.selected().map(|info| info.path.clone());
        self.lay_out(before);
    }

    /// Updates the list after a change of the search.
    fn searched(&mut self) {
        self.hits.clear();
        self.is_touched = false;
        self.lay_out(None);
        self.search_texts();
    }

    /// Searches the messages of the sessions.
    fn search_texts(&mut self) {
        if let Some(before) = self.searching.take() {
            before.cancel();
        }
        let Ok(query) = Query::parse_line(&self.search.text()) else {
            return;
        };
        let cancel = self.place.cancel.child();
        self.searching = Some(cancel.clone());
        let (feed, infos) = (self.feed.clone(), self.sessions().infos.clone());
        self.begin("search", move || {
            if cancel.wait_timeout(PAUSE) {
                return;
            }
            let mut given = Instant::now();
            let mut batch: Vec<(PathBuf, Option<String>)> = Vec::new();
            let give = |batch: &mut Vec<_>, is_last| {
                let (hits, cancel) = (std::mem::take(batch), cancel.clone());
                post(&feed, Found::Hits { hits, is_last, cancel });
            };
            stored::search_while(&infos, &query, &|| !cancel.is_cancelled(), |hit| {
                batch.push((hit.info.path, hit.place));
                if given.elapsed() >= BATCH {
                    given = Instant::now();
                    give(&mut batch, false);
                }
            });
            give(&mut batch, true);
        });
    }

    fn handle(&mut self, key: &Key, keymap: &Keymap) -> Vec<Effect> {
        match &mut self.mode {
            Mode::List => {
                self.status = None;
                self.list_key(key, keymap)
            }
            Mode::Rename(path, name) => {
                let path = path.clone();
                match name.handle(key, keymap) {
                    Entered::Text(name) => {
                        let name = name.trim().to_owned();
                        if name.is_empty() {
                            return Vec::new();
                        }
                        self.mode = Mode::List;
                        return self.rename(path, name);
                    }
                    Entered::Cancelled => self.mode = Mode::List,
                    Entered::Handled | Entered::Ignored => {}
                }
                Vec::new()
            }
            Mode::Delete(path) => {
                if keymap.is(key, Action::SELECT_CONFIRM) {
                    let path = path.clone();
                    self.mode = Mode::List;
                    self.delete(path);
                } else if keymap.is(key, Action::SELECT_CANCEL) {
                    self.mode = Mode::List;
                }
                Vec::new()
            }
        }
    }

    fn list_key(&mut self, key: &Key, keymap: &Keymap) -> Vec<Effect> {
        if keymap.is(key, Action::TAB) {
            self.change_scope();
            return Vec::new();
        }
        match keymap.action(key, SESSIONS) {
            Some(AppAction::SESSION_TOGGLE_PATH) => self.shows_paths = !self.shows_paths,
            Some(AppAction::SESSION_TOGGLE_SORT) => {
                self.sort = self.sort.next();
                self.changed();
            }
            Some(AppAction::SESSION_TOGGLE_NAMED_FILTER) => {
                self.only_named = !self.only_named;
                self.changed();
            }
            Some(AppAction::SESSION_RENAME) => self.ask_name(),
            Some(AppAction::SESSION_DELETE) => self.ask_to_delete(),
            Some(AppAction::SESSION_DELETE_NONINVASIVE) if self.search.text().is_empty() => {
                self.ask_to_delete();
            }
            _ => return self.move_or_search(key, keymap),
        }
        Vec::new()
    }

    fn move_or_search(&mut self, key: &Key, keymap: &Keymap) -> Vec<Effect> {
        let last = self.shown.len().saturating_sub(1);
        let at = match keymap.action(key, keymap::SELECT) {
            Some(Action::SELECT_UP) => self.at.saturating_sub(1),
            Some(Action::SELECT_DOWN) => (self.at + 1).min(last),
            Some(Action::SELECT_PAGE_UP) => self.at.saturating_sub(ROWS_MAX),
            Some(Action::SELECT_PAGE_DOWN) => (self.at + ROWS_MAX).min(last),
            Some(Action::SELECT_CONFIRM) => {
                return match self.selected() {
                    Some(info) => {
                        vec![Effect::Close, Effect::Open(Opened::new(info.path.clone(), "Resumed session"))]
                    }
                    None => Vec::new(),
                };
            }
            Some(Action::SELECT_CANCEL) => return vec![Effect::Close],
            _ => {
                let before = self.search.text();
                self.search.handle(key, keymap);
                if self.search.text() != before {
                    self.searched();
                }
                return Vec::new();
            }
        };
        self.is_touched = true;
        self.at = at;
        Vec::new()
    }

    fn change_scope(&mut self) {
        self.scope = match self.scope {
            Scope::Current => Scope::All,
            Scope::All => Scope::Current,
        };
        self.is_touched = false;
        let loaded = self.loaded(self.scope);
        if loaded.loading.is_none() {
            self.load(self.scope);
        }
        self.searched();
    }

    fn ask_name(&mut self) {
        if let Some(info) = self.selected() {
            let mut input = TextInput::new("> ");
            input.set_text(info.name.as_deref().unwrap_or_default());
            self.mode = Mode::Rename(info.path.clone(), Box::new(input));
        }
    }

    fn is_current(&self, path: &Path) -> bool {
        self.place.current.as_deref() == Some(path)
    }

    fn ask_to_delete(&mut self) {
        let Some(path) = self.selected().map(|info| info.path.clone()) else {
            return;
        };
        if self.is_current(&path) {
            let reason = "Cannot delete the currently active session";
            self.status = Some((reason.to_owned(), true));
        } else {
            self.mode = Mode::Delete(path);
        }
    }

    fn rename(&mut self, path: PathBuf, name: String) -> Vec<Effect> {
        if self.is_current(&path) {
            return vec![Effect::Rename(name), Effect::Update(Update::ReloadSessions)];
        }
        let (feed, store) = (self.feed.clone(), self.place.store.clone());
        let cwd = self.place.cwd.clone();
        self.begin("rename", move || {
            let renamed = stored::rename(&store, &path, &cwd, &name);
            post(&feed, Found::Renamed(renamed.map_err(|reason| reason.to_string())));
        });
        Vec::new()
    }

    /// Reads the sessions again after a change on disk.
    fn reload(&mut self) {
        let (loaded, other) = match self.scope {
            Scope::Current => (Scope::Current, Scope::All),
            Scope::All => (Scope::All, Scope::Current),
        };
        if let Some(before) = self.loaded_mut(other).loading.take() {
            before.cancel();
        }
        self.load(loaded);
    }

    fn delete(&mut self, path: PathBuf) {
        let (feed, cancel) = (self.feed.clone(), self.place.cancel.clone());
        self.begin("delete", move || {
            let removed = stored::remove(&path, |paths| trash(paths, &cancel));
            let result = removed.map_err(|reason| reason.to_string());
            post(&feed, Found::Removed { path, result });
        });
    }

    /// Applies the result of a thread.
    fn take(&mut self, found: &mut Found) {
        match found {
            Found::Listed { scope, sessions, is_whole, cancel } => {
                let loaded = self.loaded_mut(*scope);
                // What is read again is shown when it is there.
                if cancel.is_cancelled() || (loaded.is_whole && !*is_whole) {
                    return;
                }
                loaded.is_whole = *is_whole;
                self.put(*scope, std::mem::take(sessions));
                if *is_whole {
                    self.search_texts();
                }
            }
            Found::Hits { hits, is_last, cancel } => {
                if !cancel.is_cancelled() {
                    self.hits.extend(std::mem::take(hits));
                    if *is_last {
                        self.searching = None;
                    }
                    self.changed();
                }
            }
            Found::Renamed(Ok(())) => self.reload(),
            Found::Renamed(Err(reason)) => {
                self.status = Some((format!("Failed to rename: {reason}"), true));
            }
            Found::Removed { path, result: Ok(is_in_trash) } => {
                for scope in [Scope::Current, Scope::All] {
                    let sessions = self.loaded(scope).sessions.without(path);
                    self.put(scope, sessions);
                }
                let what = if *is_in_trash { "Session moved to trash" } else { "Session deleted" };
                self.status = Some((what.to_owned(), false));
            }
            Found::Removed { result: Err(reason), .. } => {
                self.status = Some((format!("Failed to delete: {reason}"), true));
            }
        }
    }

    fn head(&self, width: usize, look: &Look<'_>) -> Line {
        let (accent, muted) = (look.style(Role::Accent), look.style(Role::Muted));
        let title = match self.scope {
            Scope::Current => "Resume Session (Current Folder)",
            Scope::All => "Resume Session (All)",
        };
        let mut right = Line::new();
        let loaded = self.loaded(self.scope);
        if loaded.is_whole {
            let marks = match look.is_plain {
                true => ("chosen: ", ""),
                false => ("◉ ", "○ "),
            };
            for (scope, name) in [(Scope::Current, "Current Folder"), (Scope::All, "All")] {
                if !right.is_empty() {
                    right.push(" | ", muted);
                }
                match scope == self.scope {
                    true => right.push(&format!("{}{name}", marks.0), accent),
                    false => right.push(&format!("{}{name}", marks.1), muted),
                }
            }
        } else {
            right.push(&format!("Loading {}...", loaded.sessions.infos.len()), accent);
        }
        for (about, value) in
            [("  Name: ", if self.only_named { "Named" } else { "All" }), ("  Sort: ", self.sort.name())]
        {
            right.push(about, muted);
            right.push(value, accent);
        }
        let mut line = Line::of(title, look.style(Role::Text).with(Attributes::BOLD));
        let room = width.saturating_sub(right.width() + 1);
        if line.width() > room {
            return line.cut(width);
        }
        line.pad_to(room + 1, muted);
        line.append(&right);
        line
    }

    fn hints(&self, look: &Look<'_>) -> Vec<Line> {
        let looks = look.looks();
        if let Mode::Delete(_) = self.mode {
            let mut line = Line::of("Delete session? ", look.style(Role::Error));
            let keys = [(Action::SELECT_CONFIRM, "confirm"), (Action::SELECT_CANCEL, "cancel")];
            line.append(&hints(&keys, look.keymap, &looks));
            return vec![line, Line::new()];
        }
        if let Some((text, is_bad)) = &self.status {
            let role = if *is_bad { Role::Error } else { Role::Accent };
            return vec![Line::of(text, look.style(role)), Line::new()];
        }
        let mut first = hints(&[(Action::TAB, "scope")], look.keymap, &looks);
        first.push(" · re:<pattern> regex · \"phrase\" exact", look.style(Role::Muted));
        let path = if self.shows_paths { "path (on)" } else { "path (off)" };
        let keys = [
            (AppAction::SESSION_TOGGLE_SORT, "sort"),
            (AppAction::SESSION_TOGGLE_NAMED_FILTER, "named"),
            (AppAction::SESSION_DELETE, "delete"),
            (AppAction::SESSION_TOGGLE_PATH, path),
            (AppAction::SESSION_RENAME, "rename"),
        ];
        vec![first, hints(&keys, look.keymap, &looks)]
    }

    fn rows(&self, height: usize, width: usize, look: &Look<'_>) -> Vec<Line> {
        let muted = look.style(Role::Muted);
        if self.shown.is_empty() {
            return vec![Line::of(&self.nothing(look), muted)];
        }
        let height = height.min(self.shown.len());
        let start = self.at.saturating_sub(height / 2).min(self.shown.len() - height);
        let window = start..start + height;
        let mut lines: Vec<Line> = window.map(|index| self.row(index, width, look)).collect();
        if height < self.shown.len() {
            let counter = format!("  ({}/{})", self.at + 1, self.shown.len());
            lines.push(Line::of(&counter, muted));
        }
        let place = self.selected().and_then(|info| self.hits.get(&info.path)?.as_ref());
        if let Some(place) = place.filter(|_| !self.search.text().trim().is_empty()) {
            lines.push(Line::of(&format!("  {place}"), muted));
        }
        lines
    }

    fn row(&self, index: usize, width: usize, look: &Look<'_>) -> Line {
        let is_selected = index == self.at;
        let shown = self.shown.get(index);
        let Some(info) = shown.and_then(|shown| self.sessions().infos.get(shown.session)) else {
            return Line::new();
        };
        let is_doomed = matches!(&self.mode, Mode::Delete(path) if *path == info.path);
        let mut right = format!("{} {}", info.message_count, age(&info.modified));
        if self.scope == Scope::All && !info.cwd.is_empty() {
            right = format!("{} {right}", look.path(Path::new(&info.cwd)));
        }
        if self.shows_paths {
            right = format!("{} {right}", look.path(&info.path));
        }
        let (dim, accent) = (look.style(Role::Dim), look.style(Role::Accent));
        let style = if is_doomed {
            look.style(Role::Error)
        } else if self.is_current(&info.path) {
            accent
        } else if info.name.is_some() {
            look.style(Role::Warning)
        } else {
            look.style(Role::Text)
        };
        let style = match is_selected {
            true => style.with(Attributes::BOLD),
            false => style,
        };
        let mark = match (is_selected, look.is_plain) {
            (true, false) => "› ",
            (true, true) => "* ",
            (false, _) => "  ",
        };
        let mut line = Line::of(mark, accent);
        line.push(&lines_before(&self.shown, index, look.is_plain), dim);
        let right = Line::of(&right, if is_doomed { look.style(Role::Error) } else { dim });
        let said = info.name.as_deref().unwrap_or(&info.first_message);
        let room = width.saturating_sub(line.width() + right.width() + 2).max(10);
        line.append(&Line::of(&beginning(said), style).cut(room));
        line.pad_to(width.saturating_sub(right.width()).max(line.width() + 1), dim);
        line.append(&right);
        if is_selected {
            line.over(look.style(Role::SelectedBg));
        }
        line.cut(width)
    }

    fn nothing(&self, look: &Look<'_>) -> String {
        let key = |action| look.keymap.keys(action).first().map(ToString::to_string);
        if !self.loaded(self.scope).is_whole {
            return "  Loading...".to_owned();
        }
        if !self.search.text().trim().is_empty() {
            return match self.searching {
                Some(_) => "  Searching...".to_owned(),
                None => "  No sessions found".to_owned(),
            };
        }
        let all = match key(AppAction::SESSION_TOGGLE_NAMED_FILTER) {
            Some(key) => format!("Press {key} to show all"),
            None => String::new(),
        };
        match (self.only_named, self.scope) {
            (true, Scope::All) => format!("  No named sessions found. {all}."),
            (true, Scope::Current) => {
                format!("  No named sessions in current folder. {all}, or Tab to view all.")
            }
            (false, Scope::All) => "  No sessions found".to_owned(),
            (false, Scope::Current) => "  No sessions in current folder. Press Tab to view all.".to_owned(),
        }
    }
}

impl Dialog for Picker {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let width = look.width.saturating_sub(2).max(1);
        let looks = look.looks();
        if let Mode::Rename(_, name) = &mut self.mode {
            let title = look.style(Role::Text).with(Attributes::BOLD);
            let keys = [(Action::SELECT_CONFIRM, "save"), (Action::SELECT_CANCEL, "cancel")];
            let body = vec![
                Line::of("Rename Session", title),
                Line::new(),
                name.render(width, &looks),
                Line::new(),
                hints(&keys, look.keymap, &looks),
            ];
            return frame::indented(body, look, rows);
        }
        let mut body = vec![self.head(width, look)];
        body.extend(self.hints(look));
        body.push(Line::new());
        body.truncate(rows.saturating_sub(ROWS_MIN));
        body.push(self.search.render(width, &looks));
        body.push(Line::new());
        let place = usize::from(!self.search.text().trim().is_empty());
        let height = rows.saturating_sub(body.len() + 2 + place);
        let counter = usize::from(self.shown.len() > height.min(ROWS_MAX));
        body.extend(self.rows(height.saturating_sub(counter).clamp(1, ROWS_MAX), width, look));
        frame::indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        self.handle(key, &config.keymap)
    }

    fn paste(&mut self, text: &str) {
        match &mut self.mode {
            Mode::List => {
                self.search.paste(text);
                self.searched();
            }
            Mode::Rename(_, name) => name.paste(text),
            Mode::Delete(_) => {}
        }
    }

    fn update(&mut self, update: &mut Update, _: &UiConfig) -> Step {
        match update {
            Update::Sessions(found) => self.take(found),
            Update::ReloadSessions => self.reload(),
            _ => {}
        }
        Step::Stay
    }
}

/// Sends a result to the picker.
fn post(feed: &Feed, found: Found) {
    feed.effect(Effect::Update(Update::Sessions(found)));
}

impl Drop for Picker {
    fn drop(&mut self) {
        let all = [&self.current.loading, &self.all.loading, &self.searching];
        all.into_iter().flatten().for_each(CancelToken::cancel);
    }
}

/// Moves files to the trash, if there is a program for it.
fn trash(paths: &[PathBuf], cancel: &CancelToken) {
    let names: Option<Vec<&str>> = paths.iter().map(|path| path.to_str()).collect();
    let Some(names) = names else {
        return;
    };
    let job = Job { arguments: &names, input: Vec::new(), is_read: false, limit: TRASH_LIMIT, cancel };
    // Whether it has taken them is seen.
    let _ = program::run("trash", job);
}
