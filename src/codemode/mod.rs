//! The tool `codemode`: the model writes JavaScript that calls the other tools, and sees what the script puts out.
//!
//! | file | does |
//! |---|---|
//! | `tool` | the tool: one call of it |
//! | `source` | the options in a script's first line |
//! | `engine` | runs a script in a child that has nothing but a pipe to pi |
//! | `run` | answers what a script asks for |
//! | `declare` | tools as scripts see them |
//! | `output` | the result for the model |
//! | `store` | values that scripts keep in the session |
//! | `models` | the models that scripts can list |
//! | `search` | finds tools by words |

mod declare;
mod engine;
mod models;
mod output;
mod run;
pub mod search;
mod source;
mod store;
mod tool;

use crate::base::json::json;
use crate::llm::message::ToolSpec;
use crate::runtime::addition::{Addition, OWN, Owner};
use crate::runtime::control::Control;
use std::sync::Arc;

/// The name of the tool.
pub const NAME: &str = "codemode";

/// Offers the tool, if an engine is there. `tell` is told if it was asked for and there is none.
pub fn start(control: &Control, tell: impl FnOnce(String)) {
    let tool = tool::Codemode::new(control);
    if engine::Engine::find().is_none() {
        if control.config().admits(tool.info_of()) == Some(true) {
            tell(
                "The tool codemode is left out: it needs node (20 or later) or deno in PATH to run scripts"
                    .to_owned(),
            );
        }
        return;
    }
    let source =
        json!({"path": "builtin:codemode", "source": "builtin", "scope": "temporary", "origin": "top-level"});
    let tool = Arc::new(tool);
    let addition =
        Addition { tools: vec![tool.clone()], arranger: Some(tool), source, ..Addition::default() };
    // A tool of the program itself is never refused.
    control.set_addition(Owner { rank: OWN, name: NAME.into() }, addition);
}

/// The declaration of the tool without tools that it lists.
fn spec(description: String) -> ToolSpec {
    ToolSpec {
        name: NAME.into(),
        description,
        parameters: json!({"type": "object", "required": ["code"], "properties": {
            "code": {"type": "string", "description": "JavaScript source"},
        }}),
        ..ToolSpec::default()
    }
}
