//! Proposals for the arguments of prompts and resource templates (`completion/complete`).

use super::peer::reason;
use super::resource;
use super::serve::Shared;
use crate::base::json::json;
use serde_json::Value;

/// Values of one answer, by the protocol.
const VALUES_MAX: usize = 100;

/// The values that an argument can have, of those that begin with what is typed. The error says what is wrong with
/// `params`.
pub fn complete(shared: &Shared, params: &Value) -> Result<Value, String> {
    let text = |pointer: &str| params.pointer(pointer).and_then(Value::as_str);
    let name = text("/argument/name").ok_or("\"argument.name\" must be a string")?;
    let typed = text("/argument/value").ok_or("\"argument.value\" must be a string")?;
    let values = match (text("/ref/type"), text("/ref/name"), text("/ref/uri")) {
        (Some("ref/prompt"), Some(prompt), _) => resource::choices(&shared.control, prompt, name)?,
        (Some("ref/resource"), _, Some(uri)) => {
            if resource::template()["uriTemplate"] != uri {
                return Err(format!("No resource template \"{uri}\""));
            }
            let sessions = shared.host().list(None).map_err(reason)?;
            sessions.into_iter().map(|listed| listed.session_id).collect()
        }
        _ => return Err("\"ref\" must name a prompt or a resource template".into()),
    };
    let mut values: Vec<String> = values.into_iter().filter(|value| value.starts_with(typed)).collect();
    let total = values.len();
    values.truncate(VALUES_MAX);
    Ok(json!({"completion": {"values": values, "total": total, "hasMore": total > VALUES_MAX}}))
}
