//! A workspace in a temporary folder, and calls of tools in it.

pub mod leak;

pub use crate::base::testing::TempDir;

use super::local::Local;
use crate::agent::CancelToken;
use crate::agent::tool::{Invocation, Tool, ToolError, ToolOutput};
use crate::llm::message::text_of;
use crate::llm::model::Model;
use crate::llm::secret::Vault;
use crate::tools::workspace::{Forgotten, Options, OutputDir, Workspace};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

impl TempDir {
    /// A workspace in this folder, on the real disk.
    pub fn workspace(&self) -> Workspace {
        Workspace {
            cwd: self.path().to_owned(),
            home: Some(self.path().join("home")),
            backend: Arc::new(Local),
            options: Options::default(),
            env: Mutex::new(Vec::new()),
            outputs: Arc::new(Outputs(self.path().join(".outputs"))),
            changes: Arc::new(Forgotten),
            vault: Vault::default(),
        }
    }
}

struct Outputs(PathBuf);

impl OutputDir for Outputs {
    fn path(&self) -> std::io::Result<PathBuf> {
        fs::create_dir_all(&self.0)?;
        Ok(self.0.clone())
    }

    fn if_there(&self) -> Option<PathBuf> {
        self.0.is_dir().then(|| self.0.clone())
    }
}

/// Calls a tool like the agent, but without validation.
pub fn call(tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
    call_with(tool, arguments, &CancelToken::new(), &Model::default())
}

pub fn call_with(
    tool: &dyn Tool,
    arguments: Value,
    cancel: &CancelToken,
    model: &Model,
) -> Result<ToolOutput, ToolError> {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    let arguments = tool.prepare(arguments);
    tool.run(&Invocation { id: "call-1", arguments: &arguments, cancel, model, update: &|_| {} })
}

/// The text of a result, or of the error with `error: ` before it.
pub fn text(result: &Result<ToolOutput, ToolError>) -> String {
    match result {
        Ok(output) => text_of(&output.content),
        Err(error) => format!("error: {error}"),
    }
}
