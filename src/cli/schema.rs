//! `pi docs schema NAME`: JSON Schemas of the files that users write, and of RPC mode.

use crate::base::feature;
use crate::mode::exit::FAILED;
use crate::mode::{interactive, report, rpc};
use crate::models;
use crate::resources::settings;
use serde_json::Value;
use std::ffi::OsString;

/// A name, what it describes, and the schema; `None` in a build without the part that has it.
type Row = (&'static str, &'static str, fn() -> Option<Value>);

const SCHEMAS: &[Row] = &[
    ("settings", "settings.json", || Some(settings::schema())),
    ("models", "models.json", || Some(models::json_schema())),
    ("keybindings", "keybindings.json", interactive::keybindings_schema),
    ("theme", "a theme file", interactive::theme_schema),
    ("mcp", "mcp.json", super::mcp::schema),
    ("rpc", "the lines of RPC mode", || Some(rpc::schema())),
    ("extension", "the messages of extensions", || Some(super::extension_schema::schema())),
];

/// Prints the schema with the name in `words`. Gives the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let [name] = words else {
        report::error(format_args!("pi docs schema takes one name.\n\n{}", contents()));
        return super::say::BAD_USAGE;
    };
    let Some((_, _, schema)) = SCHEMAS.iter().find(|(known, ..)| name == known) else {
        report::error(format_args!(
            "There is no schema of \"{}\".\n\n{}",
            name.to_string_lossy(),
            contents()
        ));
        return super::say::BAD_USAGE;
    };
    match schema() {
        Some(schema) => super::say::say(&format!("{schema:#}\n")),
        None => {
            let absent = feature::absent(if name == "mcp" { "mcp" } else { "interactive" });
            report::error(format_args!("There is no schema of \"{}\": {absent}", name.to_string_lossy()));
            FAILED
        }
    }
}

