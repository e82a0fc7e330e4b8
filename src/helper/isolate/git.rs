//! Copies of git repositories: work trees of their own, based on the state of the parent's files.
//!
//! A state of files is a tree object, made with an index of its own: neither the index nor the branches of the
//! parent are touched.

use super::{Changed, Id, Ids};
use crate::base::cancel::CancelToken;
use crate::base::child::{End, Job, Until, Wanted, run};
use crate::base::executable;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(600);
const OUTPUT_MAX: usize = 256 << 20;

/// A repository, and the commit that a copy of it is based on.
pub struct Repository {
    root: PathBuf,
    base: String,
    /// Index for states of the parent's files.
    index: PathBuf,
}

/// A state of files.
struct State {
    tree: String,
    /// Repositories inside, whose files are not part of it.
    inside: Vec<PathBuf>,
}

struct Git<'a> {
    folder: &'a Path,
    index: Option<&'a Path>,
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
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").args(words);
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "pi").env(format!("GIT_{role}_EMAIL"), "pi@localhost");
        }
        if let Some(index) = self.index {
            command.env("GIT_INDEX_FILE", index);
        }
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
            End::Done => Err(format!("git {name}: {}", String::from_utf8_lossy(&ran.errors).trim())),
            End::Cancelled => Err("it was cancelled".into()),
            End::Late | End::TooMuch => Err(format!("git {name} took too long, or printed too much")),
        }
    }

    fn words(&self, words: &str, more: &[&OsStr]) -> Result<Vec<u8>, String> {
        let words: Vec<&OsStr> = words.split(' ').map(OsStr::new).chain(more.iter().copied()).collect();
        self.run(&words, b"")
    }

    /// The output as one line.
    fn line(&self, words: &str, more: &[&OsStr]) -> Result<OsString, String> {
        let output = self.words(words, more)?;
        Ok(OsString::from_vec(output.strip_suffix(b"\n").unwrap_or(&output).to_vec()))
    }

    fn name(&self, words: &str, more: &[&OsStr]) -> Result<String, String> {
        self.line(words, more).map(|name| name.to_string_lossy().into_owned())
    }

    /// Takes up the files of the work tree. The index begins as a copy of the one in use, which knows their stats.
    fn state(&self, index: &Path) -> Result<State, String> {
        if !index.exists() {
            let own = self.folder.join(self.line("rev-parse --git-path index", &[])?);
            if own.exists() {
                fs::copy(&own, index).map_err(|error| format!("The index cannot be copied: {error}"))?;
            }
        }
        let git = Git { index: Some(index), ..*self };
        git.words("add -u", &[])?;
        let new = git.words("ls-files -z --others --exclude-standard", &[])?;
        // The name of a repository ends with a slash.
        let (inside, new): (Vec<&[u8]>, Vec<&[u8]>) = new
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .partition(|name| name.ends_with(b"/"));
        let new: Vec<u8> = new.into_iter().flat_map(|name| [name, b"\0"]).flatten().copied().collect();
        let words = ["update-index", "-z", "--add", "--stdin"].map(OsStr::new);
        git.run(&words, &new)?;
        let staged = git.words("ls-files -z --stage", &[])?;
        let links = staged.split(|byte| *byte == 0).filter(|row| row.starts_with(b"160000 "));
        let links = links.filter_map(|row| row.splitn(2, |byte| *byte == b'\t').nth(1));
        let inside = inside.into_iter().chain(links).map(|name| PathBuf::from(OsStr::from_bytes(name)));
        Ok(State { tree: git.name("write-tree", &[])?, inside: inside.collect() })
    }
}

impl Repository {
    /// The repository that `folder` lies in; `None` if there is none.
    pub fn root(folder: &Path, cancel: &CancelToken) -> Option<PathBuf> {
        // The folder `.git` decides, not git, which may not be there.
        let is_root = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        let found = folder.ancestors().find(is_root)?;
        let git = Git { folder, index: None, cancel };
        Some(git.line("rev-parse --show-toplevel", &[]).map_or_else(|_| found.to_owned(), PathBuf::from))
    }

    /// Makes a work tree at `tree` with the present state of the files. Returns notes for the report.
    pub fn copy(
        root: &Path,
        folder: &Path,
        tree: &Path,
        cancel: &CancelToken,
    ) -> Result<(Self, Vec<String>), String> {
        let git = Git { folder: root, index: None, cancel };
        let index = folder.join("index");
        let state = git.state(&index)?;
        let mut words = vec![OsStr::new(&state.tree), OsStr::new("-m"), OsStr::new("State of the files")];
        let head = git.name("rev-parse --verify -q HEAD", &[]).ok();
        if let Some(head) = &head {
            words.extend([OsStr::new("-p"), OsStr::new(head)]);
        }
        let base = git.name("commit-tree", &words)?;
        git.words("worktree add --detach", &[tree.as_os_str(), OsStr::new(&base)])?;
        let notes = match state.inside.as_slice() {
            [] => Vec::new(),
            inside => {
                let names: Vec<String> = inside.iter().map(|path| path.display().to_string()).collect();
                vec![format!("Not in the copy, as repositories of their own: {}", names.join(", "))]
            }
        };
        Ok((Self { root: root.to_owned(), base, index }, notes))
    }

