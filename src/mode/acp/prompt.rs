//! What a client says: content blocks into a prompt's text and images.
//!
//! Text stays as it is. A link is named in place by its path, so that the model can read it. The text of
//! an embedded resource follows at the end, in the form that `@file` arguments have.

use crate::runtime::{Block, file_url};
use serde_json::Value;
use std::borrow::Cow;

#[derive(Debug, Default, PartialEq)]
pub struct Said {
    pub text: String,
    pub images: Vec<Block>,
    /// Follows the text, once that has been expanded.
    pub attached: String,
}

/// Reads `prompt`. An error says what is wrong with it.
pub fn read(prompt: &Value) -> Result<Said, String> {
    let blocks = prompt.as_array().ok_or("\"prompt\" must be a list")?;
    let mut said = Said::default();
    for block in blocks {
        match text(block, "type")? {
            "text" => said.text.push_str(text(block, "text")?),
            "image" => {
                let (data, kind) = (text(block, "data")?, text(block, "mimeType")?);
                said.images.push(Block::image(data, kind));
            }
            "resource_link" => said.text.push_str(&place(text(block, "uri")?)),
            "resource" => said.embed(block.get("resource").unwrap_or(&Value::Null))?,
            other => return Err(format!("Content of type \"{other}\" is not supported")),
        }
    }
    Ok(said)
}

impl Said {
    fn embed(&mut self, resource: &Value) -> Result<(), String> {
        let place = place(text(resource, "uri")?);
        let kind = resource.get("mimeType").and_then(Value::as_str);
        self.text.push_str(&place);
        if let Ok(text) = text(resource, "text") {
            self.attached.push_str(&format!("\n<file name=\"{place}\">\n{text}\n</file>"));
        } else if let (Ok(blob), Some(kind)) = (text(resource, "blob"), kind)
            && kind.starts_with("image/")
        {
            self.images.push(Block::image(blob, kind));
        }
        Ok(())
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    let text = value.get(name).and_then(Value::as_str);
    text.ok_or_else(|| format!("\"{name}\" must be a string"))
}

/// The path of a file's URI; any other URI as it is.
fn place(uri: &str) -> Cow<'_, str> {
    match uri.strip_prefix("file://").map(file_url) {
        Some(Ok(path)) => path.to_string_lossy().into_owned().into(),
        _ => uri.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(prompt: Value, text: &str, attached: &str, images: &[&str]) {
        let images: Vec<Block> = images.iter().map(|data| Block::image(*data, "image/png")).collect();
        let expected = Said { text: text.into(), images, attached: attached.into() };
        assert_eq!(read(&prompt), Ok(expected), "{prompt}");
    }

    #[test]
    fn blocks_become_text_images_and_what_is_attached() {
        check(json!([]), "", "", &[]);
        check(
            json!([
                {"type": "text", "text": "Look at "},
                {"type": "resource_link", "uri": "file:///a/b%20c.rs", "name": "b c.rs"},
                {"type": "text", "text": " and "},
                {"type": "resource_link", "uri": "https://x.org/y", "name": "y"},
            ]),
            "Look at /a/b c.rs and https://x.org/y",
            "",
            &[],
        );
        check(
            json!([
                {"type": "text", "text": "Explain "},
                {"type": "resource", "resource": {"uri": "file:///a.rs", "text": "fn a() {}"}},
                {"type": "image", "data": "AA", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "zed://p", "mimeType": "image/png", "blob": "BB"}},
                {"type": "resource", "resource": {"uri": "zed://q", "mimeType": "font/ttf", "blob": "CC"}},
            ]),
            "Explain /a.rszed://pzed://q",
            "\n<file name=\"/a.rs\">\nfn a() {}\n</file>",
            &["AA", "BB"],
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (prompt, expected) in [
            (json!(null), "\"prompt\" must be a list"),
            (json!([7]), "\"type\" must be a string"),
            (json!([{"type": "text", "text": 7}]), "\"text\" must be a string"),
            (json!([{"type": "image", "data": "AA"}]), "\"mimeType\" must be a string"),
            (json!([{"type": "resource"}]), "\"uri\" must be a string"),
            (json!([{"type": "audio"}]), "Content of type \"audio\" is not supported"),
        ] {
            assert_eq!(read(&prompt), Err(expected.to_owned()));
        }
    }
}
