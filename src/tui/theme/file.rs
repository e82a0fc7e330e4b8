//! Reads theme files.

use super::{PAIR, Role, SYSTEM, Theme, oklab};
use crate::base::order::Order;
use crate::tui::style::Color;
use serde_json::{Map, Value};

/// Keys of a theme file.
const KEYS: [&str; 6] = ["$schema", "name", "appearance", "vars", "colors", "export"];

/// Maximum length of a chain of variables; a longer one is a cycle.
const CHAIN_MAX: usize = 64;

pub fn parse(label: &str, text: &str) -> Result<Theme, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json: Value =
        serde_json::from_str(text).map_err(|error| format!("Failed to parse theme {label}: {error}"))?;
    let mut faults = Faults::default();
    let nothing = Map::new();
    let name = match json.get("name") {
        Some(Value::String(name)) => name.as_str(),
        Some(_) => faults.other("/name", "must be string"),
        None => faults.other("/", "must have required properties name"),
    };
    for key in json.as_object().into_iter().flat_map(Map::keys).filter(|key| !KEYS.contains(&&***key)) {
        faults.other("/", &format!("must not have additional properties {key}"));
    }
    if json.get("appearance").is_some_and(|word| word != "dark" && word != "light") {
        faults.other("/appearance", "must be \"dark\" or \"light\"");
    }
    let vars = match json.get("vars") {
        None => &nothing,
        Some(Value::Object(vars)) => vars,
        Some(_) => {
            faults.other("/vars", "must be object");
            &nothing
        }
    };
    let colors = match json.get("colors") {
        Some(Value::Object(colors)) => colors,
        Some(_) => {
            faults.other("/colors", "must be object");
            &nothing
        }
        None => {
            faults.other("/", "must have required properties colors");
            &nothing
        }
    };
    for key in colors.keys().filter(|key| !Role::ALL.iter().any(|role| role.name() == **key)) {
        faults.other("/colors", &format!("must not have additional properties {key}"));
    }
    check_export(json.get("export"), vars, &mut faults);
    let found = Role::ALL.map(|role| match (colors.get(role.name()), role.fallback()) {
        (Some(value), _) => Some((value, role)),
        (None, Some(fallback)) => Some((colors.get(fallback.name())?, fallback)),
        (None, None) => {
            if json.get("colors").is_some_and(Value::is_object) {
                faults.missing.push(role.name());
            }
            None
        }
    });
    let resolved = found.map(|found| {
        let (value, role) = found?;
        match resolve(value, vars) {
            Ok(color) => Some(color),
            Err(reason) => {
                faults.other(&format!("/colors/{}", role.name()), &reason);
                None
            }
        }
    });
    for (var, value) in vars {
        if let Err(reason) = resolve(value, vars) {
            faults.other(&format!("/vars/{var}"), &reason);
        }
    }
    faults.report(label)?;
    if name.contains(PAIR) {
        return Err(format!(
            "Invalid theme name \"{name}\": theme names cannot contain \"/\" because it is reserved for \
             automatic light/dark theme settings."
        ));
    }
    if name == SYSTEM {
        return Err(format!("Invalid theme name \"{name}\": it stands for a theme that fits the terminal."));
    }
    Ok(Theme { name: name.to_owned(), colors: resolved.map(Option::unwrap_or_default) })
}

/// Colours of exported pages that a theme may name.
pub const EXPORT_COLORS: [&str; 3] = ["pageBg", "cardBg", "infoBg"];

/// Adds what is wrong with the colours of exported pages. Nothing here uses them.
fn check_export(export: Option<&Value>, vars: &Map<String, Value>, faults: &mut Faults) {
    let Some(export) = export else { return };
    let Some(export) = export.as_object() else {
        faults.other("/export", "must be object");
        return;
    };
    for (key, value) in export {
        match (EXPORT_COLORS.contains(&&**key), resolve(value, vars)) {
            (false, _) => faults.other("/export", &format!("must not have additional properties {key}")),
            (true, Err(reason)) => faults.other(&format!("/export/{key}"), &reason),
            (true, Ok(_)) => "",
        };
    }
}

/// The errors in a file.
#[derive(Default)]
struct Faults {
    missing: Vec<&'static str>,
    others: Vec<String>,
}

impl Faults {
    /// Records an error, once; returns a replacement value.
    fn other(&mut self, place: &str, reason: &str) -> &'static str {
        let fault = format!("  - {place}: {reason}");
        if !self.others.contains(&fault) {
            self.others.push(fault);
        }
        ""
    }

    fn report(mut self, label: &str) -> Result<(), String> {
        if self.missing.is_empty() && self.others.is_empty() {
            return Ok(());
        }
        let mut report = format!("Invalid theme \"{label}\":\n");
        if !self.missing.is_empty() {
            self.missing.order();
            report += "\nMissing required color tokens:\n  - ";
            report += &self.missing.join("\n  - ");
            report += "\n\nPlease add these colors to your theme's \"colors\" object.";
            report += "\nSee the built-in themes (dark.json, light.json) for reference values.";
        }
        if !self.others.is_empty() {
            report += "\n\nOther errors:\n";
            report += &self.others.join("\n");
        }
        Err(report)
    }
}

/// Resolves a value to a colour: a palette number, `#rrggbb`, `#rgb`, a function, empty, or the name of a variable.
fn resolve(value: &Value, vars: &Map<String, Value>) -> Result<Color, String> {
    let mut value = value;
    for _ in 0..CHAIN_MAX {
        let text = match value {
            Value::Number(number) => {
                let index = number.as_u64().and_then(|number| u8::try_from(number).ok());
                return index
                    .map(Color::Indexed)
                    .ok_or_else(|| format!("{number} is no colour: must be 0 to 255"));
            }
            Value::String(text) => text,
            _ => return Err("must be a colour: \"#rrggbb\", 0 to 255, a variable or \"\"".into()),
        };
        if text.is_empty() {
            return Ok(Color::Default);
        }
        if let Some(digits) = text.strip_prefix('#') {
            return hex(digits).ok_or_else(|| format!("Invalid hex color: {text}"));
        }
        if let Some(color) = oklab::parse(text) {
            return color;
        }
        value = vars.get(text).ok_or_else(|| format!("Variable reference not found: {text}"))?;
    }
    Err(format!("Circular variable reference detected: {}", value.as_str().unwrap_or_default()))
}

fn hex(digits: &str) -> Option<Color> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    match digits.len() {
        6 => Some(Color::Rgb(red, green, blue)),
        3 => Some(Color::Rgb((green & 15) * 17, (blue >> 4) * 17, (blue & 15) * 17)),
        _ => None,
    }
}
