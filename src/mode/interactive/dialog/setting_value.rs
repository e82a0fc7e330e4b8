//! Values of settings as people read them: with their units, and defaults as values.

use crate::runtime::settings::form::timeout_ms;
use crate::runtime::settings::table::{Key as Row, Preset};
use crate::runtime::settings::{Settings, without_password};
use serde_json::Value;

/// The unit of a number.
#[derive(Clone, Copy)]
enum Unit {
    /// Milliseconds, and what 0 means.
    Time(&'static str),
    Seconds,
    Bytes,
    Dollars,
    /// Name of one, and of several.
    Of(&'static str, &'static str),
}

const TOKENS: Unit = Unit::Of("token", "tokens");
const CELLS: Unit = Unit::Of("cell", "cells");
const ANSWERS: Unit = Unit::Of("answer", "answers");

/// The units of all settings that are numbers.
const UNITS: &[(&str, Unit)] = &[
    ("bash.timeoutSeconds", Unit::Seconds),
    ("bash.outputCapBytes", Unit::Bytes),
    ("undo.maxBytes", Unit::Bytes),
    ("ask.timeoutSeconds", Unit::Seconds),
    ("mcp.directTokens", TOKENS),
    ("codemode.inlineBudget", TOKENS),
    ("limits.turns", ANSWERS),
    ("limits.cost", Unit::Dollars),
    ("limits.tokens", TOKENS),
    ("limits.seconds", Unit::Seconds),
    ("limits.sessionCost", Unit::Dollars),
    ("limits.sessionTokens", TOKENS),
    ("helpers.concurrency", Unit::Of("helper", "helpers")),
    ("helpers.copyBytes", Unit::Bytes),
    ("helpers.turns", ANSWERS),
    ("compaction.reserveTokens", TOKENS),
    ("compaction.keepRecentTokens", TOKENS),
    ("branchSummary.reserveTokens", TOKENS),
    ("fullscreenWheelScrollLines", Unit::Of("line", "lines")),
    ("editorPaddingX", CELLS),
    ("outputPad", CELLS),
    ("autocompleteMaxVisible", Unit::Of("row", "rows")),
    ("terminal.imageWidthCells", CELLS),
    ("httpIdleTimeoutMs", Unit::Time("none")),
    ("retry.maxRetries", Unit::Of("time", "times")),
    ("retry.baseDelayMs", Unit::Time("0 s")),
    ("retry.maxAgentDelayMs", Unit::Time("0 s")),
    ("retry.provider.timeoutMs", Unit::Time("none")),
    ("retry.provider.maxRetries", Unit::Of("time", "times")),
    ("retry.provider.maxRetryDelayMs", Unit::Time("any")),
];

/// The value in the user's settings, or the default. `theme` is the theme in use.
pub fn shown(settings: &Settings, row: &Row, theme: &str) -> String {
    if let Some(value) = settings.of_user(row.path) {
        let value = with_unit(row.path, value);
        // A pair: one for light terminals, one for dark ones.
        return if row.path == "theme" && value.contains('/') { format!("{value} ({theme})") } else { value };
    }
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    match (row.path, row.preset) {
        ("externalEditor", Preset::Told(words)) => {
            named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| words.to_owned())
        }
        ("retry.provider.timeoutMs", _) => match settings.request_timeout() {
            Some(time) => time_text(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            None => "none".to_owned(),
        },
        (_, Preset::Told("")) => "not set".to_owned(),
        (_, Preset::Told(words)) => words.replace('`', ""),
        (path, preset) => with_unit(path, &preset.value().unwrap_or_default()),
    }
}

/// A value with the unit of the setting `path`.
pub fn with_unit(path: &str, value: &Value) -> String {
    let unit = UNITS.iter().find(|(name, _)| *name == path).map(|(_, unit)| *unit);
    let count = value.as_u64();
    match (unit, count) {
        (Some(Unit::Time(zero)), _) if timeout_ms(value) == Some(0) => zero.to_owned(),
        (Some(Unit::Time(_)), _) => timeout_ms(value).map_or_else(|| plain(value), time_text),
        (Some(Unit::Seconds), _) if value.is_number() => format!("{value} s"),
        (Some(Unit::Dollars), _) if value.is_number() => format!("${value}"),
        (Some(Unit::Bytes), Some(count)) => bytes_text(count),
        (Some(Unit::Of(one, _)), Some(1)) => format!("1 {one}"),
        (Some(Unit::Of(_, many)), Some(count)) => format!("{} {many}", grouped(count)),
        _ => plain(value),
    }
}

fn plain(value: &Value) -> String {
    match without_password(value) {
        Value::String(text) if text.trim().is_empty() => format!("{text:?}"),
        Value::String(text) => text,
        value => value.to_string(),
    }
}

/// A time such as `5 min`, `2 s` or `1500 ms`.
fn time_text(ms: u64) -> String {
    match ms {
        _ if ms > 0 && ms.is_multiple_of(60_000) => format!("{} min", ms / 60_000),
        _ if ms.is_multiple_of(1000) => format!("{} s", ms / 1000),
        _ => format!("{ms} ms"),
    }
}

fn bytes_text(bytes: u64) -> String {
    let units = [(30, "GB"), (20, "MB"), (10, "KB")];
    let whole = units.into_iter().find(|(bits, _)| bytes > 0 && bytes.trailing_zeros() >= *bits);
    whole.map_or_else(
        || format!("{} bytes", grouped(bytes)),
        |(bits, name)| format!("{} {name}", bytes >> bits),
    )
}

/// A number with a comma after each three digits.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::runtime::settings::form::Form;
    use crate::runtime::settings::table;

