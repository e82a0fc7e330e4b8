//! What everything is drawn with: theme, keys, abilities of the terminal, settings.

use super::card::Pictures;
use super::drawings::Drawings;
use super::keymap::{self, APPLICATION};
use super::look::{Look, THINKING};
use super::themes::Shelf;
use crate::runtime::config::Themes;
use crate::runtime::{Describer, Settings};
use crate::tui::ability::{self, Found, Protocol, Wishes};
use crate::tui::image::Pixels;
use crate::tui::keymap::{Keymap, Platform};
use crate::tui::markdown_view::Diagrams;
use crate::tui::screen::{Abilities, Size};
use crate::tui::style::Depth;
use crate::tui::theme::{Backdrop, Theme};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct UiConfig {
    pub theme: Theme,
    pub themes: Shelf,
    /// Background of the terminal, if known.
    pub backdrop: Backdrop,
    pub keymap: Keymap,
    pub describer: Describer,
    /// What extensions draw.
    pub drawings: Arc<Drawings>,
    pub can: Found,
    pub size: Size,
    /// The size of a cell in pixels.
    pub cell: Pixels,
    pub is_plain: bool,
    /// True if the conversation scrolls on an alternate screen.
    pub is_fullscreen: bool,
    pub options: Options,
    pub places: Places,
}

/// Settings of the screen, with changes made by keys.
#[derive(Default)]
pub struct Options {
    pub code_indent: String,
    pub diagrams: Diagrams,
    /// Cells left and right of the editor's text.
    pub padding: usize,
    /// True if the editor has the keys of vim.
    pub uses_vim: bool,
    /// True if calls are shown with their results, and cards have empty rows inside.
    pub is_roomy: bool,
    /// Cells left and right of messages.
    pub output_pad: usize,
    /// Rows of the completion list.
    pub popup_rows: usize,
    /// True if tool output is shown in full.
    pub is_open: bool,
    pub hides_thinking: bool,
    /// What an extension shows for thinking that is not shown.
    pub thinking_label: Option<String>,
    pub wants_fullscreen: bool,
    /// Visibility of the scrollbar in fullscreen mode: `auto`, `always` or `hidden`.
    pub scrollbar: String,
    /// Lines scrolled by a step of the mouse wheel.
    pub wheel_lines: usize,
    /// True if what is selected with the mouse is copied at once.
    pub copies_selection: bool,
    /// Maximum width of an image in cells.
    image_columns: usize,
}

impl UiConfig {
    /// Reads settings, files and the environment; also returns the errors in the files.
    pub fn new(places: Places, settings: &Settings, themes: &Themes, size: Size) -> (Self, Vec<String>) {
        let variable = |name: &str| std::env::var(name).ok();
        let mut config = Self {
            theme: Theme::dark(),
            themes: Shelf::default(),
            backdrop: variable("COLORFGBG")
                .and_then(|value| Backdrop::of_variable(&value))
                .unwrap_or(Backdrop::Dark),
            keymap: keymap::defaults(),
            describer: Describer::default(),
            drawings: Arc::default(),
            can: ability::find(variable, Wishes::default()),
            size,
            cell: Pixels::CELL,
            is_plain: is_plain(),
            is_fullscreen: false,
            options: Options::default(),
            places,
        };
        let problems = config.read(settings, themes);
        config.is_fullscreen = config.options.wants_fullscreen;
        (config, problems)
    }

    /// Reads settings, keys and theme again.
    pub fn read(&mut self, settings: &Settings, themes: &Themes) -> Vec<String> {
        let variable = |name: &str| std::env::var(name).ok();
        self.can = ability::find(variable, wishes(settings));
        let text = |path: &str| settings.get(path).and_then(Value::as_str);
        self.options = Options {
            code_indent: text("markdown.codeBlockIndent").unwrap_or("  ").to_owned(),
            diagrams: match text("markdown.mermaid") {
                Some("off") => Diagrams::Off,
                Some("streaming") => Diagrams::Streaming,
                _ => Diagrams::Final,
            },
            uses_vim: text("editorMode") == Some("vim"),
            padding: count(settings, "editorPaddingX").unwrap_or(0),
            is_roomy: text("display.density") == Some("roomy"),
            output_pad: count(settings, "outputPad").unwrap_or(1).min(1),
            popup_rows: count(settings, "autocompleteMaxVisible").unwrap_or(5),
            is_open: self.options.is_open,
            hides_thinking: flag(settings, "hideThinkingBlock").unwrap_or(false),
            thinking_label: self.options.thinking_label.take(),
            wants_fullscreen: text("tuiMode") == Some("fullscreen") && !is_dumb(),
            scrollbar: text("fullscreenScrollbar").unwrap_or("auto").to_owned(),
            wheel_lines: count(settings, "fullscreenWheelScrollLines").unwrap_or(WHEEL_LINES),
            copies_selection: flag(settings, "fullscreenCopyOnSelect").unwrap_or(true),
            image_columns: count(settings, "terminal.imageWidthCells").unwrap_or(60),
        };
        let mut problems = self.read_keys();
        problems.extend(self.themes.load(themes));
        self.themes.set(text("theme"));
        problems.extend(self.choose_theme());
        problems
    }

