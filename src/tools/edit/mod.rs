//! The `edit` tool: replaces texts of a file, all of them or none.
//!
//! Every text is searched in the original file, so the order of the edits does not matter. Bytes outside the
//! matches never change: encoding, byte order mark and line endings, even mixed ones, are kept. UTF-16 and
//! Latin-1 files are edited as text and written back in their encoding; a file in no known encoding is edited
//! by bytes.
//!
//! The search is in [`locate`], line endings of replacements are in [`ending`].

mod ending;
mod locate;
mod nearest;

use super::backend::{Kind, error_code, write_error_text};
use super::text::{self, Content, Encoding};
use super::{argument, diff, mutation, path, suggest, truncate};
use crate::agent::CancelToken;
use crate::agent::call::{self, Arguments, Body, CallInfo, Kind as CallKind};
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::base::order::Order;
use crate::llm::message::ToolSpec;
use crate::tools::workspace::Workspace;
use serde_json::{Map, Value};
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a file that can be edited.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum positions listed for a text that is not unique.
const MAX_LISTED: usize = 20;

pub fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: "edit".into(),
        description: "Replace texts in one file. Every oldText is matched against the file as it is before the call and must occur there exactly once; edits must not overlap."
            .into(),
        parameters: json!({
            "type": "object",
            "required": ["path", "edits"],
            "properties": {
                "path": {"type": "string", "description": "File to edit, relative or absolute"},
                "edits": {
                    "type": "array",
                    "description": "Replacements, applied together",
                    "items": {
                        "type": "object",
                        "required": ["oldText", "newText"],
                        "properties": {
                            "oldText": {"type": "string", "description": "Text of the file, with just enough around it to be unique"},
                            "newText": {"type": "string", "description": "What takes its place"},
                        },
                    },
                },
            },
        }),
        constrained_sampling: Some(argument::strict_if_possible()),
        ..ToolSpec::default()
    };
    Arc::new(EditTool {
        info: ToolInfo {
            spec,
            label: "edit".into(),
            snippet: Some("Replace exact texts in a file, several in one call".into()),
            rules: workspace
                .rules(["Make all changes to one file in one edit call, merging those to nearby lines."]),
            ..ToolInfo::default()
        },
        workspace,
    })
}

pub fn describe(arguments: &Arguments) -> CallInfo<'_> {
    fn edit(fields: &Arguments) -> call::Edit<'_> {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        call::Edit { old: text("oldText"), new: text("newText") }
    }
    let edits = match arguments.get("edits") {
        Some(Value::Array(edits)) => {
            edits.iter().map(|fields| fields.as_object().map(edit).unwrap_or_default()).collect()
        }
        _ => vec![edit(arguments)],
    };
    CallInfo::of_file(CallKind::Edit, "Edit", arguments, Body::Edits(edits))
}

struct EditTool {
    workspace: Arc<Workspace>,
    info: ToolInfo,
}

/// The diff that a call would make now, if it would succeed. Changes nothing; large files are not read.
pub fn preview(workspace: &Workspace, arguments: &Map<String, Value>) -> Option<String> {
    const LOOKED_AT_BYTES: u64 = 1 << 20;
    let (old, new) = texts(workspace, arguments, LOOKED_AT_BYTES)?;
    let arguments = prepare(arguments.clone());
    let given = arguments.get("path")?.as_str()?;
    Some(diff::changes(given, &old, &new).diff)
}

/// The file's text before and after a call, if it would succeed now, with `\n` as line ending. Changes
/// nothing; a file of more than `max_bytes` is not read.
pub fn texts(
    workspace: &Workspace,
    arguments: &Map<String, Value>,
    max_bytes: u64,
) -> Option<(String, String)> {
    let arguments = prepare(arguments.clone());
    let given = arguments.get("path")?.as_str()?;
    let edits = edits(&arguments).ok()?;
    let target = path::resolve_existing(workspace, given).ok()?;
    let backend = workspace.backend.as_ref();
    let stat = backend.stat(&target).ok()?;
    if stat.kind != Kind::File || stat.len > max_bytes {
        return None;
    }
    let mut content = Vec::new();
    let source = backend.open(&target).ok()?;
    source.take(max_bytes + 1).read_to_end(&mut content).ok()?;
    if content.len() as u64 > max_bytes {
        return None;
    }
    let file = File::decode(&content);
    let spans = spans(&file.body, &edits, given, &CancelToken::new()).ok()?;
    let body = replace(&file.body, &edits, &spans);
    Some((lf(&file.body), lf(&body)))
}

