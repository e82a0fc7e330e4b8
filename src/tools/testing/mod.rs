//! What tests of tools stand on: a folder that goes away, and a tool called in it.

pub mod leak;

use super::local::Local;
use crate::agent::CancelToken;
use crate::agent::tool::{Invocation, Tool, ToolError, ToolOutput};
use crate::llm::message::text_of;
use crate::llm::model::Model;
use crate::llm::secret::Vault;
use crate::tools::workspace::{Forgotten, Options, OutputDir, Workspace};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A folder of its own for each test, removed when dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn create() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pi-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder for the test");
        // Links in the way would make every comparison of paths harder.
        Self(fs::canonicalize(path).expect("the folder just made"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("a folder for the test");
        }
        fs::write(&path, content).expect("a file for the test");
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).expect("a file that the test wants")
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder of the test");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A workspace in this folder, on the real disk.
    pub fn workspace(&self) -> Workspace {
        Workspace {
            cwd: self.0.clone(),
            home: Some(self.0.join("home")),
            backend: Arc::new(Local),
            options: Options::default(),
            env: Mutex::new(Vec::new()),
            outputs: Arc::new(Outputs(self.0.join(".outputs"))),
            changes: Arc::new(Forgotten),
            vault: Vault::default(),
        }
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
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

/// Calls a tool as the agent does, but for the validation.
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
