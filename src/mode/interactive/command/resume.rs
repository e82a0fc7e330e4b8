//! Opens a stored session, with the questions that may be needed first.

use crate::mode::interactive::app::App;
use crate::mode::interactive::dialog::list::ListDialog;
use crate::mode::interactive::dialog::question::{Question, question};
use crate::mode::interactive::dialog::sessions::picker::{Picker, Place};
use crate::mode::interactive::effect::{Effect, Opened, TrustDecision};
use crate::runtime::stored;
use crate::runtime::succession::{Folder, NotOpened, Way};
use crate::runtime::trust::{self, Project, Store};
use std::path::Path;

/// `/resume`.
pub fn list(app: &mut App, _: &str) {
    let place = Place {
        store: app.store.clone(),
        cwd: app.config.places.cwd.clone(),
        current: app.control.snapshot().session_file,
        cancel: app.threads.cancel.clone(),
    };
    app.open(Picker::new(place, app.threads.feed.clone()));
}

/// Opens a session. The current run is aborted.
pub fn open(app: &mut App, wanted: Opened) {
    let home = stored::home(&wanted.path).filter(|home| *home != app.config.places.cwd && home.is_dir());
    if !wanted.is_asked
        && wanted.way != Way::Fork
        && let Some(home) = home
        && let Some(question) = about_trust(app, &home, &wanted)
    {
        return app.open(question);
    }
    app.control.abort();
    app.run(move |session, feed| {
        let done = session.visit(&wanted.path, wanted.way, wanted.folder);
        feed.effect(Effect::Visited { session: wanted, done });
    });
}

/// Reports that the session was opened, or why not.
pub fn visited(app: &mut App, session: Opened, done: Result<(), NotOpened>) {
    match done {
        Ok(()) => {
            session.copy.iter().for_each(|copy| copy.keep());
            app.begin_conversation();
            app.info(&session.done);
        }
        Err(NotOpened::Held(reason)) => ask_about_held(app, &reason, session),
        Err(NotOpened::FolderGone(home)) => ask_about_folder(app, &home.to_string_lossy(), session),
        Err(NotOpened::Cancelled) => app.info("An extension kept this session open"),
        Err(NotOpened::Failed(reason)) => app.error(&format!("Failed to resume session: {reason}")),
    }
}

/// Asks whether to trust a project that is undecided or has changed since. Without an answer it is not
/// trusted.
fn about_trust(app: &App, home: &Path, wanted: &Opened) -> Option<ListDialog<Question>> {
    const SHOWN: usize = 4;
    let config = app.control.config();
    let project = Project::new(home, app.dirs.home());
    let store = Store::new(app.dirs.agent());
    let surfaces = project.surfaces();
    if surfaces.is_empty() {
        return None;
    }
    // An error is reported when the session is opened.
    let look = store.snapshot(&project).ok()?;
    let is_preset = matches!(config.settings.default_project_trust(), "always" | "never");
    let changes = match store.find(&project) {
        Ok(Some(entry)) if entry.is_trusted => store.changes(&project, &look).unwrap_or_default(),
        _ => Vec::new(),
    };
    if changes.is_empty() && (is_preset || !matches!(store.find(&project), Ok(None))) {
        return None;
    }
    let names = surfaces.iter().take(SHOWN).map(|path| {
        let path = path.strip_prefix(project.root()).unwrap_or(path);
        path.display().to_string()
    });
    let mut names: Vec<String> = names.collect();
    if surfaces.len() > SHOWN {
        names.push(format!("{} more", surfaces.len() - SHOWN));
    }
    let changed = match changes.is_empty() {
        true => String::new(),
        false => format!("\n\nIt has changed since it was trusted: {}", trust::list(&changes)),
    };
    let text = format!(
        "{}{changed}\n\nIt brings {}. Trusted, its settings, prompts and skills are used and its extensions run.{}",
        project.root().display(),
        names.join(", "),
        look.describe()
    );
    let answers = project.answers(false);
    let labels: Vec<String> = answers.iter().map(|answer| answer.label.clone()).collect();
    let session = wanted.clone();
    let then = move |chosen: Option<usize>| {
        let answer = chosen.and_then(|chosen| answers.get(chosen)).cloned();
        vec![Effect::Trust(Box::new(TrustDecision { project, look, answer, session: Some(session) }))]
    };
    Some(question("Trust project folder?", &text, &labels, then))
}

fn cancelled() -> Vec<Effect> {
    vec![Effect::Note("Resume cancelled".to_owned())]
}

fn ask_about_held(app: &mut App, reason: &str, wanted: Opened) {
    let answers = ["Fork it: go on in a copy", "Read it only: what follows is not stored", "Cancel"];
    let then = move |answer| match answer {
        Some(0) => vec![Effect::Open(Opened { way: Way::Fork, ..wanted })],
        Some(1) => vec![Effect::Open(Opened { way: Way::Read, ..wanted })],
        _ => cancelled(),
    };
    app.open(question("Session in use", reason, &answers, then));
}

fn ask_about_folder(app: &mut App, home: &str, wanted: Opened) {
    let here = app.config.places.cwd.display().to_string();
    let answers = [
        format!("Continue in {here} (asks again next time)"),
        format!("Fork into {here} (new session ID, original kept)"),
        "Cancel".to_owned(),
    ];
    let then = move |answer| match answer {
        Some(0) => vec![Effect::Open(Opened { folder: Folder::Here, ..wanted })],
        Some(1) => vec![Effect::Open(Opened { way: Way::Fork, ..wanted })],
        _ => cancelled(),
    };
    app.open(question("Session cwd does not exist", home, &answers, then));
}
