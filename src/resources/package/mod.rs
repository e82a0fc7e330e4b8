//! Packages: folders that bring extensions, skills, prompt templates and themes together.
//!
//! A package comes from npm, from a git repository or from a path. Where packages lie and how settings name them is
//! the TypeScript pi's, so that both programs use what either has installed. Nothing is downloaded here.

mod content;
mod source;

pub use content::{KINDS, manifest};
pub use source::{BadSource, PackageSource, is_exact, is_local};

use super::pattern::{Choice, Plain, last_word};
use super::place::{Kind, Places, tidy};
use super::source::Scope;
use super::walk::programs;
use crate::base::hex::hex;
use ring::digest;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A package of the settings or of the command line, whether it is installed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The source as it was written.
    pub text: String,
    pub source: PackageSource,
    pub scope: Scope,
    /// Where the package lies when it is installed: a folder, or the file of one extension.
    pub root: PathBuf,
    /// The object of the settings, if the entry is one.
    filter: Option<Value>,
}

/// The folders in which the packages of a scope are kept.
#[derive(Clone, Debug)]
pub struct Store {
    pub scope: Scope,
    /// The agent folder, or `.pi` of the project. Relative paths of packages begin there.
    pub base: PathBuf,
}

impl Store {
    pub fn user(agent: &Path) -> Self {
        Self { scope: Scope::User, base: agent.to_owned() }
    }

    pub fn project(cwd: &Path) -> Self {
        Self { scope: Scope::Project, base: cwd.join(".pi") }
    }

    /// The folders for packages of `--extension`.
    pub fn temporary(agent: &Path) -> Self {
        Self { scope: Scope::Temporary, base: agent.join("tmp/extensions") }
    }

    /// The folder that npm installs into.
    pub fn npm(&self) -> PathBuf {
        match self.scope {
            Scope::Temporary => self.base.join("npm").join(short_hash("npm-")),
            _ => self.base.join("npm"),
        }
    }

    /// The folder with all git packages.
    pub fn git(&self) -> PathBuf {
        self.base.join("git")
    }

    /// Where a package from npm or git lies; none for a path.
    pub fn folder(&self, source: &PackageSource) -> Option<PathBuf> {
        match source {
            PackageSource::Npm { name, .. } => Some(self.npm().join("node_modules").join(name)),
            PackageSource::Git { host, path, reference, .. } if self.scope == Scope::Temporary => {
                // Each reference has a folder of its own.
                let kind = format!("git-{host}");
                let reference =
                    reference.as_ref().map(|reference| format!("@{reference}")).unwrap_or_default();
                let hash = short_hash(&format!("{kind}-{path}{reference}"));
                Some(self.base.join(kind).join(hash).join(path))
            }
            PackageSource::Git { host, path, .. } => Some(self.git().join(host).join(path)),
            PackageSource::Local(_) => None,
        }
    }
}

fn short_hash(text: &str) -> String {
    let hash = hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    hash.get(..8).unwrap_or_default().to_owned()
}

/// The source of an entry of `packages`, which is a text or an object.
pub fn source_of(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry["source"].as_str())
}

impl Package {
    /// Makes a package. `resolve` makes the path of a local source absolute.
    pub fn new(text: &str, store: &Store, resolve: impl Fn(&str) -> PathBuf) -> Result<Self, BadSource> {
        let source = PackageSource::parse(text)?;
        let root = match (&source, store.folder(&source)) {
            (PackageSource::Local(path), _) => tidy(&resolve(path)),
            (_, folder) => folder.unwrap_or_default(),
        };
        Ok(Self { text: text.to_owned(), source, scope: store.scope, root, filter: None })
    }

    /// What two entries of one package have in common: the name, or the real path.
    pub fn identity(&self) -> String {
        let path = || self.root.canonicalize().unwrap_or_else(|_| self.root.clone());
        self.source.name().unwrap_or_else(|| format!("local:{}", path().display()))
    }

