//! The fields of an entry of `mcp.json`: one table for checks, the manual and the schema.

use super::Exposure;
use crate::base::json::json;
use crate::llm::http::address::address;
use serde_json::{Map, Value};

/// A field of an entry, or of the object in one.
pub struct Field {
    pub name: &'static str,
    pub of: Of,
    pub form: Form,
    pub help: &'static str,
}

/// The servers that a field is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Any,
    Stdio,
    Http,
}

/// The values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    /// A text that is not blank.
    Name,
    Texts,
    /// An object whose values are texts.
    TextMap,
    Flag,
    /// A number above zero.
    Seconds,
    /// A whole number above zero.
    Megabytes,
    Port,
    /// A http or https address.
    Url,
    /// A https address, or one on loopback.
    SafeUrl,
    /// A http address on loopback without query and fragment.
    Callback,
    OneOf(&'static [&'static str]),
    Exposure,
    /// An object: tool names, or patterns with `*`, and their exposures.
    ExposureMap,
    /// An object with the fields of [`OAUTH_FIELDS`].
    OAuth,
    /// An object with the name of a provider.
    Auth,
}

const fn row(name: &'static str, of: Of, form: Form, help: &'static str) -> Field {
    Field { name, of, form, help }
}

/// The fields of an entry.
pub const FIELDS: &[Field] = &[
    row("type", Of::Any, Form::OneOf(TYPES), "Transport. Not needed: command means stdio, url means http"),
    row(
        "command",
        Of::Stdio,
        Form::Text,
        "Program to start: a path or a name in PATH; ~/ is the home folder",
    ),
    row("args", Of::Stdio, Form::Texts, "Arguments; ~/ at the beginning is the home folder"),
    row("env", Of::Stdio, Form::TextMap, "Variables for the program; values may hold ${NAME} or be !command"),
    row("cwd", Of::Stdio, Form::Text, "Folder of the program, relative to that of the session"),
    row(
        "memory",
        Of::Stdio,
        Form::Megabytes,
        "Megabytes of data that each of its processes may have; on Linux only",
    ),
    row("url", Of::Http, Form::Url, "Address of the server"),
    row(
        "headers",
        Of::Http,
        Form::TextMap,
        "Headers of every request; values may hold ${NAME} or be !command",
    ),
    row("oauth", Of::Http, Form::OAuth, "How to sign in, where discovery is not enough"),
    row("auth", Of::Http, Form::Auth, "Provider whose credential is sent; in the user's file only"),
    row("timeout", Of::Any, Form::Seconds, "Seconds that a request may take without progress (60)"),
    row("enabled", Of::Any, Form::Flag, "false keeps the entry without starting the server"),
    row("description", Of::Any, Form::Text, "What the server offers, in a sentence for the model"),
    row("exposure", Of::Any, Form::Exposure, "How tools reach the model (codemode)"),
    row("toolExposure", Of::Any, Form::ExposureMap, "Exposures of single tools: names, or patterns with *"),
];

/// The fields of `oauth`.
pub const OAUTH_FIELDS: &[Field] = &[
    row("clientId", Of::Http, Form::Text, "Client that is registered with the authorization server"),
    row("clientSecret", Of::Http, Form::Text, "Its secret; may hold ${NAME} or be !command"),
    row("callbackPort", Of::Http, Form::Port, "Port of the address that the browser comes back to"),
    row("callbackUrl", Of::Http, Form::Callback, "Address on this machine that the browser comes back to"),
    row("scope", Of::Http, Form::Text, "Scopes, separated by spaces, instead of those that the server names"),
    row("clientName", Of::Http, Form::Name, "Name to register under (pi)"),
    row("clientRegistration", Of::Http, Form::OneOf(REGISTRATIONS), "How pi makes itself known (auto)"),
    row(
        "authServerMetadataUrl",
        Of::Http,
        Form::SafeUrl,
        "Metadata of the authorization server, not discovered",
    ),
];

/// `sse` is the protocol's first HTTP transport, which the reference refuses.
const TYPES: &[&str] = &["stdio", "http", "streamable-http", "sse"];

const REGISTRATIONS: &[&str] = &["auto", "cimd", "dcr"];

