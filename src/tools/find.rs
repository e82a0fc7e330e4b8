//! The `find` tool: paths whose name, or whole path, matches a glob.
//!
//! A glob without `/` is matched against names. A glob with a `/` is matched against paths, starting at any
//! folder: `src/*.rs` finds `lib/src/a.rs`, and also `a.rs` in a searched folder `src`. A glob with a leading
//! `/` is matched against absolute paths. A glob in lower case ignores case.

use super::backend::{Backend, Kind, Stat};
use super::ignore::path_bytes;
use super::listing::{self, Listing, given_path, shown};
use super::walk::{Entry, SEARCH_TIME, Search, Stop, Walk};
use super::{argument, path};
use crate::agent::CancelToken;
use crate::agent::call::{Argument, Arguments, CallInfo, Subject};
use crate::agent::tool::{Invocation, Serves, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::glob::{Dialect, Glob};
use crate::base::json::json;
use crate::llm::message::ToolSpec;
use crate::tools::workspace::Workspace;
use std::collections::VecDeque;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIMIT: usize = 1000;

pub fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: "find".into(),
        description: format!(
            "Find files and folders by a glob. Gives paths from the searched folder, in order; ignored files are left out. Shows up to {LIMIT} paths or 50KB."
        ),
        parameters: json!({
            "type": "object",
            "required": ["pattern"],
            "properties": {
                "pattern": {"type": "string", "description": "Glob for names ('*.ts'), or with a / for paths ('src/**/*.test.ts')"},
                "path": {"type": "string", "description": "Folder to search (default: the working folder)"},
                "limit": {"type": "number", "description": format!("Most paths to show (default: {LIMIT})")},
            },
        }),
        ..ToolSpec::default()
    };
    Arc::new(Find {
        workspace,
        time: SEARCH_TIME,
        info: ToolInfo {
            spec,
            label: "find".into(),
            snippet: Some("Find files by glob, without ignored ones".into()),
            reads_only: true,
            serves: Serves { searching: true, ..Serves::default() },
            ..ToolInfo::default()
        },
    })
}

pub fn describe(arguments: &Arguments) -> CallInfo<'_> {
    let text = Argument::of(arguments, "pattern");
    CallInfo {
        subject: Some(Subject { text, quote: "" }),
        notes: listing::limit_note(arguments),
        ..CallInfo::of_search(arguments, |path| format!("Find {} in {path}", text.text().unwrap_or("?")))
    }
}

struct Find {
    workspace: Arc<Workspace>,
    time: Duration,
    info: ToolInfo,
}

impl Tool for Find {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let pattern = argument::text(call, "pattern")?;
        let limit = listing::limit(call, LIMIT);
        let folder = path::resolve_existing(&self.workspace, given_path(call))?;
        let wanted = Wanted::parse(pattern, &folder)?;
        let backend = self.workspace.backend.as_ref();
        let folder_text = folder.display();
        let kind =
            backend.stat(&folder).map_err(|_| ToolError::new(format!("Path not found: {folder_text}")))?.kind;
        if kind != Kind::Dir {
            return Err(ToolError::new(format!("Not a directory: {folder_text}")));
        }
        // One more tells whether the limit left anything out.
        let walk = Walk::new(&self.workspace, &folder, call.cancel, limit.saturating_add(1), self.time);
        let mut listing = Listing::default();
        let mut found = 0;
        let summary = walk
            .run(&wanted, &mut |path: String| {
                if found < limit {
                    listing.push(&path);
                }
                found += 1;
            })
            .map_err(|error| ToolError::new(format!("Cannot read directory: {error}")))?;
        if call.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        if found > limit {
            let more = limit.saturating_mul(2);
            let notice =
                format!("{limit} results limit reached. Use limit={more} for more, or refine pattern");
            listing.limit_reached("resultLimitReached", limit, notice);
        }
        summary.note(&mut listing, self.time);
        Ok(listing.finish("No files found matching pattern"))
    }
}

