//! The built-in tools and their common parts.

pub mod argument;
pub mod artifact;
pub mod backend;
pub mod bash;
pub mod diff;
pub mod edit;
pub mod find;
pub mod fold;
pub mod grep;
pub mod ignore;
pub mod image;
pub mod job;
pub mod kept_job;
pub mod likeness;
pub mod listing;
pub mod local;
pub mod ls;
pub mod merge;
pub mod mutation;
pub mod output;
pub mod path;
pub mod plain;
pub mod process;
pub mod read;
pub mod sandbox;
pub mod suggest;
pub mod text;
pub mod truncate;
pub mod walk;
pub mod write;

#[cfg(test)]
pub mod testing;

mod workspace;

pub use workspace::{Change, Changes, Forgotten, Options, OutputDir, Workspace};

use crate::agent::call::{Arguments, CallInfo};
use crate::agent::tool::Tool;
use std::sync::Arc;

/// A built-in tool. Calls of stored sessions are described without an instance.
struct Builtin {
    name: &'static str,
    make: fn(Arc<Workspace>) -> Arc<dyn Tool>,
    describe: fn(&Arguments) -> CallInfo<'_>,
}

const BUILTIN: &[Builtin] = &[
    Builtin { name: "read", make: read::tool, describe: read::describe },
    Builtin { name: "bash", make: bash::tool, describe: bash::describe },
    Builtin { name: "edit", make: edit::tool, describe: edit::describe },
    Builtin { name: "write", make: write::tool, describe: write::describe },
    Builtin { name: "grep", make: grep::tool, describe: grep::describe },
    Builtin { name: "find", make: find::tool, describe: find::describe },
    Builtin { name: "ls", make: ls::tool, describe: ls::describe },
];

/// The names of the built-in tools.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|tool| tool.name)
}

/// The built-in tool of this name.
pub fn builtin(name: &str, workspace: &Arc<Workspace>) -> Option<Arc<dyn Tool>> {
    find_builtin(name).map(|tool| (tool.make)(workspace.clone()))
}

/// Describes a call of the built-in tool `name`. Calls of unknown tools have an empty description.
pub fn describe<'a>(name: &str, arguments: &'a Arguments) -> CallInfo<'a> {
    find_builtin(name).map_or_else(|| CallInfo::of(arguments), |tool| (tool.describe)(arguments))
}

fn find_builtin(name: &str) -> Option<&'static Builtin> {
    BUILTIN.iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::call::Body;
    use crate::base::json::json;

    #[test]
    fn every_tool_describes_its_calls_with_and_without_a_workspace() {
        let dir = testing::TempDir::create();
        let workspace = Arc::new(dir.workspace());
        let arguments = json!({"path": "a", "pattern": "b", "command": "c", "content": "d", "oldText": "e"});
        for arguments in [arguments, json!({})] {
            let arguments = arguments.as_object().unwrap();
            for name in names() {
                let (stored, live) = (describe(name, arguments), builtin(name, &workspace).unwrap());
                assert!(!matches!(stored.body, Body::Unknown), "{name}");
                assert_eq!(format!("{stored:?}"), format!("{:?}", live.describe(arguments)));
            }
        }
        assert!(matches!(describe("other", &Arguments::new()).body, Body::Unknown));
    }
}
