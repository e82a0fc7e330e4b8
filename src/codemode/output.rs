//! The result of a script for the model: what it put out, in order, within the limits.

use super::run::{Item, Outcome};
use crate::agent::tool::Invocation;
use crate::llm::message::Block;
use crate::tools::Workspace;
use crate::tools::artifact;
use crate::tools::image::{self, Kind};
use crate::tools::truncate;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// Characters of a token, as the reference counts.
const TOKEN_CHARS: u64 = 4;

/// Makes the content of a result.
pub struct Maker<'a> {
    pub workspace: &'a Workspace,
    pub call: &'a Invocation<'a>,
    pub tokens_max: u64,
}

/// Content for the model, and the file with all of the text if it was cut.
pub struct Made {
    pub content: Vec<Block>,
    pub full_output: Option<String>,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Image { data: String, mime_type: String },
}

impl Maker<'_> {
    /// The result of a script: a head, what it put out, and why it failed.
    pub fn make(&self, outcome: &Outcome, took: Duration) -> Made {
        let mut parts = laid_out(&outcome.items);
        let shows_images = parts.iter().any(|part| matches!(part, Part::Image { .. }));
        let note = Some(outcome.images_made).filter(|made| *made > 0 && !shows_images).map(|made| {
            let images = if made == 1 { "image" } else { "images" };
            format!(
                "{made} {images} of models.generateImages() were not put out: image(block) does that with an image block of \
                 result.output."
            )
        });
        parts.extend(outcome.error.iter().map(|error| Part::Text(format!("Script error:\n{error}"))));
        parts.extend(note.map(Part::Text));
        let (parts, full_output) = self.limit(joined(parts));
        let word = if outcome.error.is_some() { "failed" } else { "completed" };
        let head = format!("Script {word}\nWall time {:.1} seconds\nOutput:\n", took.as_secs_f64());
        let mut content = vec![Block::text(head)];
        let mut saved = BTreeMap::new();
        for part in joined(parts.into_iter().flat_map(|part| self.with_path(part, &mut saved)).collect()) {
            match part {
                Part::Text(text) => content.push(Block::text(text)),
                Part::Image { data, .. } => content.extend(self.image(&data)),
            }
        }
        Made { content, full_output }
    }

    /// Cuts text that is over the limit; images follow it then.
    fn limit(&self, parts: Vec<Part>) -> (Vec<Part>, Option<String>) {
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Image { .. } => None,
            })
            .collect();
        let all = texts.join("\n");
        let chars = all.chars().count();
        let budget = usize::try_from(self.tokens_max.saturating_mul(TOKEN_CHARS)).unwrap_or(usize::MAX);
        if chars <= budget {
            return (parts, None);
        }
        let place = |at: usize| all.char_indices().nth(at).map_or(all.len(), |(place, _)| place);
        let (head, tail) = (place(budget / 2), place(chars - (budget - budget / 2)));
        let tokens = |chars: usize| chars.div_ceil(4);
        let (lines, left_out) = (all.split('\n').count(), tokens(chars - budget));
        let (full_output, place) = match self.keep("log", all.as_bytes()) {
            Ok(path) => (Some(path.clone()), format!("All of it: {path} (read it with offset and limit)")),
            Err(reason) => (None, format!("All of it could not be saved: {reason}")),
        };
        let (head, tail) = (all.get(..head).unwrap_or_default(), all.get(tail..).unwrap_or_default());
        let text = format!(
            "[{} tokens in {lines} lines, without the middle]\n\n{head}…{left_out} tokens truncated…{tail}\n\n[{place}]",
            tokens(chars)
        );
        let images = parts.into_iter().filter(|part| matches!(part, Part::Image { .. }));
        (std::iter::once(Part::Text(text)).chain(images).collect(), full_output)
    }

    /// An image with the path of its file before it: nothing else reaches its bytes. Images shown twice have one file.
    fn with_path(&self, part: Part, saved: &mut BTreeMap<String, String>) -> Vec<Part> {
        let Part::Image { data, mime_type } = part else { return vec![part] };
        let Ok(bytes) = BASE64_STANDARD.decode(&data) else {
            return vec![Part::Text(format!("[Image ({mime_type}): its data is not valid base64]"))];
        };
        let Some(kind) = Kind::sniff(&bytes) else {
            return vec![Part::Text(format!("[Image omitted: {mime_type} is not a kind that models take]"))];
        };
        let label = saved.entry(data.clone()).or_insert_with(|| {
            let about = format!("{}, {}", kind.mime_type(), truncate::size(bytes.len() as u64));
            match self.keep("image", &bytes) {
                Ok(path) => format!("[Image saved to {path} ({about})]"),
                Err(reason) => format!("[Image ({about}) could not be saved: {reason}]"),
            }
        });
        vec![Part::Text(label.clone()), Part::Image { data, mime_type }]
    }

    /// An image within the limits of the model.
    fn image(&self, data: &str) -> Vec<Block> {
        let bytes = BASE64_STANDARD.decode(data).unwrap_or_default();
        let Some(kind) = Kind::sniff(&bytes) else { return Vec::new() };
        let limits = image::Limits::of(self.call.model, self.workspace.options.resize_images);
        let sandbox = self.workspace.backend.sandbox();
        match image::prepare(&bytes, kind, &limits, sandbox, self.call.cancel) {
            Ok(prepared) => {
                let hints = prepared.hints.into_iter().map(Block::text);
                hints.chain([Block::image(prepared.data, prepared.mime_type)]).collect()
            }
            Err(reason) => vec![Block::text(reason)],
        }
    }

    /// Keeps bytes as an output of the session. Gives the path.
    fn keep(&self, what: &str, bytes: &[u8]) -> Result<String, String> {
        let name = if what == "image" { "codemode-image" } else { super::NAME };
        let mut kept = artifact::create(&*self.workspace.outputs, name).map_err(|error| error.to_string())?;
        kept.file.write_all(bytes).map_err(|error| {
            let _ = std::fs::remove_file(&kept.path);
            error.to_string()
        })?;
        Ok(kept.path.to_string_lossy().into_owned())
    }
}

