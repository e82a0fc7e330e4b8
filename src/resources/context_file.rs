//! Files with instructions for agents: one of each folder, from the agent folder and then from the root
//! down to the working folder.
//!
//! They are read whether or not a project is trusted: they are text for the model, and run nothing.

use super::import::{self, Bounds};
use super::{Diagnostic, text};
use std::fs;
use std::path::{Path, PathBuf};

/// The first that a folder has is its file.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    pub path: PathBuf,
    /// With what it imports.
    pub content: String,
    pub imports: Vec<PathBuf>,
}

/// The context files for `cwd`, those that lie nearest last. One that cannot be read is reported, and
/// the next name of its folder is tried.
pub fn load(agent: &Path, cwd: &Path, home: Option<&Path>) -> (Vec<ContextFile>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let shadowed = shadowed(cwd);
    let mut folders: Vec<&Path> = cwd.ancestors().collect();
    folders.push(agent);
    let mut seen = Vec::new();
    let mut files = Vec::new();
    for folder in folders.into_iter().rev() {
        let Some(mut file) = of_folder(folder, &mut diagnostics) else {
            continue;
        };
        let place = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
        if shadowed.as_ref() != Some(&place) && !seen.contains(&place) {
            seen.push(place);
            let bounds =
                if folder == agent { Bounds::own(agent, home) } else { Bounds::project(folder, home) };
            (file.content, file.imports) =
                import::expand(&file.path, &file.content, &bounds, &mut diagnostics);
            files.push(file);
        }
    }
    (files, diagnostics)
}

fn of_folder(folder: &Path, diagnostics: &mut Vec<Diagnostic>) -> Option<ContextFile> {
    let paths = NAMES.iter().map(|name| folder.join(name));
    paths.filter(|path| path.is_file()).find_map(|path| match fs::read(&path) {
        Ok(bytes) => Some(ContextFile { content: text(&bytes), imports: Vec::new(), path }),
        Err(error) => {
            let message = format!("could not be read: {error}");
            diagnostics.push(Diagnostic { path, message });
            None
        }
    })
}

/// The file of a repository that has a second copy in a work tree inside it: in the work tree, its own
/// copy says the same.
fn shadowed(cwd: &Path) -> Option<PathBuf> {
    let (tree, common) = git_folders(cwd)?;
    let (tree, common) = (tree.canonicalize().ok()?, common.canonicalize().ok()?);
    let main = common.parent()?;
    // The main tree must be checked out from the same repository: not so with a bare one, and not
    // with that of a submodule.
    let is_inside = tree != main && tree.starts_with(main);
    if !is_inside || main.join(".git").canonicalize().ok()? != common {
        return None;
    }
    let own = of_folder(&tree, &mut Vec::new())?;
    main.join(own.path.file_name()?).canonicalize().ok()
}

/// The work tree around `cwd`, and the folder with what all its work trees share.
fn git_folders(cwd: &Path) -> Option<(PathBuf, PathBuf)> {
    let tree = cwd.ancestors().find(|folder| is_git(&folder.join(".git")))?;
    let git = tree.join(".git");
    if git.is_dir() {
        return Some((tree.to_owned(), git));
    }
    let link = fs::read_to_string(&git).ok()?;
    let git = tree.join(link.trim().strip_prefix("gitdir: ")?.trim());
    let common = match fs::read_to_string(git.join("commondir")) {
        Ok(common) => git.join(common.trim()),
        Err(_) => git.clone(),
    };
    git.join("HEAD").exists().then(|| (tree.to_owned(), common))
}

