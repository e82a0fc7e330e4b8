//! A tool call, from the first byte of its arguments to its result.

use super::block::{plain, spaced};
use super::tool::{self, Summary};
use crate::base::json::json;
use crate::mode::interactive::drawings::{LAST, Part};
use crate::mode::interactive::look::{Look, boxed, indented, padded};
use crate::runtime::call::{CallInfo, Kind};
use crate::runtime::{Block, Describer, PartialJson, ToolOutput, ToolResult, image_size};
use crate::tui::image::{self, Picture, Pixels};
use crate::tui::line::Line;
use crate::tui::theme::Role;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Progress of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// The arguments are being received.
    Writing,
    /// The arguments are complete, and the call has not begun.
    Waiting,
    /// The call waits for approval, in a dialog that shows it.
    Asked,
    Running {
        since: Instant,
    },
    Done {
        is_error: bool,
        /// `None` for a call of an earlier run.
        took: Option<Duration>,
    },
}

pub struct Call {
    pub id: String,
    pub name: String,
    /// The helper that makes the call; `None` for a call of the session itself.
    pub helper: Option<String>,
    arguments: Map<String, Value>,
    /// Set while the arguments are received.
    json: Option<PartialJson>,
    pub state: State,
    /// True if the conversation holds the call's result, or will never have one.
    pub is_recorded: bool,
    /// The output so far.
    output: Option<ToolOutput>,
    /// Sizes of the images in the output.
    pixels: Vec<Pixels>,
    /// Diff of an edit, computed before the edit runs.
    pub preview: Option<String>,
    /// Counts the changes of arguments and output.
    changes: u64,
}

