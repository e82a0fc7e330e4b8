//! Resolves the path argument of a tool call.
//!
//! Relative paths start at the working folder; `~`, `file://`, a leading `@` and unusual spaces are
//! interpreted, unless a file of exactly that name exists. There is no sandbox: absolute paths and `..` may
//! lead anywhere.

use super::backend::Backend;
use super::fold;
use crate::agent::tool::ToolError;
use crate::base::file_url;
use crate::tools::workspace::Workspace;
use std::path::{Component, Path, PathBuf};

/// The absolute path for `given`. `.` and `..` are resolved lexically.
pub fn resolve(workspace: &Workspace, given: &str) -> Result<PathBuf, ToolError> {
    if given.contains('\0') {
        return Err(ToolError::new("The path contains a NUL character, which no file name can have."));
    }
    let backend = workspace.backend.as_ref();
    let there = |text: &str| exists(backend, &absolute(workspace, text));
    let mut text = given;
    // `@` marks a file in a prompt, but `@types/` is a folder too.
    if let Some(rest) = given.strip_prefix('@')
        && !there(given.split('/').next().unwrap_or(given))
    {
        text = rest;
    }
    let spaced;
    if text.contains(fold::is_space) && !there(text) {
        spaced = text.replace(fold::is_space, " ");
        text = &spaced;
    }
    if let Some(rest) = text.strip_prefix("file://") {
        return file_url::path(rest).map(|path| normalize(&path)).map_err(ToolError::new);
    }
    Ok(absolute(workspace, text))
}

/// Like [`resolve`], for a file that should exist: if it is missing, tries the forms that macOS gives to
/// names of screenshots and to accented letters.
pub fn resolve_existing(workspace: &Workspace, given: &str) -> Result<PathBuf, ToolError> {
    let path = resolve(workspace, given)?;
    let backend = workspace.backend.as_ref();
    if exists(backend, &path) {
        return Ok(path);
    }
    let Some(name) = path.to_str() else {
        return Ok(path);
    };
    let apart = fold::decompose(name);
    let curly = |text: &str| text.replace('\'', "\u{2019}");
    let variants = [narrow_am_pm(name), apart.clone(), curly(name), curly(&apart)];
    let found =
        variants.into_iter().map(PathBuf::from).find(|variant| *variant != path && exists(backend, variant));
    Ok(found.unwrap_or(path))
}

/// True if the path ends in a slash, and so must be a folder.
pub fn ends_in_slash(given: &str) -> bool {
    given.len() > 1 && given.ends_with('/')
}

fn exists(backend: &dyn Backend, path: &Path) -> bool {
    backend.stat(path).is_ok()
}

fn absolute(workspace: &Workspace, text: &str) -> PathBuf {
    let home = workspace.home.as_deref();
    let path = match (text, text.strip_prefix("~/"), home) {
        ("~", _, Some(home)) => home.to_owned(),
        (_, Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    };
    normalize(&workspace.cwd.join(path))
}

/// Removes `.` and resolves `..` lexically.
pub fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Replaces the space before AM and PM by a narrow no-break space, as in macOS screenshots.
fn narrow_am_pm(name: &str) -> String {
    let mut out = name.to_owned();
    for (at, _) in name.match_indices(' ') {
        let half = name.get(at + 1..at + 4).unwrap_or_default();
        if half.eq_ignore_ascii_case("am.") || half.eq_ignore_ascii_case("pm.") {
            // The spaces before this one have grown from one byte to three.
            let shift = out.len() - name.len();
            out.replace_range(at + shift..=at + shift, "\u{202f}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::TempDir;

    /// Checks the path for `given`, written with the folder as `CWD` and the home folder as `HOME`.
    #[track_caller]
    fn check(dir: &TempDir, given: &str, expected: &str) {
        let workspace = dir.workspace();
        let home = workspace.home.clone().unwrap();
        let fill = |text: &str| {
            text.replace("HOME", home.to_str().unwrap()).replace("CWD", dir.path().to_str().unwrap())
        };
        let resolved = match resolve_existing(&workspace, &fill(given)) {
            Ok(path) => {
                assert!(path.is_absolute());
                path.display().to_string()
            }
            Err(error) => error.message,
        };
        assert_eq!(resolved, fill(expected), "{given:?}");
    }

    #[test]
    fn paths_are_read_as_people_write_them() {
        let dir = TempDir::create();
        check(&dir, "a.txt", "CWD/a.txt");
        check(&dir, "./a//b/../c/", "CWD/a/c");
        check(&dir, "", "CWD");
        check(&dir, ".", "CWD");
        check(&dir, "/", "/");
        check(&dir, "/../../x", "/x");
        check(&dir, "~", "HOME");
        check(&dir, "~/a", "HOME/a");
        check(&dir, "~//a", "HOME/a");
        check(&dir, "~other/a", "CWD/~other/a");
        check(&dir, "@a.txt", "CWD/a.txt");
        check(&dir, "@~/a", "HOME/a");
        check(&dir, "@", "CWD");
        check(&dir, "my\u{a0}file", "CWD/my file");
        check(&dir, "file:///etc/a%20b%C3%A9", "/etc/a bé");
        check(&dir, "file://localhost/x/../y?q#f", "/y");
        check(&dir, "file:///100%", "/100%");
        check(&dir, "file://CWD/a.txt", "CWD/a.txt");
    }

    #[test]
    fn a_file_of_exactly_that_name_comes_first() {
        let dir = TempDir::create();
        dir.write("@types/node", "");
        dir.write("my\u{a0}file", "");
        check(&dir, "@types/node", "CWD/@types/node");
        check(&dir, "@types/other", "CWD/@types/other");
        check(&dir, "my\u{a0}file", "CWD/my\u{a0}file");
    }

    #[test]
    fn paths_that_cannot_be_are_refused() {
        let dir = TempDir::create();
        let nul = "The path contains a NUL character, which no file name can have.";
        check(&dir, "a\0b", nul);
        check(&dir, "file:///a%00b", nul);
        check(
            &dir,
            "file://server/share",
            "The URL file://server/share names another machine; only local files can be reached.",
        );
    }

    #[test]
    fn names_as_macos_stores_them_are_found() {
        let dir = TempDir::create();
        dir.write("Shot 1 at 9.41.00\u{202f}AM.png", "");
        dir.write("re\u{301}sume\u{301}.txt", "");
        dir.write("it\u{2019}s", "");
        dir.write("Capture d\u{2019}e\u{301}cran", "");
        check(&dir, "Shot 1 at 9.41.00 AM.png", "CWD/Shot 1 at 9.41.00\u{202f}AM.png");
        check(&dir, "résumé.txt", "CWD/re\u{301}sume\u{301}.txt");
        check(&dir, "it's", "CWD/it\u{2019}s");
        check(&dir, "Capture d'écran", "CWD/Capture d\u{2019}e\u{301}cran");
        check(&dir, "missing é's 1 AM.png", "CWD/missing é's 1 AM.png");
        assert_eq!(narrow_am_pm(" am. é pm. PM"), "\u{202f}am. é\u{202f}pm. PM");
    }
}
