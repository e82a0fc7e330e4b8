//! Parses the command line. One table feeds the parser, `--help` and `pi docs cli`.
//!
//! Parsing reads nothing but the arguments. Flags have the reference's names, including short names of
//! several letters (`-nt`, `-xt`), so a word is looked up whole before it is read as a cluster of letters.
//! Every flag accepts `--name=value`.

use super::command;
use super::table::{Flag, GROUPS, Set, Value};
use crate::base::distance::{Compare, between, letters};
use crate::runtime::overrides::Overrides;
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The parsed command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Args {
    pub run: RunArgs,
    pub session: SessionArgs,
    /// Options that override settings, for every session.
    pub over: Overrides,
    /// Trust in the project for this run: `--approve` or `--no-approve`.
    pub approve: Option<bool>,
    /// The state of the project that is trusted.
    pub agreed_state: Option<String>,
    pub messages: Vec<String>,
    /// Paths given as `@path`.
    pub files: Vec<OsString>,
    /// Flags that pi does not know; an extension may.
    pub unknown: Vec<Unknown>,
    /// Warnings to print on stderr.
    pub warnings: Vec<String>,
}

/// A flag that is not in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub name: String,
    /// The text after `=`.
    pub value: Option<String>,
    /// Index among the messages of the word that follows: the value, if the flag takes one.
    pub next: Option<usize>,
}

/// What the program should do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunArgs {
    pub help: bool,
    pub version: bool,
    pub verbose: bool,
    pub offline: bool,
    /// Without MCP servers.
    pub no_mcp: bool,
    /// Background jobs outlive pi.
    pub keep_jobs: bool,
    /// Parts of the program that `-e builtin:NAME` asks for, whatever switches them off.
    pub builtins: Vec<String>,
    pub mode: Option<Mode>,
    pub print: bool,
    pub cumulative_events: bool,
    pub ready: bool,
    /// True for `--tui-mode fullscreen`; overrides the setting.
    pub fullscreen: Option<bool>,
    /// Text that the names of listed models contain; empty for all models.
    pub list_models: Option<String>,
    /// The session file to write as a page. The first message is the page's path.
    pub export: Option<String>,
    /// True if a lone `-` was given.
    pub dash: bool,
    /// The path of a JSON schema.
    pub listen: Option<String>,
    pub output_schema: Option<String>,
    /// True to begin in plan mode.
    pub plan: bool,
    /// True to accept plans without a question.
    pub yes: bool,
}

/// The session to open, and its folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionArgs {
    pub cwd: Option<String>,
    pub continue_last: bool,
    pub resume: bool,
    pub session: Option<String>,
    pub fork: Option<String>,
    pub session_id: Option<String>,
    /// The session file that a new session names as its origin.
    pub parent_session: Option<String>,
    pub session_dir: Option<String>,
    pub no_session: bool,
    pub name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Text,
    Json,
    Rpc,
    Acp,
    Mcp,
    /// The process of jobs that outlive pi.
    Jobs,
}

