//! Models that do not chat: classifiers, which answer typed questions about JSON, and models that make images.
//!
//! They are no choice for a session. Scripts of `codemode` and extensions ask them (`wire::ask`).

use super::{Registry, catalogue, overlay};
use crate::llm::model::{Model, ModelType};
use crate::models::local::LLAMA_CPP;
use crate::wire::ask::LLAMA_CPP_API;

impl Registry {
    /// The models that do not chat, of one provider or of all: built-in ones, and those of a llama.cpp server, whose
    /// chat models are classifiers as well. A provider's base URL and `compat` of `models.json` apply.
    pub fn others(&self, provider: Option<&str>) -> Vec<Model> {
        let is_meant = |model: &Model| provider.is_none_or(|provider| model.provider == provider);
        let mut models: Vec<Model> = catalogue::others().filter(is_meant).collect();
        for model in &mut models {
            if let Some(config) = self.provider_config(&model.provider) {
                overlay::of_provider(model, config);
            }
        }
        let found = self.added.iter().filter(|(name, _)| name == LLAMA_CPP).flat_map(|(_, found)| found);
        models.extend(self.classifiers.iter().filter(|model| is_meant(model)).cloned());
        models.extend(found.filter(|model| is_meant(model)).map(as_classifier));
        models
    }
}

fn as_classifier(model: &Model) -> Model {
    let mut model = model.clone();
    model.api = LLAMA_CPP_API.to_owned();
    model.input = vec!["text".to_owned()];
    model.extra.insert("type".into(), ModelType::Classifier.name().into());
    model
}
