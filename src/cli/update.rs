//! `pi update`: newer packages, and with `--models` newer models than the built-in ones. Nothing else in pi fetches
//! models.
//!
//! `pi update` alone prints how the program was installed and which command updates it: the program never
//! replaces itself.

use super::flags::Args;
use super::package;
use super::start::Launch;
use crate::base::cancel::CancelToken;
use crate::base::file;
use crate::mode::exit;
use crate::mode::report;
use crate::models::catalogue;
use crate::models::remote::{Failed, Fetched};
use crate::models::{personal, remote};
use crate::runtime::Model;
use crate::runtime::service::Services;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::path::Path;

const USAGE: &str = "pi update [source|--extensions|--extension <source>|--models|--all] [--approve|--no-approve] [--scripts] [--offline]";

/// The URL of the reference's model catalogue; `PI_CATALOG_URL` overrides it.
const CATALOG_URL: &str = "https://pi.dev";

/// Maximum number of requests that run at once.
const PARALLEL: usize = 8;

/// The words of `pi update`.
#[derive(Default)]
struct Words {
    /// The package that the word names.
    source: Option<String>,
    /// The package that `--extension` names.
    extension: Option<String>,
    /// pi itself, which says how it was installed.
    itself: bool,
    extensions: bool,
    models: bool,
    all: bool,
    approve: Option<bool>,
    scripts: bool,
    offline: bool,
    help: bool,
}

impl Words {
    fn parse(words: &[OsString]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut words = words.iter().map(|word| word.to_string_lossy());
        while let Some(word) = words.next() {
            match &*word {
                "--help" | "-h" => parsed.help = true,
                "--self" | "self" | "pi" => parsed.itself = true,
                "--extensions" => parsed.extensions = true,
                "--models" => parsed.models = true,
                "--all" => parsed.all = true,
                // The TypeScript pi installs itself again; this one never replaces itself.
                "--force" => {}
                "--approve" | "-a" => parsed.approve = Some(true),
                "--no-approve" | "-na" => parsed.approve = Some(false),
                "--scripts" => parsed.scripts = true,
                "--offline" => parsed.offline = true,
                "--extension" => match words.next().filter(|value| !value.starts_with('-')) {
                    None => return Err("Missing value for --extension.".into()),
                    Some(_) if parsed.extension.is_some() => {
                        return Err("--extension can only be provided once".into());
                    }
                    Some(value) => parsed.extension = Some(value.into_owned()),
                },
                flag if flag.starts_with('-') => {
                    return Err(format!("Unknown option {flag} for \"update\"."));
                }
                _ if parsed.source.is_none() => parsed.source = Some(word.into_owned()),
                _ => return Err(format!("Unexpected argument {word}.")),
            }
        }
        parsed.check()
    }

    fn check(self) -> Result<Self, String> {
        let has_flag = self.itself || self.extensions || self.models || self.extension.is_some();
        let refused = if self.all && has_flag {
            "--all cannot be combined with --self, --extensions, --models, or --extension"
        } else if self.all && self.source.is_some() {
            "--all cannot be combined with a positional source"
        } else if self.models && (self.itself || self.extensions || self.extension.is_some()) {
            "--models cannot be combined with --self, --extensions, --all, or --extension"
        } else if self.models && self.source.is_some() {
            "--models cannot be combined with a positional source"
        } else if self.extension.is_some() && (self.itself || self.extensions) {
            "--extension cannot be combined with --self, --extensions, or --all"
        } else if self.extension.is_some() && self.source.is_some() {
            "--extension cannot be combined with a positional source"
        } else if self.source.is_some() && (self.itself || self.extensions) {
            "positional update targets cannot be combined with --self, --extensions, or --all"
        } else {
            return Ok(self);
        };
        Err(refused.to_owned())
    }
}

/// Runs `pi update`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let words = match Words::parse(words) {
        Ok(words) if words.help => return super::say::say(&help()),
        Ok(words) => words,
        Err(problem) => {
            report::note(format_args!("{problem}\nUsage: {USAGE}"));
            return exit::FAILED;
        }
    };
    if words.models {
        return match refresh(words.offline) {
            Ok(()) => super::say::say("Model catalogs refreshed\n"),
            Err(text) => {
                report::error(text);
                exit::FAILED
            }
        };
    }
    let source = words.source.as_deref().or(words.extension.as_deref());
    let updates_packages = source.is_some() || words.extensions || words.all;
    let code = match updates_packages {
        true => package::update(source, words.approve, words.scripts, words.offline),
        false => exit::FAILED,
    };
    if words.all || words.itself || !updates_packages {
        let program = std::env::current_exe().unwrap_or_default();
        report::note(format_args!(
            "pi does not replace itself. {}\nNewer packages: pi update --extensions\nNewer models: pi update --models",
            advice(&program, std::env::home_dir().as_deref())
        ));
    }
    code
}

/// Returns how `program` was installed, and how to update it.
fn advice(program: &Path, home: Option<&Path>) -> String {
    let shown = program.display();
    let is_in = |folder: &str| program.starts_with(folder);
    let cargo = home.map(|home| home.join(".cargo/bin"));
    if cargo.is_some_and(|bin| program.starts_with(bin)) {
        format!(
            "{shown} was installed by cargo; in the folder of its source, run:\n\n  git pull && cargo install --path .\n"
        )
    } else if program.components().any(|part| part.as_os_str() == "target") {
        format!(
            "{shown} was built in place; in the folder of its source, run:\n\n  git pull && cargo build --release\n"
        )
    } else if is_in("/nix/store") {
        format!("{shown} was installed by Nix; run:\n\n  nix profile upgrade pi\n")
    } else if program.components().any(|part| part.as_os_str() == "Cellar") {
        format!("{shown} was installed by Homebrew; run:\n\n  brew upgrade pi\n")
    } else if is_in("/usr") && !is_in("/usr/local") {
        format!("{shown} belongs to the packages of the system; update it with their program.\n")
    } else {
        format!("{shown} was put there by hand; put a newer one in its place.\n")
    }
}

