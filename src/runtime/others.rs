//! Models that do not chat, asked with the session's credentials: for scripts and extensions.

use super::control::Models;
use super::service::Services;
use crate::agent::run::Request;
use crate::base::cancel::CancelToken;
use crate::base::patience::patience;
use crate::llm::model::{Model, ModelType, ThinkingLevel};
use crate::models::local::{LLAMA_CPP, LLAMA_URL};
pub use crate::wire::ask::Input;
use crate::wire::ask::{Ask, Outcome};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for local servers.
const LOOK: Duration = Duration::from_secs(1);
/// The provider whose classifiers take no sign-in, only a key.
const KEYS_ONLY: &str = "openai";

impl Models<'_> {
    /// The models of a type, of one provider or of all.
    pub fn of_type(&self, kind: ModelType, provider: Option<&str>) -> Vec<Arc<Model>> {
        if kind == ModelType::Classifier && provider.is_none_or(|provider| provider == LLAMA_CPP) {
            self.look_for_llama_cpp();
        }
        let registry = &self.control.config().services.registry;
        let is_meant = |model: &Arc<Model>| provider.is_none_or(|provider| model.provider == provider);
        match kind {
            ModelType::Chat => registry.all().into_iter().filter(is_meant).collect(),
            _ => {
                let others = registry.others(provider).into_iter();
                others.filter(|model| ModelType::of(model) == kind).map(Arc::new).collect()
            }
        }
    }

    /// Those of them that a request can be sent to.
    pub fn available_of_type(&self, kind: ModelType, provider: Option<&str>) -> Vec<Arc<Model>> {
        if kind == ModelType::Chat {
            let is_meant = |model: &Arc<Model>| provider.is_none_or(|provider| model.provider == provider);
            return self.available().into_iter().filter(is_meant).collect();
        }
        let services = &self.control.config().services;
        let mut models = self.of_type(kind, provider);
        models.retain(|model| is_usable(services, model));
        models
    }

    /// Asks the llama.cpp server that the user configured for its models, unless they are known.
    fn look_for_llama_cpp(&self) {
        let config = self.control.config();
        let services = &config.services;
        if !services.registry.has_found(LLAMA_CPP) && services.credentials.local_env().has(LLAMA_URL) {
            self.find_local(patience(LOOK));
        }
    }

    pub fn find_of_type(&self, kind: ModelType, provider: &str, id: &str) -> Option<Arc<Model>> {
        match kind {
            ModelType::Chat => self.control.config().services.registry.find(provider, id),
            _ => self.of_type(kind, Some(provider)).into_iter().find(|model| model.id == id),
        }
    }

    /// Asks a model that does not chat.
    pub fn ask(&self, model: &Arc<Model>, input: &Input, cancel: &CancelToken) -> Outcome {
        let session = self.control.log().header().id.clone();
        let services = self.control.config().services.clone();
        match services.request(model, ThinkingLevel::Off, &session, cancel) {
            Ok(Request { model, options }) => Ask { model: &model, options: &options, cancel }.run(input),
            Err(error) => input.failed(model, error, cancel),
        }
    }
}

fn is_usable(services: &Services, model: &Model) -> bool {
    services.usable(&model.provider)
        && (model.provider != KEYS_ONLY || services.credentials.stored_sign_in(KEYS_ONLY).is_none())
}
