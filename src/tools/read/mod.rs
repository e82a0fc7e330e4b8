//! The `read` tool: lines of a text file, or an image.
//!
//! A file is read in one pass and little memory, whatever its size. Text in UTF-16 or Latin-1 is decoded,
//! and the answer says so; a file that is neither text nor an image is named instead of shown.

mod binary;
mod window;

use super::backend::{Kind, Source, error_code, error_text};
use super::text::{self, Content, Encoding};
use super::{argument, artifact, image, path, suggest, truncate};
use crate::agent::call::{Arguments, Body, CallInfo, Kind as CallKind};
use crate::agent::tool::{Invocation, Serves, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::base::order::Order;
use crate::llm::message::{Block, ToolSpec, text_of};
use crate::llm::secret::Hider;
use crate::tools::workspace::Workspace;
use serde_json::{Map, Value};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use window::{Lines, Window};

const CHUNK_BYTES: usize = 256 * 1024;
/// Bytes after the shown lines in which further lines are counted.
const MAX_COUNTED: u64 = 1 << 30;
/// Bytes read of a file with size 0: kernel files generate their content when read.
const MAX_OF_KERNEL: u64 = 16 << 20;

pub fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: "read".into(),
        description: format!(
            "Read a text file or an image (png, jpeg, gif, webp, bmp). Text is cut after {} lines or {}; go on with offset.",
            truncate::MAX_LINES,
            truncate::size(truncate::MAX_BYTES as u64).replace(".0", ""),
        ),
        parameters: json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "File to read, relative or absolute; artifact://N for kept output N"},
                "offset": {"type": "number", "description": "First line, counted from 1"},
                "limit": {"type": "number", "description": "Number of lines"},
            },
        }),
        constrained_sampling: Some(argument::strict_if_possible()),
        ..ToolSpec::default()
    };
    Arc::new(ReadTool {
        workspace,
        info: ToolInfo {
            spec,
            label: "read".into(),
            result: Some(json!({"anyOf": [
                {"type": "string"},
                {"type": "object", "required": ["type", "data", "mimeType", "note"], "properties": {
                    "type": {"const": "image"},
                    "data": {"type": "string"},
                    "mimeType": {"type": "string"},
                    "note": {"type": "string"},
                }},
            ]})),
            snippet: Some("Read files and images".into()),
            rules: vec!["Look at files with read, not with cat or sed.".into()],
            reads_only: true,
            serves: Serves { reading: true, ..Serves::default() },
            ..ToolInfo::default()
        },
    })
}

pub fn describe(arguments: &Arguments) -> CallInfo<'_> {
    CallInfo::of_file(CallKind::Read, "Read", arguments, Body::Nothing)
}

struct ReadTool {
    workspace: Arc<Workspace>,
    info: ToolInfo,
}

impl Tool for ReadTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn prepare(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        argument::rename(&mut arguments, "file_path", "path");
        arguments
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let given = argument::text(call, "path")?;
        let kept = artifact::named(given).map(|number| self.kept(number));
        let kept = kept.or_else(|| artifact::helper(given).map(|name| self.answer(name)));
        let path = match kept.transpose()? {
            Some(path) => path,
            None => path::resolve_existing(&self.workspace, given)?,
        };
        // For commands in the answer.
        let shown = match artifact::named(given).or(artifact::helper(given)) {
            Some(_) => path.to_string_lossy(),
            None => given.into(),
        };
        stop_if_cancelled(call)?;
        let mut file = File::open(&self.workspace, &path)?;
        let head = file.read_up_to(text::SNIFF_BYTES)?;
        if let Some(kind) = image::Kind::sniff(&head) {
            return self.image(call, file, head, kind);
        }
        let content = match binary::kind(&head) {
            Some(_) if head.starts_with(b"%PDF-") => Content::Binary,
            _ => text::sniff(&head),
        };
        match content {
            Content::Text(encoding, mark) => {
                let text = head.get(mark..).unwrap_or_default();
                let output = lines(call, &shown, file, text, encoding, self.workspace.vault.hider())?;
                let structured = Some(text_of(&output.content).into());
                Ok(ToolOutput { structured, ..output })
            }
            Content::Binary => {
                let (kind, command) = binary::kind(&head).unwrap_or(binary::UNKNOWN);
                let size = truncate::size(file.length.max(head.len() as u64));
                let text = format!(
                    "[{given} is not text but {kind} ({size}), so it is not shown. Use bash to look inside: {}.]",
                    command.replace("PATH", &quoted(&shown)),
                );
                Ok(ToolOutput { structured: Some(text.as_str().into()), ..ToolOutput::text(text) })
            }
        }
    }
}

