//! Parts of the conversation that an extension draws, and proposals that it makes for the editor.

use super::member::Member;
use super::registration::Registration;
use super::request::Failed;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::runtime::addition::{Completer, Completion, Renderer, Typed};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time for lines of a part. A part is printed no sooner than it is drawn.
const DRAW_MAX: Duration = Duration::from_secs(2);
/// Time for proposals while somebody types.
const COMPLETE_MAX: Duration = Duration::from_secs(5);

/// Draws with an extension. One that was late is not asked again.
struct RemoteRenderer {
    member: Arc<dyn Member>,
    registration: Arc<Registration>,
    is_late: AtomicBool,
}

/// The renderer of an instance, if it has registered anything to draw.
pub fn renderer(member: &Arc<dyn Member>) -> Option<Arc<dyn Renderer>> {
    let registration = member.registration();
    let Registration { tools, renderers, tool_renderers, .. } = &*registration;
    let draws = *tool_renderers
        || !registration.transforms.is_empty()
        || !renderers.messages.is_empty()
        || !renderers.entries.is_empty()
        || tools.iter().any(|tool| !tool.renders.is_empty());
    draws.then(|| {
        let (member, is_late) = (member.clone(), AtomicBool::new(false));
        Arc::new(RemoteRenderer { member, registration, is_late }) as Arc<dyn Renderer>
    })
}

impl Renderer for RemoteRenderer {
    fn draws(&self, kind: &str, name: &str) -> bool {
        let Registration { tools, renderers, tool_renderers, .. } = &*self.registration;
        let has = |names: &[String]| names.iter().any(|known| known == name);
        let draws = |part: &str| {
            let mut own = tools.iter().filter(|tool| tool.info.spec.name == name);
            *tool_renderers || own.any(|tool| tool.renders.iter().any(|known| known == part))
        };
        !self.is_late.load(Ordering::Relaxed)
            && match kind {
                "message" => has(&renderers.messages),
                "entry" => has(&renderers.entries),
                "markdown" => has(&self.registration.transforms),
                "toolCall" => draws("call"),
                _ => draws("result"),
            }
    }

    fn draw(&self, mut part: Value, cancel: &CancelToken) -> Option<Vec<String>> {
        let connection = self.member.connection().ok()?;
        part["extension"] = self.member.id().into();
        let method = match part["kind"] == "markdown" {
            true => "markdown.transform",
            false => "render",
        };
        match connection.ask(method, part, Some(DRAW_MAX), cancel) {
            Ok(changed) if method != "render" => changed["text"].as_str().map(|text| vec![text.to_owned()]),
            Ok(drawn) => {
                let lines = drawn["lines"].as_array()?;
                Some(lines.iter().map(|line| line.as_str().unwrap_or_default().to_owned()).collect())
            }
            Err(failed) => {
                if matches!(failed, Failed::Late(_)) {
                    self.is_late.store(true, Ordering::Relaxed);
                }
                if !matches!(failed, Failed::Cancelled | Failed::Over(_)) {
                    self.member.report(method, &failed.to_string());
                }
                None
            }
        }
    }
}

struct RemoteCompleter {
    member: Arc<dyn Member>,
    id: String,
}

/// The completers with these ids.
pub fn completers(member: &Arc<dyn Member>, ids: Vec<String>) -> Vec<Arc<dyn Completer>> {
    let one = |id: String| Arc::new(RemoteCompleter { member: member.clone(), id }) as Arc<dyn Completer>;
    ids.into_iter().map(one).collect()
}

impl Completer for RemoteCompleter {
    fn complete(&self, typed: &Typed, cancel: &CancelToken) -> Option<(String, Vec<Completion>)> {
        let Typed { lines, line, column, is_asked } = typed;
        let params = json!({"extension": self.member.id(), "completer": self.id, "lines": lines, "line": line,
            "column": column, "force": is_asked});
        let found = self
            .member
            .connection()
            .ok()?
            .ask("completer.complete", params, Some(COMPLETE_MAX), cancel)
            .ok()?;
        let prefix = found["prefix"].as_str().unwrap_or_default().to_owned();
        Some((prefix, completions(&found["items"])))
    }
}

/// Proposals in the form of extensions: a list of `value`, `label`, `description`.
pub fn completions(found: &Value) -> Vec<Completion> {
    let text = |proposal: &Value, name: &str| proposal[name].as_str().map(str::to_owned);
    let completion = |proposal: &Value| {
        let value = text(proposal, "value")?;
        let label = text(proposal, "label").unwrap_or_else(|| value.clone());
        Some(Completion { value, label, description: text(proposal, "description") })
    };
    found.as_array().into_iter().flatten().filter_map(completion).collect()
}
