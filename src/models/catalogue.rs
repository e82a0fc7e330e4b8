//! The models that are built in: what each provider of the reference offered on the day in the file.
//!
//! `catalogue.bin` is one deflated block of text for each provider, behind a short index; its format
//! is written down in `scripts/catalogue`, which makes it. Nothing is read before a model is asked
//! for, and then only its provider's block is inflated and its own line taken apart.
//!
//! Not here: what `models.json` adds or changes, and models found at run time (`llm::models`).

use crate::llm::model::{Cost, CostTier, Model};
use flate2::{Decompress, FlushDecompress};

static DATA: &[u8] = include_bytes!("catalogue.bin");

/// One provider's models, still packed.
#[derive(Clone, Copy)]
struct Block {
    provider: &'static str,
    packed: &'static [u8],
    text_bytes: usize,
}

fn blocks() -> impl Iterator<Item = Block> {
    let end = memchr::memmem::find(DATA, b"\n\n").unwrap_or(0);
    let (index, mut rest) = DATA.split_at(end);
    rest = rest.get(2..).unwrap_or_default();
    let index = std::str::from_utf8(index).unwrap_or_default();
    // The first line says where the data comes from.
    index.lines().skip(1).map_while(move |line| {
        let mut fields = line.split(' ');
        let provider = fields.next()?;
        let packed_bytes = fields.nth(1)?.parse().ok()?;
        let text_bytes = fields.next()?.parse().ok()?;
        let (packed, after) = rest.split_at_checked(packed_bytes)?;
        rest = after;
        Some(Block { provider, packed, text_bytes })
    })
}

/// When the data was made, in Unix milliseconds: the end of the day in the file.
pub fn made_at_ms() -> u64 {
    let line = DATA.split(|byte| *byte == b'\n').next();
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    let date = line.and_then(|line| line.split(' ').nth(2));
    let date: Vec<u64> =
        date.into_iter().flat_map(|date| date.split('-')).filter_map(|part| part.parse().ok()).collect();
    match date[..] {
        [year, month, day] => crate::llm::http::utc_ms(year, month, day + 1),
        _ => 0,
    }
}

/// The providers, in the order in which the first usable one is looked for.
pub fn providers() -> impl Iterator<Item = &'static str> {
    blocks().map(|block| block.provider)
}

/// One provider's models as text, from which single ones are taken.
pub struct Shelf {
    text: String,
    /// Where the rows begin.
    rows: usize,
}

/// A model on a [`Shelf`], not yet taken apart.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub id: &'a str,
    pub name: &'a str,
    /// Shape, context window, max tokens, cost.
    rest: &'a str,
}

impl Shelf {
    /// `None` for a provider that is not built in.
    pub fn open(provider: &str) -> Option<Self> {
        let block = blocks().find(|block| block.provider == provider)?;
        let mut text = Vec::with_capacity(block.text_bytes);
        Decompress::new(false).decompress_vec(block.packed, &mut text, FlushDecompress::Finish).ok()?;
        let text = String::from_utf8(text).ok()?;
        let rows = text.find("\n\n")? + 2;
        Some(Self { text, rows })
    }

    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let rows = self.text.get(self.rows..).unwrap_or_default();
        rows.lines().filter_map(|line| {
            let (id, line) = line.split_once('\t')?;
            let (name, rest) = line.split_once('\t')?;
            Some(Row { id, name, rest })
        })
    }

    pub fn model(&self, row: Row<'_>) -> Option<Model> {
        let shape: usize = row.rest.split('\t').next()?.parse().ok()?;
        let shape = self.shapes().nth(shape)?;
        row.fill(serde_json::from_str(shape).ok()?)
    }

    /// Every model, in the catalogue's order.
    pub fn models(&self) -> Vec<Model> {
        let shapes: Vec<Option<Model>> =
            self.shapes().map(|shape| serde_json::from_str(shape).ok()).collect();
        self.rows()
            .filter_map(|row| {
                let shape: usize = row.rest.split('\t').next()?.parse().ok()?;
                row.fill(shapes.get(shape)?.clone()?)
            })
            .collect()
    }

    fn shapes(&self) -> impl Iterator<Item = &str> {
        self.text.get(..self.rows).unwrap_or_default().lines()
    }
}

impl Row<'_> {
    /// `shape` with what is this model's own.
    fn fill(&self, mut shape: Model) -> Option<Model> {
        let mut columns = self.rest.split('\t').skip(1);
        shape.id = self.id.to_owned();
        shape.name = self.name.to_owned();
        shape.context_window = columns.next()?.parse().ok()?;
        shape.max_tokens = columns.next()?.parse().ok()?;
        shape.cost = cost(columns.next()?)?;
        Some(shape)
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

/// One model; only its line is taken apart.
pub fn find(provider: &str, id: &str) -> Option<Model> {
    let shelf = Shelf::open(provider)?;
    let row = shelf.rows().find(|row| row.id == id)?;
    shelf.model(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_model_of_every_provider_is_there() {
        let mut apis = BTreeMap::new();
        let (mut count, mut reasoning, mut images) = (0, 0, 0);
        assert_eq!(providers().count(), 41);
        for provider in providers() {
            let shelf = Shelf::open(provider).expect(provider);
            let models = shelf.models();
            assert_eq!(models.len(), shelf.rows().count(), "{provider}");
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
        assert_eq!((count, reasoning, images), (1495, 1232, 1015));
        let apis: Vec<_> = apis.iter().map(|(api, n)| (api.as_str(), *n)).collect();
        assert_eq!(
            apis,
            [
                ("anthropic-messages", 347),
                ("azure-openai-responses", 41),
                ("bedrock-converse-stream", 165),
                ("google-generative-ai", 29),
                ("google-vertex", 14),
                ("mistral-conversations", 33),
                ("openai-codex-responses", 8),
                ("openai-completions", 705),
                ("openai-responses", 123),
                ("pi-messages", 30),
            ]
        );
    }

    #[test]
    fn a_model_has_the_json_of_the_reference() {
        let json = |provider, id| serde_json::to_value(find(provider, id).unwrap()).unwrap();
        assert_eq!(
            json("zai", "glm-4.7"),
            serde_json::json!({
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
        let tiers = &json("openai", "gpt-5.5")["cost"]["tiers"];
        assert_eq!(tiers[0]["inputTokensAbove"], 272_000);
        let fable = json("anthropic", "claude-fable-5");
        assert_eq!(fable["promptCache"]["long"], 3600);
        assert_eq!(fable["inputLimits"]["images"]["resize"]["jpegQuality"], 80);
        assert_eq!(fable["thinkingLevelMap"]["off"], serde_json::Value::Null);
        assert_eq!(
            json("nvidia", "nvidia/nemotron-3-super-120b-a12b")["headers"]["NVCF-POLL-SECONDS"],
            "3600"
        );
        // The reference's requests to this provider say that they are another product's.
        assert!(json("github-copilot", "gpt-5.4").get("headers").is_none());
    }

    #[test]
    fn the_day_of_the_data_is_known() {
        assert_eq!(made_at_ms(), 1_790_121_600_000); // 2026-09-23
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
    fn the_file_stays_small() {
        assert!(DATA.len() < 100 * 1024, "{} bytes", DATA.len());
    }
}
