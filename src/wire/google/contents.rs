//! Converts the conversation to contents: turns of `user` and `model`, made of parts.
//!
//! Google's rules: a call follows a user turn or results, never another turn of the model; all results of a
//! turn are together, directly after it; no part is empty.

use super::family;
use crate::llm::body::Items;
use crate::llm::model::Model;
use crate::wire::google::variant::Google;
use crate::wire::ids;
use crate::wire::transcript::Transcript;
use crate::wire::transform::{Assistant, AssistantBlock, CallResult, Part, Turn, User, text_of, transform};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

const SEE_IMAGE: &str = "(see attached image)";
const IMAGES_FOLLOW: &str = "Tool result image:";

/// Maximum length of a call id, in characters.
const ID_LIMIT: usize = 64;

/// Replaces the signature of a call without one, such as a call by another model: Gemini 3 rejects unsigned
/// calls.
const UNSIGNED: &str = "skip_thought_signature_validator";
/// [`UNSIGNED`] for Vertex AI, which accepts only base64 as a signature.
const UNSIGNED_BASE64: &str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";

#[derive(Serialize)]
struct WireContent<'a> {
    role: &'static str,
    parts: Vec<WirePart<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    args: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    response: Response<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<WirePart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Response<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

struct Converter {
    ids: bool,
    images_in_results: bool,
    /// The placeholder for a missing signature; `None` for models that need no signatures.
    unsigned: Option<&'static str>,
}

pub fn convert<'a>(api: Google, model: &Model, transcript: &Transcript<'a>, items: &mut Items<'_>) {
    let converter = Converter {
        ids: family::takes_call_ids(&model.id),
        images_in_results: family::takes_images_in_results(&model.id),
        unsigned: family::wants_signatures(&model.id).then_some(match api {
            Google::GenerativeAi => UNSIGNED,
            Google::Vertex => UNSIGNED_BASE64,
        }),
    };
    let call_id = |id: &str| {
        if converter.ids { ids::plain(id, ID_LIMIT) } else { id.to_owned() }
    };
    let mut contents: Vec<WireContent<'a>> = Vec::new();
    for turn in transform(transcript.context, &transcript.messages, model, &call_id) {
        // The last one may be continued.
        items.extend(contents.drain(..contents.len().saturating_sub(1)));
        match turn {
            // The prompt contains the system messages.
            Turn::System(_) => {}
            Turn::User(user) => add(&mut contents, "user", user_parts(user)),
            Turn::Assistant(answer) => {
                let parts = converter.answer_parts(answer);
                match contents.last_mut() {
                    Some(last) if last.role == "model" => last.parts.extend(parts),
                    _ => add(&mut contents, "model", parts),
                }
            }
            Turn::Results(results) => {
                let (parts, images) = converter.result_parts(results);
                add(&mut contents, "user", parts);
                add(&mut contents, "user", images);
            }
        }
    }
    items.extend(contents);
}

fn add<'a>(contents: &mut Vec<WireContent<'a>>, role: &'static str, parts: Vec<WirePart<'a>>) {
    if !parts.is_empty() {
        contents.push(WireContent { role, parts });
    }
}

fn user_parts(user: User<'_>) -> Vec<WirePart<'_>> {
    let parts = user.parts.into_iter();
    let parts = parts.filter(|part| *part != Part::Text(""));
    parts.map(WirePart::of).collect()
}

impl<'a> WirePart<'a> {
    fn of(part: Part<'a>) -> Self {
        let mut wire = Self::default();
        match part {
            Part::Text(text) => wire.text = Some(text),
            Part::Image(image) => {
                wire.inline_data = Some(InlineData { mime_type: &image.mime_type, data: &image.data });
            }
        }
        wire
    }
}

impl Converter {
    fn answer_parts<'a>(&self, answer: Assistant<'a>) -> Vec<WirePart<'a>> {
        let mut parts = Vec::with_capacity(answer.blocks.len());
        let mut is_first_call = true;
        for block in answer.blocks {
            match block {
                AssistantBlock::Text { text, signature } => parts.extend(said(text, signature, None)),
                AssistantBlock::Thinking { text, signature, .. } => {
                    parts.extend(said(text, signature, Some(true)))
                }
                AssistantBlock::Call(call) => {
                    // Of parallel calls only the first is signed.
                    let unsigned = self.unsigned.filter(|_| is_first_call);
                    is_first_call = false;
                    parts.push(WirePart {
                        thought_signature: legal_signature(call.thought_signature).or(unsigned),
                        function_call: Some(FunctionCall {
                            id: self.ids.then_some(call.id),
                            name: call.name,
                            args: call.arguments,
                        }),
                        ..WirePart::default()
                    });
                }
            }
        }
        parts
    }

    /// The parts for results, and the images that must follow them in a separate turn.
    fn result_parts<'a>(&self, results: Vec<CallResult<'a>>) -> (Vec<WirePart<'a>>, Vec<WirePart<'a>>) {
        let mut parts = Vec::with_capacity(results.len());
        let mut outside = Vec::new();
        for result in results {
            let text = text_of(&result.parts);
            let images = result.parts.into_iter();
            let images = images.filter(|part| matches!(part, Part::Image(_)));
            let mut images: Vec<WirePart<'a>> = images.map(WirePart::of).collect();
            let text = match (text.trim().is_empty(), images.is_empty()) {
                (true, false) => Cow::Borrowed(SEE_IMAGE),
                _ => Cow::Owned(text),
            };
            if !self.images_in_results && !images.is_empty() {
                outside.push(WirePart::of(Part::Text(IMAGES_FOLLOW)));
                outside.append(&mut images);
            }
            parts.push(WirePart {
                function_response: Some(FunctionResponse {
                    id: self.ids.then_some(result.call_id),
                    name: result.name,
                    response: if result.is_error { Response::Error(text) } else { Response::Output(text) },
                    parts: images,
                }),
                ..WirePart::default()
            });
        }
        (parts, outside)
    }
}

/// A text or thinking part. Blank text is sent only if it has a signature, which the model needs back.
fn said<'a>(text: &'a str, signature: Option<&'a str>, thought: Option<bool>) -> Option<WirePart<'a>> {
    let signature = legal_signature(signature);
    (signature.is_some() || !text.trim().is_empty()).then_some(WirePart {
        thought,
        text: Some(text),
        thought_signature: signature,
        ..WirePart::default()
    })
}

/// The signature if it is base64. Any other value, from another protocol or an old session, would cause a
/// rejection of the request.
fn legal_signature(signature: Option<&str>) -> Option<&str> {
    signature.filter(|signature| {
        let digits = signature.trim_end_matches('=');
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
        signature.len() % 4 == 0
            && signature.len() - digits.len() <= 2
            && !digits.is_empty()
            && digits.chars().all(legal)
    })
}
