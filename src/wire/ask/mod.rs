//! Requests to models that do not chat: classifiers answer typed questions about JSON, others make images.
//!
//! A request is a JSON object, and so is its answer: nothing is streamed. What comes of it is an object for scripts and
//! extensions, in the reference's format: a failure is its `stopReason` and `errorMessage`.
//!
//! | api | module | server |
//! |---|---|---|
//! | `typesafe-system-one`, `cloudflare-workers-ai-system-one` | `system_one` | TypeSafe, gateways, llama.cpp |
//! | `openai-decisions` | `decisions` | OpenAI |
//! | `llama-cpp-classify` | `llama` | a chat model of a llama.cpp server |
//! | `openrouter-images` | `images` | OpenRouter |

mod context;
mod decisions;
mod images;
mod llama;
mod system_one;

use super::endpoint::{self, Headers};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::{self, Request, Secrets, Target};
use crate::llm::message::{Usage, now_ms};
use crate::llm::model::Model;
use crate::llm::options::{Resend, StreamOptions};
use crate::llm::stream::Next;
use context::{ClassifierContext, ImageBlock};
pub use llama::API as LLAMA_CPP_API;
use serde_json::{Map, Value};
pub use system_one::API as SYSTEM_ONE_API;

/// Repetitions of a question to a classifier that failed for the moment, if the settings name none.
const CLASSIFIER_RETRIES: u64 = 2;

/// What a model is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Classify(ClassifierContext),
    /// Text blocks, and image blocks to edit or to refer to, for images to make.
    Images(Vec<Value>),
}

/// A request to a model that does not chat.
pub struct Ask<'a> {
    pub model: &'a Model,
    pub options: &'a StreamOptions,
    pub cancel: &'a CancelToken,
}

/// What a server answers: the fields of the result, and what it cost.
#[derive(Default)]
struct Answer {
    fields: Map<String, Value>,
    usage: Option<Usage>,
}

type Answered = Result<(), Failure>;

/// Why there is no answer.
enum Failure {
    /// The server, or the way to it.
    Request(StreamError),
    /// What the server answered, or what it was to be asked.
    Text(String),
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        Self::Request(error)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// What came of a request.
pub struct Outcome {
    /// In the format of the reference.
    pub result: Value,
    pub usage: Option<Usage>,
}

impl Input {
    /// Reads questions to a classifier. The error says what is wrong, and which shape is expected.
    pub fn classify(context: &Value) -> Result<Self, String> {
        ClassifierContext::parse(context).map(Self::Classify)
    }

    /// Reads what images are made from. The error says what is wrong, and which shape is expected.
    pub fn images(context: &Value) -> Result<Self, String> {
        let failed = |problem: String| {
            format!(
                "models.generateImages(): {problem}. The context is {{ input: [{{ type: \"text\", text: <prompt> }}, \
                 ...optional {{ type: \"image\", data: <base64>, mimeType }} references] }}. See: pi docs codemode"
            )
        };
        let input = context.get("input").and_then(Value::as_array).filter(|input| !input.is_empty());
        let input =
            input.ok_or_else(|| failed("context.input must be a list of blocks, and not empty".into()))?;
        let is_text = |block: &Value| block["type"] == "text" && block["text"].is_string();
        match input.iter().position(|block| !is_text(block) && ImageBlock::parse(block).is_none()) {
            Some(at) => Err(failed(format!("context.input[{at}] must be a text or image block"))),
            None => Ok(Self::Images(input.clone())),
        }
    }

    /// The field of the answer, and its value if there is none.
    fn answer(&self) -> (&'static str, Value) {
        match self {
            Self::Classify(_) => ("answers", json!({})),
            Self::Images(_) => ("output", json!([])),
        }
    }

    /// What came of a request that could not be made.
    pub fn failed(&self, model: &Model, error: StreamError, cancel: &CancelToken) -> Outcome {
        self.outcome(model, Answer::default(), Err(Failure::Text(error.message)), "", cancel)
    }

    fn outcome(
        &self,
        model: &Model,
        got: Answer,
        done: Answered,
        label: &str,
        cancel: &CancelToken,
    ) -> Outcome {
        let (name, none) = self.answer();
        let mut result = json!({"api": model.api, "provider": model.provider, "model": model.id});
        result[name] = none;
        let Answer { fields, usage } = got;
        if let Some(usage) = &usage {
            result["usage"] = serde_json::to_value(usage).unwrap_or_default();
        }
        result["stopReason"] = "stop".into();
        match done {
            Ok(()) => fields.into_iter().for_each(|(name, value)| result[name] = value),
            Err(failure) => {
                result["stopReason"] = if cancel.is_cancelled() { "aborted" } else { "error" }.into();
                let message = match failure {
                    Failure::Request(error) => format!("{label} error: {}", error.message),
                    Failure::Text(text) => text,
                };
                result["errorMessage"] = message.into();
            }
        }
        result["timestamp"] = now_ms().into();
        Outcome { result, usage }
    }
}

impl Ask<'_> {
    pub fn run(&self, input: &Input) -> Outcome {
        let mut got = Answer::default();
        let (label, done) = match input {
            Input::Classify(context) => self.classify(context, &mut got),
            Input::Images(blocks) => match self.model.api.as_str() {
                images::API => (images::LABEL, images::make(self, blocks, &mut got)),
                _ => (images::LABEL, Err(self.unknown_api("image"))),
            },
        };
        input.outcome(self.model, got, done, label, self.cancel)
    }

