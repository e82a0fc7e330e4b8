//! The `ls` tool: the names in a folder.

use super::backend::Kind;
use super::listing::{Listing, given_path, limit, limit_note, shown};
use super::path;
use crate::agent::call::{Arguments, Body, CallInfo};
use crate::agent::tool::{Invocation, Serves, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::base::order::Order;
use crate::llm::message::ToolSpec;
use crate::tools::workspace::Workspace;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

const LIMIT: usize = 500;

pub fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: "ls".into(),
        description: format!(
            "List a folder, hidden files too, in alphabetical order. Folders end in /, links that lead nowhere in @. Shows up to {LIMIT} entries or 50KB."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Folder to list (default: the working folder)"},
                "limit": {"type": "number", "description": format!("Most entries to show (default: {LIMIT})")},
            },
        }),
        ..ToolSpec::default()
    };
    Arc::new(Ls {
        workspace,
        info: ToolInfo {
            spec,
            label: "ls".into(),
            snippet: Some("List folders".into()),
            reads_only: true,
            serves: Serves { searching: true, ..Serves::default() },
            ..ToolInfo::default()
        },
    })
}

pub fn describe(arguments: &Arguments) -> CallInfo<'_> {
    CallInfo {
        notes: limit_note(arguments),
        body: Body::Nothing,
        ..CallInfo::of_search(arguments, |path| format!("List {path}"))
    }
}

struct Ls {
    workspace: Arc<Workspace>,
    info: ToolInfo,
}

impl Tool for Ls {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let limit = limit(call, LIMIT);
        let backend = self.workspace.backend.as_ref();
        let folder = path::resolve_existing(&self.workspace, given_path(call))?;
        let stat = backend
            .stat(&folder)
            .map_err(|_| ToolError::new(format!("Path not found: {}", folder.display())))?;
        if stat.kind != Kind::Dir {
            let message = format!("Not a directory: {}", folder.display());
            return Err(ToolError::new(message));
        }
        let mut entries = Vec::new();
        backend
            .each_entry(&folder, &mut |entry| {
                let name = entry.name.to_string_lossy().to_lowercase();
                entries.push((name, entry));
                match entries.len() % 1024 == 0 && call.cancel.is_cancelled() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            })
            .map_err(|error| ToolError::new(format!("Cannot read directory: {error}")))?;
        entries.order_by(|a, b| (&a.0, &a.1.name).cmp(&(&b.0, &b.1.name)));

        let mut listing = Listing::default();
        for (listed, (_, entry)) in entries.into_iter().enumerate() {
            if call.cancel.is_cancelled() {
                return Err(ToolError::aborted());
            }
            if listed == limit {
                let notice =
                    format!("{limit} entries limit reached. Use limit={} for more", limit.saturating_mul(2));
                listing.limit_reached("entryLimitReached", limit, notice);
                break;
            }
            let kind = match entry.kind {
                Kind::Symlink => backend.stat(&folder.join(&entry.name)).map_or(Kind::Symlink, |it| it.kind),
                kind => kind,
            };
            let mark = match kind {
                Kind::Dir => "/",
                Kind::Symlink => "@",
                Kind::File | Kind::Other => "",
            };
            listing.push(&format!("{}{mark}", shown(entry.name.as_bytes())));
        }
        Ok(listing.finish("(empty directory)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::{TempDir, call, text};
    use serde_json::Value;
    use std::os::unix::fs::symlink;

    fn ls(tree: &TempDir, arguments: Value) -> (String, Value) {
        let tool = tool(Arc::new(tree.workspace()));
        let result = call(tool.as_ref(), arguments);
        let details = result.as_ref().ok().and_then(|output| output.details.clone());
        let text = text(&result).replace(tree.path().to_str().unwrap(), "CWD");
        (text, details.unwrap_or_default())
    }

    #[test]
    fn entries_are_sorted_without_regard_to_case() {
        let tree = TempDir::create();
        for name in ["b", "A", "a", "C/x", ".dot", "Éa"] {
            tree.write(name, "");
        }
        symlink("C", tree.path().join("link")).unwrap();
        symlink("nowhere", tree.path().join("lost")).unwrap();
        let expected = ".dot\nA\na\nb\nC/\nlink/\nlost@\nÉa";
        for arguments in [json!({}), json!({"path": "."}), json!({"path": ""})] {
            assert_eq!(ls(&tree, arguments), (expected.to_owned(), Value::Null));
        }
        assert_eq!(ls(&tree, json!({"path": "C"})).0, "x");
        assert_eq!(
            ls(&tree, json!({"limit": 2})),
            (
                ".dot\nA\n\n[2 entries limit reached. Use limit=4 for more]".to_owned(),
                json!({"entryLimitReached": 2})
            )
        );
        assert_eq!(ls(&tree, json!({"limit": 8})).0, expected);
    }

    #[test]
    fn what_cannot_be_listed_is_named() {
        let tree = TempDir::create();
        tree.write("file", "");
        std::fs::create_dir(tree.path().join("empty")).unwrap();
        let answer = |path: &str| ls(&tree, json!({"path": path})).0;
        assert_eq!(answer("empty"), "(empty directory)");
        assert_eq!(answer("no"), "error: Path not found: CWD/no");
        assert_eq!(answer("file"), "error: Not a directory: CWD/file");
    }

    #[test]
    fn a_long_list_is_cut_by_size() {
        let tree = TempDir::create();
        for number in 0..400 {
            tree.write(&format!("{number:03}{}", "n".repeat(150)), "");
        }
        let (text, details) = ls(&tree, json!({}));
        assert!(text.ends_with("\n\n[50.0KB limit reached]"));
        assert_eq!(details["truncation"]["totalLines"], 400);
    }
}
