//! Custom tools, whose input is text that follows a grammar.
//!
//! In the program a custom tool has one argument: requests convert the argument to the input, and decoders
//! convert the input to JSON arguments.

use super::schema;
use super::transform::Call;
use crate::llm::context::Context;
use crate::llm::event::StreamError;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// The argument name of a custom tool that was not declared.
pub const DEFAULT_PROPERTY: &str = "input";

/// The JSON text after the input.
pub const CLOSE: &str = "\"}";

/// The argument that becomes the input of each custom tool, by the tool's name.
pub fn properties(context: &Context, supported: bool) -> Result<HashMap<&str, &str>, StreamError> {
    let mut properties = HashMap::new();
    for tool in context.declared_tools() {
        if let Some(grammar) = schema::grammar(tool, supported)? {
            properties.insert(tool.name.as_str(), grammar.property);
        }
    }
    Ok(properties)
}

/// [`properties`] with owned strings, for a decoder, which outlives the context. Invalid grammars were
/// rejected when the request was built.
pub fn owned_properties(context: &Context, supported: bool) -> HashMap<String, String> {
    let properties = properties(context, supported).unwrap_or_default();
    let owned = |(name, property): (&str, &str)| (name.to_owned(), property.to_owned());
    properties.into_iter().map(owned).collect()
}

/// The input of a call to a custom tool. Arguments of another shape, from another model or from before the
/// tool had a grammar, are sent as JSON: an error would block the conversation for ever.
pub fn input<'a>(call: &Call<'a>, property: &str) -> Cow<'a, str> {
    match call.arguments.get(property) {
        Some(Value::String(input)) => Cow::Borrowed(input),
        _ => Cow::Owned(serde_json::to_string(call.arguments).unwrap_or_default()),
    }
}

/// The JSON text before the input.
pub fn open(property: &str) -> String {
    format!("{{{}:\"", Value::from(property))
}

/// Escapes a piece of the input for JSON.
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
