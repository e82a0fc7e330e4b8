//! The built-in models, as offered by the reference's providers on the date in `catalogue.txt`.
//!
//! The header of `catalogue.txt` describes its format; `scripts/catalogue` generates it and `others.txt`, which has the
//! models that do not chat. Nothing is
//! parsed before a model is requested, and then only the lines of the requested provider.
//!
//! Not here: changes by `models.json`, and models found at run time (`models`).

use crate::llm::model::{Cost, CostTier, Model};
use memchr::memmem;
use serde_json::{Map, Value};

static TEXT: &str = include_str!("catalogue.txt");
static OTHERS: &str = include_str!("others.txt");

/// When the catalogue was made, in Unix milliseconds: the end of the day in its header.
pub fn made_at_ms() -> u64 {
    let date =
        TEXT.lines().find(|line| line.starts_with("# from: ")).and_then(|line| line.rsplit(' ').next());
    let date: Vec<u64> =
        date.into_iter().flat_map(|date| date.split('-')).filter_map(|part| part.parse().ok()).collect();
    match date[..] {
        [year, month, day] => crate::llm::http::utc_ms(year, month, day + 1),
        _ => 0,
    }
}

/// All providers, in the order in which the first usable one is searched for.
pub fn providers() -> impl Iterator<Item = &'static str> {
    providers_in(TEXT)
}

