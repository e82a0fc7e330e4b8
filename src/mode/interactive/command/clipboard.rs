//! The clipboard: copies text, pastes text and images.
//!
//! Programs of the machine access the desktop's clipboard. Over SSH, and without a desktop, the terminal is
//! asked to copy (OSC 52), which it may ignore without notice. Programs may hang, so they run on a separate
//! thread with a time limit.

use crate::base::file::create_private;
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::config;
use crate::mode::interactive::effect::Effect;
use crate::mode::interactive::program::{self, Job};
use crate::runtime::{CancelToken, ImageKind, executable, unique_id, without_controls};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Time limit of one program.
const LIMIT: Duration = Duration::from_secs(3);
/// Maximum of encoded characters that terminals accept in one sequence.
const SEQUENCE_MAX: usize = 100_000;
/// Maximum of pasted text, in bytes.
const TEXT_MAX: usize = 8 << 20;

/// A program and its arguments.
type Tool = (&'static str, &'static [&'static str]);

/// With 1, what is copied goes to the terminal's clipboard as well.
const OSC52: &str = "PI_CLIPBOARD_OSC52";

/// What the environment tells about the clipboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Desktop {
    is_mac: bool,
    is_termux: bool,
    is_wayland: bool,
    is_x11: bool,
    is_remote: bool,
    /// True if the user wants the terminal's clipboard as well.
    wants_terminal: bool,
}

impl Desktop {
    fn find(variable: impl Fn(&str) -> bool) -> Self {
        Self {
            is_mac: cfg!(target_os = "macos"),
            is_termux: variable("TERMUX_VERSION"),
            is_wayland: variable("WAYLAND_DISPLAY"),
            is_x11: variable("DISPLAY"),
            is_remote: ["SSH_CONNECTION", "SSH_CLIENT", "MOSH_CONNECTION"].into_iter().any(&variable),
            wants_terminal: variable(OSC52),
        }
    }

    fn of_process() -> Self {
        Self::find(|name| {
            std::env::var_os(name).is_some_and(|value| !value.is_empty() && (name != OSC52 || value == "1"))
        })
    }

    /// True if there is a clipboard besides the terminal's.
    fn exists(self) -> bool {
        self.is_mac || self.is_termux || self.is_wayland || self.is_x11
    }

    /// Tools to try, the likeliest first.
    fn tools(self, mac: Tool, termux: Tool, wayland: Tool, x11: [Tool; 2]) -> Vec<Tool> {
        let all = [
            (self.is_mac, mac),
            (self.is_termux, termux),
            (self.is_wayland, wayland),
            (self.is_x11, x11[0]),
            (self.is_x11, x11[1]),
        ];
        all.into_iter().filter_map(|(is_there, tool)| is_there.then_some(tool)).collect()
    }

    fn writers(self) -> Vec<Tool> {
        self.tools(
            ("pbcopy", &[]),
            ("termux-clipboard-set", &[]),
            ("wl-copy", &[]),
            [("xclip", &["-selection", "clipboard"]), ("xsel", &["--clipboard", "--input"])],
        )
    }

    fn readers(self) -> Vec<Tool> {
        self.tools(
            ("pbpaste", &[]),
            ("termux-clipboard-get", &[]),
            ("wl-paste", &["--no-newline", "--type", "text"]),
            [("xclip", &["-selection", "clipboard", "-out"]), ("xsel", &["--clipboard", "--output"])],
        )
    }

    /// Reason why copying failed.
    fn advice(self) -> &'static str {
        if self.is_termux {
            "Clipboard unavailable: install the Termux:API app and its package termux-api"
        } else if self.is_wayland {
            "Clipboard unavailable: install wl-clipboard (wl-copy)"
        } else if self.is_x11 {
            "Clipboard unavailable: install xclip or xsel"
        } else {
            "Clipboard unavailable"
        }
    }
}

/// Runs the tools in turn until one succeeds, and returns its output.
fn first_of(tools: &[Tool], input: &[u8], is_read: bool, cancel: &CancelToken) -> Option<Vec<u8>> {
    tools.iter().find_map(|(name, arguments)| {
        let ran = program::run(name, Job { arguments, input: input.to_vec(), is_read, limit: LIMIT, cancel });
        ran.ok().filter(|ran| ran.is_success).map(|ran| ran.output)
    })
}

/// Sequence that asks the terminal to copy a text; `None` if the text is too long.
fn sequence(text: &str) -> Option<String> {
    let encoded_len = text.len().div_ceil(3).checked_mul(4)?;
    (encoded_len <= SEQUENCE_MAX).then(|| format!("\x1b]52;c;{}\x07", BASE64_STANDARD.encode(text)))
}

/// Describes how text is copied; the error says what to do.
pub fn way() -> Result<String, &'static str> {
    let desktop = Desktop::of_process();
    let found = desktop.writers().iter().find_map(|(name, _)| executable::find(name));
    match found {
        Some(_) if desktop.is_remote => {
            Ok("the terminal's (OSC 52), since this is a remote shell".to_owned())
        }
        Some(path) => Ok(path.display().to_string()),
        None if desktop.is_remote || !desktop.exists() => Ok("the terminal's (OSC 52)".to_owned()),
        None => Err(desktop.advice()),
    }
}

