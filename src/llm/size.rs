//! Checks before a request is sent whether it exceeds the provider's size limits.
//!
//! If no limit is known, the provider decides.

use crate::llm::context::Context;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::{Block, Content, Message};
use crate::llm::model::Model;

/// Checks a request against the model's limits. `body_bytes`: size of the request body.
pub fn check(model: &Model, context: &Context, body_bytes: usize) -> Result<(), StreamError> {
    let Some(limits) = &model.input_limits else {
        return Ok(());
    };
    let name = format!("{}/{}", model.provider, model.id);
    let refuse = |text: String| Err(StreamError::new(ErrorKind::Request, text));
    if model.takes_images()
        && let Some(images) = &limits.images
    {
        let counts = image_counts(context);
        let (most, all) = (counts.iter().copied().max().unwrap_or(0), counts.iter().sum::<u64>());
        if let Some(limit) = images.max_per_message.filter(|limit| most > *limit) {
            return refuse(format!(
                "Not sent: one message has {most} images, and {name} takes at most {limit} in a message. Send fewer at a time, or go on in a new session"
            ));
        }
        if let Some(limit) = images.max_per_request.filter(|limit| all > *limit) {
            return refuse(format!(
                "Not sent: the conversation has {all} images, and {name} takes at most {limit} in a request. Compact it, or go on in a new session"
            ));
        }
    }
    let bytes = u64::try_from(body_bytes).unwrap_or(u64::MAX);
    if let Some(limit) = limits.max_request_bytes.filter(|limit| bytes > *limit) {
        // The word that identifies a full context: compaction helps in both cases.
        return refuse(format!(
            "Not sent: the request has {}, and {name} takes at most {} (request_too_large). Compact the conversation, or go on in a new session",
            megabytes(bytes),
            megabytes(limit)
        ));
    }
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// Number of images in each message. The results of one answer's tool calls are sent as one message.
fn image_counts(context: &Context) -> Vec<u64> {
    let count = |blocks: &[Block]| {
        let images = blocks.iter().filter(|b| matches!(b, Block::Image(_)));
        images.map(|_| 1).sum::<u64>()
    };
    let mut counts = Vec::new();
    let mut among_results = false;
    for message in context.conversation() {
        let (images, is_result) = match message {
            Message::User(user) => match &user.content {
                Content::Blocks(blocks) => (count(blocks), false),
                Content::Text(_) => (0, false),
            },
            Message::ToolResult(result) => (count(&result.content), true),
            _ => (0, false),
        };
        match counts.last_mut() {
            Some(last) if among_results && is_result => *last += images,
            _ => counts.push(images),
        }
        among_results = is_result;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::llm::classify::{Class, classify};
    use crate::wire::testing;
    use serde_json::Value;

    fn images(count: usize) -> Value {
        json!(vec![json!({"type": "image", "data": "AA==", "mimeType": "image/png"}); count])
    }

    fn result(id: &str, images: Value) -> Value {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "x", "isError": false, "content": images})
    }

    /// The error of the check, if any.
    fn said(limits: Value, messages: Value, bytes: usize) -> Option<StreamError> {
        let model = testing::model(json!({"inputLimits": limits}));
        check(&model, &testing::context(&messages), bytes).err()
    }

    #[test]
    fn a_request_is_measured_against_what_is_known() {
        let user = |count| json!([{"role": "user", "content": images(count)}]);
        let split =
            json!([result("a", images(2)), result("b", images(1)), {"role": "user", "content": images(2)}]);
        let rows = [
            (json!({}), user(9), usize::MAX, None),
            (json!({"maxRequestBytes": 100}), user(0), 100, None),
            (
                json!({"maxRequestBytes": 33_554_432}),
                user(0),
                40_000_001,
                Some("40.1 MB, and acme/m1 takes at most 33.6 MB"),
            ),
            (json!({"images": {"maxPerMessage": 2}}), user(2), 0, None),
            (json!({"images": {"maxPerMessage": 2}}), user(3), 0, Some("one message has 3 images")),
            // Results of one answer are one message.
            (json!({"images": {"maxPerMessage": 2}}), split.clone(), 0, Some("has 3 images")),
            (json!({"images": {"maxPerRequest": 5}}), split.clone(), 0, None),
            (json!({"images": {"maxPerRequest": 4}}), split, 0, Some("has 5 images")),
        ];
        for (limits, messages, bytes, expected) in rows {
            let said = said(limits.clone(), messages, bytes).map(|error| error.message);
            let fits = match (&said, expected) {
                (Some(said), Some(part)) => said.contains(part) && said.starts_with("Not sent: "),
                (said, expected) => said.is_none() && expected.is_none(),
            };
            assert!(fits, "{limits}: {said:?}");
        }
    }

    #[test]
    fn a_model_that_sees_no_images_is_sent_none_to_count() {
        let model =
            testing::model(json!({"input": ["text"], "inputLimits": {"images": {"maxPerMessage": 1}}}));
        let context = testing::context(&json!([{"role": "user", "content": images(2)}]));
        assert!(check(&model, &context, 0).is_ok());
    }

    #[test]
    fn too_many_bytes_are_like_a_full_context_and_too_many_images_are_not() {
        let bytes = said(json!({"maxRequestBytes": 1}), json!([]), 2).unwrap();
        assert_eq!(classify(&bytes), Class::Overflow);
        let many = json!([{"role": "user", "content": images(2)}]);
        let images = said(json!({"images": {"maxPerMessage": 1}}), many, 2).unwrap();
        assert_eq!(classify(&images), Class::Request);
    }
}
