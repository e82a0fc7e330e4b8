//! `pi auth`: signs in and out, and gives scripts access to keys.
//!
//! `check`, `print-api-key` and `print-bearer-token` have the reference's output and exit codes. The
//! reference has `login`, `logout` and `list` only in its terminal. Commands that print a secret print
//! nothing else on stdout.

mod check;
mod login;
mod print;
mod terminal;

pub use terminal::Console;

use super::flags::{self, Args, UsageError};
use super::start::Launch;
use crate::auth::credential::Credentials;
use crate::auth::provider;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::cli::say::say;
use crate::extension::{About, Extensions, find};
use crate::llm::model::Model;
use crate::mode::REFERENCE_VERSION;
use crate::mode::exit::{DONE, FAILED};
use crate::mode::report;
use crate::mode::signal;
use crate::models::Configured;
use crate::models::Registry;
use crate::models::resolve;
use crate::models::resolve::{Choice, Wanted};
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

const USAGE: &str = "\
Usage:
  pi auth login [provider] [--api-key] [--no-browser] [--domain <domain>]
  pi auth login [provider] [--method <key|browser|device>] [--domain <domain>]
  pi auth login <provider> --stdin
  pi auth logout <provider>
  pi auth list [--json]
  pi auth check [--provider <provider>] [--model <model>] [--json] [--credentials] [--no-refresh]
  pi auth print-api-key [--provider <provider>] [--model <model>]
  pi auth print-bearer-token [--provider <provider>] [--model <model>] [--min-expiry <duration>]

login signs in with a subscription; where there is none, or with --api-key, it stores
a key: typed unseen on the terminal, or read from stdin. --no-browser prefers a code to type
on another machine (no way opens a browser by itself). logout removes what is stored; keys in the environment stay.
check says ready (exit 0), not_ready (1) or invalid (2), and renews a sign-in that
has expired unless --no-refresh; --credentials prints the key or token. The print
commands write it alone on stdout. A duration is a number with ms, s, m or h.

More: pi docs auth
";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Check,
    ApiKey,
    BearerToken,
}

/// The end of a command that failed: a text for stderr, and the exit code.
struct Stop {
    text: String,
    code: u8,
}

impl From<String> for Stop {
    fn from(text: String) -> Self {
        Self { text, code: FAILED }
    }
}

/// Runs `pi auth`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (command, rest) = match words.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => return say(USAGE),
    };
    if command == "help" || words.iter().any(|word| word == "--help" || word == "-h") {
        return say(USAGE);
    }
    let result = match command {
        "login" => login::login(rest),
        "logout" => login::logout(rest),
        "list" => login::list(rest),
        "check" => with_options(Kind::Check, rest),
        "print-api-key" => with_options(Kind::ApiKey, rest),
        "print-bearer-token" => with_options(Kind::BearerToken, rest),
        _ => Err(format!(
            "Unknown auth command \"{command}\". Use \"pi auth login\", \"pi auth logout\", \"pi auth list\", \
             \"pi auth print-api-key\", \"pi auth print-bearer-token\", or \"pi auth check\"."
        )
        .into()),
    };
    result.unwrap_or_else(|stop| {
        if !stop.text.is_empty() {
            report::error(stop.text);
        }
        stop.code
    })
}

/// Options of `check`, `print-api-key` and `print-bearer-token`.
#[derive(Default)]
struct Options {
    json: bool,
    credentials: bool,
    no_refresh: bool,
    verbose: bool,
    min_expiry: Option<Duration>,
    provider: Option<String>,
    model: Option<String>,
}

