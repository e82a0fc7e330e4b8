//! Migrates older forms of settings.

use crate::base::json::json;
use serde_json::{Map, Value};

/// Converts older names and forms of settings to the present ones.
pub fn migrate(values: &mut Map<String, Value>) {
    if !values.contains_key("steeringMode")
        && let Some(mode) = values.shift_remove("queueMode")
    {
        values.insert("steeringMode".into(), mode);
    }
    if let Some(Value::Object(skills)) = values.get_mut("skills") {
        let commands = skills.shift_remove("enableSkillCommands");
        let folders = skills.shift_remove("customDirectories");
        match folders.filter(|folders| folders.as_array().is_some_and(|list| !list.is_empty())) {
            Some(folders) => values.insert("skills".into(), folders),
            None => values.shift_remove("skills"),
        };
        if let Some(commands) = commands {
            values.entry("enableSkillCommands").or_insert(commands);
        }
    }
    if let Some(Value::Object(retry)) = values.get_mut("retry")
        && let Some(delay) = retry.shift_remove("maxDelayMs").filter(Value::is_number)
        && let Value::Object(provider) = retry.entry("provider").or_insert(json!({}))
    {
        let known = provider.entry("maxRetryDelayMs").or_insert(Value::Null);
        if known.is_null() {
            *known = delay;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_forms_are_understood() {
        let check = |old: Value, new: Value| {
            let Value::Object(mut values) = old else { panic!() };
            migrate(&mut values);
            assert_eq!(Value::Object(values), new);
        };
        check(json!({"queueMode":"all"}), json!({"steeringMode":"all"}));
        check(json!({"queueMode":"all","steeringMode":"x"}), json!({"queueMode":"all","steeringMode":"x"}));
        check(
            json!({"skills":{"enableSkillCommands":false,"customDirectories":["a"]}}),
            json!({"skills":["a"],"enableSkillCommands":false}),
        );
        check(json!({"skills":{"customDirectories":[]}}), json!({}));
        check(json!({"skills":["a"]}), json!({"skills":["a"]}));
        check(json!({"retry":{"maxDelayMs":5}}), json!({"retry":{"provider":{"maxRetryDelayMs":5}}}));
        check(
            json!({"retry":{"maxDelayMs":5,"provider":{"maxRetryDelayMs":6}}}),
            json!({"retry":{"provider":{"maxRetryDelayMs":6}}}),
        );
    }
}
