//! What each tool's call shows: a title, and as much of what it does as tells enough.

use super::call::{Call, State};
use super::duration;
use super::rows::{Extent, last_lines, rows};
use crate::mode::interactive::look::Look;
use crate::runtime::approval::squeezed;
use crate::runtime::size_text;
use crate::tui::diff_view;
use crate::tui::highlight::{self, Highlighter};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use serde_json::Value;
use std::time::Instant;

/// Rows shown of what is folded.
mod folded {
    pub const BASH: usize = 5;
    pub const WRITE: usize = 10;
    pub const READ_ERROR: usize = 10;
    pub const GREP: usize = 15;
    pub const LIST: usize = 20;
    pub const OTHER: usize = 10;
    /// Of a command, or of the arguments of a tool that is not known here.
    pub const TITLE: usize = 20;
}

/// An argument that should be text.
enum Given<'a> {
    Text(&'a str),
    /// It has not come, or will not.
    Missing,
    Wrong,
}

impl Call {
    fn given(&self, names: &[&str]) -> Given<'_> {
        let mut values = names.iter().filter_map(|name| self.arguments().get(*name));
        match values.next() {
            Some(Value::String(text)) if !text.is_empty() => Given::Text(text),
            Some(Value::String(_) | Value::Null) | None => Given::Missing,
            Some(_) => Given::Wrong,
        }
    }

    fn path(&self) -> Given<'_> {
        self.given(&["file_path", "path"])
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.arguments().get(name).and_then(Value::as_u64)
    }
}

/// `room`: more rows are not seen.
pub fn title(call: &Call, look: &Look<'_>, room: Option<usize>) -> Vec<Line> {
    let mut title = Title { look, room, line: Line::new() };
    match &*call.name {
        "bash" => return title.command(call),
        "read" => title.read(call),
        "write" | "edit" => {
            title.name(&call.name);
            title.path(call.path(), "...");
        }
        "grep" | "find" => title.search(call),
        "ls" => {
            title.name("ls");
            title.path(call.path(), ".");
            title.limit(call);
        }
        _ => return title.other(call),
    }
    title.finish(call)
}

/// The command of a call that waits for approval: its beginning and its end, and how long it is, in at most
/// `room` rows.
pub fn command_to_approve(call: &Call, look: &Look<'_>, room: usize) -> Option<Vec<Line>> {
    let Given::Text(command) = call.given(&["command"]) else {
        return None;
    };
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
    if let Some(seconds) = call.arguments().get("timeout").filter(|seconds| seconds.is_number()) {
        lines.push(Line::of(&format!("(timeout {seconds}s)"), look.style(Role::Muted)));
    }
    Some(lines)
}

struct Title<'a> {
    look: &'a Look<'a>,
    room: Option<usize>,
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

    /// A path that leads to its file.
    fn path(&mut self, path: Given<'_>, missing: &str) {
        match path {
            Given::Text(path) => {
                let (shown, link) = self.look.place(path);
                let style = self.look.style(Role::Accent);
                self.line.push_link(&shown, style, link.as_ref());
            }
            Given::Missing => self.push(missing, Role::ToolOutput),
            Given::Wrong => self.wrong(),
        }
    }

    fn wrong(&mut self) {
        self.push("[invalid arg]", Role::Error);
    }

    fn read(&mut self, call: &Call) {
        let skill = match call.path() {
            Given::Text(path) if !self.look.is_open => path.strip_suffix("/SKILL.md"),
            _ => None,
        };
        match skill.and_then(|folder| folder.rsplit('/').next()) {
            Some(name) => {
                let label = self.look.style(Role::CustomMessageLabel);
                self.line.push("[skill] ", label.with(Attributes::BOLD));
                self.push(name, Role::CustomMessageText);
            }
            None => {
                self.name("read");
                self.path(call.path(), "...");
            }
        }
        let (offset, limit) = (call.number("offset"), call.number("limit"));
        if offset.is_some() || limit.is_some() {
            let first = offset.unwrap_or(1).max(1);
            let last = limit.map_or_else(String::new, |limit| {
                format!("-{}", first.saturating_add(limit).saturating_sub(1))
            });
            self.push(&format!(":{first}{last}"), Role::Warning);
        }
    }

    fn search(&mut self, call: &Call) {
        let is_grep = call.name == "grep";
        self.name(&call.name);
        match call.given(&["pattern"]) {
            Given::Text(pattern) if is_grep => self.push(&format!("/{pattern}/"), Role::Accent),
            Given::Text(pattern) => self.push(pattern, Role::Accent),
            Given::Missing if is_grep => self.push("//", Role::Accent),
            Given::Missing => {}
            Given::Wrong => self.wrong(),
        }
        self.push(" in ", Role::ToolOutput);
        self.path(call.given(&["path"]), ".");
        if let Given::Text(glob) = call.given(&["glob"]) {
            self.push(&format!(" ({glob})"), Role::ToolOutput);
        }
        match call.number("limit") {
            Some(limit) if is_grep => self.push(&format!(" limit {limit}"), Role::ToolOutput),
            _ => self.limit(call),
        }
    }

    fn limit(&mut self, call: &Call) {
        if let Some(limit) = call.number("limit") {
            self.push(&format!(" (limit {limit})"), Role::ToolOutput);
        }
    }

    fn command(mut self, call: &Call) -> Vec<Line> {
        self.line.push("$ ", self.name_style());
        match call.given(&["command"]) {
            Given::Missing => self.push("...", Role::ToolOutput),
            Given::Wrong => self.wrong(),
            Given::Text(command) => {
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
                if let Some(seconds) = call.arguments().get("timeout").filter(|s| s.is_number()) {
                    self.push(&format!(" (timeout {seconds}s)"), Role::Muted);
                }
                lines.extend(self.finish(call));
                return lines;
            }
        }
        self.finish(call)
    }

    /// A tool that is not known here: its name and what it was given.
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

    /// Where states are words, the title has them.
    fn finish(mut self, call: &Call) -> Vec<Line> {
        if self.look.is_plain {
            let word = match call.state {
                State::Writing | State::Waiting => " (waiting)",
                State::Running { .. } => " (running)",
                State::Done { is_error: true, .. } => " (failed)",
                State::Done { .. } => " (done)",
            };
            self.push(word, Role::Muted);
        }
        wrap(&self.line, self.look.width)
    }
}

