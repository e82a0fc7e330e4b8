//! Thinking in chat completions: the field it came in, or the provider's own record of it.
//!
//! There is no standard. Servers send thinking as text in one of three fields, and want it back in the
//! same; some add `reasoning_details`, pieces of a record that is to be sent back whole. Either is kept
//! in the block's signature: the field's name, or the record as JSON.

use serde_json::{Map, Value};

/// The field in which thinking with this signature goes back.
pub fn field(provider: &str, signature: &str) -> Option<&'static str> {
    match signature {
        // This provider sends one and takes the other.
        "reasoning" if provider == "opencode-go" => Some("reasoning_content"),
        "reasoning" => Some("reasoning"),
        "reasoning_content" => Some("reasoning_content"),
        "reasoning_text" => Some("reasoning_text"),
        _ => None,
    }
}

/// The record kept in a signature.
pub fn parse_details(signature: Option<&str>) -> Option<Value> {
    let details: Value = serde_json::from_str(signature?.trim_start()).ok()?;
    let list = details.as_array()?;
    (!list.is_empty() && list.iter().all(is_detail)).then_some(details)
}

/// The sealed detail that older sessions keep on a call.
pub fn parse_legacy_detail(signature: Option<&str>) -> Option<Value> {
    let detail: Value = serde_json::from_str(signature?).ok()?;
    let filled = |name: &str| detail[name].as_str().is_some_and(|text| !text.is_empty());
    let sealed = detail["type"] == "reasoning.encrypted" && filled("id") && filled("data");
    (sealed && is_detail(&detail)).then_some(detail)
}

/// The record as it streams in.
#[derive(Default)]
pub struct Details(Vec<Value>);

impl Details {
    /// Takes a piece: text continues text, a summary a summary, the rest stands alone. False for what is
    /// no detail.
    pub fn push(&mut self, piece: Value) -> bool {
        if !is_detail(&piece) {
            return false;
        }
        let Value::Object(mut piece) = piece else {
            return false;
        };
        let Some(Value::Object(last)) = self.0.last_mut() else {
            self.0.push(Value::Object(piece));
            return true;
        };
        let text = match piece.get("type").and_then(Value::as_str) {
            kind if kind != last.get("type").and_then(Value::as_str) => None,
            Some("reasoning.text") => Some("text"),
            Some("reasoning.summary") => Some("summary"),
            _ => None,
        };
        match (text, text.and_then(|name| piece.remove(name))) {
            (Some(name), Some(Value::String(more))) => {
                if let Some(Value::String(text)) = last.get_mut(name) {
                    text.push_str(&more);
                }
                fill_in(last, &piece);
            }
            _ => self.0.push(Value::Object(piece)),
        }
        true
    }

    /// The record as a signature; `None` if there was none.
    pub fn signature(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        serde_json::to_string(&self.0).ok()
    }
}

/// Takes over what a later piece says and the earlier ones did not.
fn fill_in(detail: &mut Map<String, Value>, piece: &Map<String, Value>) {
    let absent = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    for name in ["signature", "id", "format", "index"] {
        if absent(detail.get(name))
            && let Some(value) = piece.get(name)
            && !absent(Some(value))
        {
            detail.insert(name.to_owned(), value.clone());
        }
    }
}

fn is_detail(detail: &Value) -> bool {
    let Value::Object(detail) = detail else {
        return false;
    };
    let text_or_null = |name: &str| {
        matches!(
            detail.get(name),
            None | Some(Value::Null | Value::String(_))
        )
    };
    let text = |name: &str| matches!(detail.get(name), Some(Value::String(_)));
    text_or_null("id")
        && matches!(detail.get("format"), None | Some(Value::String(_)))
        && matches!(detail.get("index"), None | Some(Value::Number(_)))
        && match detail.get("type").and_then(Value::as_str) {
            Some("reasoning.summary") => text("summary"),
            Some("reasoning.encrypted") => text("data"),
            Some("reasoning.text") => text("text") && text_or_null("signature"),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_of_text_are_joined_and_sealed_ones_stand_alone() {
        let mut details = Details::default();
        for piece in [
            json!({"type":"reasoning.text","text":"a","id":null,"format":"f","index":0}),
            json!({"type":"reasoning.text","text":"b","signature":"s"}),
            json!({"type":"reasoning.encrypted","data":"x","id":"1"}),
            json!({"type":"reasoning.encrypted","data":"y"}),
            json!({"type":"reasoning.summary","summary":"c"}),
            json!({"type":"reasoning.summary","summary":"d","id":"2"}),
        ] {
            assert!(details.push(piece));
        }
        for bad in [
            json!(null),
            json!([]),
            json!({"type":"reasoning.text"}),
            json!({"type":"reasoning.text","text":"x","index":"0"}),
            json!({"type":"other","text":"x"}),
        ] {
            assert!(!details.push(bad));
        }
        let signature = details.signature().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&signature).unwrap(),
            json!([
                {"type":"reasoning.text","text":"ab","id":null,"format":"f","index":0,"signature":"s"},
                {"type":"reasoning.encrypted","data":"x","id":"1"},
                {"type":"reasoning.encrypted","data":"y"},
                {"type":"reasoning.summary","summary":"cd","id":"2"},
            ])
        );
        assert!(parse_details(Some(&signature)).is_some());
    }

    #[test]
    fn only_a_record_is_read_as_one() {
        for signature in [
            None,
            Some(""),
            Some("reasoning_content"),
            Some("[]"),
            Some("[{}]"),
            Some("{}"),
        ] {
            assert_eq!(parse_details(signature), None, "{signature:?}");
        }
        let sealed = r#"{"type":"reasoning.encrypted","id":"1","data":"x"}"#;
        assert!(parse_legacy_detail(Some(sealed)).is_some());
        assert!(
            parse_legacy_detail(Some(r#"{"type":"reasoning.encrypted","data":"x"}"#)).is_none()
        );
    }
}
