//! Applies an entry of `models.json` to a provider's models.
//!
//! Steps in order: the entry's base URL and `compat` switches apply to all existing models; each of `models`
//! replaces the model with its id or is added; `modelOverrides` changes single fields.
//!
//! Headers are not applied here, since their values must be resolved first (`Registry::configured`).

use super::config::ProviderConfig;
use crate::base::json::json;
use crate::llm::model::Model;
use serde_json::{Map, Value};

const CONTEXT_WINDOW: u64 = 128_000;
const MAX_TOKENS: u64 = 16_384;

/// Switches in `compat` that are tables, and are merged key by key.
const COMPAT_TABLES: [&str; 4] =
    ["openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs"];

/// Applies `config` to the models `base` of a provider.
pub fn compose(provider: &str, base: Vec<Model>, config: &ProviderConfig) -> Result<Vec<Model>, String> {
    if config.oauth.is_some() && config.base_url.is_none() {
        return Err("\"oauth\" needs a \"baseUrl\"".into());
    }
    if says_nothing(config) {
        return Err(
            "says nothing: give it \"baseUrl\", \"headers\", \"compat\", \"modelOverrides\" or \"models\""
                .into(),
        );
    }
    let mut models = base;
    for model in &mut models {
        of_provider(model, config);
    }
    for definition in &config.models {
        let model = define(provider, definition, config, &models)?;
        match models.iter_mut().find(|known| known.id == model.id) {
            Some(known) => *known = model,
            None => models.push(model),
        }
    }
    for model in &mut models {
        if let Some(change) = config.model_overrides.get(&model.id) {
            *model = apply_override(model, change)?;
        }
    }
    Ok(models)
}

/// Applies the base URL and the `compat` switches of a provider.
pub(super) fn of_provider(model: &mut Model, config: &ProviderConfig) {
    if let (Some(url), None) = (&config.base_url, &config.oauth) {
        model.base_url.clone_from(url);
    }
    if let Some(compat) = &config.compat {
        merge(model.compat.get_or_insert_default(), compat, &COMPAT_TABLES);
    }
}

/// True if nothing of an entry changes a model or a request.
pub(super) fn says_nothing(config: &ProviderConfig) -> bool {
    config.models.is_empty()
        && config.base_url.is_none()
        && config.headers.is_empty()
        && config.compat.is_none()
        && config.model_overrides.is_empty()
        && config.api_key.is_none()
        && config.oauth.is_none()
        && config.auth_header.is_none()
}

/// The model that `definition` describes. One of the `known` models supplies a missing protocol or base URL.
fn define(
    provider: &str,
    definition: &Map<String, Value>,
    config: &ProviderConfig,
    known: &[Model],
) -> Result<Model, String> {
    let text = |name: &str| definition.get(name).and_then(Value::as_str);
    let id = text("id").unwrap_or_default();
    let api = text("api").or(config.api.as_deref());
    let like = known
        .iter()
        .find(|model| model.id == id)
        .or_else(|| known.iter().find(|model| Some(model.api.as_str()) == api))
        .or_else(|| known.iter().find(|model| model.api == "openai-completions"))
        .or(known.first());
    let Some(api) = api.or(like.map(|model| model.api.as_str())) else {
        return Err(format!("model {id}: no \"api\", neither on the model nor on the provider"));
    };
    let base_url = text("baseUrl")
        .or(config.base_url.as_deref())
        .or(like.map(|model| model.base_url.as_str()))
        .filter(|url| !url.is_empty());
    let Some(base_url) = base_url else {
        return Err(format!("model {id}: no \"baseUrl\", neither on the model nor on the provider"));
    };
    for name in ["contextWindow", "maxTokens"] {
        let value = definition.get(name).and_then(Value::as_f64);
        if value.is_some_and(|number| number <= 0.0) {
            return Err(format!("model {id}: {name} must be above 0"));
        }
    }

    let mut model = definition.clone();
    model.remove("headers");
    model.insert("provider".into(), provider.into());
    model.insert("api".into(), api.into());
    model.insert("baseUrl".into(), base_url.into());
    let mut or = |name: &str, value: Value| {
        model.entry(name).or_insert(value);
    };
    or("name", id.into());
    or("input", json!(["text"]));
    or("contextWindow", CONTEXT_WINDOW.into());
    or("maxTokens", MAX_TOKENS.into());
    if let Some(Value::Object(own)) = model.get("compat") {
        let mut compat = config.compat.clone().unwrap_or_default();
        merge(&mut compat, own, &COMPAT_TABLES);
        model.insert("compat".into(), compat.into());
    } else if let Some(compat) = &config.compat {
        model.insert("compat".into(), compat.clone().into());
    }
    serde_json::from_value(model.into()).map_err(|error| format!("model {id}: {error}"))
}

/// `model` with the fields of a `modelOverrides` entry. Identity, protocol, base URL and headers cannot be
/// changed.
pub fn apply_override(model: &Model, change: &Value) -> Result<Model, String> {
    let mut json = serde_json::to_value(model).map_err(|error| error.to_string())?;
    if let (Some(json), Some(change)) = (json.as_object_mut(), change.as_object()) {
        for (name, value) in change {
            let tables: &[&str] = match name.as_str() {
                "id" | "provider" | "api" | "baseUrl" | "headers" => continue,
                "compat" => &COMPAT_TABLES,
                "inputLimits" => &["images", "resize"],
                _ => &[],
            };
            match (json.get_mut(name), value) {
                (Some(Value::Object(old)), Value::Object(new)) => merge(old, new, tables),
                _ => {
                    json.insert(name.clone(), value.clone());
                }
            }
        }
    }
    serde_json::from_value(json).map_err(|error| error.to_string())
}

