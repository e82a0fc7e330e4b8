//! Stored sessions as resources, and prompt templates as prompts.

use super::peer::reason;
use crate::base::json::json;
use crate::mode::host::{self, Host, Refusal};
use crate::runtime::control::Control;
use serde_json::Value;

/// A session's URI is this and its id.
const SCHEME: &str = "pi-session:///";
const MARKDOWN: &str = "text/markdown";

/// Maximum characters of a title.
const TITLE_MAX: usize = 80;

pub fn template() -> Value {
    json!({"uriTemplate": format!("{SCHEME}{{id}}"), "name": "session", "title": "Stored session",
        "mimeType": MARKDOWN})
}

/// The page of stored sessions that begins after the session `after`.
pub fn list(host: &mut dyn Host, after: Option<&str>) -> Result<Value, String> {
    let sessions = host.list(None).map_err(reason)?;
    let (shown, next) = host::page(&sessions, after).map_err(reason)?;
    let resources = shown.iter().map(|listed| {
        let title: String = listed.title.lines().next().unwrap_or_default().chars().take(TITLE_MAX).collect();
        json!({"uri": format!("{SCHEME}{}", listed.session_id), "name": listed.session_id, "title": title,
            "description": listed.cwd, "mimeType": MARKDOWN,
            "annotations": {"lastModified": listed.updated_at}})
    });
    let mut page = json!({"resources": resources.collect::<Vec<_>>()});
    if let Some(next) = next {
        page["nextCursor"] = next.into();
    }
    Ok(page)
}

/// The conversation of a session, in Markdown.
pub fn read(host: &mut dyn Host, uri: &str) -> Result<Value, Refusal> {
    let id = uri.strip_prefix(SCHEME).ok_or_else(|| Refusal::NotFound(format!("No resource \"{uri}\"")))?;
    let text = host.read(id)?;
    Ok(json!({"contents": [{"uri": uri, "mimeType": MARKDOWN, "text": text}]}))
}

/// The prompt templates.
pub fn prompts(control: &Control) -> Vec<Value> {
    let config = control.config();
    let templates = config.commands.templates.iter();
    let prompt = templates.map(|template| {
        let mut prompt = json!({"name": template.name, "description": template.description});
        if template.content.contains('$') {
            let hint = template.hint.as_deref().unwrap_or("Words that the template's placeholders stand for");
            prompt["arguments"] = json!([{"name": ARGUMENTS, "description": hint}]);
        }
        prompt
    });
    prompt.collect()
}

const ARGUMENTS: &str = "arguments";

/// A prompt template with its placeholders filled. The error describes what is wrong with `params`.
pub fn prompt(control: &Control, params: &Value) -> Result<Value, String> {
    let name = params["name"].as_str().ok_or("\"name\" must be a string")?;
    let config = control.config();
    let template = config.commands.templates.iter().find(|template| template.name == name);
    let template = template.ok_or_else(|| format!("No prompt \"{name}\""))?;
    let text = template.fill(params["arguments"][ARGUMENTS].as_str().unwrap_or_default());
    Ok(json!({"description": template.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}))
}
