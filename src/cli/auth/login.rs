//! `pi auth login`, `logout` and `list`.

use super::terminal::Console;
use super::{Access, Ask, Stop, say_line, unknown_provider, with_access};
use crate::auth::credential::{Credentials, KEY_BYTES_MAX, Stored};
use crate::auth::oauth::{Answer, Choice, Interaction, Prompt};
use crate::auth::provider;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::cli::say::say;
use crate::llm::event::ErrorKind;
use crate::llm::message::now_ms;
use crate::llm::secret::Secret;
use crate::mode::report;
use crate::runtime::{Settings, sign_in};
use serde_json::Value;
use std::io::Read;

#[derive(Default)]
struct Words {
    provider: Option<String>,
    method: Option<String>,
    domain: Option<String>,
    stdin: bool,
    json: bool,
    no_browser: bool,
}

fn parse(command: &str, words: &[String], allowed: &[&str]) -> Result<Words, Stop> {
    let mut parsed = Words::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (flag, joined) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        if flag.starts_with('-') && !allowed.contains(&flag) {
            return Err(format!("Unknown option {flag} for \"auth {command}\". See: pi auth --help").into());
        }
        let mut value = || {
            let value = joined.clone().or_else(|| words.next().cloned());
            value.ok_or_else(|| Stop::from(format!("{flag} requires a value")))
        };
        match flag {
            "--provider" => parsed.provider = Some(value()?),
            "--method" => parsed.method = Some(value()?),
            "--api-key" => parsed.method = Some("key".into()),
            "--no-browser" => parsed.no_browser = true,
            "--domain" => parsed.domain = Some(value()?),
            "--stdin" => parsed.stdin = true,
            "--json" => parsed.json = true,
            _ if parsed.provider.is_none() && allowed.contains(&"--provider") => {
                parsed.provider = Some(word.clone());
            }
            _ => {
                return Err(
                    format!("\"auth {command}\" does not take \"{word}\". See: pi auth --help").into()
                );
            }
        }
    }
    Ok(parsed)
}

pub(super) fn login(words: &[String]) -> Result<u8, Stop> {
    let allowed = ["--provider", "--method", "--domain", "--stdin", "--api-key", "--no-browser"];
    let words = parse("login", words, &allowed)?;
    if let Some(method) = &words.method
        && !["key", "browser", "device"].contains(&method.as_str())
    {
        return Err(format!("Invalid method \"{method}\". Valid values: key, browser, device").into());
    }
    // An extension's sign-in comes before pi's own; a key needs none.
    let ask = match words.stdin || words.method.as_deref() == Some("key") {
        true => Ask::For(&[words.provider.as_deref()]),
        false => Ask::Always,
    };
    with_access(&ask, |access, cancel| {
        // No sign-in opens a browser; a device code can be entered on another machine.
        let method = words.method.as_deref().or(words.no_browser.then_some("device"));
        let console = Console::new(method, words.domain.as_deref());
        let name = match &words.provider {
            Some(name) => name.clone(),
            None if words.stdin => {
                return Err("--stdin needs the name of a provider".to_owned().into());
            }
            None => ask_provider(&console, cancel)?,
        };
        let provider = access.provider(&name).ok_or_else(|| unknown_provider(&name))?;
        let stored = match way(access, &provider, &words, &console, cancel)? {
            Way::Key => {
                let key = read_key(&provider, words.stdin, &console, cancel)?;
                access.credentials.store_key(&provider, &key, cancel)
            }
            Way::SignIn => {
                let configured = access.configured(&provider, None);
                let device = sign_in::device_for(
                    &access.credentials,
                    &provider,
                    &configured,
                    &Settings::load(access.dirs.agent()).0,
                )?;
                access.credentials.sign_in(&provider, &configured, device.as_deref(), &console, cancel)
            }
        };
        stored.map_err(|error| match error.kind {
            ErrorKind::Aborted => "Login cancelled".to_owned(),
            _ => format!("Cannot sign in to {provider}: {}", error.message),
        })?;
        let file = access.dirs.agent().join("auth.json");
        Ok(say_line(&format!("Signed in to {provider}. Stored in {}", file.display())))
    })
}

