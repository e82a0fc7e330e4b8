//! What can be done when there is no model: no key, no sign-in, no server on this machine.

use super::app::App;
use super::look::indented;
use crate::tui::line::Line;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;

const WAYS: [(&str, &str); 4] = [
    ("/login", "sign in with a subscription, or store an API key"),
    ("ANTHROPIC_API_KEY=... pi", "a key in the environment (all names: pi docs providers)"),
    ("ollama serve", "or another server on this machine, then /model"),
    ("/model faux/demo", "no model, but a look at how it works"),
];

/// Prints what can be done, if there is no model.
pub fn print(app: &mut App) {
    if !app.control.models().current().is_none() {
        return;
    }
    let look = app.config.look();
    let (warning, accent, text) =
        (look.style(Role::Warning), look.style(Role::Accent), look.style(Role::Text));
    let width = look.width.saturating_sub(2).max(1);
    let widest = WAYS.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
    let mut lines = vec![Line::of("No model to ask yet. What can be done:", warning)];
    for (what, about) in WAYS {
        let mut line = Line::of(&format!("  {what}"), accent);
        line.pad_to(widest + 4, text);
        line.push(about, text);
        lines.push(line);
    }
    let lines: Vec<Line> = lines.iter().flat_map(|line| wrap(line, width)).collect();
    let mut out = vec![Line::new()];
    out.extend(indented(lines));
    app.print(out);
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[test]
    fn nothing_is_said_where_there_is_a_model() {
        let mut bench = Bench::new();
        super::print(&mut bench.app);
        assert_eq!(bench.printed(), "");
    }
}