/// Checks the fields of an entry, and replaces old names of exposures.
pub(super) fn check(fields: &mut Map<String, Value>) -> Result<(), String> {
    rename_exposures(fields);
    check_fields(fields, FIELDS, "")?;
    let has = |name: &str| fields.contains_key(name);
    let kind = fields.get("type").and_then(Value::as_str);
    let transport = match kind {
        Some("stdio") if has("command") => Of::Stdio,
        Some("http" | "streamable-http" | "sse") if has("url") => Of::Http,
        Some(kind) => {
            let wanted = if kind == "stdio" { "command" } else { "url" };
            return Err(format!("type \"{kind}\" needs \"{wanted}\""));
        }
        None if has("url") => Of::Http,
        None if has("command") => Of::Stdio,
        None => return Err("needs \"command\" (a program) or \"url\" (a server over HTTP)".to_owned()),
    };
    if transport == Of::Http {
        check_auth(fields)?;
    }
    Ok(())
}

fn rename_exposures(fields: &mut Map<String, Value>) {
    let rename = |value: &mut Value| {
        if let Value::String(name) = value {
            *name = Exposure::renamed(name).to_owned();
        }
    };
    fields.get_mut("exposure").into_iter().for_each(rename);
    let tools = fields.get_mut("toolExposure").and_then(Value::as_object_mut);
    tools.into_iter().flat_map(|tools| tools.values_mut()).for_each(rename);
}

fn check_fields(fields: &Map<String, Value>, table: &[Field], inside: &str) -> Result<(), String> {
    for field in table {
        if let Some(value) = fields.get(field.name) {
            field.form.check(value).map_err(|wanted| format!("\"{inside}{}\" {wanted}", field.name))?;
        }
    }
    Ok(())
}

impl Form {
    /// Says what a wrong value must be.
    fn check(self, value: &Value) -> Result<(), String> {
        let text = value.as_str();
        let is_map = |fits: fn(&Value) -> bool| value.as_object().is_some_and(|map| map.values().all(fits));
        let (is_right, wanted) = match self {
            Self::Text => (text.is_some(), "must be a text"),
            Self::Name => {
                (text.is_some_and(|text| !text.trim().is_empty()), "must be a text that is not blank")
            }
            Self::Texts => (
                value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
                "must be a list of texts",
            ),
            Self::TextMap => (is_map(Value::is_string), "must be an object whose values are texts"),
            Self::Flag => (value.is_boolean(), "must be true or false"),
            Self::Seconds => {
                (value.as_f64().is_some_and(|number| number > 0.0), "must be a number of seconds above 0")
            }
            Self::Megabytes => (
                value.as_u64().is_some_and(|count| (1..=1 << 24).contains(&count)),
                "must be a whole number of megabytes above 0",
            ),
            Self::Port => {
                (value.as_u64().is_some_and(|port| (1..=65535).contains(&port)), "must be a port: 1 to 65535")
            }
            Self::Url => (text.and_then(address).is_some(), "must be a http or https address"),
            Self::SafeUrl => (
                text.and_then(address).is_some_and(|url| url.is_safe()),
                "must be a https address, or a http address of this machine",
            ),
            Self::Callback => (
                text.is_some_and(|text| !text.contains(['?', '#']))
                    && text.and_then(address).is_some_and(|url| !url.is_https && url.is_loopback()),
                "must be a http address on localhost, 127.0.0.1 or [::1] without ? and #",
            ),
            Self::OneOf(names) => {
                let is_right = text.is_some_and(|text| names.contains(&text));
                return if is_right { Ok(()) } else { Err(format!("must be one of {}", names.join(", "))) };
            }
            Self::Exposure => return exposure(value),
            Self::ExposureMap => {
                let tools = value.as_object().ok_or("must be an object of tool names and exposures")?;
                return tools.iter().try_for_each(|(tool, value)| {
                    exposure(value).map_err(|wanted| format!("of \"{tool}\" {wanted}"))
                });
            }
            Self::OAuth => {
                let fields = value.as_object().ok_or("must be an object")?;
                return check_oauth(fields).map_err(|reason| format!("is wrong: {reason}"));
            }
            Self::Auth => {
                let provider = value.get("provider").and_then(Value::as_str);
                (
                    provider.is_some_and(|name| !name.is_empty()),
                    "must be an object with the name of a \"provider\"",
                )
            }
        };
        if is_right { Ok(()) } else { Err(wanted.to_owned()) }
    }
}

