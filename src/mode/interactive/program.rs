//! Runs small programs for the terminal: clipboards, `gh`, `trash`.
//!
//! Each runs off the drawing thread, with a time limit.

use crate::base::child::{self, End, Until, Wanted};
use crate::runtime::{CancelToken, executable, service, without_controls};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Maximum bytes of output.
const OUTPUT_MAX: usize = 64 << 20;

/// Maximum bytes that a command may print where a line is wanted.
const LINE_MAX: usize = 64 << 10;

/// Input and limits of a program.
pub struct Job<'a> {
    pub arguments: &'a [&'a str],
    pub input: Vec<u8>,
    /// True to read the output. A program that continues in the background, such as a clipboard's, must not
    /// get pipes, which it would keep open.
    pub is_read: bool,
    pub limit: Duration,
    pub cancel: &'a CancelToken,
}

/// The result of a program.
pub struct Ran {
    pub is_success: bool,
    pub output: Vec<u8>,
    pub errors: String,
}

/// Runs a program to its end; an error if it cannot run or exceeds the time limit.
pub fn run(name: &str, job: Job<'_>) -> io::Result<Ran> {
    let program = executable::find(name).ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(job.arguments).process_group(0);
    let ran = child::run(
        command,
        &child::Job {
            input: &job.input,
            read: if job.is_read { Wanted::OutputAndErrors } else { Wanted::Nothing },
            until: Until::Exit,
            limit: job.limit,
            output_max: OUTPUT_MAX,
            cancel: job.cancel,
        },
    )?;
    match ran.end {
        End::Late | End::Cancelled => Err(io::ErrorKind::TimedOut.into()),
        End::Done | End::TooMuch => Ok(Ran {
            is_success: ran.status.success(),
            output: ran.output,
            errors: String::from_utf8_lossy(&ran.errors).trim().to_owned(),
        }),
    }
}

/// Runs a command of the settings in a shell, without the keys of providers in its environment. Returns the first
/// line that it prints; an error is a predicate, such as "failed with exit code 1".
pub fn first_line(
    command: &str,
    input: Vec<u8>,
    limit: Duration,
    cancel: &CancelToken,
) -> Result<String, String> {
    let mut shell = Command::new(executable::SHELL);
    shell.args(["-c", command]).env_clear().envs(service::environment()).process_group(0);
    let job = child::Job {
        input: &input,
        read: Wanted::OutputAndErrors,
        until: Until::GroupEnd,
        limit,
        output_max: LINE_MAX,
        cancel,
    };
    let ran = child::run(shell, &job).map_err(|error| format!("could not start: {error}"))?;
    let first =
        |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().trim().to_owned();
    match (ran.end, ran.status.code()) {
        (End::Late, _) => Err(format!("did not end within {} s", limit.as_secs_f64())),
        (End::TooMuch, _) => Err(format!("printed more than {LINE_MAX} bytes")),
        (End::Cancelled, _) => Err("was aborted".to_owned()),
        (End::Done, Some(0)) => {
            Ok(String::from_utf8_lossy(&ran.output).lines().next().unwrap_or_default().to_owned())
        }
        (End::Done, Some(code)) => {
            let said = first(&ran.errors);
            let said =
                if said.is_empty() { said } else { format!(": {}", without_controls(said.as_bytes())) };
            Err(format!("failed with exit code {code}{said}"))
        }
        (End::Done, None) => Err("was killed by a signal".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &str, is_read: bool, limit: Duration) -> io::Result<Ran> {
        run(
            "sh",
            Job {
                arguments: &["-c", script],
                input: input.into(),
                is_read,
                limit,
                cancel: &CancelToken::new(),
            },
        )
    }

    #[test]
    fn a_program_is_given_its_input_and_read() {
        let long = Duration::from_secs(30);
        let ran = shell("cat; echo bad >&2; exit 3", "text", true, long).unwrap();
        assert_eq!((ran.is_success, &*ran.output, &*ran.errors), (false, &b"text"[..], "bad"));
        assert!(shell("true", &"x".repeat(1 << 20), true, long).unwrap().is_success);
        let missing = run(
            "no-such-program-anywhere",
            Job {
                arguments: &[],
                input: Vec::new(),
                is_read: true,
                limit: long,
                cancel: &CancelToken::new(),
            },
        );
        assert!(missing.is_err());
    }

    #[test]
    fn one_that_takes_too_long_is_killed_and_one_that_stays_is_left() {
        let error = shell("sleep 600", "", true, Duration::from_millis(50)).err();
        assert_eq!(error.unwrap().kind(), io::ErrorKind::TimedOut);
        // As a clipboard does: the program ends, what serves the clipboard stays.
        let ran = shell("sleep 1 & exit 0", "", false, Duration::from_secs(30)).unwrap();
        assert!(ran.is_success);
    }

    #[test]
    fn the_first_line_of_a_command_is_wanted_and_its_failure_is_told() {
        let ask = |script: &str, limit| first_line(script, b"in".to_vec(), limit, &CancelToken::new());
        let (long, short) = (Duration::from_secs(60), Duration::from_millis(50));
        assert_eq!(ask("cat; echo; echo two", long).unwrap(), "in");
        assert_eq!(ask("true", long).unwrap(), "");
        assert_eq!(ask("echo bad >&2; exit 3", long).unwrap_err(), "failed with exit code 3: bad");
        assert_eq!(ask("sleep 1000", short).unwrap_err(), "did not end within 0.05 s");
        assert_eq!(ask("yes", long).unwrap_err(), "printed more than 65536 bytes");
        assert_eq!(ask("kill -9 $$", long).unwrap_err(), "was killed by a signal");
    }
}