    fn classify(&self, context: &ClassifierContext, got: &mut Answer) -> (&'static str, Answered) {
        let Model { provider, id, api, .. } = self.model;
        if !context.images.is_empty() && !self.model.takes_images() {
            return ("", Err(format!("{provider}/{id} takes no images").into()));
        }
        match api.as_str() {
            SYSTEM_ONE_API => (system_one::TYPESAFE.label, system_one::typesafe(self, context, got)),
            system_one::CLOUDFLARE_API => {
                (system_one::CLOUDFLARE.label, system_one::cloudflare(self, context, got))
            }
            decisions::API => (decisions::LABEL, decisions::classify(self, context, got)),
            LLAMA_CPP_API => (llama::LABEL, llama::classify(self, context, got)),
            _ => ("", Err(self.unknown_api("classifier"))),
        }
    }

    fn unknown_api(&self, kind: &str) -> Failure {
        Failure::Text(format!("There is no {kind} api {:?} here", self.model.api))
    }

    /// Posts an object to the base URL followed by `path`, and reads the object that answers. Repeats what failed for
    /// the moment, `retries` times if the settings name no number; never after a status in `finals`.
    fn post(
        &self,
        path: &str,
        body: &Value,
        more: &[(&str, &str)],
        retries: u64,
        finals: &[u16],
    ) -> Result<Map<String, Value>, StreamError> {
        let url = endpoint::url(self.model, self.options, path)?;
        self.post_to(&url, body, more, retries, finals)
    }

    fn post_to(
        &self,
        url: &str,
        body: &Value,
        more: &[(&str, &str)],
        retries: u64,
        finals: &[u16],
    ) -> Result<Map<String, Value>, StreamError> {
        let mut headers = Headers::json("application/json");
        headers.set_bearer(self.options);
        more.iter().for_each(|(name, value)| headers.set(name, *value));
        headers.merge_model(self.model.headers.as_ref());
        let headers = headers.finish(self.model, self.options, &["authorization"])?;
        let body = serde_json::to_vec(body).map_err(|error| protocol(&error))?;
        let secrets = Secrets::new(&self.options.vault);
        let no_address = || StreamError::new(ErrorKind::Request, format!("{url} is no address of a server"));
        let target = url.parse().ok().and_then(|uri| Target::new(&uri)).ok_or_else(no_address)?;
        let request = Request {
            headers,
            body: &body,
            timeout: self.options.clocks.first,
            secrets,
            env: &self.options.env,
            ..Request::new(url)
        };
        let count = if self.options.resend.count == 0 { retries } else { self.options.resend.count };
        let resend = Resend { count, ..self.options.resend };
        let mut attempt = 0;
        loop {
            let (error, advice) = match http::ask(&request, self.cancel) {
                Ok(reply) if reply.is_ok() => return object(reply.json()),
                Ok(reply) => {
                    let mut error = http::status_error(reply.status, &reply.headers, &reply.body, &target);
                    error.message = request.secrets.hide(&error.message).into_owned();
                    (error, reply.header("x-should-retry").map(str::to_owned))
                }
                Err(error) => (error, None),
            };
            if error.status.is_some_and(|status| finals.contains(&status)) {
                return Err(error);
            }
            match resend.after(attempt, error, advice.as_deref()) {
                Next::Fail(error) => return Err(error),
                Next::Wait(time) if self.cancel.wait_timeout(time) => return Err(StreamError::aborted()),
                Next::Wait(_) => attempt += 1,
            }
        }
    }

    /// The usage that a server tells of, at the model's prices.
    fn usage(&self, told: Option<&Value>) -> Option<Usage> {
        let count =
            |name: &str| told.and_then(|told| told.get(name)).map(|count| count.as_u64().unwrap_or(0));
        let (input, output) = (count("input_tokens"), count("output_tokens"));
        if input.is_none() && output.is_none() {
            return None;
        }
        let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
        let mut usage = Usage { input, output, total_tokens: input + output, ..Usage::default() };
        self.model.price(&mut usage);
        Some(usage)
    }
}

fn object(value: Option<Value>) -> Result<Map<String, Value>, StreamError> {
    match value {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Err(StreamError::new(ErrorKind::Protocol, "the answer is no JSON object")),
    }
}

fn protocol(error: &dyn std::fmt::Display) -> StreamError {
    StreamError::new(ErrorKind::Protocol, error.to_string())
}

/// A finite number of an answer.
fn number(label: &str, value: Option<&Value>, what: &str) -> Result<Value, Failure> {
    let is_number = |value: &&Value| value.as_f64().is_some_and(f64::is_finite);
    let value = value.filter(is_number).cloned();
    value.ok_or_else(|| format!("{label}: the {what} is no number").into())
}

fn unexpected(label: &str) -> Failure {
    Failure::Text(format!("{label}: the answer has another shape than expected"))
}
