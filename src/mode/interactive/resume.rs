//! Going on with a stored session, and what is asked on the way there.

use super::app::App;
use super::card::Weight;
use super::dialog::Question;
use crate::runtime::succession::{Folder, NotOpened, Way};
use std::path::PathBuf;

/// Which session, and how.
#[derive(Clone)]
pub struct Wish {
    path: PathBuf,
    way: Way,
    folder: Folder,
    /// What is said when it is there.
    done: String,
}

impl Wish {
    pub fn new(path: PathBuf, done: String) -> Self {
        Self {
            path,
            way: Way::Open,
            folder: Folder::Own,
            done,
        }
    }
}

/// Goes on with it. A run under way is ended.
pub fn open(app: &mut App, wish: Wish) {
    app.control.abort();
    app.run(move |session, feed| {
        let visited = session.visit(&wish.path, wish.way, wish.folder);
        feed.task(move |app| match visited {
            Ok(()) => {
                app.begin_conversation();
                app.say(Weight::Info, &wish.done);
            }
            Err(NotOpened::Held(reason)) => ask_about_held(app, &reason, wish),
            Err(NotOpened::FolderGone(home)) => {
                ask_about_folder(app, &home.to_string_lossy(), wish)
            }
            Err(NotOpened::Failed(reason)) => {
                app.say(
                    Weight::Error,
                    &format!("Failed to resume session: {reason}"),
                );
            }
        });
    });
}

fn ask_about_held(app: &mut App, reason: &str, wish: Wish) {
    let answers = [
        "Fork it: go on in a copy",
        "Read it only: what follows is not stored",
        "Cancel",
    ];
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
        Some(0) => open(
            app,
            Wish {
                folder: Folder::Here,
                ..wish
            },
        ),
        _ => app.say(Weight::Info, "Resume cancelled"),
    };
    app.open(Question::new(
        "Session cwd not found",
        &text,
        &["Continue", "Cancel"],
        answered,
    ));
}
