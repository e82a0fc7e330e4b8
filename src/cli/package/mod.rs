//! `pi install`, `pi remove`, `pi list`, and `pi update` for packages.
//!
//! Nothing else in pi downloads packages, but for those that `--extension` names.

pub mod named;
mod store;
mod version;

use super::flags::Args;
use super::say::say_plain;
use super::start::Launch;
use crate::base::json::json;
use crate::mode::{exit, report};
use crate::resources::package::{self, Package, PackageSource, Store, source_of};
use crate::resources::pattern::relative;
use crate::resources::settings;
use crate::resources::source::Scope;
use crate::resources::trust::{Project, Store as TrustStore};
use crate::runtime::config::Inputs;
use serde_json::Value;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
pub use store::no_network;
use store::{Change, Installer, refused};

const INSTALL: &str = "pi install <source> [-l] [--approve|--no-approve] [--scripts] [--offline]";
const REMOVE: &str = "pi remove <source> [-l] [--approve|--no-approve]";
const LIST: &str = "pi list [--approve|--no-approve]";

const INSTALL_HELP: &str = "
Install a package and add it to settings.

  -l, --local         for this project (.pi/settings.json)
  -a, --approve       trust the project in this run
  -na, --no-approve   do not use what the project brings
  --scripts           let the install scripts of the package and of what it depends on run
  --offline           refuse to use the network

  pi install npm:@foo/bar@1.0.0
  pi install git:github.com/user/repo@v1
  pi install git:git@github.com:user/repo
  pi install https://github.com/user/repo
  pi install ssh://git@github.com/user/repo
  pi install ./local/path
";
const REMOVE_HELP: &str = "
Remove a package and its entry in the settings. pi uninstall does the same.

  -l, --local         that of this project (.pi/settings.json)
  -a, --approve       trust the project in this run
  -na, --no-approve   do not use what the project brings
";
const LIST_HELP: &str = "
List the packages of your settings and of the project's.

  -a, --approve       trust the project in this run
  -na, --no-approve   do not use what the project brings
";

/// The words of a command about packages.
#[derive(Default)]
struct Words {
    source: Option<String>,
    local: bool,
    approve: Option<bool>,
    scripts: bool,
    offline: bool,
    help: bool,
}

/// Parses the words of `pi NAME`. `flags` are those that the command has beside `--help` and those about trust.
fn parse(words: &[OsString], name: &str, flags: &[&str]) -> Result<Words, String> {
    let mut parsed = Words::default();
    for word in words.iter().map(|word| word.to_string_lossy()) {
        let long = match &*word {
            "-l" => "--local",
            other => other,
        };
        match long {
            "-h" | "--help" => parsed.help = true,
            "-a" | "--approve" => parsed.approve = Some(true),
            "-na" | "--no-approve" => parsed.approve = Some(false),
            flag if flag.starts_with('-') && !flags.contains(&flag) => {
                return Err(format!("Unknown option {word} for \"{name}\"."));
            }
            "--local" => parsed.local = true,
            "--scripts" => parsed.scripts = true,
            "--offline" => parsed.offline = true,
            _ if parsed.source.is_none() => parsed.source = Some(word.into_owned()),
            _ => return Err(format!("Unexpected argument {word}.")),
        }
    }
    Ok(parsed)
}

/// Prints `problem` with the usage. Returns the exit code, which is the TypeScript pi's.
fn usage(problem: &str, usage: &str) -> u8 {
    report::note(format_args!("{problem}\nUsage: {usage}"));
    exit::FAILED
}

fn code(done: Result<u8, String>) -> u8 {
    done.unwrap_or_else(|text| {
        report::error(text);
        exit::FAILED
    })
}

fn inputs(approve: Option<bool>) -> Result<Inputs, String> {
    Launch::unasked(&Args { approve, ..Args::default() })?.inputs()
}

/// Runs `pi install`. Returns the exit code.
pub fn install(words: &[OsString]) -> u8 {
    let words = match parse(words, "install", &["--local", "--scripts", "--offline"]) {
        Ok(words) if words.help => return say_plain(&format!("Usage:\n  {INSTALL}\n{INSTALL_HELP}")),
        Ok(words) => words,
        Err(problem) => return usage(&problem, INSTALL),
    };
    let Some(source) = &words.source else { return usage("Missing install source.", INSTALL) };
    code(inputs(words.approve).and_then(|inputs| {
        let Some(store) = writable(&inputs, words.local) else { return Ok(exit::FAILED) };
        let package = given(&inputs, source, &store)?;
        match (&package.source, no_network(words.offline)) {
            (PackageSource::Local(_), _) if !package.root.exists() => {
                return Err(format!("Path does not exist: {}", package.root.display()));
            }
            (PackageSource::Npm { .. } | PackageSource::Git { .. }, Some(why)) => {
                return Err(refused(source, why));
            }
            _ => {}
        }
        say_plain(&format!("Installing {source}...\n"));
        let installer = Installer::new(&inputs.settings, words.scripts);
        installer.install(&package.source, &store)?;
        add(&inputs, &package, &store)?;
        Ok(say_plain(&format!("Installed {source}\n")))
    }))
}

