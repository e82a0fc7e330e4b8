//! What the model is told of a server's content: text and images.
//!
//! Text over 20 KB loses its middle, and the whole of it is kept as an output of the session. Other binary content is
//! kept, too, and named. Images are brought into the limits of the model.

use crate::agent::tool::Invocation;
use crate::llm::message::Block;
use crate::tools::Workspace;
use crate::tools::artifact;
use crate::tools::image::{self, Kind};
use crate::tools::truncate;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::io::Write;

/// Bytes of text that the model gets of one result.
pub const TEXT_MAX: usize = 20 << 10;

/// The name of the tool that reads what a resource link names.
pub const READ_TOOL: &str = "read_mcp_resource";

/// Makes content for the model.
pub struct Maker<'a> {
    pub server: &'a str,
    pub workspace: &'a Workspace,
    pub call: &'a Invocation<'a>,
    /// True if the model can read the server's resources.
    pub can_read: bool,
}

/// Content for the model, and the file with all of it if it was cut.
pub struct Made {
    pub content: Vec<Block>,
    pub full_output: Option<String>,
}

impl Made {
    /// All text of the content.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl Maker<'_> {
    /// The content of a tool's result. Without blocks it is the structured content as JSON.
    pub fn of_result(&self, result: &Value) -> Made {
        let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match result.get("structuredContent") {
            Some(data) if blocks.is_empty() => self.limit(vec![Block::text(format!("{data:#}"))]),
            _ => self.limit(blocks.iter().flat_map(|block| self.of_block(block)).collect()),
        }
    }

    /// The contents of a resource. Several are told apart by their addresses.
    pub fn of_resource(&self, contents: &[Value]) -> Made {
        let of = |content: &Value| {
            let head = format!("{}:", text_of(content, "uri"));
            let head = (contents.len() > 1).then(|| Block::text(head));
            head.into_iter().chain(self.of_content(content))
        };
        self.limit(contents.iter().flat_map(of).collect())
    }

    fn of_block(&self, block: &Value) -> Vec<Block> {
        match text_of(block, "type") {
            "text" => vec![Block::text(text_of(block, "text"))],
            "image" => self.image(text_of(block, "data"), text_of(block, "mimeType")),
            "audio" => {
                vec![self.file("Audio", text_of(block, "mimeType"), text_of(block, "data"))]
            }
            "resource_link" => vec![Block::text(self.link(block))],
            "resource" => self.of_content(block.get("resource").unwrap_or(&Value::Null)),
            kind => vec![Block::text(format!("[Content of an unknown kind: \"{kind}\"]"))],
        }
    }

    fn link(&self, link: &Value) -> String {
        let uri = text_of(link, "uri");
        let name =
            [text_of(link, "title"), text_of(link, "name"), uri].into_iter().find(|name| !name.is_empty());
        let mut about: Vec<String> = Vec::new();
        about.extend(Some(text_of(link, "mimeType").to_owned()).filter(|kind| !kind.is_empty()));
        about.extend(link.get("size").and_then(Value::as_u64).map(truncate::size));
        let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        let description = Some(text_of(link, "description")).filter(|text| !text.is_empty());
        let description = description.map(|text| format!(": {text}")).unwrap_or_default();
        let how = match self.can_read {
            true => format!(". {READ_TOOL} reads it (server \"{}\")", self.server),
            false => String::new(),
        };
        format!("[Resource {uri} \"{}\"{about}{description}{how}]", name.unwrap_or_default())
    }

    /// The content of a resource: text, an image, or a file that the model is told of.
    fn of_content(&self, content: &Value) -> Vec<Block> {
        if let Some(text) = content.get("text").and_then(Value::as_str) {
            return vec![Block::text(text)];
        }
        let (uri, kind, blob) =
            (text_of(content, "uri"), text_of(content, "mimeType"), text_of(content, "blob"));
        if kind.starts_with("image/") {
            return self.image(blob, kind);
        }
        if is_text(kind)
            && let Ok(bytes) = BASE64_STANDARD.decode(blob)
        {
            return vec![Block::text(String::from_utf8_lossy(&bytes))];
        }
        vec![self.file(&format!("Resource {uri}"), kind, blob)]
    }

    /// Keeps what no model takes as a file, and names it.
    fn file(&self, what: &str, kind: &str, base64: &str) -> Block {
        let Ok(bytes) = BASE64_STANDARD.decode(base64) else {
            return Block::text(format!("[{what}: its data is not valid base64]"));
        };
        let kind = if kind.is_empty() { "unknown kind" } else { kind };
        let size = truncate::size(bytes.len() as u64);
        Block::text(match self.keep(&bytes) {
            Ok(path) => format!("[{what} ({kind}, {size}) was saved as {path}]"),
            Err(reason) => format!("[{what} ({kind}, {size}) could not be saved: {reason}]"),
        })
    }

