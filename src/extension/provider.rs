//! Providers of extensions: their models, and answers that an extension streams. Virtual models of extensions.

use super::account::OfAccount;
use super::member::Member;
use super::registration::changes_models;
use super::request::Failed;
use super::sign_in::RemoteSignIn;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::model::Model;
use crate::llm::options::Outside;
use crate::runtime::lent::{self, LentModels, Provider, Router, VirtualModel};
use crate::runtime::service::Services;
use crossbeam_channel::{bounded, select};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Events that wait for the thread of a request.
const EVENTS_MAX: usize = 256;
/// Time for the models of an account.
const MODELS_MAX: Duration = Duration::from_secs(30);

/// Answers requests with the stream of an extension.
struct RemoteProvider {
    member: Arc<dyn Member>,
    name: String,
}

impl fmt::Debug for RemoteProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteProvider({})", self.name)
    }
}

/// Chooses models with an extension.
struct RemoteRouter(Arc<dyn Member>);

impl Router for RemoteRouter {
    fn owner(&self) -> &str {
        self.0.id()
    }

    fn route(&self, mut request: Value, cancel: &CancelToken) -> Result<Value, String> {
        let member = &self.0;
        request["extension"] = member.id().into();
        let asked =
            member.connection().and_then(|connection| connection.ask("model.route", request, None, cancel));
        asked.map_err(|failed| explain(member, failed))
    }
}

/// The models of an instance, and what is wrong with others.
pub fn models(member: &Arc<dyn Member>) -> (LentModels, Vec<String>) {
    let (providers, mut problems) = providers(member);
    let services = member.services();
    let mut virtual_models = Vec::new();
    for entry in &member.registration().virtual_models {
        match virtual_model(entry, &services) {
            Ok(model) => {
                virtual_models.push(VirtualModel { model, router: Arc::new(RemoteRouter(member.clone())) });
            }
            Err(why) => problems.push(why),
        }
    }
    (LentModels { providers, virtual_models }, problems)
}

/// Reads the registration of a virtual model, which must not have the name of another model.
pub fn virtual_model(entry: &Value, services: &Services) -> Result<Model, String> {
    let model = lent::virtual_model(entry)?;
    match services.registry.find(&model.provider, &model.id) {
        Some(known) if !known.is_virtual() => Err(format!(
            "The virtual model {}/{} has the name of a model that there is",
            model.provider, model.id
        )),
        _ => Ok(model),
    }
}

/// Why an extension did not answer.
fn explain(member: &Arc<dyn Member>, failed: Failed) -> String {
    match failed {
        Failed::Over(how) => format!("the extension {} {how}", member.name()),
        failed => failed.to_string(),
    }
}

/// The providers of an instance, and what is wrong with others.
fn providers(member: &Arc<dyn Member>) -> (Vec<Provider>, Vec<String>) {
    let (mut providers, mut problems) = (Vec::new(), Vec::new());
    for entry in &member.registration().providers {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        let mut provider = match Provider::read(entry.clone()) {
            Ok(provider) => provider,
            Err(why) => {
                problems.push(why);
                continue;
            }
        };
        if entry["oauth"].is_object() {
            let label = entry["oauth"]["name"].as_str().unwrap_or(&name).to_owned();
            let sign_in = RemoteSignIn { member: member.clone(), provider: name.clone(), label };
            provider.sign_in = Some(Arc::new(sign_in));
            if let Some(changed) = with_models_of_account(member, &provider) {
                (provider.config, provider.entry) = (changed.config, changed.entry);
            }
        }
        if entry["streams"] == true {
            provider.outside = Some(Arc::new(RemoteProvider { member: member.clone(), name }));
        }
        providers.push(provider);
    }
    (providers, problems)
}

/// Asks an extension for the models of stored accounts, where they are not known. Gives what went wrong.
pub fn ask_for_accounts(member: &Arc<dyn Member>) -> Vec<String> {
    let mut problems = Vec::new();
    for entry in &member.registration().providers {
        let Ok(provider) = Provider::read(entry.clone()) else { continue };
        let credentials = member.services().credentials.stored_sign_in(&provider.name);
        let Some(credentials) = credentials.filter(|_| changes_models(entry)) else { continue };
        if member.of_accounts().find(&provider.entry, &credentials).is_some() {
            continue;
        }
        match ask_for_account(member, &provider, &credentials) {
            Err(why) => problems.push(format!("provider.models: {why}")),
            Ok(models) => member.of_accounts().put(OfAccount { entry: provider.entry, credentials, models }),
        }
    }
    problems
}

fn ask_for_account(
    member: &Arc<dyn Member>,
    provider: &Provider,
    credentials: &Value,
) -> Result<Value, Failed> {
    let mut registry = member.services().registry;
    registry.lend(vec![(provider.name.clone(), provider.config.clone())]);
    let models: Vec<Value> =
        registry.models_of(&provider.name).iter().map(|model| json!(model.shown())).collect();
    let params = json!({"extension": member.id(), "provider": provider.name, "credentials": credentials,
        "models": models});
    let mut answer =
        member.connection()?.ask("provider.models", params, Some(MODELS_MAX), &CancelToken::new())?;
    Ok(answer["models"].take())
}

/// The provider with the models that its extension named for the stored account; none without a sign-in.
fn with_models_of_account(member: &Arc<dyn Member>, provider: &Provider) -> Option<Provider> {
    let credentials = member.services().credentials.stored_sign_in(&provider.name)?;
    let mut entry = provider.entry.clone();
    entry["models"] = member.of_accounts().find(&provider.entry, &credentials)?;
    Provider::read(entry).ok()
}

impl Outside for RemoteProvider {
    fn answer(
        &self,
        mut request: Value,
        cancel: &CancelToken,
        event: &mut dyn FnMut(&Value) -> bool,
    ) -> Result<Value, String> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let stream = format!("s{}", LAST.fetch_add(1, Ordering::Relaxed) + 1);
        let connection = self.member.connection().map_err(|failed| failed.to_string())?;
        request["extension"] = self.member.id().into();
        (request["provider"], request["stream"]) = (self.name.as_str().into(), stream.as_str().into());
        let (sender, events) = bounded(EVENTS_MAX);
        self.member.attend(&stream, sender);
        let answered = connection.begin("provider.stream", request, None, cancel).and_then(|open| {
            loop {
                select! {
                    recv(events) -> one => if let Ok(one) = one && !event(&one) {
                        connection.give_up(&open);
                        return Err(Failed::Cancelled);
                    },
                    recv(open.answer) -> answer => {
                        // Events that came before the answer.
                        let _ = events.try_iter().all(|one| event(&one));
                        return connection.answered(answer.ok());
                    }
                    recv(cancel.receiver()) -> _ => {
                        connection.give_up(&open);
                        return Err(Failed::Cancelled);
                    }
                    recv(connection.over().receiver()) -> _ => return connection.at_end(&open),
                }
            }
        });
        self.member.leave(&stream);
        let answer = answered.map_err(|failed| explain(&self.member, failed))?;
        Ok(last_event(&answer))
    }
}

/// The last event of a stream, out of the result `stopReason`, `usage`, `errorMessage`, `responseId`.
fn last_event(answer: &Value) -> Value {
    let reason = answer["stopReason"].as_str().unwrap_or("stop");
    let mut event = match reason {
        "error" | "aborted" => {
            json!({"type": "error", "reason": reason, "errorMessage": answer["errorMessage"]})
        }
        reason => json!({"type": "done", "reason": reason}),
    };
    for name in ["usage", "responseId"] {
        if !answer[name].is_null() {
            event[name] = answer[name].clone();
        }
    }
    event
}
