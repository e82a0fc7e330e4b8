//! A question of an extension on its way to the screen.

use crossbeam_channel::Sender;

pub struct Asked {
    pub number: u64,
    pub title: String,
    /// Lines below the title.
    pub text: String,
    pub form: Form,
    pub reply: Sender<Option<String>>,
}

/// How a question is answered.
pub enum Form {
    Choice(Vec<String>),
    Confirm,
    /// A text that begins with this one.
    Text(String),
}
