//! Tests a dialog without a session: draws it, sends keys, inspects effects.

use super::Dialog;
use crate::mode::interactive::config::{Places, UiConfig};
use crate::mode::interactive::effect::{Effect, Update};
use crate::mode::interactive::keymap::defaults;
use crate::runtime::Settings;
use crate::runtime::config::Themes;
use crate::tui::key::Key;
use crate::tui::screen::Size;
use std::path::PathBuf;

pub struct Shown {
    dialog: Box<dyn Dialog>,
    config: UiConfig,
}

impl Shown {
    pub fn new<D: Dialog + 'static>(make: impl FnOnce(&UiConfig) -> D) -> Self {
        let home = PathBuf::from("/nowhere");
        let places = Places { cwd: home.clone(), home: home.clone(), agent: home };
        let size = Size { columns: 80, rows: 40 };
        let (mut config, _) = UiConfig::new(places, &Settings::default(), &Themes::default(), size);
        (config.is_plain, config.keymap) = (false, defaults());
        Self { dialog: Box::new(make(&config)), config }
    }

    /// Effects of the last of the keys.
    #[track_caller]
    pub fn press(&mut self, keys: &str) -> Vec<Effect> {
        let keys = keys.split_whitespace().map(|key| Key::parse(key).expect("a key"));
        keys.map(|key| self.dialog.key(&key, &self.config)).last().unwrap_or_default()
    }

    pub fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            self.dialog.key(&Key::plain(crate::tui::key::Code::Char(letter)), &self.config);
        }
    }

    pub fn update(&mut self, mut update: Update) {
        self.dialog.update(&mut update, &self.config);
    }

    pub fn set_rows(&mut self, rows: usize) {
        self.config.size.rows = rows;
    }

    /// The dialog as drawn; checks that no line is wider than the screen.
    #[track_caller]
    pub fn text(&mut self, columns: usize) -> String {
        self.config.size.columns = columns;
        let lines = self.dialog.lines(&self.config.look(), self.config.size.rows);
        assert!(lines.iter().all(|line| line.width() <= columns));
        lines.iter().map(|line| line.text().trim_end().to_owned() + "\n").collect()
    }
}