fn contents() -> String {
    let lines: Vec<String> = SCHEMAS.iter().map(|(name, about, _)| format!("- {name}: {about}\n")).collect();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::schema::{faults, unsupported};
    use crate::base::json::json;
    use crate::resources::settings::table;

    fn schema(name: &str) -> Option<Value> {
        SCHEMAS.iter().find(|(known, ..)| *known == name).unwrap().2()
    }

    /// Checks what is wrong with `document`: places and rules, with `, ` between.
    #[track_caller]
    fn check(name: &str, document: &Value, expected: &str) {
        let Some(schema) = schema(name) else { return };
        assert_eq!(faults(document, &schema).join(", "), expected, "{name}: {document}");
    }

    #[test]
    fn schemas_use_what_is_checked() {
        for (name, ..) in SCHEMAS {
            let Some(schema) = schema(name) else { continue };
            assert_eq!(unsupported(&schema), Vec::<String>::new(), "{name}");
        }
    }

    /// What the reference's manual shows, and what its program writes.
    #[test]
    fn files_as_the_reference_knows_them() {
        let rows = [
            ("settings", json!({"$schema": "https://pi.dev/schemas/settings.schema.json"})),
            ("settings", json!({"defaultTools": ["+codemode", "-write"], "codemode": {"mode": "only"}})),
            ("settings", json!({"quietStartup": "header", "theme": "system", "tuiMode": "fullscreen"})),
            ("settings", json!({"quietStartup": true, "theme": "day/night", "outputPad": 0})),
            ("settings", json!({"httpIdleTimeoutMs": "disabled", "websocketConnectTimeoutMs": "disabled"})),
            (
                "settings",
                json!({"httpIdleTimeoutMs": 0, "cacheWarming": "idle", "lastChangelogVersion": "1"}),
            ),
            (
                "settings",
                json!({"packages": ["npm:x", {"source": "git:y", "skills": []}], "extensions": ["-builtin:mcp"]}),
            ),
            ("settings", json!({"modelThinkingLevels": {"a/b": "max"}, "thinkingBudgets": {"low": 2048}})),
            (
                "settings",
                json!({"compaction": {"enabled": true, "modelOverrides": {"a/b": {"reserveTokens": 9}}}}),
            ),
            (
                "settings",
                json!({"terminal": {"images": "kitty", "trueColor": false}, "retry": {"provider": {}}}),
            ),
            ("models", json!({"$schema": "https://pi.dev/schemas/models.schema.json", "providers": {}})),
            (
                "models",
                json!({"providers": {"local": {"baseUrl": "http://localhost:1/v1", "api": "openai-completions",
                    "apiKey": "$KEY", "headers": {"x": "!cmd"}, "compat": {"promptCacheKeyMode": "auto", "supportsStore": null, "thinkingFormat": "qwen"},
                    "models": [{"id": "m", "reasoning": true, "input": ["text", "image"], "contextWindow": 8192,
                        "thinkingLevelMap": {"off": null, "high": "high"},
                        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "tiers": []},
                        "samplingParamsByThinkingLevel": {"max": {"top_p": 1}}}],
                    "modelOverrides": {"n": {"cost": {"input": 1}, "promptCache": {"short": 300}}}}}}),
            ),
            (
                "keybindings",
                json!({"$schema": "https://pi.dev/schemas/keybindings.schema.json", "app.exit": "ctrl+q",
                    "tui.editor.cursorUp": ["up", "ctrl+p"], "tui.select.pageUp": "shift+pageUp",
                    "app.clear": [], "tui.input.newLine": "shift+enter", "app.suspend": "ctrl++"}),
            ),
        ];
        for (name, document) in rows {
            check(name, &document, "");
        }
    }

    #[test]
    fn mistakes_are_found() {
        check("settings", &json!([]), "root: expected object, got array");
        check("settings", &json!({"outputPad": 2}), "outputPad: expected <= 1");
        check("settings", &json!({"retry": {"maxRetries": -1}}), "retry.maxRetries: expected >= 0");
        check("settings", &json!({"defaultTools": "read"}), "defaultTools: expected array, got string");
        check("models", &json!({}), "providers: missing");
        check(
            "models",
            &json!({"providers": {"p": {"models": [{"name": "x"}]}}}),
            "providers.p.models.0.id: missing",
        );
        let wrong = |document: &Value| {
            schema("keybindings").is_none_or(|schema| !faults(document, &schema).is_empty())
        };
        assert!(wrong(&json!({"app.exit": 5})) && wrong(&json!({"app.exit": "hyper+x"})));
    }

    #[test]
    fn a_theme_has_all_colors_and_no_others() {
        let Some(schema) = schema("theme") else { return };
        let names = schema["properties"]["colors"]["required"].as_array().unwrap();
        assert_eq!(names.len(), 51);
        assert_eq!(schema["properties"]["colors"]["properties"].as_object().unwrap().len(), 56);
        let colors = |more: &[(&str, Value)]| {
            let mut colors: serde_json::Map<String, Value> =
                names.iter().map(|name| (name.as_str().unwrap().to_owned(), json!("one"))).collect();
            colors.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            Value::Object(colors)
        };
        let theme = |colors: Value| {
            json!({"$schema": "x", "name": "mine", "appearance": "light",
            "vars": {"one": "okhsl(200 50% 60%)", "two": 7}, "colors": colors, "export": {"pageBg": "#fff"}})
        };
        check("theme", &theme(colors(&[("thinkingMax", json!(""))])), "");
        check("theme", &theme(colors(&[("nonsense", json!(1))])), "colors.nonsense: unknown field");
        check("theme", &json!({"name": "x"}), "colors: missing");
        check("theme", &json!({"name": "a/b", "colors": colors(&[])}), "name: expected to match ^[^/]*$");
    }

    #[test]
    fn what_pi_config_writes_fits() {
        let words =
            ["true", "header", "3", "0", "1.5", "disabled", "5000", "auto", "[\"a\"]", "{}", "all", "off"];
        for key in table::keys() {
            let values = words.iter().filter_map(|word| key.form.read(word));
            for value in values.chain(key.preset.value()) {
                let names = key.path.rsplit('.');
                let document = names.fold(value, |inner, name| json!({ name: inner }));
                check("settings", &document, "");
            }
        }
    }
}
