//! `/resume`: the stored sessions, to go on with one.

mod list;
pub mod picker;

use super::{Dialog, Step};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::look::Look;
use crate::mode::interactive::resume::{self, Wish};
use crate::runtime::Fatal;
use crate::tui::key::Key;
use crate::tui::line::Line;
use picker::{Picked, Picker, Place, Task};
use std::any::Any;
use std::sync::Arc;

pub struct Sessions {
    picker: Picker,
}

/// `/resume`.
pub fn open(app: &mut App, _: &str) {
    let place = Place {
        store: app.store.clone(),
        cwd: app.stage.cwd.clone(),
        current: app.control.snapshot().session_file,
        cancel: app.cancel.clone(),
    };
    let feed = app.feed.clone();
    let link = move |task: Task| {
        feed.task(move |app| {
            if let Some(sessions) = app.dialog::<Sessions>() {
                task(&mut sessions.picker);
            }
        });
    };
    let picker = Picker::new(place, Arc::new(link));
    app.open(Sessions { picker });
}

impl Dialog for Sessions {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        self.picker.lines(look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        match self.picker.handle(key, &app.stage.keymap) {
            Picked::Stay => Step::Stay,
            Picked::Leave => Step::Close,
            Picked::Chosen(info) => {
                resume::open(app, Wish::new(info.path, "Resumed session".to_owned()));
                Step::Close
            }
            Picked::RenameCurrent(name) => {
                let feed = app.feed.clone();
                let named = app.control.set_name(&name, &mut |event| feed.event(event));
                if let Err(Fatal(reason)) = named {
                    app.say(Weight::Error, &reason);
                }
                self.picker.reload();
                Step::Stay
            }
        }
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        self.picker.paste(text);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests;
