//! `pi export`, and `--export` of the reference: write a stored session as a page, Markdown or JSON lines.

use crate::base::env::Env;
use crate::cli::say::{BAD_USAGE, say};
use crate::mode::exit::{DONE, FAILED, PIPE_CLOSED};
use crate::mode::report::{self, warning as warn};
use crate::models::config_value;
use crate::models::jsonc;
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::session::export::{self, Format, Options, Redactor};
use crate::session::store::{Found, Store};
use crate::session::{Log, SyncMode};
use crate::tools;
use lexopt::{Arg, Parser, ValueExt};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

const HELP: &str = "Usage: pi export [options] [session] [file]

Writes a session as one HTML page, as Markdown or as JSON lines. The session is a
file, an id or the beginning of one; without it, the newest of this folder. The
file may be '-' for stdout; without it, it is pi-session-NAME.html in this folder.

Options:
  --format <html|md|jsonl>   What to write; else as the file's name ends
  --all                      All branches, not the current one alone (jsonl)
  --redact                   Take keys and other secrets out
  -c, --continue             The newest session of this folder
  --session-dir <dir>        Look for sessions in this folder
  -h, --help                 Show this help
";

#[derive(Debug, Default, PartialEq)]
struct Args {
    help: bool,
    session: Option<String>,
    file: Option<PathBuf>,
    format: Option<Format>,
    all: bool,
    redact: bool,
    session_dir: Option<String>,
}

/// Runs `pi export`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let args = match parse(words) {
        Ok(args) => args,
        Err(text) => {
            report::error(format_args!("{text}\nTry pi export --help."));
            return BAD_USAGE;
        }
    };
    if args.help {
        return say(HELP);
    }
    exit_code(export(&args))
}

/// Runs `--export FILE [OUT]`, which writes a page whatever the extension of `out`. Returns the exit code.
pub fn page(file: &str, out: Option<&str>) -> u8 {
    exit_code(page_of(file, out))
}

fn exit_code(done: Result<u8, String>) -> u8 {
    done.unwrap_or_else(|text| {
        report::error(text);
        FAILED
    })
}

fn page_of(file: &str, out: Option<&str>) -> Result<u8, String> {
    let place = Place::find()?;
    let file = place.dirs.resolve(file, &place.cwd);
    let log = open(&file)?;
    let out = out.map(|out| place.given(Path::new(out)));
    let out = out.unwrap_or_else(|| export::default_name(&file, Format::Html));
    to_file(log, &Options::default(), &out)
}

fn parse(words: &[OsString]) -> Result<Args, String> {
    let mut args = Args::default();
    let mut newest = false;
    let mut given: Vec<OsString> = Vec::new();
    let mut parser = Parser::from_args(words.iter().cloned());
    let text = |parser: &mut Parser| {
        let value = parser.value().and_then(ValueExt::string);
        value.map_err(|error| error.to_string())
    };
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Arg::Long("help") | Arg::Short('h') => args.help = true,
            Arg::Long("all") => args.all = true,
            Arg::Long("redact") => args.redact = true,
            Arg::Long("continue") | Arg::Short('c') => newest = true,
            Arg::Long("session-dir") => args.session_dir = Some(text(&mut parser)?),
            Arg::Long("format") => {
                let word = text(&mut parser)?;
                let known = Format::ALL.map(Format::name).join(", ");
                let format = Format::parse(&word);
                args.format =
                    Some(format.ok_or_else(|| format!("Invalid format \"{word}\". Valid values: {known}"))?);
            }
            Arg::Value(word) => given.push(word),
            other => return Err(other.unexpected().to_string()),
        }
    }
    // A lone dash is the output, not a session.
    newest |= given.len() == 1 && given.iter().any(|word| word == "-");
    let mut given = given.into_iter();
    if !newest {
        let session = given.next().map(OsString::into_string).transpose();
        args.session = session.map_err(|word| format!("{} is not UTF-8", word.to_string_lossy()))?;
    }
    args.file = given.next().map(PathBuf::from);
    match given.next() {
        Some(word) => Err(format!("Unexpected argument: {}", word.to_string_lossy())),
        None => Ok(args),
    }
}

