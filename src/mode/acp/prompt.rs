//! Converts the content blocks of a client's prompt into text and images.
//!
//! Text is unchanged. A link becomes its path, so that the model can read the file. The text of an embedded
//! resource is appended at the end, in the form of `@file` arguments; its path is also written in place if
//! the text leads up to it. Adjacent blocks are separated: texts by a line break, paths by a space.

use super::place::Place;
use crate::runtime::Block;
use serde_json::Value;

#[derive(Debug, Default, PartialEq)]
pub struct Prompt {
    pub text: String,
    pub images: Vec<Block>,
    /// Contents of files, appended to the text after its expansion.
    pub attached: String,
}

/// Parses the content blocks of a prompt. The error describes the invalid block.
pub fn read(blocks: &Value) -> Result<Prompt, String> {
    let blocks = blocks.as_array().ok_or("\"prompt\" must be a list")?;
    let mut prompt = Prompt::default();
    // The block before was named in place.
    let mut is_after_place = false;
    for (at, block) in blocks.iter().enumerate() {
        let is_place = match text(block, "type")? {
            "text" => {
                prompt.say(text(block, "text")?, is_after_place);
                false
            }
            "image" => {
                let (data, kind) = (text(block, "data")?, text(block, "mimeType")?);
                prompt.images.push(Block::image(data, kind));
                false
            }
            "resource_link" => {
                prompt.mention(&Place::of(text(block, "uri")?));
                true
            }
            "resource" => {
                let next = blocks.get(at + 1).and_then(|next| text(next, "text").ok());
                let is_led_up_to = match prompt.text.chars().next_back() {
                    None => next.is_some_and(|next| next.starts_with(char::is_whitespace)),
                    Some(last) => is_after_place || last.is_whitespace() || is_opening(last),
                };
                prompt.embed(block.get("resource").unwrap_or(&Value::Null), is_led_up_to)?
            }
            "audio" => return Err("Audio is not supported: the models get text and images".into()),
            other => return Err(format!("Content of type \"{other}\" is not supported")),
        };
        is_after_place = is_place;
    }
    Ok(prompt)
}

impl Prompt {
    fn say(&mut self, text: &str, is_after_place: bool) {
        match text.chars().next() {
            Some(first) if is_after_place && !is_closing(first) => self.set_apart(text, " "),
            Some(_) if !is_after_place => self.set_apart(text, "\n"),
            _ => {}
        }
        self.text.push_str(text);
    }

    fn mention(&mut self, place: &Place) {
        let mention = place.mention();
        if !self.text.ends_with(is_opening) {
            self.set_apart(&mention, " ");
        }
        self.text.push_str(&mention);
    }

    /// Inserts `gap` before `next`, unless white space separates it from the text so far.
    fn set_apart(&mut self, next: &str, gap: &str) {
        let is_apart = self.text.is_empty()
            || self.text.ends_with(char::is_whitespace)
            || next.starts_with(char::is_whitespace);
        if !is_apart {
            self.text.push_str(gap);
        }
    }

    /// Adds a resource. True if its path was written in place: the text leads up to it, or it cannot be
    /// shown.
    fn embed(&mut self, resource: &Value, is_led_up_to: bool) -> Result<bool, String> {
        let place = Place::of(text(resource, "uri")?);
        let kind = resource.get("mimeType").and_then(Value::as_str);
        let mut is_shown = true;
        if let Ok(text) = text(resource, "text") {
            self.attached.push('\n');
            self.attached.push_str(&place.attachment(text));
        } else if let (Ok(blob), Some(kind)) = (text(resource, "blob"), kind)
            && kind.starts_with("image/")
        {
            self.images.push(Block::image(blob, kind));
        } else {
            is_shown = false;
        }
        let is_named = is_led_up_to || !is_shown;
        if is_named {
            self.mention(&place);
        }
        Ok(is_named)
    }

    /// The text of the prompt with its attachments.
    pub fn whole(self) -> (String, Vec<Block>) {
        match self.text.is_empty() {
            true => (self.attached.trim_start().to_owned(), self.images),
            false => (self.text + &self.attached, self.images),
        }
    }
}

/// True if a path may follow this character directly.
fn is_opening(char: char) -> bool {
    matches!(char, '(' | '[' | '{' | '<' | '"' | '\'' | '`' | '@' | '=')
}

