//! The card of each tool: a title, and an excerpt of the call's work.

use super::block::duration;
use super::call::{Call, State};
use super::rows::{Extent, last_lines, rows};
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::{Look, padded};
use crate::runtime::approval::squeezed;
use crate::runtime::call::{Argument, Body as Shown, CallInfo, Edit, Kind, Lines, Place, Subject};
use crate::runtime::size_text;
use crate::tui::diff_view;
use crate::tui::highlight::{self, Highlighter};
use crate::tui::line::Line;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use serde_json::Value;
use std::time::{Duration, Instant};

/// A command that takes longer shows its time.
const SHOWN: Duration = Duration::from_millis(100);
/// A call other than a command that takes longer shows its time.
const SLOW: Duration = Duration::from_secs(2);

/// Rows shown of folded parts.
mod folded {
    pub const CHANGE: usize = 10;
    pub const ERROR: usize = 20;
    /// Rows of a command, or of the arguments of a tool that does not describe its calls.
    pub const TITLE: usize = 20;
}

/// Cells of the mark before a title.
pub const MARK: usize = 2;
/// Width up to which nothing is indented by a mark.
pub const NARROW: usize = 20;

/// The part of a sentence for some calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What was done: `read`, `searched`, `found`, `listed`.
    pub verb: &'static str,
    /// What it was done to.
    pub object: String,
    /// What several of such objects are called; none if the first stands for all.
    pub plural: Option<&'static str>,
}

/// Sums up a call that read or searched and has nothing to warn of.
pub fn summary(call: &Call, info: &CallInfo<'_>) -> Option<Summary> {
    let subject = info.subject.and_then(|subject| subject.text.text());
    let path = info.path.and_then(|path| path.given.text().or(path.default));
    let (verb, object, plural) = match (info.kind, call.name.as_str(), subject) {
        (Kind::Read, "read", _) => ("read", path?.to_owned(), Some("files")),
        (Kind::Search, "grep", Some(pattern)) => ("searched", format!("\"{pattern}\""), None),
        (Kind::Search, "find", Some(pattern)) => ("found", pattern.to_owned(), None),
        (Kind::Search, "ls", _) => ("listed", path?.to_owned(), Some("folders")),
        _ => return None,
    };
    let details = call.details().as_object();
    let is_whole = details.is_none_or(|details| details.values().all(|value| !is_limit(value)));
    let is_skill = object.ends_with("/SKILL.md");
    (is_whole && !is_skill).then_some(Summary { verb, object, plural })
}

/// True if a detail of a result says that something was left out.
fn is_limit(detail: &Value) -> bool {
    match detail {
        Value::Object(cut) => cut.get("truncated") == Some(&Value::Bool(true)),
        Value::Number(_) | Value::Bool(true) => true,
        _ => false,
    }
}

/// One row for calls with these summaries.
pub fn summed(summaries: &[Summary], look: &Look<'_>) -> Line {
    let mut line = mark(&State::Done { is_error: false, took: None }, look);
    let mut verbs: Vec<&'static str> = Vec::new();
    for summary in summaries {
        if !verbs.contains(&summary.verb) {
            verbs.push(summary.verb);
        }
    }
    for (at, verb) in verbs.iter().enumerate() {
        let same: Vec<&Summary> = summaries.iter().filter(|summary| summary.verb == *verb).collect();
        let Some(first) = same.first() else { continue };
        if at > 0 {
            line.push(", ", look.style(Role::ToolOutput));
        }
        line.push(&format!("{verb} "), look.style(Role::ToolTitle).with(Attributes::BOLD));
        let accent = look.style(Role::Accent);
        match (same.len(), first.plural) {
            (1, _) => line.push(&first.object, accent),
            (count, Some(noun)) => line.push(&format!("{count} {noun}"), look.style(Role::ToolOutput)),
            (count, None) => {
                line.push(&first.object, accent);
                line.push(&format!(" ({count})"), look.style(Role::ToolOutput));
            }
        }
    }
    if look.is_plain {
        line.push(" (done)", look.style(Role::Muted));
    }
    line
}