fn export(args: &Args) -> Result<u8, String> {
    let place = Place::find()?;
    let path = session_file(args, &place)?;
    let log = open(&path)?;
    let to_stdout = args.file.as_deref() == Some(Path::new("-"));
    let named = args.file.as_deref().filter(|_| !to_stdout);
    let format = args.format.or_else(|| Format::of(named?));
    let format = format.unwrap_or_default();
    let redactor = if args.redact { Some(redactor(place.dirs.agent())?) } else { None };
    let options = Options { format, all: args.all, redactor };
    if to_stdout {
        return to_stdout_of(log, &options);
    }
    let out = named.map(|named| place.given(named));
    to_file(log, &options, &out.unwrap_or_else(|| export::default_name(&path, format)))
}

/// The working folder, and the user's folders.
struct Place {
    cwd: PathBuf,
    dirs: Dirs,
}

impl Place {
    fn find() -> Result<Self, String> {
        let cwd = std::env::current_dir();
        Ok(Self {
            cwd: cwd.map_err(|error| format!("The current folder cannot be used: {error}"))?,
            dirs: Dirs::find().map_err(|error| error.to_string())?,
        })
    }

    /// Expands a leading `~` in a path of the command line.
    fn given(&self, path: &Path) -> PathBuf {
        match path.to_str().filter(|path| path.starts_with('~')) {
            Some(path) => self.dirs.resolve(path, &self.cwd),
            None => path.to_owned(),
        }
    }
}

fn session_file(args: &Args, place: &Place) -> Result<PathBuf, String> {
    let (settings, _) = Settings::load(place.dirs.agent());
    let named = place.dirs.sessions(args.session_dir.as_deref(), settings.text("sessionDir"), &place.cwd);
    let store = Store::new(place.dirs.agent(), named, SyncMode::Never);
    let Some(wanted) = &args.session else {
        let newest = store.list(&place.cwd).into_iter().next();
        let path = newest.map(|stored| stored.path);
        return path.ok_or_else(|| "There is no session of this folder to export".to_owned());
    };
    let wanted = place.given(Path::new(wanted));
    match store.find(&place.cwd, &wanted.to_string_lossy()) {
        Ok(Found::Path(path)) => Ok(path),
        Ok(Found::Here(stored) | Found::Elsewhere(stored)) => Ok(stored.path),
        // The word may be the name of any file in the working folder.
        Err(error) => match place.cwd.join(&wanted) {
            path if path.is_file() => Ok(path),
            _ => Err(error.to_string()),
        },
    }
}

fn open(path: &Path) -> Result<Log, String> {
    if !path.exists() {
        return Err(format!("File not found: {}", path.display()));
    }
    let mut log = export::open(path).map_err(|error| error.to_string())?;
    log.take_notices().iter().for_each(warn);
    Ok(log)
}

fn to_file(log: Log, options: &Options, out: &Path) -> Result<u8, String> {
    let notices =
        export::write_file(&log, options, &tools::describe, out).map_err(|error| error.to_string())?;
    notices.iter().for_each(warn);
    Ok(say(&format!("Exported to: {}\n", out.display())))
}

fn to_stdout_of(log: Log, options: &Options) -> Result<u8, String> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match export::write(&log, options, &tools::describe, &mut out) {
        Ok(damaged) => {
            export::notices(&log, damaged).iter().for_each(warn);
            Ok(DONE)
        }
        Err(error) => {
            // The buffered rest cannot be written, so it is discarded.
            let _ = out.into_parts();
            match error.kind() {
                io::ErrorKind::BrokenPipe => Ok(PIPE_CLOSED),
                _ => Err(format!("Cannot write to stdout: {error}")),
            }
        }
    }
}

/// Returns a redactor that knows the user's secrets.
pub fn redactor(agent_dir: &Path) -> Result<Redactor, String> {
    Redactor::new(secrets(agent_dir).iter().map(String::as_str))
}

