//! What a sign-in tells the user and asks of the user.

use crate::base::cancel::CancelToken;

/// Whoever stands between a sign-in and the user: a terminal, a program at the other end of a pipe.
pub trait Interaction: Sync {
    fn tell(&self, event: &Event);

    /// Asks, and waits for the answer. Returns as soon as `cancel` is cancelled, which also happens when
    /// the answer came another way; what it returns then does not matter. May be called on a thread of
    /// the sign-in while `tell` is called on another.
    fn ask(&self, prompt: &Prompt, cancel: &CancelToken) -> Answer;
}

/// Texts are written here, but URLs and codes come from servers: strip control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// To be opened in a browser; http or https.
    Url {
        url: String,
        instructions: String,
    },
    /// To be typed into the page.
    DeviceCode {
        user_code: String,
        url: String,
        expires_in_seconds: u64,
    },
    Progress(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    Text {
        message: String,
        placeholder: String,
    },
    /// The `id` of an option is the answer.
    Select {
        message: String,
        options: Vec<Choice>,
    },
    /// A code, or the address that the browser was sent back to.
    Code {
        message: String,
        placeholder: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub id: String,
    pub label: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Text(String),
    /// There is nobody to ask; the sign-in goes on as well as it can.
    Nobody,
    /// The user does not want to sign in.
    Cancelled,
}
