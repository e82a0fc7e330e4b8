//! What stands above the first prompt.

use super::app::App;
use super::look::indented;
use crate::tui::line::Line;
use crate::tui::select::hints;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;

pub fn print(app: &mut App, is_verbose: bool) {
    let ground = app.control.ground();
    let is_quiet = super::stage::flag(&ground.settings, "quietStartup").unwrap_or(false);
    if is_quiet && !is_verbose {
        return;
    }
    let look = app.stage.look();
    let mut title = Line::of("pi", look.style(Role::Accent).with(Attributes::BOLD));
    title.push(
        concat!(" v", env!("CARGO_PKG_VERSION")),
        look.style(Role::Dim),
    );
    let _ = hints;
    let lines = indented([title]);
    app.print(lines);
}
