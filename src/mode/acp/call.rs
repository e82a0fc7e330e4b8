//! How a tool call looks in an editor: title, kind, the files it touches, what it changes in them.

use crate::runtime::approval::{excerpt, squeezed};
use crate::runtime::{Block, Workspace, resolve_path};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a file that is shown as what a call overwrites.
const OLD_MAX: u64 = 1 << 20;
/// Characters of a title.
const TITLE_MAX: usize = 200;

/// The category by which an editor picks an icon.
pub fn kind(tool: &str) -> &'static str {
    match tool {
        "read" => "read",
        "edit" | "write" => "edit",
        "bash" => "execute",
        "grep" | "find" | "ls" => "search",
        _ => "other",
    }
}

pub fn title(tool: &str, arguments: &Map<String, Value>) -> String {
    let title = whole_title(tool, arguments);
    match title.char_indices().nth(TITLE_MAX) {
        Some((end, _)) => format!("{}…", title.get(..end).unwrap_or_default()),
        None => title,
    }
}

/// What a call does, where the user decides on it: with the end of what is long.
pub fn title_to_approve(tool: &str, arguments: &Map<String, Value>) -> String {
    excerpt(&squeezed(&whole_title(tool, arguments)), TITLE_MAX)
}

fn whole_title(tool: &str, arguments: &Map<String, Value>) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let path = path_in(arguments);
    match (tool, path) {
        ("read", Some(path)) => format!("Read {path}"),
        ("edit", Some(path)) => format!("Edit {path}"),
        ("write", Some(path)) => format!("Write {path}"),
        ("ls", path) => format!("List {}", path.unwrap_or(".")),
        ("bash", _) => text("command").unwrap_or(tool).to_owned(),
        ("grep", path) => format!("Search {} for {}", path.unwrap_or("."), text("pattern").unwrap_or("?")),
        ("find", path) => format!("Find {} in {}", text("pattern").unwrap_or("?"), path.unwrap_or(".")),
        _ => tool.to_owned(),
    }
}

/// Models call it one or the other.
fn path_in(arguments: &Map<String, Value>) -> Option<&str> {
    let path = arguments.get("path").or_else(|| arguments.get("file_path"));
    path.and_then(Value::as_str)
}

/// The files that a call touches.
pub fn locations(workspace: &Workspace, arguments: &Map<String, Value>) -> Vec<Value> {
    let Some(path) = path_in(arguments).and_then(|path| resolve_path(workspace, path).ok()) else {
        return Vec::new();
    };
    let mut location = json!({"path": path.to_string_lossy()});
    if let Some(line) = arguments.get("offset").and_then(Value::as_u64) {
        location["line"] = line.into();
    }
    vec![location]
}

/// What a call changes; `before` is what the file of a `write` held.
pub fn diffs(
    workspace: &Workspace,
    tool: &str,
    arguments: &Map<String, Value>,
    before: Option<&str>,
) -> Vec<Value> {
    let Some(path) = path_in(arguments).and_then(|path| resolve_path(workspace, path).ok()) else {
        return Vec::new();
    };
    let path = path.to_string_lossy();
    let diff =
        |old: Option<&str>, new: &str| json!({"type": "diff", "path": path, "oldText": old, "newText": new});
    match tool {
        "write" => {
            let content = arguments.get("content").and_then(Value::as_str);
            content.map(|new| diff(before, new)).into_iter().collect()
        }
        "edit" => edits(arguments).into_iter().map(|(old, new)| diff(Some(old), new)).collect(),
        _ => Vec::new(),
    }
}

/// The replacements of an `edit`, also in the shape of a single one.
fn edits(arguments: &Map<String, Value>) -> Vec<(&str, &str)> {
    fn pair(edit: &Map<String, Value>) -> Option<(&str, &str)> {
        Some((edit.get("oldText")?.as_str()?, edit.get("newText")?.as_str()?))
    }
    match arguments.get("edits") {
        Some(Value::Array(edits)) => {
            let edits = edits.iter().filter_map(Value::as_object);
            edits.filter_map(pair).collect()
        }
        _ => pair(arguments).into_iter().collect(),
    }
}

/// What a `write` is about to overwrite; none where there is no such text, or too much of it.
pub fn text_before(workspace: &Workspace, tool: &str, arguments: &Map<String, Value>) -> Option<String> {
    if tool != "write" {
        return None;
    }
    text_of(&resolve_path(workspace, path_in(arguments)?).ok()?)
}

fn text_of(path: &Path) -> Option<String> {
    // A pipe or a device is not opened: that could wait for ever.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path).ok()?.take(OLD_MAX + 1);
    file.read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > OLD_MAX {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// A result's blocks as tool call content.
pub fn content(blocks: &[Block]) -> Vec<Value> {
    let wrap = |block: Value| json!({"type": "content", "content": block});
    blocks.iter().filter_map(block).map(wrap).collect()
}

/// A block that an editor can show.
pub fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text(text) => Some(json!({"type": "text", "text": text.text})),
        Block::Image(image) => {
            Some(json!({"type": "image", "data": image.data, "mimeType": image.mime_type}))
        }
        _ => None,
    }
}