/// A replacement in the arguments of a call.
struct Edit {
    old: String,
    new: String,
    /// True to replace all matches instead of a unique one.
    all: bool,
}

impl Tool for EditTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        prepare(arguments)
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let given = argument::text(call, "path")?;
        let edits = edits(call.arguments)?;
        let target = path::resolve_existing(&self.workspace, given)?;
        let backend = self.workspace.backend.as_ref();
        let real = backend.canonical(&target).map_err(|error| cannot_edit(given, &error))?;
        let _lock = mutation::lock(&real, call.cancel).ok_or_else(ToolError::aborted)?;

        let old = self.read(given, &target)?;
        stop_if_cancelled(call)?;
        let file = File::decode(&old);
        let spans = spans(&file.body, &edits, given, call.cancel);
        stop_if_cancelled(call)?;
        let spans = spans?;
        let body = replace(&file.body, &edits, &spans);
        if body == *file.body {
            return Err(no_change(given, edits.len()));
        }
        let new = file.encode(&body, given)?;
        stop_if_cancelled(call)?;
        if self.read(given, &target)? != old {
            return Err(ToolError::new(format!(
                "{given} was changed by another program during this edit. Nothing was written. Read it again and repeat the edit."
            )));
        }
        let noted = self.workspace.note("edit", call.id, &real, &new);
        backend.write(&target, &new).map_err(|error| match error_code(&error) {
            Some("EACCES" | "EPERM" | "EROFS") => cannot_edit(given, &error),
            _ => ToolError::new(write_error_text(&error, &target)),
        })?;
        noted.made();

        let changes = diff::changes(given, &lf(&file.body), &lf(&body));
        let text = format!("Successfully replaced {} block(s) in {given}.", spans.len());
        let mut details = json!({"diff": changes.diff, "patch": changes.patch});
        if let Some(line) = changes.first_changed_line {
            details["firstChangedLine"] = line.into();
        }
        Ok(ToolOutput::text(text).with_details(details))
    }
}

impl EditTool {
    fn read(&self, given: &str, target: &Path) -> Result<Vec<u8>, ToolError> {
        let backend = self.workspace.backend.as_ref();
        let fail = |error: &std::io::Error| cannot_edit(given, error);
        let stat = backend.stat(target).map_err(|error| {
            let mut failure = fail(&error);
            if error.kind() == std::io::ErrorKind::NotFound {
                failure.message += &suggest::similar_paths(&self.workspace, target);
            }
            failure
        })?;
        if stat.kind == Kind::File && stat.len > MAX_BYTES {
            let size = truncate::size(stat.len);
            return Err(ToolError::new(format!(
                "{given} is too large to edit in memory ({size}). Use bash with sed or a script."
            )));
        }
        let mut content = Vec::new();
        let source = backend.open(target).map_err(|error| fail(&error))?;
        source.take(MAX_BYTES).read_to_end(&mut content).map_err(|error| fail(&error))?;
        Ok(content)
    }
}

fn stop_if_cancelled(call: &Invocation<'_>) -> Result<(), ToolError> {
    if call.cancel.is_cancelled() {
        return Err(ToolError::aborted());
    }
    Ok(())
}