enum Way {
    Key,
    SignIn,
}

/// Chooses between a subscription and a key: what the provider offers, then what the user asked for. A provider
/// that the command line names is signed in to without a question.
fn way(
    access: &Access,
    provider: &str,
    words: &Words,
    console: &Console,
    cancel: &CancelToken,
) -> Result<Way, Stop> {
    let configured = access.configured(provider, None);
    let method = access.credentials.method(provider, &configured);
    let takes_key = provider::takes_key(provider);
    let wants_key = words.stdin || words.method.as_deref() == Some("key");
    match (method, takes_key) {
        (None, false) => Err(format!("There is nothing to sign in to: {provider} needs no key.").into()),
        (Some(_), false) if wants_key => {
            Err(format!("{provider} takes no API key; sign in without --stdin.").into())
        }
        (Some(_), false) => Ok(Way::SignIn),
        (None, true) if words.method.as_deref().is_some_and(|method| method != "key") => {
            Err(format!("There is no sign-in for {provider}; it takes an API key.").into())
        }
        (None, true) => Ok(Way::Key),
        (Some(_), true) if wants_key => Ok(Way::Key),
        (Some(_), true) if words.method.is_some() || words.provider.is_some() || !console.is_terminal() => {
            Ok(Way::SignIn)
        }
        (Some(method), true) => {
            let choice = |id: &str, label: String| Choice { id: id.to_owned(), label };
            let prompt = Prompt::Select {
                message: format!("Sign in to {provider} with"),
                options: vec![
                    choice("subscription", method.label().to_owned()),
                    choice("key", "an API key".into()),
                ],
            };
            match console.ask(&prompt, cancel) {
                Answer::Text(id) if id == "key" => Ok(Way::Key),
                Answer::Text(_) | Answer::Nobody => Ok(Way::SignIn),
                Answer::Cancelled => Err("Login cancelled".to_owned().into()),
            }
        }
    }
}

fn ask_provider(console: &Console, cancel: &CancelToken) -> Result<String, Stop> {
    let need = "Which provider? Use: pi auth login <provider>. All of them: pi docs providers";
    if !console.is_terminal() {
        return Err(need.to_owned().into());
    }
    let names: Vec<&str> =
        provider::PROVIDERS.iter().filter(|row| row.has_sign_in()).map(|row| row.id).collect();
    report::note(format_args!("Sign-ins: {}. Any other provider takes a key.", names.join(", ")));
    let prompt = Prompt::Text { message: "Provider".into(), placeholder: "anthropic".into() };
    match console.ask(&prompt, cancel) {
        Answer::Text(name) if !name.trim().is_empty() => Ok(name.trim().to_owned()),
        Answer::Text(_) | Answer::Nobody => Err(need.to_owned().into()),
        Answer::Cancelled => Err("Login cancelled".to_owned().into()),
    }
}

fn read_key(provider: &str, stdin: bool, console: &Console, cancel: &CancelToken) -> Result<Secret, Stop> {
    let key = if stdin {
        let mut text = String::new();
        let read = std::io::stdin().take(KEY_BYTES_MAX as u64 + 1).read_to_string(&mut text);
        read.map_err(|error| format!("Cannot read the key from stdin: {error}"))?;
        text
    } else if console.is_terminal() {
        let key = console.secret(&format!("API key for {provider}"), cancel);
        key.map_err(|error| format!("Cannot read the key: {error}"))?
            .ok_or_else(|| "Login cancelled".to_owned())?
    } else {
        return Err("stdin is not a terminal to type the key on. Pipe it in with --stdin.".to_owned().into());
    };
    Ok(Credentials::check_key(&key)?)
}