/// The state of a call before its title, as a mark that no colour is needed for.
fn mark(state: &State, look: &Look<'_>) -> Line {
    if look.is_plain {
        return Line::new();
    }
    let (mark, role) = match state {
        State::Writing | State::Waiting | State::Asked => ("• ", Role::Muted),
        State::Running { .. } => ("• ", Role::Accent),
        State::Done { is_error: true, .. } => ("✗ ", Role::Error),
        State::Done { .. } => ("✓ ", Role::Success),
    };
    Line::of(mark, look.style(role).with(Attributes::BOLD))
}

/// Text before the exit code of a failed command.
const EXIT_CODE: &str = "Command exited with code ";

/// The text of a failed command's output before the last paragraph, and that paragraph.
fn ending(text: &str) -> (&str, &str) {
    match text.trim_end().rsplit_once("\n\n") {
        Some((output, ending)) => (output, ending),
        None => ("", text.trim_end()),
    }
}

/// Title of a call. `room`: rows that are visible.
pub fn title(
    call: &Call,
    info: &CallInfo<'_>,
    look: &Look<'_>,
    now: Option<Instant>,
    room: Option<usize>,
) -> Vec<Line> {
    let mark = mark(&call.state, look);
    // Further rows begin below the first one's text, if there is room.
    let indents = !mark.is_empty() && look.width > NARROW;
    let inner = look.within(look.width - if indents { MARK } else { 0 });
    let is_command = matches!(info.body, Shown::Command { .. });
    let line = if indents { Line::new() } else { mark.clone() };
    let mut title = Title { look: &inner, now, room, is_command, line };
    if is_command
        && call.is_error()
        && let Some(code) = ending(&call.text()).1.strip_prefix(EXIT_CODE)
    {
        title.line.push(&format!("exit {code} "), look.style(Role::Error));
    }
    let lines = match info.body {
        Shown::Command { command, timeout } => title.command(call, command, timeout),
        Shown::Unknown => title.other(call),
        _ => {
            title.described(call, info);
            title.finish(call)
        }
    };
    if indents { with_mark(mark, lines) } else { lines }
}

/// Lines that an extension has drawn, behind the mark of the call's state.
pub fn marked(lines: Vec<Line>, call: &Call, look: &Look<'_>) -> Vec<Line> {
    if indent(look) > 0 { with_mark(mark(&call.state, look), lines) } else { lines }
}

/// Cells before what stands below a title.
pub fn indent(look: &Look<'_>) -> usize {
    if look.is_compact && !look.is_plain && look.width > NARROW { MARK } else { 0 }
}

fn with_mark(mark: Line, lines: Vec<Line>) -> Vec<Line> {
    let mut lines = padded(lines, MARK);
    if let Some(first) = lines.first_mut() {
        let rest = first.slice(MARK..first.text().len());
        *first = mark;
        first.append(&rest);
    }
    lines
}

/// The command of a call that waits for approval, in at most `room` rows: its beginning, its end and its
/// length.
pub fn command_to_approve(info: &CallInfo<'_>, look: &Look<'_>, room: usize) -> Option<Vec<Line>> {
    let Shown::Command { command, timeout } = info.body else {
        return None;
    };
    let command = command.text().filter(|command| !command.is_empty())?;
    let room = room.clamp(3, folded::TITLE);
    let style = look.style(Role::ToolTitle).with(Attributes::BOLD);
    let text = format!("$ {}", squeezed(command.trim_end()));
    let part = |extent| rows(&text, look.width, extent, &mut |line| Line::of(line, style));
    let whole = part(Extent::First(room));
    let mut lines = match whole.hidden {
        0 => whole.shown,
        _ => {
            let end = (room - 1) / 2;
            let mut lines = part(Extent::First(room - 1 - end)).shown;
            let (count, length) = (command.lines().count(), command.chars().count());
            let between = format!("… {count} lines, {length} characters in all …");
            lines.push(Line::of(&between, look.style(Role::Warning)).cut(look.width));
            lines.extend(part(Extent::Last(end)).shown);
            lines
        }
    };
    if let Some(seconds) = timeout {
        lines.push(Line::of(&format!("(timeout {seconds}s)"), look.style(Role::Muted)));
    }
    Some(lines)
}