pub fn body(call: &Call, look: &Look<'_>, now: Option<Instant>, room: Option<usize>) -> Vec<Line> {
    let mut body = Body { call, look, room, out: Vec::new() };
    match &*call.name {
        "bash" => body.bash(now),
        "read" => body.read(),
        "write" => body.write(),
        "edit" => body.edit(),
        "grep" => body.list(folded::GREP),
        "find" | "ls" => body.list(folded::LIST),
        _ => body.other(),
    }
    body.out
}

struct Body<'a> {
    call: &'a Call,
    look: &'a Look<'a>,
    room: Option<usize>,
    out: Vec<Line>,
}

impl Body<'_> {
    /// Text that is folded to `extent` unless it is open; `counts` tells all lines of it too.
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
        if !self.out.is_empty() {
            self.out.push(Line::new());
        }
    }

    fn bash(&mut self, now: Option<Instant>) {
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
        self.output(text, Extent::Last(folded::BASH), Role::ToolOutput);
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
        let is_done = self.call.is_done();
        if let Some(took) = self.call.took(now)
            && (is_done || !self.look.is_plain)
        {
            self.separate();
            let label = if is_done { "Took" } else { "Elapsed" };
            self.line(&format!("{label} {}", duration(took)), Role::Muted);
        }
    }

    fn read(&mut self) {
        let is_error = self.call.is_error();
        if !self.look.is_open && !is_error {
            return;
        }
        let text = self.call.text();
        let text = text.trim_end_matches('\n');
        let language = match self.call.path() {
            Given::Text(path) if !is_error => highlight::of_path(path),
            _ => "",
        };
        self.code(text, language, Extent::First(folded::READ_ERROR), false);
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

    /// Text of a file; plain where its language is not known.
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

    fn write(&mut self) {
        match self.call.arguments().get("content") {
            Some(Value::String(content)) => {
                let language = match self.call.path() {
                    Given::Text(path) => highlight::of_path(path),
                    _ => "",
                };
                let content = content.trim_end_matches('\n');
                self.code(content, language, Extent::First(folded::WRITE), true);
            }
            None | Some(Value::Null) => {}
            Some(_) => self.line("[invalid content arg - expected string]", Role::Error),
        }
        self.error();
    }

    /// What a tool says whose success is told by its arguments.
    fn error(&mut self) {
        if self.call.is_error() {
            self.separate();
            self.output(&self.call.text(), Extent::First(folded::LIST), Role::Error);
        }
    }

    fn edit(&mut self) {
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
            None => self.replacements(),
        }
        self.error();
    }

    /// The texts of an edit of which no diff is known.
    fn replacements(&mut self) {
        let arguments = self.call.arguments();
        let single = Value::Object(arguments.clone());
        let edits = match arguments.get("edits").and_then(Value::as_array) {
            Some(edits) => edits.as_slice(),
            None => std::slice::from_ref(&single),
        };
        let (old, new) = (self.look.style(Role::ToolDiffRemoved), self.look.style(Role::ToolDiffAdded));
        for edit in edits {
            for (name, sign, style) in [("oldText", '-', old), ("newText", '+', new)] {
                let text = edit.get(name).and_then(Value::as_str).unwrap_or_default();
                self.text(text, Extent::First(folded::WRITE), false, &mut |line| {
                    Line::of(&format!("{sign} {line}"), style)
                });
            }
        }
    }

    fn list(&mut self, count: usize) {
        let text = self.call.text();
        self.output(text.trim_matches('\n'), Extent::First(count), Role::ToolOutput);
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
        let text = text.trim_matches('\n');
        self.output(text, Extent::First(folded::OTHER), Role::ToolOutput);
    }
}

/// `... (12 more lines, ctrl+o to expand)`.
fn hint(look: &Look<'_>, hidden: usize, word: &str, total: Option<usize>) -> Line {
    let muted = look.style(Role::Muted);
    let total = total.map_or_else(String::new, |total| format!(", {total} total"));
    let mut line = Line::of(&format!("... ({hidden} {word} lines{total}"), muted);
    if let Some(key) = look.key(Action::ToolsExpand).filter(|_| !look.is_open) {
        line.push(", ", muted);
        line.push(&key, look.style(Role::Dim));
        line.push(" to expand", muted);
    }
    line.push(")", muted);
    line
}

/// What `details` say of an output that is not all there.
fn truncation(details: &Value) -> Option<&Value> {
    let cut = details.get("truncation")?;
    (cut.get("truncated") == Some(&Value::Bool(true))).then_some(cut)
}

fn limit(cut: &Value) -> String {
    size_text(cut.get("maxBytes").and_then(Value::as_u64).unwrap_or(51_200))
}
