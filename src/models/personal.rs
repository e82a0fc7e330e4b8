//! The models of OpenRouter that a key may use, with the key's limits and prices, as OpenRouter lists them.
//!
//! The list of a key replaces the catalogue of the provider. In `models-store.json` it has no `lastModified`, as in
//! the reference.

use crate::base::cancel::CancelToken;
use crate::base::json;
use crate::llm::http;
use crate::llm::model::{Cost, CostTier, Model};
use crate::llm::secret::Secret;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// The provider that lists the models of a key.
pub const PROVIDER: &str = "openrouter";

const BASE_URL: &str = "https://openrouter.ai/api/v1";

/// Time limit of the request.
const PATIENCE: Duration = Duration::from_secs(15);

/// Returns the models of `catalogue` that `key` may use; `None` if the server at `base_url` does not list them,
/// like a proxy.
pub fn of_key(
    base_url: Option<&str>,
    key: &Secret,
    catalogue: Vec<Model>,
    cancel: &CancelToken,
) -> Result<Option<Vec<Model>>, String> {
    let url = format!("{}/models/user", base_url.unwrap_or(BASE_URL).trim_end_matches('/'));
    let bearer = format!("Bearer {}", key.expose());
    let headers = [("accept", "application/json"), ("authorization", bearer.as_str())];
    let reply = http::get(&url, &headers, PATIENCE, cancel).map_err(|error| error.message)?;
    match reply.status {
        200..=299 => narrowed(catalogue, &reply.body).map(Some),
        401 | 403 | 404 => Ok(None),
        status => Err(format!("OpenRouter model list request failed: {status}")),
    }
}

/// Leaves the models of `catalogue` that `body` lists, with the limits and prices that it has for them.
fn narrowed(catalogue: Vec<Model>, body: &[u8]) -> Result<Vec<Model>, String> {
    let invalid = || "Invalid OpenRouter model list response".to_owned();
    let list: Value = json::parse(body).map_err(|_| invalid())?;
    let list = list["data"].as_array().ok_or_else(invalid)?;
    let listed: HashMap<&str, &Value> =
        list.iter().filter_map(|entry| Some((entry["id"].as_str()?, entry))).collect();
    let models = catalogue.into_iter().filter_map(|mut model| {
        let entry = *listed.get(model.id.as_str())?;
        let provider = &entry["top_provider"];
        // A limit of 0 is unknown, too.
        let limit = |value: &Value| value.as_u64().filter(|limit| *limit > 0);
        let window = limit(&provider["context_length"]).or_else(|| limit(&entry["context_length"]));
        model.context_window = window.unwrap_or(model.context_window);
        model.max_tokens = limit(&provider["max_completion_tokens"]).unwrap_or(model.max_tokens);
        if entry["pricing"].is_object() {
            model.cost = cost(&entry["pricing"]);
        }
        Some(model)
    });
    let models: Vec<Model> = models.collect();
    match models.is_empty() {
        true => Err("The key may use none of the known models".to_owned()),
        false => Ok(models),
    }
}

/// Prices for a million tokens, from those for one. Prices that change with the time of day are left out.
fn cost(pricing: &Value) -> Cost {
    let input = price(&pricing["prompt"]).unwrap_or_default();
    let output = price(&pricing["completion"]).unwrap_or_default();
    let cache_read = price(&pricing["input_cache_read"]).unwrap_or_default();
    let cache_write = price(&pricing["input_cache_write"]).unwrap_or_default();
    let timed = ["utc_start", "utc_end", "utc_days"];
    let overrides = pricing["overrides"].as_array().into_iter().flatten();
    let tiers =
        overrides.filter(|tier| timed.iter().all(|name| tier.get(name).is_none())).filter_map(|tier| {
            Some(CostTier {
                input: price(&tier["prompt"]).unwrap_or(input),
                output: price(&tier["completion"]).unwrap_or(output),
                cache_read: price(&tier["input_cache_read"]).unwrap_or(cache_read),
                cache_write: price(&tier["input_cache_write"]).unwrap_or(cache_write),
                input_tokens_above: tier["min_prompt_tokens"].as_u64()?,
            })
        });
    let tiers = tiers.collect();
    Cost { input, output, cache_read, cache_write, tiers, ..Cost::default() }
}

/// The price of a million tokens, to six decimals; `None` without a price. A router to other models has -1.
fn price(per_token: &Value) -> Option<f64> {
    let per_token = per_token.as_f64().or_else(|| per_token.as_str()?.trim().parse().ok())?;
    (per_token >= 0.0).then(|| (per_token * 1e12).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    fn model(id: &str) -> Model {
        let cost = Cost { input: 9.0, ..Cost::default() };
        Model { id: id.into(), context_window: 1000, max_tokens: 100, cost, ..Model::default() }
    }

    /// Checks limits and prices of the model `m` when its entry has `fields`.
    #[track_caller]
    fn check(mut fields: Value, window: u64, output: u64, input: f64) {
        fields["id"] = "m".into();
        let body = json!({"data": [fields, {"id": "unknown"}, 3, {"id": 4}]}).to_string();
        let models = narrowed(vec![model("m"), model("other")], body.as_bytes()).unwrap();
        assert_eq!(models.len(), 1, "{fields}");
        let found = &models[0];
        assert_eq!(
            (found.context_window, found.max_tokens, found.cost.input),
            (window, output, input),
            "{fields}"
        );
    }

    #[test]
    fn a_key_has_its_own_limits_and_prices() {
        check(json!({}), 1000, 100, 9.0);
        check(json!({"context_length": 5, "top_provider": null}), 5, 100, 9.0);
        let provider = json!({"context_length": 7, "max_completion_tokens": 3});
        check(json!({"context_length": 5, "top_provider": provider}), 7, 3, 9.0);
        check(json!({"context_length": 0, "top_provider": {"max_completion_tokens": null}}), 1000, 100, 9.0);
        check(json!({"pricing": {"prompt": "0.0000025"}}), 1000, 100, 2.5);
        check(json!({"pricing": {"prompt": "-1"}}), 1000, 100, 0.0);
        check(json!({"pricing": {"prompt": "much"}}), 1000, 100, 0.0);
    }

    #[test]
    fn prices_of_long_prompts_are_tiers() {
        let pricing = json!({"prompt": "0.000001", "completion": "0.000004", "overrides": [
            {"min_prompt_tokens": 200_000, "prompt": "0.000002"},
            {"min_prompt_tokens": 1, "prompt": "1", "utc_start": "01:00"},
            {"prompt": "1"},
        ]});
        let tier = CostTier { input: 2.0, output: 4.0, input_tokens_above: 200_000, ..CostTier::default() };
        assert_eq!(cost(&pricing).tiers, [tier]);
    }

    #[test]
    fn something_else_is_not_a_list() {
        for body in ["", "3", "[]", "{}", r#"{"data": {}}"#, "<html>"] {
            assert!(narrowed(vec![model("m")], body.as_bytes()).is_err(), "{body}");
        }
    }
}