struct Title<'a> {
    look: &'a Look<'a>,
    now: Option<Instant>,
    room: Option<usize>,
    is_command: bool,
    line: Line,
}

impl Title<'_> {
    fn push(&mut self, text: &str, role: Role) {
        self.line.push(text, self.look.style(role));
    }

    fn name_style(&self) -> Style {
        self.look.style(Role::ToolTitle).with(Attributes::BOLD)
    }

    fn name(&mut self, name: &str) {
        self.line.push(&format!("{name} "), self.name_style());
    }

    fn wrong(&mut self) {
        self.push("[invalid arg]", Role::Error);
    }

    /// The tool's name and its description of the call.
    fn described(&mut self, call: &Call, info: &CallInfo<'_>) {
        let path = info.path.and_then(|path| path.given.text());
        let skill = path.filter(|_| info.kind == Kind::Read && !self.look.is_open);
        let skill = skill.and_then(|path| path.strip_suffix("/SKILL.md")?.rsplit('/').next());
        if let Some(name) = skill {
            let label = self.look.style(Role::CustomMessageLabel);
            self.line.push("[skill] ", label.with(Attributes::BOLD));
            self.push(name, Role::CustomMessageText);
        } else {
            self.name(&call.name);
            if let Some(Subject { text, quote }) = info.subject {
                match text {
                    Argument::Wrong => self.wrong(),
                    text => {
                        let text = text.text().unwrap_or_default();
                        self.push(&format!("{quote}{text}{quote}"), Role::Accent);
                    }
                }
            }
            if let Some(place) = info.path {
                if info.subject.is_some() {
                    self.push(" in ", Role::ToolOutput);
                }
                self.place(place);
            }
        }
        // The first line has the number 1.
        let lines = Lines { offset: info.lines.offset.map(|line| line.max(1)), ..info.lines };
        if let Some((first, last)) = lines.range() {
            let last = last.map_or_else(String::new, |last| format!("-{last}"));
            self.push(&format!(":{first}{last}"), Role::Warning);
        }
        for note in &info.notes {
            self.push(note, Role::ToolOutput);
        }
    }

    /// A path as a link to its file.
    fn place(&mut self, place: Place<'_>) {
        match place.given {
            Argument::Text(path) if !path.is_empty() => {
                let (shown, link) = self.look.place(path);
                let style = self.look.style(Role::Accent);
                self.line.push_link(&shown, style, link.as_ref());
            }
            Argument::Wrong => self.wrong(),
            _ => self.push(place.default.unwrap_or("..."), Role::ToolOutput),
        }
    }

    fn command(mut self, call: &Call, command: Argument<'_>, timeout: Option<&Value>) -> Vec<Line> {
        self.line.push("$ ", self.name_style());
        match command {
            Argument::Wrong => self.wrong(),
            Argument::Text(command) if !command.is_empty() => {
                let style = self.name_style();
                let width = self.look.width;
                let extent = match (self.look.is_open, self.room) {
                    (false, _) => Extent::First(folded::TITLE),
                    (true, Some(room)) => Extent::First(room),
                    (true, None) => Extent::All,
                };
                let mut begin = Some(std::mem::take(&mut self.line));
                let command = rows(command.trim_end(), width, extent, &mut |text| {
                    let mut line = begin.take().unwrap_or_default();
                    line.push(text, style);
                    line
                });
                let mut lines = command.shown;
                if command.hidden > 0 {
                    lines.push(hint(self.look, command.hidden, "more", None));
                }
                self.line = lines.pop().unwrap_or_default();
                if let Some(seconds) = timeout {
                    self.push(&format!(" (timeout {seconds}s)"), Role::Muted);
                }
                lines.extend(self.finish(call));
                return lines;
            }
            _ => self.push("...", Role::ToolOutput),
        }
        self.finish(call)
    }

    /// A tool that does not describe its calls: its name and arguments.
    fn other(mut self, call: &Call) -> Vec<Line> {
        self.name(&call.name);
        let arguments = call.arguments();
        let muted = self.look.style(Role::ToolOutput);
        if self.look.is_open && !arguments.is_empty() {
            let (width, room) = (self.look.width, self.room);
            let mut lines = self.finish(call);
            let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
            let extent = room.map_or(Extent::All, Extent::First);
            let paint = &mut |line: &str| Line::of(line, muted);
            lines.extend(rows(&text, width, extent, paint).shown);
            return lines;
        }
        let width = self.look.width;
        let mut text = String::new();
        for (name, value) in arguments {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(name);
            text.push('=');
            text.push_str(&value.to_string());
            if text.len() > width.saturating_mul(4 * folded::TITLE) {
                break;
            }
        }
        let mut begin = Some(std::mem::take(&mut self.line));
        let shown = rows(&text, width, Extent::First(3), &mut |text| {
            let mut line = begin.take().unwrap_or_default();
            line.push(text, muted);
            line
        });
        let mut lines = shown.shown;
        self.line = lines.pop().or(begin).unwrap_or_default();
        if shown.hidden > 0 {
            self.push(" ...", Role::Muted);
        }
        lines.extend(self.finish(call));
        lines
    }

    /// Adds the time of a command, and the state if states are shown as words.
    fn finish(mut self, call: &Call) -> Vec<Line> {
        if self.look.is_plain {
            let word = match call.state {
                State::Writing | State::Waiting | State::Asked => " (waiting)",
                State::Running { .. } => " (running)",
                State::Done { is_error: true, .. } => " (failed)",
                State::Done { .. } => " (done)",
            };
            self.push(word, Role::Muted);
        }
        let is_command = self.is_command;
        if let Some(took) = call.took(self.now).filter(|took| *took >= if is_command { SHOWN } else { SLOW })
            && (call.is_done() || !self.look.is_plain)
        {
            self.push(&format!("  {}", duration(took)), Role::Muted);
        }
        wrap(&self.line, self.look.width)
    }
}

