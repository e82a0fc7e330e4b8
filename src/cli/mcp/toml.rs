//! Reads the part of TOML that configurations of servers are written in: tables, strings, numbers, flags, lists.
//!
//! Dates, tables in lists and strings of several lines are errors.

use serde_json::{Map, Value};

/// Reads a file into an object. The error names the line.
pub fn read(text: &str) -> Result<Map<String, Value>, String> {
    let mut reader = Reader { rest: text };
    let (mut root, mut table) = (Map::new(), Vec::new());
    loop {
        reader.skip(true);
        if reader.rest.is_empty() {
            return Ok(root);
        }
        let entry = reader.entry(&mut table).and_then(|entry| {
            let place = place(&mut root, &table)?;
            match entry {
                Some((keys, value)) => insert(place, &keys, value),
                None => Ok(()),
            }
        });
        entry.map_err(|why| {
            let line =
                text.get(..text.len() - reader.rest.len()).unwrap_or_default().matches('\n').count() + 1;
            format!("line {line}: {why}")
        })?;
    }
}

/// The table at `path`, made if it is missing.
fn place<'m>(
    root: &'m mut Map<String, Value>,
    path: &[String],
) -> Result<&'m mut Map<String, Value>, String> {
    path.iter().try_fold(root, |table, key| {
        let value = table.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
        value.as_object_mut().ok_or_else(|| format!("\"{key}\" is no table"))
    })
}

fn insert(table: &mut Map<String, Value>, keys: &[String], value: Value) -> Result<(), String> {
    let (last, path) = keys.split_last().ok_or("a key is missing")?;
    place(table, path)?.insert(last.clone(), value);
    Ok(())
}

struct Reader<'t> {
    rest: &'t str,
}

type Pair = (Vec<String>, Value);

