//! Applies ignore files to the entries of a search.
//!
//! The rules are git's: `.gitignore` in every folder from the root of the repository down, then its
//! `info/exclude`, then the user's own file; the deepest matching rule decides, in one file the last.
//! `.ignore` files take precedence. A nested repository does not inherit rules. Outside of a repository
//! ignore files apply from the working folder down. An ignored folder is not entered, so no rule can
//! re-include its content.
//!
//! A search of a named folder does not check whether that folder itself is ignored.

mod git;
#[cfg(test)]
mod tests;

use super::backend::Backend;
use crate::base::ignore::Rules;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The rules that apply in one folder. Cheap to clone.
///
/// Paths are absolute, as bytes, without a trailing slash: the root of the file system is empty.
#[derive(Clone, Default)]
pub struct Scope {
    /// `.ignore` files.
    own: Option<Arc<Layer>>,
    /// `.gitignore` files.
    git: Option<Arc<Layer>>,
    /// `info/exclude`, then the user's file.
    shared: Option<Arc<Layer>>,
    user: Arc<Rules>,
}

/// The rules of an ignore file, and the layer that decides if they do not match.
struct Layer {
    rules: Arc<Rules>,
    /// Offset at which paths for the rules begin.
    start: usize,
    next: Option<Arc<Layer>>,
}

/// The files in a folder that affect ignoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub ignore: bool,
    pub gitignore: bool,
    pub git: bool,
}

impl Scope {
    /// The rules that apply in `dir`, without its own files (see [`Scope::enter`]). All paths are absolute
    /// and free of links.
    pub fn load(
        backend: &dyn Backend,
        dir: &Path,
        cwd: &Path,
        home: Option<&Path>,
        xdg_config: Option<&Path>,
    ) -> Self {
        let top =
            git::repository(backend, dir).or_else(|| dir.starts_with(cwd).then_some(cwd)).unwrap_or(dir);
        let user = git::global(backend, home, xdg_config)
            .and_then(|path| git::read(backend, &path))
            .map(|text| Arc::new(Rules::parse(&text)))
            .unwrap_or_default();
        let mut scope = Self { shared: layer(user.clone(), path_bytes(top), None), user, ..Self::default() };
        let mut above: Vec<&Path> =
            dir.ancestors().skip(1).take_while(|folder| folder.starts_with(top)).collect();
        above.reverse();
        for folder in above {
            let there = |name| backend.stat(&folder.join(name)).is_ok();
            let marks =
                Marks { ignore: there(".ignore"), gitignore: there(".gitignore"), git: there(".git") };
            scope = scope.enter(backend, path_bytes(folder), marks);
        }
        scope
    }

    /// Adds the rules of a folder's own files.
    #[must_use]
    pub fn enter(mut self, backend: &dyn Backend, dir: &[u8], marks: Marks) -> Self {
        let folder = if dir.is_empty() { Path::new("/") } else { Path::new(OsStr::from_bytes(dir)) };
        let read = |path: &Path| {
            let text = git::read(backend, path)?;
            Some(Arc::new(Rules::parse(&text)))
        };
        if marks.git {
            self.git = None;
            self.shared = layer(self.user.clone(), dir, None);
            if let Some(rules) = read(&git::exclude(backend, folder)) {
                self.shared = layer(rules, dir, self.shared.take());
            }
        }
        if marks.ignore
            && let Some(rules) = read(&folder.join(".ignore"))
        {
            self.own = layer(rules, dir, self.own.take());
        }
        if marks.gitignore
            && let Some(rules) = read(&folder.join(".gitignore"))
        {
            self.git = layer(rules, dir, self.git.take());
        }
        self
    }

    /// True if an entry of the folder is ignored. Its name starts at `name_at` of `path`.
    pub fn ignores(&self, path: &[u8], name_at: usize, is_dir: bool) -> bool {
        let name = path.get(name_at..).unwrap_or_default();
        [&self.own, &self.git, &self.shared]
            .into_iter()
            .find_map(|chain| {
                let mut layer = chain.as_deref();
                while let Some(here) = layer {
                    let path = path.get(here.start..).unwrap_or_default();
                    let verdict = here.rules.verdict(path, name, is_dir);
                    if verdict.is_some() {
                        return verdict;
                    }
                    layer = here.next.as_deref();
                }
                None
            })
            .unwrap_or(false)
    }
}

/// Puts a layer in front of `next`; without rules `next` is returned.
fn layer(rules: Arc<Rules>, dir: &[u8], next: Option<Arc<Layer>>) -> Option<Arc<Layer>> {
    if rules.is_empty() {
        return next;
    }
    Some(Arc::new(Layer { rules, start: dir.len() + 1, next }))
}

/// A path as bytes for [`Scope`].
pub fn path_bytes(path: &Path) -> &[u8] {
    let bytes = path.as_os_str().as_bytes();
    bytes.strip_suffix(b"/").unwrap_or(bytes)
}