pub fn body(call: &Call, info: &CallInfo<'_>, look: &Look<'_>, room: Option<usize>) -> Vec<Line> {
    let mut body = Body { call, info, look, room, out: Vec::new() };
    match &info.body {
        Shown::Command { .. } => body.command(),
        Shown::Content(content) => body.content(*content),
        Shown::Edits(edits) => body.edits(edits),
        _ if info.kind == Kind::Read => body.read(),
        _ if info.kind == Kind::Search => body.list(),
        _ => body.other(),
    }
    body.out
}

struct Body<'a> {
    call: &'a Call,
    info: &'a CallInfo<'a>,
    look: &'a Look<'a>,
    room: Option<usize>,
    out: Vec<Line>,
}

impl<'a> Body<'a> {
    /// Text that is folded to `extent` unless expanded; with `counts` the hint also has the total of lines.
    fn text(&mut self, text: &str, extent: Extent, counts: bool, paint: &mut dyn FnMut(&str) -> Line) {
        let extent = match (self.look.is_open, self.room) {
            (false, _) => extent,
            (true, Some(room)) => Extent::Last(room),
            (true, None) => Extent::All,
        };
        let rows = rows(text, self.look.width, extent, paint);
        let total = counts.then(|| text.lines().count());
        let hint = |word| hint(self.look, rows.hidden, word, total).cut(self.look.width);
        match extent {
            _ if rows.hidden == 0 => self.out.extend(rows.shown),
            Extent::Last(_) => {
                self.out.push(hint("earlier"));
                self.out.extend(rows.shown);
            }
            _ => {
                self.out.extend(rows.shown);
                self.out.push(hint("more"));
            }
        }
    }

