//! Files with instructions for agents: at most one from the agent folder and from each folder between the
//! root and the working folder.
//!
//! Context files are read whether or not a project is trusted: they are text for the model, and run nothing.
//! A file is left out if its real path is outside the project, or if another user of the machine could have
//! put it above the project or into a folder that everybody may write.

use super::Diagnostic;
use super::git::small;
use super::import::{self, Limits};
use super::text_file::{self, Bounds, TextFile};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names of context files. The first one that a folder has is used.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    pub path: PathBuf,
    /// The text, with its imports in place.
    pub content: String,
    pub imports: Vec<PathBuf>,
}

/// Loads the context files for `cwd`, the nearest last. A file that is refused is reported, and the next name
/// is tried in its folder.
pub fn load(agent: &Path, cwd: &Path, home: Option<&Path>) -> (Vec<ContextFile>, Vec<Diagnostic>) {
    let mut search = Search {
        agent,
        home,
        root: text_file::project_root(cwd, home),
        user: user(),
        seen: shadowed(cwd).into_iter().collect(),
        diagnostics: Vec::new(),
    };
    let mut folders: Vec<&Path> = cwd.ancestors().collect();
    folders.push(agent);
    let files = folders.into_iter().rev().filter_map(|folder| search.of_folder(folder)).collect();
    (files, search.diagnostics)
}

/// Returns the effective user id of this process.
fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The location of a context file, which decides which files are refused.
#[derive(Clone, Copy, PartialEq)]
enum Zone {
    Agent,
    /// In the project.
    Inside,
    Above,
}

struct Search<'a> {
    agent: &'a Path,
    home: Option<&'a Path>,
    /// The real path of the project.
    root: PathBuf,
    user: u32,
    /// Real paths of files that were loaded or must be skipped.
    seen: Vec<PathBuf>,
    diagnostics: Vec<Diagnostic>,
}

impl Search<'_> {
    fn of_folder(&mut self, folder: &Path) -> Option<ContextFile> {
        let real = folder.canonicalize().ok()?;
        let zone = match () {
            () if folder == self.agent => Zone::Agent,
            () if real.starts_with(&self.root) => Zone::Inside,
            () => Zone::Above,
        };
        let is_home = self.home.and_then(|home| home.canonicalize().ok()).is_some_and(|home| home == real);
        for path in names(folder) {
            // In the agent folder and the home folder, the user may link to any file.
            let bounds = match zone == Zone::Agent || is_home {
                true => Bounds::anywhere(),
                false => Bounds::project(folder, self.home),
            };
            let message = match path.canonicalize() {
                Ok(file) if self.seen.contains(&file) => return None,
                Ok(file) => match self.read(&path, &file, &bounds, zone) {
                    Ok(text) => {
                        self.seen.push(file);
                        return Some(self.expand(path, &text, folder, zone));
                    }
                    Err(message) => message,
                },
                Err(error) => text_file::failed(error),
            };
            self.diagnostics.push(Diagnostic { path, message });
        }
        None
    }

    fn read(&self, path: &Path, real: &Path, bounds: &Bounds, zone: Zone) -> Result<String, String> {
        if let Some(why) = bounds.refusal(real) {
            return Err(format!("is not used: it {why}"));
        }
        let TextFile { text, about } = text_file::read_real(real)?;
        let entry = fs::symlink_metadata(path).map_err(text_file::failed)?;
        let places = [path, real].map(|path| fs::metadata(path.parent().unwrap_or(path)));
        let [here, there] = places.map(|place| place.map(|about| is_open_to_all(&about)));
        let is_open = here.map_err(text_file::failed)? || there.map_err(text_file::failed)?;
        let owners = [entry.uid(), about.uid()];
        match self.stranger(owners, is_open, zone) {
            Some(why) => Err(format!("is not used: {why}")),
            None => Ok(text),
        }
    }

    /// Returns why a file may contain another user's words. `owners` are the user ids of the file and its
    /// folder.
    fn stranger(&self, owners: [u32; 2], is_open: bool, zone: Zone) -> Option<String> {
        let other = owners.into_iter().find(|owner| ![self.user, 0].contains(owner));
        match (zone, other) {
            (Zone::Agent, _) => None,
            (Zone::Above, Some(other)) => {
                Some(format!("it lies above the project and belongs to another user (uid {other})"))
            }
            (Zone::Above, None) if is_open => {
                Some("it lies above the project in a folder that everybody may write".into())
            }
            (Zone::Inside, Some(other)) if is_open => Some(format!(
                "it belongs to another user (uid {other}) and lies in a folder that everybody may write"
            )),
            _ => None,
        }
    }

    fn expand(&mut self, path: PathBuf, text: &str, folder: &Path, zone: Zone) -> ContextFile {
        let limits = match zone {
            Zone::Agent => Limits { bounds: Bounds::own(self.agent, self.home), home: self.home },
            _ => Limits { bounds: Bounds::project(folder, self.home), home: None },
        };
        let (content, imports) = import::expand(&path, text, &limits, &mut self.diagnostics);
        ContextFile { path, content, imports }
    }
}

