//! Parses the head of a Markdown file: YAML between two lines of dashes.

use super::yaml::{self, YamlError};
use serde_json::{Map, Value};

/// A file's head and its body. Lines end in `\n`.
#[derive(Debug, PartialEq)]
pub struct Document {
    pub head: Map<String, Value>,
    pub body: String,
}

/// Splits a file into head and body. A file without a head is all body; a body below a head is trimmed.
pub fn parse(text: &str) -> Result<Document, YamlError> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let Some((head, body)) = split(&text) else {
        return Ok(Document { head: Map::new(), body: text });
    };
    let head = match yaml::parse(head) {
        Ok(Value::Object(head)) => head,
        Ok(_) => Map::new(),
        // The line of dashes precedes the head.
        Err(error) => {
            return Err(YamlError { line: error.line + 1, ..error });
        }
    };
    Ok(Document { head, body: body.trim().to_owned() })
}

/// Returns the text without its head, even if the head is not valid YAML.
pub fn body(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    match split(&text) {
        Some((_, body)) => body.trim().to_owned(),
        None => text.trim().to_owned(),
    }
}

fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let end = rest.find("\n---")?;
    let head = rest.get(..end)?;
    let body = rest.get(end + 4..)?;
    // Text after the first dashes on their line is not part of the head.
    let head = head.split_once('\n').map_or("", |(_, head)| head);
    Some((head, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[track_caller]
    fn check(text: &str, head: Value, body: &str) {
        let document = parse(text).unwrap();
        assert_eq!(Value::Object(document.head), head, "{text}");
        assert_eq!(document.body, body, "{text}");
    }

    #[test]
    fn a_head_stands_between_dashes() {
        check("---\na: b\n---\n\nText\n", json!({"a":"b"}), "Text");
        check("---\r\na: b\r\n---\r\nText\r\nmore", json!({"a":"b"}), "Text\nmore");
        check("---\n---\nText", json!({}), "Text");
        check("---\n\n---\nText", json!({}), "Text");
        check("No head\n\n", json!({}), "No head\n\n");
        check("---\na: b\n", json!({}), "---\na: b\n");
        check("\n---\na: b\n---\n", json!({}), "\n---\na: b\n---\n");
        check("---\njust text\n---\nText", json!({}), "Text");
        check("---\na: b\n---\nText\n---\nmore", json!({"a":"b"}), "Text\n---\nmore");
        assert_eq!(body("---\na: [\n---\nText\n"), "Text");
        assert_eq!(body(" Text\n"), "Text");
    }

    #[test]
    fn a_damaged_head_is_told_with_the_line_in_the_file() {
        let error = parse("---\na: b\nb: *c\n---\n").unwrap_err();
        assert_eq!(error.line, 3);
    }
}
