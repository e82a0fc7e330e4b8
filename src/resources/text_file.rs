//! Reads text files of users and projects: regular files of bounded size whose real path, after links, is in
//! an allowed folder.

use super::text;
use crate::base::file;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum size of a text file, in bytes.
pub const BYTES_MAX: u64 = 1 << 20;

/// Folders of the system, which contain devices and the environment and memory of processes.
const SYSTEM_FOLDERS: [&str; 3] = ["/proc", "/sys", "/dev"];
/// A file system in memory, whose files are ordinary ones.
const SHARED_MEMORY: &str = "/dev/shm";

/// Folders that must contain the real path of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Real paths of folders.
    roots: Vec<PathBuf>,
}

impl Bounds {
    /// Bounds for the user's own files: any folder but those of the system.
    pub fn anywhere() -> Self {
        Self { roots: vec![PathBuf::from("/")] }
    }

    /// Bounds for imports of the user's own files: the agent folder and the home folder.
    pub fn own(agent: &Path, home: Option<&Path>) -> Self {
        let roots = [Some(agent), home].into_iter().flatten();
        Self { roots: roots.filter_map(|root| root.canonicalize().ok()).collect() }
    }

    /// Bounds for a file of a project: its repository, or `folder`.
    pub fn project(folder: &Path, home: Option<&Path>) -> Self {
        Self { roots: vec![project_root(folder, home)] }
    }

    /// Adds the project of `folder` to the bounds.
    pub fn and_project(mut self, folder: &Path, home: Option<&Path>) -> Self {
        self.roots.push(project_root(folder, home));
        self
    }

    /// Returns why the file at the real path `real` is refused, to follow the word "it"; `None` if it is
    /// allowed.
    pub fn refusal(&self, real: &Path) -> Option<&'static str> {
        let is_system = SYSTEM_FOLDERS.iter().any(|folder| real.starts_with(folder));
        if is_system && !real.starts_with(SHARED_MEMORY) {
            return Some("lies in a folder of the system");
        }
        let Some(inside) = self.roots.iter().find_map(|root| real.strip_prefix(root).ok()) else {
            return Some("lies outside of the project");
        };
        let is_git = inside.components().any(|part| part.as_os_str() == ".git");
        is_git.then_some("lies in the repository's own folder")
    }
}

/// Returns the real path of the repository around `folder`, or of `folder` itself. A home folder does not
/// count as a repository.
pub fn project_root(folder: &Path, home: Option<&Path>) -> PathBuf {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let home = home.and_then(|home| home.canonicalize().ok());
    let is_home = |folder: &Path| home.as_ref().is_some_and(|home| home.starts_with(folder));
    let mut around = real.ancestors().take_while(|folder| !is_home(folder));
    let root = around.find(|folder| folder.join(".git").exists());
    root.map_or(real.clone(), Path::to_owned)
}

/// The content and metadata of a text file.
pub struct TextFile {
    pub text: String,
    /// The metadata of the file itself, not of a link to it.
    pub about: Metadata,
}

/// Reads the file at a real path that is known to be allowed. The error text follows the file's name.
pub fn read_real(real: &Path) -> Result<TextFile, String> {
    let opened = file::open_real(real).and_then(|file| Ok((file.metadata()?, file)));
    let (about, file) = opened.map_err(failed)?;
    let bytes = file::read_open(file, BYTES_MAX).map_err(failed)?;
    Ok(TextFile { text: text(&bytes), about })
}

/// Reads the file at `path` if its real path is within `bounds`. The error text follows the file's name.
pub fn read(path: &Path, bounds: &Bounds) -> Result<String, String> {
    let real = path.canonicalize().map_err(failed)?;
    match bounds.refusal(&real) {
        Some(why) => Err(format!("is not used: it {why}")),
        None => Ok(read_real(&real)?.text),
    }
}

/// Describes why a file could not be read. The text follows the file's name.
pub fn failed(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::FileTooLarge => "is larger than 1 MiB".into(),
        _ => format!("could not be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn a_file_counts_where_it_really_lies() {
        let scratch = TempDir::create();
        scratch.write("home/p/.git/HEAD", "x");
        scratch.write("home/p/sub/.git/config", "x");
        scratch.write("home/p/a", "text");
        scratch.write("home/secret", "SECRET");
        let home = scratch.path().join("home");
        let project = Bounds::project(&home.join("p/sub"), Some(&home));
        let outside = Some("lies outside of the project");
        let git = Some("lies in the repository's own folder");
        let system = Some("lies in a folder of the system");
        for (path, expected) in [
            (home.join("p/sub/a"), None),
            (home.join("secret"), outside),
            (home.join("p/sub/.git/config"), git),
            (home.join("p/sub/.gitignore"), None),
            ("/proc/1/environ".into(), system),
        ] {
            assert_eq!(project.refusal(&path), expected, "{}", path.display());
        }
        let anywhere = Bounds::anywhere();
        for (path, expected) in [
            ("/nix/store/x/AGENTS.md", None),
            ("/proc/1/environ", system),
            ("/sys/kernel/x", system),
            ("/dev/fd/3", system),
            ("/dev/shm/p/AGENTS.md", None),
            ("/processes/AGENTS.md", None),
        ] {
            assert_eq!(anywhere.refusal(Path::new(path)), expected, "{path}");
        }
        let around = project_root(&home.join("p"), Some(&home));
        assert_eq!(around, home.join("p"));
    }

    #[test]
    fn a_text_is_read_or_a_reason_given() {
        let scratch = TempDir::create();
        let path = scratch.write("p/a", "\u{feff}text");
        let bounds = Bounds::project(&scratch.path().join("p"), None);
        assert_eq!(read(&path, &bounds).as_deref(), Ok("text"));
        let link = scratch.path().join("p/link");
        std::os::unix::fs::symlink(scratch.write("secret", "SECRET"), &link).unwrap();
        assert_eq!(read(&link, &bounds), Err("is not used: it lies outside of the project".into()));
        let large = scratch.write("p/large", vec![b'x'; (1 << 20) + 1]);
        assert_eq!(read(&large, &bounds), Err("is larger than 1 MiB".into()));
        assert!(read(&scratch.path().join("p/gone"), &bounds).unwrap_err().starts_with("could not be read"));
    }
}