/// An error in the command line.
#[derive(Debug, PartialEq)]
pub enum UsageError {
    UnknownFlag {
        name: String,
        /// A known flag with a similar name.
        similar: Option<&'static str>,
    },
    MissingValue {
        flag: &'static str,
    },
    Other(String),
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFlag { name, similar: None } => write!(f, "Unknown option: --{name}"),
            Self::UnknownFlag { name, similar: Some(similar) } => {
                write!(f, "Unknown option: --{name}. Did you mean --{similar}?")
            }
            Self::MissingValue { flag } => write!(f, "--{flag} requires a value"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<String> for UsageError {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

/// Splits a list at its commas, and trims its items.
pub(super) fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Parses the arguments, without the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Args, UsageError> {
    let args = parse_open(arguments)?;
    match args.unknown.first() {
        Some(flag) => Err(flag.refusal()),
        None => Ok(args),
    }
}

/// As [`parse`], but flags that pi does not know are kept: extensions may.
pub fn parse_open(arguments: impl IntoIterator<Item = OsString>) -> Result<Args, UsageError> {
    let mut args = Args::default();
    let mut parser = Parser::from_args(arguments);
    parse_into(&mut args, &mut parser)?;
    command::check_session(&args.session)?;
    Ok(args)
}

impl Unknown {
    /// Says that nobody knows the flag.
    pub fn refusal(&self) -> UsageError {
        unknown(&self.name)
    }
}

fn parse_into(args: &mut Args, parser: &mut Parser) -> Result<(), UsageError> {
    loop {
        // `-nt` is one name, not `-n -t`, so the raw word is checked before lexopt splits it.
        if let Some(raw) = parser.try_raw_args()
            && raw.peek().is_some_and(|word| word == "--")
        {
            raw.skip(1).for_each(|word| positional(args, word));
            return Ok(());
        }
        if let Some(mut raw) = parser.try_raw_args()
            && let Some(flag) = raw.peek().and_then(|word| word.to_str()).and_then(long_short)
        {
            raw.next();
            set(args, flag, parser)?;
            continue;
        }
        match parser.next().map_err(|error| error.to_string())? {
            None => return Ok(()),
            Some(Arg::Long(name)) => {
                let name = name.to_owned();
                match flags().find(|flag| flag.long == name) {
                    Some(flag) => set(args, flag, parser)?,
                    None => {
                        let value = parser.optional_value().map(string).transpose()?;
                        let next = parser.try_raw_args().and_then(|raw| {
                            let is_word = |word: &OsStr| !matches!(word.as_bytes(), [b'-' | b'@', ..]);
                            raw.peek().is_some_and(is_word).then_some(args.messages.len())
                        });
                        let next = next.filter(|_| value.is_none());
                        args.unknown.push(Unknown { name, value, next });
                    }
                }
            }
            Some(Arg::Short(letter)) => {
                let mut short = [0; 4];
                let short: &str = letter.encode_utf8(&mut short);
                let flag = flags().find(|flag| flag.short == Some(short));
                set(args, flag.ok_or_else(|| format!("Unknown option: -{letter}"))?, parser)?;
            }
            Some(Arg::Value(word)) => positional(args, word),
        }
    }
}

fn positional(args: &mut Args, word: OsString) {
    match word.as_bytes() {
        // Stdin is read anyway unless it is a terminal, so a dash has no effect.
        b"-" => args.run.dash = true,
        [b'@', path @ ..] if !path.is_empty() => args.files.push(OsString::from_vec(path.to_vec())),
        _ => message(args, &word),
    }
}

/// Adds a message. Bytes that are not UTF-8 are replaced, with a warning.
fn message(args: &mut Args, word: &OsStr) {
    let text = word.to_string_lossy();
    if word.to_str().is_none() {
        args.warnings.push(format!("A message is not valid UTF-8; it is read as {text:?}"));
    }
    args.messages.push(text.into_owned());
}

fn string(word: OsString) -> Result<String, String> {
    word.string().map_err(|error| error.to_string())
}

fn flags() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().flat_map(|group| group.flags)
}

/// Returns the flag whose short name of several letters is the whole word.
fn long_short(word: &str) -> Option<&'static Flag> {
    let name = word.strip_prefix('-').filter(|name| name.len() > 1)?;
    flags().find(|flag| flag.short == Some(name))
}

fn set(args: &mut Args, flag: &Flag, parser: &mut Parser) -> Result<(), UsageError> {
    let value = match flag.value {
        Value::None => None,
        Value::Required(_) => {
            let value = parser.value().map_err(|_| UsageError::MissingValue { flag: flag.long })?;
            Some(string(value)?)
        }
        Value::Optional(_) if flag.long == "print" => {
            if let Some(word) = optional(flag, parser).filter(|word| !word.is_empty()) {
                message(args, &word);
            }
            None
        }
        Value::Optional(_) => Some(optional(flag, parser).map_or(Ok(String::new()), string)?),
    };
    let value = value.unwrap_or_default();
    match &flag.set {
        Set::Switch(field) => *field(args) = true,
        Set::Text(field) => *field(args) = Some(value),
        Set::List(field) => *field(args) = Some(list(&value)),
        Set::Push(field) => field(args).push(value),
        Set::With(set) => set(args, value)?,
    }
    Ok(())
}

fn optional(flag: &Flag, parser: &mut Parser) -> Option<OsString> {
    if let Some(value) = parser.optional_value() {
        return Some(value);
    }
    let mut raw = parser.try_raw_args()?;
    // A prompt may begin with `---`, like the head of a document.
    let is_value = |word: &[u8]| match word {
        [b'@', ..] => false,
        [b'-', ..] => flag.long == "print" && word.starts_with(b"---"),
        _ => true,
    };
    raw.peek().is_some_and(|word| is_value(word.as_bytes())).then(|| raw.next()).flatten()
}

fn unknown(name: &str) -> UsageError {
    let known = flags().map(|flag| flag.long);
    let near = known.map(|long| (between(&letters(name), &letters(long), Compare::Whole), long)).min();
    let similar = near.filter(|(distance, _)| *distance <= 2).map(|(_, long)| long);
    UsageError::UnknownFlag { name: name.to_owned(), similar }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::model::ThinkingLevel;
    use crate::runtime::selection::Selection;

    fn parse_words(words: &str) -> Result<Args, String> {
        parse(words.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(words: &str, expected: impl FnOnce(&mut Args)) {
        let mut args = Args::default();
        expected(&mut args);
        assert_eq!(parse_words(words), Ok(args), "{words}");
    }

    #[track_caller]
    fn refused(words: &str, expected: &str) {
        assert_eq!(parse_words(words), Err(expected.into()), "{words}");
    }

    #[test]
    fn short_names_of_several_letters_are_whole_words() {
        check("-nt", |args| args.over.tools.none = true);
        check("-n t", |args| args.session.name = Some("t".into()));
        check("-nbt -nc", |args| {
            (args.over.tools.no_builtin, args.over.resources.no_context_files) = (true, true)
        });
        check("-xt read,bash", |args| args.over.tools.excluded = vec!["read".into(), "bash".into()]);
        check("-ne -ns -np -na", |args| {
            args.over.resources.no_extensions = true;
            (args.over.resources.no_skills, args.over.resources.no_prompt_templates) = (true, true);
            args.approve = Some(false);
        });
    }

    #[test]
    fn print_takes_the_next_word_unless_it_is_a_flag_or_a_file() {
        check("-p hello", |args| (args.run.print, args.messages) = (true, vec!["hello".into()]));
        check("-p ---x", |args| (args.run.print, args.messages) = (true, vec!["---x".into()]));
        check("-p -c", |args| (args.run.print, args.session.continue_last) = (true, true));
        check("-p @a b", |args| {
            (args.run.print, args.files, args.messages) = (true, vec!["a".into()], vec!["b".into()]);
        });
        check("-p", |args| args.run.print = true);
    }

    #[test]
    fn words_that_are_not_utf8_are_paths_and_lossy_prompts() {
        let word = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        for print in ["-p", "--"] {
            let args = parse([word(print.as_bytes()), word(b"caf\xe9")]).unwrap();
            assert_eq!(args.messages, ["caf\u{fffd}"]);
            assert_eq!(args.warnings.len(), 1);
        }
        for words in [vec![word(b"-p"), word(b"@caf\xe9")], vec![word(b"@caf\xe9")]] {
            let args = parse(words).unwrap();
            assert_eq!(args.files, [word(b"caf\xe9")]);
            assert_eq!(args.warnings, [""; 0]);
        }
        assert!(parse([word(b"--model"), word(b"caf\xe9")]).is_err());
    }

    #[test]
    fn two_dashes_end_the_options() {
        check("-p -- -dash @f --help -nc", |args| {
            args.run.print = true;
            args.messages = vec!["-dash".into(), "--help".into(), "-nc".into()];
            args.files = vec!["f".into()];
        });
    }

    #[test]
    fn values_may_be_joined_or_separate() {
        check("--model=a/b:high --thinking low", |args| {
            (args.over.model.model, args.over.model.thinking) =
                (Some("a/b:high".into()), Some(ThinkingLevel::Low));
        });
        check("--append-system-prompt -x --append-system-prompt y", |args| {
            args.over.resources.append_system_prompt = vec!["-x".into(), "y".into()];
        });
        check("--list-models -p", |args| {
            (args.run.list_models, args.run.print) = (Some(String::new()), true)
        });
        check("--list-models son", |args| args.run.list_models = Some("son".into()));
        let tools = |entries: &[&str]| entries.iter().map(|&entry| entry.to_owned()).collect();
        check("--tools read,,grep,", |args| {
            args.over.tools.selection = Some(Selection::Only(tools(&["read", "grep"])));
        });
        check("-t read -t +ls,-write", |args| {
            args.over.tools.selection = Some(Selection::Change(tools(&["+ls", "-write"])));
        });
        check("-e builtin:codemode --no-mcp -e builtin:mcp -e builtin:llama.cpp", |args| {
            args.run.no_mcp = true;
            args.run.builtins = ["codemode", "mcp", "llama.cpp"].map(str::to_owned).to_vec();
        });
    }

    #[test]
    fn bad_usage_is_named() {
        refused("--bogus", "Unknown option: --bogus");
        refused("--modell x", "Unknown option: --modell. Did you mean --model?");
        refused("-z", "Unknown option: -z");
        refused("--mode", "--mode requires a value");
        refused("--mode foo", "Invalid mode \"foo\". Valid values: text, json, rpc, acp, mcp");
        refused("--model", "--model requires a value");
        refused("-t a,+b", "--tools: tool names cannot be mixed with +name or -name entries");
        refused("-e builtin:x", "Unknown built-in extension: builtin:x");
        refused("--session-id a --session b", "--session-id cannot be combined with --session");
        refused("--session-id a -c", "--session-id cannot be combined with --continue");
        assert!(parse_words("--session-id a/b").is_err());
        assert!(parse_words("--session-id .a").is_err());
        refused(
            "--fork x --session a --no-session",
            "--fork cannot be combined with --session, --no-session",
        );
    }

    #[test]
    fn a_bad_thinking_level_is_only_a_warning() {
        let args = parse_words("--thinking loud hi").unwrap();
        assert_eq!(args.messages, ["hi"]);
        assert_eq!(args.warnings.len(), 1);
    }

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<String> = flags().map(|flag| format!("--{}", flag.long)).collect();
        names.extend(flags().filter_map(|flag| flag.short).map(|short| format!("-{short}")));
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