    fn read_keys(&mut self) -> Vec<String> {
        let platform = Platform::detect(|name| std::env::var(name).ok());
        let path = self.places.agent.join("keybindings.json");
        self.keymap = Keymap::new(platform, &APPLICATION);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => return vec![format!("Cannot read {}: {error}", path.display())],
        };
        let say = |problem: String| format!("{}: {problem}", path.display());
        match serde_json::from_str(&text) {
            Ok(value) => {
                let (keymap, problems) = Keymap::load(&value, platform, &APPLICATION);
                self.keymap = keymap;
                problems.into_iter().map(say).collect()
            }
            Err(error) => vec![say(error.to_string())],
        }
    }

    /// Loads the configured theme, or one that fits the terminal. Returns an error to show.
    pub fn choose_theme(&mut self) -> Option<String> {
        match self.themes.chosen(self.backdrop) {
            Ok(theme) => {
                self.theme = theme.within(self.can.depth);
                None
            }
            Err(problem) => Some(problem),
        }
    }

    pub fn look(&self) -> Look<'_> {
        Look {
            theme: &self.theme,
            keymap: &self.keymap,
            width: self.size.columns.max(1),
            hyperlinks: self.can.hyperlinks,
            code_indent: &self.options.code_indent,
            diagrams: self.options.diagrams,
            is_open: self.options.is_open,
            hides_thinking: self.options.hides_thinking,
            thinking_label: self.options.thinking_label.as_deref().unwrap_or(THINKING),
            is_plain: self.is_plain,
            is_compact: !self.options.is_roomy,
            has_backgrounds: self.can.depth >= Depth::Indexed && !self.is_plain,
            pad: self.options.output_pad,
            cwd: &self.places.cwd,
            home: &self.places.home,
            describer: &self.describer,
            drawings: &self.drawings,
        }
    }

    /// Cells to the right of the conversation for the scrollbar, in fullscreen mode.
    pub fn scrollbar_width(&self) -> usize {
        usize::from(self.is_fullscreen && self.options.scrollbar != "hidden" && !self.is_plain)
    }

    /// The look of the conversation in fullscreen mode.
    pub fn window_look(&self) -> Look<'_> {
        let columns = self.size.columns;
        self.look().within(columns.saturating_sub(self.scrollbar_width()).max(1))
    }

    /// How images are drawn; `None` if they are not.
    pub fn pictures(&self) -> Option<Pictures> {
        Some(Pictures {
            protocol: self.can.images?,
            cell: self.cell,
            columns: self.options.image_columns,
            // All of it on the screen, with some of what is around it.
            rows: self.size.rows.saturating_sub(10).max(1),
        })
    }

    pub fn abilities(&self) -> Abilities {
        Abilities {
            depth: self.can.depth,
            hyperlinks: self.can.hyperlinks,
            synchronized: !is_dumb(),
            reorders: self.can.bidi,
            is_dumb: is_dumb(),
        }
    }
}

/// Folders that the screen shows or reads from.
pub struct Places {
    pub cwd: PathBuf,
    pub home: PathBuf,
    pub agent: PathBuf,
}

/// True if the terminal supports no escape sequences.
pub fn is_dumb() -> bool {
    matches!(std::env::var("TERM").as_deref(), Ok("dumb"))
}

/// True for plain mode: configured, or the terminal supports no better.
fn is_plain() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    is_dumb() || is_set("PI_TUI_PLAIN") || is_set("REDUCE_MOTION")
}

/// What the settings say of the terminal's abilities.
pub fn wishes(settings: &Settings) -> Wishes {
    let shows = flag(settings, "terminal.showImages").unwrap_or(true);
    let images = match settings.get("terminal.images") {
        Some(Value::Bool(false)) => Some(None),
        Some(Value::String(name)) if name == "kitty" => Some(Some(Protocol::Kitty)),
        Some(Value::String(name)) if name == "iterm2" => Some(Some(Protocol::ITerm2)),
        _ => None,
    };
    Wishes {
        true_color: flag(settings, "terminal.trueColor"),
        hyperlinks: flag(settings, "terminal.hyperlinks"),
        images: if shows { images } else { Some(None) },
        bidi: flag(settings, "terminal.bidi"),
    }
}

pub fn flag(settings: &Settings, path: &str) -> Option<bool> {
    settings.get(path).and_then(Value::as_bool)
}

/// Lines scrolled by a step of the mouse wheel if the setting says `auto`.
const WHEEL_LINES: usize = 3;

fn count(settings: &Settings, path: &str) -> Option<usize> {
    let count = settings.get(path).and_then(Value::as_u64)?;
    usize::try_from(count).ok()
}

/// The part of a path after its last slash.
pub fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned())
}