impl Call {
    pub fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            helper: None,
            arguments: Map::new(),
            json: None,
            state: State::Writing,
            is_recorded: false,
            output: None,
            pixels: Vec::new(),
            preview: None,
            changes: 0,
        }
    }

    /// The arguments received so far.
    pub fn arguments(&self) -> &Map<String, Value> {
        match &self.json {
            Some(json) => json.object(),
            None => &self.arguments,
        }
    }

    /// The tool's description of the call, from the arguments received so far.
    pub fn info(&self, describer: &Describer) -> CallInfo<'_> {
        describer.describe(&self.name, self.arguments())
    }

    pub fn set_arguments(&mut self, arguments: Map<String, Value>) {
        self.arguments = arguments;
        self.json = None;
        self.changes += 1;
    }

    /// Appends to the arguments' JSON text.
    pub fn write(&mut self, piece: &str) {
        self.json.get_or_insert_with(PartialJson::new).push(piece);
        self.changes += 1;
    }

    /// Marks the arguments as complete.
    pub fn written(&mut self) {
        if self.state == State::Writing {
            self.state = State::Waiting;
        }
    }

    /// Sets the result so far.
    pub fn set_output(&mut self, output: ToolOutput) {
        let images = output.content.iter().filter_map(|block| match block {
            Block::Image(image) => Some(image_size(&image.data).unwrap_or((0, 0))),
            _ => None,
        });
        self.pixels = images.map(|(width, height)| Pixels { width, height }).collect();
        self.output = Some(ToolOutput { structured: None, ..output });
        self.changes += 1;
    }

    pub fn end(&mut self, is_error: bool, now: Option<Instant>) {
        let took = match (self.state, now) {
            (State::Running { since }, Some(now)) => Some(now.saturating_duration_since(since)),
            (State::Done { took, .. }, _) => took,
            _ => None,
        };
        self.state = State::Done { is_error, took };
    }

    /// Ends the call with its result.
    pub fn finish(&mut self, result: &ToolResult, now: Option<Instant>) {
        self.set_output(ToolOutput {
            content: result.content.clone(),
            details: result.details.clone(),
            ..ToolOutput::default()
        });
        self.end(result.is_error, now);
    }

    /// Ends a call that did not run to its end.
    pub fn fail(&mut self, reason: &str, now: Option<Instant>) {
        self.output.get_or_insert_with(ToolOutput::default).content.push(Block::text(reason));
        self.end(true, now);
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done { .. })
    }

    pub fn is_error(&self) -> bool {
        matches!(self.state, State::Done { is_error: true, .. })
    }

    /// Running time of the call so far, or in total.
    pub fn took(&self, now: Option<Instant>) -> Option<Duration> {
        match self.state {
            State::Running { since } => now.map(|now| now.saturating_duration_since(since)),
            State::Done { took, .. } => took,
            _ => None,
        }
    }

    /// The text of the call's output.
    pub fn text(&self) -> Cow<'_, str> {
        let content = self.output.as_ref().map_or(&[][..], |output| &output.content);
        let mut texts = content.iter().filter_map(Block::as_text);
        match (texts.next(), texts.next()) {
            (None, _) => "".into(),
            (Some(text), None) => plain(text),
            (Some(first), Some(second)) => {
                let mut joined = format!("{first}\n{second}");
                for text in texts {
                    joined.push('\n');
                    joined.push_str(text);
                }
                plain(&joined).into_owned().into()
            }
        }
    }

    /// The images in the call's output.
    pub fn pictures(&self) -> impl Iterator<Item = Picture<'_>> {
        let path = self.arguments().get("path").and_then(Value::as_str);
        let name = path.and_then(|path| path.rsplit('/').next()).unwrap_or("image");
        let content = self.output.iter().flat_map(|output| &output.content);
        let images = content.filter_map(|block| match block {
            Block::Image(image) => Some(image),
            _ => None,
        });
        images.zip(&self.pixels).map(move |(image, pixels)| Picture {
            name,
            mime: &image.mime_type,
            base64: &image.data,
            pixels: *pixels,
        })
    }

    pub fn details(&self) -> &Value {
        let details = self.output.as_ref().and_then(|output| output.details.as_ref());
        details.unwrap_or(&Value::Null)
    }

    /// Lines of the call. `room`: rows that are visible; of an expanded card only the last ones are built.
    pub fn lines(&self, look: &Look<'_>, now: Option<Instant>, room: Option<usize>) -> Vec<Line> {
        if self.state == State::Asked {
            return Vec::new();
        }
        let mut lines = self.body(look, now, room);
        let width = look.width.saturating_sub(2).max(1);
        let named = |picture| image::named_box(&picture, look.theme, width);
        let names: Vec<Line> = self.pictures().flat_map(named).collect();
        if !names.is_empty() {
            lines.push(Line::new());
            lines.extend(names);
        }
        self.boxed(lines, look)
    }

    /// The call as shown for approval, in about `room` rows. The end of a command is always shown too.
    pub fn lines_to_approve(&self, look: &Look<'_>, room: usize) -> Vec<Line> {
        let inner = look.within(look.width.saturating_sub(2).max(1));
        // The box has a row above and below.
        match tool::command_to_approve(&self.info(look.describer), &inner, room.saturating_sub(4)) {
            Some(lines) => self.boxed(lines, look),
            None => self.lines(look, None, None),
        }
    }

    /// Like [`Self::lines`], without placeholders for images: the images are drawn separately.
    pub fn lines_without_images(&self, look: &Look<'_>, now: Option<Instant>) -> Vec<Line> {
        self.boxed(self.body(look, now, None), look)
    }

    fn body(&self, look: &Look<'_>, now: Option<Instant>, room: Option<usize>) -> Vec<Line> {
        let look = look.within(look.width.saturating_sub(2).max(1));
        let info = self.info(look.describer);
        // Below the title's text, if there is room.
        let indent = tool::indent(&look);
        let inner = look.within(look.width - indent);
        let mut lines = match self.drawing("toolCall", &inner) {
            Some((Some(drawn), _)) => tool::marked(drawn, self, &look),
            _ => tool::title(self, &info, &look, now, room),
        };
        let body = match self.drawing("toolResult", &inner) {
            // Pi's own form would be on the screen for a moment only.
            Some((drawn, _)) => drawn.unwrap_or_default(),
            None => tool::body(self, &info, &inner, room),
        };
        if !body.is_empty() {
            if !look.is_compact {
                lines.push(Line::new());
            }
            lines.extend(padded(body, indent));
        }
        lines
    }

    /// What an extension draws of the call or of its result.
    fn drawing(&self, kind: &'static str, look: &Look<'_>) -> Option<(Option<Vec<Line>>, bool)> {
        if kind == "toolResult" && self.output.is_none() {
            return None;
        }
        let version = if self.is_done() { LAST } else { 2 * self.changes + u64::from(self.is_running()) };
        let part = Part { kind, name: &self.name, id: &self.id, version };
        look.drawn(part, || {
            let took = self.took(None).map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
            let mut fields = json!({"toolCallId": self.id, "toolName": self.name, "args": self.arguments(),
                "isError": self.is_error(), "isPartial": !self.is_done(), "durationMs": took,
                "executionStarted": self.is_done() || self.is_running(),
                "argsComplete": self.state != State::Writing});
            if let Some(output) = &self.output {
                fields["result"] = json!({"content": output.content, "details": output.details});
            }
            fields
        })
    }

    fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// True if an extension draws the call, and has not drawn it as it is now.
    pub fn is_awaited(&self, look: &Look<'_>) -> bool {
        let look = look.within(look.width.saturating_sub(2).max(1));
        let inner = look.within(look.width - tool::indent(&look));
        let is_waiting = |kind| matches!(self.drawing(kind, &inner), Some((_, false)));
        is_waiting("toolCall") || is_waiting("toolResult")
    }

    /// The sentence part that sums up a call which can stand in one row with others; `None` if it has more to
    /// show than its title.
    pub fn summary(&self, look: &Look<'_>) -> Option<Summary> {
        if look.is_open || !look.is_compact || self.is_error() || !self.is_done() || !self.pixels.is_empty() {
            return None;
        }
        if look.drawings.draws("toolCall", &self.name) || look.drawings.draws("toolResult", &self.name) {
            return None;
        }
        tool::summary(self, &self.info(look.describer))
    }

    /// True if the call may yet have a summary.
    pub fn may_be_summed(&self, look: &Look<'_>) -> bool {
        let is_brief = matches!(self.info(look.describer).kind, Kind::Read | Kind::Search);
        is_brief && look.is_compact && !look.is_open && !self.is_error()
    }

    fn boxed(&self, lines: Vec<Line>, look: &Look<'_>) -> Vec<Line> {
        let background = look.style(match self.state {
            State::Done { is_error: true, .. } => Role::ToolErrorBg,
            State::Done { .. } => Role::ToolSuccessBg,
            _ => Role::ToolPendingBg,
        });
        spaced(match look.is_compact {
            true => indented(lines),
            false => boxed(&lines, look, background),
        })
    }
}
