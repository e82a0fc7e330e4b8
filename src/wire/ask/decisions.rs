//! OpenAI's Decisions API: `POST {base URL}/decisions` with `model`, `input` and `questions`. Takes API keys only.
//!
//! Source: <https://developers.openai.com/api/docs/guides/decisions>.

use super::context::{Criteria, ImageBlock, Question};
use super::{Answer, Answered, Ask, CLASSIFIER_RETRIES, ClassifierContext, Failure, number, unexpected};
use crate::base::json::json;
use serde_json::{Map, Value};

pub const API: &str = "openai-decisions";
pub const LABEL: &str = "OpenAI Decisions";
const IMAGES_MAX: usize = 128;
/// What the gateway in front of the API answers after some five seconds: the same input takes as long again.
const GATEWAY_TIMEOUT: u16 = 504;

pub fn classify(ask: &Ask<'_>, context: &ClassifierContext, got: &mut Answer) -> Answered {
    let questions: Vec<Value> =
        context.questions.iter().map(|(id, question)| wire_question(id, question)).collect();
    let body = json!({"model": ask.model.id, "input": input(context)?, "questions": questions});
    let answer = ask.post("/decisions", &body, &[], CLASSIFIER_RETRIES, &[GATEWAY_TIMEOUT]);
    let answer = answer.map_err(|error| match error.status {
        Some(GATEWAY_TIMEOUT) => Failure::Text(format!(
            "{LABEL} error ({GATEWAY_TIMEOUT}): the gateway waits some five seconds, too short for very large inputs (from about \
             600,000 tokens)"
        )),
        _ => error.into(),
    })?;
    // Paid for, whatever the answers are.
    got.usage = ask.usage(answer.get("usage"));
    let answers = answer.get("answers").and_then(Value::as_array).ok_or_else(|| unexpected(LABEL))?;
    let mut taken = Map::new();
    for (id, question) in &context.questions {
        let answer = answers.iter().rfind(|answer| answer.get("name").is_some_and(|name| name == id));
        let answer = answer.ok_or_else(|| format!("{LABEL}: no answer to {id}"))?;
        taken.insert(id.clone(), take(id, question, answer)?);
    }
    got.fields.insert("answers".into(), taken.into());
    Ok(())
}

/// The state as JSON text; with images, a message with the text and the images.
fn input(context: &ClassifierContext) -> Result<Value, Failure> {
    let state = Value::from(context.state.clone()).to_string();
    if context.images.is_empty() {
        return Ok(state.into());
    }
    if context.images.len() > IMAGES_MAX {
        return Err(
            format!("{LABEL} takes up to {IMAGES_MAX} images; here are {}", context.images.len()).into()
        );
    }
    let image = |image: &ImageBlock| json!({"type": "input_image", "image_url": image.url()});
    let mut content = vec![json!({"type": "input_text", "text": state})];
    content.extend(context.images.iter().map(image));
    Ok(json!([{"role": "user", "content": content}]))
}

fn wire_question(name: &str, question: &Question) -> Value {
    let instructions = &question.instructions;
    match &question.criteria {
        Criteria::Choice(labels) => {
            let choice = |(value, meaning): &(String, String)| match meaning.is_empty() {
                true => json!({"value": value}),
                false => json!({"value": value, "description": meaning}),
            };
            let choices: Vec<Value> = labels.iter().map(choice).collect();
            json!({"type": "choice", "name": name, "instructions": instructions, "choices": choices})
        }
        Criteria::Score(levels) => {
            let levels: Vec<Value> = levels.iter().map(|level| json!({"label": level})).collect();
            json!({"type": "score", "name": name, "instructions": instructions, "levels": levels})
        }
        // A predicate has no field for what its values mean.
        Criteria::Bool { yes, no } => {
            let meanings =
                [("True", yes), ("False", no)].into_iter().filter(|(_, meaning)| !meaning.is_empty());
            let meanings = meanings.map(|(word, meaning)| format!("{word} means: {meaning}"));
            let meanings = meanings.collect::<Vec<_>>().join("\n");
            let all = [instructions.as_str(), meanings.as_str()];
            let all = all.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
            json!({"type": "predicate", "name": name, "instructions": all})
        }
    }
}

fn take(id: &str, question: &Question, answer: &Value) -> Result<Value, Failure> {
    let kind = answer.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind == "refusal" {
        return Err(format!("{LABEL}: the model refuses to answer {id}").into());
    }
    let number = |name: &str| number(LABEL, answer.get(name), &format!("{name} for {id}"));
    let missing = |what: &str| Failure::Text(format!("{LABEL}: the answer to {id} is no {what}"));
    match question.criteria {
        Criteria::Choice(_) => {
            let choice = answer.get("choice").and_then(Value::as_str).filter(|_| kind == "choice");
            let choice = choice.ok_or_else(|| missing("choice"))?;
            let invalid = || Failure::Text(format!("{LABEL}: the answer to {id} has no probabilities"));
            let mut probabilities = Map::new();
            for entry in answer.get("probabilities").and_then(Value::as_array).ok_or_else(invalid)? {
                let value = entry.get("value").and_then(Value::as_str).ok_or_else(invalid)?;
                let what = format!("probability for {id}.{value}");
                probabilities
                    .insert(value.to_owned(), super::number(LABEL, entry.get("probability"), &what)?);
            }
            let confidence = number("confidence")?;
            Ok(
                json!({"type": "choice", "choice": choice, "probabilities": probabilities, "confidence": confidence}),
            )
        }
        Criteria::Score(_) if kind == "score" => {
            Ok(json!({"type": "score", "score": number("score")?, "confidence": number("confidence")?}))
        }
        Criteria::Score(_) => Err(missing("score")),
        Criteria::Bool { .. } if kind == "predicate" => {
            Ok(json!({"type": "bool", "probability": number("probability")?}))
        }
        Criteria::Bool { .. } => Err(missing("predicate")),
    }
}
