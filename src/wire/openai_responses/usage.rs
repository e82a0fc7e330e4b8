//! The usage of an answer, and its cost.

use crate::llm::message::Usage;
use crate::llm::model::Model;
use crate::wire::openai_responses::variant::Variant;
use crate::wire::parse::{Count, Object};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawUsage {
    input_tokens: Count,
    output_tokens: Count,
    total_tokens: Count,
    input_tokens_details: Object<InputDetails>,
    output_tokens_details: Object<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Count,
}

/// The usage in a response. Cached tokens are included in the input count, thinking tokens in the output
/// count. `tier` is the requested service tier.
pub fn of(response: &Value, variant: Variant, model: &Model, tier: Option<&str>) -> Option<Usage> {
    let raw = Object::<RawUsage>::deserialize(&response["usage"]).ok()?.0?;
    let details = raw.input_tokens_details.0.unwrap_or_default();
    let cache_read = details.cached_tokens.or_zero();
    let cache_write = details.cache_write_tokens.or_zero();
    let whole_input = raw.input_tokens.or_zero();
    let input = whole_input.saturating_sub(cache_read).saturating_sub(cache_write);
    let output = raw.output_tokens.or_zero();
    let thinking = raw.output_tokens_details.0.unwrap_or_default();
    let sum = [input, output, cache_read, cache_write].into_iter();
    let total = raw.total_tokens.or_zero();
    let mut usage = Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning: Some(thinking.reasoning_tokens.or_zero()),
        total_tokens: match total {
            0 => sum.fold(0, u64::saturating_add),
            total => total,
        },
        ..Usage::default()
    };
    model.price(&mut usage);
    let cost = &mut usage.cost;
    let factor = price_factor(variant, model, response["service_tier"].as_str(), tier);
    for amount in
        [&mut cost.input, &mut cost.output, &mut cost.cache_read, &mut cost.cache_write, &mut cost.total]
    {
        *amount *= factor;
    }
    Some(usage)
}

/// The factor by which the service tier changes the price.
fn price_factor(variant: Variant, model: &Model, served: Option<&str>, asked: Option<&str>) -> f64 {
    let paid = matches!(asked, Some("flex" | "priority" | "fast"));
    let tier = match (variant, served) {
        (Variant::Azure, _) => None,
        // Codex reports this tier for any request.
        (Variant::Codex, Some("default")) if paid => asked,
        (_, served) => served.or(asked),
    };
    match tier {
        Some("flex") => 0.5,
        Some("priority" | "fast") if model.id == "gpt-5.5" => 2.5,
        Some("priority" | "fast") => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    fn model(id: &str) -> Model {
        serde_json::from_value(json!({"id":id,"name":"","api":"","provider":"","baseUrl":"",
            "cost":{"input":1,"output":10,"cacheRead":0.1,"cacheWrite":2}}))
        .unwrap()
    }

    #[test]
    fn parts_are_told_apart_and_priced() {
        let response = json!({"usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":600,"cache_write_tokens":100},
            "output_tokens":50,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":1050}});
        let usage = of(&response, Variant::OpenAi, &model("m"), None).unwrap();
        let counts = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total_tokens];
        assert_eq!(counts, [300, 50, 600, 100, 1050]);
        assert_eq!(usage.reasoning, Some(20));
        let expected = (300.0 + 500.0 + 60.0 + 200.0) / 1e6;
        assert!((usage.cost.total - expected).abs() < 1e-12);

        for usage in [json!(null), json!([]), json!("x")] {
            assert!(of(&json!({ "usage": usage }), Variant::OpenAi, &model("m"), None).is_none());
        }
        let odd = json!({"usage":{"input_tokens":"x","input_tokens_details":[],"output_tokens":-1,"total_tokens":1e300}});
        let usage = of(&odd, Variant::OpenAi, &model("m"), None).unwrap();
        assert_eq!((usage.input, usage.output), (0, 0));
        let unsummed = json!({"usage":{"input_tokens":5,"output_tokens":2}});
        let usage = of(&unsummed, Variant::OpenAi, &model("m"), None).unwrap();
        assert_eq!(usage.total_tokens, 7);
    }

    #[test]
    fn tiers_change_the_price() {
        use Variant::{Azure, Codex, OpenAi};
        #[rustfmt::skip]
        let cases = [
            (OpenAi, "m", None, None, 1.0),
            (OpenAi, "m", Some("flex"), None, 0.5),
            (OpenAi, "m", Some("priority"), Some("auto"), 2.0),
            (OpenAi, "gpt-5.5", Some("priority"), None, 2.5),
            (OpenAi, "m", Some("fast"), None, 2.0),
            (OpenAi, "m", None, Some("flex"), 0.5),
            (OpenAi, "m", Some("default"), Some("priority"), 1.0),
            (Codex, "m", Some("default"), Some("priority"), 2.0),
            (Codex, "m", Some("default"), Some("auto"), 1.0),
            (Azure, "m", Some("priority"), None, 1.0),
        ];
        for (variant, id, served, asked, factor) in cases {
            let found = price_factor(variant, &model(id), served, asked);
            assert_eq!(found, factor, "{variant:?} {id} {served:?} {asked:?}");
        }
    }
}
