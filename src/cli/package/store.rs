//! Installs packages with the npm and git programs, into the folders that the TypeScript pi uses.
//!
//! Install scripts of packages do not run unless the user allows them. Programs have no terminal and no keys of
//! providers, and end with pi. npm checks what it fetches against the checksums of its lock file; a git package is
//! its commit.

use super::version::newest;
use crate::base::cancel::CancelToken;
use crate::base::{executable, file};
use crate::mode::report;
use crate::resources::package::{Package, PackageSource, Store, manifest};
use crate::resources::settings::Settings;
use crate::runtime::service;
use crate::tools::process::peer::{self, Program};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for a question to a registry or a git server.
const LOOKUP_MAX: Duration = Duration::from_secs(10);
/// Maximum output of a program.
const OUTPUT_MAX: usize = 16 << 20;

/// What an update changed: the version or the commit before and after.
pub struct Change {
    pub from: Option<String>,
    pub to: Option<String>,
}

pub struct Installer {
    /// The npm program and its first arguments.
    npm: Vec<String>,
    /// True if install scripts of packages may run.
    allows_scripts: bool,
}

/// The package managers whose arguments are known.
#[derive(Clone, Copy, PartialEq)]
enum Manager {
    Npm,
    Pnpm,
    Bun,
    Other,
}

impl Manager {
    fn named(word: &str) -> Option<Self> {
        match word.rsplit('/').next()? {
            "npm" => Some(Self::Npm),
            "pnpm" => Some(Self::Pnpm),
            "bun" => Some(Self::Bun),
            _ => None,
        }
    }
}

const PNPM: [&str; 3] = [
    "--config.auto-install-peers=false",
    "--config.strict-peer-dependencies=false",
    "--config.strict-dep-builds=false",
];
const NPM: [&str; 3] = ["--legacy-peer-deps", "--no-audit", "--no-fund"];

impl Installer {
    pub fn new(settings: &Settings, allows_scripts: bool) -> Self {
        let npm =
            settings.texts("npmCommand").filter(|words| words.first().is_some_and(|word| !word.is_empty()));
        Self { npm: npm.unwrap_or_else(|| vec!["npm".to_owned()]), allows_scripts }
    }

    /// Installs a package, or brings an installed one to what its source names.
    pub fn install(&self, source: &PackageSource, store: &Store) -> Result<(), String> {
        match source {
            PackageSource::Npm { spec, .. } => self.npm_install(std::slice::from_ref(spec), store),
            PackageSource::Git { .. } => self.git_install(source, store),
            PackageSource::Local(_) => Ok(()),
        }
    }

