//! Finds the command that the arguments ask for, and refuses arguments that do not go together.
//!
//! Arguments are refused here, before a file is read or a question asked.

use super::flags::{Args, Mode, SessionArgs, Unknown};
use super::say::BAD_USAGE;
use crate::mode::exit::FAILED;
use std::ffi::OsString;

/// The command that the arguments ask for.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// With `json`, as an object for programs.
    Version {
        json: bool,
    },
    Help,
    /// Writes a session file as a page.
    Export {
        file: String,
        out: Option<String>,
    },
    /// Lists the models whose names contain this text.
    ListModels(String),
    /// `pi auth`, started by an editor with the agent's arguments before it.
    Auth(Vec<OsString>),
    Acp,
    Mcp,
    Jobs,
    Rpc,
    /// Asks a model, in print, JSON or interactive mode.
    Prompt,
}

/// A refusal: the error text, and the exit code.
#[derive(Debug, PartialEq)]
pub struct Refused {
    pub text: String,
    pub code: u8,
}

impl Refused {
    /// Nobody knows the flag.
    pub fn unknown(flag: &Unknown) -> Self {
        Self { text: format!("{}\nTry pi --help.", flag.refusal()), code: BAD_USAGE }
    }
}

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self { text, code: FAILED }
    }
}

impl Command {
    /// Returns the command of `args`, or why they do not go together.
    pub fn of(args: &Args) -> Result<Self, Refused> {
        let (run, session, model) = (&args.run, &args.session, &args.over.model);
        let refuse = |text: &str| Err(Refused { text: text.to_owned(), code: FAILED });
        if run.version {
            return Ok(Self::Version { json: run.mode == Some(Mode::Json) });
        }
        if run.help {
            return Ok(Self::Help);
        }
        // Only extensions know flags that are not in the table, and only these commands start them.
        let starts_extensions = run.export.is_none()
            && run.list_models.is_none()
            && !matches!(run.mode, Some(Mode::Acp | Mode::Mcp | Mode::Jobs));
        if let Some(flag) = args.unknown.first().filter(|_| !starts_extensions) {
            return Err(Refused::unknown(flag));
        }
        if let Some(file) = &run.export {
            return match run.dash {
                true => Err(Refused {
                    text: "Unknown option: -\nTo write a session to stdout: pi export SESSION -".to_owned(),
                    code: BAD_USAGE,
                }),
                false => Ok(Self::Export { file: file.clone(), out: args.messages.first().cloned() }),
            };
        }
        if let Some(search) = &run.list_models {
            return Ok(Self::ListModels(search.clone()));
        }
        let has_prompt = !args.messages.is_empty() || !args.files.is_empty();
        let names_session = session.resume
            || session.continue_last
            || session.session.is_some()
            || session.session_id.is_some()
            || session.fork.is_some();
        let command = match (run.mode, args.messages.split_first()) {
            (Some(Mode::Acp), Some((first, words))) if first == "auth" => {
                return Ok(Self::Auth(words.iter().map(OsString::from).collect()));
            }
            (Some(Mode::Acp), _) if has_prompt => {
                return refuse(
                    "Prompts and @file arguments are not supported in ACP mode: the editor sends the prompts",
                );
            }
            (Some(Mode::Acp), _) if names_session => {
                return refuse(
                    "In ACP mode the editor opens sessions; leave out --continue, --resume, --session, --session-id and --fork",
                );
            }
            (Some(Mode::Acp), _) => Self::Acp,
            (Some(Mode::Mcp), _) if has_prompt || names_session => {
                return refuse("In MCP mode the client sends prompts and names sessions; leave them out");
            }
            (Some(Mode::Mcp), _) => Self::Mcp,
            (Some(Mode::Jobs), _) => Self::Jobs,
            (Some(Mode::Rpc), _) if !args.files.is_empty() => {
                return refuse("@file arguments are not supported in RPC mode");
            }
            (Some(Mode::Rpc), _) => Self::Rpc,
            (Some(Mode::Text | Mode::Json) | None, _) => Self::Prompt,
        };
        if run.listen.is_some() && command != Self::Mcp {
            return refuse("--listen requires --mode mcp");
        }
        if run.yes && !run.plan {
            return refuse("--yes accepts a plan, and requires --plan");
        }
        if run.plan && run.mode == Some(Mode::Acp) {
            return refuse("--plan is not supported in ACP mode");
        }
        if let (Some(provider), None) = (&model.provider, &model.model) {
            return refuse(&format!(
                "--provider requires --model (for example: --provider {provider} --model <pattern>)"
            ));
        }
        if model.api_key.is_some() && model.model.is_none() && model.models.is_none() {
            return refuse(
                "--api-key requires a model to be specified via --model, --provider/--model, or --models",
            );
        }
        Ok(command)
    }
}

