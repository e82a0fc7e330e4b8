//! Questions beside the conversation: what is asked and answered here never enters it.

use super::control::{Control, user_message};
use super::nested::Nested;
use crate::agent::message::AgentMessage;
use crate::base::cancel::CancelToken;
use crate::llm::message::{AssistantMessage, StopReason};

const ASIDE: &str = "This is a question beside the conversation. Answer it in words from what you know already; call no \
    tool. Then the conversation goes on without it.\n\n";

const HANDOFF: &str = "A new session begins, and its agent knows nothing of this conversation. Write the message that it \
    begins with, in the voice of the user: the goal below, and all of this conversation that matters for it and cannot \
    be seen in the files: decisions and their reasons, facts that were hard to find, files with what is in them, what is \
    done and what is left. Leave out all else. Write the message only, and call no tool.\n\nGoal: ";

impl Control {
    /// Answers a question from the context of the conversation.
    pub fn ask_aside(&self, question: &str, cancel: &CancelToken) -> Result<String, String> {
        self.answer_beside(format!("{ASIDE}{question}"), cancel)
    }

    /// Writes the prompt of a new session that goes on towards `goal`.
    pub fn write_handoff(&self, goal: &str, cancel: &CancelToken) -> Result<String, String> {
        if self.messages().is_empty() {
            return Err("There is nothing to hand over yet".into());
        }
        self.answer_beside(format!("{HANDOFF}{goal}"), cancel)
    }

    fn answer_beside(&self, text: String, cancel: &CancelToken) -> Result<String, String> {
        let snapshot = self.snapshot();
        self.config().services.check(&snapshot.model, cancel).map_err(|error| error.to_string())?;
        // The messages of the conversation come first and as they are, so that the provider's cache holds them.
        let question = self.hidden(user_message(text, Vec::new()));
        let mut messages: Vec<AgentMessage> = self.messages().to_vec();
        messages.push(question);
        let nested = Nested {
            model: snapshot.model,
            thinking: snapshot.thinking,
            max_tokens: None,
            system_prompt: None,
            tools: Vec::new(),
            messages,
        };
        let cancel = cancel.child();
        self.state().asides.push(cancel.clone());
        let answer = self.complete(nested, &cancel);
        self.state().asides.retain(|aside| !aside.is(&cancel));
        if let Some(limit) = self.helper_turn_ended(&answer.usage) {
            return Err(limit);
        }
        text_of(&answer)
    }
}

fn text_of(answer: &AssistantMessage) -> Result<String, String> {
    match answer.stop_reason {
        StopReason::Aborted => return Err("Aborted".into()),
        StopReason::Error => {
            let reason = answer.error_message.clone();
            return Err(reason.unwrap_or_else(|| "The request failed".into()));
        }
        _ => {}
    }
    let texts: Vec<&str> = answer.content.iter().filter_map(crate::llm::message::Block::as_text).collect();
    let text = texts.concat();
    match text.trim() {
        "" => Err("The model gave no answer in words".into()),
        text => Ok(text.to_owned()),
    }
}
