//! What the terminal and the desktop offer, without drawing on it.

use super::command::clipboard;
use super::config;
use crate::runtime::Settings;
use crate::tui::ability::{self, Protocol};
use crate::tui::style::Depth;

pub struct Survey {
    /// Colours, links and images, in words.
    pub look: String,
    /// How text is copied; the error says what to do.
    pub clipboard: Result<String, &'static str>,
}

/// Reads environment and settings.
pub fn survey(settings: &Settings) -> Option<Survey> {
    let found = ability::find(|name| std::env::var(name).ok(), config::wishes(settings));
    let colors = match found.depth {
        Depth::None => "no colours",
        Depth::Sixteen => "16 colours",
        Depth::Indexed => "256 colours",
        Depth::True => "all colours",
    };
    let links = if found.hyperlinks { "links" } else { "no links" };
    let images = match found.images {
        None => "no images",
        Some(Protocol::Kitty) => "images (kitty)",
        Some(Protocol::ITerm2) => "images (iTerm2)",
    };
    Some(Survey { look: format!("{colors}, {links}, {images}"), clipboard: clipboard::way() })
}
