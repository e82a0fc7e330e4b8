//! Completions in the editor: commands, arguments, files.

use super::app::App;
use super::command;
use super::effect::Effect;
use super::files::Lister;
use crate::runtime::addition::{Completion, Typed};
use crate::tui::complete::{self, Wanted};
use crate::tui::select::Item;
use std::path::Path;

/// Offers completions of the text before the cursor. `is_asked`: requested by Tab.
pub fn offer(app: &mut App, is_asked: bool) {
    let Some(wanted) = app.composer.wanted(is_asked) else {
        app.composer.close_completion();
        return ask_others(app, None, is_asked);
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
        // Only extensions propose it.
        Wanted::Text { .. } => Vec::new(),
        Wanted::Path(token) => token.path_items(entries(&lister.folder(token.parts().0))),
    };
    app.composer.offer(wanted.clone(), items, app.config.options.popup_rows, is_asked);
    ask_others(app, Some(&wanted), is_asked);
}

/// Asks extensions for proposals, on a thread of its own: for the arguments of their commands, and what their
/// completers know of the text.
fn ask_others(app: &mut App, wanted: Option<&Wanted>, is_asked: bool) {
    let completers = app.control.completers();
    let argument = wanted.and_then(|wanted| match wanted {
        Wanted::Argument { command, text, .. } => {
            let (named, _) = app.control.added_command(&format!("/{command}"))?;
            Some((named, text.clone(), wanted.clone()))
        }
        _ => None,
    });
    if completers.is_empty() && argument.is_none() {
        return;
    }
    let (before, _) = app.composer.editor.around_cursor();
    let (line, column) = (app.composer.editor.cursor_line(), before.encode_utf16().count());
    let lines = app.composer.editor.text().split('\n').map(str::to_owned).collect();
    let (before, typed) = (before.to_owned(), Typed { lines, line, column, is_asked });
    // The question before is about a text that is no more.
    let cancel = app.composer.ask_anew(&app.threads.cancel);
    let feed = app.threads.feed.clone();
    app.begin_thread("complete", move || {
        if let Some((named, text, wanted)) = argument {
            let items = items(named.command.complete(&text, &cancel));
            return feed.effect(Effect::Offer { before, wanted, items, is_asked });
        }
        let found = completers.iter().find_map(|completer| completer.complete(&typed, &cancel));
        if let Some((prefix, found)) = found
            && let Some(rest) = before.strip_suffix(&*prefix)
        {
            let wanted = Wanted::Text { at: rest.len(), text: prefix };
            feed.effect(Effect::Offer { before, wanted, items: items(found), is_asked: false });
        }
    });
}

fn items(proposals: Vec<Completion>) -> Vec<Item> {
    let item = |proposal: Completion| Item {
        about: proposal.description,
        ..Item::new(&proposal.value, &proposal.label)
    };
    proposals.into_iter().map(item).collect()
}

/// Shows proposals of an extension, if the text is still the one that they are for.
pub fn offered(app: &mut App, before: &str, wanted: Wanted, items: Vec<Item>, is_asked: bool) {
    if app.composer.editor.around_cursor().0 == before && !before.is_empty() {
        app.composer.offer(wanted, items, app.config.options.popup_rows, is_asked);
    }
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
