//! Tells hooks of the requests to providers, and lets them change the body.

use super::hook::{Flow, Hooked};
use crate::base::cancel::CancelToken;
use crate::base::json::{self, json};
use crate::llm::model::Model;
use crate::llm::options::Tap;
use serde_json::{Map, Value};
use std::sync::Arc;

const BODY: &str = "before_provider_request";
const ANSWER: &str = "after_provider_response";
const EVENT: &str = "provider_stream_event";

pub(super) struct HookTap {
    hooked: Hooked,
    model: Arc<Model>,
    cancel: CancelToken,
    takes_events: bool,
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
        if !takes_events && !hooked.wants(BODY) && !hooked.wants(ANSWER) {
            return None;
        }
        let (hooked, model, cancel) = (hooked.clone(), model.clone(), cancel.clone());
        Some(Arc::new(Self { hooked, model, cancel, takes_events }))
    }
}

impl Tap for HookTap {
    fn wants_body(&self) -> bool {
        self.hooked.wants(BODY)
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
        self.hooked.tell(ANSWER, fields, &self.cancel);
    }

    fn event(&self, data: &str) {
        if !self.takes_events {
            return;
        }
        let fields = || {
            let data = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
            json!({"provider": self.model.provider, "api": self.model.api, "model": self.model.id, "data": data})
        };
        self.hooked.tell(EVENT, fields, &self.cancel);
    }
}
