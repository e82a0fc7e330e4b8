//! Resolves values in auth.json and models.json that refer to a variable or a command.
//!
//! | written | means |
//! |---|---|
//! | `$NAME`, `${NAME}` | that variable, also inside text; unset or empty is an error |
//! | `$$`, `$!` | a plain `$`, `!` |
//! | `!command` | what the command prints, without blanks around it |
//! | anything else | itself |
//!
//! Errors name the setting, and a variable that is not set, but never quote a value: a command may contain a
//! password, and so may its output.
//!
//! A command runs in `sh`, in its own process group, for at most ten seconds; at the time limit or on
//! cancellation the whole group is killed. Only successful results are cached, so that a user can unlock a
//! key store without a restart.

use crate::base::cancel::CancelToken;
use crate::base::child::{self, End, Job, Until, Wanted};
use crate::base::env::Env;
use crate::base::executable;
use crate::llm::secret::{Secret, Vault};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// Largest output of a command, in bytes.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// How long the result of a command is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Process,
    No,
}

/// Resolves `value`. `setting` names its place in error messages.
pub fn resolve(
    value: &str,
    setting: &str,
    keep: Keep,
    env: &Env,
    cancel: &CancelToken,
) -> Result<Secret, String> {
    let Some(command) = value.strip_prefix('!') else {
        return expand(value, setting, env).map(Secret::new);
    };
    if keep == Keep::Process
        && let Some(known) = kept().get(command)
    {
        return Ok(known.clone());
    }
    let output = run(command, COMMAND_LIMIT, cancel)
        .map_err(|reason| format!("{setting} is a command, and it {reason}"))?;
    let output = Secret::new(output.trim());
    if output.expose().is_empty() {
        return Err(format!("{setting} is a command, and it printed nothing"));
    }
    if keep == Keep::Process {
        kept().insert(command.to_owned(), output.clone());
    }
    Ok(output)
}

/// True if `value` can probably be resolved: a command is not run, and no variable is missing.
pub fn is_resolvable(value: &str, env: &Env) -> bool {
    value.starts_with('!') || missing(value, env).is_empty()
}

/// Adds the secrets behind `value` to `vault`: each variable under its own name, plain text under `name`. A
/// command is not run; only its cached result is added.
pub fn learn(value: &str, name: &str, env: &Env, vault: &Vault) {
    if let Some(command) = value.strip_prefix('!') {
        if let Some(printed) = kept().get(command) {
            vault.learn(name, printed.expose());
        }
        return;
    }
    let variables = variables(value);
    for variable in &variables {
        vault.learn(variable, &env.get(variable).unwrap_or_default());
    }
    if variables.is_empty()
        && let Ok(text) = expand(value, name, env)
    {
        vault.learn(name, &text);
    }
}

/// Adds the variables in `value` that look like secrets to `vault`, for a header whose name does not suggest
/// one.
pub fn learn_variables(value: &str, env: &Env, vault: &Vault) {
    for variable in variables(value) {
        vault.learn_if_random(variable, &env.get(variable).unwrap_or_default());
    }
}

/// The names of the variables in `value`; empty for a command.
pub fn variables(value: &str) -> Vec<&str> {
    let mut names = Vec::new();
    if !value.starts_with('!') {
        each_part(value, |part| {
            if let Part::Variable(name) = part {
                names.push(name);
            }
        });
    }
    names
}

/// The output of a command that may run for `limit`. An error is a predicate, such as "could not start: …".
pub fn output(command: &str, limit: Duration, cancel: &CancelToken) -> Result<Secret, String> {
    run(command, limit, cancel).map(Secret::new)
}

fn kept() -> std::sync::MutexGuard<'static, BTreeMap<String, Secret>> {
    static KEPT: Mutex<BTreeMap<String, Secret>> = Mutex::new(BTreeMap::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn expand(value: &str, setting: &str, env: &Env) -> Result<String, String> {
    let missing = missing(value, env);
    if !missing.is_empty() {
        let names = missing.join(", ");
        let (noun, verb) = match missing.len() {
            1 => ("variable", "is"),
            _ => ("variables", "are"),
        };
        return Err(format!("{setting} needs the environment {noun} {names}, which {verb} not set"));
    }
    let mut text = String::with_capacity(value.len());
    each_part(value, |part| match part {
        Part::Text(literal) => text.push_str(literal),
        Part::Variable(name) => text.push_str(&env.get(name).unwrap_or_default()),
    });
    Ok(text)
}

/// The variables in `value` that are not set, each once.
fn missing<'a>(value: &'a str, env: &Env) -> Vec<&'a str> {
    let mut names = Vec::new();
    each_part(value, |part| {
        if let Part::Variable(name) = part
            && !env.has(name)
            && !names.contains(&name)
        {
            names.push(name);
        }
    });
    names
}

