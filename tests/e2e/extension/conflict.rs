//! Extensions that register the same names.

use super::{greeting, hello, install, registers, results, script};
use crate::agent::write_program;
use crate::world;
use serde_json::json;

#[test]
fn a_tool_belongs_to_the_first_in_load_order_whoever_comes_first() {
    for slow in ["first", "second"] {
        let (world, server) = world(greeting());
        for name in ["first", "second"] {
            let mut fields = hello();
            fields["flags"] = json!([{"name": "loud", "type": "boolean"}]);
            fields["shortcuts"] = json!([{"key": "ctrl+shift+p"}]);
            let arms =
                registers(&fields) + &format!("    *'\"method\":\"tool.call\"'*) ok '\"{name}\"' ;;\n");
            let wait = if name == slow { "sleep 0.3\n" } else { "" };
            let program = script(&arms).replacen("#!/bin/sh\n", &format!("#!/bin/sh\n{wait}"), 1);
            write_program(&world.home().join(name), &program);
        }
        let (first, second) = (world.home().join("first"), world.home().join("second"));
        let named = format!("-e {} -e {}", first.display(), second.display());
        let done = world.pi().words(&named).words("--model mock/m1 -p hi").run().success();
        assert_eq!(results(server.requests()[1].messages()), ["first"], "{slow} is slow");
        let (first, second) = (first.display(), second.display());
        let told = format!("Extension error ({second}): register: Tool \"hello\" conflicts with {first}");
        assert_eq!(done.stderr.matches(&told).count(), 1, "{slow} is slow: {}", done.stderr);
    }
}

#[test]
fn conflicts_are_listed() {
    let (world, _server) = world([]);
    let mut fields = hello();
    fields["flags"] = json!([{"name": "loud", "type": "boolean"}]);
    fields["shortcuts"] = json!([{"key": "ctrl+shift+p"}]);
    install(&world, "a", &fields, "");
    install(&world, "b", &fields, "");
    let listed = world.pi().words("extensions").run().success().stdout;
    let first = world.agent_dir().join("extensions/a");
    for conflict in [
        format!("  Tool \"hello\" conflicts with {}\n", first.display()),
        format!("  Flag \"--loud\" conflicts with {}\n", first.display()),
        format!("  Shortcut \"ctrl+shift+p\" takes the place of that of {}\n", first.display()),
    ] {
        assert_eq!(listed.matches(&conflict).count(), 1, "{listed}");
        assert!(listed.find(&conflict) > listed.find("extensions/b\n"), "{listed}");
    }
}