/// True if this character may follow a path directly.
fn is_closing(char: char) -> bool {
    matches!(char, ')' | ']' | '}' | '>' | '"' | '\'' | '`' | '.' | ',' | ';' | ':' | '!' | '?')
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    let text = value.get(name).and_then(Value::as_str);
    text.ok_or_else(|| format!("\"{name}\" must be a string"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[track_caller]
    fn check(prompt: Value, text: &str, attached: &str, images: &[&str]) {
        let images: Vec<Block> = images.iter().map(|data| Block::image(*data, "image/png")).collect();
        let expected = Prompt { text: text.into(), images, attached: attached.into() };
        assert_eq!(read(&prompt), Ok(expected), "{prompt}");
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    fn link(uri: &str) -> Value {
        json!({"type": "resource_link", "uri": uri, "name": "x"})
    }

    fn resource(uri: &str, text: &str) -> Value {
        json!({"type": "resource", "resource": {"uri": uri, "text": text}})
    }

    #[test]
    fn blocks_become_text_images_and_what_is_attached() {
        check(json!([]), "", "", &[]);
        check(
            json!([text("Look at "), link("file:///a/b%20c.rs"), text(" and "), link("https://x.org/y")]),
            "Look at \"/a/b c.rs\" and https://x.org/y",
            "",
            &[],
        );
        check(
            json!([
                text("Explain "),
                resource("file:///a.rs", "fn a() {}"),
                {"type": "image", "data": "AA", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "zed://p", "mimeType": "image/png", "blob": "BB"}},
                {"type": "resource", "resource": {"uri": "zed://q", "mimeType": "font/ttf", "blob": "CC"}},
            ]),
            "Explain /a.rs zed://q",
            "\n<file name=\"/a.rs\">\nfn a() {}\n</file>",
            &["AA", "BB"],
        );
    }

    #[test]
    fn blocks_do_not_run_into_each_other() {
        let (a, b) = (link("file:///p/a.rs"), link("file:///p/b.rs"));
        for (prompt, expected) in [
            (
                json!([text("Compare these files:"), a, b, text("Be short."), text("Second block.")]),
                "Compare these files: /p/a.rs /p/b.rs Be short.\nSecond block.",
            ),
            (json!([text("Compare "), a, text(", "), b, text("!")]), "Compare /p/a.rs, /p/b.rs!"),
            (json!([text("One ("), a, text(") and\n"), b]), "One (/p/a.rs) and\n/p/b.rs"),
            (json!([text("One\n"), text("two"), text("\nthree")]), "One\ntwo\nthree"),
            (json!([text("One"), text(""), text("\"two\"")]), "One\n\"two\""),
            (json!([a, text("says what?")]), "/p/a.rs says what?"),
        ] {
            check(prompt, expected, "", &[]);
        }
    }

    #[test]
    fn a_resource_is_named_where_the_text_leads_up_to_it() {
        let (a, attached) = (resource("file:///a.rs", "a"), "\n<file name=\"/a.rs\">\na\n</file>");
        for (prompt, expected) in [
            (json!([text("Explain "), a, text(" well")]), "Explain /a.rs well"),
            (json!([text("Explain @a.rs"), a]), "Explain @a.rs"),
            (json!([text("Explain this:"), a, text("Be short.")]), "Explain this:\nBe short."),
            (json!([a, text(" says what?")]), "/a.rs says what?"),
            (json!([a, text("/greet Ada")]), "/greet Ada"),
            (json!([link("file:///b.rs"), a]), "/b.rs /a.rs"),
            (json!([a]), ""),
        ] {
            check(prompt, expected, attached, &[]);
        }
    }

    #[test]
    fn a_selection_says_which_lines_it_is() {
        check(
            json!([text("Explain "), resource("file:///p/big.rs#L10:12", "b")]),
            "Explain /p/big.rs (lines 10-12)",
            "\n<file name=\"/p/big.rs\" lines=\"10-12\">\nb\n</file>",
            &[],
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
            (json!([{"type": "audio"}]), "Audio is not supported: the models get text and images"),
            (json!([{"type": "smell"}]), "Content of type \"smell\" is not supported"),
        ] {
            assert_eq!(read(&prompt), Err(expected.to_owned()));
        }
    }
}
