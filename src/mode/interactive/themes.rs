//! The available themes: built-in ones, those in files, and those by well-known palettes.
//!
//! The file of the current theme is checked again on activity, at most once a second: an edited theme shows
//! as soon as the terminal has the focus again, and an idle program is not woken.

use crate::runtime::config::Themes;
use crate::runtime::text_file::{self, Bounds};
use crate::tui::key::Reply;
use crate::tui::theme::system::{Colors, queries};
use crate::tui::theme::{Backdrop, SYSTEM, Theme, choose, palettes};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

const BUILT_IN: [&str; 3] = ["dark", "light", SYSTEM];

#[derive(Default)]
pub struct Shelf {
    /// Themes from files, the first of each name.
    themes: Vec<(PathBuf, Theme)>,
    /// The name or the pair in the settings.
    setting: Option<String>,
    /// Theme of the command line, which overrides the settings until the user chooses another.
    wanted: Option<String>,
    is_overruled: bool,
    /// File of the current theme, with its stamp when it was read.
    used: Option<(PathBuf, Option<Stamp>)>,
    looked: Option<Instant>,
    /// What the terminal has told of its colours.
    colors: Colors,
}

/// Identifies a version of a file.
type Stamp = (SystemTime, u64, u64);

impl Shelf {
    /// Reads all files again; returns their errors.
    pub fn load(&mut self, themes: &Themes) -> Vec<String> {
        self.themes.clear();
        self.wanted.clone_from(&themes.wanted);
        let mut problems = Vec::new();
        for path in &themes.files {
            let theme = match read(path) {
                Ok(theme) => theme,
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            };
            let is_known = |name: &str| self.themes.iter().any(|(_, other)| other.name == name);
            if BUILT_IN.contains(&theme.name.as_str()) || is_known(&theme.name) {
                problems.push(format!("{}: there is a theme \"{}\" already", path.display(), theme.name));
            } else {
                self.themes.push((path.clone(), theme));
            }
        }
        problems
    }

    pub fn names(&self) -> Vec<&str> {
        let own = self.themes.iter().map(|(_, theme)| theme.name.as_str());
        let mut names: Vec<&str> = BUILT_IN.into_iter().chain(own).collect();
        for name in palettes::names() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    pub fn find(&self, name: &str) -> Option<Theme> {
        let own = || {
            let mut themes = self.themes.iter().map(|(_, theme)| theme);
            themes.find(|theme| theme.name == name).cloned()
        };
        let system = || (name == SYSTEM).then(|| self.colors.theme());
        Theme::built_in(name).or_else(system).or_else(own).or_else(|| palettes::find(name))
    }

    /// The file of a theme; none for a built-in one.
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.themes.iter().find(|(_, theme)| theme.name == name).map(|(path, _)| path.as_path())
    }

    /// Sets the value of the setting.
    pub fn set(&mut self, setting: Option<&str>) {
        self.setting = setting.map(str::to_owned);
    }

    /// Drops the theme of the command line.
    pub fn overrule(&mut self) {
        self.is_overruled = true;
    }

    /// The effective choice: the command line's, otherwise the setting's, otherwise the terminal's own colours.
    fn decides(&self) -> &str {
        let wanted = self.wanted.as_deref().filter(|_| !self.is_overruled);
        wanted.or(self.setting.as_deref()).unwrap_or(SYSTEM)
    }

    /// True if the theme depends on the terminal's background.
    pub fn follows(&self) -> bool {
        self.decides().contains('/') || self.is_system()
    }

    /// True if the theme is made of the terminal's colours.
    pub fn is_system(&self) -> bool {
        self.decides() == SYSTEM
    }

    /// Queries to the terminal for what the theme depends on.
    pub fn queries(&self) -> String {
        match self.is_system() {
            true => queries(),
            false if self.follows() => "\x1b]11;?\x07\x1b[?996n".to_owned(),
            false => String::new(),
        }
    }

    /// Takes a reply of the terminal; true if the theme in use is another one now.
    pub fn learn(&mut self, reply: &Reply) -> bool {
        self.colors.take(reply) && self.is_system()
    }

    /// The theme to use, or an error.
    pub fn chosen(&mut self, backdrop: Backdrop) -> Result<Theme, String> {
        self.used = None;
        let decides = self.decides();
        let Some(name) = choose(decides, backdrop) else {
            return Err(format!("\"{decides}\" is no name of a theme and no pair light/dark"));
        };
        let theme = self.find(name).ok_or_else(|| format!("Theme \"{name}\" not found"))?;
        let mut files = self.themes.iter();
        let file = files.find(|(_, own)| own.name == theme.name);
        self.used = file.map(|(path, _)| (path.clone(), stamp(path)));
        Ok(theme)
    }

