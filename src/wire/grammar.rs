//! Custom tools, whose input is text that follows a grammar.
//!
//! Everyone but the provider knows them as tools with one argument: on the way out the argument becomes
//! the input, on the way back the input becomes the JSON of the arguments.

use super::schema;
use super::transform::Call;
use crate::llm::context::Context;
use crate::llm::event::StreamError;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// The argument of a custom tool that was never declared.
pub const DEFAULT_PROPERTY: &str = "input";

/// What follows the input in the JSON of the arguments.
pub const CLOSE: &str = "\"}";

/// The argument that the input of each custom tool stands for, by the tool's name.
pub fn properties(context: &Context, supported: bool) -> Result<HashMap<&str, &str>, StreamError> {
    let mut properties = HashMap::new();
    for tool in context.declared_tools() {
        if let Some(grammar) = schema::grammar(tool, supported)? {
            properties.insert(tool.name.as_str(), grammar.property);
        }
    }
    Ok(properties)
}

/// [`properties`] for a decoder, which outlives the context. What cannot be read was refused when the request
/// was made.
pub fn owned_properties(context: &Context, supported: bool) -> HashMap<String, String> {
    let properties = properties(context, supported).unwrap_or_default();
    let owned = |(name, property): (&str, &str)| (name.to_owned(), property.to_owned());
    properties.into_iter().map(owned).collect()
}

/// The input of a call to a custom tool. Arguments of another shape, from a time before the grammar or from
/// another model, are sent as their JSON: an error here would end the conversation for good.
pub fn input<'a>(call: &Call<'a>, property: &str) -> Cow<'a, str> {
    match call.arguments.get(property) {
        Some(Value::String(input)) => Cow::Borrowed(input),
        _ => Cow::Owned(serde_json::to_string(call.arguments).unwrap_or_default()),
    }
}

/// What stands before the input in the JSON of the arguments.
pub fn open(property: &str) -> String {
    format!("{{{}:\"", Value::from(property))
}

/// A piece of the input as it stands in the JSON of the arguments.
pub fn escape(piece: &str) -> String {
    let quoted = serde_json::to_string(piece).unwrap_or_default();
    let inner = quoted.strip_prefix('"').and_then(|q| q.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_input_become_the_json_of_the_arguments() {
        let pieces = ["a\"b", "\n", "", "é\\"];
        let escaped: String = pieces.iter().map(|piece| escape(piece)).collect();
        let json = open("the \"patch\"") + &escaped + CLOSE;
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["the \"patch\""], pieces.concat());
    }
}
