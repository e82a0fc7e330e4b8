//! A running sign-in: its requests, and its dialog with the user.

use super::entry::{cancelled, failed};
use super::interaction::{Answer, Choice, Event, Interaction, Prompt};
use super::wire::Wire;
use crate::llm::event::StreamError;

/// A running sign-in.
pub(super) struct Flow<'a> {
    pub(super) wire: Wire<'a>,
    pub(super) interaction: &'a dyn Interaction,
}

impl Flow<'_> {
    pub(super) fn tell(&self, event: Event) {
        self.interaction.tell(&event);
    }

    pub(super) fn progress(&self, text: impl Into<String>) {
        self.tell(Event::Progress(text.into()));
    }

    /// Asks the user to choose an option, and returns its id. If nobody can be asked, returns the first
    /// option.
    pub(super) fn choose(
        &self,
        message: &str,
        options: &[(&'static str, &str)],
    ) -> Result<&'static str, StreamError> {
        let choices =
            options.iter().map(|(id, label)| Choice { id: (*id).to_owned(), label: (*label).to_owned() });
        let prompt = Prompt::Select { message: message.to_owned(), options: choices.collect() };
        let ids = || options.iter().map(|(id, _)| *id);
        let chosen = match self.interaction.ask(&prompt, self.wire.cancel) {
            Answer::Text(id) => ids().find(|known| *known == id.trim()),
            Answer::Nobody => ids().next(),
            Answer::Cancelled => return Err(cancelled()),
        };
        chosen.ok_or_else(no_such_way)
    }

    /// Asks the user for a line of text. If nobody can be asked, returns an empty line.
    pub(super) fn line(&self, message: &str, placeholder: &str) -> Result<String, StreamError> {
        self.typed(&Prompt::Text { message: message.to_owned(), placeholder: placeholder.to_owned() })
    }

    /// Asks the user for a text that is typed unseen. If nobody can be asked, returns an empty one.
    pub(super) fn secret(&self, message: &str) -> Result<String, StreamError> {
        self.typed(&Prompt::Secret { message: message.to_owned() })
    }

    fn typed(&self, prompt: &Prompt) -> Result<String, StreamError> {
        match self.interaction.ask(prompt, self.wire.cancel) {
            Answer::Text(line) => Ok(line.trim().to_owned()),
            Answer::Nobody => Ok(String::new()),
            Answer::Cancelled => Err(cancelled()),
        }
    }
}

pub(super) fn no_such_way() -> StreamError {
    failed("there is no such way to sign in")
}