impl Reader<'_> {
    /// Skips blanks and comments, and the ends of lines with `lines`.
    fn skip(&mut self, lines: bool) {
        loop {
            let is_blank = |c: char| c == ' ' || c == '\t' || (lines && matches!(c, '\n' | '\r'));
            self.rest = self.rest.trim_start_matches(is_blank);
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
        }
    }

    fn take(&mut self, mark: &str) -> bool {
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn need(&mut self, mark: &str) -> Result<(), String> {
        if self.take(mark) { Ok(()) } else { Err(format!("\"{mark}\" is missing")) }
    }

    /// A pair, or the head of a table, which changes `table`.
    fn entry(&mut self, table: &mut Vec<String>) -> Result<Option<Pair>, String> {
        if self.rest.starts_with("[[") {
            return Err("lists of tables are not understood".into());
        }
        let entry = match self.take("[") {
            true => {
                *table = self.keys()?;
                self.need("]")?;
                None
            }
            false => Some(self.pair()?),
        };
        self.skip(false);
        match self.rest.is_empty() || self.rest.starts_with(['\n', '\r']) {
            true => Ok(entry),
            false => Err("there is more in the line than is understood".into()),
        }
    }

    fn pair(&mut self) -> Result<Pair, String> {
        let keys = self.keys()?;
        self.need("=")?;
        self.skip(false);
        Ok((keys, self.value()?))
    }

    fn keys(&mut self) -> Result<Vec<String>, String> {
        let mut keys = Vec::new();
        loop {
            self.skip(false);
            keys.push(match self.rest.starts_with(['"', '\'']) {
                true => self.text()?,
                false => {
                    let is_key = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                    let end = self.rest.find(|c| !is_key(c)).unwrap_or(self.rest.len());
                    let (key, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    Some(key).filter(|key| !key.is_empty()).ok_or("a key is missing")?.to_owned()
                }
            });
            self.skip(false);
            if !self.take(".") {
                return Ok(keys);
            }
        }
    }

    fn text(&mut self) -> Result<String, String> {
        if self.rest.starts_with("\"\"\"") || self.rest.starts_with("'''") {
            return Err("texts of several lines are not understood".into());
        }
        let open = || "a text has no end in its line".to_owned();
        if let Some(rest) = self.rest.strip_prefix('\'') {
            let end =
                rest.find(['\'', '\n']).filter(|end| rest[*end..].starts_with('\'')).ok_or_else(open)?;
            let text = rest[..end].to_owned();
            self.rest = &rest[end + 1..];
            return Ok(text);
        }
        // The rest of the line up to the quote that no backslash precedes is a text of JSON, but for \U.
        let mut is_escaped = false;
        let end = self.rest.char_indices().skip(1).find(|(_, c)| {
            let is_end = *c == '\n' || (*c == '"' && !is_escaped);
            is_escaped = *c == '\\' && !is_escaped;
            is_end
        });
        let (end, _) = end.filter(|(_, c)| *c == '"').ok_or_else(open)?;
        let text = serde_json::from_str(&self.rest[..=end]);
        self.rest = &self.rest[end + 1..];
        text.map_err(|_| "a text has an escape that is not understood".to_owned())
    }

    fn value(&mut self) -> Result<Value, String> {
        if self.rest.starts_with(['"', '\'']) {
            return self.text().map(Value::from);
        }
        if self.take("[") {
            let mut items = Vec::new();
            loop {
                self.skip(true);
                if self.take("]") {
                    return Ok(items.into());
                }
                items.push(self.value()?);
                self.skip(true);
                if !self.take(",") {
                    self.need("]")?;
                    return Ok(items.into());
                }
            }
        }
        if self.take("{") {
            let mut table = Map::new();
            loop {
                self.skip(false);
                if self.take("}") {
                    return Ok(table.into());
                }
                let (keys, value) = self.pair()?;
                insert(&mut table, &keys, value)?;
                self.skip(false);
                if !self.take(",") {
                    self.need("}")?;
                    return Ok(table.into());
                }
            }
        }
        let end =
            self.rest.find(|c: char| c.is_whitespace() || ",]}#".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let number = word.replace('_', "");
        match word {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => number
                .parse::<i64>()
                .map(Value::from)
                .or_else(|_| number.parse::<f64>().map(Value::from))
                .map_err(|_| format!("\"{word}\" is not understood")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use proptest::prelude::*;

    #[test]
    fn configurations_are_read() {
        let text = "model = \"x\" # one\n\n[mcp_servers.a]\ncommand = 'npx'\nargs = [\"-y\",\n  \"b\\n\", # two\n]\n\
            enabled = true\ntimeout = 1_0.5\nenv = { K = \"v\", \"a b\" = \"w\" }\n[mcp_servers.\"c.d\".env]\nX.Y = 3\n";
        let expected = json!({"model": "x", "mcp_servers": {
            "a": {"command": "npx", "args": ["-y", "b\n"], "enabled": true, "timeout": 10.5,
                "env": {"K": "v", "a b": "w"}},
            "c.d": {"env": {"X": {"Y": 3}}}}});
        assert_eq!(read(text).map(Value::from), Ok(expected));
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (text, expected) in [
            ("a = 1\nb", "line 2: \"=\" is missing"),
            ("a = \"x", "line 1: a text has no end in its line"),
            ("a = 1979-05-27", "line 1: \"1979-05-27\" is not understood"),
            ("[[a]]", "line 1: lists of tables are not understood"),
            ("a = \"\"\"\n\"\"\"", "line 1: texts of several lines are not understood"),
            ("a = 1 b = 2", "line 1: there is more in the line than is understood"),
            ("a = 1\n[a.b]", "line 2: \"a\" is no table"),
            ("a = [1, 2", "line 1: \"]\" is missing"),
        ] {
            assert_eq!(read(text), Err(expected.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "([a-z\"'\\[\\]{}=.,#\\\\ \n1é]|\\PC){0,60}") {
            let _ = read(&text);
        }
    }
}
