//! Sign-ins of extensions: the extension performs them, pi asks the user and keeps the credential.

use super::member::Member;
use super::registration::changes_models;
use super::request::Failed;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::secret::Secret;
use crate::runtime::sign_in::{Answer, Entry, Event, Interaction, LentSignIn, Prompt};
use crossbeam_channel::{Sender, bounded, select};
use serde_json::Value;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Time for a new token.
const RENEWAL_MAX: Duration = Duration::from_secs(60);
/// Time for the key of a request.
const KEY_MAX: Duration = Duration::from_secs(30);
/// News of a sign-in that wait to be shown.
const NEWS_MAX: usize = 64;

/// What the extension says to the user while it signs in.
pub enum News {
    Event(Event),
    /// A question. The reply is the text, or none where nobody can be asked; a question without a reply was dismissed.
    Prompt(Prompt, Sender<Option<String>>),
}

pub struct RemoteSignIn {
    pub member: Arc<dyn Member>,
    pub provider: String,
    pub label: String,
}

impl RemoteSignIn {
    fn ask(
        &self,
        method: &str,
        mut params: Value,
        limit: Duration,
        cancel: &CancelToken,
    ) -> Result<Value, StreamError> {
        let connection = self.member.connection().map_err(|failed| self.error(failed))?;
        (params["extension"], params["provider"]) = (self.member.id().into(), self.provider.as_str().into());
        connection.ask(method, params, Some(limit), cancel).map_err(|failed| self.error(failed))
    }

    fn error(&self, failed: Failed) -> StreamError {
        match failed {
            Failed::Cancelled => StreamError::new(ErrorKind::Aborted, "Login cancelled"),
            Failed::Over(how) => {
                StreamError::new(ErrorKind::Auth, format!("the extension {} {how}", self.member.name()))
            }
            failed => StreamError::new(ErrorKind::Auth, failed.to_string()),
        }
    }

    /// The credential that the extension gave, as an entry of auth.json.
    fn entry(&self, answer: Value) -> Result<Entry, StreamError> {
        let is_key =
            answer["type"] == "api_key" && answer["key"].as_str().is_some_and(|key| !key.trim().is_empty());
        let is_account = answer["access"].is_string() && answer["expires"].is_number();
        match answer {
            Value::Object(entry) if is_key => Ok(entry),
            Value::Object(mut entry) if is_account => {
                entry.insert("type".into(), "oauth".into());
                Ok(entry)
            }
            _ => {
                let name = self.member.name();
                let text = format!(
                    "the extension {name} gave a credential without \"access\" and \"expires\", or a \"key\" that is not empty"
                );
                Err(StreamError::new(ErrorKind::Auth, text))
            }
        }
    }
}

impl LentSignIn for RemoteSignIn {
    fn label(&self) -> &str {
        &self.label
    }

    fn login(&self, interaction: &dyn Interaction, cancel: &CancelToken) -> Result<Entry, StreamError> {
        let connection = self.member.connection().map_err(|failed| self.error(failed))?;
        let (sender, news) = bounded(NEWS_MAX);
        self.member.hear_login(&self.provider, Some(sender.clone()));
        // Cancelled by the user, by a dismissed question, and when no question needs an answer any more.
        let stop = cancel.child();
        let answered = thread::scope(|scope| {
            let params = json!({"extension": self.member.id(), "provider": self.provider});
            let open = connection.begin("provider.login", params, None, cancel)?;
            let answer = loop {
                select! {
                    recv(news) -> one => match one {
                        Ok(News::Event(event)) => interaction.tell(&event),
                        Ok(News::Prompt(prompt, reply)) => {
                            let cancel = stop.clone();
                            let ask = move || match interaction.ask(&prompt, &cancel) {
                                Answer::Text(text) => drop(reply.send(Some(text))),
                                Answer::Nobody => drop(reply.send(None)),
                                Answer::Cancelled => cancel.cancel(),
                            };
                            if Thread::named("sign-in question").start_in(scope, ask).is_err() {
                                stop.cancel();
                            }
                        }
                        // The sender lives as long as this function.
                        Err(_) => {}
                    },
                    recv(open.answer) -> answer => {
                        // What came before the answer.
                        for one in news.try_iter() {
                            if let News::Event(event) = one {
                                interaction.tell(&event);
                            }
                        }
                        break connection.answered(answer.ok());
                    }
                    recv(stop.receiver()) -> _ => {
                        connection.give_up(&open);
                        break Err(Failed::Cancelled);
                    }
                    recv(connection.over().receiver()) -> _ => break connection.at_end(&open),
                }
            };
            stop.cancel();
            answer
        });
        drop(sender);
        self.member.hear_login(&self.provider, None);
        self.entry(answered.map_err(|failed| self.error(failed))?)
    }

    fn renew(&self, entry: &Entry) -> Result<Entry, StreamError> {
        let params = json!({"credentials": entry});
        let answer = self.ask("provider.refresh", params, RENEWAL_MAX, &CancelToken::new())?;
        self.entry(answer)
    }

    fn key(&self, entry: &Entry, cancel: &CancelToken) -> Result<Secret, StreamError> {
        let answer = self.ask("provider.key", json!({"credentials": entry}), KEY_MAX, cancel)?;
        let key = answer["apiKey"].as_str().map(Secret::new);
        key.ok_or_else(|| {
            let text = format!("the extension {} gave no \"apiKey\"", self.member.name());
            StreamError::new(ErrorKind::Auth, text)
        })
    }

    fn changed(&self) {
        let mut entries = self.member.registration().providers.clone().into_iter();
        if entries.any(|entry| entry["name"] == *self.provider && changes_models(&entry)) {
            self.member.apply();
        }
    }
}
