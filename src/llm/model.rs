//! The properties of a model, in the JSON format of the reference's catalogue and `models.json`.

use super::message::{Extra, Usage, UsageCost, number};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The api of models that choose another model for each request.
pub const VIRTUAL_API: &str = "pi-virtual";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    pub id: String,
    pub name: String,
    /// The wire protocol, a key of the table in [`crate::wire`].
    pub api: String,
    pub provider: String,
    pub base_url: String,
    #[serde(default)]
    pub reasoning: bool,
    /// Maps a thinking level to the provider's name for it; `null` removes the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level_map: Option<Map<String, Value>>,
    /// `text`, `image`.
    #[serde(default)]
    pub input: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_limits: Option<InputLimits>,
    #[serde(default)]
    pub cost: Cost,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<Value>,
    /// Size of the context window in tokens.
    #[serde(default, with = "number::count")]
    pub context_window: u64,
    /// Maximum output tokens of one answer.
    #[serde(default, with = "number::count")]
    pub max_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_params: Option<Map<String, Value>>,
    /// Sampling parameters by thinking level, which override `sampling_params`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_params_by_thinking_level: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Map<String, Value>>,
    /// Compatibility switches; each protocol has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Map<String, Value>>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a model does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelType {
    #[default]
    Chat,
    Image,
    Classifier,
}

impl ModelType {
    pub const ALL: [Self; 3] = [Self::Chat, Self::Image, Self::Classifier];

    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Image => "image",
            Self::Classifier => "classifier",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name with its article.
    pub fn indefinite(self) -> &'static str {
        match self {
            Self::Chat => "a chat",
            Self::Image => "an image",
            Self::Classifier => "a classifier",
        }
    }

    pub fn of(model: &Model) -> Self {
        model.extra.get("type").and_then(Value::as_str).and_then(Self::parse).unwrap_or_default()
    }
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    #[serde(default, with = "number::amount")]
    pub input: f64,
    #[serde(default, with = "number::amount")]
    pub output: f64,
    #[serde(default, with = "number::amount")]
    pub cache_read: f64,
    #[serde(default, with = "number::amount")]
    pub cache_write: f64,
    /// Prices above a threshold. The highest threshold that the total input exceeds applies to the whole
    /// request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<CostTier>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CostTier {
    #[serde(default, with = "number::amount")]
    pub input: f64,
    #[serde(default, with = "number::amount")]
    pub output: f64,
    #[serde(default, with = "number::amount")]
    pub cache_read: f64,
    #[serde(default, with = "number::amount")]
    pub cache_write: f64,
    #[serde(with = "number::count")]
    pub input_tokens_above: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_request_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageLimits>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resize: Option<ImageResize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_message: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_request: Option<u64>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageResize {
    /// In pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_width: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_height: Option<u32>,
    /// Size in bytes after base64 encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// How much a model should think, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    #[default]
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl ThinkingLevel {
    pub const ALL: [Self; 7] =
        [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// Removes possible secrets from a URL: user, password, query and fragment.
pub fn shown_url(url: &str) -> Cow<'_, str> {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = plain.split_once("://").map_or(("", plain), |(scheme, rest)| (scheme, rest));
    let place = rest.find('/').unwrap_or(rest.len());
    match rest[..place].rfind('@') {
        Some(at) if scheme.is_empty() => Cow::Owned(rest[at + 1..].to_owned()),
        Some(at) => Cow::Owned(format!("{scheme}://{}", &rest[at + 1..])),
        None => Cow::Borrowed(plain),
    }
}

impl Model {
    /// The model without secrets in its base URL, for other programs.
    pub fn shown(&self) -> Cow<'_, Self> {
        let base_url = shown_url(&self.base_url);
        match base_url == self.base_url {
            true => Cow::Borrowed(self),
            false => Cow::Owned(Self { base_url: base_url.into_owned(), ..self.clone() }),
        }
    }

    /// The model for scripts and extensions: without secrets and headers, and for one that does not chat without what
    /// is meant for chats alone.
    pub fn for_scripts(&self) -> Value {
        let mut value = serde_json::to_value(self.shown()).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.shift_remove("headers");
            if ModelType::of(self) != ModelType::Chat {
                fields.shift_remove("reasoning");
                fields.retain(|name, value| !matches!(&**name, "contextWindow" | "maxTokens") || *value != 0);
            }
        }
        value
    }

    /// Placeholder for a missing model.
    pub fn none() -> Self {
        Self {
            id: "no-model".to_owned(),
            name: "no model".to_owned(),
            api: String::new(),
            provider: String::new(),
            base_url: String::new(),
            reasoning: false,
            thinking_level_map: None,
            input: Vec::new(),
            input_limits: None,
            cost: Cost::default(),
            prompt_cache: None,
            context_window: 0,
            max_tokens: 0,
            sampling_params: None,
            sampling_params_by_thinking_level: None,
            headers: None,
            compat: None,
            extra: Extra::new(),
        }
    }

    pub fn is_none(&self) -> bool {
        self.provider.is_empty()
    }

    /// True if a program chooses another model for each request.
    pub fn is_virtual(&self) -> bool {
        self.api == VIRTUAL_API
    }

    pub fn takes_images(&self) -> bool {
        self.input.iter().any(|kind| kind == "image")
    }

    /// The levels that the model supports, in ascending order. A model without reasoning supports only `off`;
    /// `xhigh` and `max` are supported only if `thinking_level_map` names them; `null` in the map removes a
    /// level.
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        if !self.reasoning {
            return vec![ThinkingLevel::Off];
        }
        let mapped =
            |level: ThinkingLevel| self.thinking_level_map.as_ref().and_then(|map| map.get(level.name()));
        ThinkingLevel::ALL
            .into_iter()
            .filter(|&level| match mapped(level) {
                Some(value) => !value.is_null(),
                None => level < ThinkingLevel::Xhigh,
            })
            .collect()
    }

    /// The nearest supported level: the next higher one, otherwise the highest.
    pub fn clamp_thinking(&self, wanted: ThinkingLevel) -> ThinkingLevel {
        let levels = self.thinking_levels();
        let above = levels.iter().copied().find(|&level| level >= wanted);
        above.or(levels.last().copied()).unwrap_or_default()
    }

    /// The provider's name for `level`, if `thinking_level_map` has one.
    pub fn thinking_word(&self, level: ThinkingLevel) -> Option<&str> {
        self.thinking_level_map.as_ref()?.get(level.name())?.as_str()
    }

    /// Sets `usage.cost` by the model's prices. One-hour cache writes cost twice the input price.
    #[allow(clippy::cast_precision_loss)] // token counts are far below 2^52
    pub fn price(&self, usage: &mut Usage) {
        let whole_input = usage.input + usage.cache_read + usage.cache_write;
        let cost = &self.cost;
        let tier = cost
            .tiers
            .iter()
            .filter(|tier| whole_input > tier.input_tokens_above)
            .max_by_key(|tier| tier.input_tokens_above);
        let (input, output, read, write) = match tier {
            Some(tier) => (tier.input, tier.output, tier.cache_read, tier.cache_write),
            None => (cost.input, cost.output, cost.cache_read, cost.cache_write),
        };
        let dollars = |tokens: u64, price: f64| price / 1_000_000.0 * tokens as f64;
        let long = usage.cache_write_1h.unwrap_or(0).min(usage.cache_write);
        let short = usage.cache_write - long;
        let mut sum = UsageCost {
            input: dollars(usage.input, input),
            output: dollars(usage.output, output),
            cache_read: dollars(usage.cache_read, read),
            cache_write: (write * short as f64 + input * 2.0 * long as f64) / 1_000_000.0,
            total: 0.0,
            total_from_provider: Some(false),
        };
        sum.total = sum.input + sum.output + sum.cache_read + sum.cache_write;
        usage.cost = sum;
    }
}

