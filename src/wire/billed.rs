//! The cost of an answer as billed by OpenRouter.

use crate::llm::model::Model;
use serde_json::Value;

/// The fields of a usage that contain the bill. Used only for OpenRouter.
pub struct Bill<'a> {
    pub cost: &'a Value,
    pub is_byok: &'a Value,
    pub cost_details: &'a Value,
}

impl Bill<'_> {
    /// The cost of the answer in US dollars; `None` if the bill is incomplete.
    ///
    /// If the user's own vendor key was used (`is_byok`), the vendor's cost is added to OpenRouter's.
    pub fn total(&self, model: &Model) -> Option<f64> {
        if model.provider != "openrouter" && !model.base_url.contains("openrouter.ai") {
            return None;
        }
        let cost = amount(self.cost)?;
        if !self.is_byok.as_bool()? {
            return Some(cost);
        }
        let upstream = match self.cost_details.get("upstream_inference_cost")? {
            Value::Null => {
                let part = |name: &str| self.cost_details.get(name).and_then(amount);
                part("upstream_inference_prompt_cost")? + part("upstream_inference_completions_cost")?
            }
            cost => amount(cost)?,
        };
        Some(cost + upstream)
    }
}

fn amount(value: &Value) -> Option<f64> {
    value.as_f64().filter(|amount| amount.is_finite() && *amount >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn only_a_complete_bill_of_openrouter_counts() {
        let own = Model { provider: "openrouter".into(), ..Model::default() };
        let by_address = Model { base_url: "https://openrouter.ai/api/v1".into(), ..Model::default() };
        let rows = [
            (json!({"cost": 0.5, "is_byok": false}), Some(0.5)),
            (json!({"cost": 0, "is_byok": false}), Some(0.0)),
            (json!({"cost": 0.5}), None),
            (json!({"cost": -0.5, "is_byok": false}), None),
            (json!({"cost": "0.5", "is_byok": false}), None),
            (json!({"is_byok": false}), None),
            (json!({"cost": 0.5, "is_byok": true}), None),
            (json!({"cost": 0.5, "is_byok": true, "cost_details": {}}), None),
            (
                json!({"cost": 0.5, "is_byok": true, "cost_details": {"upstream_inference_cost": 0.25}}),
                Some(0.75),
            ),
            (
                json!({"cost": 0.5, "is_byok": true, "cost_details": {"upstream_inference_cost": null,
                    "upstream_inference_prompt_cost": 0.25, "upstream_inference_completions_cost": 1}}),
                Some(1.75),
            ),
            (json!({"cost": 0.5, "is_byok": true, "cost_details": {"upstream_inference_cost": null}}), None),
        ];
        for (usage, expected) in rows {
            let bill = Bill {
                cost: &usage["cost"],
                is_byok: &usage["is_byok"],
                cost_details: &usage["cost_details"],
            };
            assert_eq!(bill.total(&own), expected, "{usage}");
            assert_eq!(bill.total(&by_address), expected, "{usage}");
            assert_eq!(bill.total(&Model::default()), None, "{usage}");
        }
    }
}
