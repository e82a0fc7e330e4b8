//! `pi doctor`: checks what pi depends on in this place, and says what to do where something is wrong.
//!
//! Nothing is changed, no program is started, no key is shown, and no socket is opened but to this machine,
//! unless `--online` asks for it.

mod machine;
mod network;
mod store;

use super::say::{BAD_USAGE, say, say_plain};
use super::version;
use crate::base::json::json;
use crate::mode::exit::{DONE, FAILED};
use crate::mode::report;
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::runtime::config::Inputs;
use serde_json::Value;
use std::ffi::OsString;
use std::fmt::{Display, Write};
use std::path::PathBuf;

const USAGE: &str = "\
Usage: pi doctor [--online] [--json]

Checks terminal, keys, servers of this machine, proxies, certificates, files,
sandbox, clipboard and programs. Exit code 1 if anything is bad.

Options:
  --online    Also ask the servers of the providers that there is a key for; no key is sent
  --json      An object instead of lines
";

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    /// Something does not work that pi can do without.
    Warning,
    Bad,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }
}

/// The result of a check.
struct Finding {
    check: &'static str,
    state: State,
    about: String,
    /// What to do. Empty if nothing is to be done.
    advice: String,
}

impl Finding {
    fn ok(check: &'static str, about: impl Display) -> Self {
        Self { check, state: State::Ok, about: about.to_string(), advice: String::new() }
    }

    fn warning(check: &'static str, about: impl Display, advice: impl Display) -> Self {
        Self { check, state: State::Warning, about: about.to_string(), advice: advice.to_string() }
    }

    fn bad(check: &'static str, about: impl Display, advice: impl Display) -> Self {
        Self { state: State::Bad, ..Self::warning(check, about, advice) }
    }
}

/// The results of all checks.
pub struct Report(Vec<Finding>);

impl Report {
    /// Runs all checks. With `online`, servers on other machines are asked, too.
    pub fn make(online: bool) -> Self {
        let mut findings = vec![Finding::ok("pi", about_pi())];
        let (place, problems) = match Place::find() {
            Ok((place, problems)) => (Some(place), problems),
            Err(finding) => {
                findings.push(finding);
                (None, Vec::new())
            }
        };
        findings.extend(machine::terminal(place.as_ref()));
        if let Some(place) = &place {
            findings.extend(store::keys(place));
            findings.extend(network::servers(place, online));
        }
        findings.extend(network::proxies(place.as_ref()));
        findings.extend(network::certificates());
        if let Some(place) = &place {
            findings.extend(store::files(place, problems));
            findings.push(machine::sandbox(place));
        }
        findings.extend(machine::programs(place.as_ref()));
        if let Some(place) = place.as_ref().filter(|_| online) {
            findings.extend(network::providers(place));
        }
        Self(findings)
    }

    fn has_bad(&self) -> bool {
        self.0.iter().any(|finding| finding.state == State::Bad)
    }

    fn object(&self) -> Value {
        let checks = self.0.iter().map(|finding| {
            let mut object = json!({
                "check": finding.check,
                "state": finding.state.name(),
                "about": finding.about,
            });
            if !finding.advice.is_empty() {
                object["advice"] = finding.advice.as_str().into();
            }
            object
        });
        json!({"pi": version::object(), "checks": checks.collect::<Vec<_>>()})
    }

    /// Returns a line for each finding, and a line below it that says what to do.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Finding { check, state, about, advice } in &self.0 {
            let _ = writeln!(text, "{:<9}{check:<14}{about}", state.name());
            if !advice.is_empty() {
                let _ = writeln!(text, "{:<23}{advice}", "");
            }
        }
        text
    }
}

fn about_pi() -> String {
    let about = version::object();
    let of = |name: &str| about[name].as_str().unwrap_or_default().to_owned();
    let commit = about["commit"].as_str().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let missing: String = crate::base::feature::left_out().map(|name| format!(", without {name}")).collect();
    format!(
        "{} (follows pi {}{commit}{missing}) on {} {}",
        of("version"),
        of("referenceVersion"),
        of("os"),
        of("arch")
    )
}

/// The folders, settings, models and keys that the checks are about. The settings of projects are not among
/// them.
struct Place {
    inputs: Inputs,
}

impl Place {
    /// Loads what a run would load. Also returns what is wrong with the files.
    fn find() -> Result<(Self, Vec<String>), Finding> {
        let dirs = Dirs::find().map_err(|error| {
            Finding::bad("files", error, "set HOME to your home folder, or PI_CODING_AGENT_DIR")
        })?;
        let cwd = std::env::current_dir().map_err(|error| {
            Finding::bad(
                "files",
                format_args!("the current folder cannot be used: {error}"),
                "change to another folder",
            )
        })?;
        let (settings, diagnostics) = Settings::load(dirs.agent());
        let mut problems: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        let mut warn = |text: &dyn Display| problems.push(text.to_string());
        let inputs = Inputs::load(dirs, cwd.clone(), cwd, settings, &mut warn);
        Ok((Self { inputs }, problems))
    }

    fn agent(&self) -> PathBuf {
        self.inputs.dirs.agent().to_owned()
    }
}

/// Runs `pi doctor`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let has = |names: &[&str]| words.iter().any(|word| names.iter().any(|name| word == name));
    if has(&["--help", "-h"]) {
        return say(USAGE);
    }
    if let Some(word) = words.iter().find(|word| *word != "--online" && *word != "--json") {
        report::error(format_args!(
            "Unexpected argument: {}\nTry pi doctor --help. To send such words to a model: pi -- WORDS",
            word.to_string_lossy()
        ));
        return BAD_USAGE;
    }
    let report = Report::make(has(&["--online"]));
    let said = match has(&["--json"]) {
        true => say(&format!("{:#}\n", report.object())),
        false => say_plain(&report.text()),
    };
    match (said, report.has_bad()) {
        (DONE, true) => FAILED,
        (said, _) => said,
    }
}
