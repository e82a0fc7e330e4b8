//! Answers of programs that stand in for a server.
//!
//! Their events are those of the protocol `pi-messages`, and its decoder reads them.

use super::pi_messages::PiMessages;
use crate::base::json::json;
use crate::llm::event::{AssistantEvent, ErrorKind, StreamError};
use crate::llm::options::Outside;
use crate::llm::protocol::{Call, Decoder, Frame, Gone, Protocol, Source};
use serde_json::Value;
use std::sync::Arc;

pub struct ByOutside(pub Arc<dyn Outside>);

type Emit<'a> = dyn FnMut(AssistantEvent) -> Result<(), Gone> + 'a;

/// Passes the events on that the decoder has made. False if nobody reads them.
fn pass(events: &mut Vec<AssistantEvent>, emit: &mut Emit<'_>) -> bool {
    events.drain(..).all(|event| emit(event).is_ok())
}

impl Source for ByOutside {
    fn run(&self, call: &Call<'_>, emit: &mut Emit<'_>) {
        let Call { model, context, options, cancel } = call;
        let mut decoder = PiMessages.decoder(model, context, options);
        let mut events = vec![AssistantEvent::Start];
        let mut fault = None;
        let mut take = |decoder: &mut Box<dyn Decoder>, event: &Value, emit: &mut Emit<'_>| {
            let data = event.to_string();
            if let Err(error) = decoder.frame(Frame::Sse { event: "", data: &data }, &mut events) {
                fault = Some(error);
            }
            pass(&mut events, emit) && fault.is_none()
        };
        let request = json!({
            "model": model.shown(),
            "messages": context.messages,
            "thinkingLevel": options.thinking.name(),
            "maxTokens": options.max_tokens,
            "sessionId": options.session_id,
            "apiKey": options.api_key.as_ref().map(|key| key.expose()),
        });
        let answered = self.0.answer(request, cancel, &mut |event| take(&mut decoder, event, emit));
        let ended = match answered {
            Ok(last) => {
                take(&mut decoder, &last, emit);
                match fault {
                    Some(error) => Err(error),
                    None => decoder.end(&mut events),
                }
            }
            Err(why) => Err(StreamError::new(ErrorKind::Provider, why)),
        };
        if let Err(error) = ended {
            let is_aborted = cancel.is_cancelled();
            events.push(AssistantEvent::Error(if is_aborted { StreamError::aborted() } else { error }));
        }
        pass(&mut events, emit);
    }
}
