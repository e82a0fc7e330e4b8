//! System One, the protocol of TypeSafe's classifiers, which gateways and llama.cpp serve as well.
//!
//! `POST {base URL}/systemone` with `model`, `state` and `questions`; Cloudflare's Workers AI has `POST {base URL}/run`
//! with `model` and `input`, and wraps the answer. A question that is answered by yes or no has the type `noul` there.

use super::context::{Criteria, ImageBlock, Question};
use super::{Answer, Answered, Ask, CLASSIFIER_RETRIES, ClassifierContext, Failure, number, unexpected};
use crate::base::json::json;
use serde_json::{Map, Value};

/// Must be sent with images to TypeSafe's own server.
const IMAGES_HEADER: (&str, &str) = ("TypeSafe-Danger-Zone-Images", "true");
/// Images of a request in the form `images`.
const IMAGES_MAX: usize = 4;

pub const API: &str = "typesafe-system-one";
pub const CLOUDFLARE_API: &str = "cloudflare-workers-ai-system-one";

pub struct Service {
    pub label: &'static str,
    path: &'static str,
}

pub const TYPESAFE: Service = Service { label: "System One API", path: "/systemone" };
pub const CLOUDFLARE: Service = Service { label: "Cloudflare Workers AI", path: "/run" };

/// How images are sent (`compat.imageInput`).
#[derive(Clone, Copy)]
enum ImageInput {
    /// In the map `assets`, by names that the state contains.
    Assets,
    /// In a list of `data:` URLs.
    Images,
    /// As parts before the state, as OpenRouter takes them.
    StateUrls,
}

pub fn typesafe(ask: &Ask<'_>, context: &ClassifierContext, got: &mut Answer) -> Answered {
    // OpenRouter answers a request with assets, but drops them.
    let by_openrouter = ask.model.provider == "openrouter" || ask.model.base_url.contains("openrouter.ai");
    let input = if by_openrouter { ImageInput::StateUrls } else { ImageInput::Assets };
    let (mut request, needs_header) = request(ask, context, &TYPESAFE, input, !by_openrouter)?;
    request.shift_insert(0, "model".into(), ask.model.id.as_str().into());
    let headers = needs_header.then_some(IMAGES_HEADER);
    let answer = ask.post(TYPESAFE.path, &request.into(), headers.as_slice(), CLASSIFIER_RETRIES, &[])?;
    take(ask, context, &TYPESAFE, &answer, got)
}

pub fn cloudflare(ask: &Ask<'_>, context: &ClassifierContext, got: &mut Answer) -> Answered {
    let is_clef = ask.model.id.starts_with("@cf/cloudflare/clef");
    let input = if is_clef { ImageInput::Images } else { ImageInput::Assets };
    let (request, needs_header) = request(ask, context, &CLOUDFLARE, input, false)?;
    let body = json!({"model": ask.model.id, "input": request});
    let headers = needs_header.then_some(IMAGES_HEADER);
    let answer = ask.post(CLOUDFLARE.path, &body, headers.as_slice(), CLASSIFIER_RETRIES, &[])?;
    if answer.get("success") == Some(&Value::Bool(false)) {
        let errors = answer.get("errors").and_then(Value::as_array);
        let errors = errors.into_iter().flatten().filter_map(|error| error.get("message")?.as_str());
        let errors: Vec<&str> = errors.collect();
        return Err(match errors.is_empty() {
            true => format!("{}: the request failed", CLOUDFLARE.label),
            false => format!("{} error: {}", CLOUDFLARE.label, errors.join("; ")),
        }
        .into());
    }
    let result =
        answer.get("result").and_then(Value::as_object).ok_or_else(|| unexpected(CLOUDFLARE.label))?;
    // Models of others have a record of the run around their answer.
    let result = match result.get("state").map(|state| state.as_str().unwrap_or_default()) {
        _ if result.contains_key("answers") => result,
        Some("Completed") => {
            result.get("result").and_then(Value::as_object).ok_or_else(|| unexpected(CLOUDFLARE.label))?
        }
        state => {
            let state = state.unwrap_or("undefined");
            return Err(format!("{}: the run was not completed (state: {state})", CLOUDFLARE.label).into());
        }
    };
    take(ask, context, &CLOUDFLARE, result, got)
}

/// The request, and whether it needs [`IMAGES_HEADER`].
fn request(
    ask: &Ask<'_>,
    context: &ClassifierContext,
    service: &Service,
    usual: ImageInput,
    usual_header: bool,
) -> Result<(Map<String, Value>, bool), Failure> {
    let questions: Map<String, Value> =
        context.questions.iter().map(|(id, question)| (id.clone(), wire_question(question))).collect();
    let mut request = Map::new();
    request.insert("state".into(), context.state.clone().into());
    request.insert("questions".into(), questions.into());
    if context.images.is_empty() {
        return Ok((request, false));
    }
    let compat = ask.model.compat.as_ref();
    let chosen = compat.and_then(|compat| compat.get("imageInput")).and_then(Value::as_str);
    let input = match chosen {
        Some("assets") => ImageInput::Assets,
        Some("images") => ImageInput::Images,
        Some("state-image-urls") => ImageInput::StateUrls,
        _ => usual,
    };
    add_images(ask, &context.images, input, service, &mut request)?;
    let header = compat.and_then(|compat| compat.get("sendImageOptInHeader")).and_then(Value::as_bool);
    Ok((request, header.unwrap_or(usual_header)))
}