/// Runs `pi remove` and `pi uninstall`. Returns the exit code.
pub fn remove(words: &[OsString]) -> u8 {
    let words = match parse(words, "remove", &["--local"]) {
        Ok(words) if words.help => return say_plain(&format!("Usage:\n  {REMOVE}\n{REMOVE_HELP}")),
        Ok(words) => words,
        Err(problem) => return usage(&problem, REMOVE),
    };
    let Some(source) = &words.source else { return usage("Missing remove source.", REMOVE) };
    code(inputs(words.approve).and_then(|inputs| {
        let Some(store) = writable(&inputs, words.local) else { return Ok(exit::FAILED) };
        let package = given(&inputs, source, &store)?;
        let others = entries(&inputs);
        let is_meant =
            |other: &&Package| other.scope == store.scope && other.identity() == package.identity();
        if !others.iter().any(|other| is_meant(&other)) {
            report::note(no_match(source, &others));
            return Ok(exit::FAILED);
        }
        say_plain(&format!("Removing {source}...\n"));
        Installer::new(&inputs.settings, false).remove(&package.source, &store)?;
        change(&inputs, &store, |entries| {
            entries.retain(|entry| !is_entry(&inputs, &store, entry, &package))
        })?;
        Ok(say_plain(&format!("Removed {source}\n")))
    }))
}

/// Runs `pi list`. Returns the exit code.
pub fn list(words: &[OsString]) -> u8 {
    let words = match parse(words, "list", &[]) {
        Ok(words) if words.help => return say_plain(&format!("Usage:\n  {LIST}\n{LIST_HELP}")),
        Ok(Words { source: Some(word), .. }) => return usage(&format!("Unexpected argument {word}."), LIST),
        Ok(words) => words,
        Err(problem) => return usage(&problem, LIST),
    };
    code(inputs(words.approve).map(|inputs| {
        let all = entries(&inputs);
        let mut parts = Vec::new();
        for (title, scope) in [("User packages:", Scope::User), ("Project packages:", Scope::Project)] {
            let mut text = format!("{title}\n");
            for package in all.iter().filter(|package| package.scope == scope) {
                let filtered = if package.is_filtered() { " (filtered)" } else { "" };
                let place = if package.root.exists() {
                    package.root.display().to_string()
                } else {
                    "not installed".into()
                };
                let _ = writeln!(text, "  {}{filtered}\n    {place}", package.text);
            }
            parts.extend((text.lines().count() > 1).then_some(text));
        }
        say_plain(&if parts.is_empty() { "No packages installed.\n".to_owned() } else { parts.join("\n") })
    }))
}

/// Updates the package `source`, or all. Missing ones are installed. Returns the exit code.
pub fn update(source: Option<&str>, approve: Option<bool>, scripts: bool, offline: bool) -> u8 {
    code(inputs(approve).and_then(|inputs| {
        let all = entries(&inputs);
        let wanted =
            source.map(|source| given(&inputs, source, &Store::user(inputs.dirs.agent()))).transpose()?;
        let wanted = wanted.map(|package| package.identity());
        let meant: Vec<&Package> = all
            .iter()
            .filter(|package| wanted.as_ref().is_none_or(|wanted| package.identity() == *wanted))
            .collect();
        if let Some(source) = source.filter(|_| meant.is_empty()) {
            return Err(no_match(source, &all));
        }
        if no_network(offline).is_some() {
            return Ok(say_plain("Skipped package updates (offline mode)\n"));
        }
        let installer = Installer::new(&inputs.settings, scripts);
        let (changed, failures) = update_all(&installer, &inputs, &meant);
        if meant.iter().any(|package| package.scope == Scope::Project) {
            agree(&inputs);
        }
        failures.iter().for_each(report::error);
        let text = match (changed.as_slice(), source) {
            ([], _) if !failures.is_empty() => String::new(),
            ([], Some(source)) => format!("{source} is already up to date\n"),
            ([], None) => "Packages are already up to date\n".to_owned(),
            (lines, _) => {
                let plural = if lines.len() == 1 { "" } else { "s" };
                format!("Updated {} package{plural}:\n{}", lines.len(), lines.concat())
            }
        };
        let code = say_plain(&text);
        Ok(if failures.is_empty() { code } else { exit::FAILED })
    }))
}