fn is_git(path: &Path) -> bool {
    path.is_file() || path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    /// The files found for `cwd`, by their path below the scratch folder.
    fn found(scratch: &Scratch, cwd: &str) -> Vec<String> {
        let (files, diagnostics) = load(&scratch.path().join("agent"), &scratch.path().join(cwd), None);
        assert_eq!(diagnostics, []);
        let below = |file: &ContextFile| {
            let path = file.path.strip_prefix(scratch.path()).ok()?;
            Some(path.to_str().unwrap().to_owned())
        };
        files.iter().filter_map(below).collect()
    }

    #[test]
    fn the_agent_folder_comes_first_and_then_the_way_down() {
        let scratch = Scratch::new();
        for name in ["p/q/r/CLAUDE.md", "p/AGENTS.md", "p/CLAUDE.md", "agent/AGENTS.md", "other/AGENTS.md"] {
            scratch.file(name, name);
        }
        assert_eq!(found(&scratch, "p/q/r"), ["agent/AGENTS.md", "p/AGENTS.md", "p/q/r/CLAUDE.md"]);
        assert_eq!(found(&scratch, "p/q"), ["agent/AGENTS.md", "p/AGENTS.md"]);
        scratch.file("p/AGENTS.override.md", "x");
        assert_eq!(found(&scratch, "p/q"), ["agent/AGENTS.md", "p/AGENTS.override.md"]);
        assert_eq!(found(&scratch, "agent"), ["agent/AGENTS.md"]);
        // A link to a file that was read already.
        std::os::unix::fs::symlink(scratch.path().join("p/AGENTS.md"), scratch.path().join("p/q/AGENTS.md"))
            .unwrap();
        std::fs::remove_file(scratch.path().join("p/AGENTS.override.md")).unwrap();
        assert_eq!(found(&scratch, "p/q"), ["agent/AGENTS.md", "p/AGENTS.md"]);
    }

    #[test]
    fn texts_are_taken_as_people_save_them() {
        let scratch = Scratch::new();
        scratch.file("p/AGENTS.md", b"\xef\xbb\xbfa\xffb");
        std::fs::create_dir_all(scratch.path().join("p/q/AGENTS.md")).unwrap();
        scratch.file("p/q/CLAUDE.md", "");
        let (files, _) = load(&scratch.path().join("agent"), &scratch.path().join("p/q"), None);
        let contents: Vec<&str> = files
            .iter()
            .filter(|file| file.path.starts_with(scratch.path()))
            .map(|file| file.content.as_str())
            .collect();
        assert_eq!(contents, ["a\u{fffd}b", ""]);
    }

    #[test]
    fn a_work_tree_inside_its_repository_has_its_own_copy() {
        let scratch = Scratch::new();
        scratch.file("m/.git/HEAD", "x");
        scratch.file("m/.git/worktrees/w/HEAD", "x");
        scratch.file("m/.git/worktrees/w/commondir", "../..\n");
        scratch.file("m/AGENTS.md", "main");
        scratch.file("m/w/AGENTS.md", "copy");
        let git = scratch.path().join("m/.git/worktrees/w");
        scratch.file("m/w/.git", format!("gitdir: {}\n", git.display()));
        std::fs::create_dir_all(scratch.path().join("m/w/sub")).unwrap();
        assert_eq!(found(&scratch, "m/w/sub"), ["m/w/AGENTS.md"]);
        assert_eq!(found(&scratch, "m"), ["m/AGENTS.md"]);
        // Its own file has another name: both count.
        std::fs::rename(scratch.path().join("m/w/AGENTS.md"), scratch.path().join("m/w/CLAUDE.md")).unwrap();
        assert_eq!(found(&scratch, "m/w"), ["m/AGENTS.md", "m/w/CLAUDE.md"]);
        // A submodule is another repository.
        std::fs::rename(scratch.path().join("m/w/CLAUDE.md"), scratch.path().join("m/w/AGENTS.md")).unwrap();
        std::fs::remove_file(scratch.path().join("m/.git/worktrees/w/commondir")).unwrap();
        assert_eq!(found(&scratch, "m/w"), ["m/AGENTS.md", "m/w/AGENTS.md"]);
        scratch.file("m/w/.git", "nonsense");
        assert_eq!(found(&scratch, "m/w"), ["m/AGENTS.md", "m/w/AGENTS.md"]);
    }
}