/// True if every user may create files in the folder.
fn is_open_to_all(folder: &Metadata) -> bool {
    folder.mode() & 0o002 != 0
}

/// Returns the paths in a folder that have names of context files.
fn names(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = NAMES.iter().map(|name| folder.join(name));
    paths.filter(|path| fs::metadata(path).is_ok_and(|about| !about.is_dir()))
}

/// Returns the repository's own context file if `cwd` is in a work tree inside the repository, which has a
/// copy of the file.
fn shadowed(cwd: &Path) -> Option<PathBuf> {
    let (tree, common) = git_folders(cwd)?;
    let (tree, common) = (tree.canonicalize().ok()?, common.canonicalize().ok()?);
    let main = common.parent()?;
    // The main tree must be checked out from this repository. That is not so for a bare repository or a
    // submodule.
    let is_inside = tree != main && tree.starts_with(main);
    if !is_inside || main.join(".git").canonicalize().ok()? != common {
        return None;
    }
    let own = names(&tree).next()?;
    main.join(own.file_name()?).canonicalize().ok()
}

/// Returns the work tree around `cwd`, and the git folder that all work trees of the repository share.
fn git_folders(cwd: &Path) -> Option<(PathBuf, PathBuf)> {
    let tree = cwd.ancestors().find(|folder| is_git(&folder.join(".git")))?;
    let git = tree.join(".git");
    if git.is_dir() {
        return Some((tree.to_owned(), git));
    }
    let link = small(&git)?;
    let git = tree.join(link.trim().strip_prefix("gitdir: ")?.trim());
    let common = match small(&git.join("commondir")) {
        Some(common) => git.join(common.trim()),
        None => git.clone(),
    };
    git.join("HEAD").exists().then(|| (tree.to_owned(), common))
}