    fn output(&mut self, text: &str, extent: Extent, role: Role) {
        let style = self.look.style(role);
        self.text(text, extent, false, &mut |line| Line::of(line, style));
    }

    fn line(&mut self, text: &str, role: Role) {
        let line = Line::of(text, self.look.style(role));
        self.out.extend(wrap(&line, self.look.width));
    }

    fn separate(&mut self) {
        if !self.out.is_empty() && !self.look.is_compact {
            self.out.push(Line::new());
        }
    }

    fn command(&mut self) {
        let details = self.call.details();
        let full = details.get("fullOutputPath").and_then(Value::as_str);
        let cut = truncation(details);
        let text = self.call.text();
        let mut text = text.trim_matches('\n').trim_end();
        // What the model is told of it is said below.
        if let (Some(path), true) = (full, cut.is_some() && text.ends_with(']'))
            && let Some((before, footer)) = text.rsplit_once("\n\n[")
            && footer.contains(path)
        {
            text = before.trim_end();
        }
        let mut failure = "";
        if self.call.is_error() {
            (text, failure) = ending(text);
            text = text.trim_end();
        }
        if text == "(no output)" && !self.look.is_open {
            text = "";
        }
        self.output(text, Extent::Last(self.info.rows), Role::ToolOutput);
        let mut warnings = Vec::new();
        if let Some(path) = full {
            warnings.push(format!("Full output: {}", self.look.place(path).0));
        }
        if let Some(cut) = cut {
            let count = |name| cut.get(name).and_then(Value::as_u64).unwrap_or(0);
            let shown = count("outputLines");
            warnings.push(match cut.get("truncatedBy").and_then(Value::as_str) {
                Some("lines") => {
                    format!("Truncated: showing {shown} of {} lines", count("totalLines"))
                }
                _ => format!("Truncated: {shown} lines shown ({} limit)", limit(cut)),
            });
        }
        if !warnings.is_empty() {
            self.separate();
            self.line(&format!("[{}]", warnings.join(". ")), Role::Warning);
        }
        if !failure.is_empty() && !failure.starts_with(EXIT_CODE) {
            self.output(failure, Extent::First(folded::ERROR), Role::Error);
        }
    }

    fn read(&mut self) {
        let is_error = self.call.is_error();
        if !self.look.is_open && !is_error {
            return;
        }
        let text = self.call.text();
        let text = text.trim_end_matches('\n');
        match is_error {
            true => self.output(text, Extent::First(self.info.rows), Role::Error),
            false => self.code(text, self.language(), Extent::First(self.info.rows), false),
        }
        let Some(cut) = truncation(self.call.details()) else {
            return;
        };
        let count = |name| cut.get(name).and_then(Value::as_u64).unwrap_or(0);
        let text = if cut.get("firstLineExceedsLimit") == Some(&Value::Bool(true)) {
            format!("[First line exceeds {} limit]", limit(cut))
        } else if cut.get("truncatedBy").and_then(Value::as_str) == Some("lines") {
            format!(
                "[Truncated: showing {} of {} lines ({} line limit)]",
                count("outputLines"),
                count("totalLines"),
                count("maxLines")
            )
        } else {
            let lines = count("outputLines");
            format!("[Truncated: {lines} lines shown ({} limit)]", limit(cut))
        };
        self.line(&text, Role::Warning);
    }

    /// Text of a file, highlighted if its language is known.
    fn code(&mut self, text: &str, language: &str, extent: Extent, counts: bool) {
        let mut highlighter = Highlighter::new(language);
        let theme = self.look.theme;
        let plain = self.look.style(Role::ToolOutput);
        self.text(text, extent, counts, &mut |code| {
            let mut line = Line::new();
            match highlighter.is_known() {
                true => highlighter.line(code, theme, &mut line),
                false => line.push(code, plain),
            }
            line
        });
    }

