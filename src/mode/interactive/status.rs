//! State of the session on screen besides the conversation: footer, activity, title.

use super::activity::Activity;
use super::config::UiConfig;
use super::feed::Feed;
use super::footer::Footer;
use super::program_status::ProgramStatus;
use super::status_line::StatusLine;
use super::title::Title;
use crate::runtime::cache_miss::Latest;
use crate::runtime::control::Control;
use std::sync::Arc;

pub struct Status {
    pub footer: Footer,
    /// The user's own footer.
    pub line: StatusLine,
    pub activity: Activity,
    pub title: Title,
    pub program: ProgramStatus,
    /// The last notice that is not part of the conversation, until the next prompt.
    pub note: String,
    /// True if the terminal's window has the focus.
    pub is_focused: bool,
    /// The session whose requests are compared with the cache, and the latest of them.
    pub latest: (String, Latest),
    /// True once the user was warned that a subscription may cost extra.
    pub knows_extra_usage: bool,
}

impl Status {
    pub fn new(control: &Control, config: &UiConfig, feed: &Arc<Feed>) -> Self {
        Self {
            footer: Footer::new(control, config.places.cwd.clone(), feed),
            line: StatusLine::default(),
            activity: Activity::default(),
            title: Title::default(),
            program: ProgramStatus::default(),
            note: String::new(),
            is_focused: true,
            latest: Default::default(),
            knows_extra_usage: false,
        }
    }
}