impl ReadTool {
    /// The file of the complete output with this number.
    fn kept(&self, number: &str) -> Result<PathBuf, ToolError> {
        let number = number.trim_end_matches('/');
        let found = number.parse().ok().and_then(|number| artifact::find(&*self.workspace.outputs, number));
        found.ok_or_else(|| {
            ToolError::new(format!(
                "There is no kept output {number:?} in this session. Run the command again."
            ))
        })
    }

    /// The file of the answer of the helper with this name.
    fn answer(&self, name: &str) -> Result<PathBuf, ToolError> {
        let name = name.trim_end_matches('/');
        let outputs = &*self.workspace.outputs;
        let mut known: Vec<String> = artifact::answers(outputs).collect();
        let folder = outputs.if_there().filter(|_| known.iter().any(|other| other == name));
        let path = folder.map(|folder| artifact::answer_path(&folder, name)).filter(|path| path.exists());
        path.ok_or_else(|| {
            known.order();
            known.dedup();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            ToolError::new(format!("There is no answer of a helper {name:?} in this session. Known: {known}"))
        })
    }

    fn image(
        &self,
        call: &Invocation<'_>,
        mut file: File,
        head: Vec<u8>,
        kind: image::Kind,
    ) -> Result<ToolOutput, ToolError> {
        let prepared = if file.length > image::MAX_FILE_BYTES {
            let size = truncate::size(file.length);
            Err(format!("[Image omitted: a file of {size} is too large to be loaded.]"))
        } else {
            let mut bytes = head;
            bytes.append(&mut file.read_up_to(usize::try_from(image::MAX_FILE_BYTES).unwrap_or(usize::MAX))?);
            stop_if_cancelled(call)?;
            let limits = image::Limits::of(call.model, self.workspace.options.resize_images);
            image::prepare(&bytes, kind, &limits, self.workspace.backend.sandbox(), call.cancel)
        };
        stop_if_cancelled(call)?;
        let (mut notes, block) = match prepared {
            Ok(prepared) => {
                let mut notes = vec![format!("Read image file [{}]", prepared.mime_type)];
                notes.extend(prepared.hints);
                (notes, Some(Block::image(prepared.data, prepared.mime_type)))
            }
            Err(reason) => (vec![format!("Read image file [{}]", kind.mime_type()), reason], None),
        };
        if !call.model.takes_images() {
            notes.push(
                "[Current model does not support images. The image will be omitted from this request.]"
                    .into(),
            );
        }
        let note = notes.join("\n");
        let structured = match &block {
            Some(Block::Image(image)) => {
                json!({"type": "image", "data": image.data, "mimeType": image.mime_type, "note": note})
            }
            _ => note.as_str().into(),
        };
        let mut output = ToolOutput { structured: Some(structured), ..ToolOutput::text(note) };
        output.content.extend(block);
        Ok(output)
    }
}

/// A file that is being read.
struct File<'a> {
    source: Box<dyn Source>,
    path: &'a Path,
    /// The size reported by the system; the actual length may differ.
    length: u64,
}

impl<'a> File<'a> {
    fn open(workspace: &Workspace, path: &'a Path) -> Result<Self, ToolError> {
        let backend = workspace.backend.as_ref();
        let fail = |error: io::Error, call: &str| {
            let text = error_text(&error, call, path);
            ToolError::new(match error_code(&error) {
                Some("ENOENT" | "ENOTDIR") => match suggest::similar_paths(workspace, path) {
                    similar if similar.is_empty() => text,
                    similar => format!("{text}.{similar}"),
                },
                Some("EISDIR") => format!("{text}. List a folder with bash (ls) or the ls tool."),
                None => format!("{text}. Use bash for it, with a limit (head -c)."),
                _ => text,
            })
        };
        let stat = backend.stat(path).map_err(|error| fail(error, "access"))?;
        if stat.kind == Kind::Dir {
            return Err(fail(io::ErrorKind::IsADirectory.into(), "read"));
        }
        let source = backend.open(path).map_err(|error| fail(error, "open"))?;
        Ok(Self { source, path, length: stat.len })
    }