/// Passes every path below a folder that is not ignored, in path order, folders with a trailing slash; then
/// the content of linked folders, each once. Stops after `limit` paths, and after `time`.
pub fn each_path(
    workspace: &Workspace,
    folder: &Path,
    limit: usize,
    time: Duration,
    cancel: &CancelToken,
    each: &mut (dyn FnMut(String) + Send),
) -> io::Result<()> {
    let backend = workspace.backend.as_ref();
    let deadline = Instant::now() + time;
    let mut left = limit;
    let mut roots = vec![backend.canonical(folder)?];
    let mut waiting = VecDeque::from([(folder.to_owned(), String::new())]);
    while left > 0
        && let Some((folder, before)) = waiting.pop_front()
    {
        let time = deadline.saturating_duration_since(Instant::now());
        let mut links = Vec::new();
        let walk = Walk::new(workspace, &folder, cancel, left, time);
        let done = walk.run(&Everything(backend), &mut |(path, is_link): (String, bool)| {
            left = left.saturating_sub(1);
            let path = format!("{before}{path}");
            if is_link {
                links.push(path.clone());
            }
            each(path);
        });
        // A link may lead where nothing may be read.
        if before.is_empty() {
            done?;
        }
        for link in links.into_iter().filter(|_| left > 0) {
            let target = roots.first().and_then(|root| backend.canonical(&root.join(&link)).ok());
            // What is part of another, or has another as a part, would be given twice.
            let is_new = |target: &PathBuf| {
                roots.iter().all(|root| !target.starts_with(root) && !root.starts_with(target))
            };
            if let Some(target) = target.filter(is_new) {
                roots.push(target.clone());
                waiting.push_back((target, link));
            }
        }
    }
    Ok(())
}

/// Finds every path, and whether it is a link to a folder.
struct Everything<'a>(&'a dyn Backend);

impl Search for Everything<'_> {
    type Worker = ();
    type Found = (String, bool);
    const BATCH: usize = usize::MAX;

    fn worker(&self) {}

    fn enters(&self, (): &mut (), _: &Entry<'_>) -> bool {
        true
    }

    fn wants(&self, (): &mut (), _: &Entry<'_>) -> bool {
        true
    }

    fn look(&self, (): &mut (), entry: &Entry<'_>, _: usize, _: &Stop) -> io::Result<Option<(String, bool)>> {
        let is_folder = |stat: Stat| stat.kind == Kind::Dir;
        let is_link = entry.kind == Kind::Symlink && self.0.stat(entry.path()).is_ok_and(is_folder);
        let slash = if is_link || entry.kind == Kind::Dir { "/" } else { "" };
        Ok(Some((shown(entry.relative()) + slash, is_link)))
    }

    fn count(_: &(String, bool)) -> usize {
        1
    }

    fn bytes((path, _): &(String, bool)) -> usize {
        path.len()
    }
}

/// The meaning of a glob.
struct Wanted {
    glob: Glob,
    /// `None` for a glob of names; otherwise the prefix of the walk's paths.
    before: Option<Vec<u8>>,
    /// True if the glob ended in a slash.
    only_folders: bool,
}

impl Wanted {
    fn parse(pattern: &str, folder: &Path) -> Result<Self, ToolError> {
        let only_folders = pattern.len() > 1 && pattern.ends_with('/');
        let glob = pattern.strip_suffix('/').filter(|_| only_folders);
        let glob = glob.unwrap_or(pattern);
        let glob = glob.strip_prefix("./").unwrap_or(glob);
        let ignore_case = !glob.contains(char::is_uppercase);
        let (glob, before) = if glob.starts_with('/') {
            (glob.to_owned(), Some([path_bytes(folder), b"/"].concat()))
        } else if glob.contains('/') || glob.len() < pattern.trim_end_matches('/').len() {
            let name = folder.file_name().unwrap_or_default().as_bytes();
            (format!("**/{glob}"), Some([name, b"/"].concat()))
        } else {
            (glob.to_owned(), None)
        };
        Ok(Self {
            glob: Glob::new(&glob, Dialect { ignore_case, ..Dialect::default() }).map_err(ToolError::new)?,
            before,
            only_folders,
        })
    }
}

