//! The tool `codemode`.

use super::output::Maker;
use super::{declare, run, source, spec};
use crate::agent::call::{Arguments, CallInfo, Kind};
use crate::agent::tool::{Exposure, Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::runtime::addition::Arranger;
use crate::runtime::config::Config;
use crate::runtime::control::{Control, WeakControl};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;

const DESCRIPTION: &str = "\
Runs JavaScript that calls other tools; the model sees only what the script puts out. `code` is the body of an async \
function: await and return work at the top. There are no modules, files, network or timers.
- `await tools.NAME({...})` calls a tool, also one that is declared to you, with its arguments. It gives the tool's text \
(`bash`: `{ output, truncated, full_output_path?, exit_code, wall_time_seconds }`, whatever the exit code; a tool of an \
MCP server: `{ content, structuredContent?, isError? }`; an image that was read: an image block) and throws an Error if \
the call fails. What still runs at the end is cancelled.
- `text(value)`, `image(block or data: URL)`, `console.log(...)` and `return` put out; `exit()` ends.
- `store(key, value)` and `load(key)` keep small values of JSON for later scripts of this session.
- Tools that are not declared to you, such as those of MCP servers: `ALL_TOOLS` (`{ name, description }`), \
`await searchTools(query, { limit?, namespace? })`, `await describeTool(name)`, `await describeNamespace(name)`.
- `models.getAvailableOfType(type)` lists models of the type \"classifier\", \"image\" or \"chat\", \
`models.getModelOfType(type, provider, id)` finds one. `models.classify(model, { state, questions })` answers typed \
questions, `models.generateImages(model, { input })` makes images; errors are in `stopReason` and `errorMessage`. See \
`pi docs codemode` for their types; chat models cannot be run.
- First line, if wanted: `// @options: {\"max_output_tokens\": 10000, \"timeout_ms\": 60000}`";

/// Characters of a token, as estimated.
const TOKEN_CHARS: u64 = 4;

pub struct Codemode {
    info: ToolInfo,
    control: WeakControl,
}

impl Codemode {
    pub fn new(control: &Control) -> Self {
        let info = ToolInfo {
            spec: spec(DESCRIPTION.to_owned()),
            label: super::NAME.into(),
            snippet: Some("Run JavaScript that calls other tools".into()),
            rules: vec![
                "Use codemode to make many calls at once, to use what one call gives in the next, or to keep a large \
                 result out of the conversation"
                    .into(),
            ],
            // What its calls change is decided on call by call.
            reads_only: true,
            // A script starts no scripts.
            exposure: Exposure::ModelOnly,
            starts_inactive: true,
            ..ToolInfo::default()
        };
        Self { info, control: control.downgrade() }
    }

    pub fn info_of(&self) -> &ToolInfo {
        &self.info
    }
}

impl Arranger for Codemode {
    /// Declares the tools that are called only by scripts in the description: those of that exposure, and with
    /// `codemode.mode` `only` all others.
    fn arrange(&self, active: &mut [Arc<dyn Tool>], all: &[Arc<dyn Tool>], config: &Config) -> Vec<String> {
        let is_own = |tool: &Arc<dyn Tool>| std::ptr::eq(tool.info(), &raw const self.info);
        let Some(place) = active.iter().position(is_own) else { return Vec::new() };
        let is_only = config.settings.word("codemode.mode") == "only";
        let covered = active.iter().map(|tool| tool.info());
        let covered = covered.filter(|info| is_only && info.exposure == Exposure::Direct);
        let scripted = all.iter().map(|tool| tool.info()).filter(|info| info.exposure == Exposure::Codemode);
        let tokens = config.settings.count("codemode.inlineBudget");
        let budget = usize::try_from(tokens.saturating_mul(TOKEN_CHARS)).unwrap_or(usize::MAX);
        let listed: Vec<&ToolInfo> = covered.clone().chain(scripted).collect();
        let listed = declare::listed(&listed, budget);
        let names = covered.map(|info| info.spec.name.clone()).collect();
        if !listed.is_empty() {
            let mut info = self.info.clone();
            info.spec.description.push_str(&listed);
            active[place] = Arc::new(Self { info, control: self.control.clone() });
        }
        names
    }
}

impl Tool for Codemode {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        CallInfo { kind: Kind::Execute, ..CallInfo::of(arguments) }
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let begun = Instant::now();
        let control = self.control.upgrade().ok_or_else(ToolError::aborted)?;
        let code = call.arguments.get("code").and_then(Value::as_str).unwrap_or_default();
        let options = source::options(code)?;
        let outcome = run::run(&control, call, code, &options);
        if call.cancel.is_cancelled() {
            return Err(ToolError { details: Some(outcome.calls.details()), ..ToolError::aborted() });
        }
        let config = control.config();
        let maker = Maker { workspace: &config.workspace, call, tokens_max: options.max_output_tokens };
        let made = maker.make(&outcome, begun.elapsed());
        let mut details = outcome.calls.details();
        if let Some(path) = made.full_output {
            details["fullOutputPath"] = json!(path);
        }
        Ok(ToolOutput {
            content: made.content,
            details: Some(details),
            nested_calls: outcome.calls.record(),
            usage: outcome.calls.usage,
            is_error: outcome.error.is_some(),
            ..ToolOutput::default()
        })
    }
}
