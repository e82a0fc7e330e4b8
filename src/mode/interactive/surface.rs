//! Answers what extensions ask of the screen itself, and shows keys and themes to them.

use super::app::App;
use super::command::settings;
use super::effect::Effect;
use crate::base::json::json;
use crate::runtime::ui::Query;
use crate::tui::decode::Decoder;
use crate::tui::encode::encode;
use crate::tui::key::{Action, Input};
use crate::tui::line::Line;
use crate::tui::style::{Color, Depth};
use crate::tui::theme::{Role, Theme};
use crossbeam_channel::{Sender, bounded};
use serde_json::{Map, Value};
use std::time::Instant;

/// Keys that wait for extensions.
const KEYS_MAX: usize = 256;

/// Answers a question.
pub fn read(app: &mut App, query: Query) -> Value {
    match query {
        Query::Width => app.config.look().width.into(),
        Query::EditorText => app.composer.editor.expanded().into(),
        Query::Editor(width) => own_editor(app, width),
        Query::Theme(None) => described(app, &app.config.theme),
        Query::Theme(Some(name)) => {
            let theme = app.config.themes.find(&name).map(|theme| theme.within(app.config.can.depth));
            theme.map_or(Value::Null, |theme| described(app, &theme))
        }
        Query::Themes => {
            let themes = &app.config.themes;
            let one = |name: &str| json!({"name": name, "path": themes.path(name)});
            themes.names().into_iter().map(one).collect()
        }
        Query::SetTheme(name) => match app.config.themes.find(&name) {
            Some(_) => {
                settings::use_theme(app, name);
                json!({"success": true})
            }
            None => json!({"success": false, "error": format!("Theme not found: {name}")}),
        },
        Query::Keybindings => {
            let keys = app.config.keymap.all().map(|(id, keys)| {
                (id.to_owned(), keys.iter().map(|key| Value::from(key.to_string())).collect())
            });
            Value::Object(keys.collect())
        }
        Query::ToolsExpanded => app.config.options.is_open.into(),
        Query::Statuses => json!(app.added.statuses()),
    }
}

/// Name, colours by role, and depth of a theme.
fn described(app: &App, theme: &Theme) -> Value {
    let color = |role: &Role| match theme.color(*role) {
        Color::Default => Value::from(""),
        Color::Indexed(number) => number.into(),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}").into(),
    };
    let colors: Map<String, Value> =
        Role::ALL.iter().map(|role| (role.name().to_owned(), color(role))).collect();
    let mode = if app.config.can.depth == Depth::True { "truecolor" } else { "256color" };
    json!({"name": theme.name, "path": app.config.themes.path(&theme.name), "colors": colors, "colorMode": mode})
}

/// Pi's own editor in `width` cells, as text with escape sequences.
fn own_editor(app: &mut App, width: usize) -> Value {
    let look = app.config.look();
    let look = look.within(width.clamp(1, look.width));
    let status = (&app.status.activity, app.status.footer.thinking);
    let padding = app.config.options.padding;
    let lines = app.composer.lines(&look, app.config.size.rows, padding, status, Instant::now());
    let depth = app.config.can.depth;
    let text = |line: &Line| {
        let mut text = String::new();
        line.write(depth, false, &mut text);
        text
    };
    let texts: Vec<String> = lines.iter().map(text).collect();
    let cursor = lines.iter().enumerate().find_map(|(row, line)| line.cursor.map(|column| (row, column)));
    match cursor {
        Some((row, column)) => json!({"lines": texts, "cursor": {"row": row, "column": column}}),
        None => json!({"lines": texts}),
    }
}

/// Gives an input to extensions that look at all of them. False if there are none, or it is no key.
///
/// Inputs wait in their order on a thread of their own, and come back as [`Effect::Typed`].
pub fn shown_to_others(app: &mut App, input: &Input) -> bool {
    let data = match input {
        Input::Key(key) if key.action != Action::Release => encode(key),
        Input::Paste(text) => format!("\x1b[200~{text}\x1b[201~"),
        _ => return false,
    };
    // What was typed before comes first.
    if !app.control.takes_keys() && app.added.keys.as_ref().is_none_or(Sender::is_empty) {
        return false;
    }
    if app.added.keys.is_none() {
        let (keys, typed) = bounded::<String>(KEYS_MAX);
        let (control, feed) = (app.control.clone(), app.threads.feed.clone());
        app.begin_thread("ext-keys", move || {
            for data in typed {
                if let Some(data) = control.look_at_keys(data) {
                    feed.effect(Effect::Typed(data));
                }
            }
        });
        app.added.keys = Some(keys);
    }
    app.added.keys.as_ref().is_some_and(|keys| keys.try_send(data).is_ok())
}

/// The inputs that `data` is, as a terminal sends it.
pub fn decoded(data: &str) -> Vec<Input> {
    let mut decoder = Decoder::new(false);
    let mut inputs = Vec::new();
    decoder.push(data.as_bytes(), &mut inputs);
    if decoder.is_waiting() {
        decoder.time_out(&mut inputs);
    }
    inputs
}

/// Tells extensions that the theme is another one.
pub fn follow_theme(app: &mut App) {
    let theme = &app.config.theme;
    if app.added.theme.as_ref() == Some(theme) {
        return;
    }
    let is_change = app.added.theme.replace(theme.clone()).is_some();
    if is_change && app.control.takes_theme() {
        let (control, name) = (app.control.clone(), app.config.theme.name.clone());
        // An extension that does not read is waited for.
        app.begin_thread("theme", move || control.tell_theme(&name));
    }
}
