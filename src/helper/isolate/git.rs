//! The repository of a copy, and the commits that keep a helper's changes.
//!
//! Two repositories are made for a copy. One is the helper's own, in its folder, so that it can commit and look at the
//! history; nothing in there is ever used. The other one, out of its reach, takes up states of files byte for byte.
//! Both read the objects of the parent's repository, and write none there. Only a branch that is to stay copies
//! objects to the parent's.
//!
//! Settings and attributes of a repository can name programs that git runs. Git therefore never takes up or checks out
//! files for the parent's repository, and the one for states has settings of its own only.

use super::tree::{Changed, Id, Record};
use crate::base::cancel::CancelToken;
use crate::base::child::{End, Job, Until, Wanted, run};
use crate::base::executable;
use crate::tools::sandbox::Sandbox;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use walkdir::WalkDir;

const TIME_MAX: Duration = Duration::from_secs(600);
const OUTPUT_MAX: usize = 256 << 20;

/// The repository that git works in, and so the settings that it follows.
#[derive(Clone, Copy)]
enum Repository<'a> {
    /// The parent's, at the folder where git runs, with those of the user.
    Parent,
    /// One that is made, with none but its own.
    Made(Option<&'a Path>),
}

struct Git<'a> {
    /// Where git runs.
    folder: &'a Path,
    repository: Repository<'a>,
    cancel: &'a CancelToken,
}

impl Git<'_> {
    fn run(&self, words: &[&OsStr], input: &[u8]) -> Result<Vec<u8>, String> {
        let program = executable::find("git").ok_or("git is not installed")?;
        let mut command = Command::new(program);
        command.current_dir(self.folder).process_group(0);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"GIT_")) {
            command.env_remove(name);
        }
        // What the repository would have git run stays out.
        for setting in ["core.hooksPath=/dev/null", "core.fsmonitor=false"] {
            command.args(["-c", setting]);
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1");
        match self.repository {
            // Not one further up.
            Repository::Parent => {
                command.env("GIT_CEILING_DIRECTORIES", self.folder.parent().unwrap_or(self.folder));
            }
            Repository::Made(place) => {
                command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
                if let Some(place) = place {
                    command.arg("--git-dir").arg(place).arg("--work-tree").arg(self.folder);
                }
            }
        }
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "pi").env(format!("GIT_{role}_EMAIL"), "pi@localhost");
        }
        command.args(words);
        let job = Job {
            input,
            read: Wanted::OutputAndErrors,
            until: Until::GroupEnd,
            limit: TIME_MAX,
            output_max: OUTPUT_MAX,
            cancel: self.cancel,
        };
        let name = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        let ran = run(command, &job).map_err(|error| format!("git {name}: {error}"))?;
        match ran.end {
            End::Done if ran.status.success() => Ok(ran.output),
            End::Done => Err(format!(
                "git {name} in {}: {}",
                self.folder.display(),
                String::from_utf8_lossy(&ran.errors).trim()
            )),
            End::Cancelled => Err("it was cancelled".into()),
            End::Late | End::TooMuch => Err(format!("git {name} took too long, or printed too much")),
        }
    }

    fn words(&self, words: &str, more: &[&OsStr]) -> Result<Vec<u8>, String> {
        let words: Vec<&OsStr> = words.split(' ').map(OsStr::new).chain(more.iter().copied()).collect();
        self.run(&words, b"")
    }

    fn feed(&self, words: &str, input: &[u8]) -> Result<Vec<u8>, String> {
        self.run(&words.split(' ').map(OsStr::new).collect::<Vec<_>>(), input)
    }

    /// The output as one line.
    fn line(&self, words: &str, more: &[&OsStr]) -> Result<String, String> {
        let output = self.words(words, more)?;
        Ok(String::from_utf8_lossy(output.trim_ascii_end()).into_owned())
    }
}

/// The files that a repository knows.
#[derive(Default)]
pub struct Tracked {
    pub files: BTreeSet<PathBuf>,
    /// Submodules, as rows of an index, each with a zero byte at its end.
    modules: Vec<u8>,
}