impl Search for Wanted {
    /// The glob, and a buffer for a path.
    type Worker = (Glob, Vec<u8>);
    type Found = String;
    /// Checking a name is cheap, so a folder is one batch.
    const BATCH: usize = usize::MAX;

    fn worker(&self) -> Self::Worker {
        (self.glob.clone(), self.before.clone().unwrap_or_default())
    }

    fn enters(&self, _: &mut Self::Worker, _: &Entry<'_>) -> bool {
        true
    }

    fn wants(&self, (glob, path): &mut Self::Worker, entry: &Entry<'_>) -> bool {
        if self.only_folders && entry.kind != Kind::Dir {
            return false;
        }
        let Some(before) = &self.before else {
            return glob.is_match(entry.name());
        };
        path.truncate(before.len());
        path.extend_from_slice(entry.relative());
        glob.is_match(path)
    }

    fn look(
        &self,
        _: &mut Self::Worker,
        entry: &Entry<'_>,
        _: usize,
        _: &Stop,
    ) -> io::Result<Option<String>> {
        let slash = if entry.kind == Kind::Dir { "/" } else { "" };
        Ok(Some(shown(entry.relative()) + slash))
    }

    fn count(_: &String) -> usize {
        1
    }

    fn bytes(path: &String) -> usize {
        path.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::model::Model;
    use crate::tools::testing::{TempDir, call, call_with, text};
    use serde_json::Value;
    use std::ffi::OsStr;
    use std::fs;

    fn find(tree: &TempDir, arguments: Value) -> (String, Value) {
        let tool = tool(Arc::new(tree.workspace()));
        let result = call(tool.as_ref(), arguments);
        let details = result.as_ref().ok().and_then(|output| output.details.clone());
        let text = text(&result).replace(tree.path().to_str().unwrap(), "CWD");
        (text, details.unwrap_or_default())
    }

    /// Checks the paths that a pattern finds, in order, separated by blanks.
    #[track_caller]
    fn check(tree: &TempDir, pattern: &str, path: &str, expected: &str) {
        let pattern = pattern.replace("CWD", tree.path().to_str().unwrap());
        let (text, details) = find(tree, json!({"pattern": pattern, "path": path}));
        assert_eq!(text.lines().collect::<Vec<_>>().join(" "), expected);
        assert_eq!(details, Value::Null);
    }

    const NOTHING: &str = "No files found matching pattern";

    fn sample() -> TempDir {
        let tree = TempDir::create();
        for path in ["src/a.ts", "src/deep/b.ts", "lib/src/c.ts", "Read.md", ".env", "out/d.ts"] {
            tree.write(path, "");
        }
        tree.write(".gitignore", "out/\n");
        tree.write(".git/HEAD", "");
        tree
    }

    #[test]
    fn a_glob_without_a_slash_is_for_names() {
        let tree = sample();
        check(&tree, "*.ts", ".", "lib/src/c.ts src/a.ts src/deep/b.ts");
        check(&tree, "*.ts", "src", "a.ts deep/b.ts");
        check(&tree, "src", ".", "lib/src/ src/");
        check(&tree, "src/", ".", "lib/src/ src/");
        check(&tree, "*", "lib", "src/ src/c.ts");
        check(&tree, "**", "lib", "src/ src/c.ts");
        check(&tree, ".*", ".", ".env .gitignore");
        check(&tree, "read*", ".", "Read.md");
        check(&tree, "READ*", ".", NOTHING);
        check(&tree, "HEAD", ".git", "HEAD");
        check(&tree, "*", "out", "d.ts");
        check(&tree, "", ".", NOTHING);
        check(&tree, "--help", ".", NOTHING);
    }

    #[test]
    fn a_glob_with_a_slash_is_for_paths_from_any_folder() {
        let tree = sample();
        check(&tree, "src/*.ts", ".", "lib/src/c.ts src/a.ts");
        check(&tree, "./src/*.ts", ".", "lib/src/c.ts src/a.ts");
        check(&tree, "src/**/*.ts", ".", "lib/src/c.ts src/a.ts src/deep/b.ts");
        check(&tree, "**/deep/*", ".", "src/deep/b.ts");
        check(&tree, "src/*.ts", "src", "a.ts");
        check(&tree, "src/deep/", ".", "src/deep/");
        check(&tree, "CWD/src/*.ts", ".", "src/a.ts");
        check(&tree, "/src/*.ts", ".", NOTHING);
    }

    #[test]
    fn notices_and_errors() {
        let tree = sample();
        assert_eq!(
            find(&tree, json!({"pattern": "*.ts", "limit": 2})),
            (
                "lib/src/c.ts\nsrc/a.ts\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]".to_owned(),
                json!({"resultLimitReached": 2})
            )
        );
        let (all, _) = find(&tree, json!({"pattern": "*.ts"}));
        let count = all.lines().count();
        assert_eq!(find(&tree, json!({"pattern": "*.ts", "limit": count})).0, all);
        check(&tree, "*", "nowhere", "error: Path not found: CWD/nowhere");
        check(&tree, "*", "Read.md", "error: Not a directory: CWD/Read.md");
        check(&tree, "[a", ".", "error: Invalid glob '[a': a '[' is not closed");

        for number in 0..500 {
            tree.write(&format!("many/{number:03}{}", "n".repeat(150)), "");
        }
        let (text, details) = find(&tree, json!({"pattern": "*", "path": "many"}));
        assert!(text.ends_with("\n\n[50.0KB limit reached]"));
        assert_eq!(details["truncation"]["totalLines"], 500);
        assert_eq!(details["truncation"]["outputLines"], 51200 / 154);
    }

    #[test]
    fn every_path_is_given_those_behind_links_too_but_none_twice() {
        let tree = TempDir::create();
        let other = TempDir::create();
        other.write("deep/far.md", "");
        for path in ["src/a.rs", "b.rs"] {
            tree.write(path, "");
        }
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, tree.path().join(name)).unwrap();
        link(other.path(), "linked");
        link(&other.path().join("deep"), "src/again");
        link(tree.path(), "src/round");
        link(&tree.path().join("src"), "same");
        link(&tree.path().join("b.rs"), "file");
        link(Path::new("/nowhere"), "broken");
        link(Path::new("/"), "root");
        other.write("back", "");
        std::os::unix::fs::symlink(tree.path(), other.path().join("home")).unwrap();
        let all = |limit| {
            let mut found = Vec::new();
            let (cancel, time) = (CancelToken::new(), Duration::from_secs(10));
            each_path(&tree.workspace(), tree.path(), limit, time, &cancel, &mut |path| found.push(path))
                .unwrap();
            found.join(" ")
        };
        assert_eq!(
            all(100),
            "b.rs broken file linked/ root/ same/ src/ src/a.rs src/again/ src/round/ linked/back linked/deep/ linked/deep/far.md linked/home/"
        );
        assert_eq!(all(12).split(' ').count(), 12);
        assert_eq!(all(3), "b.rs broken file");
    }

    #[test]
    fn names_that_would_break_a_line_are_made_harmless() {
        let tree = TempDir::create();
        let odd = OsStr::from_bytes(b"a\nb\xff");
        fs::write(tree.path().join(odd), "").unwrap();
        check(&tree, "a*", ".", "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_cancelled_call_is_aborted() {
        let tree = sample();
        let cancel = CancelToken::new();
        cancel.cancel();
        let tool = tool(Arc::new(tree.workspace()));
        let result = call_with(tool.as_ref(), json!({"pattern": "*"}), &cancel, &Model::default());
        assert_eq!(result, Err(ToolError::aborted()));
    }
}
