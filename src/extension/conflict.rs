//! Names that several extensions register. The first in load order has a tool, a flag or an MCP server, the last a
//! shortcut; commands are told apart by numbers (`runtime::addition`).

use super::Instance;
use super::registration::Registration;
use std::collections::HashMap;
use std::sync::Arc;

/// Extensions that do not have what they register alone, and what is said of that. `instances` are in load order.
pub fn conflicts(instances: &[Arc<Instance>]) -> Vec<(Arc<Instance>, String)> {
    let mut holders = HashMap::new();
    let mut found = Vec::new();
    for instance in instances {
        for (kind, name) in names(&instance.registration()) {
            let holder: &mut &Arc<Instance> = holders.entry((kind, name.clone())).or_insert(instance);
            if Arc::ptr_eq(holder, instance) {
                continue;
            }
            let path = holder.found.path.display();
            found.push(match kind {
                SHORTCUT => {
                    let text = format!("{kind} \"{name}\" takes the place of that of {path}");
                    *holder = instance;
                    (instance.clone(), text)
                }
                _ => (instance.clone(), format!("{kind} \"{name}\" conflicts with {path}")),
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