fn with_options(kind: Kind, words: &[String]) -> Result<u8, Stop> {
    let mut options = Options::default();
    let rest = take_options(kind, words, &mut options)?;
    let args = flags::parse(rest.into_iter().map(OsString::from)).map_err(|error| refused(kind, &error))?;
    validate(kind, &args).map_err(|text| Stop { text, code: usage_code(kind) })?;
    options.verbose = args.run.verbose;
    let given = |text: Option<String>| {
        let text = text?.trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    (options.provider, options.model) = (given(args.over.model.provider), given(args.over.model.model));
    let run = |access: &Access, cancel: &CancelToken| match kind {
        Kind::Check => Ok(check::run(access, &options, cancel)?),
        _ => print::run(access, kind, &options, cancel),
    };
    let named = options.model.as_deref().and_then(|model| Some(model.split_once('/')?.0));
    let wanted = [options.provider.as_deref(), named.filter(|_| options.provider.is_none())];
    with_access(&Ask::For(&wanted), run).map_err(|stop| Stop {
        code: match kind {
            Kind::Check if stop.code == FAILED => usage_code(kind),
            _ => stop.code,
        },
        ..stop
    })
}

fn usage_code(kind: Kind) -> u8 {
    match kind {
        Kind::Check => 2,
        _ => FAILED,
    }
}

fn take_options(kind: Kind, words: &[String], options: &mut Options) -> Result<Vec<String>, Stop> {
    let mut rest = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let flag = match word.as_str() {
            "--min-expiry" if kind != Kind::BearerToken => {
                return Err("--min-expiry is only supported by print-bearer-token".to_owned().into());
            }
            "--min-expiry" => {
                let time = words.next().and_then(|text| duration(text));
                let bad = || "--min-expiry must use a duration such as 30m or 1h".to_owned();
                options.min_expiry = Some(time.ok_or_else(bad)?);
                continue;
            }
            "--json" => &mut options.json,
            "--credentials" => &mut options.credentials,
            "--no-refresh" => &mut options.no_refresh,
            _ => {
                rest.push(word.clone());
                continue;
            }
        };
        if kind != Kind::Check {
            return Err(format!("{word} is only supported by auth check").into());
        }
        *flag = true;
    }
    Ok(rest)
}

/// Parses a duration such as `30m`, `1h` or `500ms`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at_checked(digits)?;
    let ms = match unit.to_ascii_lowercase().as_str() {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let count: u64 = count.parse().ok()?;
    Some(Duration::from_millis(count.saturating_mul(ms)))
}

/// Prints the reference's message about an unknown option.
fn refused(kind: Kind, error: &UsageError) -> Stop {
    let name = match error {
        UsageError::UnknownFlag { name, .. } => name.split('.').next().unwrap_or_default(),
        UsageError::MissingValue { .. } => return Stop { text: error.to_string(), code: FAILED },
        UsageError::Other(_) => return Stop { text: error.to_string(), code: usage_code(kind) },
    };
    let (command, options) = match kind {
        Kind::Check => ("auth check", "[--json] [--credentials] [--no-refresh]"),
        Kind::ApiKey => ("auth print-api-key", "[--model <model>]"),
        Kind::BearerToken => ("auth print-bearer-token", "[--model <model>] [--min-expiry <duration>]"),
    };
    report::note(format_args!(
        "Unknown option --{name} for \"{command}\".\n\
         Use \"pi --help\" or \"pi {command} --provider <provider> {options}\"."
    ));
    Stop { text: String::new(), code: FAILED }
}

fn validate(kind: Kind, args: &Args) -> Result<(), String> {
    if args.over.model.api_key.is_some() || !args.messages.is_empty() || !args.files.is_empty() {
        return Err("Auth commands only accept --provider and --model".into());
    }
    let given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    if given(&args.over.model.provider) || given(&args.over.model.model) {
        return Ok(());
    }
    Err(match kind {
        Kind::Check => "Auth checks require --provider <provider> or --model <model>",
        _ => "Credential printing requires --provider <provider> or --model <model>",
    }
    .into())
}

/// The user's models and credentials.
struct Access {
    dirs: Dirs,
    registry: Registry,
    /// Problems in `models.json`.
    problems: Vec<String>,
    credentials: Credentials,
}

/// When the extensions are started for a command, whose providers and sign-ins it then knows.
enum Ask<'a> {
    Always,
    Never,
    /// If one of these providers, or the sign-in that is stored for it, is not known otherwise.
    For(&'a [Option<&'a str>]),
}

