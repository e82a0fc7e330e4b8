//! Text above the first prompt: how to begin, and the files loaded for the folder.

use super::app::App;
use super::look::{Look, indented};
use crate::mode::interactive::keymap::AppAction;
use crate::runtime::config::Config;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;

/// Prints the header, unless settings ask for a quiet start.
pub fn print(app: &mut App, is_verbose: bool) {
    let config = app.control.config();
    let quiet = config.settings.get("quietStartup").filter(|_| !is_verbose);
    if quiet.is_some_and(|quiet| quiet == true) {
        return;
    }
    let is_short = quiet.is_some_and(|quiet| quiet == "header");
    let lines = lines(&config, &app.config.look(), is_short);
    app.print(lines);
}

/// The name of the program and the first keys; unless `is_short`, what was loaded, too.
fn lines(config: &Config, look: &Look<'_>, is_short: bool) -> Vec<Line> {
    let dim = look.style(Role::Dim);
    let mut title = Line::of("pi", look.style(Role::Accent).with(Attributes::BOLD));
    title.push(concat!(" v", env!("CARGO_PKG_VERSION")), dim);
    let mut keys: Vec<String> = Vec::new();
    let mut key = |actions: &[Action], about: &str| {
        let shown: Vec<String> = actions
            .iter()
            .filter_map(|action| Some(look.keymap.keys(*action).first()?.to_string()))
            .collect();
        if !shown.is_empty() {
            keys.push(format!("{} {about}", shown.join("/")));
        }
    };
    key(&[AppAction::INTERRUPT], "interrupt");
    key(&[AppAction::CLEAR, AppAction::EXIT], "clear/exit");
    keys.push("/ commands".to_owned());
    keys.push("! bash".to_owned());
    keys.push("@ files".to_owned());
    let mut rows = vec![title, Line::of(&keys.join(if look.is_plain { ", " } else { " · " }), dim)];
    if is_short {
        return rows;
    }
    let files = config.context_files.iter();
    let files = files.map(|path| match path.strip_prefix(look.cwd) {
        Ok(inside) => inside.display().to_string(),
        Err(_) => look.path(path),
    });
    let skills = config.commands.skills.iter().map(|skill| skill.name.clone());
    let templates = config.commands.templates.iter();
    let templates = templates.map(|template| format!("/{}", template.name));
    for (title, names) in [
        ("Context", files.collect::<Vec<_>>()),
        ("Skills", skills.collect()),
        ("Prompts", templates.collect()),
    ] {
        if !names.is_empty() {
            rows.push(Line::new());
            rows.push(Line::of(&format!("[{title}]"), look.style(Role::MdHeading)));
            rows.push(Line::of(&format!("  {}", names.join(", ")), dim));
        }
    }
    let width = look.width.saturating_sub(2).max(1);
    indented(rows.iter().flat_map(|row| wrap(row, width)))
}
