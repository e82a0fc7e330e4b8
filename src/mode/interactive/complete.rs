//! Completion in the editor: what is offered for what is typed.

use super::app::App;
use super::command;
use crate::tui::complete::{self, Answer, Popup, Wanted};
use crate::tui::key::Key;
use crate::tui::line::Line;
use crate::tui::select::{Item, Looks};
use std::path::{Path, PathBuf};

#[derive(Default)]
pub struct Completion {
    popup: Option<Popup>,
}

/// What a key did to the list of completions.
pub enum Completed {
    /// The key is the editor's.
    Ignored,
    Handled,
    /// A command was chosen, to be sent at once.
    Send,
}

impl Completion {
    pub fn close(&mut self) {
        self.popup = None;
    }

    /// Files are what could be completed here.
    pub fn wants_files(&self, before: &str, is_first_line: bool) -> bool {
        matches!(complete::wanted(before, is_first_line, false), Some(Wanted::File(_)))
    }

    pub fn lines(&mut self, width: usize, looks: &Looks) -> Vec<Line> {
        match &mut self.popup {
            Some(popup) => popup.render(width, looks),
            None => Vec::new(),
        }
    }
}

impl App {
    /// Gives a key to the list of completions, if it is open.
    pub fn complete_key(&mut self, key: &Key) -> Completed {
        let Some(popup) = &mut self.completion.popup else {
            return Completed::Ignored;
        };
        match popup.handle(key, &self.stage.keymap) {
            Answer::Ignored => Completed::Ignored,
            Answer::Handled => Completed::Handled,
            Answer::Closed => {
                self.completion.close();
                Completed::Handled
            }
            Answer::Chosen { item, sends } => {
                self.put(&item);
                match sends {
                    true => Completed::Send,
                    false => {
                        // In a folder one goes on.
                        self.offer(false);
                        Completed::Handled
                    }
                }
            }
        }
    }

    fn put(&mut self, item: &Item) {
        if let Some(popup) = self.completion.popup.take() {
            let (before, behind) = self.editor.around_cursor();
            let change = popup.apply(item, before, behind);
            self.editor.complete(change.range, &change.text, change.cursor);
        }
    }

    /// Offers what fits the text before the cursor. `is_asked`: by Tab.
    pub fn offer(&mut self, is_asked: bool) {
        let (before, _) = self.editor.around_cursor();
        let wanted = complete::wanted(before, self.editor.is_in_first_line(), is_asked);
        let Some(wanted) = wanted else {
            return self.completion.close();
        };
        let items = match &wanted {
            Wanted::Command(query) => {
                let all = command::all(self);
                let rows = all.iter().map(|row| (row.0.as_str(), row.1.as_deref(), row.2.as_str()));
                complete::commands(query, rows)
            }
            Wanted::Argument { command, text, .. } => command::arguments(self, command, text),
            Wanted::File(token) => super::files::offer(self, token),
            Wanted::Path(token) => {
                let folder = self.folder(token.parts().0);
                token.path_items(entries(&folder))
            }
        };
        let rows = self.stage.popup_rows;
        if is_asked && let [only] = items.as_slice() {
            let only = only.clone();
            self.completion.popup = Popup::new(wanted, items, rows);
            self.put(&only);
            return;
        }
        self.completion.popup = Popup::new(wanted, items, rows);
    }

    /// A folder as it was typed.
    pub fn folder(&self, typed: &str) -> PathBuf {
        match typed.strip_prefix("~/") {
            Some(rest) => self.stage.home.join(rest),
            None => self.stage.cwd.join(typed),
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, bool)> + use<> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    found.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name, entry.path().is_dir()))
    })
}