/// Merges `change` into `base`: tables named in `tables` key by key, other values as a whole.
fn merge(base: &mut Map<String, Value>, change: &Map<String, Value>, tables: &[&str]) {
    for (name, value) in change {
        match (base.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) if tables.contains(&name.as_str()) => {
                merge(old, new, tables);
            }
            _ => {
                base.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::catalogue;

    fn config(json: Value) -> ProviderConfig {
        serde_json::from_value(json).unwrap()
    }

    fn as_json(model: &Model) -> Value {
        serde_json::to_value(model).unwrap()
    }

    #[test]
    fn a_model_of_ones_own_has_defaults() {
        let config = config(json!({"baseUrl": "http://localhost:11434/v1", "api": "openai-completions",
        "compat": {"supportsStore": false, "chatTemplateKwargs": {"a": 1}},
        "models": [
            {"id": "q:7b"},
            {"id": "r", "name": "R", "reasoning": true, "input": ["text", "image"], "contextWindow": 9,
             "maxTokens": 8, "headers": {"X": "$Y"}, "samplingParams": {"top_k": 5}, "later": 1,
             "compat": {"chatTemplateKwargs": {"b": 2}}, "baseUrl": "http://other"},
            {"id": "s", "api": "anthropic-messages"},
        ]}));
        let models = compose("ollama", Vec::new(), &config).unwrap();
        assert_eq!(
            as_json(&models[0]),
            json!({"id": "q:7b", "name": "q:7b", "api": "openai-completions", "provider": "ollama",
                "baseUrl": "http://localhost:11434/v1", "reasoning": false, "input": ["text"],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": 128_000, "maxTokens": 16_384,
                "compat": {"supportsStore": false, "chatTemplateKwargs": {"a": 1}}})
        );
        assert_eq!(
            as_json(&models[1]),
            json!({"id": "r", "name": "R", "api": "openai-completions", "provider": "ollama",
                "baseUrl": "http://other", "reasoning": true, "input": ["text", "image"],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": 9, "maxTokens": 8, "samplingParams": {"top_k": 5},
                "compat": {"supportsStore": false, "chatTemplateKwargs": {"a": 1, "b": 2}}, "later": 1})
        );
        assert_eq!(models[2].api, "anthropic-messages");
    }

    #[test]
    fn a_built_in_provider_keeps_its_models() {
        let base = catalogue::Section::of("zai").unwrap().models();
        let config = config(json!({"baseUrl": "http://proxy", "compat": {"supportsStore": true},
            "models": [{"id": "glm-4.7", "name": "Mine"}, {"id": "new"}]}));
        let models = compose("zai", base.clone(), &config).unwrap();
        let ids: Vec<_> = models.iter().map(|model| model.id.as_str()).collect();
        let mut expected: Vec<_> = base.iter().map(|model| model.id.as_str()).collect();
        expected.push("new");
        assert_eq!(ids, expected);
        for model in &models {
            assert_eq!(model.base_url, "http://proxy", "{}", model.id);
            assert_eq!(model.compat.as_ref().unwrap()["supportsStore"], true, "{}", model.id);
        }
        let at = |id| models.iter().find(|model| model.id == id).unwrap();
        assert_eq!((at("glm-4.7").name.as_str(), at("glm-4.7").context_window), ("Mine", 128_000));
        assert!(!at("glm-4.7").reasoning, "a definition starts afresh");
        assert_eq!(at("new").api, "openai-completions");
        assert_eq!(at("glm-5.2").compat.as_ref().unwrap()["thinkingFormat"], "zai");
    }

    #[test]
    fn an_override_changes_single_fields() {
        let base = vec![catalogue::find("anthropic", "claude-fable-5").unwrap()];
        let before = base[0].clone();
        let config = config(json!({"modelOverrides": {"unknown": {"name": "x"}, "claude-fable-5": {
            "name": "Mine", "thinkingLevelMap": {"off": "none", "low": null}, "contextWindow": 5,
            "cost": {"input": 1}, "promptCache": {"short": 7}, "samplingParams": {"top_p": 0.5},
            "inputLimits": {"images": {"maxPerMessage": 3, "resize": {"maxWidth": 9}}},
            "headers": {"X-A": "a"}, "compat": {"supportsTemperature": false},
            "id": "other", "provider": "other", "api": "other", "baseUrl": "other",
        }}}));
        let after = compose("anthropic", base, &config).unwrap().remove(0);
        let mut expected = as_json(&before);
        expected["name"] = "Mine".into();
        expected["thinkingLevelMap"]["off"] = "none".into();
        expected["thinkingLevelMap"]["low"] = Value::Null;
        expected["contextWindow"] = 5.into();
        expected["cost"]["input"] = 1.into();
        expected["promptCache"]["short"] = 7.into();
        expected["samplingParams"] = json!({"top_p": 0.5});
        expected["inputLimits"]["images"]["maxPerMessage"] = 3.into();
        expected["inputLimits"]["images"]["resize"]["maxWidth"] = 9.into();
        expected["compat"]["supportsTemperature"] = false.into();
        assert_eq!(as_json(&after), expected);
    }

    #[test]
    fn a_gateway_keeps_the_addresses_of_its_models() {
        let model = Model { id: "m".into(), base_url: "http://model".into(), ..Model::default() };
        let config = config(json!({"oauth": "radius", "baseUrl": "http://gateway"}));
        assert_eq!(compose("g", vec![model], &config).unwrap()[0].base_url, "http://model");
    }
}
