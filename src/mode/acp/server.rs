//! MCP servers that an editor lends to a session.

use crate::base::json::json;
use crate::runtime::lent::LentServer;
use serde_json::{Map, Value};

/// Reads `mcpServers` of a request. The error names the server that is wrong.
pub fn read(servers: &Value) -> Result<Vec<LentServer>, String> {
    match servers {
        Value::Null => Ok(Vec::new()),
        Value::Array(servers) => servers.iter().map(lent).collect(),
        _ => Err("\"mcpServers\" must be a list".into()),
    }
}

fn lent(server: &Value) -> Result<LentServer, String> {
    let name = server["name"].as_str().ok_or("a server of \"mcpServers\" has no \"name\"")?;
    let wrong = |reason: String| format!("MCP server \"{name}\": {reason}");
    let entry = match server["type"].as_str() {
        None | Some("stdio") => json!({
            "command": server["command"],
            "args": list(&server["args"]),
            "env": pairs(server, "env").map_err(wrong)?,
        }),
        Some(kind @ ("http" | "sse")) => json!({
            "type": kind,
            "url": server["url"],
            "headers": pairs(server, "headers").map_err(wrong)?,
        }),
        Some(other) => return Err(wrong(format!("servers of the type \"{other}\" are not supported"))),
    };
    Ok((name.to_owned(), entry.as_object().cloned().unwrap_or_default()))
}

fn list(value: &Value) -> Value {
    if value.is_null() { json!([]) } else { value.clone() }
}

/// A list of names and values, as an object.
fn pairs(server: &Value, field: &str) -> Result<Map<String, Value>, String> {
    let pair = |pair: &Value| Some((pair["name"].as_str()?.to_owned(), pair.get("value")?.clone()));
    match list(&server[field]).as_array() {
        Some(items) => items.iter().map(pair).collect(),
        None => None,
    }
    .ok_or_else(|| format!("\"{field}\" must be a list of names and values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_taken_in_the_form_of_the_configuration() {
        let pair = json!([{"name": "A", "value": "b"}]);
        for (server, expected) in [
            (
                json!({"name": "s", "command": "/x", "args": ["y"], "env": pair}),
                Ok(json!({"command": "/x", "args": ["y"], "env": {"A": "b"}})),
            ),
            (json!({"name": "s", "command": "/x"}), Ok(json!({"command": "/x", "args": [], "env": {}}))),
            (
                json!({"type": "http", "name": "s", "url": "http://h", "headers": pair}),
                Ok(json!({"type": "http", "url": "http://h", "headers": {"A": "b"}})),
            ),
            (
                json!({"type": "sse", "name": "s", "url": "http://h", "headers": []}),
                Ok(json!({"type": "sse", "url": "http://h", "headers": {}})),
            ),
            (json!({"command": "/x"}), Err("a server of \"mcpServers\" has no \"name\"")),
            (
                json!({"type": "acp", "name": "s"}),
                Err("MCP server \"s\": servers of the type \"acp\" are not supported"),
            ),
            (
                json!({"name": "s", "command": "/x", "env": {"A": "b"}}),
                Err("MCP server \"s\": \"env\" must be a list of names and values"),
            ),
        ] {
            let expected = match expected {
                Ok(entry) => Ok(vec![("s".to_owned(), entry.as_object().cloned().unwrap())]),
                Err(reason) => Err(reason.to_owned()),
            };
            assert_eq!(read(&json!([server])), expected, "{server}");
        }
        assert_eq!(read(&Value::Null), Ok(Vec::new()));
        assert!(read(&json!({})).is_err());
    }
}