impl Tracked {
    /// Paths of submodules.
    pub fn modules(&self) -> impl Iterator<Item = PathBuf> {
        let rows = self.modules.split(|byte| *byte == 0);
        rows.filter_map(|row| row.splitn(2, |byte| *byte == b'\t').nth(1))
            .map(|path| OsStr::from_bytes(path).into())
    }
}

/// The repository that `folder` lies in; `None` if there is none.
pub fn root(folder: &Path) -> Option<PathBuf> {
    // The folder `.git` decides. A setting could name any other.
    folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok()).map(ToOwned::to_owned)
}

/// The files in the index of a repository.
pub fn tracked(root: &Path, cancel: &CancelToken) -> Result<Tracked, String> {
    let rows = Git { folder: root, repository: Repository::Parent, cancel }
        .words("ls-files -z --cached --stage", &[])?;
    let mut tracked = Tracked::default();
    // `100644 HASH 0`, a tab, then the path.
    for row in rows.split(|byte| *byte == 0).filter(|row| !row.is_empty()) {
        let Some(at) = row.iter().position(|byte| *byte == b'\t') else { continue };
        if row.starts_with(b"160000 ") {
            tracked.modules.extend([row, b"\0"].concat());
        } else {
            tracked.files.insert(OsStr::from_bytes(row.get(at + 1..).unwrap_or_default()).into());
        }
    }
    Ok(tracked)
}

/// States of a copy's files, and the commit of the first one.
pub struct Store {
    folder: PathBuf,
    /// Objects of the parent's repository.
    objects: PathBuf,
    base: String,
}

impl Store {
    /// Makes both repositories for the copy at `tree` of `root`, with a commit of what the files are. `folder` is for
    /// the one of states.
    pub fn create(
        root: &Path,
        folder: &Path,
        tree: &Path,
        record: &Record,
        tracked: &Tracked,
        cancel: &CancelToken,
    ) -> Result<Self, String> {
        let parent = Git { folder: root, repository: Repository::Parent, cancel };
        let paths = parent.words(
            "rev-parse --git-path objects --git-path shallow --git-path info/exclude --show-object-format",
            &[],
        )?;
        let mut paths = paths.split(|byte| *byte == b'\n');
        let mut next = || OsStr::from_bytes(paths.next().unwrap_or_default()).to_owned();
        let [objects, shallow, exclude] = [(); 3].map(|()| root.join(next()));
        let format = next();
        let objects = objects.canonicalize().map_err(|error| format!("{}: {error}", objects.display()))?;
        let mut init: Vec<&OsStr> = ["init", "-q", "--template="].map(OsStr::new).to_vec();
        let format = format!("--object-format={}", format.to_string_lossy());
        // Old versions of git know one format, and not the word.
        if !format.ends_with("=sha1") {
            init.push(OsStr::new(&format));
        }
        for (words, place) in [(Some("--bare"), folder), (None, tree)] {
            let words: Vec<&OsStr> = init.iter().copied().chain(words.map(OsStr::new)).collect();
            let git = Git { folder: tree, repository: Repository::Made(None), cancel };
            git.run(&[&words[..], &[place.as_os_str()]].concat(), b"")?;
        }
        let refs = parent.words("for-each-ref", &["--format=%(objectname) %(refname)".as_ref()])?;
        let own = tree.join(".git");
        let write = || -> io::Result<()> {
            let line = |path: &Path| [path.as_os_str().as_bytes(), b"\n"].concat();
            fs::write(folder.join("objects/info/alternates"), line(&objects))?;
            fs::write(own.join("objects/info/alternates"), line(&folder.join("objects")))?;
            for git in [folder, &own] {
                fs::write(git.join("packed-refs"), &refs)?;
                for (from, name) in [(&shallow, "shallow"), (&exclude, "info/exclude")] {
                    fs::create_dir_all(git.join("info"))?;
                    // There need not be one.
                    if let Ok(text) = fs::read(from) {
                        fs::write(git.join(name), text)?;
                    }
                }
            }
            Ok(())
        };
        let say = |error: io::Error| format!("The repository of the copy cannot be made: {error}");
        write().map_err(say)?;

        let mut store = Self { folder: folder.to_owned(), objects, base: String::new() };
        let git = store.git(tree, cancel);
        let rows = store.rows(tree, record.iter().map(|(path, id)| (path.as_path(), Some(id))), cancel)?;
        git.feed("update-index -z --add --index-info", &[&tracked.modules[..], &rows].concat())?;
        let head = parent.line("rev-parse --verify -q HEAD", &[]).ok();
        store.base = store.commit(tree, head.as_deref(), "State of the files", cancel)?;
        fs::copy(folder.join("index"), own.join("index")).map_err(say)?;
        fs::write(own.join("HEAD"), format!("{}\n", store.base)).map_err(say)?;
        Ok(store)
    }