/// Converts the forms of arguments that models send to that of the schema.
fn prepare(mut arguments: Map<String, Value>) -> Map<String, Value> {
    argument::rename(&mut arguments, "file_path", "path");
    rename_texts(&mut arguments);
    if let Some(Value::String(json)) = arguments.get("edits")
        && let Ok(parsed @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(json)
    {
        arguments.insert("edits".into(), parsed);
    }
    if let Some(edit @ Value::Object(_)) = arguments.get_mut("edits") {
        *edit = Value::Array(vec![edit.take()]);
    }
    if arguments.get("oldText").is_some_and(Value::is_string)
        && arguments.get("newText").is_some_and(Value::is_string)
    {
        let mut edit = Map::new();
        for name in ["oldText", "newText", "replaceAll"] {
            edit.extend(arguments.shift_remove_entry(name));
        }
        match arguments.get_mut("edits") {
            Some(Value::Array(edits)) => edits.push(edit.into()),
            _ => {
                arguments.insert("edits".into(), json!([edit]));
            }
        }
    }
    let all = arguments.shift_remove("replaceAll");
    if let Some(Value::Array(edits)) = arguments.get_mut("edits") {
        for edit in edits.iter_mut().filter_map(Value::as_object_mut) {
            rename_texts(edit);
            if let Some(all) = &all {
                edit.entry("replaceAll").or_insert_with(|| all.clone());
            }
        }
    }
    arguments
}

fn rename_texts(arguments: &mut Map<String, Value>) {
    argument::rename(arguments, "old_string", "oldText");
    argument::rename(arguments, "new_string", "newText");
    argument::rename(arguments, "replace_all", "replaceAll");
}

fn edits(arguments: &Map<String, Value>) -> Result<Vec<Edit>, ToolError> {
    let edits: Option<Vec<Edit>> = match arguments.get("edits") {
        Some(Value::Array(edits)) => edits
            .iter()
            .map(|edit| {
                let text = |name| edit.get(name)?.as_str().map(str::to_owned);
                let all = edit.get("replaceAll");
                Some(Edit {
                    old: text("oldText")?,
                    new: text("newText")?,
                    all: all.is_some_and(|all| *all == true || *all == "true"),
                })
            })
            .collect(),
        _ => None,
    };
    match edits {
        Some(edits) if !edits.is_empty() => Ok(edits),
        _ => Err(ToolError::new("Edit tool input is invalid. edits must contain at least one replacement.")),
    }
}

/// The content of a file, as UTF-8 if it is text.
struct File<'a> {
    mark: &'a [u8],
    /// `None` if the body is not text.
    encoding: Option<Encoding>,
    body: std::borrow::Cow<'a, [u8]>,
}

impl<'a> File<'a> {
    fn decode(content: &'a [u8]) -> Self {
        let bytes = Self { mark: b"", encoding: None, body: content.into() };
        let head = content.get(..text::SNIFF_BYTES).unwrap_or(content);
        let Content::Text(encoding, mark) = text::sniff(head) else {
            return bytes;
        };
        let (mark, body) = content.split_at(mark);
        match encoding.decode(body) {
            Some(std::borrow::Cow::Borrowed(text)) => {
                Self { mark, encoding: Some(encoding), body: text.as_bytes().into() }
            }
            Some(std::borrow::Cow::Owned(text)) => {
                Self { mark, encoding: Some(encoding), body: text.into_bytes().into() }
            }
            None => bytes,
        }
    }

    fn encode(&self, body: &[u8], given: &str) -> Result<Vec<u8>, ToolError> {
        let mut content = self.mark.to_vec();
        match (self.encoding, std::str::from_utf8(body)) {
            (Some(encoding), Ok(text)) => {
                let encoded = encoding.encode(text).map_err(|char| {
                    let name = encoding.name();
                    ToolError::new(format!(
                        "{given} is encoded in {name}, which has no {char:?}. Use other characters, or convert the file to UTF-8 first (bash: iconv)."
                    ))
                })?;
                content.extend_from_slice(&encoded);
            }
            _ => content.extend_from_slice(body),
        }
        Ok(content)
    }
}

/// A range to replace, and the edit that replaces it.
struct Span {
    at: Range<usize>,
    edit: usize,
}

