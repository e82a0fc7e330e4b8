//! Completions in the editor: commands, arguments, files.

use super::app::App;
use super::command;
use super::files::Lister;
use crate::tui::complete::{self, Wanted};
use std::path::Path;

/// Offers completions of the text before the cursor. `is_asked`: requested by Tab.
pub fn offer(app: &mut App, is_asked: bool) {
    let Some(wanted) = app.composer.wanted(is_asked) else {
        return app.composer.close_completion();
    };
    let lister = Lister {
        cwd: &app.config.places.cwd,
        home: &app.config.places.home,
        workspace: app.control.config().workspace.clone(),
        feed: &app.threads.feed,
        cancel: &app.threads.cancel,
    };
    let items = match &wanted {
        Wanted::Command(query) => {
            let all = command::all(&app.control);
            let rows = all.iter().map(|row| (row.0.as_str(), row.1.as_deref(), row.2.as_str()));
            complete::commands(query, rows)
        }
        Wanted::Argument { command, text, .. } => command::arguments(&app.control, command, text),
        Wanted::File(token) => app.composer.files.offer(token, &lister),
        Wanted::Path(token) => token.path_items(entries(&lister.folder(token.parts().0))),
    };
    app.composer.offer(wanted, items, app.config.options.popup_rows, is_asked);
}

/// Offers the files that have been found, if a file is being completed.
pub fn offer_files(app: &mut App) {
    if matches!(app.composer.wanted(false), Some(Wanted::File(_))) {
        offer(app, false);
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, bool)> + use<> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    found.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name, entry.path().is_dir()))
    })
}