fn providers_in(text: &'static str) -> impl Iterator<Item = &'static str> {
    memmem::find_iter(text.as_bytes(), "\n[").filter_map(|at| {
        let (provider, _) = text.get(at + 2..)?.split_once(']')?;
        Some(provider)
    })
}

/// All models that do not chat. Each has its type in `extra`.
pub fn others() -> impl Iterator<Item = Model> {
    providers_in(OTHERS).filter_map(|provider| Section::within(OTHERS, provider)).flat_map(Section::models)
}

/// The catalogue lines of one provider.
#[derive(Clone, Copy)]
pub struct Section {
    /// The file.
    text: &'static str,
    provider: &'static str,
    /// Fields that most of the provider's models have in common.
    shared: &'static str,
    lines: &'static str,
}

/// A model in a [`Section`], not parsed yet.
#[derive(Clone, Copy)]
pub struct Row {
    pub id: &'static str,
    pub name: &'static str,
    kind: &'static str,
    /// Context window, maximum output tokens and cost, separated by tabs.
    numbers: &'static str,
}

impl Section {
    /// The lines of `provider`; `None` if it is not built in.
    pub fn of(provider: &str) -> Option<Self> {
        Self::within(TEXT, provider)
    }

    fn within(text: &'static str, provider: &str) -> Option<Self> {
        let mark = format!("\n[{provider}]");
        let start = memmem::find(text.as_bytes(), mark.as_bytes())?;
        let rest = text.get(start + mark.len()..)?;
        let rest = rest.get(..memmem::find(rest.as_bytes(), b"\n[").unwrap_or(rest.len()))?;
        let (shared, lines) = rest.split_once('\n')?;
        let provider = text.get(start + 2..start + mark.len() - 1)?;
        Some(Self { text, provider, shared, lines })
    }

    pub fn rows(self) -> impl Iterator<Item = Row> {
        self.lines.lines().filter_map(|line| {
            let (id, line) = line.split_once('\t')?;
            let (name, line) = line.split_once('\t')?;
            let (kind, numbers) = line.split_once('\t')?;
            Some(Row { id, name, kind, numbers })
        })
    }

    pub fn model(self, row: Row) -> Option<Model> {
        row.fill(self.kind(row.kind)?)
    }

    /// All models of the provider, in catalogue order.
    pub fn models(self) -> Vec<Model> {
        let mut kinds: Vec<(&str, Option<Model>)> = Vec::new();
        let models = self.rows().filter_map(|row| {
            let known = kinds.iter().find(|(kind, _)| *kind == row.kind).map(|(_, model)| model.clone());
            let model = known.unwrap_or_else(|| {
                let model = self.kind(row.kind);
                kinds.push((row.kind, model.clone()));
                model
            });
            row.fill(model?)
        });
        models.collect()
    }

    /// A model with the fields of its kind, but without id, name, limits and cost.
    fn kind(self, kind: &str) -> Option<Model> {
        let mut lines = self.lines.lines().filter_map(|line| line.strip_prefix(':'));
        let own = lines.find_map(|line| match line.split_once(' ') {
            Some((label, fields)) => (label == kind).then_some(fields),
            None => (line == kind).then_some(""),
        })?;
        let mut fields = Map::new();
        for name in ["id", "name"] {
            fields.insert(name.to_owned(), Value::from(""));
        }
        fields.insert("provider".to_owned(), Value::from(self.provider));
        self.add_fields(self.shared, &mut fields)?;
        self.add_fields(own, &mut fields)?;
        fields.retain(|_, value| !value.is_null());
        serde_json::from_value(Value::Object(fields)).ok()
    }

    /// Adds the fields of a line: names of shared field sets, then JSON.
    fn add_fields(self, line: &str, fields: &mut Map<String, Value>) -> Option<()> {
        let mut line = line.trim();
        while !line.is_empty() && !line.starts_with('{') {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let mark = format!("\n= {name} ");
            let start = memmem::find(self.text.as_bytes(), mark.as_bytes())? + mark.len();
            let named = self.text.get(start..)?.lines().next()?;
            fields.extend(serde_json::from_str::<Map<String, Value>>(named).ok()?);
            line = rest;
        }
        if !line.is_empty() {
            fields.extend(serde_json::from_str::<Map<String, Value>>(line).ok()?);
        }
        Some(())
    }
}

impl Row {
    /// Sets the id, name, limits and cost of `model`.
    fn fill(self, mut model: Model) -> Option<Model> {
        let mut columns = self.numbers.split('\t');
        model.id = self.id.to_owned();
        model.name = self.name.to_owned();
        model.context_window = columns.next()?.parse().ok()?;
        model.max_tokens = columns.next()?.parse().ok()?;
        model.cost = cost(columns.next()?)?;
        Some(model)
    }
}

fn cost(column: &str) -> Option<Cost> {
    let mut numbers = column.split(',');
    let rate = |text: Option<&str>| text?.parse::<f64>().ok();
    let mut cost = Cost {
        input: rate(numbers.next())?,
        output: rate(numbers.next())?,
        cache_read: rate(numbers.next())?,
        cache_write: rate(numbers.next())?,
        ..Cost::default()
    };
    while let Some(above) = numbers.next() {
        cost.tiers.push(CostTier {
            input_tokens_above: above.parse().ok()?,
            input: rate(numbers.next())?,
            output: rate(numbers.next())?,
            cache_read: rate(numbers.next())?,
            cache_write: rate(numbers.next())?,
        });
    }
    Some(cost)
}

/// Finds one model, parsing only its lines.
pub fn find(provider: &str, id: &str) -> Option<Model> {
    let section = Section::of(provider)?;
    section.model(section.rows().find(|row| row.id == id)?)
}

/// The first model of a provider.
pub fn first(provider: &str) -> Option<Model> {
    let section = Section::of(provider)?;
    section.model(section.rows().next()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::model::ModelType;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_model_of_every_provider_is_there() {
        let mut apis = BTreeMap::new();
        let (mut count, mut reasoning, mut images) = (0, 0, 0);
        assert_eq!(providers().count(), 42);
        for provider in providers() {
            let section = Section::of(provider).expect(provider);
            let models = section.models();
            assert_eq!(models.len(), section.rows().count(), "{provider}");
            let ids: BTreeSet<_> = models.iter().map(|model| &model.id).collect();
            assert_eq!(ids.len(), models.len(), "{provider}: an id twice");
            for model in &models {
                let label = format!("{provider}/{}", model.id);
                assert_eq!(model.provider, provider, "{label}");
                assert!(!model.id.is_empty() && !model.name.is_empty(), "{label}");
                assert!(model.context_window > 0 && model.max_tokens > 0, "{label}");
                assert!(model.input.iter().any(|kind| kind == "text"), "{label}");
                assert_eq!(find(provider, &model.id).as_ref(), Some(model), "{label}");
                *apis.entry(model.api.clone()).or_insert(0) += 1;
                count += 1;
                reasoning += usize::from(model.reasoning);
                images += usize::from(model.takes_images());
            }
        }
        assert_eq!((count, reasoning, images), (1643, 1403, 1216));
        let apis: Vec<_> = apis.iter().map(|(api, n)| (api.as_str(), *n)).collect();
        assert_eq!(
            apis,
            [
                ("anthropic-messages", 416),
                ("azure-openai-responses", 44),
                ("bedrock-converse-stream", 202),
                ("google-generative-ai", 32),
                ("google-vertex", 13),
                ("mistral-conversations", 34),
                ("openai-codex-responses", 8),
                ("openai-completions", 728),
                ("openai-responses", 131),
                ("pi-messages", 35),
            ]
        );
    }

    #[test]
    fn models_that_do_not_chat_are_kept_apart() {
        let count = |kind| others().filter(|model| ModelType::of(model) == kind).count();
        assert_eq!(
            (count(ModelType::Chat), count(ModelType::Classifier), count(ModelType::Image)),
            (0, 64, 66)
        );
        let mut apis: Vec<String> = others().map(|model| model.api).collect();
        apis.sort_unstable();
        apis.dedup();
        assert_eq!(
            apis,
            [
                "cloudflare-workers-ai-system-one",
                "openai-decisions",
                "openrouter-images",
                "typesafe-system-one"
            ]
        );
    }

    #[test]
    fn a_model_has_the_json_of_the_reference() {
        let json = |provider, id| serde_json::to_value(find(provider, id).unwrap()).unwrap();
        assert_eq!(
            json("zai", "glm-4.7"),
            crate::base::json::json!({
                "id": "glm-4.7", "name": "GLM-4.7", "api": "openai-completions", "provider": "zai",
                "baseUrl": "https://api.z.ai/api/coding/paas/v4", "reasoning": true, "input": ["text"],
                "cost": {"input": 0.6, "output": 2.2, "cacheRead": 0.11, "cacheWrite": 0},
                "compat": {
                    "supportsStore": false, "supportsDeveloperRole": false,
                    "supportsReasoningEffort": false, "maxTokensField": "max_tokens",
                    "thinkingFormat": "zai", "supportsStrictMode": true, "zaiToolStream": true
                },
                "contextWindow": 204_800, "maxTokens": 131_072
            })
        );
        let tiers = &json("azure", "gpt-5.5")["cost"]["tiers"];
        assert_eq!(tiers[0]["inputTokensAbove"], 272_000);
        let fable = json("anthropic", "claude-fable-5");
        assert_eq!(fable["promptCache"]["long"], 3600);
        assert_eq!(fable["inputLimits"]["images"]["resize"]["jpegQuality"], 80);
        assert_eq!(fable["thinkingLevelMap"]["off"], serde_json::Value::Null);
        assert_eq!(
            json("nvidia", "nvidia/nemotron-3-ultra-550b-a55b")["headers"]["NVCF-POLL-SECONDS"],
            "3600"
        );
        // The reference's headers for this provider claim to be another product.
        assert!(json("github-copilot", "gpt-6-sol").get("headers").is_none());
    }

    #[test]
    fn the_day_of_the_data_is_known() {
        assert_eq!(made_at_ms(), 1_794_355_200_000); // 2026-11-11
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for (provider, id) in
            [("", ""), ("nope", "x"), ("anthropic", ""), ("anthropic", "claude"), ("zai", "glm-4.7\tGLM")]
        {
            assert!(find(provider, id).is_none(), "{provider}/{id}");
        }
        assert!(providers().any(|name| name == "openai") && providers().all(|name| name != "OpenAI"));
    }

    #[test]
    fn the_file_can_be_read_and_stays_small() {
        assert!(TEXT.len() < 200 * 1024, "{} bytes", TEXT.len());
        for line in TEXT.lines() {
            let is_model = line.matches('\t').count() == 5;
            assert!(is_model || line.is_empty() || line.starts_with(['#', '=', '[', ':']), "{line}");
        }
    }
}
