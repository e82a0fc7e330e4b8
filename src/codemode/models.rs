//! The global `models` of scripts: listing models, and asking those that do not chat.

use super::run::Script;
use crate::llm::model::{Model, ModelType};
use crate::runtime::nested_calls::Status;
use crate::runtime::others::Input;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Its functions.
pub const NAMES: [&str; 5] =
    ["getModelsOfType", "getAvailableOfType", "getModelOfType", CLASSIFY, GENERATE_IMAGES];
const CLASSIFY: &str = "classify";
const GENERATE_IMAGES: &str = "generateImages";

/// Questions of a script that are asked at a time.
const ASKED_MAX: usize = 4;

/// Questions of a script to models.
pub struct Asking {
    /// Holds what is asked: full, whoever comes waits.
    places: (Sender<()>, Receiver<()>),
    /// Images that were made.
    made: AtomicUsize,
}

/// A question that is recorded.
pub struct Question {
    pub number: Value,
    model: Arc<Model>,
    input: Input,
    /// Its place among the recorded calls.
    at: usize,
}

impl Default for Asking {
    fn default() -> Self {
        Self { places: bounded(ASKED_MAX), made: AtomicUsize::new(0) }
    }
}

impl Asking {
    pub fn images_made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }
}

/// True for a function whose answer takes time.
pub fn is_question(name: &str) -> bool {
    matches!(name, CLASSIFY | GENERATE_IMAGES)
}

impl Script<'_> {
    /// Answers a function that lists models. None stands for undefined.
    pub(super) fn list_models(&self, name: &str, given: &[Value]) -> Result<Option<Value>, String> {
        let models = self.control.models();
        let kind = given.first().and_then(Value::as_str).and_then(ModelType::parse);
        let kind = kind.ok_or_else(|| {
            let given = given.first().unwrap_or(&Value::Null);
            format!("The type of a model is \"chat\", \"image\" or \"classifier\", not {given}")
        })?;
        if name == "getModelOfType" {
            let (Some(provider), Some(id)) =
                (given.get(1).and_then(Value::as_str), given.get(2).and_then(Value::as_str))
            else {
                return Err("models.getModelOfType() takes type, provider and id, three strings: \
                            models.getModelOfType(\"classifier\", \"typesafe\", \"jev-latest\")"
                    .into());
            };
            return Ok(models.find_of_type(kind, provider, id).as_deref().map(Model::for_scripts));
        }
        let provider = match given.get(1) {
            None | Some(Value::Null) => None,
            Some(provider) => Some(provider.as_str().ok_or("provider must be a string")?),
        };
        let found = match name {
            "getModelsOfType" => models.of_type(kind, provider),
            _ => models.available_of_type(kind, provider),
        };
        Ok(Some(found.iter().map(|model| model.for_scripts()).collect()))
    }

    /// Reads and records a question. The error is for the script.
    pub(super) fn begin_question(
        &self,
        number: Value,
        name: &str,
        given: &[Value],
    ) -> Result<Question, String> {
        let kind = if name == CLASSIFY { ModelType::Classifier } else { ModelType::Image };
        let (type_name, indefinite) = (kind.name(), kind.indefinite());
        let hint = format!("models.getAvailableOfType(\"{type_name}\") lists those that can be used.");
        let text = |name: &str| given.first().and_then(|model| model.get(name)?.as_str());
        let (Some(provider), Some(id)) = (text("provider"), text("id")) else {
            let unknown = match given.first() {
                None | Some(Value::Null) => {
                    " models.getModelOfType() gives undefined for a model that it does not know."
                }
                Some(_) => "",
            };
            return Err(format!("models.{name}() takes {indefinite} model first.{unknown} {hint}"));
        };
        let models = self.control.models();
        let Some(model) = models.find_of_type(kind, provider, id) else {
            let mut others = ModelType::ALL.into_iter().filter(|other| *other != kind);
            return Err(match others.find(|other| models.find_of_type(*other, provider, id).is_some()) {
                Some(other) => {
                    let other = other.indefinite();
                    format!("{provider}/{id} is {other} model, and {indefinite} model is needed. {hint}")
                }
                None => format!("There is no {type_name} model {provider}/{id}. {hint}"),
            });
        };
        let context = given.get(1).unwrap_or(&Value::Null);
        let input = match kind {
            ModelType::Image => Input::images(context),
            _ => Input::classify(context),
        }?;
        let at = self.calls().ask(&format!("models.{name}"), format!("{provider}/{id}"));
        self.publish();
        Ok(Question { number, model, input, at })
    }

    /// Asks the model, once there is a place, and gives the result.
    pub(super) fn answer_question(&self, question: &Question) -> Value {
        let Question { model, input, at, .. } = question;
        let has_place = select! {
            send(self.asking.places.0, ()) -> _ => true,
            recv(self.cancel.receiver()) -> _ => false,
        };
        let outcome = self.control.models().ask(model, input, &self.cancel);
        if has_place {
            let _ = self.asking.places.1.try_recv();
        }
        let output = outcome.result.get("output").and_then(Value::as_array);
        let images = output.into_iter().flatten().filter(|block| block["type"] == "image").count();
        self.asking.made.fetch_add(images, Ordering::Relaxed);
        let status = match outcome.result["stopReason"].as_str() {
            Some("stop") => Status::Ok,
            Some("aborted") => Status::Cancelled,
            _ => Status::Error,
        };
        {
            let mut calls = self.calls();
            calls.end(*at, status, outcome.result["errorMessage"].as_str().unwrap_or_default());
            if let Some(usage) = outcome.usage {
                calls.pay(*at, usage);
            }
        }
        self.publish();
        outcome.result
    }
}