    /// True if the settings choose among the resources of the package.
    pub fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// True for an entry of a project that only changes what the user's entry of the package says.
    fn is_delta(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter["autoload"] == false)
    }

    /// The version in the package's `package.json`.
    pub fn version(&self) -> Option<String> {
        manifest(&self.root)["version"].as_str().map(str::to_owned)
    }

    /// Why the package cannot be used, and what to do; none if it can.
    pub fn fault(&self) -> Option<String> {
        let (text, local) = (&self.text, if self.scope == Scope::Project { " -l" } else { "" });
        if !self.root.exists() {
            return Some(match self.source {
                PackageSource::Local(_) => format!("Package {text} does not exist: {}", self.root.display()),
                _ => format!("Package {text} is not installed, and not used. Run: pi install{local} {text}"),
            });
        }
        let PackageSource::Npm { version: Some(wanted), .. } = &self.source else { return None };
        let found = self.version().unwrap_or_default();
        let is_other = is_exact(wanted) && wanted.trim_start_matches(['v', '=']) != found;
        is_other.then(|| {
            format!("Package {text} is installed as version {found:?}, and not used. Run: pi install{local} {text}")
        })
    }

    /// The files of a kind, each with true if it is enabled. Filters of the settings choose among what the package
    /// declares.
    pub fn files(&self, kind: Kind, home: Option<&Path>) -> Vec<(PathBuf, bool)> {
        if !KINDS.contains(&kind) || self.fault().is_some() {
            return Vec::new();
        }
        let all = if self.root.is_file() {
            if kind == Kind::Extensions { vec![self.root.clone()] } else { Vec::new() }
        } else {
            content::declared(&self.root, kind).unwrap_or_else(|| match (kind, &self.source) {
                // A folder without any sign of a package is an extension, or a folder of them.
                (Kind::Extensions, PackageSource::Local(_)) => programs(&self.root),
                _ => Vec::new(),
            })
        };
        let filter = self.filter.as_ref().map(|filter| filter[kind.name()].as_array());
        let entries = filter.flatten().map(|entries| {
            entries.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<String>>()
        });
        if self.is_delta() {
            let entries = entries.unwrap_or_default();
            let said = |file: PathBuf| {
                let is_on = last_word(&entries, &file, &self.root, home)?;
                Some((file, is_on))
            };
            return all.into_iter().filter_map(said).collect();
        }
        let rules = entries.as_ref().map(|entries| Choice::new(entries, Plain::Patterns, home));
        let is_on = |file: &Path| match (&entries, &rules) {
            (Some(entries), Some(rules)) => !entries.is_empty() && rules.allow(file, &self.root),
            _ => true,
        };
        all.into_iter().map(|file| (is_on(&file), file)).map(|(is_on, file)| (file, is_on)).collect()
    }
}

/// Reads the packages of the settings: those of the project first. A package of both is the project's, unless its entry
/// there has `"autoload": false`. Gives what is wrong with other entries, too.
pub fn configured(places: &Places<'_>) -> (Vec<Package>, Vec<String>) {
    let (mut kept, mut problems): (Vec<Package>, _) = (Vec::new(), Vec::new());
    for package in all(places, &mut problems) {
        let known = kept.iter().position(|known| known.identity() == package.identity());
        match known.and_then(|at| kept.get_mut(at)) {
            None => kept.push(package),
            Some(known) if known.scope == Scope::Project && package.scope == Scope::User => {
                if known.is_delta() {
                    known.root.clone_from(&package.root);
                    kept.push(package);
                }
            }
            Some(known) if package.scope == Scope::Project => *known = package,
            Some(_) => {}
        }
    }
    (kept, problems)
}

/// Every entry of the settings' packages, those of the project first.
pub fn all(places: &Places<'_>, problems: &mut Vec<String>) -> Vec<Package> {
    let (user, project) = places.settings.lists("packages");
    let entries = [(Store::project(places.cwd), project), (Store::user(places.agent), user)];
    let mut packages = Vec::new();
    for (store, entry) in
        entries.iter().flat_map(|(store, list)| list.iter().map(move |entry| (store, entry)))
    {
        let Some(text) = source_of(entry) else {
            problems.push(format!(
                "packages: {entry} names no source; an entry is a text, or an object with \"source\""
            ));
            continue;
        };
        match Package::new(text, store, |path| places.resolve(path.trim(), &store.base)) {
            Ok(package) => {
                let filter = entry.is_object().then(|| entry.clone());
                packages.push(Package { filter, ..package });
            }
            Err(error) => problems.push(format!("packages: {error}")),
        }
    }
    packages
}

#[cfg(test)]
mod tests;
