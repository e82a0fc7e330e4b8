//! Indicators of running work, and key hints.

use crate::tui::keymap::{Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::looks::Looks;
use std::time::Duration;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME: Duration = Duration::from_millis(80);
const SECOND: Duration = Duration::from_secs(1);

/// Shows that work is running, and if `shows_time` for how long. In plain mode the line does not change.
pub fn loader(label: &str, running: Duration, shows_time: bool, looks: &Looks) -> Line {
    if looks.is_plain {
        return Line::of(label, looks.muted);
    }
    let frame = usize::try_from(running.as_millis() / FRAME.as_millis()).unwrap_or(0);
    let mut line = Line::of(FRAMES.get(frame % FRAMES.len()).unwrap_or(&""), looks.accent);
    line.push(&format!(" {label}"), looks.muted);
    if shows_time && running >= SECOND {
        line.push(&format!(" {}", elapsed(running)), looks.muted);
    }
    line
}

/// Time until a loader changes; `None` if it does not.
pub fn loader_changes_in(running: Duration, looks: &Looks) -> Option<Duration> {
    let since = running.as_nanos() % FRAME.as_nanos();
    let left = FRAME.as_nanos() - since;
    (!looks.is_plain).then(|| Duration::from_nanos(u64::try_from(left).unwrap_or(0)))
}

/// A duration as `7s`, `1m 05s`, `2h 03m`.
pub fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h {minutes:02}m"),
    }
}

/// Key hints, without unbound actions: `enter select · escape leave`.
pub fn hints(keys: &[(Action, &str)], keymap: &Keymap, looks: &Looks) -> Line {
    let mut line = Line::new();
    for (action, about) in keys {
        let Some(key) = keymap.keys(*action).first() else {
            continue;
        };
        if !line.is_empty() {
            line.push(if looks.is_plain { ", " } else { " · " }, looks.muted);
        }
        line.push(&key.to_string(), looks.accent);
        line.push(&format!(" {about}"), looks.muted);
    }
    line
}