enum Part<'a> {
    Text(&'a str),
    Variable(&'a str),
}

fn each_part<'a>(value: &'a str, mut each: impl FnMut(Part<'a>)) {
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        each(Part::Text(&rest[..at]));
        let (part, len) = reference(&rest[at..]);
        each(part);
        rest = &rest[at + len..];
    }
    each(Part::Text(rest));
}

/// Parses the `$` at the start of `text`, and returns the part and its length in bytes.
fn reference(text: &str) -> (Part<'_>, usize) {
    let after = &text[1..];
    let itself = (Part::Text(&text[..1]), 1);
    match after.as_bytes().first() {
        Some(b'$' | b'!') => (Part::Text(&after[..1]), 2),
        Some(b'{') => match after[1..].split_once('}') {
            None => itself,
            Some((name, _)) if !name.is_empty() && name_len(name) == name.len() => {
                (Part::Variable(name), name.len() + 3)
            }
            // Not a name: the text is kept, with its braces.
            Some((name, _)) => (Part::Text(&text[..name.len() + 3]), name.len() + 3),
        },
        _ => match name_len(after) {
            0 => itself,
            len => (Part::Variable(&after[..len]), len + 1),
        },
    }
}

/// Length of the variable name at the start of `text`, in bytes.
fn name_len(text: &str) -> usize {
    let name = |(at, byte): &(usize, u8)| {
        byte.is_ascii_alphabetic() || *byte == b'_' || (*at > 0 && byte.is_ascii_digit())
    };
    text.bytes().enumerate().take_while(name).count()
}

/// The output of `command`. An error is a predicate, such as "was aborted".
fn run(command: &str, limit: Duration, cancel: &CancelToken) -> Result<String, String> {
    let mut shell = Command::new(executable::SHELL);
    shell.args(["-c", command]).env("PATH", executable::path()).process_group(0);
    let (read, until) = (Wanted::Output, Until::GroupEnd);
    let job = Job { input: b"", read, until, limit, output_max: OUTPUT_LIMIT, cancel };
    let ran = child::run(shell, &job).map_err(|error| format!("could not start: {error}"))?;
    match ran.end {
        _ if cancel.is_cancelled() => Err("was aborted".to_owned()),
        End::Late => Err(out_of_time(limit)),
        End::TooMuch => Err(format!("printed more than {} KB", OUTPUT_LIMIT / 1024)),
        End::Done | End::Cancelled if ran.status.success() => {
            String::from_utf8(ran.output).map_err(|_| "printed something that is not UTF-8".to_owned())
        }
        End::Done | End::Cancelled => Err(match ran.status.code() {
            Some(code) => format!("failed with exit code {code}"),
            None => "was killed by a signal".to_owned(),
        }),
    }
}