/// Updates packages; those of npm that share a store together. Gives a line for each that changed, and why others
/// could not be updated.
fn update_all(installer: &Installer, inputs: &Inputs, packages: &[&Package]) -> (Vec<String>, Vec<String>) {
    let (mut changed, mut failures) = (Vec::new(), Vec::new());
    let mut note = |package: &Package, change: Option<Change>| {
        let Some(Change { from, to }) = change else { return };
        let is_git = matches!(package.source, PackageSource::Git { .. });
        let short = |name: Option<String>| match name {
            Some(commit) if is_git => commit.chars().take(7).collect(),
            Some(version) => version,
            None => "(none)".to_owned(),
        };
        let scope = if package.scope == Scope::Project { " (project)" } else { "" };
        changed.push(format!("  {}{scope} {} -> {}\n", package.text, short(from), short(to)));
    };
    for store in [Store::user(inputs.dirs.agent()), Store::project(&inputs.cwd)] {
        let here = packages.iter().copied().filter(|package| package.scope == store.scope);
        let (npm, others): (Vec<&Package>, Vec<&Package>) =
            here.partition(|package| matches!(package.source, PackageSource::Npm { .. }));
        let npm: Vec<&Package> = npm
            .into_iter()
            .filter(|package| !package.source.is_pinned() || package.fault().is_some())
            .collect();
        match installer.update_npm(&npm, &store) {
            Ok(changes) => npm.iter().zip(changes).for_each(|(package, change)| note(package, change)),
            Err(why) => failures.push(why),
        }
        for package in others {
            match installer.update_git(&package.source, &store) {
                Ok(change) => note(package, change),
                Err(why) => failures.push(format!("Could not update {}: {why}", package.text)),
            }
        }
    }
    (changed, failures)
}

/// The store to change; none, after a message, if it is an untrusted project's.
fn writable(inputs: &Inputs, local: bool) -> Option<Store> {
    if local && !inputs.is_trusted {
        report::note("Project is not trusted. Use --approve to modify local package config.");
        return None;
    }
    Some(if local { Store::project(&inputs.cwd) } else { Store::user(inputs.dirs.agent()) })
}

/// The package that a source on the command line names. Paths begin at the working folder.
fn given(inputs: &Inputs, source: &str, store: &Store) -> Result<Package, String> {
    let resolve = |path: &str| inputs.dirs.resolve(path.trim(), &inputs.started_in);
    Package::new(source, store, resolve).map_err(|error| error.to_string())
}

/// Every package of the settings.
fn entries(inputs: &Inputs) -> Vec<Package> {
    // Problems were reported when the settings were read.
    package::all(&inputs.places(), &mut Vec::new())
}

fn no_match(source: &str, packages: &[Package]) -> String {
    let source = source.trim();
    let meant = packages.iter().find(|package| match &package.source {
        PackageSource::Npm { name, spec, .. } => source == name || source == spec,
        PackageSource::Git { host, path, reference, .. } => {
            let short = format!("{host}/{path}");
            let with_reference = reference.as_ref().map(|reference| format!("{short}@{reference}"));
            source == short || with_reference.as_deref() == Some(source)
        }
        PackageSource::Local(_) => false,
    });
    let hint = meant.map(|package| format!(". Did you mean {}?", package.text)).unwrap_or_default();
    format!("No matching package found for {source}{hint}")
}

/// True if an entry of the settings is about `package`.
fn is_entry(inputs: &Inputs, store: &Store, entry: &Value, package: &Package) -> bool {
    let resolve = |path: &str| inputs.places().resolve(path.trim(), &store.base);
    let known = source_of(entry).and_then(|text| Package::new(text, store, resolve).ok());
    known.is_some_and(|known| known.identity() == package.identity())
}

/// Adds a package to the settings, or replaces the source of its entry there.
fn add(inputs: &Inputs, package: &Package, store: &Store) -> Result<(), String> {
    let text = match &package.source {
        PackageSource::Local(_) => match relative(&store.base, &package.root) {
            path if path == Path::new("") => ".".to_owned(),
            path => path.to_string_lossy().into_owned(),
        },
        _ => package.text.clone(),
    };
    change(inputs, store, |entries| {
        match entries.iter_mut().find(|entry| is_entry(inputs, store, entry, package)) {
            Some(Value::Object(entry)) => drop(entry.insert("source".into(), text.into())),
            Some(entry) => *entry = json!(text),
            None => entries.push(json!(text)),
        }
    })
}

/// Changes the packages in the settings of a store.
fn change(inputs: &Inputs, store: &Store, with: impl FnOnce(&mut Vec<Value>)) -> Result<(), String> {
    let path = store.base.join("settings.json");
    settings::update(&path, |values| match values.entry("packages").or_insert_with(|| json!([])) {
        Value::Array(entries) => {
            with(entries);
            Ok(())
        }
        _ => Err(format!("{}: packages is not a list; the file was left as it is", path.display())),
    })?;
    if store.scope == Scope::Project {
        agree(inputs);
    }
    Ok(())
}

/// Notes what a trusted project runs after a change that the user asked for, so that it needs no new decision. False if
/// the project is not trusted for good: it is asked about.
pub fn agree(inputs: &Inputs) -> bool {
    let project = Project::new(&inputs.cwd, inputs.dirs.home());
    let store = TrustStore::new(inputs.dirs.agent());
    let is_trusted = store.find(&project).is_ok_and(|entry| entry.is_some_and(|entry| entry.is_trusted));
    if is_trusted {
        let _ = store.snapshot(&project).and_then(|snapshot| store.remember(&project, &snapshot));
    }
    is_trusted
}