    /// Removes the files of a package; those of a path stay.
    pub fn remove(&self, source: &PackageSource, store: &Store) -> Result<(), String> {
        match (source, store.folder(source)) {
            (PackageSource::Npm { name, .. }, _) => {
                let Ok(root) = store.npm().canonicalize() else { return Ok(()) };
                let place = root.to_string_lossy().into_owned();
                let mut args = vec!["uninstall", name];
                match self.manager() {
                    Manager::Bun => args.extend(["--cwd", &place]),
                    Manager::Pnpm => args.extend(["--prefix", &place]),
                    Manager::Npm | Manager::Other => {
                        args.extend(["--prefix", &place]);
                        args.extend(NPM);
                    }
                }
                args.push("--ignore-scripts");
                self.run_npm(&args, &root, None).map(drop)
            }
            (PackageSource::Git { .. }, Some(folder)) => {
                let failed = |error| format!("{}: could not be removed: {error}", folder.display());
                match fs::remove_dir_all(&folder) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                    _ => {}
                }
                let _ = fs::remove_file(mark(&folder));
                remove_empty(&folder, &store.git());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Installs the newest versions of npm packages that the settings allow, all of one store. Gives what changed for
    /// each package, in order.
    pub fn update_npm(&self, packages: &[&Package], store: &Store) -> Result<Vec<Option<Change>>, String> {
        let mut specs = Vec::new();
        let mut before = Vec::new();
        for package in packages {
            let installed = package.version();
            let newest = installed.as_ref().and_then(|installed| self.newer(package, installed).transpose());
            if !matches!((&installed, &newest), (Some(_), None)) {
                specs.extend(latest(&package.source));
            }
            before.push((installed, newest.and_then(Result::ok)));
        }
        if !specs.is_empty() {
            self.npm_install(&specs, store)?;
        }
        let changes = packages.iter().zip(before).map(|(package, (from, newest))| {
            let to = package.version();
            if let (true, Some(now), Some(newest)) = (from == to, &to, newest) {
                report::warning(format_args!(
                    "{} is still {now} (the registry reports {newest}); its data may be old, try again in a few minutes",
                    package.text
                ));
            }
            (from != to).then_some(Change { from, to })
        });
        Ok(changes.collect())
    }

    /// Moves a git package to what its source names. Gives what changed.
    pub fn update_git(&self, source: &PackageSource, store: &Store) -> Result<Option<Change>, String> {
        let Some(folder) = store.folder(source) else { return Ok(None) };
        let head = || self.git(&["rev-parse", "HEAD"], &folder).ok().filter(|_| folder.exists());
        let from = head();
        self.git_install(source, store)?;
        let to = head();
        Ok((from != to).then_some(Change { from, to }))
    }

    /// Installs a package of the command line, or looks for a newer one. Without network, what is there is used.
    pub fn refresh(&self, package: &Package, store: &Store, no_network: Option<&str>) -> Result<(), String> {
        let fault = package.fault();
        match (&fault, no_network) {
            (Some(_), Some(why)) => return Err(refused(&package.text, why)),
            (Some(_), None) => {
                report::note(format_args!("Installing {}...", package.text));
                return self
                    .install(&package.source, store)
                    .map_err(|error| format!("Could not install {}: {error}", package.text));
            }
            (None, Some(_)) => return Ok(()),
            (None, None) => {}
        }
        // What is there is used if the look for something newer fails.
        let looked = match &package.source {
            PackageSource::Git { reference, .. } if !self.is_at(&package.root, reference.as_deref()) => {
                self.update_git(&package.source, store).map(drop)
            }
            PackageSource::Npm { .. } if !package.source.is_pinned() => {
                self.update_npm(&[package], store).map(drop)
            }
            _ => Ok(()),
        };
        if let Err(error) = looked {
            report::warning(format_args!("{} is used as it was fetched before: {error}", package.text));
        }
        Ok(())
    }

    /// The version that the registry has for a package, if it is newer than the installed one.
    fn newer(&self, package: &Package, installed: &str) -> Result<Option<String>, String> {
        let PackageSource::Npm { spec, name, version } = &package.source else { return Ok(None) };
        let spec = if version.is_some() { spec } else { name };
        let folder = package.root.parent().unwrap_or(&package.root);
        let answer = self.run_npm(&["view", spec, "version", "--json"], folder, Some(LOOKUP_MAX))?;
        let found = newest(&answer).ok_or("the registry named no version")?;
        Ok((super::version::Version::parse(&found) > super::version::Version::parse(installed))
            .then_some(found))
    }

    fn npm_install(&self, specs: &[String], store: &Store) -> Result<(), String> {
        let root = store.npm();
        prepare_npm(&root).map_err(|error| format!("{}: could not be made: {error}", root.display()))?;
        // npm writes wrong paths into its lock file when its folder is a link.
        let root = root.canonicalize().unwrap_or(root);
        let place = root.to_string_lossy().into_owned();
        let mut args = vec!["install"];
        args.extend(specs.iter().map(String::as_str));
        match self.manager() {
            Manager::Bun => args.extend(["--cwd", &place, "--omit=peer"]),
            Manager::Pnpm => {
                args.extend(["--prefix", &place]);
                args.extend(PNPM);
            }
            Manager::Npm | Manager::Other => {
                args.extend(["--prefix", &place]);
                args.extend(NPM);
            }
        }
        self.without_scripts(&mut args);
        self.run_npm(&args, &root, None).map(drop)
    }

    /// Installs what the package in `folder` depends on.
    fn dependencies(&self, folder: &Path) -> Result<(), String> {
        if !folder.join("package.json").exists() {
            return Ok(());
        }
        let mut args = vec!["install"];
        match self.manager() {
            Manager::Bun => args.extend(["--omit=dev", "--omit=peer"]),
            Manager::Pnpm => {
                args.push("--prod");
                args.extend(PNPM);
            }
            Manager::Npm => {
                args.push("--omit=dev");
                args.extend(NPM);
            }
            Manager::Other => {}
        }
        self.without_scripts(&mut args);
        self.run_npm(&args, folder, None).map(drop)
    }

    fn without_scripts(&self, args: &mut Vec<&str>) {
        if !self.allows_scripts {
            args.push("--ignore-scripts");
        }
    }

    fn git_install(&self, source: &PackageSource, store: &Store) -> Result<(), String> {
        let (PackageSource::Git { url, reference, .. }, Some(folder)) = (source, store.folder(source)) else {
            return Ok(());
        };
        if folder.exists() {
            return self.reconcile(&folder, reference.as_deref());
        }
        let parent = folder.parent().unwrap_or(&folder).to_owned();
        let made = fs::create_dir_all(&parent).and_then(|()| ignore_all(&store.git()));
        made.map_err(|error| format!("{}: could not be made: {error}", parent.display()))?;
        let _ = fs::remove_file(mark(&folder));
        // A package appears when it is whole: what an end in the middle leaves is no package.
        let fresh = beside(&folder, "pi-installing");
        let _ = fs::remove_dir_all(&fresh);
        let place = fresh.to_string_lossy().into_owned();
        let done = self.git(&["clone", "--", url, &place], &parent).and_then(|_| {
            if let Some(reference) = reference {
                self.git(&["checkout", reference, "--"], &fresh)?;
            }
            self.dependencies(&fresh)?;
            fs::rename(&fresh, &folder)
                .map_err(|error| format!("{}: could not be made: {error}", folder.display()))
        });
        if done.is_err() {
            let _ = fs::remove_dir_all(&fresh);
            remove_empty(&fresh, &store.git());
        }
        done
    }

    /// Brings a checkout to its tag, commit or branch. A tag or a commit that is there is never looked up again.
    fn reconcile(&self, folder: &Path, reference: Option<&str>) -> Result<(), String> {
        let commit = |name: &str| {
            self.git(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")], folder)
        };
        let wanted = match reference {
            Some(reference) => {
                let tag = format!("refs/tags/{reference}");
                if self.is_at(folder, Some(reference)) {
                    commit("HEAD")
                } else if let Ok(known) = commit(&tag) {
                    Ok(known)
                } else if self.git(&["fetch", "--no-tags", "origin", &format!("{tag}:{tag}")], folder).is_ok()
                {
                    commit(&tag)
                } else {
                    self.git(&["fetch", "--no-tags", "origin", reference], folder)?;
                    commit("FETCH_HEAD")
                }
            }
            None => {
                let upstream = self.git(&["rev-parse", "--abbrev-ref", "@{upstream}"], folder);
                match upstream.ok().as_deref().and_then(|name| name.strip_prefix("origin/")) {
                    Some(branch) => {
                        let branch = format!("+refs/heads/{branch}:refs/remotes/origin/{branch}");
                        self.git(&["fetch", "--prune", "--no-tags", "origin", &branch], folder)?;
                        commit("@{upstream}")
                    }
                    // A checkout of a tag is on no branch.
                    None => {
                        self.git(&["fetch", "--no-tags", "origin", "HEAD"], folder)?;
                        commit("FETCH_HEAD")
                    }
                }
            }
        }?;
        let mark = mark(folder);
        if commit("HEAD")? == wanted {
            if !mark.exists() && !lacks_dependencies(folder) {
                return Ok(());
            }
        } else {
            fs::write(&mark, "")
                .map_err(|error| format!("{}: could not be written: {error}", mark.display()))?;
            self.git(&["reset", "--hard", &wanted], folder)?;
        }
        if mark.exists() {
            self.git(&["clean", "-fdx"], folder)?;
        }
        self.dependencies(folder)?;
        let _ = fs::remove_file(&mark);
        Ok(())
    }

    /// True if `reference` is the commit that is checked out.
    fn is_at(&self, folder: &Path, reference: Option<&str>) -> bool {
        let is_hash =
            |text: &&str| (7..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
        let Some(hash) = reference.filter(is_hash) else { return false };
        let head = self.git(&["rev-parse", "HEAD"], folder);
        head.is_ok_and(|head| head.starts_with(&hash.to_lowercase()))
    }

    fn manager(&self) -> Manager {
        let after = self.npm.iter().rposition(|word| word == "--").map_or(0, |at| at + 1);
        let mut words = self.npm.iter().skip(after);
        words.find_map(|word| Manager::named(word)).unwrap_or(Manager::Other)
    }

    fn run_npm(&self, args: &[&str], folder: &Path, limit: Option<Duration>) -> Result<String, String> {
        let (program, first) = self.npm.split_first().ok_or("the setting npmCommand is empty")?;
        let args: Vec<&str> = first.iter().map(String::as_str).chain(args.iter().copied()).collect();
        let help = "install Node.js, or name another program in the setting npmCommand";
        run(program, &args, folder, limit, help)
    }

    fn git(&self, args: &[&str], folder: &Path) -> Result<String, String> {
        run("git", args, folder, None, "install git")
    }
}

/// Which option or variable forbids the network, if one does.
pub fn no_network(offline: bool) -> Option<&'static str> {
    let is_set = std::env::var_os("PI_OFFLINE").is_some_and(|value| !value.is_empty());
    if offline { Some("--offline") } else { is_set.then_some("PI_OFFLINE") }
}

/// The message for a download that may not be made.
pub fn refused(source: &str, why: &str) -> String {
    format!("Could not install {source}: {why} allows no network")
}

/// The specification of the newest version that a source allows.
fn latest(source: &PackageSource) -> Option<String> {
    match source {
        PackageSource::Npm { spec, version: Some(_), .. } => Some(spec.clone()),
        PackageSource::Npm { name, .. } => Some(format!("{name}@latest")),
        _ => None,
    }
}

/// Runs a program to its end. Gives its output without the spaces around; an error ends with the last lines that the
/// program printed.
fn run(
    program: &str,
    args: &[&str],
    folder: &Path,
    limit: Option<Duration>,
    help: &str,
) -> Result<String, String> {
    const TOLD_LINES: usize = 12;
    let path = match program.contains('/') {
        true => PathBuf::from(program),
        false => executable::find(program)
            .ok_or_else(|| format!("the program {program} is needed, and is not in PATH: {help}"))?,
    };
    let mut env = service::environment();
    env.insert("GIT_TERMINAL_PROMPT".into(), "0".into());
    let cwd = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder).to_owned();
    let words: Vec<OsString> = args.iter().map(Into::into).collect();
    let job = Program { path, args: words, cwd, env };
    let command = || format!("{program} {}", args.join(" "));
    let ran = peer::run(&job, limit, OUTPUT_MAX, &CancelToken::new())
        .map_err(|error| format!("{} could not be started: {error}", command()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if ran.code == Some(0) && !ran.killed {
        return Ok(text(&ran.stdout));
    }
    let said = match text(&ran.stderr) {
        said if said.is_empty() => text(&ran.stdout),
        said => said,
    };
    let lines: Vec<&str> = said.lines().collect();
    let last = lines.get(lines.len().saturating_sub(TOLD_LINES)..).unwrap_or_default().join("\n");
    let how = match (ran.killed, ran.truncated, ran.code) {
        (true, true, _) => "printed too much".to_owned(),
        (true, false, _) => format!("took longer than {} s", limit.unwrap_or_default().as_secs()),
        (_, _, Some(code)) => format!("failed with code {code}"),
        (_, _, None) => "was ended by a signal".to_owned(),
    };
    Err(format!("{} {how}{}{last}", command(), if last.is_empty() { "" } else { ":\n" }))
}

/// Makes the private project that npm installs packages into.
fn prepare_npm(root: &Path) -> std::io::Result<()> {
    fs::create_dir_all(root)?;
    ignore_all(root)?;
    let package = root.join("package.json");
    match package.exists() {
        true => Ok(()),
        false => file::replace(&package, b"{\n  \"name\": \"pi-extensions\",\n  \"private\": true\n}"),
    }
}

/// Keeps the packages of a project out of its repository.
fn ignore_all(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let rules = folder.join(".gitignore");
    if rules.exists() { Ok(()) } else { file::replace(&rules, b"*\n!.gitignore\n") }
}

/// A hidden path beside a package.
fn beside(folder: &Path, what: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.{what}"))
}

/// The file that says that an update of a git package has begun and not ended.
fn mark(folder: &Path) -> PathBuf {
    beside(folder, "pi-update-incomplete")
}

/// True if a package that `package.json` names is not in `node_modules`.
fn lacks_dependencies(folder: &Path) -> bool {
    let manifest = manifest(folder);
    let mut names = manifest["dependencies"].as_object().into_iter().flatten().map(|(name, _)| name);
    names.any(|name| {
        !name.split('/').any(|part| part == "..") && !folder.join("node_modules").join(name).exists()
    })
}

/// Removes the empty folders above `folder`, below `top`.
fn remove_empty(folder: &Path, top: &Path) {
    let parents = folder.ancestors().skip(1).take_while(|parent| parent.starts_with(top) && *parent != top);
    for parent in parents {
        if fs::remove_dir(parent).is_err() {
            break;
        }
    }
}