fn help() -> String {
    format!(
        "Usage: {USAGE}\n\n\
         Without a target: says how pi was installed, and what to run for a newer one.\n\n\
         SOURCE, --extension SOURCE   updates one package\n\
         --extensions                 updates all packages, and installs missing ones\n\
         --models                     fetches the newest models of the providers that there is a key for, and keeps\n\
         \x20                            them in ~/.pi/agent/{}; a key is sent to its provider only\n\
         --all                        updates all packages, and says what to run for a newer pi\n\
         --scripts                    lets install scripts of packages run\n",
        remote::FILE_NAME
    )
}

fn refresh(offline: bool) -> Result<(), String> {
    let inputs = Launch::new(&Args::default())?.inputs()?;
    let env = inputs.services.credentials.env();
    if let Some(why) = package::no_network(offline) {
        return Err(format!("Could not refresh model catalogs: {why} allows no network"));
    }
    let base_url = env.get("PI_CATALOG_URL");
    let base_url = base_url.as_deref().unwrap_or(CATALOG_URL);
    let providers: Vec<&str> = catalogue::providers()
        .filter(|provider| *provider != "radius" && inputs.services.usable(provider))
        .collect();
    let path = inputs.dirs.agent().join(remote::FILE_NAME);
    let mut stored = read(&path);
    // A list of a key is no catalogue that the server could say is unchanged.
    stored.remove(personal::PROVIDER);
    let mut fetched = fetch_all(base_url, &providers, &stored);
    for (provider, fetched) in &mut fetched {
        if *provider == personal::PROVIDER
            && let Ok(whole) = fetched
        {
            match personal_list(&inputs.services, &whole.entry) {
                Ok(Some(models)) => whole.entry = remote::personal_entry(&models),
                Ok(None) => {}
                Err(message) => *fetched = Err(Failed { entry: None, message }),
            }
        }
    }

    let mut entries = Map::new();
    let mut problems = Vec::new();
    for (provider, fetched) in fetched {
        match fetched {
            Ok(Fetched { entry, left_out }) => {
                if left_out > 0 {
                    report::warning(format_args!(
                        "{provider}: {left_out} models of the catalog cannot be used here, and are left out"
                    ));
                }
                entries.insert(provider.to_owned(), entry);
            }
            Err(Failed { entry, message }) => {
                problems.push(format!("{provider}: {message}"));
                entries.extend(entry.map(|entry| (provider.to_owned(), entry)));
            }
        }
    }
    if !entries.is_empty() {
        file::update(&path, |old| {
            let mut all = old.as_deref().map(remote::entries).unwrap_or_default();
            all.extend(entries);
            serde_json::to_string_pretty(&all).map(Some).map_err(|error| error.to_string())
        })?;
    }
    match problems.as_slice() {
        [] => Ok(()),
        problems => Err(format!("Could not refresh model catalogs: {}", problems.join("; "))),
    }
}

/// Returns the models that the user's key may use; `None` if that cannot be known.
fn personal_list(services: &Services, entry: &Value) -> Result<Option<Vec<Model>>, String> {
    let cancel = CancelToken::new();
    let models = remote::with_fetched(personal::PROVIDER, entry);
    let Some(first) = models.first() else {
        return Ok(None);
    };
    let configured = services.registry.configured(personal::PROVIDER, None);
    let resolved = services.credentials.resolve(first, &configured, &cancel);
    let Some(key) = resolved.map_err(|error| error.message)?.key else {
        return Ok(None);
    };
    let base_url = services.registry.provider_config(personal::PROVIDER);
    let base_url = base_url.and_then(|config| config.base_url.as_deref());
    personal::of_key(base_url, &key, models, &cancel)
}

/// Fetches the models of each provider. Results are in the order of `providers`.
fn fetch_all<'a>(
    base_url: &str,
    providers: &[&'a str],
    stored: &Map<String, Value>,
) -> Vec<(&'a str, Result<Fetched, Failed>)> {
    let cancel = CancelToken::new();
    let mut all = Vec::with_capacity(providers.len());
    for group in providers.chunks(PARALLEL) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = group
                .iter()
                .map(|provider| {
                    let stored = stored.get(*provider);
                    let cancel = &cancel;
                    scope.spawn(move || remote::fetch(base_url, provider, stored, cancel))
                })
                .collect();
            for (provider, thread) in group.iter().zip(threads) {
                let failed = |_| Err(Failed::from("internal error".to_owned()));
                all.push((*provider, thread.join().unwrap_or_else(failed)));
            }
        });
    }
    all
}

/// Returns the stored entries; none if the file cannot be read.
fn read(path: &Path) -> Map<String, Value> {
    std::fs::read(path).map(|bytes| remote::entries(&bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_program_says_what_updates_it() {
        let home = Some(Path::new("/home/u"));
        for (program, expected) in [
            ("/home/u/.cargo/bin/pi", "cargo install --path ."),
            ("/home/u/src/pi/target/release/pi", "cargo build --release"),
            ("/nix/store/abc-pi/bin/pi", "nix profile upgrade pi"),
            ("/opt/homebrew/Cellar/pi/0.1.0/bin/pi", "brew upgrade pi"),
            ("/usr/bin/pi", "packages of the system"),
            ("/usr/local/bin/pi", "by hand"),
        ] {
            let text = advice(Path::new(program), home);
            assert!(text.starts_with(program) && text.contains(expected), "{text}");
        }
    }
}