    /// The language of the call's file.
    fn language(&self) -> &'a str {
        let path = self.info.path.and_then(|path| path.given.text());
        path.map_or("", highlight::of_path)
    }

    fn content(&mut self, content: Argument<'_>) {
        match content {
            Argument::Text(content) => {
                let content = content.trim_end_matches('\n');
                self.code(content, self.language(), Extent::First(folded::CHANGE), true);
            }
            Argument::Missing => {}
            Argument::Wrong => self.line("[invalid content arg - expected string]", Role::Error),
        }
        self.error();
    }

    /// The error output of a tool whose success is described by its arguments.
    fn error(&mut self) {
        if self.call.is_error() {
            self.separate();
            self.output(&self.call.text(), Extent::First(folded::ERROR), Role::Error);
        }
    }

    fn edits(&mut self, edits: &[Edit<'_>]) {
        let made = self.call.details().get("diff").and_then(Value::as_str);
        let diff = made.or(self.call.preview.as_deref());
        match diff {
            Some(diff) => {
                let start = self.room.map_or(0, |room| last_lines(diff, room));
                let shown = diff.get(start..).unwrap_or_default();
                let lines = diff_view::lines(shown, self.look.theme, self.look.width);
                self.out.extend(lines);
            }
            None if self.call.is_error() => {}
            None => self.replacements(edits),
        }
        self.error();
    }

    /// Old and new texts of edits without a known diff.
    fn replacements(&mut self, edits: &[Edit<'_>]) {
        let (old, new) = (self.look.style(Role::ToolDiffRemoved), self.look.style(Role::ToolDiffAdded));
        for edit in edits {
            for (text, sign, style) in [(edit.old, '-', old), (edit.new, '+', new)] {
                self.text(text.unwrap_or_default(), Extent::First(folded::CHANGE), false, &mut |line| {
                    Line::of(&format!("{sign} {line}"), style)
                });
            }
        }
    }

    fn list(&mut self) {
        if !self.look.is_compact || self.look.is_open || self.call.is_error() {
            self.other();
        }
        let details = self.call.details();
        let mut warnings = Vec::new();
        for (name, noun) in [
            ("matchLimitReached", "matches"),
            ("resultLimitReached", "results"),
            ("entryLimitReached", "entries"),
        ] {
            if let Some(limit) = details.get(name).and_then(Value::as_u64) {
                warnings.push(format!("{limit} {noun} limit"));
            }
        }
        if let Some(cut) = truncation(details) {
            warnings.push(format!("{} limit", limit(cut)));
        }
        if details.get("linesTruncated") == Some(&Value::Bool(true)) {
            warnings.push("some lines truncated".to_owned());
        }
        if !warnings.is_empty() {
            let text = format!("[Truncated: {}]", warnings.join(", "));
            self.line(&text, Role::Warning);
        }
    }

    fn other(&mut self) {
        let text = self.call.text();
        let role = if self.call.is_error() { Role::Error } else { Role::ToolOutput };
        self.output(text.trim_matches('\n'), Extent::First(self.info.rows), role);
    }
}

/// `... (12 more lines, ctrl+o to expand)`.
fn hint(look: &Look<'_>, hidden: usize, word: &str, total: Option<usize>) -> Line {
    let muted = look.style(Role::Muted);
    let total = total.map_or_else(String::new, |total| format!(", {total} total"));
    let mut line = Line::of(&format!("... ({hidden} {word} lines{total}"), muted);
    if let Some(key) = look.key(AppAction::TOOLS_EXPAND).filter(|_| !look.is_open) {
        line.push(", ", muted);
        line.push(&key, look.style(Role::Dim));
        line.push(" to expand", muted);
    }
    line.push(")", muted);
    line
}

/// The truncation in `details`, if the output was truncated.
fn truncation(details: &Value) -> Option<&Value> {
    let cut = details.get("truncation")?;
    (cut.get("truncated") == Some(&Value::Bool(true))).then_some(cut)
}

fn limit(cut: &Value) -> String {
    size_text(cut.get("maxBytes").and_then(Value::as_u64).unwrap_or(51_200))
}
