//! What the terminal can show, from the environment.
//!
//! Settings override pi's variables (`PI_TRUE_COLOR`, `PI_HYPERLINKS`, `PI_IMAGE_PROTOCOL`, `PI_BIDI`), which override
//! the terminal's variables. An unknown terminal gets no images and no links: it might swallow the address,
//! or show the image as text. `NO_COLOR` overrides everything.

use super::style::Depth;

/// Protocol for sending images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Kitty,
    ITerm2,
}

/// Values of the settings; `None` leaves the choice to the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    pub true_color: Option<bool>,
    pub hyperlinks: Option<bool>,
    /// `Some(None)` disables images.
    pub images: Option<Option<Protocol>>,
    pub bidi: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub depth: Depth,
    pub hyperlinks: bool,
    pub images: Option<Protocol>,
    /// True if the terminal leaves the order of right-to-left text to programs.
    pub bidi: bool,
}

pub fn find(variable: impl Fn(&str) -> Option<String>, wishes: Wishes) -> Found {
    let variable = |name: &str| variable(name).unwrap_or_default();
    let flag = |name: &str| match &*variable(name) {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    };
    let images = match &*variable("PI_IMAGE_PROTOCOL").to_ascii_lowercase() {
        "kitty" => Some(Some(Protocol::Kitty)),
        "iterm2" => Some(Some(Protocol::ITerm2)),
        "none" | "0" => Some(None),
        _ => None,
    };
    let own = terminal(&variable);
    let true_color = wishes.true_color.or_else(|| flag("PI_TRUE_COLOR"));
    let depth = match true_color {
        _ if !variable("NO_COLOR").is_empty() => Depth::None,
        Some(true) => Depth::True,
        Some(false) => own.depth.min(Depth::Indexed),
        None => own.depth,
    };
    Found {
        depth,
        hyperlinks: wishes.hyperlinks.or_else(|| flag("PI_HYPERLINKS")).unwrap_or(own.hyperlinks),
        images: wishes.images.or(images).unwrap_or(own.images),
        bidi: wishes.bidi.or_else(|| flag("PI_BIDI")).unwrap_or_else(|| shows_as_it_comes(&variable)),
    }
}

/// True for terminals that are known to show all characters from left to right. Others order them (VTE,
/// Konsole, mlterm, Apple's), or words at least (kitty), and within a multiplexer it is not known which one
/// shows them: what is ordered twice cannot be read.
fn shows_as_it_comes(variable: &dyn Fn(&str) -> String) -> bool {
    let term = variable("TERM").to_ascii_lowercase();
    let is_set = |names: &[&str]| names.iter().any(|name| !variable(name).is_empty());
    let is_known = ["alacritty", "foot", "st-"].iter().any(|name| term.starts_with(name));
    !is_set(&["TMUX", "STY"]) && (is_known || is_set(&["XTERM_VERSION"]))
}