    fn git<'a>(&'a self, tree: &'a Path, cancel: &'a CancelToken) -> Git<'a> {
        Git { folder: tree, repository: Repository::Made(Some(&self.folder)), cancel }
    }

    /// Takes up files, byte for byte, and returns their rows of an index.
    fn rows<'a>(
        &self,
        tree: &Path,
        files: impl Iterator<Item = (&'a Path, Option<&'a Id>)>,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, String> {
        let link = self.folder.join("link");
        let (mut kept, mut names, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (path, id) in files {
            let bytes = path.as_os_str().as_bytes();
            let (mode, file) = match id {
                Some(Id::File { runs: true, .. }) => ("100755", path.to_owned()),
                Some(Id::File { .. }) => ("100644", path.to_owned()),
                // Git would follow a link.
                Some(Id::Link(target)) => {
                    let file = link.join(kept.len().to_string());
                    let write = fs::create_dir_all(&link)
                        .and_then(|()| fs::write(&file, target.as_os_str().as_bytes()));
                    write.map_err(|error| format!("{}: {error}", file.display()))?;
                    ("120000", file)
                }
                Some(Id::Other) => continue,
                None => {
                    let zeros = "0".repeat(self.base.len());
                    gone.extend([b"0 ", zeros.as_bytes(), b"\t", bytes, b"\0"].concat());
                    continue;
                }
            };
            names.extend(quoted(file.as_os_str().as_bytes()));
            kept.push((mode, bytes));
        }
        let hashes = if kept.is_empty() {
            Vec::new()
        } else {
            self.git(tree, cancel).feed("hash-object -w --no-filters --stdin-paths", &names)?
        };
        let hashes = hashes.split(|byte| *byte == b'\n');
        let rows = kept
            .iter()
            .zip(hashes)
            .flat_map(|((mode, path), hash)| [mode.as_bytes(), b" ", hash, b"\t", path, b"\0"].concat());
        // What goes makes room for what comes.
        gone.extend(rows);
        let _ = fs::remove_dir_all(link);
        Ok(gone)
    }

    fn commit(
        &self,
        tree: &Path,
        parent: Option<&str>,
        message: &str,
        cancel: &CancelToken,
    ) -> Result<String, String> {
        let git = self.git(tree, cancel);
        let state = git.line("write-tree", &[])?;
        let parent = parent.map(|parent| ["-p", parent]);
        let words = [state.as_str(), "-m", message].into_iter().chain(parent.into_iter().flatten());
        git.line("commit-tree", &words.map(OsStr::new).collect::<Vec<_>>())
    }

    /// Makes a commit of the changes on top of the first one.
    pub fn end(&self, tree: &Path, changed: &[Changed], cancel: &CancelToken) -> Result<String, String> {
        let files = changed.iter().map(|changed| (changed.path.as_path(), changed.end.as_ref()));
        let rows = self.rows(tree, files, cancel)?;
        self.git(tree, cancel).feed("update-index -z --add --index-info", &rows)?;
        self.commit(tree, Some(&self.base), "Changes", cancel)
    }

    /// The content that a file had at first.
    pub fn content(&self, path: &Path, cancel: &CancelToken) -> Result<Vec<u8>, String> {
        let name = [OsStr::new(&self.base), path.as_os_str()].join(OsStr::new(":"));
        self.git(&self.folder, cancel).words("cat-file blob", &[&name])
    }

    pub fn patch(&self, end: &str, cancel: &CancelToken) -> Result<Vec<u8>, String> {
        let words =
            "diff-tree -p --binary --no-color --no-ext-diff --no-textconv --src-prefix=a/ --dst-prefix=b/";
        self.git(&self.folder, cancel).words(words, &[OsStr::new(&self.base), OsStr::new(end)])
    }

    /// True if the helper has made branches, tags or a stash in its repository.
    pub fn has_references(&self, tree: &Path) -> bool {
        let own = tree.join(".git");
        let read = |path: PathBuf| fs::read(path).unwrap_or_default();
        let loose = WalkDir::new(own.join("refs")).into_iter().flatten();
        loose.into_iter().any(|entry| entry.file_type().is_file())
            || read(own.join("packed-refs")) != read(self.folder.join("packed-refs"))
    }

    /// Makes a branch of `root` at `commit`: `pi/NAME`, with a number if there is one already.
    pub fn branch(
        &self,
        root: &Path,
        name: &str,
        commit: &str,
        sandbox: Option<&Sandbox>,
    ) -> Result<String, String> {
        let Some(sandbox) = sandbox else {
            return self.make_branch(root, name, commit);
        };
        // The parent's `.git` can lead to any other folder.
        if !sandbox.allows(&self.objects) {
            return Err(format!("the sandbox does not allow to change {}", self.objects.display()));
        }
        sandbox.run(|| Ok(self.make_branch(root, name, commit))).map_err(|error| error.to_string())?
    }

    fn make_branch(&self, root: &Path, name: &str, commit: &str) -> Result<String, String> {
        self.give_objects().map_err(|error| format!("{}: {error}", self.objects.display()))?;
        let cancel = CancelToken::new();
        let git = Git { folder: root, repository: Repository::Parent, cancel: &cancel };
        let mut fault = String::new();
        for number in 1..100 {
            let branch = if number == 1 { format!("pi/{name}") } else { format!("pi/{name}-{number}") };
            let reference = format!("refs/heads/{branch}");
            // Nothing: there must be no such branch.
            let words = [OsStr::new(&reference), OsStr::new(commit), OsStr::new("")];
            match git.words("update-ref", &words) {
                Ok(_) => return Ok(branch),
                Err(error) => fault = error,
            }
            if !fault.contains("already exists") {
                break;
            }
        }
        Err(fault)
    }

    /// Copies the own objects to the parent's.
    fn give_objects(&self) -> io::Result<()> {
        let own = self.folder.join("objects");
        // A pack comes before its index, without which it is not used.
        let files = WalkDir::new(&own).sort_by(|one, other| other.file_name().cmp(one.file_name()));
        for entry in files {
            let entry = entry.map_err(io::Error::from)?;
            let Ok(name) = entry.path().strip_prefix(&own) else { continue };
            let target = self.objects.join(name);
            if !entry.file_type().is_file() || name.starts_with("info") || target.exists() {
                continue;
            }
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder)?;
            }
            // Git removes such files itself if they are left behind.
            let temp = target.with_file_name(format!("tmp_obj_{}", entry.file_name().to_string_lossy()));
            let placed = fs::copy(entry.path(), &temp).and_then(|_| fs::rename(&temp, &target));
            placed.inspect_err(|_| drop(fs::remove_file(&temp)))?;
        }
        Ok(())
    }
}

/// A line with a path in git's quotes.
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut line = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            0..=31 => line.extend(format!("\\{byte:03o}").bytes()),
            _ => line.push(*byte),
        }
    }
    line.extend(b"\"\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_git_reads_them() {
        for (name, expected) in [
            ("a b", "\"a b\"\n"),
            ("a\"\\", "\"a\\\"\\\\\"\n"),
            ("a\nb\r", "\"a\\012b\\015\"\n"),
            ("é", "\"é\"\n"),
        ] {
            assert_eq!(std::str::from_utf8(&quoted(name.as_bytes())), Ok(expected));
        }
    }
}
