//! Print and JSON mode: runs the prompts of the command line one after another, then ends.

use super::exit::{DONE, EndsChildren, FAILED, PIPE_CLOSED};
use super::output::Output;
use super::quiet::Quiet;
use super::report;
use super::signal::Watch;
use super::stdout;
use crate::runtime::control::Taken;
use crate::runtime::event::Event;
use crate::runtime::hook::InputSource;
use crate::runtime::session::Session;
use crate::runtime::{self, AssistantMessage, Block, CancelToken, Fatal, StopReason, plain_text};
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prints the last answer's text.
    Text,
    /// Prints every event as a line of JSON.
    Json { cumulative: bool },
}

/// The prompts of the command line, in order.
pub struct Prompts {
    pub first: Option<(String, Vec<Block>)>,
    pub rest: Vec<String>,
}

/// Runs the prompts. Returns the exit code.
pub fn run(mut session: Session, prompts: Prompts, form: Form, cancel: &CancelToken, watch: &Watch) -> u8 {
    let _ends = EndsChildren { keep: session.workspace().options.bash_keep_background };
    let outcome = match form {
        Form::Text => text(&mut session, prompts, cancel),
        Form::Json { cumulative } => json(&mut session, prompts, cumulative, cancel),
    };
    session.take_notices().iter().for_each(report::warning);
    let code = match outcome {
        Ok(code) => session.close().map_or_else(|Fatal(message)| fail(&message), |()| code),
        Err(End::PipeClosed) => session.close().map_or(FAILED, |()| PIPE_CLOSED),
        // What the log holds stays where it is, a draft too: it is all there is of this run.
        Err(End::Failed(message)) => fail(&message),
    };
    watch.exit_code().unwrap_or(code)
}

enum End {
    PipeClosed,
    Failed(String),
}

fn broken_stdout(error: &io::Error) -> End {
    match error.kind() {
        io::ErrorKind::BrokenPipe => End::PipeClosed,
        _ => End::Failed(format!("Cannot write to stdout: {error}")),
    }
}

fn fail(message: &str) -> u8 {
    report::error(message);
    FAILED
}

fn ask(
    session: &mut Session,
    prompts: Prompts,
    cancel: &CancelToken,
    mut listener: impl FnMut(&Event<'_>) -> Result<(), Fatal>,
) -> Result<(), Fatal> {
    let rest = prompts.rest.into_iter().map(|text| (text, Vec::new()));
    if let Some(cut_off) = session.control().cut_off() {
        report::note(format_args!("{cut_off}"));
    }
    session.open("startup");
    for (text, images) in prompts.first.into_iter().chain(rest) {
        if cancel.is_cancelled() {
            break;
        }
        let taken = session.take_input(text, images, InputSource::Interactive, &mut listener)?;
        let Taken::Goes(text, images) = taken else { continue };
        let (text, diagnostic) = session.commands().expand(text);
        diagnostic.iter().for_each(report::warning);
        session.prompt(text, images, &mut listener)?;
        session.run_tasks(&mut listener);
        session.take_notices().iter().for_each(report::warning);
        // What comes next was meant for after an answer.
        if session.ended_by().is_some() || is_failure(session.last_answer().as_ref()) {
            break;
        }
    }
    Ok(())
}

fn text(session: &mut Session, prompts: Prompts, cancel: &CancelToken) -> Result<u8, End> {
    session.control().set_ui(Arc::new(Quiet(None)));
    ask(session, prompts, cancel, |event| {
        report_retries(event);
        Ok(())
    })
    .map_err(|Fatal(message)| End::Failed(message))?;
    let failed = failure(session);
    // What there is of a cut answer is shown.
    if failed.is_some() && !session.last_answer().is_some_and(|answer| is_cut(session, &answer)) {
        return Ok(FAILED);
    }
    let mut said = String::new();
    if let Some(Ok(value)) = session.outcome() {
        said = format!("{value}\n");
    } else if let Some(answer) = session.last_answer() {
        for text in answer.content.iter().filter_map(Block::as_text) {
            said.push_str(text);
            said.push('\n');
        }
    }
    if io::stdout().is_terminal() {
        said = plain_text(said.as_bytes());
    }
    stdout::write(&said).map_err(|error| broken_stdout(&error))?;
    Ok(failed.unwrap_or(DONE))
}

/// Reports each failed attempt, so that retries are not silent.
fn report_retries(event: &Event<'_>) {
    if let Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } = event {
        let seconds = delay_ms.div_ceil(1000);
        report::note(format_args!(
            "{error_message} (trying again in {seconds} s, {attempt} of {max_attempts})"
        ));
    }
}

