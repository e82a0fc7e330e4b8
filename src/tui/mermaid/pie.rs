//! Pies, drawn as bars.

use super::text::{PARTS_MAX, row, word};
use crate::tui::width;

/// Cells of the longest bar, and the least that are worth it.
const BAR_MAX: usize = 40;
const BAR_MIN: usize = 8;

pub fn draw(options: &str, lines: &[&str], cells: usize, is_plain: bool) -> Option<Vec<String>> {
    let (mut title, mut shows_data) = (String::new(), false);
    let mut parts: Vec<(String, f64, &str)> = Vec::new();
    for (at, line) in [options].iter().chain(lines).enumerate() {
        let mut line = line.trim();
        if at < 2 && word(line).0 == "showData" {
            (shows_data, line) = (true, word(line).1);
        }
        if let ("title", text) = word(line) {
            title = row(text);
        } else if !line.is_empty() {
            let (label, value) = line.rsplit_once(':')?;
            let label = label.trim();
            let number: f64 = value.trim().parse().ok()?;
            let is_part = label.len() > 2 && label.starts_with('"') && label.ends_with('"');
            if !is_part || !number.is_finite() || number < 0.0 {
                return None;
            }
            parts.push((row(label), number, value.trim()));
        }
    }
    let sum: f64 = parts.iter().map(|(_, number, _)| number).sum();
    if parts.len() > PARTS_MAX || !sum.is_finite() || sum <= 0.0 {
        return None;
    }
    let names = parts.iter().map(|(name, ..)| width::width(name)).max()?;
    let data = |value: &str| if shows_data { format!("  ({value})") } else { String::new() };
    let values = parts.iter().map(|(.., value)| data(value).len()).max()?;
    // "  100.0%" stands behind the name, and two cells before the bar.
    let room = cells.checked_sub(names + 8 + values + 2)?.min(BAR_MAX);
    if room < BAR_MIN || width::width(&title) > cells {
        return None;
    }
    let largest = parts.iter().map(|(_, number, _)| *number).fold(0.0, f64::max);
    let mut out = Vec::new();
    if !title.is_empty() {
        out.extend([title, String::new()]);
    }
    for (name, number, value) in &parts {
        let gap = " ".repeat(names - width::width(name));
        let bar = bar(number / largest, room, is_plain);
        let row = format!("{name}{gap}  {:5.1}%{:values$}  {bar}", number / sum * 100.0, data(value));
        out.push(row.trim_end().to_owned());
    }
    Some(out)
}

/// A bar over `share` of the room, to an eighth of a cell.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the share is between 0 and 1
fn bar(share: f64, room: usize, is_plain: bool) -> String {
    let Ok(room) = u32::try_from(room) else {
        return String::new();
    };
    let eighths = (share * f64::from(room) * 8.0).round() as usize;
    if is_plain {
        return "#".repeat((eighths + 4) / 8);
    }
    let last = "▏▎▍▌▋▊▉".chars().nth((eighths % 8).wrapping_sub(1));
    "█".repeat(eighths / 8) + &last.map(String::from).unwrap_or_default()
}
