//! The `grep` tool: lines that match a pattern.
//!
//! The files are those of `find`. A glob narrows them down and never re-includes an ignored file.

mod pattern;
mod search;
#[cfg(test)]
mod tests;
mod utf16;

use super::backend::{Backend, Kind};
use super::listing::{self, Listing, given_path, shown};
use super::truncate::MAX_MATCH_CHARS;
use super::walk::{Entry, SEARCH_TIME, Search, Stop, Walk};
use super::{argument, path};
use crate::agent::call::{Argument, Arguments, CallInfo, Subject};
use crate::agent::tool::{Invocation, Serves, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::glob::{Dialect, Glob};
use crate::base::json::json;
use crate::llm::message::ToolSpec;
use crate::llm::secret::Set;
use crate::tools::workspace::Workspace;
use regex::bytes::Regex;
use search::{Found, Match, Searcher};
use serde_json::Value;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIMIT: usize = 100;
/// Maximum context lines, more than a result can show.
const MAX_CONTEXT: usize = 2000;

pub fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: "grep".into(),
        description: format!(
            "Search files for a pattern, line by line. Gives path, line number and line, in order; ignored and binary files are left out. Shows up to {LIMIT} matches or 50KB, and {MAX_MATCH_CHARS} characters of a line."
        ),
        parameters: json!({
            "type": "object",
            "required": ["pattern"],
            "properties": {
                "pattern": {"type": "string", "description": "Regular expression, or text if literal is set"},
                "path": {"type": "string", "description": "File or folder to search (default: the working folder)"},
                "glob": {"type": "string", "description": "Only files that match, e.g. '*.ts' or 'src/**/*.rs' below path; with ! before it, only others"},
                "ignoreCase": {"type": "boolean", "description": "Ignore case (default: false)"},
                "literal": {"type": "boolean", "description": "Take the pattern as plain text (default: false)"},
                "context": {"type": "number", "description": "Lines to show before and after each match (default: 0)"},
                "limit": {"type": "number", "description": format!("Most matches to show (default: {LIMIT})")},
            },
        }),
        ..ToolSpec::default()
    };
    Arc::new(Grep {
        workspace,
        time: SEARCH_TIME,
        info: ToolInfo {
            spec,
            label: "grep".into(),
            snippet: Some("Search the content of files, without ignored ones".into()),
            reads_only: true,
            serves: Serves { searching: true, ..Serves::default() },
            ..ToolInfo::default()
        },
    })
}

pub fn describe(arguments: &Arguments) -> CallInfo<'_> {
    let text = Argument::of(arguments, "pattern");
    let glob = Argument::of(arguments, "glob").text().filter(|glob| !glob.is_empty());
    let limit = arguments.get("limit").and_then(Value::as_u64);
    let notes = [glob.map(|glob| format!(" ({glob})")), limit.map(|limit| format!(" limit {limit}"))];
    CallInfo {
        subject: Some(Subject { text, quote: "/" }),
        notes: notes.into_iter().flatten().collect(),
        rows: 15,
        ..CallInfo::of_search(arguments, |path| format!("Search {path} for {}", text.text().unwrap_or("?")))
    }
}

struct Grep {
    workspace: Arc<Workspace>,
    time: Duration,
    info: ToolInfo,
}

impl Tool for Grep {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let flag = |name: &str| call.arguments.get(name).and_then(Value::as_bool) == Some(true);
        let pattern = argument::text(call, "pattern")?;
        let regex = pattern::compile(pattern, flag("literal"), flag("ignoreCase")).map_err(ToolError::new)?;
        let context = argument::number(call, "context").unwrap_or(0);
        let context = usize::try_from(context).map_or(MAX_CONTEXT, |lines| lines.min(MAX_CONTEXT));
        let mut result = Collected { limit: listing::limit(call, LIMIT), ..Collected::default() };

        let target = path::resolve_existing(&self.workspace, given_path(call))?;
        let backend = self.workspace.backend.as_ref();
        let stat = backend
            .stat(&target)
            .map_err(|_| ToolError::new(format!("Path not found: {}", target.display())))?;
        match stat.kind {
            Kind::Dir => {
                let glob = call.arguments.get("glob").and_then(Value::as_str);
                let filter = glob
                    .filter(|glob| !glob.is_empty())
                    .map(Filter::parse)
                    .transpose()
                    .map_err(ToolError::new)?;
                let secrets = self.workspace.vault.set();
                // One more tells whether the limit left anything out.
                let limit = result.limit.saturating_add(1);
                let lines = Lines { backend, regex, context, filter, secrets };
                let walk = Walk::new(&self.workspace, &target, call.cancel, limit, self.time);
                let summary = walk
                    .run(&lines, &mut |matches| result.take(matches))
                    .map_err(|error| ToolError::new(format!("Cannot read directory: {error}")))?;
                summary.note(&mut result.listing, self.time);
            }
            _ => self.search_file(&target, regex, context, call, &mut result)?,
        }
        if call.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        Ok(result.finish())
    }
}

