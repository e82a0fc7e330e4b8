//! Tells hooks of the requests to providers, and lets them change the body.

use super::hook::{Flow, Hooked};
use crate::base::cancel::CancelToken;
use crate::base::json::{self, json};
use crate::llm::model::Model;
use crate::llm::options::{Header, Tap};
use serde_json::{Map, Value};
use std::sync::Arc;

const HEADERS: &str = "before_provider_headers";
const BODY: &str = "before_provider_request";
const ANSWER: &str = "after_provider_response";
const EVENT: &str = "provider_stream_event";

pub(super) struct HookTap {
    hooked: Hooked,
    model: Arc<Model>,
    cancel: CancelToken,
    takes_events: bool,
    /// True for requests of which handlers see nothing but the headers.
    is_summary: bool,
}

impl std::fmt::Debug for HookTap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HookTap")
    }
}

impl HookTap {
    /// A tap for requests to `model`; none if nobody wants to know of them.
    pub fn of(hooked: &Hooked, model: &Arc<Model>, cancel: &CancelToken) -> Option<Arc<dyn Tap>> {
        let takes_events = hooked.wants(EVENT);
        if !takes_events && ![HEADERS, BODY, ANSWER].iter().any(|event| hooked.wants(event)) {
            return None;
        }
        let (hooked, model, cancel) = (hooked.clone(), model.clone(), cancel.clone());
        Some(Arc::new(Self { hooked, model, cancel, takes_events, is_summary: false }))
    }

    /// A tap for requests of summaries, which are no part of the conversation.
    pub fn of_summary(hooked: Hooked, model: &Arc<Model>, cancel: &CancelToken) -> Option<Arc<dyn Tap>> {
        let (model, cancel) = (model.clone(), cancel.clone());
        let is_wanted = hooked.wants(HEADERS);
        is_wanted
            .then(|| Arc::new(Self { hooked, model, cancel, takes_events: false, is_summary: true }) as _)
    }
}

impl Tap for HookTap {
    fn headers(&self, configured: &[Header]) -> Option<Vec<Header>> {
        let mut changed = None;
        let fields = || {
            let headers = configured.iter().map(|(name, value)| (name.clone(), json!(value)));
            json!({"headers": headers.collect::<Map<_, Value>>()})
        };
        self.hooked.ask(HEADERS, fields, &self.cancel, &mut |event, result| {
            let mut result = result.unwrap_or_default();
            let Some(headers) = result.get_mut("headers").filter(|headers| !headers.is_null()) else {
                return Flow::Next;
            };
            let headers = headers.take();
            let read = |(name, value): (&String, &Value)| match value {
                Value::Null => Some((name.clone(), None)),
                value => Some((name.clone(), Some(value.as_str()?.to_owned()))),
            };
            match headers.as_object().and_then(|headers| headers.iter().map(read).collect()) {
                Some(read) => {
                    changed = Some(read);
                    event["headers"] = headers;
                    Flow::Next
                }
                None => Flow::Fault("\"headers\" must be an object of strings and nulls".into()),
            }
        });
        changed
    }

    fn wants_body(&self) -> bool {
        !self.is_summary && self.hooked.wants(BODY)
    }

    fn body(&self, body: &[u8]) -> Option<Map<String, Value>> {
        let payload: Value = json::parse(body).ok()?;
        let mut is_changed = false;
        let mut event =
            self.hooked.ask(BODY, || json!({"payload": payload}), &self.cancel, &mut |event, result| {
                if let Ok(Value::Object(mut result)) = result
                    && let Some(payload) = result.remove("payload")
                {
                    event["payload"] = payload;
                    is_changed = true;
                }
                Flow::Next
            })?;
        match event["payload"].take() {
            Value::Object(payload) if is_changed => Some(payload),
            _ => None,
        }
    }

    fn answered(&self, status: u16, headers: &[(String, String)]) {
        let fields = || {
            let headers = headers.iter().map(|(name, value)| (name.to_lowercase(), value.as_str().into()));
            json!({"status": status, "headers": headers.collect::<Map<_, Value>>()})
        };
        if !self.is_summary {
            self.hooked.tell(ANSWER, fields, &self.cancel);
        }
    }

    fn event(&self, data: &str) {
        // The mark at the end of a stream is no event.
        if !self.takes_events || data.starts_with("[DONE]") {
            return;
        }
        let fields = || {
            let data = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
            json!({"provider": self.model.provider, "api": self.model.api, "model": self.model.id, "data": data})
        };
        self.hooked.tell(EVENT, fields, &self.cancel);
    }
}
