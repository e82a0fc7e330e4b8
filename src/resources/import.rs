//! Imports in context files: an `@path` line is replaced by the content of the file.
//!
//! An import is a line that contains only `@path` or `@import path`, outside of code blocks. A file of a
//! project can import only files whose real path is inside the project; a file of the agent folder also files
//! of the home folder. Each file is imported once, at most five levels deep.

use super::Diagnostic;
use super::text_file::{self, Bounds};
use std::path::{Path, PathBuf};

const DEPTH_MAX: usize = 5;
/// Maximum number of files that one context file may import.
const FILES_MAX: usize = 200;

/// Limits of the imports in a context file.
#[derive(Clone, Debug)]
pub struct Limits<'a> {
    pub bounds: Bounds,
    /// The folder that `~` stands for; `None` in a file of a project.
    pub home: Option<&'a Path>,
}

impl Limits<'_> {
    /// Returns the real path of the file `written`, relative to `folder`. An error says why it may not be
    /// imported; `Ok(None)` if there is no such file.
    fn find(&self, written: &str, folder: &Path) -> Result<Option<PathBuf>, String> {
        let path = match (written.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return Err("it lies in the home folder".into()),
            (None, _) => folder.join(written),
        };
        let Ok(real) = path.canonicalize() else {
            return Ok(None);
        };
        match self.bounds.refusal(&real) {
            Some(why) => Err(format!("it {why}")),
            None => Ok((!real.is_dir()).then_some(real)),
        }
    }
}

/// Replaces the imports in the file at `path`. Returns the text, and the real paths of the imported files.
pub fn expand(
    path: &Path,
    content: &str,
    limits: &Limits<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (String, Vec<PathBuf>) {
    let mut expansion = Expansion {
        limits,
        diagnostics,
        files: path.canonicalize().into_iter().collect(),
        out: String::with_capacity(content.len()),
    };
    expansion.add(path, content, 0);
    let files = expansion.files.into_iter().skip(1).collect();
    (expansion.out, files)
}

struct Expansion<'a> {
    limits: &'a Limits<'a>,
    diagnostics: &'a mut Vec<Diagnostic>,
    /// Real paths of all files, the context file first.
    files: Vec<PathBuf>,
    out: String,
}

impl Expansion<'_> {
    fn add(&mut self, path: &Path, content: &str, depth: usize) {
        let mut fence: Option<&str> = None;
        for line in content.split_inclusive('\n') {
            let trimmed = line.trim();
            match fence {
                Some(open) if trimmed.starts_with(open) => fence = None,
                Some(_) => {}
                None => fence = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)),
            }
            let import = written(trimmed).filter(|_| fence.is_none());
            let brought = import.and_then(|(written, is_sure)| {
                let why = match self.bring(path, written, depth) {
                    Ok(Some(brought)) => return Some(brought),
                    // The line may be other text that begins with @.
                    Ok(None) if !is_sure => return None,
                    Ok(None) => "it is not there".into(),
                    Err(why) => why,
                };
                self.diagnostics.push(Diagnostic {
                    path: path.to_owned(),
                    message: format!("@{written} is not imported: {why}"),
                });
                None
            });
            match brought {
                Some((file, content)) => {
                    self.add(&file, &content, depth + 1);
                    if line.ends_with('\n') && !self.out.ends_with('\n') {
                        self.out.push('\n');
                    }
                }
                None => self.out.push_str(line),
            }
        }
    }

    /// Reads the file that a line imports; `Ok(None)` if there is none.
    fn bring(
        &mut self,
        from: &Path,
        written: &str,
        depth: usize,
    ) -> Result<Option<(PathBuf, String)>, String> {
        let folder = from.parent().unwrap_or(Path::new("/"));
        let Some(file) = self.limits.find(written, folder)? else {
            return Ok(None);
        };
        if depth >= DEPTH_MAX {
            return Err("it is nested more than five deep".into());
        }
        if self.files.contains(&file) {
            return Err("it came in before".into());
        }
        if self.files.len() > FILES_MAX {
            return Err("it would be one too many".into());
        }
        let text = text_file::read_real(&file).map_err(|why| format!("it {why}"))?.text;
        self.files.push(file.clone());
        Ok(Some((file, text)))
    }
}

