//! Names that several extensions register. The first in load order has a tool, a flag or an MCP server, the last a
//! shortcut; commands are told apart by numbers (`runtime::addition`).

use super::registration::Registration;
use std::collections::HashMap;
use std::path::Path;

/// Extensions that do not have what they register alone, by their positions, and what is said of that. `registered` are
/// the paths of all in load order, with what each registers.
pub fn conflicts<'a>(registered: impl Iterator<Item = (&'a Path, &'a Registration)>) -> Vec<(usize, String)> {
    let mut holders = HashMap::new();
    let mut found = Vec::new();
    for (at, (path, registration)) in registered.enumerate() {
        for (kind, name) in names(registration) {
            let holder: &mut (usize, &Path) = holders.entry((kind, name.clone())).or_insert((at, path));
            let (known, other) = (holder.0, holder.1.display());
            if known == at {
                continue;
            }
            found.push((
                at,
                match kind {
                    SHORTCUT => format!("{kind} \"{name}\" takes the place of that of {other}"),
                    _ => format!("{kind} \"{name}\" conflicts with {other}"),
                },
            ));
            if kind == SHORTCUT {
                *holder = (at, path);
            }
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
