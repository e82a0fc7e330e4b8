//! The dialog of a sign-in with the user.

use crate::base::cancel::CancelToken;

/// Connects a sign-in to the user, for example through a terminal or an RPC client.
pub trait Interaction: Sync {
    fn tell(&self, event: &Event);

    /// Asks the user and waits for the answer. Must return as soon as `cancel` is cancelled, for example
    /// because the browser returned first; the result is then ignored. May run on a different thread than
    /// `tell`, at the same time.
    fn ask(&self, prompt: &Prompt, cancel: &CancelToken) -> Answer;
}

/// An event of a sign-in. URLs and codes come from servers: strip control characters before printing them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A page to open in a browser; http or https.
    Url {
        url: String,
        instructions: String,
    },
    /// A code that the user enters on a page.
    DeviceCode {
        user_code: String,
        url: String,
        expires_in_seconds: u64,
    },
    Progress(String),
}

impl Event {
    /// What is said beside a code; 0 seconds if nobody knows how long it is valid.
    pub fn waiting(expires_in_seconds: u64) -> String {
        match expires_in_seconds.div_ceil(60) {
            0 => "Waiting...".to_owned(),
            minutes => format!("It is valid for {minutes} minutes; waiting..."),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    Text {
        message: String,
        placeholder: String,
    },
    /// A text that is typed unseen.
    Secret {
        message: String,
    },
    /// A choice; the answer is the `id` of an option.
    Select {
        message: String,
        options: Vec<Choice>,
    },
    /// An authorization code, or the redirect address with one.
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
    /// Nobody can be asked; the sign-in goes on without an answer if possible.
    Nobody,
    /// The user cancelled the sign-in.
    Cancelled,
}