/// The ranges of all edits, in the order of the file.
fn spans(body: &[u8], edits: &[Edit], given: &str, cancel: &CancelToken) -> Result<Vec<Span>, ToolError> {
    for (at, edit) in edits.iter().enumerate() {
        if edit.old.is_empty() {
            let name = if edits.len() == 1 { "oldText".into() } else { format!("edits[{at}].oldText") };
            return Err(ToolError::new(format!("{name} must not be empty in {given}.")));
        }
    }
    let wanted: Vec<&str> = edits.iter().map(|edit| edit.old.as_str()).collect();
    let mut spans: Vec<Span> = Vec::new();
    for (index, mut places) in locate::find_all(body, &wanted, cancel).into_iter().enumerate() {
        if edits.get(index).is_some_and(|edit| edit.all) {
            places.dedup_by(|next, before| next.start < before.end);
        } else if places.len() > 1 {
            return Err(not_unique(body, &places, edits, index, given));
        }
        if places.is_empty() {
            return Err(not_found(body, edits, index, given, cancel));
        }
        spans.extend(places.into_iter().map(|at| Span { at, edit: index }));
    }
    spans.order_by_key(|span| span.at.start);
    for pair in spans.windows(2) {
        if let [one, two] = pair
            && one.at.end > two.at.start
        {
            return Err(ToolError::new(format!(
                "edits[{}] and edits[{}] overlap in {given}. Merge them into one edit or target disjoint regions.",
                one.edit, two.edit
            )));
        }
    }
    Ok(spans)
}

fn replace(body: &[u8], edits: &[Edit], spans: &[Span]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut end = 0;
    for span in spans {
        let Some(edit) = edits.get(span.edit) else {
            continue;
        };
        out.extend_from_slice(body.get(end..span.at.start).unwrap_or_default());
        out.extend_from_slice(&ending::adapt(&edit.new, body, &span.at));
        end = span.at.end;
    }
    out.extend_from_slice(body.get(end..).unwrap_or_default());
    out
}

/// The text with `\n` for every line ending, for display.
fn lf(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text.into_owned() }
}

fn cannot_edit(given: &str, error: &std::io::Error) -> ToolError {
    ToolError::new(match error_code(error) {
        Some(code) => format!("Could not edit file: {given}. Error code: {code}."),
        None => format!("Could not edit file: {given}. Reason: {error}."),
    })
}

fn not_found(body: &[u8], edits: &[Edit], at: usize, given: &str, cancel: &CancelToken) -> ToolError {
    let mut message = if edits.len() == 1 {
        format!(
            "Could not find the exact text in {given}. The old text must match exactly including all whitespace and newlines."
        )
    } else {
        format!(
            "Could not find edits[{at}] in {given}. The oldText must match exactly including all whitespace and newlines."
        )
    };
    match (std::str::from_utf8(body), edits.get(at)) {
        (Ok(body), Some(edit)) => {
            if let Some(nearest) = nearest::describe(body, &edit.old, cancel) {
                message.push('\n');
                message.push_str(&nearest);
            }
        }
        _ => message.push_str("\nThe file is not UTF-8 throughout, so only exact text is found in it."),
    }
    ToolError::new(message)
}

fn not_unique(body: &[u8], places: &[Range<usize>], edits: &[Edit], at: usize, given: &str) -> ToolError {
    let count = places.len();
    let message = if edits.len() == 1 {
        format!(
            "Found {count} occurrences of the text in {given}. The text must be unique. Please provide more context to make it unique."
        )
    } else {
        format!(
            "Found {count} occurrences of edits[{at}] in {given}. Each oldText must be unique. Please provide more context to make it unique."
        )
    };
    let mut lines = Vec::new();
    let (mut line, mut end) = (1, 0);
    for place in places.iter().take(MAX_LISTED) {
        let between = body.get(end..place.start).unwrap_or_default();
        line += memchr::memchr_iter(b'\n', between).count();
        end = place.start;
        lines.push(line.to_string());
    }
    if count > MAX_LISTED {
        lines.push("…".into());
    }
    ToolError::new(format!(
        "{message}\nThey start in these lines: {}. To replace all of them, add \"replaceAll\": true to the edit.",
        lines.join(", ")
    ))
}

fn no_change(given: &str, edits: usize) -> ToolError {
    ToolError::new(if edits == 1 {
        format!(
            "No changes made to {given}. The replacement produced identical content. This might indicate an issue with special characters or the text not existing as expected."
        )
    } else {
        format!("No changes made to {given}. The replacements produced identical content.")
    })
}

#[cfg(test)]
mod tests;