fn is_git(path: &Path) -> bool {
    path.is_file() || path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    /// The files found for `cwd`, by their path below the scratch folder.
    fn found(scratch: &TempDir, cwd: &str) -> Vec<String> {
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
        let scratch = TempDir::create();
        for name in ["p/q/r/CLAUDE.md", "p/AGENTS.md", "p/CLAUDE.md", "agent/AGENTS.md", "other/AGENTS.md"] {
            scratch.write(name, name);
        }
        assert_eq!(found(&scratch, "p/q/r"), ["agent/AGENTS.md", "p/AGENTS.md", "p/q/r/CLAUDE.md"]);
        assert_eq!(found(&scratch, "p/q"), ["agent/AGENTS.md", "p/AGENTS.md"]);
        scratch.write("p/AGENTS.override.md", "x");
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
        let scratch = TempDir::create();
        scratch.write("p/AGENTS.md", b"\xef\xbb\xbfa\xffb");
        std::fs::create_dir_all(scratch.path().join("p/q/AGENTS.md")).unwrap();
        scratch.write("p/q/CLAUDE.md", "");
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
        let scratch = TempDir::create();
        scratch.write("m/.git/HEAD", "x");
        scratch.write("m/.git/worktrees/w/HEAD", "x");
        scratch.write("m/.git/worktrees/w/commondir", "../..\n");
        scratch.write("m/AGENTS.md", "main");
        scratch.write("m/w/AGENTS.md", "copy");
        let git = scratch.path().join("m/.git/worktrees/w");
        scratch.write("m/w/.git", format!("gitdir: {}\n", git.display()));
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
        scratch.write("m/w/.git", "nonsense");
        assert_eq!(found(&scratch, "m/w"), ["m/AGENTS.md", "m/w/AGENTS.md"]);
    }

    /// Loaded texts and diagnostics, with paths relative to the scratch folder.
    fn outcome(scratch: &TempDir, home: &str, cwd: &str) -> (Vec<String>, Vec<String>) {
        let at = |name: &str| scratch.path().join(name);
        let (files, said) = load(&at("home/.pi/agent"), &at(cwd), Some(&at(home)));
        let root = format!("{}/", scratch.path().display());
        let files = files.into_iter().filter(|file| file.path.starts_with(scratch.path()));
        let said = said.iter().map(|said| said.to_string().replace(&root, "")).collect();
        (files.map(|file| file.content).collect(), said)
    }

    #[test]
    fn a_link_that_leaves_the_project_is_left_out_and_said() {
        let large = "x".repeat((1 << 20) + 1);
        let outside = "is not used: it lies outside of the project";
        let system = "is not used: it lies in a folder of the system";
        for (target, expected) in [
            ("../.ssh/id_rsa", outside),
            ("/proc/self/environ", system),
            ("/proc/self/pagemap", system),
            ("/dev/zero", system),
            (".git/config", "is not used: it lies in the repository's own folder"),
            ("large", "is larger than 1 MiB"),
        ] {
            for name in NAMES {
                let scratch = TempDir::create();
                scratch.write("home/.ssh/id_rsa", "SECRET");
                scratch.write("home/p/.git/config", "SECRET");
                scratch.write("home/p/large", &large);
                std::os::unix::fs::symlink(target, scratch.path().join("home/p").join(name)).unwrap();
                let (texts, said) = outcome(&scratch, "home", "home/p");
                assert_eq!(texts, [""; 0], "{target}");
                assert_eq!(said, [format!("home/p/{name}: {expected}")], "{target}");
            }
        }
    }

    #[test]
    fn links_inside_the_project_and_of_the_users_own_folders_are_followed() {
        let scratch = TempDir::create();
        scratch.write("home/p/.git/HEAD", "x");
        scratch.write("home/p/docs/agents.md", "of the project");
        scratch.write("store/own.md", "of the user");
        scratch.write("store/home.md", "of the home folder");
        std::fs::create_dir_all(scratch.path().join("home/.pi/agent")).unwrap();
        std::fs::create_dir_all(scratch.path().join("home/p/sub")).unwrap();
        for (target, link) in [
            ("../docs/agents.md", "home/p/sub/CLAUDE.md"),
            ("../../../store/own.md", "home/.pi/agent/AGENTS.md"),
            ("../store/home.md", "home/AGENTS.md"),
        ] {
            std::os::unix::fs::symlink(target, scratch.path().join(link)).unwrap();
        }
        let (texts, said) = outcome(&scratch, "home", "home/p/sub");
        assert_eq!(texts, ["of the user", "of the home folder", "of the project"]);
        assert_eq!(said, [""; 0]);
    }

    #[test]
    fn a_fifo_is_left_out_and_said() {
        let scratch = TempDir::create();
        std::fs::create_dir_all(scratch.path().join("home/p")).unwrap();
        scratch.fifo("home/p/AGENTS.md");
        scratch.fifo("home/p/.git");
        let (texts, said) = outcome(&scratch, "home", "home/p");
        assert_eq!(texts, [""; 0]);
        assert_eq!(said, ["home/p/AGENTS.md: could not be read: not a regular file"]);
    }

    #[test]
    fn words_of_other_users_are_no_instructions() {
        let folder = |user| Search {
            agent: Path::new("/agent"),
            home: None,
            root: PathBuf::new(),
            user,
            seen: Vec::new(),
            diagnostics: Vec::new(),
        };
        for (zone, owners, is_open, counts) in [
            (Zone::Above, [1000, 1000], false, true),
            (Zone::Above, [0, 0], false, true),
            (Zone::Above, [1234, 1234], false, false),
            (Zone::Above, [1234, 1000], false, false),
            (Zone::Above, [1000, 1234], false, false),
            (Zone::Above, [1000, 1000], true, false),
            (Zone::Inside, [1234, 1234], false, true),
            (Zone::Inside, [1000, 1000], true, true),
            (Zone::Inside, [1234, 1234], true, false),
            (Zone::Inside, [1000, 1234], true, false),
            (Zone::Agent, [1234, 1234], true, true),
        ] {
            let why = folder(1000).stranger(owners, is_open, zone);
            assert_eq!(why.is_none(), counts, "{owners:?} {is_open} {why:?}");
        }
    }

    #[test]
    fn a_folder_above_the_project_that_everybody_may_write_does_not_count() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = TempDir::create();
        scratch.write("shared/AGENTS.md", "planted");
        scratch.write("shared/work/AGENTS.md", "own");
        let open = |mode| std::fs::Permissions::from_mode(mode);
        let shared = scratch.path().join("shared");
        std::fs::set_permissions(&shared, open(0o1777)).unwrap();
        let (texts, said) = outcome(&scratch, "home", "shared/work");
        assert_eq!(texts, ["own"]);
        let why = "it lies above the project in a folder that everybody may write";
        assert_eq!(said, [format!("shared/AGENTS.md: is not used: {why}")]);
        // In the project itself it is the owner that counts.
        std::fs::set_permissions(shared.join("work"), open(0o777)).unwrap();
        assert_eq!(outcome(&scratch, "home", "shared/work").0, ["own"]);
        std::fs::set_permissions(&shared, open(0o755)).unwrap();
        assert_eq!(outcome(&scratch, "home", "shared/work").0, ["planted", "own"]);
    }
}