/// The present id of a provider, for its present or former id. Files of earlier versions contain former ids.
pub fn provider_id(name: &str) -> &str {
    former_provider_id("azure").filter(|former| *former == name).map_or(name, |_| "azure")
}

/// The id of a provider in earlier versions; `None` if the id has not changed.
pub fn former_provider_id(id: &str) -> Option<&'static str> {
    (id == "azure").then_some("azure-openai-responses")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    /// Checks the levels of a model, and to which level each of the seven is clamped, as in the reference.
    #[track_caller]
    fn check(map: Value, levels: &str, clamped: &str) {
        let model =
            Model { reasoning: true, thinking_level_map: map.as_object().cloned(), ..Model::default() };
        let words = |levels: Vec<ThinkingLevel>| -> String {
            let names: Vec<&str> = levels.into_iter().map(ThinkingLevel::name).collect();
            names.join(" ")
        };
        assert_eq!(words(model.thinking_levels()), levels, "{map}");
        let all = ThinkingLevel::ALL.map(|level| model.clamp_thinking(level));
        assert_eq!(words(all.to_vec()), clamped, "{map}");

        let silent = Model { reasoning: false, ..model };
        assert_eq!(silent.thinking_levels(), [ThinkingLevel::Off], "{map}");
        for level in ThinkingLevel::ALL {
            assert_eq!(silent.clamp_thinking(level), ThinkingLevel::Off, "{map}");
        }
    }

    #[test]
    fn addresses_are_shown_without_what_may_be_secret() {
        let rows = [
            ("https://host/v1", "https://host/v1"),
            ("https://me:p@ss@host:80/a@b?key=x#y", "https://host:80/a@b"),
            ("https://host?key=x@y", "https://host"),
            ("https://host#x", "https://host"),
            ("me:pass@host/v1", "host/v1"),
            ("", ""),
        ];
        for (url, shown) in rows {
            assert_eq!(shown_url(url), shown, "{url}");
        }
    }

    #[test]
    fn levels_and_what_they_are_clamped_to() {
        check(json!(null), "off minimal low medium high", "off minimal low medium high high high");
        check(
            json!({"off": null, "xhigh": "xhigh", "max": "max"}),
            "minimal low medium high xhigh max",
            "minimal minimal low medium high xhigh max",
        );
        check(
            json!({"max": "max"}),
            "off minimal low medium high max",
            "off minimal low medium high max max",
        );
        check(
            json!({"off": null, "minimal": null, "low": null, "medium": null, "high": "high", "xhigh": "xhigh"}),
            "high xhigh",
            "high high high high high xhigh xhigh",
        );
        check(
            json!({"off": "none", "minimal": null, "low": "low", "medium": null, "high": "high", "xhigh": null, "max": "max"}),
            "off low high max",
            "off low low high high max max",
        );
        check(
            json!({"off": null, "minimal": "MINIMAL", "low": null, "medium": null, "high": "HIGH"}),
            "minimal high",
            "minimal minimal high high high high high",
        );
        check(
            json!({"off": "none", "minimal": null, "low": "low", "medium": "medium", "high": null, "xhigh": null, "max": null}),
            "off low medium",
            "off low low medium medium medium medium",
        );
        check(
            json!({"off": null, "minimal": null, "low": null, "medium": null, "high": null, "xhigh": null, "max": "max"}),
            "max",
            "max max max max max max max",
        );
        check(
            json!({"off": null, "minimal": null, "low": null, "medium": null, "high": null}),
            "",
            "off off off off off off off",
        );
    }
}