fn wire_question(question: &Question) -> Value {
    let instructions = &question.instructions;
    match &question.criteria {
        Criteria::Choice(labels) => {
            let labels: Map<String, Value> =
                labels.iter().map(|(label, meaning)| (label.clone(), meaning.as_str().into())).collect();
            json!({"type": "choice", "instructions": instructions, "criteria": labels})
        }
        Criteria::Score(levels) => json!({"type": "score", "instructions": instructions, "criteria": levels}),
        Criteria::Bool { yes, no } => {
            json!({"type": "noul", "instructions": instructions, "criteria": {"true": yes, "false": no}})
        }
    }
}

fn add_images(
    ask: &Ask<'_>,
    images: &[ImageBlock],
    input: ImageInput,
    service: &Service,
    request: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let (label, id) = (service.label, &ask.model.id);
    let refused = |image: &ImageBlock, accepted: &str| {
        Failure::Text(format!("{label} takes {accepted} images for {id}; this is {}", image.mime_type))
    };
    let state = request.get("state").cloned().unwrap_or_default();
    let before_state = |mut parts: Vec<Value>| {
        parts.push(state);
        Value::from(parts)
    };
    match input {
        ImageInput::Images => {
            if images.len() > IMAGES_MAX {
                let count = images.len();
                return Err(
                    format!("{label} takes up to {IMAGES_MAX} images for {id}; here are {count}").into()
                );
            }
            let is_known =
                |image: &&ImageBlock| matches!(&*image.mime_type, "image/png" | "image/jpeg" | "image/webp");
            if let Some(image) = images.iter().find(|image| !is_known(image)) {
                return Err(refused(image, "PNG, JPEG, and WebP"));
            }
            request.insert("images".into(), images.iter().map(ImageBlock::url).collect());
        }
        ImageInput::StateUrls => {
            let part = |image: &ImageBlock| json!({"type": "image_url", "image_url": {"url": image.url()}});
            request.insert("state".into(), before_state(images.iter().map(part).collect()));
        }
        ImageInput::Assets => {
            let mut assets = Map::new();
            for (at, image) in images.iter().enumerate() {
                let format = match &*image.mime_type {
                    "image/png" => "png",
                    "image/jpeg" => "jpeg",
                    _ => return Err(refused(image, "PNG and JPEG")),
                };
                let asset = json!({"type": "image", "format": format, "data_base64": image.data});
                assets.insert(format!("<image-{}>", at + 1), asset);
            }
            let names = assets.keys().map(|name| name.as_str().into()).collect();
            request.insert("state".into(), before_state(names));
            request.insert("assets".into(), assets.into());
        }
    }
    Ok(())
}

fn take(
    ask: &Ask<'_>,
    context: &ClassifierContext,
    service: &Service,
    answer: &Map<String, Value>,
    got: &mut Answer,
) -> Answered {
    // Paid for, whatever the answers are.
    got.usage = ask.usage(answer.get("usage"));
    let label = service.label;
    let answers = answer.get("answers").and_then(Value::as_object).ok_or_else(|| unexpected(label))?;
    let mut taken = Map::new();
    for (id, question) in &context.questions {
        let answer = answers.get(id).and_then(Value::as_object);
        let answer = answer.ok_or_else(|| format!("{label}: no answer to {id}"))?;
        taken.insert(id.clone(), take_answer(label, id, question, answer)?);
    }
    got.fields.insert("answers".into(), taken.into());
    Ok(())
}

fn take_answer(
    label: &str,
    id: &str,
    question: &Question,
    answer: &Map<String, Value>,
) -> Result<Value, Failure> {
    let kind = answer.get("type").and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str, what: &str| number(label, answer.get(name), &format!("{what} for {id}"));
    let missing = |what: &str| Failure::Text(format!("{label}: the answer to {id} is no {what}"));
    match question.criteria {
        Criteria::Choice(_) => {
            let choice = answer.get("choice").and_then(Value::as_str).filter(|_| kind == "choice");
            let choice = choice.ok_or_else(|| missing("choice"))?;
            let told = answer.get("probabilities").and_then(Value::as_object);
            let told = told.ok_or_else(|| format!("{label}: the answer to {id} has no probabilities"))?;
            let mut probabilities = Map::new();
            for (key, value) in told {
                let value = super::number(label, Some(value), &format!("probability for {id}.{key}"))?;
                probabilities.insert(key.clone(), value);
            }
            let confidence = number("confidence", "confidence")?;
            Ok(
                json!({"type": "choice", "choice": choice, "probabilities": probabilities, "confidence": confidence}),
            )
        }
        Criteria::Score(_) if kind == "score" => {
            let (score, confidence) = (number("score", "score")?, number("confidence", "confidence")?);
            Ok(json!({"type": "score", "score": score, "confidence": confidence}))
        }
        Criteria::Score(_) => Err(missing("score")),
        Criteria::Bool { .. } if kind == "noul" => {
            Ok(json!({"type": "bool", "probability": number("noul", "probability")?}))
        }
        Criteria::Bool { .. } => Err(missing("bool")),
    }
}