    /// The current theme, if its file has changed since it was read; or the error in the file.
    pub fn changed(&mut self, now: Instant) -> Option<Result<Theme, String>> {
        let (path, known) = self.used.as_mut()?;
        let is_soon = |looked: Instant| now.saturating_duration_since(looked) < BETWEEN_LOOKS;
        if self.looked.is_some_and(is_soon) {
            return None;
        }
        self.looked = Some(now);
        let stamp = stamp(path);
        // Editors take a file away before they put the new one in place.
        if stamp.is_none() || stamp == *known {
            return None;
        }
        *known = stamp;
        let read = read(path);
        if let Ok(theme) = &read
            && let Some((_, kept)) = self.themes.iter_mut().find(|(own, _)| own == path)
        {
            kept.clone_from(theme);
        }
        Some(read)
    }
}

fn read(path: &Path) -> Result<Theme, String> {
    let text =
        text_file::read(path, &Bounds::anywhere()).map_err(|why| format!("{}: {why}", path.display()))?;
    Theme::parse(&path.display().to_string(), &text)
}

fn stamp(path: &Path) -> Option<Stamp> {
    let facts = std::fs::metadata(path).ok()?;
    let time = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some((time, facts.len(), facts.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::TempDir;
    use crate::tui::theme::Role;

    /// A theme file in which every colour is `color`.
    fn file(name: &str, color: &str) -> String {
        let colors: Vec<String> =
            Role::ALL.iter().map(|role| format!("\"{}\": \"{color}\"", role.name())).collect();
        format!(r#"{{"name": "{name}", "colors": {{{}}}}}"#, colors.join(", "))
    }

    fn shelf(files: Vec<PathBuf>, setting: Option<&str>) -> (Shelf, Vec<String>) {
        let mut shelf = Shelf::default();
        let problems = shelf.load(&Themes { files, wanted: None });
        shelf.set(setting);
        (shelf, problems)
    }

    #[test]
    fn a_name_or_a_pair_decides() {
        let dir = TempDir::create();
        let mine = dir.write("mine.json", file("mine", "#010203"));
        let again = dir.write("again.json", file("mine", "#000000"));
        let dark = dir.write("dark.json", file("dark", "#000000"));
        let broken = dir.write("broken.json", "{");
        let (mut shelf, problems) = shelf(vec![mine, again, dark, broken], None);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert_eq!(shelf.names()[..5], ["dark", "light", "system", "mine", "catppuccin-latte"]);
        for (setting, backdrop, expected) in [
            (None, Backdrop::Dark, Ok("system")),
            (None, Backdrop::Light, Ok("system")),
            (Some("mine"), Backdrop::Dark, Ok("mine")),
            (Some("mine/dark"), Backdrop::Light, Ok("mine")),
            (Some("mine/dark"), Backdrop::Dark, Ok("dark")),
            (Some("gone"), Backdrop::Dark, Err("Theme \"gone\" not found")),
            (Some("a/"), Backdrop::Dark, Err("\"a/\" is no name of a theme and no pair light/dark")),
        ] {
            shelf.set(setting);
            let chosen = shelf.chosen(backdrop);
            let chosen = chosen.as_ref().map(|theme| theme.name.as_str());
            assert_eq!(chosen.map_err(String::as_str), expected, "{setting:?}");
        }
        assert!(shelf.follows());
        shelf.set(Some("mine"));
        assert!(!shelf.follows());
        shelf.wanted = Some("light".to_owned());
        assert_eq!(shelf.chosen(Backdrop::Dark).unwrap().name, "light");
        shelf.overrule();
        assert_eq!(shelf.chosen(Backdrop::Dark).unwrap().name, "mine");
    }

    #[test]
    fn a_file_that_changes_is_read_again_but_not_all_the_time() {
        let dir = TempDir::create();
        let mine = dir.write("mine.json", file("mine", "#010203"));
        let (mut shelf, _) = shelf(vec![mine], Some("mine"));
        let before = shelf.chosen(Backdrop::Dark).unwrap();
        let start = Instant::now();
        assert!(shelf.changed(start).is_none());
        dir.write("mine.json", file("mine", "#a0a0a0a"));
        assert!(shelf.changed(start + BETWEEN_LOOKS / 2).is_none());
        assert!(shelf.changed(start + BETWEEN_LOOKS).unwrap().is_err());
        dir.write("mine.json", file("mine", "#11223"));
        std::fs::remove_file(dir.path().join("mine.json")).unwrap();
        assert!(shelf.changed(start + BETWEEN_LOOKS * 2).is_none());
        dir.write("mine.json", file("mine", "#112233") + " ");
        let after = shelf.changed(start + BETWEEN_LOOKS * 3).unwrap().unwrap();
        assert_ne!(after, before);
        assert_eq!(shelf.find("mine"), Some(after));
        assert!(shelf.changed(start + BETWEEN_LOOKS * 4).is_none());
    }
}
