//! Edits the prompt in the user's external editor.

use crate::base::file::Passing;
use crate::mode::interactive::app::{App, Edited};
use crate::mode::signal;
use crate::runtime::executable;
use crate::runtime::lifeline;
use crate::runtime::todo::{self, List};
use serde_json::Value;
use std::fs;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Requests the terminal, to edit the prompt in the editor that settings or environment name.
pub fn ask(app: &mut App) {
    ask_for(app, Edited::Prompt);
}

/// Requests the terminal, to edit something in the user's editor.
pub fn ask_for(app: &mut App, edited: Edited) {
    let config = app.control.config();
    let named = |name: &str| std::env::var(name).ok().filter(|command| !command.trim().is_empty());
    let setting = config.settings.get("externalEditor").and_then(Value::as_str);
    let command = setting
        .filter(|command| !command.trim().is_empty())
        .map(str::to_owned)
        .or_else(|| named("VISUAL"))
        .or_else(|| named("EDITOR"))
        .unwrap_or_else(|| installed().to_owned());
    app.composer.close_completion();
    app.requests.editor = Some(command);
    app.requests.edited = edited;
}

/// Edits what was asked for in an editor that has the terminal to itself.
pub fn run(app: &mut App, command: &str) {
    let edited = app.requests.edited;
    let text = match edited {
        Edited::Prompt => app.composer.editor.expanded(),
        Edited::Todo => List::of_session(&app.control).markdown(),
    };
    match edit(command, &text) {
        Ok(Some(changed)) if edited == Edited::Todo => match todo::replace(&app.control, &changed) {
            Ok(()) => {}
            Err(reason) => app.error(&format!("The list is as it was: {reason}")),
        },
        Ok(Some(changed)) => app.composer.editor.set_text(changed.trim_end_matches('\n')),
        Ok(None) => app.warn(&format!("{command} ended with an error; the text is as it was")),
        Err(error) => app.error(&format!("Cannot edit with {command}: {error}")),
    }
}

/// An editor that is installed on nearly every machine.
fn installed() -> &'static str {
    let is_there = |name: &&&str| executable::find(name).is_some();
    ["nano", "vim", "vi"].iter().find(is_there).unwrap_or(&"vi")
}

/// The text as the editor saved it; `None` if the editor fails.
fn edit(command: &str, text: &str) -> io::Result<Option<String>> {
    let (draft, mut file) = Passing::file("editor", "md")?;
    file.write_all(text.as_bytes())?;
    drop(file);
    let status = {
        // Ctrl+C is for the editor now.
        let _held = signal::hold_interrupts();
        // It must not outlive a pi that is killed: nobody could get it to the terminal again.
        let known = lifeline::Guarded::new();
        let (name, mark) = known.mark();
        let mut child = Command::new(executable::SHELL)
            .env("PATH", executable::path())
            .arg("-c")
            .arg(format!("{command} \"$1\""))
            .arg("sh")
            .arg(draft.path())
            .env(name, mark)
            .stdin(Stdio::inherit())
            .spawn()?;
        wait_with(child.id())?;
        child.wait()?
    };
    match status.success() {
        true => fs::read_to_string(draft.path()).map(Some),
        false => Ok(None),
    }
}

/// Waits for a child to end. If the child is stopped, pi stops too, and both continue together.
fn wait_with(child: libc::id_t) -> io::Result<()> {
    loop {
        // SAFETY: the structure may be all zeros, and outlives the call that writes it. What has ended is
        // left to be waited for.
        let code = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
            match libc::waitid(libc::P_PID, child, &raw mut info, options) {
                0 => info.si_code,
                _ => 0,
            }
        };
        match code {
            0 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
            libc::CLD_STOPPED => {
                // SAFETY: takes away the news of the stop, which was left above; then stops this process.
                unsafe {
                    let mut info: libc::siginfo_t = std::mem::zeroed();
                    libc::waitid(libc::P_PID, child, &raw mut info, libc::WSTOPPED);
                    libc::raise(libc::SIGSTOP);
                }
            }
            _ => return Ok(()),
        }
    }
}