/// Refuses flags that name a session in two ways, and invalid session ids.
pub fn check_session(session: &SessionArgs) -> Result<(), String> {
    let given = [
        (session.session.is_some(), "--session"),
        (session.continue_last, "--continue"),
        (session.resume, "--resume"),
        (session.no_session, "--no-session"),
    ];
    let alone = |flag: &str, others: &[(bool, &str)]| {
        let others = others.iter().filter(|(given, _)| *given);
        let others: Vec<&str> = others.map(|(_, other)| *other).collect();
        match others.as_slice() {
            [] => Ok(()),
            _ => Err(format!("{flag} cannot be combined with {}", others.join(", "))),
        }
    };
    if session.fork.is_some() {
        alone("--fork", &given)?;
    }
    if session.parent_session.is_some() {
        alone("--parent-session", &given)?;
        alone("--parent-session", &[(session.fork.is_some(), "--fork")])?;
    }
    let Some(id) = &session.session_id else {
        return Ok(());
    };
    alone("--session-id", given.get(..3).unwrap_or_default())?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !id.chars().all(allowed) || !edge(id.chars().next()) || !edge(id.chars().last()) {
        return Err(format!(
            "Invalid session id \"{id}\": letters, digits, '.', '_' and '-', with a letter or digit at both ends"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::flags;

    #[test]
    fn arguments_go_together_or_are_refused() {
        let of = |words: &str| {
            Command::of(&flags::parse(words.split_whitespace().map(OsString::from)).unwrap())
                .map_err(|refused| (refused.text, refused.code))
        };
        let auth = Command::Auth(vec!["login".into(), "x".into()]);
        let export = Command::Export { file: "a".into(), out: Some("b".into()) };
        let rows = [
            ("-v --export a -", Command::Version { json: false }),
            ("--version --json", Command::Version { json: true }),
            ("--export a b", export),
            ("--list-models --api-key k", Command::ListModels(String::new())),
            ("--mode acp auth login x", auth),
            ("--mode acp", Command::Acp),
            ("--mode mcp", Command::Mcp),
            ("--mode rpc hello", Command::Rpc),
            ("--json @a b", Command::Prompt),
            ("--api-key k --models a,b", Command::Prompt),
        ];
        for (words, expected) in rows {
            assert_eq!(of(words), Ok(expected), "{words}");
        }
        let rows = [
            ("--export a -", "Unknown option: -\n", BAD_USAGE),
            ("--mode acp hello", "Prompts and @file", FAILED),
            ("--mode acp @a", "Prompts and @file", FAILED),
            ("--mode mcp -c", "In MCP mode the client", FAILED),
            ("--mode acp -c", "In ACP mode the editor", FAILED),
            ("--mode rpc @a", "@file arguments", FAILED),
            ("--api-key k hello", "--api-key requires", FAILED),
            (
                "--mode acp --api-key k --provider p",
                "--provider requires --model (for example: --provider p --model",
                FAILED,
            ),
            ("--provider p -p x", "--provider requires --model", FAILED),
            ("--yes -p x", "--yes accepts a plan", FAILED),
            ("--plan --mode acp", "--plan is not supported", FAILED),
        ];
        for (words, expected, code) in rows {
            let (text, given) = of(words).unwrap_err();
            assert!(text.starts_with(expected), "{words}: {text}");
            assert_eq!(given, code, "{words}");
        }
    }
}
