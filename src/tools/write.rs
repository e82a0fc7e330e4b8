//! The `write` tool: creates or overwrites a file.

use super::backend::{error_text, write_error_text};
use super::{argument, mutation, path};
use crate::agent::call::{Argument, Arguments, Body, CallInfo, Kind};
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::llm::message::ToolSpec;
use crate::tools::workspace::Workspace;
use serde_json::{Map, Value};
use std::sync::Arc;

pub fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: "write".into(),
        description: "Make a file or replace its whole content. Missing parent folders are made.".into(),
        parameters: json!({
            "type": "object",
            "required": ["path", "content"],
            "properties": {
                "path": {"type": "string", "description": "File to write, relative or absolute"},
                "content": {"type": "string", "description": "The whole new content"},
            },
        }),
        constrained_sampling: Some(argument::strict_if_possible()),
        ..ToolSpec::default()
    };
    Arc::new(Write {
        info: ToolInfo {
            spec,
            label: "write".into(),
            snippet: Some("Make or replace files".into()),
            rules: workspace.rules(["Use write for new files and whole rewrites only."]),
            ..ToolInfo::default()
        },
        workspace,
    })
}

pub fn describe(arguments: &Arguments) -> CallInfo<'_> {
    let body = Body::Content(Argument::of(arguments, "content"));
    CallInfo::of_file(Kind::Edit, "Write", arguments, body)
}

struct Write {
    workspace: Arc<Workspace>,
    info: ToolInfo,
}

impl Tool for Write {
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
        let content = argument::text(call, "content")?;
        if path::ends_in_slash(given) {
            return Err(ToolError::new(format!(
                "{given} names a folder, since it ends in a slash. Give the path of a file; its folders are made."
            )));
        }
        let target = path::resolve(&self.workspace, given)?;
        let backend = self.workspace.backend.as_ref();
        let real = backend
            .canonical(&target)
            .map_err(|error| ToolError::new(error_text(&error, "open", &target)))?;
        let _lock = mutation::lock(&real, call.cancel).ok_or_else(ToolError::aborted)?;
        let noted = self.workspace.note("write", call.id, &real, content.as_bytes());
        if let Some(folder) = target.parent() {
            backend
                .create_dir_all(folder)
                .map_err(|error| ToolError::new(error_text(&error, "mkdir", folder)))?;
        }
        if call.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        backend
            .write(&target, content.as_bytes())
            .map_err(|error| ToolError::new(write_error_text(&error, &target)))?;
        noted.made();
        Ok(ToolOutput::text(format!("Successfully wrote to {given}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::CancelToken;
    use crate::llm::model::Model;
    use crate::tools::testing::{TempDir, call, call_with, text};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Writes with the tool, and checks the result with the folder written as `CWD`.
    #[track_caller]
    fn check(dir: &TempDir, path: &str, content: &str, expected: &str) {
        let tool = tool(Arc::new(dir.workspace()));
        let result = call(tool.as_ref(), json!({"path": path, "content": content}));
        let answer = text(&result).replace(dir.path().to_str().unwrap(), "CWD");
        assert_eq!(answer, expected);
        if result.is_ok() {
            assert_eq!(dir.read(path), content.as_bytes());
        }
    }

    #[test]
    fn the_content_is_written_byte_for_byte() {
        let dir = TempDir::create();
        check(&dir, "a.txt", "one\r\ntwo", "Successfully wrote to a.txt");
        check(&dir, "a.txt", "", "Successfully wrote to a.txt");
        check(&dir, "deep/er/b", "\u{feff}é\0", "Successfully wrote to deep/er/b");
        let tool = tool(Arc::new(dir.workspace()));
        call(tool.as_ref(), json!({"file_path": "old-name", "content": "x"})).unwrap();
        assert_eq!(dir.read("old-name"), b"x");
    }

    #[test]
    fn what_cannot_be_a_file_is_refused() {
        let dir = TempDir::create();
        dir.write("file", "old");
        fs::create_dir(dir.path().join("folder")).unwrap();
        symlink("round", dir.path().join("round")).unwrap();
        check(&dir, "folder", "x", "error: EISDIR: illegal operation on a directory, open 'CWD/folder'");
        check(&dir, "file/x", "x", "error: EEXIST: file already exists, mkdir 'CWD/file'");
        check(&dir, "round", "x", "error: ELOOP: too many symbolic links encountered, open 'CWD/round'");
        check(
            &dir,
            "new/",
            "x",
            "error: new/ names a folder, since it ends in a slash. Give the path of a file; its folders are made.",
        );
        check(
            &dir,
            "/dev/null",
            "x",
            "error: Cannot open '/dev/null': it is a device, pipe or socket, not a regular file",
        );
        let long = "n".repeat(5000);
        check(&dir, &long, "x", &format!("error: ENAMETOOLONG: name too long, open 'CWD/{long}'"));
        assert_eq!(dir.names(), ["file", "folder", "round"]);
        assert_eq!(dir.read("file"), b"old");
    }

    #[test]
    fn the_mode_and_the_links_stay() {
        let dir = TempDir::create();
        dir.write("script", "old");
        let script = dir.path().join("script");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
        symlink("script", dir.path().join("link")).unwrap();
        fs::hard_link(&script, dir.path().join("other")).unwrap();
        check(&dir, "link", "new", "Successfully wrote to link");
        assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(dir.read("other"), b"new");
        assert!(dir.path().join("link").is_symlink());
    }

    #[test]
    fn an_aborted_call_writes_nothing() {
        let dir = TempDir::create();
        let cancel = CancelToken::new();
        cancel.cancel();
        let tool = tool(Arc::new(dir.workspace()));
        let arguments = json!({"path": "a/b", "content": "x"});
        let result = call_with(tool.as_ref(), arguments, &cancel, &Model::default());
        assert_eq!(text(&result), "error: Operation aborted");
        assert!(dir.names().is_empty());
    }
}
