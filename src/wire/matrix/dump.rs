//! Writes the requests for given cases to a file, for `scripts/wire-compare`.

use crate::base::env::Env;
use crate::llm::context::Context;
use crate::llm::model::ThinkingLevel;
use crate::llm::options::{Access, Keys, StreamOptions};
use crate::llm::protocol::Api;
use crate::llm::secret::Secret;
use crate::models::Registry;
use crate::wire::{find, testing};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// A line of the file of cases.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    provider: String,
    id: String,
    level: String,
    messages: Value,
    key: String,
    session: String,
    env: HashMap<String, String>,
}

#[test]
#[ignore = "a part of scripts/wire-compare, which names the files"]
fn requests() {
    let env = Env::process();
    let path = |name: &str| env.get(name).unwrap_or_else(|| panic!("{name} is not set"));
    let cases = BufReader::new(File::open(path("PI_WIRE_CASES")).unwrap());
    let mut out = BufWriter::new(File::create(path("PI_WIRE_REQUESTS")).unwrap());
    let (registry, _) = Registry::load(Path::new("/nonexistent"));
    for line in cases.lines() {
        let case: Case = serde_json::from_str(&line.unwrap()).unwrap();
        writeln!(out, "{}", request(&registry, case).unwrap_or_else(|error| json!({"error": error})))
            .unwrap();
    }
    out.flush().unwrap();
}

fn request(registry: &Registry, case: Case) -> Result<Value, String> {
    let model = registry.find(&case.provider, &case.id).ok_or("no such model")?;
    let Some(Api::Wire(protocol)) = find(&model.api) else { return Err("no such protocol".to_owned()) };
    let messages = serde_json::from_value(case.messages).map_err(|error| error.to_string())?;
    let aws = (model.api == "bedrock-converse-stream").then(|| {
        let keys = Some(Keys::new("id", "secret", None));
        let endpoint = model.base_url.clone();
        Arc::new(Access { keys, region: "us-east-1".to_owned(), endpoint })
    });
    let options = StreamOptions {
        api_key: Some(Secret::new(case.key)),
        session_id: Some(case.session),
        thinking: ThinkingLevel::parse(&case.level).ok_or("no such level")?,
        env: case.env.into_iter().collect(),
        aws,
        ..StreamOptions::default()
    };
    let context = Context { messages };
    let request = testing::ask(&*protocol, &model, &context, &options).map_err(|error| error.message)?;
    let body: Value = serde_json::from_slice(&request.body).map_err(|error| error.to_string())?;
    let headers: HashMap<String, String> = request.headers.into_iter().collect();
    Ok(json!({"url": request.url, "headers": headers, "body": body}))
}