    #[test]
    fn every_number_has_a_unit() {
        for row in table::keys() {
            let is_number = matches!(
                row.form,
                Form::Count
                    | Form::Range(..)
                    | Form::CountOr(..)
                    | Form::Amount
                    | Form::Seconds
                    | Form::Timeout
            );
            let has_unit = UNITS.iter().any(|(path, _)| *path == row.path);
            assert_eq!(is_number, has_unit, "{}", row.path);
        }
    }

    #[test]
    fn values_are_read_with_their_units() {
        for (path, value, expected) in [
            ("httpIdleTimeoutMs", json!(300_000), "5 min"),
            ("httpIdleTimeoutMs", json!("disabled"), "none"),
            ("httpIdleTimeoutMs", json!("1500"), "1500 ms"),
            ("retry.baseDelayMs", json!(0), "0 s"),
            ("retry.baseDelayMs", json!(2000), "2 s"),
            ("bash.timeoutSeconds", json!(1.5), "1.5 s"),
            ("bash.outputCapBytes", json!(1 << 30), "1 GB"),
            ("bash.outputCapBytes", json!(1500), "1,500 bytes"),
            ("limits.cost", json!(2.5), "$2.5"),
            ("limits.turns", json!(1), "1 answer"),
            ("limits.tokens", json!(1_234_567), "1,234,567 tokens"),
            ("fullscreenWheelScrollLines", json!("auto"), "auto"),
            ("theme", json!("dark"), "dark"),
            ("markdown.codeBlockIndent", json!("  "), "\"  \""),
            ("steeringMode", json!("all"), "all"),
        ] {
            assert_eq!(with_unit(path, &value), expected, "{path} {value}");
        }
    }

    #[test]
    fn defaults_are_values() {
        let settings = Settings::default();
        let default = |path| shown(&settings, table::find(path).unwrap(), "dark");
        assert_eq!(default("theme"), "system");
        assert_eq!(default("retry.provider.timeoutMs"), "5 min");
        assert_eq!(default("limits.turns"), "none");
        assert_eq!(default("httpProxy"), "not set");
        for row in table::keys() {
            let names = table::keys().map(|other| other.path);
            let value = shown(&settings, row, "dark");
            assert!(
                !names.into_iter().any(|name| name.len() > 8 && value.contains(name)),
                "{} {value}",
                row.path
            );
        }
    }
}
