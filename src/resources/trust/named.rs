//! The files of a project that its commands name.
//!
//! A command is a text for a shell or the words of a program. What it means is not known, so each way to read a word as
//! the path of a file in the project counts.

use crate::base::file;
use crate::base::json;
use crate::base::order::Order;
use crate::resources::place::{Places, tidy};
use crate::resources::walk::MANIFEST;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of words that are looked up as files.
const WORDS_MAX: usize = 500;

/// Maximum number of folders that the words of one command are looked up in.
const BASES_MAX: usize = 8;

/// Maximum number of files that a pattern in a command adds.
const MATCHES_MAX: usize = 200;

/// Maximum bytes of the manifest of an extension.
const MANIFEST_MAX: u64 = 1 << 20;

/// Endings of files that a program runs although they are not executable.
#[rustfmt::skip]
const SCRIPTS: [&str; 24] = [
    "sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rb", "pl", "lua", "php",
    "awk", "sed", "tcl", "exs", "jar", "wasm", "mk",
];

/// Collects files that commands name.
pub(super) struct Named<'a> {
    places: &'a Places<'a>,
    words: usize,
    files: BTreeSet<PathBuf>,
}

impl<'a> Named<'a> {
    pub fn new(places: &'a Places<'a>) -> Self {
        Self { places, words: 0, files: BTreeSet::new() }
    }

    pub fn files(self) -> BTreeSet<PathBuf> {
        self.files
    }

    /// Adds the files that the texts in a value name. A program is started in `folder`, or in what `cwd` beside it says.
    pub fn add(&mut self, value: &Value, folder: &Path) {
        match value {
            Value::String(text) => self.add_text(text, folder),
            Value::Array(values) => values.iter().for_each(|value| self.add(value, folder)),
            Value::Object(fields) => {
                let own = fields.get("cwd").and_then(Value::as_str);
                let own = own.map(|own| tidy(&self.places.resolve(own, folder)));
                fields.values().for_each(|value| self.add(value, own.as_deref().unwrap_or(folder)));
            }
            _ => {}
        }
    }

    /// Adds the program of an extension, if a manifest at `path` or beside it names one.
    pub fn add_manifest(&mut self, path: &Path) {
        let Some(folder) = path.parent() else { return };
        let Ok(bytes) = file::read(&folder.join(MANIFEST), MANIFEST_MAX) else { return };
        let manifest: Value = json::parse(&bytes).unwrap_or_default();
        for field in ["command", "args"] {
            self.add(&manifest[field], folder);
        }
    }

    fn add_text(&mut self, text: &str, folder: &Path) {
        let mut words = BTreeSet::from([text.to_owned()]);
        words.extend(shell_words(text));
        words.extend(parts(text));
        let root = self.places.cwd;
        let mut bases = vec![root.to_owned()];
        if folder != root {
            bases.push(folder.to_owned());
        }
        // The command may change to a folder that it names.
        let named = words.iter().map(|word| tidy(&self.places.resolve(path_of(word), folder)));
        let named = named.filter(|path| path.starts_with(root) && path != root && path.is_dir());
        bases.extend(named.take(BASES_MAX).collect::<Vec<_>>());
        for word in &words {
            self.words += 1;
            if self.words > WORDS_MAX {
                return;
            }
            for base in &bases {
                self.add_path(&tidy(&self.places.resolve(path_of(word), base)));
            }
        }
    }

    fn add_path(&mut self, path: &Path) {
        if !path.starts_with(self.places.cwd) {
            return;
        }
        let is_pattern = |part: &Path| part.to_string_lossy().contains(['*', '?', '[', '{']);
        match path.ancestors().filter(|part| is_pattern(part)).last() {
            None if self.is_program(path) => drop(self.files.insert(path.to_owned())),
            None => {}
            Some(pattern) => {
                let entries = pattern.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten();
                let paths = entries.map(|entry| entry.path()).filter(|path| self.is_program(path));
                let mut found: Vec<PathBuf> = paths.collect();
                found.order();
                self.files.extend(found.into_iter().take(MATCHES_MAX));
            }
        }
    }

    /// True for a file that a command which names it may run. A name without an ending tells nothing.
    fn is_program(&self, path: &Path) -> bool {
        let may_run = match path.extension() {
            Some(end) => SCRIPTS.iter().any(|script| end == *script),
            None => true,
        };
        let is_own = || path.starts_with(self.places.cwd.join(".pi"));
        fs::metadata(path).is_ok_and(|about| {
            about.is_file() && (may_run || is_own() || about.permissions().mode() & 0o111 != 0)
        })
    }
}

/// A word without the variable at its beginning, which names the project.
fn path_of(word: &str) -> &str {
    word.strip_prefix('$').and_then(|rest| rest.split_once('/')).map_or(word, |(_, path)| path)
}

/// The words of a shell's text, without quotes and backslashes.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let Some(word) = words.last_mut() else { break };
        match (c, quote) {
            ('\\', None | Some('"')) => word.extend(chars.next()),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() || ";|&()<>=`!".contains(c) => words.push(String::new()),
            (c, _) => word.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The parts of a text between blanks and signs, wherever quotes stand: a text may hold the text of another shell.
fn parts(text: &str) -> Vec<String> {
    let text = text.replace(['"', '\''], "");
    let parts = text.split(|c: char| c.is_whitespace() || ";|&()<>=`!".contains(c));
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let check = |text: &str, expected: &[&str]| assert_eq!(shell_words(text), expected, "{text}");
        check("sh \"tools/my hook.sh\" -x", &["sh", "tools/my hook.sh", "-x"]);
        check("cd a\\ b&&./x 'c d'e", &["cd", "a b", "./x", "c de"]);
        check("a=\"$B/c\" ;d", &["a", "$B/c", "d"]);
        check("\"open", &["open"]);
        check(" \\", &[]);
    }
}