/// Returns the path that a line imports, and true if the line can only be an import.
fn written(line: &str) -> Option<(&str, bool)> {
    let rest = line.strip_prefix('@')?;
    let (path, is_sure) = match rest.strip_prefix("import ") {
        Some(path) => (path.trim(), true),
        None => (rest, false),
    };
    (!path.is_empty() && !path.contains(char::is_whitespace)).then_some((path, is_sure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::os::unix::fs::symlink;

    struct Case {
        scratch: TempDir,
        limits: Limits<'static>,
    }

    impl Case {
        fn project() -> Self {
            let scratch = TempDir::create();
            scratch.write("home/p/.git/HEAD", "x");
            scratch.write("home/secret", "SECRET");
            let home = scratch.path().join("home");
            let bounds = Bounds::project(&home.join("p/sub"), Some(&home));
            Self { scratch, limits: Limits { bounds, home: None } }
        }

        #[track_caller]
        fn check(&self, content: &str, expected: &str, said: &[&str]) {
            let path = self.scratch.write("home/p/AGENTS.md", content);
            let mut diagnostics = Vec::new();
            let (text, _) = expand(&path, content, &self.limits, &mut diagnostics);
            assert_eq!(text, expected);
            let messages: Vec<String> = diagnostics.into_iter().map(|d| d.message).collect();
            assert_eq!(messages, said);
            assert!(!text.contains("SECRET") && !messages.concat().contains("SECRET"));
        }
    }

    #[test]
    fn a_line_stands_for_a_file() {
        let case = Case::project();
        case.scratch.write("home/p/docs/style.md", "Be brief.\n@more.md");
        case.scratch.write("home/p/docs/more.md", "Really.");
        case.check("a\n@docs/style.md\nb\n", "a\nBe brief.\nReally.\nb\n", &[]);
        case.check("@import docs/more.md", "Really.", &[]);
        case.check("@docs/more.md and more\n@someone\n", "@docs/more.md and more\n@someone\n", &[]);
        case.check("```\n@docs/more.md\n```\n@docs/more.md", "```\n@docs/more.md\n```\nReally.", &[]);
        case.check("@import nope.md\n", "@import nope.md\n", &["@nope.md is not imported: it is not there"]);
        case.check("@docs\n", "@docs\n", &[]);
    }

    #[test]
    fn nothing_comes_in_from_outside() {
        let case = Case::project();
        symlink(case.scratch.path().join("home/secret"), case.scratch.path().join("home/p/link")).unwrap();
        symlink(case.scratch.path().join("home"), case.scratch.path().join("home/p/up")).unwrap();
        let secret = case.scratch.path().join("home/secret");
        for path in ["../secret", "link", "up/secret", secret.to_str().unwrap()] {
            let why = format!("@{path} is not imported: it lies outside of the project");
            case.check(&format!("@{path}"), &format!("@{path}"), &[&why]);
        }
        case.check("@~/secret", "@~/secret", &["@~/secret is not imported: it lies in the home folder"]);
        case.check(
            "@.git/HEAD",
            "@.git/HEAD",
            &["@.git/HEAD is not imported: it lies in the repository's own folder"],
        );
    }

    #[test]
    fn a_home_that_is_a_repository_is_no_project() {
        let scratch = TempDir::create();
        scratch.write("home/.git/HEAD", "x");
        scratch.write("home/secret", "SECRET");
        let path = scratch.write("home/p/AGENTS.md", "@../secret");
        let home = scratch.path().join("home");
        let limits = Limits { bounds: Bounds::project(&home.join("p"), Some(&home)), home: None };
        let (text, files) = expand(&path, "@../secret", &limits, &mut Vec::new());
        assert_eq!((text.as_str(), files.len()), ("@../secret", 0));
        // The user's own file may.
        let own = scratch.write("home/.pi/agent/AGENTS.md", "");
        let bounds = Bounds::own(&home.join(".pi/agent"), Some(&home));
        let limits = Limits { bounds, home: Some(&home) };
        let (text, files) = expand(&own, "@~/secret", &limits, &mut Vec::new());
        assert_eq!((text.as_str(), files), ("SECRET", vec![home.join("secret")]));
    }

    #[test]
    fn loops_end_and_so_does_depth() {
        let case = Case::project();
        case.scratch.write("home/p/a.md", "a\n@AGENTS.md\n@a.md\n");
        case.check(
            "@a.md",
            "a\n@AGENTS.md\n@a.md\n",
            &["@AGENTS.md is not imported: it came in before", "@a.md is not imported: it came in before"],
        );
        for depth in 1..8 {
            case.scratch.write(&format!("home/p/d{depth}"), format!("{depth}\n@d{}", depth + 1));
        }
        case.check("@d1", "1\n2\n3\n4\n5\n@d6", &["@d6 is not imported: it is nested more than five deep"]);
    }
}
