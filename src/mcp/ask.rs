//! The user, as servers and sign-ins reach him in a session: through the surface of the mode.

use crate::auth::oauth::{Answer, Event, Interaction, Prompt};
use crate::base::cancel::CancelToken;
use crate::runtime::ui::{Change, Dialog, Severity, Ui};
use std::sync::Arc;

/// The dialog of a sign-in.
pub struct SignIn {
    pub server: String,
    pub ui: Arc<dyn Ui>,
}

impl Interaction for SignIn {
    fn tell(&self, event: &Event) {
        let text = match event {
            Event::Url { url, instructions } => {
                format!("Sign in to the MCP server \"{}\":\n{url}\n{instructions}", self.server)
            }
            Event::DeviceCode { user_code, url, .. } => format!("Open {url} and enter the code {user_code}"),
            Event::Progress(text) => text.clone(),
        };
        self.ui.show(Change::Notify { message: text, severity: Severity::Info });
    }

    fn ask(&self, prompt: &Prompt, cancel: &CancelToken) -> Answer {
        let (Prompt::Text { message, placeholder } | Prompt::Code { message, placeholder }) = prompt else {
            return Answer::Nobody;
        };
        let dialog = Dialog::Input { title: message, placeholder: Some(placeholder) };
        match self.ui.ask(&dialog, None, cancel) {
            Some(text) => Answer::Text(text),
            // A surface without questions leaves the browser to answer.
            None if self.ui.is_attended() => Answer::Cancelled,
            None => Answer::Nobody,
        }
    }
}