fn out_of_time(limit: Duration) -> String {
    format!("did not end within {} seconds", limit.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::time::Instant;

    fn env() -> Env {
        Env::of([("A", "alpha"), ("B_2", "beta"), ("EMPTY", "")])
    }

    #[track_caller]
    fn check(value: &str, expected: Result<&str, &str>) {
        let got = resolve(value, "setting", Keep::No, &env(), &CancelToken::new());
        let got = got.as_ref().map(Secret::expose).map_err(String::as_str);
        assert_eq!(got, expected, "{value}");
        if !value.starts_with('!') {
            assert_eq!(is_resolvable(value, &env()), got.is_ok(), "{value}");
        }
    }

    #[test]
    fn variables_escapes_and_text() {
        check("plain", Ok("plain"));
        check("", Ok(""));
        check("$A", Ok("alpha"));
        check("${A}", Ok("alpha"));
        check("Bearer ${A}-$B_2.", Ok("Bearer alpha-beta."));
        check("$A$A", Ok("alphaalpha"));
        check("$$A", Ok("$A"));
        check("$$$A", Ok("$alpha"));
        check("$!x", Ok("!x"));
        check("a!b", Ok("a!b"));
        check("$", Ok("$"));
        check("a$ b", Ok("a$ b"));
        check("$1", Ok("$1"));
        check("${", Ok("${"));
        check("${}", Ok("${}"));
        check("${a b}", Ok("${a b}"));
        check("${A", Ok("${A"));
        check("${a$A}$A", Ok("${a$A}alpha"));
        check("$ä", Ok("$ä"));
    }

    #[test]
    fn a_missing_variable_is_named() {
        let one = "setting needs the environment variable NOPE, which is not set";
        check("$NOPE", Err(one));
        check("x${NOPE}y$NOPE", Err(one));
        check("$NOPE $EMPTY", Err("setting needs the environment variables NOPE, EMPTY, which are not set"));
    }

    #[test]
    fn commands() {
        check("!printf ' key\\n\\n'", Ok("key"));
        check("!echo $((1+1))", Ok("2"));
        check("!cat", Err("setting is a command, and it printed nothing"));
        check("!true", Err("setting is a command, and it printed nothing"));
        check("!echo x; exit 3", Err("setting is a command, and it failed with exit code 3"));
        check("!kill -9 $$", Err("setting is a command, and it was killed by a signal"));
        check("!no-such-program-here", Err("setting is a command, and it failed with exit code 127"));
        check("!printf '\\377'", Err("setting is a command, and it printed something that is not UTF-8"));
        check("!yes", Err("setting is a command, and it printed more than 64 KB"));
    }

    #[test]
    fn a_command_is_kept_only_where_that_is_asked_and_only_when_it_succeeded() {
        let dir = TempDir::create();
        let file = dir.path().join("count");
        let command = format!("!echo x >> '{0}'; wc -l < '{0}'; test -s '{0}.on'", file.display());
        let ask = |keep| {
            let got = resolve(&command, "s", keep, &env(), &CancelToken::new());
            got.ok().map(|secret| secret.expose().to_owned())
        };
        assert_eq!(ask(Keep::Process), None);
        dir.write("count.on", "1");
        assert_eq!(ask(Keep::Process).as_deref(), Some("2"));
        assert_eq!(ask(Keep::Process).as_deref(), Some("2"));
        assert_eq!(ask(Keep::No).as_deref(), Some("3"));
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let limit = Duration::from_millis(50);
        for command in
            ["sleep 1000 & sleep 1000", "exec >&-; sleep 1000", "trap '' TERM; while :; do sleep 1000; done"]
        {
            let got = run(command, limit, &CancelToken::new());
            assert_eq!(got, Err(out_of_time(limit)), "{command}");
        }
    }

    #[test]
    fn what_a_command_leaves_behind_is_killed() {
        let got = run("sleep 1000 >/dev/null & echo $!", COMMAND_LIMIT, &CancelToken::new());
        let id: libc::pid_t = got.unwrap().trim().parse().unwrap();
        // Its new parent may need a moment to reap it; killed it is.
        let gone = || {
            // SAFETY: signal 0 only asks whether the process exists.
            let missing = unsafe { libc::kill(id, 0) } != 0;
            let state = std::fs::read_to_string(format!("/proc/{id}/stat"));
            missing || state.is_ok_and(|state| state.contains(") Z "))
        };
        let deadline = Instant::now() + Duration::from_secs(5);
        while !gone() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(gone());
    }

    #[test]
    fn a_cancel_ends_a_command_at_once() {
        let cancel = CancelToken::new();
        let token = cancel.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || token.cancel());
            let got = run("sleep 1000", COMMAND_LIMIT, &cancel);
            assert_eq!(got, Err("was aborted".to_owned()));
        });
    }

    #[test]
    fn errors_hold_neither_the_command_nor_its_output() {
        let got = resolve("!echo canary-7; exit 1 # pw canary-8", "s", Keep::No, &env(), &CancelToken::new());
        assert!(!format!("{got:?}").contains("canary"));
        let got = resolve("$A canary-9", "s", Keep::No, &env(), &CancelToken::new());
        assert!(!format!("{got:?}").contains("canary"));
    }

    proptest::proptest! {
        #[test]
        fn text_without_a_dollar_is_itself(value in "[^$!][^$]*") {
            check(&value, Ok(&value));
        }

        #[test]
        fn any_text_can_be_escaped(value in ".*") {
            let escaped = value.replace('$', "$$");
            let escaped = match escaped.strip_prefix('!') {
                Some(rest) => format!("$!{rest}"),
                None => escaped,
            };
            check(&escaped, Ok(&value));
        }

        #[test]
        fn nothing_panics(value in "[${}!A_ ä]*") {
            proptest::prop_assume!(!value.starts_with('!'));
            let _ = resolve(&value, "s", Keep::No, &env(), &CancelToken::new());
        }
    }
}