/// Abilities of the terminal that the variables name.
fn terminal(variable: &dyn Fn(&str) -> String) -> Found {
    let is_set = |names: &[&str]| names.iter().any(|name| !variable(name).is_empty());
    let term = variable("TERM").to_ascii_lowercase();
    let program = variable("TERM_PROGRAM").to_ascii_lowercase();
    let hint = matches!(&*variable("COLORTERM").to_ascii_lowercase(), "truecolor" | "24bit");
    let depth = match &*term {
        _ if hint || term.ends_with("-direct") => Depth::True,
        "dumb" => Depth::None,
        "linux" | "ansi" | "cygwin" => Depth::Sixteen,
        _ if term.starts_with("vt") => Depth::Sixteen,
        _ => Depth::Indexed,
    };
    let found = |images, hyperlinks| Found { depth: Depth::True, hyperlinks, images, bidi: false };
    // They draw the screen anew themselves, and would leave images where they were.
    if is_set(&["TMUX", "STY"]) || term.starts_with("tmux") || term.starts_with("screen") {
        return Found { depth, ..found(None, false) };
    }
    let is_kitty = program == "kitty" || is_set(&["KITTY_WINDOW_ID"]);
    let is_ghostty = program == "ghostty" || term.contains("ghostty") || is_set(&["GHOSTTY_RESOURCES_DIR"]);
    let is_wezterm = program == "wezterm" || is_set(&["WEZTERM_PANE"]);
    let is_warp = program == "warpterminal" || is_set(&["WARP_SESSION_ID", "WARP_TERMINAL_SESSION_UUID"]);
    if is_kitty || is_ghostty || is_wezterm || is_warp {
        return found(Some(Protocol::Kitty), true);
    }
    if program == "iterm.app" || is_set(&["ITERM_SESSION_ID"]) {
        return found(Some(Protocol::ITerm2), true);
    }
    if matches!(&*program, "alacritty" | "vscode" | "zed") || is_set(&["WT_SESSION"]) {
        return found(None, true);
    }
    if variable("TERMINAL_EMULATOR").eq_ignore_ascii_case("jetbrains-jediterm") {
        return found(None, false);
    }
    Found { depth, ..found(None, false) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Protocol::{ITerm2, Kitty};

    #[track_caller]
    fn found(variables: &str, wishes: Wishes) -> Found {
        let get = |name: &str| {
            let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        find(get, wishes)
    }

    #[test]
    fn terminals_are_known_by_their_variables() {
        for (variables, images, hyperlinks, depth) in [
            ("KITTY_WINDOW_ID=1 TERM=xterm-kitty", Some(Kitty), true, Depth::True),
            ("TERM=xterm-ghostty", Some(Kitty), true, Depth::True),
            ("TERM_PROGRAM=WezTerm", Some(Kitty), true, Depth::True),
            ("TERM_PROGRAM=WarpTerminal", Some(Kitty), true, Depth::True),
            ("TERM_PROGRAM=iTerm.app", Some(ITerm2), true, Depth::True),
            ("WT_SESSION=x", None, true, Depth::True),
            ("TERM_PROGRAM=vscode", None, true, Depth::True),
            ("TERMINAL_EMULATOR=JetBrains-JediTerm", None, false, Depth::True),
            ("TERM=xterm-256color", None, false, Depth::Indexed),
            ("TERM=xterm", None, false, Depth::Indexed),
            ("TERM=xterm COLORTERM=truecolor", None, false, Depth::True),
            ("TERM=linux", None, false, Depth::Sixteen),
            ("TERM=vt220", None, false, Depth::Sixteen),
            ("TERM=dumb", None, false, Depth::None),
            // Inside of a multiplexer the terminal around it does not count.
            ("TMUX=x KITTY_WINDOW_ID=1", None, false, Depth::Indexed),
            ("TERM=screen ITERM_SESSION_ID=1 COLORTERM=24bit", None, false, Depth::True),
            ("STY=1 TERM=xterm WEZTERM_PANE=1", None, false, Depth::Indexed),
        ] {
            let expected = Found { depth, hyperlinks, images, bidi: false };
            assert_eq!(found(variables, Wishes::default()), expected, "{variables}");
        }
    }

    #[test]
    fn settings_beat_our_variables_beat_the_terminal() {
        let kitty = "KITTY_WINDOW_ID=1 PI_IMAGE_PROTOCOL=iterm2 PI_HYPERLINKS=0 PI_TRUE_COLOR=0";
        let ours = Found { depth: Depth::Indexed, hyperlinks: false, images: Some(ITerm2), bidi: false };
        assert_eq!(found(kitty, Wishes::default()), ours);
        let wishes =
            Wishes { true_color: Some(true), hyperlinks: Some(true), images: Some(None), bidi: None };
        let wished = Found { depth: Depth::True, hyperlinks: true, images: None, bidi: false };
        assert_eq!(found(kitty, wishes), wished);
        for none in ["none", "0"] {
            let variables = format!("KITTY_WINDOW_ID=1 PI_IMAGE_PROTOCOL={none}");
            assert_eq!(found(&variables, Wishes::default()).images, None);
        }
        assert_eq!(found("TMUX=1 PI_IMAGE_PROTOCOL=kitty", Wishes::default()).images, Some(Kitty));
        assert_eq!(found("NO_COLOR=1 PI_TRUE_COLOR=1", wishes).depth, Depth::None);
        assert_eq!(found("NO_COLOR= TERM=xterm", Wishes::default()).depth, Depth::Indexed);
        assert_eq!(found("TERM=linux PI_TRUE_COLOR=0", Wishes::default()).depth, Depth::Sixteen);
    }

    #[test]
    fn text_is_put_into_its_order_only_where_the_terminal_surely_does_not() {
        for (variables, expected) in [
            ("TERM=foot", true),
            ("TERM=alacritty", true),
            ("TERM=xterm-256color XTERM_VERSION=XTerm(390)", true),
            ("TERM=xterm-256color", false),
            ("TERM=xterm-256color VTE_VERSION=7600", false),
            ("TERM=xterm-kitty KITTY_WINDOW_ID=1", false),
            ("TERM=tmux-256color TMUX=/tmp/x", false),
            ("TERM=foot TMUX=/tmp/x", false),
            ("TERM=xterm-256color PI_BIDI=1", true),
            ("TERM=foot PI_BIDI=0", false),
        ] {
            assert_eq!(found(variables, Wishes::default()).bidi, expected, "{variables}");
        }
        assert!(found("TERM=dumb", Wishes { bidi: Some(true), ..Wishes::default() }).bidi);
    }
}