    fn image(&self, base64: &str, mime_type: &str) -> Vec<Block> {
        let Ok(bytes) = BASE64_STANDARD.decode(base64) else {
            return vec![Block::text(format!("[Image ({mime_type}): its data is not valid base64]"))];
        };
        let Some(kind) = Kind::sniff(&bytes) else {
            return vec![Block::text(format!("[Image omitted: {mime_type} is not a kind that models take]"))];
        };
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

    /// Cuts text that is too long.
    pub fn limit(&self, content: Vec<Block>) -> Made {
        let made = Made { content, full_output: None };
        let text = made.text();
        let Some(cut) = middle_cut(&text, TEXT_MAX) else { return made };
        let (full_output, place) = match self.keep(text.as_bytes()) {
            Ok(path) => (Some(path.clone()), format!("All of it: {path} (read it with offset and limit)")),
            Err(reason) => (None, format!("All of it could not be saved: {reason}")),
        };
        let lines = text.lines().count();
        let size = truncate::size(text.len() as u64);
        let shown = format!("[{size} in {lines} lines, without the middle]\n\n{cut}\n\n[{place}]");
        let others = made.content.into_iter().filter(|block| !matches!(block, Block::Text(_)));
        Made { content: std::iter::once(Block::text(shown)).chain(others).collect(), full_output }
    }

    /// Keeps bytes as an output of the session. Gives the path.
    fn keep(&self, bytes: &[u8]) -> Result<String, String> {
        let mut kept =
            artifact::create(&*self.workspace.outputs, "mcp").map_err(|error| error.to_string())?;
        kept.file.write_all(bytes).map_err(|error| {
            let _ = std::fs::remove_file(&kept.path);
            error.to_string()
        })?;
        Ok(kept.path.to_string_lossy().into_owned())
    }
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// True for kinds whose bytes are text.
fn is_text(mime_type: &str) -> bool {
    let kind = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.starts_with("text/")
        || kind == "application/json"
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
}

/// The last boundary of characters of a text that is not after `at`.
pub fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The beginning and the end of a text of more than `bytes_max` bytes; none of a shorter one.
pub fn middle_cut(text: &str, bytes_max: usize) -> Option<String> {
    if text.len() <= bytes_max {
        return None;
    }
    let head = text.get(..boundary(text, bytes_max / 2))?;
    let tail = text.len() - bytes_max.div_ceil(2);
    let tail = text.get((tail..text.len()).find(|at| text.is_char_boundary(*at))?..)?;
    let left_out = text.get(head.len()..text.len() - tail.len())?.chars().count();
    Some(format!("{head}…{left_out} chars truncated…{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cancel::CancelToken;
    use crate::base::json::json;
    use crate::llm::model::Model;
    use crate::tools::testing::TempDir;
    use serde_json::Map;

    /// What the model is told of a result: texts, and `image` for images.
    fn told(result: &Value, can_read: bool) -> Vec<String> {
        let dir = TempDir::create();
        let (workspace, cancel, model) = (dir.workspace(), CancelToken::new(), Model::default());
        let call =
            Invocation { id: "1", arguments: &Map::new(), cancel: &cancel, model: &model, update: &|_| {} };
        let maker = Maker { server: "s", workspace: &workspace, call: &call, can_read };
        let made = maker.of_result(result);
        let shown = |block: &Block| match block {
            Block::Text(text) => text.text.replace(&*dir.path().to_string_lossy(), "DIR"),
            Block::Image(image) => format!("image {}", image.mime_type),
            _ => String::new(),
        };
        made.content.iter().map(shown).collect()
    }

    #[test]
    fn each_kind_of_content_becomes_text_or_an_image() {
        const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        let rows = [
            (json!({"type": "text", "text": "a"}), "a"),
            (json!({"type": "image", "data": PNG, "mimeType": "image/png"}), "image image/png"),
            (
                json!({"type": "image", "data": "%", "mimeType": "image/png"}),
                "[Image (image/png): its data is not valid base64]",
            ),
            (
                json!({"type": "image", "data": "QUJD", "mimeType": "image/x"}),
                "[Image omitted: image/x is not a kind that models take]",
            ),
            (
                json!({"type": "audio", "data": "QUJD", "mimeType": "audio/wav"}),
                "[Audio (audio/wav, 3B) was saved as DIR/.outputs/pi-mcp-0000000000000001.log]",
            ),
            (
                json!({"type": "audio", "data": "%", "mimeType": "audio/wav"}),
                "[Audio: its data is not valid base64]",
            ),
            (
                json!({"type": "resource_link", "uri": "u:1", "name": "n", "size": 2048, "mimeType": "text/x"}),
                "[Resource u:1 \"n\" (text/x, 2.0KB). read_mcp_resource reads it (server \"s\")]",
            ),
            (json!({"type": "resource", "resource": {"uri": "u:1", "text": "b"}}), "b"),
            (
                json!({"type": "resource", "resource": {"uri": "u:1", "blob": "YWI=", "mimeType": "application/json; x"}}),
                "ab",
            ),
            (
                json!({"type": "resource", "resource": {"uri": "u:1", "blob": "YWI="}}),
                "[Resource u:1 (unknown kind, 2B) was saved as DIR/.outputs/pi-mcp-0000000000000001.log]",
            ),
            (json!({"type": "new"}), "[Content of an unknown kind: \"new\"]"),
        ];
        for (block, expected) in rows {
            assert_eq!(told(&json!({"content": [block]}), true), [expected]);
        }
        assert_eq!(told(&json!({"content": [], "structuredContent": {"a": 1}}), false), ["{\n  \"a\": 1\n}"]);
        assert_eq!(told(&json!({"content": []}), false), Vec::<String>::new());
    }

    #[test]
    fn long_text_loses_its_middle() {
        let text = format!("{}ü{}", "a".repeat(TEXT_MAX), "b".repeat(TEXT_MAX));
        let told = told(&json!({"content": [{"type": "text", "text": text}]}), false);
        assert!(
            told[0].len() < TEXT_MAX + 300 && told[0].contains("20481 chars truncated…b"),
            "{}",
            told[0].len()
        );
        assert!(told[0].ends_with("pi-mcp-0000000000000001.log (read it with offset and limit)]"));
        assert_eq!(middle_cut("üü", 3).unwrap(), "…1 chars truncated…ü");
        assert_eq!(middle_cut("abc", 3), None);
    }
}