/// Returns the user's secrets: variables whose names suggest a secret, and keys in `auth.json` and
/// `models.json`. Commands that print a key are not run.
fn secrets(agent_dir: &Path) -> Vec<String> {
    let variables = std::env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| is_secret_variable(name.to_str()?).then(|| value.into_string().ok())?);
    let is_path = |value: &str| value.starts_with('/') && Path::new(value).exists();
    let mut found: Vec<String> = variables.filter(|value| !is_path(value)).collect();
    let env = Env::process();
    for name in ["auth.json", "models.json"] {
        let text = std::fs::read_to_string(agent_dir.join(name)).unwrap_or_default();
        let text = jsonc::strip(text.strip_prefix('\u{feff}').unwrap_or(&text));
        let mut written = Vec::new();
        if let Ok(value) = serde_json::from_str(&text) {
            keys_in(&value, false, &mut written);
        }
        found.extend(
            written.iter().flat_map(|text| config_value::variables(text)).filter_map(|name| env.get(name)),
        );
        found.extend(written);
    }
    found
}

fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let parts = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];
    let ends = ["_PASS", "_PAT", "_AUTH", "_PWD"];
    // A variable ending in `_FILE` names a file.
    let is_named = parts.iter().any(|part| name.contains(part)) || ends.iter().any(|end| name.ends_with(end));
    is_named && !name.ends_with("_FILE")
}

/// Adds the strings in fields that contain keys.
fn keys_in(value: &Value, secret: bool, found: &mut Vec<String>) {
    const FIELDS: [&str; 6] = ["key", "apiKey", "access", "refresh", "env", "headers"];
    match value {
        Value::String(text) if secret => {
            found.push(text.clone());
            found.extend(text.strip_prefix("Bearer ").map(str::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| keys_in(item, secret, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                keys_in(value, secret || FIELDS.contains(&name.as_str()), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[track_caller]
    fn check(words: &str, expected: Result<Args, &str>) {
        let words: Vec<_> = words.split_whitespace().map(OsString::from).collect();
        assert_eq!(parse(&words), expected.map_err(str::to_owned));
    }

    #[test]
    fn words_are_session_and_file() {
        let args = |session: Option<&str>, file: Option<&str>| Args {
            session: session.map(str::to_owned),
            file: file.map(PathBuf::from),
            ..Args::default()
        };
        check("", Ok(args(None, None)));
        check("a", Ok(args(Some("a"), None)));
        check("a -", Ok(args(Some("a"), Some("-"))));
        check("-c b", Ok(args(None, Some("b"))));
        check("a b c", Err("Unexpected argument: c"));
        check("--wrong", Err("invalid option '--wrong'"));
        check("--format pdf", Err("Invalid format \"pdf\". Valid values: html, md, jsonl"));
        let all =
            Args { format: Some(Format::Markdown), all: true, redact: true, ..args(Some("a"), Some("b")) };
        check("--redact a --format=markdown b --all", Ok(all));
    }

    #[test]
    fn names_of_variables_say_what_is_secret() {
        for name in
            ["OPENAI_API_KEY", "GH_PAT", "db_pass", "MYSQL_PWD", "NPM_AUTH", "GIT_TOKEN_2", "MY_SECRET"]
        {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in ["PWD", "OLDPWD", "SSH_AUTH_SOCK", "PATH", "COMPASS", "AWS_WEB_IDENTITY_TOKEN_FILE"] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }

    #[test]
    fn keys_are_found_in_configuration() {
        let value = json!({"p": {"type": "oauth", "access": "A", "refresh": "R", "expires": 1, "env": {"X": "E"}},
            "providers": {"q": {"apiKey": "K", "baseUrl": "u", "headers": {"a": "Bearer H"}}}});
        let mut found = Vec::new();
        keys_in(&value, false, &mut found);
        found.sort();
        assert_eq!(found, ["A", "Bearer H", "E", "H", "K", "R"]);
    }
}