/// Nothing is wrong with the run but that its answer was cut.
fn is_cut(session: &Session, answer: &AssistantMessage) -> bool {
    answer.stop_reason == StopReason::Length && session.ended_by().is_none() && session.outcome().is_none()
}

fn is_failure(answer: Option<&Arc<AssistantMessage>>) -> bool {
    answer.is_some_and(|answer| matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted))
}

/// Reports why the last answer is missing or incomplete. Returns the exit code of the failure.
fn failure(session: &Session) -> Option<u8> {
    if let Some(limit) = session.ended_by() {
        report::error(format_args!("The run was ended: {limit}"));
        return Some(FAILED);
    }
    let answer = session.last_answer()?;
    let is_failed = matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
    if let Some(Err(fault)) = session.outcome().filter(|_| !is_failed) {
        report::error(format_args!("There is no output as it was asked for: {fault}"));
        return Some(FAILED);
    }
    let reason = match answer.stop_reason {
        StopReason::Error => "error",
        StopReason::Aborted => "aborted",
        StopReason::Length => {
            report::note("Response was truncated: the model reached its output token limit.");
            return Some(FAILED);
        }
        _ => {
            if answer.content.iter().filter_map(Block::as_text).all(|text| text.trim().is_empty()) {
                report::note("The model gave no text.");
            }
            return None;
        }
    };
    match &answer.error_message {
        Some(message) => {
            report::note(message);
            if let Some(reason) = runtime::explain_refused_tools(message) {
                report::note(reason);
            }
        }
        None => report::note(format_args!("Request {reason}")),
    }
    Some(FAILED)
}

fn json(session: &mut Session, prompts: Prompts, cumulative: bool, cancel: &CancelToken) -> Result<u8, End> {
    let stdout = stdout::open().map_err(|error| broken_stdout(&error))?;
    let sink: Box<dyn Write + Send> = match stdout.is_terminal() {
        true => Box::new(ForTerminal(stdout)),
        false => Box::new(stdout),
    };
    let output = Output::start(sink, cumulative, cancel.clone())
        .map_err(|error| End::Failed(format!("Cannot start writing to stdout: {error}")))?;
    let output = Arc::new(output);
    session.control().set_ui(Arc::new(Quiet(Some(output.clone()))));
    output.line(&session.header()).map_err(|error| broken_stdout(&error))?;
    let mut broken = None;
    // A reader that has gone aborts the run, through `cancel`; the answer so far is stored as of any abort.
    let asked = ask(session, prompts, cancel, |event| {
        if broken.is_none() {
            broken = output.event(event).err();
        }
        Ok(())
    });
    if let Some(error) = broken.or_else(|| output.flush().err()) {
        return Err(broken_stdout(&error));
    }
    asked.map_err(|Fatal(message)| End::Failed(message))?;
    Ok(failure(session).unwrap_or(DONE))
}

/// Writes JSON to a terminal, escaping the control characters that JSON allows.
struct ForTerminal<W>(W);

impl<W: Write> Write for ForTerminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let mut escaped = String::with_capacity(text.len());
        for letter in text.chars() {
            match letter {
                '\u{7f}'..='\u{9f}' => escaped.push_str(&format!("\\u{:04x}", u32::from(letter))),
                _ => escaped.push(letter),
            }
        }
        self.0.write_all(escaped.as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