/// Runs `command` with the user's models and credentials. A signal cancels it.
fn with_access(
    ask: &Ask<'_>,
    command: impl FnOnce(&Access, &CancelToken) -> Result<u8, Stop>,
) -> Result<u8, Stop> {
    let dirs = Dirs::find().map_err(|error| error.to_string())?;
    let (settings, _) = Settings::load(dirs.agent());
    let (registry, problems) = Registry::load(dirs.agent());
    let mut credentials = Credentials::load(dirs.agent(), Env::process());
    credentials.set_http_proxy(settings.http_proxy());
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    let mut access = Access { dirs, registry, problems, credentials };
    let needs = match ask {
        Ask::Always => true,
        Ask::Never => false,
        Ask::For(providers) => providers.iter().flatten().any(|name| access.lacks(name)),
    };
    let extensions = if needs { Some(access.start_extensions(&cancel)?) } else { None };
    let result = command(&access, &cancel);
    if let Some(extensions) = extensions {
        extensions.end();
        crate::tools::process::shut_down();
    }
    match (watch.exit_code(), result) {
        (Some(code), Ok(_)) => Ok(code),
        (Some(code), Err(stop)) => Err(Stop { code, ..stop }),
        (None, result) => result,
    }
}

impl Access {
    /// Returns the name of a provider, if the catalogue, the table of providers or `models.json` has it.
    fn provider(&self, name: &str) -> Option<String> {
        let known = self.registry.providers().into_iter();
        let mut known = known.chain(provider::PROVIDERS.iter().map(|row| row.id));
        known.find(|known| *known == name).map(str::to_owned)
    }

    /// True if an extension may know more of a provider.
    fn lacks(&self, name: &str) -> bool {
        let signs_in = || self.credentials.method(name, &self.configured(name, None)).is_some();
        self.provider(name).is_none() || (self.stored_kind(name).as_deref() == Some("oauth") && !signs_in())
    }

    /// Starts the extensions of the current folder, and takes over their providers. They are to be ended.
    fn start_extensions(&mut self, cancel: &CancelToken) -> Result<Arc<Extensions>, Stop> {
        let args = flags::parse(std::iter::empty()).map_err(|error| error.to_string())?;
        let mut inputs = Launch::unasked(&args)?.inputs()?;
        let (found, problems) = find::find(&inputs, false);
        problems.iter().for_each(report::warning);
        let extensions = Extensions::start(About::new(&inputs, "print", REFERENCE_VERSION), found);
        extensions.await_all_started(cancel, |text| report::note(text));
        inputs.services.lend(extensions.models());
        for problem in extensions.take_problems() {
            report::warning(format_args!("Extension {}: {}", problem.source, problem.error));
        }
        (self.registry, self.credentials) = (inputs.services.registry, inputs.services.credentials);
        Ok(extensions)
    }

    fn configured(&self, provider: &str, model: Option<&Model>) -> Configured {
        self.registry.configured(provider, model.map(|model| &*model.id))
    }

    fn find(&self, provider: Option<&str>, model: &str) -> Result<Choice, String> {
        let usable = |provider: &str| {
            let configured = self.configured(provider, None);
            self.credentials.has(provider, &configured)
        };
        let wanted = Wanted { provider, model: Some(model), thinking: None };
        resolve::resolve(&self.registry, &usable, wanted)
    }

    /// Returns any model of the provider, for questions about the provider as a whole.
    fn any_model(&self, provider: &str) -> Arc<Model> {
        let known = self.registry.models_of(provider).into_iter().next();
        known.unwrap_or_else(|| Arc::new(Model { provider: provider.to_owned(), ..Model::default() }))
    }

    /// Returns the type of the credential that is stored for a provider.
    fn stored_kind(&self, provider: &str) -> Option<String> {
        let stored = self.credentials.stored().ok()?;
        let stored = stored.into_iter().find(|stored| stored.provider == provider);
        stored.map(|stored| stored.kind)
    }
}

fn unknown_provider(name: &str) -> Stop {
    format!("Unknown provider \"{name}\". Use --list-models to see available providers.").into()
}

/// Prints a line on stdout. Returns the exit code.
fn say_line(line: &str) -> u8 {
    say(&format!("{line}\n"))
}

/// Returns `code`, or the exit code of a failed output.
fn or_code(printed: u8, code: u8) -> u8 {
    match printed {
        DONE => code,
        failed => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        let rows = [
            ("30m", Some(1_800_000)),
            ("1H", Some(3_600_000)),
            ("5s", Some(5000)),
            ("250ms", Some(250)),
            ("0m", Some(0)),
            ("", None),
            ("m", None),
            ("5", None),
            ("5 m", None),
            ("-5m", None),
            ("5d", None),
            ("1.5h", None),
            ("99999999999999999999h", None),
            ("5é", None),
        ];
        for (text, expected) in rows {
            assert_eq!(duration(text), expected.map(Duration::from_millis), "{text}");
        }
    }
}