impl Grep {
    /// Searches a file that the call names, whatever ignore files and the glob say.
    fn search_file(
        &self,
        file: &Path,
        regex: Regex,
        context: usize,
        call: &Invocation<'_>,
        result: &mut Collected,
    ) -> Result<(), ToolError> {
        let fail = |error: io::Error| ToolError::new(format!("Cannot read {}: {error}", file.display()));
        let mut source = self.workspace.backend.open(file).map_err(fail)?;
        let label = shown(file.file_name().unwrap_or_default().as_bytes());
        let deadline = Instant::now() + self.time;
        Stop::during(call.cancel, deadline, |stop| {
            let mut searcher = Searcher::new(regex, context, self.workspace.vault.set());
            match searcher.search(&mut source, &label, result.limit.saturating_add(1), stop) {
                Ok(Found::Matches(matches)) => result.take(matches),
                Ok(Found::Binary) => {
                    let notice = format!("{label} is a binary file and was not searched");
                    result.listing.notice(notice);
                }
                Err(error) => return Err(fail(error)),
            }
            stop.summary().note(&mut result.listing, self.time);
            Ok(())
        })
    }
}

/// The matches so far.
#[derive(Default)]
struct Collected {
    listing: Listing,
    limit: usize,
    matches: usize,
    /// True if there were more matches than `limit`.
    more: bool,
    cut: bool,
}

impl Collected {
    fn take(&mut self, matches: Vec<Match>) {
        for found in matches {
            let room = self.limit - self.matches;
            self.more |= found.count > room;
            if room == 0 {
                return;
            }
            self.matches += found.count.min(room);
            self.cut |= found.cut;
            if self.listing.has_room() {
                self.listing.push(&found.text);
            } else {
                // Matches that are only counted have a line each.
                self.listing.count(found.lines - found.count.saturating_sub(room), found.bytes);
            }
        }
    }

    fn finish(mut self) -> ToolOutput {
        let limit = self.limit;
        if self.more {
            let more = limit.saturating_mul(2);
            let notice =
                format!("{limit} matches limit reached. Use limit={more} for more, or refine pattern");
            self.listing.limit_reached("matchLimitReached", limit, notice);
        }
        if self.cut {
            self.listing.notice_first(format!(
                "Some lines truncated to {MAX_MATCH_CHARS} chars. Use read tool to see full lines"
            ));
            self.listing.detail("linesTruncated", true);
        }
        self.listing.finish("No matches found")
    }
}

/// The search for matching lines below a folder.
struct Lines<'a> {
    backend: &'a dyn Backend,
    regex: Regex,
    context: usize,
    filter: Option<Filter>,
    secrets: Option<Arc<Set>>,
}

/// A thread's own copies, since sharing a regular expression between threads is slow.
struct Worker {
    searcher: Searcher,
    filter: Option<Filter>,
}

impl Search for Lines<'_> {
    type Worker = Worker;
    type Found = Vec<Match>;
    const BATCH: usize = 16;

    fn worker(&self) -> Worker {
        Worker {
            searcher: Searcher::new(self.regex.clone(), self.context, self.secrets.clone()),
            filter: self.filter.clone(),
        }
    }

    fn enters(&self, worker: &mut Worker, folder: &Entry<'_>) -> bool {
        let filter = worker.filter.as_ref();
        !filter.is_some_and(|filter| filter.negated && filter.matches(folder))
    }

    fn wants(&self, worker: &mut Worker, entry: &Entry<'_>) -> bool {
        let filter = worker.filter.as_ref();
        entry.kind == Kind::File && filter.is_none_or(|filter| filter.passes(entry))
    }

    fn look(
        &self,
        worker: &mut Worker,
        entry: &Entry<'_>,
        limit: usize,
        stop: &Stop,
    ) -> io::Result<Option<Vec<Match>>> {
        let mut source = self.backend.open_listed(entry.path())?;
        let label = shown(entry.relative());
        Ok(match worker.searcher.search(&mut source, &label, limit, stop)? {
            Found::Matches(matches) if !matches.is_empty() => Some(matches),
            _ => None,
        })
    }

    fn count(matches: &Vec<Match>) -> usize {
        matches.iter().map(|found| found.count).sum()
    }

    fn bytes(matches: &Vec<Match>) -> usize {
        let texts: usize = matches.iter().map(|found| found.text.len()).sum();
        texts + matches.len() * size_of::<Match>()
    }
}

/// A glob that selects files: by name, or with a `/` by path relative to the searched folder.
#[derive(Clone)]
struct Filter {
    glob: Glob,
    /// True to search only files that do not match.
    negated: bool,
    by_name: bool,
    only_folders: bool,
}

impl Filter {
    fn parse(glob: &str) -> Result<Self, String> {
        let (negated, glob) = match glob.strip_prefix('!') {
            Some(glob) => (true, glob),
            None => (false, glob),
        };
        let only_folders = negated && glob.ends_with('/');
        // `src/` are the files in there.
        let whole = match glob.strip_suffix('/') {
            Some(folder) if negated => folder.to_owned(),
            Some(_) => format!("{glob}**"),
            None => glob.to_owned(),
        };
        let by_name = !whole.contains('/');
        let whole = whole.strip_prefix("./").unwrap_or(&whole);
        Ok(Self {
            glob: Glob::new(whole.strip_prefix('/').unwrap_or(whole), Dialect::default())?,
            negated,
            by_name,
            only_folders,
        })
    }

    fn passes(&self, file: &Entry<'_>) -> bool {
        match self.negated {
            true => self.only_folders || !self.matches(file),
            false => self.matches(file),
        }
    }

    fn matches(&self, entry: &Entry<'_>) -> bool {
        self.glob.is_match(if self.by_name { entry.name() } else { entry.relative() })
    }
}
