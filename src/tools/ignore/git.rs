//! Finds git's ignore rules outside of `.gitignore`, without running git.

use crate::tools::backend::{Backend, Kind};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum bytes read of a file of rules.
const MAX_BYTES: u64 = 4 << 20;

/// Content of a small file; `None` if `path` is not a file or cannot be read.
pub(super) fn read(backend: &dyn Backend, path: &Path) -> Option<Vec<u8>> {
    if backend.stat(path).ok()?.kind != Kind::File {
        return None;
    }
    let mut text = Vec::new();
    let file = backend.open(path).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The nearest folder with a `.git`: `dir` or one of its parents.
pub(super) fn repository<'a>(backend: &dyn Backend, dir: &'a Path) -> Option<&'a Path> {
    dir.ancestors().find(|folder| backend.stat(&folder.join(".git")).is_ok())
}

/// Path of a repository's `info/exclude`. In a worktree or submodule `.git` is a file with the path of the
/// repository.
pub(super) fn exclude(backend: &dyn Backend, repository: &Path) -> PathBuf {
    let mut git = repository.join(".git");
    if let Some(text) = read(backend, &git)
        && let Some(target) = text.strip_prefix(b"gitdir:")
    {
        git = repository.join(bytes_path(target.trim_ascii()));
        if let Some(common) = read(backend, &git.join("commondir")) {
            git = git.join(bytes_path(common.trim_ascii()));
        }
    }
    git.join("info/exclude")
}

/// The user's rules: `core.excludesFile`, or git's default path.
pub(super) fn global(
    backend: &dyn Backend,
    home: Option<&Path>,
    xdg_config: Option<&Path>,
) -> Option<PathBuf> {
    let xdg = match (xdg_config, home) {
        (Some(folder), _) if folder.is_absolute() => Some(folder.to_owned()),
        (_, home) => home.map(|home| home.join(".config")),
    };
    let configs = [home.map(|home| home.join(".gitconfig")), xdg.as_ref().map(|xdg| xdg.join("git/config"))];
    for config in configs.into_iter().flatten() {
        let Some(value) = read(backend, &config).and_then(|text| excludes_file(&text)) else {
            continue;
        };
        let value = bytes_path(&value);
        return match (value.strip_prefix("~"), home) {
            (Ok(rest), home) => Some(home?.join(rest)),
            _ => Some(value.to_owned()).filter(|path| path.is_absolute()),
        };
    }
    Some(xdg?.join("git/ignore"))
}

fn bytes_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The last `core.excludesFile` in a configuration file.
fn excludes_file(config: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    let mut in_core = false;
    let mut rest = config;
    loop {
        rest = rest.trim_ascii_start();
        match rest {
            [] => return found,
            [b'#' | b';', ..] => rest = after(rest, b'\n'),
            [b'[', header @ ..] => {
                let end = memchr::memchr2(b']', b'\n', header).unwrap_or(header.len());
                in_core = header[..end].trim_ascii().eq_ignore_ascii_case(b"core");
                rest = header.get(end + 1..).unwrap_or_default();
            }
            _ => {
                let end = memchr::memchr2(b'=', b'\n', rest).unwrap_or(rest.len());
                let (key, tail) = rest.split_at(end);
                rest = tail;
                // A key without `=` is a switch, which has no value to read.
                if let [b'=', tail @ ..] = tail {
                    let (value, tail) = value(tail);
                    rest = tail;
                    if in_core && key.trim_ascii().eq_ignore_ascii_case(b"excludesFile") {
                        found = Some(value);
                    }
                }
            }
        }
    }
}

/// The value up to the end of the line, with quotes, escapes and comments resolved, and the rest of the text.
fn value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut out = Vec::new();
    // Blanks count inside quotes only, or before something else.
    let mut kept = 0;
    let mut quoted = false;
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = text.iter().position(|byte| !blank(byte));
    let mut rest = &text[start.unwrap_or(text.len())..];
    loop {
        match rest {
            [] | [b'\n', ..] => break,
            [b'#' | b';', ..] if !quoted => {
                let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                rest = &rest[end..];
                break;
            }
            [b'\\', b'\r', b'\n', tail @ ..] | [b'\\', b'\n', tail @ ..] => rest = tail,
            [b'\\', escaped, tail @ ..] => {
                out.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'b' => 8,
                    other => *other,
                });
                kept = out.len();
                rest = tail;
            }
            [b'"', tail @ ..] => {
                quoted = !quoted;
                rest = tail;
            }
            [byte, tail @ ..] => {
                out.push(*byte);
                if quoted || !byte.is_ascii_whitespace() {
                    kept = out.len();
                }
                rest = tail;
            }
        }
    }
    out.truncate(kept);
    (out, rest)
}

fn after(text: &[u8], byte: u8) -> &[u8] {
    memchr::memchr(byte, text).map_or(&[], |at| &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(config: &str, expected: Option<&str>) {
        let found = excludes_file(config.as_bytes());
        assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{config:?}");
    }

    #[test]
    fn the_excludes_file_is_read_from_a_configuration() {
        check("", None);
        check("[core]\n\texcludesFile = ~/.ignored\n", Some("~/.ignored"));
        check("[CORE]\r\nexcludesfile=/a b  \r\n", Some("/a b"));
        check("[core] excludesFile = /a ; why\n", Some("/a"));
        check("[core]\nexcludesFile = \"/a ; b \" # c", Some("/a ; b "));
        check("[core]\nexcludesFile = /a\\\n/b\n", Some("/a/b"));
        check("[core]\nexcludesFile = \"a\\\\b\\\"\"", Some("a\\b\""));
        check("[core]\nexcludesFile = /a\nexcludesFile = /b", Some("/b"));
        check("[core]\nexcludesFile =\n[x]\ny = z", Some(""));
        check("[core \"x\"]\nexcludesFile = /a", None);
        check("[user]\nexcludesFile = /a\n[core]\nbare\n", None);
        check("# [core]\n; x\n[core]\n#excludesFile = /a", None);
        check("[core\nexcludesFile = /a", Some("/a"));
    }
}