    /// What differs between the base and the state of the copy at `tree`, what it was based on, and the commit of
    /// the state.
    pub fn changes(
        &self,
        folder: &Path,
        tree: &Path,
        cancel: &CancelToken,
    ) -> Result<(Vec<Changed>, String), String> {
        let copy = Git { folder: tree, index: None, cancel };
        let end = copy.state(&folder.join("end"))?;
        let words =
            [OsStr::new(&end.tree), "-p".as_ref(), self.base.as_ref(), "-m".as_ref(), "Changes".as_ref()];
        let end = copy.name("commit-tree", &words)?;
        let changed = self.diff(&self.base, &end, cancel)?;
        Ok((changed, end))
    }

    /// The present ids of files of the parent that differ from the base.
    pub fn present(&self, cancel: &CancelToken) -> Result<Ids, String> {
        let state = Git { folder: &self.root, index: None, cancel }.state(&self.index)?;
        let changed = self.diff(&self.base, &state.tree, cancel)?;
        Ok(changed.into_iter().map(|changed| (changed.path, changed.end)).collect::<HashMap<_, _>>())
    }

    fn diff(&self, from: &str, to: &str, cancel: &CancelToken) -> Result<Vec<Changed>, String> {
        let git = Git { folder: &self.root, index: None, cancel };
        let words = [OsStr::new(from), OsStr::new(to)];
        let rows = git.words("diff-tree -r -z --raw --no-renames --full-index", &words)?;
        let mut rows = rows.split(|byte| *byte == 0);
        let mut changed = Vec::new();
        // `:100644 100644 HASH HASH M`, then the path.
        while let (Some(head), Some(path)) = (rows.next().filter(|row| !row.is_empty()), rows.next()) {
            let head = String::from_utf8_lossy(head);
            let mut words = head.trim_start_matches(':').split(' ');
            let [Some(old_mode), Some(new_mode), Some(old), Some(new)] = [(); 4].map(|()| words.next())
            else {
                return Err("git diff-tree answered in a way that is not understood".into());
            };
            let id = |mode: &str, hash: &str| {
                (mode != "000000")
                    .then(|| Id { is_file: mode.starts_with("100"), text: format!("{mode} {hash}") })
            };
            let (base, end) = (id(old_mode, old), id(new_mode, new));
            changed.push(Changed { path: OsStr::from_bytes(path).into(), base, end });
        }
        Ok(changed)
    }

    /// The content of a file in the base.
    pub fn base_content(&self, id: &Id, cancel: &CancelToken) -> Result<Vec<u8>, String> {
        let hash = id.text.split(' ').nth(1).unwrap_or_default();
        Git { folder: &self.root, index: None, cancel }.words("cat-file blob", &[OsStr::new(hash)])
    }

    pub fn patch(&self, end: &str, cancel: &CancelToken) -> Result<Vec<u8>, String> {
        let words = [OsStr::new(&self.base), OsStr::new(end)];
        Git { folder: &self.root, index: None, cancel }
            .words("diff --binary --no-ext-diff --no-textconv", &words)
    }

    /// Makes a branch at `commit`: `pi/NAME`, with a number if there is one already.
    pub fn branch(&self, name: &str, commit: &str, cancel: &CancelToken) -> Result<String, String> {
        let git = Git { folder: &self.root, index: None, cancel };
        let mut fault = String::new();
        for number in 1..100 {
            let branch = if number == 1 { format!("pi/{name}") } else { format!("pi/{name}-{number}") };
            let reference = format!("refs/heads/{branch}");
            // Zeros: there must be no such branch.
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

    /// Where files of the repository's file system can be put that are not of its tree.
    pub fn store(&self, cancel: &CancelToken) -> Option<PathBuf> {
        let git = Git { folder: &self.root, index: None, cancel };
        Some(self.root.join(git.line("rev-parse --absolute-git-dir", &[]).ok()?))
    }

    /// Removes a work tree, also from the list of the repository.
    pub fn remove(tree: &Path, cancel: &CancelToken) {
        let git = Git { folder: tree, index: None, cancel };
        let _ = git.words("worktree remove --force --force", &[tree.as_os_str()]);
    }
}