pub(super) fn logout(words: &[String]) -> Result<u8, Stop> {
    let words = parse("logout", words, &["--provider"])?;
    let provider =
        words.provider.ok_or_else(|| "Which provider? Use: pi auth logout <provider>".to_owned())?;
    with_access(&Ask::Never, |access, cancel| {
        let removed = access.credentials.remove(&provider, cancel);
        if !removed.map_err(|error| error.message)? {
            if access.provider(&provider).is_none() {
                return Err(unknown_provider(&provider));
            }
            return Ok(say_line(&format!(
                "No stored credentials for {provider}. The environment and models.json stay as they are."
            )));
        }
        let configured = access.configured(&provider, None);
        let is_open = provider::find(&provider).is_some_and(|row| row.ambient == provider::Ambient::Open);
        if !is_open && access.credentials.has(&provider, &configured) {
            report::note(format_args!(
                "{provider} can still be used: its key is in the environment or models.json."
            ));
        }
        Ok(say_line(&format!("Signed out of {provider}.")))
    })
}

pub(super) fn list(words: &[String]) -> Result<u8, Stop> {
    let words = parse("list", words, &["--json"])?;
    with_access(&Ask::Never, |access, _| {
        let rows = rows(access)?;
        if words.json {
            return Ok(say_line(&Value::Array(rows.iter().map(Row::json).collect()).to_string()));
        }
        if rows.is_empty() {
            return Ok(say_line("No keys and no sign-ins. Sign in with: pi auth login <provider>"));
        }
        Ok(say(&table(&rows)))
    })
}

struct Row {
    provider: String,
    kind: String,
    source: String,
    expires: Option<u64>,
}

impl Row {
    fn json(&self) -> Value {
        let mut row = json!({"provider": self.provider, "type": self.kind, "source": self.source});
        if let (Some(expires), Some(row)) = (self.expires, row.as_object_mut()) {
            row.insert("expires".into(), expires.into());
        }
        row
    }
}

/// Returns a row for each stored credential, then for each other provider with a key in the environment or
/// `models.json`.
fn rows(access: &Access) -> Result<Vec<Row>, String> {
    let stored = access.credentials.stored()?;
    let of_file = |stored: &Stored| Row {
        provider: stored.provider.clone(),
        kind: stored.kind.clone(),
        source: "auth.json".into(),
        expires: stored.expires.filter(|_| stored.kind == "oauth"),
    };
    let mut rows: Vec<Row> = stored.iter().map(of_file).collect();
    let is_stored = |name: &str| stored.iter().any(|stored| stored.provider == name);
    for name in access.registry.providers().into_iter().filter(|name| !is_stored(name)) {
        let in_models = access.configured(name, None).api_key.is_some();
        let variable = provider::find(name).and_then(|row| row.key_variable(access.credentials.env()));
        let source = match (in_models, variable) {
            (true, _) => "models.json".to_owned(),
            (false, Some(variable)) => variable.to_owned(),
            (false, None) => continue,
        };
        rows.push(Row { provider: name.to_owned(), kind: "api_key".into(), source, expires: None });
    }
    Ok(rows)
}

fn table(rows: &[Row]) -> String {
    let width = |of: fn(&Row) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
    let provider = width(|row| &row.provider);
    let kind = width(|row| &row.kind);
    let mut text = String::new();
    for row in rows {
        let state = row.expires.map_or_else(String::new, state);
        let line = format!("{:provider$}  {:kind$}  {}{state}", row.provider, row.kind, row.source);
        text.push_str(&crate::runtime::plain_text(line.as_bytes()));
        text.push('\n');
    }
    text
}

fn state(expires: u64) -> String {
    let minutes = expires.saturating_sub(now_ms()) / 60_000;
    match minutes {
        0 => ", to be renewed at the next request".into(),
        1..120 => format!(", for {minutes} min"),
        120..2880 => format!(", for {} h", minutes / 60),
        2880..1_000_000 => format!(", for {} days", minutes / 1440),
        _ => String::new(),
    }
}
