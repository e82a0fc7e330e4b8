//! Reads, checks and changes one settings file.

use super::form::Form;
use super::migrate::migrate;
use super::table;
use crate::base::file;
use crate::resources::{Diagnostic, text};
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The bytes of a settings file, `None` if there is no file, or why it cannot be read.
pub type Content = Result<Option<Vec<u8>>, String>;

/// The settings of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    pub path: PathBuf,
    /// The valid values, and values of unknown keys.
    pub values: Map<String, Value>,
    /// True if the file cannot be read. Such a file is never overwritten.
    pub is_broken: bool,
}

impl Layer {
    /// Reads the user's file.
    pub fn read(path: PathBuf) -> (Self, Vec<Diagnostic>) {
        let found = match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("could not be read: {error}")),
        };
        Self::of(path, &found, false)
    }

    /// Parses the content of a file. A missing or empty file sets nothing. With `is_project`, keys that only
    /// the user may set are ignored.
    pub fn of(path: PathBuf, found: &Content, is_project: bool) -> (Self, Vec<Diagnostic>) {
        let found = match found {
            Ok(bytes) => parse(&text(bytes.as_deref().unwrap_or_default())),
            Err(message) => Err(message.clone()),
        };
        let (mut values, is_broken, mut said) = match found {
            Ok(values) => (values, false, Vec::new()),
            Err(message) => {
                let rest = if is_project { "it is ignored" } else { "the defaults are used" };
                (Map::new(), true, vec![format!("{message}; {rest}")])
            }
        };
        migrate(&mut values);
        said.extend(drop_wrong(&mut values, is_project));
        let diagnostics = said.into_iter().map(|message| Diagnostic { path: path.clone(), message });
        let diagnostics = diagnostics.collect();
        (Self { path, values, is_broken }, diagnostics)
    }

    /// Returns the value at `path`, which is one name or several separated by dots.
    pub fn get(&self, path: &str) -> Option<&Value> {
        look_up(&self.values, path)
    }
}

/// Returns the value at `path`, unless it is `null`.
pub fn look_up<'a>(values: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = values.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// Merges `over` into `base`: objects are merged, other values replaced.
pub fn merge(base: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (base.get_mut(name), value) {
            (Some(Value::Object(base)), Value::Object(over)) => merge(base, over),
            (Some(known), _) => *known = value.clone(),
            (None, _) => drop(base.insert(name.clone(), value.clone())),
        }
    }
}

/// Changes a settings file. Each of `changes` sets the value at a path, or removes it.
pub fn write(path: &Path, changes: &[(&str, Option<Value>)]) -> Result<(), String> {
    update(path, |values| {
        changes.iter().for_each(|(name, value)| set(values, name, value.clone()));
        Ok(())
    })
}

/// Changes the values of a settings file. All other content is kept, including changes that other programs made in the
/// meantime.
pub fn update(
    path: &Path,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<(), String>,
) -> Result<(), String> {
    file::update(path, |old| {
        let old = old.map(|bytes| text(&bytes)).unwrap_or_default();
        let mut values = parse(&old)
            .map_err(|message| format!("{}: {message}; the file was left as it is", path.display()))?;
        migrate(&mut values);
        change(&mut values)?;
        let mut new = serde_json::to_string_pretty(&values).map_err(|error| error.to_string())?;
        if old.ends_with('\n') {
            new.push('\n');
        }
        Ok(Some(new))
    })
}

fn set(values: &mut Map<String, Value>, path: &str, value: Option<Value>) {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    match (rest, value) {
        (None, Some(value)) => drop(values.insert(first.to_owned(), value)),
        (None, None) => drop(values.shift_remove(first)),
        (Some(rest), value) => {
            if let Some(Value::Object(inner)) = values.get_mut(first) {
                set(inner, rest, value);
            } else if value.is_some() {
                let mut inner = Map::new();
                set(&mut inner, rest, value);
                values.insert(first.to_owned(), inner.into());
            }
        }
    }
}

/// Parses a settings file. An error names line and column.
pub fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if text.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err("is not a JSON object".into()),
        Err(error) => {
            let said = error.to_string();
            let what = said.split(" at line ").next().unwrap_or_default();
            let (line, column) = (error.line(), error.column());
            Err(format!("line {line}, column {column}: {what}"))
        }
    }
}