fn exposure(value: &Value) -> Result<(), String> {
    match value.as_str().and_then(Exposure::parse) {
        Some(_) => Ok(()),
        None => Err(format!("must be one of {}", Exposure::NAMES.map(|(name, _)| name).join(", "))),
    }
}

fn check_oauth(fields: &Map<String, Value>) -> Result<(), String> {
    check_fields(fields, OAUTH_FIELDS, "")?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let callback = text("callbackUrl").and_then(address);
    if let (Some(port), Some(url)) = (fields.get("callbackPort").and_then(Value::as_u64), &callback)
        && url.port.is_some_and(|other| u64::from(other) != port)
    {
        return Err("\"callbackUrl\" and \"callbackPort\" name two ports".to_owned());
    }
    if text("clientRegistration") == Some("cimd") {
        if fields.contains_key("clientId") || fields.contains_key("clientName") {
            return Err(
                "\"clientRegistration\" cimd goes with neither \"clientId\" nor \"clientName\"".to_owned()
            );
        }
        if callback.is_some_and(|url| url.host == "[::1]" || url.path != "/callback") {
            let text = "\"clientRegistration\" cimd needs a \"callbackUrl\" on localhost or 127.0.0.1 with the path /callback";
            return Err(text.to_owned());
        }
    }
    Ok(())
}

/// A provider's credential goes over https, or stays on this machine.
fn check_auth(fields: &Map<String, Value>) -> Result<(), String> {
    let url = fields.get("url").and_then(Value::as_str).and_then(address);
    match fields.contains_key("auth") && !url.is_some_and(|url| url.is_safe()) {
        true => Err("\"auth\" needs a https \"url\", or one of this machine".to_owned()),
        false => Ok(()),
    }
}

/// The JSON Schema of `mcp.json`.
pub fn schema() -> Value {
    let entry = json!({"type": "object", "properties": properties(FIELDS)});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mcp.json of pi",
        "type": "object",
        "properties": {
            "mcpServers": {
                "description": "Servers, by names of letters, digits, _ and -",
                "type": "object",
                "additionalProperties": entry,
            },
            "autoEnableCodemode": {
                "description": "Whether servers whose tools are called from scripts switch the tool codemode on (true)",
                "type": "boolean",
            },
        },
    })
}

fn properties(table: &[Field]) -> Value {
    let of = |field: &Field| {
        let mut schema = field.form.schema();
        let whose = match field.of {
            Of::Any => "",
            Of::Stdio => "Programs: ",
            Of::Http => "Servers over HTTP: ",
        };
        schema["description"] = format!("{whose}{}", field.help).into();
        (field.name.to_owned(), schema)
    };
    Value::Object(table.iter().map(of).collect())
}

impl Form {
    fn schema(self) -> Value {
        let exposures = || json!({"enum": Exposure::NAMES.map(|(name, _)| name)});
        match self {
            Self::Text | Self::Url | Self::SafeUrl | Self::Callback => json!({"type": "string"}),
            Self::Name => json!({"type": "string", "minLength": 1}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::TextMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Seconds => json!({"type": "number", "exclusiveMinimum": 0}),
            Self::Megabytes => json!({"type": "integer", "minimum": 1, "maximum": 1 << 24}),
            Self::Port => json!({"type": "integer", "minimum": 1, "maximum": 65535}),
            Self::OneOf(names) => json!({"enum": names}),
            Self::Exposure => exposures(),
            Self::ExposureMap => json!({"type": "object", "additionalProperties": exposures()}),
            Self::OAuth => json!({"type": "object", "properties": properties(OAUTH_FIELDS)}),
            Self::Auth => {
                json!({"type": "object", "properties": {"provider": {"type": "string", "minLength": 1}}, "required": ["provider"]})
            }
        }
    }
}
