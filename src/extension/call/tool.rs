//! `tools.*`: what the session has, and calls of it.

use super::{Answer, Call, unknown};
use crate::agent::tool::ToolOutput;
use crate::base::json::json;
use crate::runtime::nested_calls::{Calls, Status};
use serde_json::{Map, Value};
use std::sync::Arc;

impl Call<'_> {
    pub(super) fn tools(&self, name: &str) -> Answer {
        let (control, params) = (self.control, self.params);
        match name {
            "list" => {
                let all = control.tools().all();
                let one = |(tool, active): &(Arc<dyn crate::agent::tool::Tool>, bool)| {
                    let info = tool.info();
                    let mut fields = json!({
                        "name": info.spec.name,
                        "label": info.label,
                        "description": info.spec.description,
                        "parameters": info.spec.parameters,
                        "promptGuidelines": info.rules,
                        "exposure": info.exposure.name(),
                        "annotations": {"readOnlyHint": info.reads_only},
                        "active": active,
                        "sourceInfo": control.tool_source(&info.spec.name).unwrap_or_else(|| json!({
                            "path": format!("builtin:{}", info.spec.name), "source": "builtin",
                            "scope": "temporary", "origin": "top-level",
                        })),
                    });
                    if let Some(namespace) = &info.namespace {
                        fields["namespace"] = json!({"name": namespace.name, "aliases": namespace.aliases,
                            "description": namespace.description, "instructions": namespace.instructions});
                    }
                    fields
                };
                Ok(json!({"tools": all.iter().map(one).collect::<Vec<_>>()}))
            }
            "active" => Ok(json!({"names": control.snapshot().active_tools})),
            "setActive" => {
                let names: Vec<String> = params.required("names")?;
                Ok(json!({"names": control.tools().set_active(&names)}))
            }
            "execute" => {
                let parent = params.optional_text("toolCallId")?;
                let name = params.text("name")?;
                let arguments: Map<String, Value> = params.optional("arguments")?.unwrap_or_default();
                let is_own = params.flag("builtin")?;
                // What a tool of pi's own does on behalf of the tool in its place is no call of its own.
                let begun = parent.filter(|_| !is_own).and_then(|parent| {
                    let begin = |made: &mut Calls| made.begin(name, &json!(arguments));
                    let (id, at) = self.instance.record(parent, begin)?;
                    Some((parent, id, at))
                });
                let id = match &begun {
                    Some((_, id, _)) => id.clone(),
                    None => format!("{}/{}", parent.unwrap_or("call"), crate::runtime::unique_id()),
                };
                let progress = |output: ToolOutput| {
                    let part = json!({"extension": self.instance.id, "id": self.id, "content": output.content,
                        "details": output.details});
                    if let Some(connection) = self.instance.connection() {
                        connection.offer("tool.progress", part);
                    }
                };
                let own_id = id.clone();
                let (output, is_error) = match is_own {
                    true => control.execute_builtin(&id, name, &arguments, &progress, self.cancel),
                    false => control.begin_call(id, parent, name, arguments, self.cancel).run(&progress),
                };
                if let Some((parent, _, at)) = begun {
                    let (status, error) = match (is_error, self.cancel.is_cancelled()) {
                        (true, true) => (Status::Cancelled, String::new()),
                        (true, false) => (Status::Error, output.joined_text()),
                        (false, _) => (Status::Ok, String::new()),
                    };
                    self.instance.record(parent, |made| {
                        made.end(at, status, &error);
                        made.absorb(&output);
                    });
                }
                let mut result =
                    json!({"toolCallId": own_id, "content": output.content, "isError": is_error});
                let fields = [("details", output.details), ("structuredContent", output.structured)];
                for (name, value) in fields {
                    if let Some(value) = value {
                        result[name] = value;
                    }
                }
                Ok(result)
            }
            _ => unknown(&format!("tools.{name}")),
        }
    }
}