/// Removes invalid values. Returns a message for each.
fn drop_wrong(values: &mut Map<String, Value>, is_project: bool) -> Vec<String> {
    let mut said = Vec::new();
    for key in table::keys() {
        let (names, last) = match key.path.rsplit_once('.') {
            Some((names, last)) => (Some(names), last),
            None => (None, key.path),
        };
        let mut folder = Some(&mut *values);
        for name in names.into_iter().flat_map(|names| names.split('.')) {
            let Some(within) = folder else { break };
            if within.get(name).is_some_and(|value| !value.is_object() && !value.is_null()) {
                within.shift_remove(name);
                said.push(format!("{name} must be an object; it is ignored"));
            }
            folder = within.get_mut(name).and_then(Value::as_object_mut);
        }
        let Some(folder) = folder else { continue };
        let Some(value) = folder.get(last).filter(|value| !value.is_null()) else {
            continue;
        };
        if is_project && key.is_global {
            said.push(format!("{} can only be set in the agent folder; it is ignored", key.path));
        } else if !key.form.fits(value) {
            let form: Form = key.form;
            said.push(format!("{} must be {}; it is ignored", key.path, form.describe()));
        } else {
            continue;
        }
        folder.shift_remove(last);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::base::testing::TempDir;

    #[track_caller]
    fn check_write(old: &str, changes: &[(&str, Option<Value>)], expected: &str) {
        let scratch = TempDir::create();
        let path = scratch.write("settings.json", old);
        write(&path, changes).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        parse(expected).unwrap();
    }

    #[test]
    fn a_write_changes_only_what_it_is_about() {
        check_write("", &[("theme", Some(json!("dark")))], "{\n  \"theme\": \"dark\"\n}");
        check_write(
            "{\"z\":1,\"theme\":\"a\",\"b\":[1]}\n",
            &[("theme", Some(json!("dark")))],
            "{\n  \"z\": 1,\n  \"theme\": \"dark\",\n  \"b\": [\n    1\n  ]\n}\n",
        );
        check_write(
            "{\"retry\":{\"x\":1,\"enabled\":true},\"a\":0}",
            &[("retry.enabled", Some(json!(false))), ("retry.provider.maxRetries", Some(json!(2)))],
            "{\n  \"retry\": {\n    \"x\": 1,\n    \"enabled\": false,\n    \"provider\": {\n      \"maxRetries\": 2\n    }\n  },\n  \"a\": 0\n}",
        );
        check_write(
            "{\"a\":1,\"theme\":\"x\",\"c\":2}",
            &[("theme", None), ("retry.enabled", None)],
            "{\n  \"a\": 1,\n  \"c\": 2\n}",
        );
        // Older forms are brought up to date on the way.
        check_write(
            "{\"queueMode\":\"all\"}",
            &[("quietStartup", Some(json!(true)))],
            "{\n  \"steeringMode\": \"all\",\n  \"quietStartup\": true\n}",
        );
    }

    #[test]
    fn a_damaged_file_is_never_written() {
        let scratch = TempDir::create();
        for text in ["{\"a\":1,}", "[]", "{"] {
            let path = scratch.write("settings.json", text);
            let error = write(&path, &[("theme", Some(json!("x")))]).unwrap_err();
            assert!(error.contains("left as it is"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn objects_merge_and_the_rest_is_replaced() {
        let rows = [
            (json!({"a":1}), json!({"a":2,"b":3}), json!({"a":2,"b":3})),
            (json!({"o":{"x":1,"y":2}}), json!({"o":{"y":3}}), json!({"o":{"x":1,"y":3}})),
            (json!({"l":[1,2]}), json!({"l":[3]}), json!({"l":[3]})),
            (json!({"o":{"x":1}}), json!({"o":[]}), json!({"o":[]})),
            (json!({"o":1}), json!({"o":{"x":1}}), json!({"o":{"x":1}})),
        ];
        for (base, over, expected) in rows {
            let mut merged = base.as_object().unwrap().clone();
            merge(&mut merged, over.as_object().unwrap());
            assert_eq!(Value::Object(merged), expected);
        }
    }
}