    /// The next bytes; fewer than `count` only at the end of the file.
    fn read_up_to(&mut self, count: usize) -> Result<Vec<u8>, ToolError> {
        let mut bytes = Vec::new();
        match self.source.by_ref().take(count as u64).read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            // Some files of the kernel would wait for more to come: what is there now is all.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(bytes),
            Err(error) => Err(ToolError::new(error_text(&error, "read", self.path))),
        }
    }
}

fn stop_if_cancelled(call: &Invocation<'_>) -> Result<(), ToolError> {
    if call.cancel.is_cancelled() {
        return Err(ToolError::aborted());
    }
    Ok(())
}

/// The requested lines, given the first bytes of the file.
fn lines(
    call: &Invocation<'_>,
    given: &str,
    mut file: File<'_>,
    head: &[u8],
    encoding: Encoding,
    hider: Hider,
) -> Result<ToolOutput, ToolError> {
    let offset = argument::number(call, "offset").unwrap_or(0);
    let skip = offset.saturating_sub(1);
    let mut window = Window::new(encoding, skip, argument::number(call, "limit"), hider);
    window.feed(head);
    let mut left = match file.length {
        0 => MAX_OF_KERNEL,
        _ => u64::MAX,
    };
    let mut counted = 0;
    // A file that ended within its head gives nothing more.
    while left > 0 && counted < MAX_COUNTED {
        stop_if_cancelled(call)?;
        let chunk = file.read_up_to(CHUNK_BYTES)?;
        if chunk.is_empty() {
            break;
        }
        if window.is_filled() {
            counted += chunk.len() as u64;
        }
        left = left.saturating_sub(chunk.len() as u64);
        window.feed(&chunk);
    }
    let lines = window.finish().map_err(|lines| {
        ToolError::new(format!("Offset {offset} is beyond end of file ({lines} lines total)"))
    })?;
    let complete = counted < MAX_COUNTED;
    Ok(answer(given, skip + 1, &lines, encoding, complete))
}

/// The result: lines and notices. `first` is the number of the first line.
fn answer(given: &str, first: u64, lines: &Lines, encoding: Encoding, complete: bool) -> ToolOutput {
    let limits = truncate::Limits::DEFAULT;
    let truncation = truncate::head_of(&lines.text, lines.totals, limits);
    // Of a file too large to be counted to its end, at least so many.
    let total = format!("{}{}", lines.file_lines, if complete { "" } else { "+" });
    let max_size = truncate::size(limits.bytes as u64);
    let last = first + truncation.output_lines as u64 - u64::from(truncation.output_lines > 0);
    let next = last + 1;
    let left = lines.file_lines.saturating_sub(first - 1 + lines.count);
    let notice = if truncation.first_line_exceeds_limit {
        format!(
            "[Line {first} is {}, exceeds {max_size} limit. Use bash: sed -n '{first}p' {} | head -c {}]",
            truncate::size(lines.first_line_bytes),
            quoted(given),
            limits.bytes,
        )
    } else if truncation.truncated {
        let by_size = match truncation.truncated_by {
            Some(truncate::TruncatedBy::Bytes) => format!(" ({max_size} limit)"),
            _ => String::new(),
        };
        format!("[Showing lines {first}-{last} of {total}{by_size}. Use offset={next} to continue.]")
    } else if left > 0 {
        let next = first + lines.count;
        let more = if complete { "" } else { "+" };
        format!("[{left}{more} more lines in file. Use offset={next} to continue.]")
    } else {
        String::new()
    };
    let encoding = match encoding {
        Encoding::Utf8 if lines.damaged => {
            "[Some bytes are not UTF-8 and are shown as \u{fffd}. Lines with them cannot be matched by edit.]"
                .to_owned()
        }
        Encoding::Utf8 => String::new(),
        other => format!(
            "[The file is encoded in {}. It is shown decoded, and edit keeps the encoding; write would make it UTF-8.]",
            other.name()
        ),
    };
    let parts = [truncation.content.as_str(), &notice, &encoding];
    // The content stands first even when it is empty, but for a line that is too long.
    let parts = parts
        .iter()
        .enumerate()
        .filter(|(at, part)| !part.is_empty() || (*at == 0 && !truncation.first_line_exceeds_limit));
    let text: Vec<&str> = parts.map(|(_, part)| *part).collect();
    let output = ToolOutput::text(text.join("\n\n"));
    if truncation.truncated { output.with_details(json!({ "truncation": truncation })) } else { output }
}

/// A path quoted for a shell.
fn quoted(path: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "._-+/@%:,=~".contains(char);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests;
