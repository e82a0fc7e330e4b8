//! Going on with a stored session, and what is asked on the way there.

use super::app::App;
use super::card::Weight;
use super::dialog::Question;
use crate::runtime::stored;
use crate::runtime::succession::{Folder, NotOpened, Way};
use crate::runtime::trust::{Project, Store};
use std::path::{Path, PathBuf};

/// Which session, and how.
#[derive(Clone)]
pub struct Wish {
    path: PathBuf,
    way: Way,
    folder: Folder,
    /// What is said when it is there.
    done: String,
    /// Whether the project of its folder is trusted was asked.
    is_asked: bool,
}

impl Wish {
    pub fn new(path: PathBuf, done: String) -> Self {
        Self { path, way: Way::Open, folder: Folder::Own, done, is_asked: false }
    }
}

/// Goes on with it. A run under way is ended.
pub fn open(app: &mut App, wish: Wish) {
    let home = stored::home(&wish.path).filter(|home| *home != app.stage.cwd && home.is_dir());
    if !wish.is_asked
        && wish.way != Way::Fork
        && let Some(home) = home
        && let Some(question) = about_trust(app, &home, &wish)
    {
        return app.open(question);
    }
    app.control.abort();
    app.run(move |session, feed| {
        let visited = session.visit(&wish.path, wish.way, wish.folder);
        feed.task(move |app| match visited {
            Ok(()) => {
                app.begin_conversation();
                app.say(Weight::Info, &wish.done);
            }
            Err(NotOpened::Held(reason)) => ask_about_held(app, &reason, wish),
            Err(NotOpened::FolderGone(home)) => ask_about_folder(app, &home.to_string_lossy(), wish),
            Err(NotOpened::Failed(reason)) => {
                app.say(Weight::Error, &format!("Failed to resume session: {reason}"));
            }
        });
    });
}

/// Asks about a project that nothing was decided about, or that runs other things than when it was trusted.
/// Undecided, it is not trusted.
fn about_trust(app: &App, home: &Path, wish: &Wish) -> Option<Question> {
    const SHOWN: usize = 4;
    let config = app.control.config();
    let project = Project::new(home, app.dirs.home());
    let store = Store::new(app.dirs.agent());
    let surfaces = project.surfaces();
    let look = project.snapshot();
    let is_preset = matches!(config.settings.default_project_trust(), "always" | "never");
    let has_changed = match store.find(&project) {
        Ok(Some(entry)) if entry.is_trusted => store.has_changed(&project, &look).unwrap_or(true),
        _ => false,
    };
    let is_open = has_changed || (matches!(store.find(&project), Ok(None)) && !is_preset);
    if surfaces.is_empty() || !is_open {
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
    let changed = match has_changed {
        true => "\n\nWhat it runs has changed since it was trusted.",
        false => "",
    };
    let text = format!(
        "{}{changed}\n\nIt brings {}. Trusted, its settings, prompts and skills are used and its extensions run.{}",
        project.root().display(),
        names.join(", "),
        look.describe()
    );
    let answers = project.answers(false);
    let labels: Vec<&str> = answers.iter().map(|answer| answer.label.as_str()).collect();
    let wish = wish.clone();
    let answered = {
        let answers = answers.clone();
        move |app: &mut App, chosen: Option<usize>| {
            let answer = chosen.and_then(|chosen| answers.get(chosen));
            if answer.is_some_and(|answer| answer.is_trusted) && project.snapshot() != look {
                app.say(Weight::Warning, "The project has changed while you were asked.");
                return open(app, wish);
            }
            if let Some(Err(reason)) = answer.map(|answer| store.answer(&project, answer, &look)) {
                app.say(Weight::Error, &reason);
            }
            open(app, Wish { is_asked: true, ..wish });
        }
    };
    Some(Question::new("Trust project folder?", &text, &labels, answered))
}

fn ask_about_held(app: &mut App, reason: &str, wish: Wish) {
    let answers = ["Fork it: go on in a copy", "Read it only: what follows is not stored", "Cancel"];
    let answered = move |app: &mut App, answer: Option<usize>| {
        let way = match answer {
            Some(0) => Way::Fork,
            Some(1) => Way::Read,
            _ => return app.say(Weight::Info, "Resume cancelled"),
        };
        open(app, Wish { way, ..wish });
    };
    app.open(Question::new("Session in use", reason, &answers, answered));
}

fn ask_about_folder(app: &mut App, home: &str, wish: Wish) {
    let here = app.stage.cwd.display().to_string();
    let text = format!(
        "The folder that the session worked in does not exist:\n{home}\n\nGo on in the current one?\n{here}"
    );
    let answered = move |app: &mut App, answer: Option<usize>| match answer {
        Some(0) => open(app, Wish { folder: Folder::Here, ..wish }),
        _ => app.say(Weight::Info, "Resume cancelled"),
    };
    app.open(Question::new("Session cwd not found", &text, &["Continue", "Cancel"], answered));
}
