//! `@server:uri` in a prompt: the resource is put below the text.

use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::Block;
use serde_json::Value;

use super::result::{TEXT_MAX, middle_cut};
use super::server::Server;
use std::sync::Arc;

/// Resources of one prompt.
const MENTIONS_MAX: usize = 20;

/// What the mentions of a text bring.
#[derive(Default)]
pub struct Brought {
    pub text: String,
    pub images: Vec<Value>,
    pub errors: Vec<String>,
}

/// The mentions in a text: server and address, each once.
fn mentions<'t>(text: &'t str, servers: &[String]) -> Vec<(&'t str, &'t str)> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let Some((server, uri)) = word.strip_prefix('@').and_then(|word| word.split_once(':')) else {
            continue;
        };
        let uri = uri.trim_end_matches(['.', ',', ';', ')', '!', '?']);
        let is_known = servers.iter().any(|known| known == server) && !uri.is_empty();
        if is_known && !found.contains(&(server, uri)) && found.len() < MENTIONS_MAX {
            found.push((server, uri));
        }
    }
    found
}

/// Reads what the mentions of `text` name.
pub fn read(text: &str, servers: &[Arc<Server>], cancel: &CancelToken) -> Brought {
    let names: Vec<String> = servers.iter().map(|server| server.name()).collect();
    let mut brought = Brought::default();
    for (name, uri) in mentions(text, &names) {
        let Some(server) = servers.iter().find(|server| server.name() == name) else { continue };
        let contents = match server.run(true, cancel, |client| client.read(uri, cancel)) {
            Ok(contents) => contents,
            Err(error) => {
                brought.errors.push(format!("@{name}:{uri} was not read: {error}"));
                continue;
            }
        };
        for content in contents {
            let field = |field: &str| content.get(field).and_then(Value::as_str);
            match (field("text"), field("blob"), field("mimeType").unwrap_or_default()) {
                (Some(text), ..) => {
                    let text = middle_cut(text, TEXT_MAX).unwrap_or_else(|| text.to_owned());
                    brought.text.push_str(&format!(
                        "\n\n<resource server=\"{name}\" uri=\"{uri}\">\n{}\n</resource>",
                        text.trim_end()
                    ));
                }
                (None, Some(data), kind) if kind.starts_with("image/") => {
                    brought.images.push(json!(Block::image(data, kind)));
                }
                _ => brought.errors.push(format!("@{name}:{uri} is neither text nor an image")),
            }
        }
    }
    brought
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_name_a_server_and_an_address() {
        let servers = ["docs".to_owned(), "my-db".to_owned()];
        for (text, expected) in [
            ("see @docs:file:///a, and @my-db:x.", vec![("docs", "file:///a"), ("my-db", "x")]),
            ("@docs:a @docs:a", vec![("docs", "a")]),
            ("mail a@docs:b, @other:c, @docs, @docs:", vec![]),
        ] {
            assert_eq!(mentions(text, &servers), expected, "{text}");
        }
    }
}
