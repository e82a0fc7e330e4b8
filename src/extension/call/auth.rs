//! `auth.*`: what an extension says to the user while it signs in at its provider.

use super::{Answer, Failure, INVALID_PARAMS, Params, cancelled, failed, unknown};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::extension::Instance;
use crate::extension::sign_in::News;
use crate::runtime::sign_in::{Choice, Event, Prompt};
use crossbeam_channel::{bounded, select};
use serde::Deserialize;

#[derive(Deserialize)]
struct OptionForm {
    id: String,
    label: String,
}

impl Params {
    /// Answers a call by which `instance` talks to the user of its sign-in.
    pub(super) fn talk(&self, instance: &Instance, method: &str, cancel: &CancelToken) -> Answer {
        let provider = self.text("provider")?;
        let login = instance.login(provider);
        let login = login.ok_or_else(|| failed(format_args!("No sign-in at {provider} is under way")))?;
        let owned = |name: &str| self.optional_text(name).map(|text| text.unwrap_or_default().to_owned());
        let event = match method {
            "auth.open" => {
                let url = self.text("url")?.to_owned();
                if !["https://", "http://"].iter().any(|scheme| url.starts_with(scheme)) {
                    return Err(Failure::new(INVALID_PARAMS, "\"url\" must begin with https:// or http://"));
                }
                match self.optional_text("userCode")? {
                    None => Event::Url { url, instructions: owned("instructions")? },
                    Some(code) => Event::DeviceCode {
                        user_code: code.to_owned(),
                        url,
                        expires_in_seconds: self.optional("expiresInSeconds")?.unwrap_or_default(),
                    },
                }
            }
            "auth.progress" => Event::Progress(self.text("message")?.to_owned()),
            "auth.prompt" => {
                let message = self.text("message")?.to_owned();
                let is_secret = self.optional_text("type")? == Some("secret");
                let prompt = match self.optional::<Vec<OptionForm>>("options")? {
                    _ if is_secret => Prompt::Secret { message },
                    Some(options) => {
                        let choice = |option: OptionForm| Choice { id: option.id, label: option.label };
                        Prompt::Select { message, options: options.into_iter().map(choice).collect() }
                    }
                    None => Prompt::Text { message, placeholder: owned("placeholder")? },
                };
                let (reply, replies) = bounded(1);
                login.send(News::Prompt(prompt, reply)).map_err(|_| cancelled())?;
                return select! {
                    recv(replies) -> reply => reply.map(|text| json!({"value": text})).map_err(|_| cancelled()),
                    recv(cancel.receiver()) -> _ => Err(cancelled()),
                };
            }
            _ => return unknown(method),
        };
        login.send(News::Event(event)).map_err(|_| cancelled())?;
        Ok(serde_json::Value::Null)
    }
}