/// Texts and images in their order, then all lines of the console. Several texts are told apart by a line each.
fn laid_out(items: &[Item]) -> Vec<Part> {
    let count = items.iter().filter(|item| matches!(item, Item::Text(_))).count();
    let (mut parts, mut lines, mut number) = (Vec::new(), Vec::new(), 0);
    for item in items {
        match item {
            Item::Console(line) => lines.push(line.as_str()),
            Item::Image { data, mime_type } => {
                parts.push(Part::Image { data: data.clone(), mime_type: mime_type.clone() });
            }
            Item::Text(text) => {
                number += 1;
                parts.push(Part::Text(match count {
                    1 => text.clone(),
                    _ => format!("==> text {number}/{count} <==\n{text}"),
                }));
            }
        }
    }
    if !lines.is_empty() {
        parts.push(Part::Text(format!("<console_output>\n{}\n</console_output>", lines.join("\n"))));
    }
    parts
}

/// Joins texts that follow one another, each on a line of its own.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        match (all.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => {
                if !before.is_empty() && !before.ends_with('\n') {
                    before.push('\n');
                }
                before.push_str(&text);
            }
            (_, part) => all.push(part),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_puts_out_is_laid_out_as_the_model_expects() {
        let text = |text: &str| Item::Text(text.into());
        let line = |line: &str| Item::Console(line.into());
        let image = Item::Image { data: "d".into(), mime_type: "m".into() };
        let shown = |items: &[Item]| {
            let parts = joined(laid_out(items));
            let shown = parts.into_iter().map(|part| match part {
                Part::Text(text) => text,
                Part::Image { .. } => "IMAGE".into(),
            });
            shown.collect::<Vec<_>>().join("|")
        };
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&[text("a")]), "a");
        assert_eq!(shown(&[text("a\n"), text("b")]), "==> text 1/2 <==\na\n==> text 2/2 <==\nb");
        assert_eq!(shown(&[line("x"), text("a"), line("y")]), "a\n<console_output>\nx\ny\n</console_output>");
        assert_eq!(shown(&[text("a"), image, text("b")]), "==> text 1/2 <==\na|IMAGE|==> text 2/2 <==\nb");
    }
}
