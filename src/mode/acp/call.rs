//! A tool call as shown in an editor: title, kind, files, and changes.

use crate::base::json::json;
use crate::runtime::approval::{excerpt, squeezed};
use crate::runtime::backend;
use crate::runtime::call::{Arguments, Body, CallInfo, Kind};
use crate::runtime::{Block, Workspace, edited_texts, resolve_path};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a file that is shown whole, before and after a call, in bytes.
const WHOLE_MAX: u64 = 1 << 20;
/// Maximum output of a running call that is shown, in bytes.
const PROGRESS_MAX: usize = 2 << 10;
/// Maximum characters of a title.
const TITLE_MAX: usize = 200;

/// The category by which an editor picks an icon.
pub fn kind(info: &CallInfo<'_>) -> &'static str {
    match info.kind {
        Kind::Read => "read",
        Kind::Edit => "edit",
        Kind::Execute => "execute",
        Kind::Search => "search",
        Kind::Other => "other",
    }
}

pub fn title(tool: &str, info: &CallInfo<'_>) -> String {
    let title = info.title.as_deref().unwrap_or(tool);
    match title.char_indices().nth(TITLE_MAX) {
        Some((end, _)) => format!("{}…", title.get(..end).unwrap_or_default()),
        None => title.to_owned(),
    }
}

/// The title of a call that needs approval: if long, its end is kept.
pub fn title_to_approve(tool: &str, info: &CallInfo<'_>) -> String {
    excerpt(&squeezed(info.title.as_deref().unwrap_or(tool)), TITLE_MAX)
}

/// The change of a file by a call.
#[derive(Debug, Default)]
pub struct Change {
    /// Diffs as tool call content.
    pub diffs: Vec<Value>,
    /// Number of the first line that differs, from 1.
    line: Option<u64>,
}

/// The file that a call is about.
fn path_of(workspace: &Workspace, info: &CallInfo<'_>) -> Option<PathBuf> {
    resolve_path(workspace, info.path?.given.text()?).ok()
}

/// The files that a call touches.
pub fn locations(workspace: &Workspace, info: &CallInfo<'_>, change: &Change) -> Vec<Value> {
    let Some(path) = path_of(workspace, info) else {
        return Vec::new();
    };
    let mut location = json!({"path": path.to_string_lossy()});
    // The protocol's lines have 32 bits.
    if let Some(line) = info.lines.offset.or(change.line).and_then(|line| u32::try_from(line).ok()) {
        location["line"] = line.into();
    }
    vec![location]
}

/// The planned change of a call, with the whole text of the file if it is not too long. The file is read like
/// tools read it, including unsaved text of the editor.
pub fn coming_change(workspace: &Workspace, info: &CallInfo<'_>, arguments: &Arguments) -> Change {
    let Some(path) = path_of(workspace, info) else {
        return Change::default();
    };
    let texts = match &info.body {
        Body::Content(content) => content.text().map(|new| (text_of(workspace, &path), new.to_owned())),
        Body::Edits(_) => edited_texts(workspace, arguments, WHOLE_MAX).map(|(old, new)| (Some(old), new)),
        _ => None,
    };
    match texts {
        Some((old, new)) => Change {
            line: old.as_ref().map(|old| first_difference(old, &new)),
            diffs: vec![diff(&path, old.as_deref(), &new)],
        },
        None => stored_change(workspace, info),
    }
}

/// The change of a stored call, from its arguments.
pub fn stored_change(workspace: &Workspace, info: &CallInfo<'_>) -> Change {
    let Some(path) = path_of(workspace, info) else {
        return Change::default();
    };
    let diffs = match &info.body {
        Body::Content(content) => content.text().map(|new| diff(&path, None, new)).into_iter().collect(),
        Body::Edits(edits) => {
            edits.iter().filter_map(|edit| Some(diff(&path, Some(edit.old?), edit.new?))).collect()
        }
        _ => Vec::new(),
    };
    Change { diffs, line: None }
}

fn diff(path: &Path, old: Option<&str>, new: &str) -> Value {
    json!({"type": "diff", "path": path.to_string_lossy(), "oldText": old, "newText": new})
}

/// The number of the first line that differs between `old` and `new`, from 1.
fn first_difference(old: &str, new: &str) -> u64 {
    let same = old.split_inclusive('\n').zip(new.split_inclusive('\n')).take_while(|(old, new)| old == new);
    same.count() as u64 + 1
}

/// The text that a `write` will overwrite; `None` if it is not text or too long.
fn text_of(workspace: &Workspace, path: &Path) -> Option<String> {
    let files = workspace.backend.as_ref();
    // A pipe or a device is not opened: that could wait for ever.
    if files.stat(path).ok()?.kind != backend::Kind::File {
        return None;
    }
    let mut bytes = Vec::new();
    files.open(path).ok()?.take(WHOLE_MAX + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > WHOLE_MAX {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// The end of a running call's output, as tool call content. An update replaces the previous one, so that
/// whole outputs would add up to the square of their length.
pub fn progress(blocks: &[Block]) -> Vec<Value> {
    let mut content = content(blocks);
    for block in &mut content {
        if let Some(Value::String(text)) = block.pointer_mut("/content/text")
            && text.len() > PROGRESS_MAX
        {
            let from = text.len() - PROGRESS_MAX;
            let line =
                text.as_bytes().get(from..).and_then(|tail| tail.iter().position(|byte| *byte == b'\n'));
            let from = line.map_or(from, |line| from + line + 1);
            let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            text.replace_range(..from, "…\n");
        }
    }
    content
}

/// The details of a result, without text that is already in its content.
pub fn raw_output(details: &Value) -> Value {
    let mut details = details.clone();
    if let Some(Value::Object(truncation)) = details.get_mut("truncation") {
        truncation.remove("content");
    }
    details
}

/// The blocks of a result as tool call content.
pub fn content(blocks: &[Block]) -> Vec<Value> {
    let wrap = |block: Value| json!({"type": "content", "content": block});
    blocks.iter().filter_map(block).map(wrap).collect()
}

/// A block in a form that an editor can show; `None` if there is none.
pub fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text(text) => Some(json!({"type": "text", "text": text.text})),
        Block::Image(image) => {
            Some(json!({"type": "image", "data": image.data, "mimeType": image.mime_type}))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_found() {
        for (old, new, line) in [
            ("", "a", 1),
            ("a\nb\n", "a\nc\n", 2),
            ("a\nb", "a\nb\nc", 2),
            ("a\n", "a\nb\n", 2),
            ("a\nb\nc\n", "x\nb\nc\n", 1),
        ] {
            assert_eq!(first_difference(old, new), line, "{old:?} {new:?}");
        }
    }

    #[test]
    fn progress_shows_the_last_lines() {
        let text =
            |text: &str| progress(&[Block::text(text)])[0]["content"]["text"].as_str().unwrap().to_owned();
        assert_eq!(text("short\n"), "short\n");
        let lines: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let shown = text(&lines);
        assert!(shown.len() <= PROGRESS_MAX + 4 && lines.ends_with(shown.strip_prefix("…\n").unwrap()));
        assert!(shown.starts_with("…\nline "), "{shown}");
        // One line without an end, cut inside of a character.
        let shown = text(&"é".repeat(PROGRESS_MAX + 1));
        assert!(shown.len() <= PROGRESS_MAX + 4 && shown.ends_with('é'));
    }
}
