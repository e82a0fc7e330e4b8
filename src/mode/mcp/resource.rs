//! Stored sessions as resources, and prompt templates as prompts.

use super::peer::reason;
use crate::base::json::json;
use crate::mode::host::{self, Host, Refusal};
use crate::runtime::control::Control;
use serde_json::Value;
use std::path::PathBuf;

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
    let text = host.read(id(uri)?)?;
    Ok(json!({"contents": [{"uri": uri, "mimeType": MARKDOWN, "text": text}]}))
}

/// The file whose changes are those of a resource.
pub fn place(host: &mut dyn Host, uri: &str) -> Result<PathBuf, Refusal> {
    host.place(id(uri)?)
}

/// The id of the session with this URI.
fn id(uri: &str) -> Result<&str, Refusal> {
    uri.strip_prefix(SCHEME).ok_or_else(|| Refusal::NotFound(format!("No resource \"{uri}\"")))
}

/// The prompt templates. The words of one are an argument each if its hint names them, else one argument together.
pub fn prompts(control: &Control) -> Vec<Value> {
    let config = control.config();
    let templates = config.commands.templates.iter();
    let prompt = templates.map(|template| {
        let mut prompt = json!({"name": template.name, "description": template.description});
        let named = template.parameters();
        if !named.is_empty() {
            let named = named.iter().map(|(name, required)| json!({"name": name, "required": required}));
            prompt["arguments"] = named.collect();
        } else if template.content.contains('$') {
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
    let template = config.commands.template(name).ok_or_else(|| unknown(name))?;
    let given = |name: &str| params["arguments"][name].as_str();
    let named = template.parameters();
    let text = match given(ARGUMENTS) {
        Some(text) => template.fill(text),
        None => {
            if let Some((name, _)) = named.iter().find(|(name, required)| *required && given(name).is_none())
            {
                return Err(format!("The argument \"{name}\" is missing"));
            }
            let words = named.iter().map(|(name, _)| given(name).unwrap_or_default().to_owned());
            template.fill_words(&words.collect::<Vec<_>>())
        }
    };
    Ok(json!({"description": template.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}))
}

/// The values of an argument that a template's hint lists, as in `<fast|slow>`.
pub fn choices(control: &Control, prompt: &str, argument: &str) -> Result<Vec<String>, String> {
    let config = control.config();
    let template = config.commands.template(prompt).ok_or_else(|| unknown(prompt))?;
    let named = template.parameters();
    let hint = template.hint.as_deref().unwrap_or_default();
    let listed = match named.iter().find(|(name, _)| *name == argument) {
        Some((name, _)) => name,
        None if argument == ARGUMENTS => hint.trim_matches(['<', '>', '[', ']']),
        None => return Err(format!("The prompt \"{prompt}\" has no argument \"{argument}\"")),
    };
    let is_list = listed.contains('|') && !listed.contains(char::is_whitespace);
    Ok(if is_list { listed.split('|').map(str::to_owned).collect() } else { Vec::new() })
}

fn unknown(prompt: &str) -> String {
    format!("No prompt \"{prompt}\"")
}
