//! Names that several extensions register. The first in load order has a tool, a flag or an MCP server, the last a
//! shortcut; commands are told apart by numbers (`runtime::addition`).

use super::registration::Registration;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// What is said of names that an extension does not have alone, with its place in `extensions`, which are the paths of
/// all extensions and what they register, in load order.
pub fn conflicts(extensions: &[(&Path, Arc<Registration>)]) -> Vec<(usize, String)> {
    let mut holders = HashMap::new();
    let mut found = Vec::new();
    for (at, (path, registration)) in extensions.iter().enumerate() {
        for (kind, name) in names(registration) {
            let (first, holder) = holders.entry((kind, name.clone())).or_insert((at, path.display()));
            if *first == at {
                continue;
            }
            found.push(match kind {
                SHORTCUT => {
                    let text = format!("{kind} \"{name}\" takes the place of that of {holder}");
                    (*first, *holder) = (at, path.display());
                    (at, text)
                }
                _ => (at, format!("{kind} \"{name}\" conflicts with {holder}")),
            });
        }
    }
    found
}

const SHORTCUT: &str = "Shortcut";

fn names(registration: &Registration) -> Vec<(&'static str, String)> {
    let Registration { tools, flags, servers, shortcuts, .. } = registration;
    let tools = tools.iter().map(|tool| ("Tool", tool.info.spec.name.clone()));
    let flags = flags.iter().map(|flag| ("Flag", format!("--{}", flag.name)));
    let servers = servers.iter().map(|server| ("MCP server", server.name.clone()));
    let shortcuts = shortcuts.iter().map(|shortcut| (SHORTCUT, shortcut.key.to_lowercase()));
    tools.chain(flags).chain(servers).chain(shortcuts).collect()
}