/// Copies text to the clipboard, then shows the notice `done`.
pub fn copy(app: &mut App, text: String, done: &'static str) {
    copy_read(app, || Some((text, done.to_owned())));
}

/// Copies the text that `read` returns to the clipboard, then shows the notice it returns.
pub fn copy_read(app: &mut App, read: impl FnOnce() -> Option<(String, String)> + Send + 'static) {
    let desktop = Desktop::of_process();
    let (feed, cancel) = (app.threads.feed.clone(), app.threads.cancel.clone());
    app.find_out("clipboard", move || {
        let Some((text, done)) = read() else { return Effect::Draw };
        let is_copied = first_of(&desktop.writers(), text.as_bytes(), false, &cancel).is_some();
        // The terminal's clipboard is the user's own where the desktop is that of another machine.
        let asks_terminal = desktop.wants_terminal || desktop.is_remote || (!is_copied && !desktop.exists());
        let asked = (asks_terminal && !config::is_dumb()).then(|| sequence(&text)).flatten();
        let is_too_long = asks_terminal && asked.is_none() && text.len() > SEQUENCE_MAX / 4;
        let problem = match (is_copied, asked) {
            (_, Some(sequence)) => {
                feed.effect(Effect::Write(sequence));
                return Effect::Note(done);
            }
            (true, None) => return Effect::Note(done),
            (false, None) if is_too_long => {
                "Clipboard unavailable: the text is too long for the terminal's (OSC 52)"
            }
            (false, None) => desktop.advice(),
        };
        Effect::Say(Weight::Error, problem.to_owned())
    });
}

/// Pastes the clipboard's image as the path of a file, otherwise the clipboard's text.
pub fn paste(app: &mut App) {
    let desktop = Desktop::of_process();
    let cancel = app.threads.cancel.clone();
    app.find_out("clipboard", move || {
        let image = image(desktop, &cancel).and_then(|image| stored(&image));
        let text = image.map(|path| path.to_string_lossy().into_owned()).or_else(|| {
            first_of(&desktop.readers(), b"", true, &cancel).map(|mut bytes| {
                bytes.truncate(TEXT_MAX);
                without_controls(&bytes)
            })
        });
        Effect::Paste(text.unwrap_or_default())
    });
}

/// The image in the clipboard, as the bytes of a file.
fn image(desktop: Desktop, cancel: &CancelToken) -> Option<Vec<u8>> {
    const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
    if desktop.is_mac {
        return first_of(&[("pngpaste", &["-"])], b"", true, cancel);
    }
    let offered = |list: &[u8]| {
        let list = String::from_utf8_lossy(list).into_owned();
        let is_offered = |kind: &&str| {
            let names = list.lines().map(|line| line.split(';').next().unwrap_or(line).trim());
            names.into_iter().any(|name| name.eq_ignore_ascii_case(kind))
        };
        KINDS.into_iter().find(is_offered)
    };
    let get = |name: &'static str, arguments: &[&str]| {
        let job = Job { arguments, input: Vec::new(), is_read: true, limit: LIMIT, cancel };
        let ran = program::run(name, job).ok().filter(|ran| ran.is_success)?;
        Some(ran.output)
    };
    if desktop.is_wayland {
        // Where it answers, what X11's clipboard holds is older.
        if let Some(list) = get("wl-paste", &["--list-types"]) {
            return get("wl-paste", &["--type", offered(&list)?, "--no-newline"]);
        }
    }
    if !desktop.is_x11 {
        return None;
    }
    let select = ["-selection", "clipboard", "-t"];
    let list = get("xclip", &[&select[..], &["TARGETS", "-o"]].concat())?;
    get("xclip", &[&select[..], &[offered(&list)?, "-o"]].concat())
}

/// Writes the image into a file that only the user can read.
fn stored(image: &[u8]) -> Option<PathBuf> {
    let extension = match ImageKind::sniff(image)? {
        ImageKind::Jpeg => "jpg",
        kind => kind.name(),
    };
    let path = std::env::temp_dir().join(format!("pi-clipboard-{}.{extension}", unique_id()));
    create_private(&path).and_then(|mut file| file.write_all(image)).ok()?;
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_those_of_the_desktop() {
        let names = |variables: &[&str]| {
            let mut desktop = Desktop::find(|name| variables.contains(&name));
            desktop.is_mac = false;
            let tools = desktop.writers();
            let names: Vec<&str> = tools.iter().map(|(name, _)| *name).collect();
            (names.join(" "), desktop.exists(), desktop.is_remote)
        };
        for (variables, tools, exists, is_remote) in [
            (&[][..], "", false, false),
            (&["DISPLAY"], "xclip xsel", true, false),
            (&["DISPLAY", "WAYLAND_DISPLAY"], "wl-copy xclip xsel", true, false),
            (&["TERMUX_VERSION"], "termux-clipboard-set", true, false),
            (&["SSH_CLIENT"], "", false, true),
        ] {
            assert_eq!(names(variables), (tools.to_owned(), exists, is_remote));
        }
    }

    #[test]
    fn the_terminal_is_asked_for_texts_that_it_takes() {
        assert_eq!(sequence("hello").as_deref(), Some("\x1b]52;c;aGVsbG8=\x07"));
        assert!(sequence(&"x".repeat(75_000)).is_some());
        assert_eq!(sequence(&"x".repeat(75_001)), None);
    }
}
