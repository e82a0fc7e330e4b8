//! Makes the sandbox of a session, and runs `pi sandbox`, which tries a command in a sandbox.

use super::flags::{self, UsageError};
use crate::base::thread::Thread;
use crate::mode::exit;
use crate::mode::report;
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::runtime::overrides::SandboxOverrides;
use crate::tools::backend::Backend;
use crate::tools::local::Local;
use crate::tools::process::core_file;
use crate::tools::sandbox::{Mode, Policy, Sandbox};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;

/// Makes the sandbox that flags and settings ask for; `None` for no sandbox. Prints warnings about what it
/// cannot enforce.
pub fn choose(
    over: &SandboxOverrides,
    settings: &Settings,
    dirs: &Dirs,
    cwd: &Path,
) -> Result<Option<Arc<Sandbox>>, String> {
    let Some(mode) = mode(over.mode.as_deref().unwrap_or(settings.word("sandbox.mode")))? else {
        return Ok(None);
    };
    let network = over.network || settings.flag("sandbox.network");
    let listed = settings.texts("sandbox.writable").unwrap_or_default();
    let listed = listed.iter().chain(&over.writable);
    let listed = listed.map(|path| dirs.resolve(path, cwd)).collect();
    let policy = Policy { mode, cwd: cwd.to_owned(), writable: listed, network, terminal: false };
    sandbox(policy, dirs).map(Some)
}

/// Parses the name of a mode; `None` for `off`.
pub fn mode(name: &str) -> Result<Option<Mode>, String> {
    match name {
        "off" => Ok(None),
        "read-only" => Ok(Some(Mode::ReadOnly)),
        "workspace" => Ok(Some(Mode::Workspace)),
        _ => Err(format!("Invalid sandbox \"{name}\". Valid values: off, read-only, workspace")),
    }
}

fn sandbox(policy: Policy, dirs: &Dirs) -> Result<Arc<Sandbox>, String> {
    let sandbox = Sandbox::new(policy)?;
    for gap in sandbox.gaps() {
        report::warning(format_args!("The sandbox has a gap on this system: {gap}"));
    }
    let agent = Local.canonical(dirs.agent());
    if let Some(agent) = agent.ok().filter(|agent| sandbox.allows(agent)) {
        report::warning(format_args!(
            "The sandbox does not protect {}: it lies in a folder that commands may write. Start pi in a project's folder.",
            agent.display()
        ));
    }
    Ok(Arc::new(sandbox))
}

const USAGE: &str = "pi sandbox [--sandbox read-only|workspace] [--sandbox-net] [--sandbox-write <dir>] -- <command> [arguments]";

/// Runs `pi sandbox`. Returns the command's exit code.
pub fn run(words: &[OsString]) -> u8 {
    match try_run(words) {
        Ok(code) => code,
        Err(error) => {
            report::error(format_args!("{error}\nUsage: {USAGE}"));
            crate::cli::say::BAD_USAGE
        }
    }
}

fn try_run(words: &[OsString]) -> Result<u8, UsageError> {
    let dashes = words.iter().position(|word| word == "--");
    let (own, command) = words.split_at(dashes.unwrap_or(words.len()));
    let args = flags::parse(own.iter().cloned())?;
    let Some((program, arguments)) = command.get(1..).and_then(<[_]>::split_first) else {
        return Err(UsageError::Other("pi sandbox needs a command".into()));
    };
    let over = args.over.sandbox;
    let name = over.mode.as_deref().unwrap_or("workspace");
    let mode = mode(name)?;
    let mode = mode.ok_or_else(|| UsageError::Other("Without a sandbox there is nothing to try".into()))?;
    let ran = std::env::current_dir()
        .map_err(|error| format!("The current folder cannot be used: {error}"))
        .and_then(|cwd| {
            let dirs = Dirs::find().map_err(|error| error.to_string())?;
            let writable = over.writable.iter().map(|path| dirs.resolve(path, &cwd)).collect();
            let network = over.network;
            let policy = Policy { mode, cwd: cwd.clone(), writable, network, terminal: true };
            Ok((sandbox(policy, &dirs)?, cwd))
        })
        .and_then(|(sandbox, cwd)| {
            wait(&sandbox, &cwd, Path::new(program), arguments)
                .map_err(|error| format!("Cannot run {}: {error}", program.to_string_lossy()))
        });
    Ok(match ran {
        Ok(status) => status
            .code()
            .or_else(|| Some(128 + status.signal()?))
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(exit::FAILED),
        Err(text) => {
            report::error(text);
            exit::FAILED
        }
    })
}

/// Runs the command with pi's own terminal, input and output.
fn wait(sandbox: &Sandbox, cwd: &Path, program: &Path, arguments: &[OsString]) -> io::Result<ExitStatus> {
    // Ctrl-C reaches the command directly, which decides whether to end.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let (mut command, confinement) = sandbox.command(program, cwd)?;
    // The command may write core files, since this process holds no key.
    core_file::allow()?;
    let mut child = command.args(arguments).spawn()?;
    drop((command, confinement));
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let handle = signals.handle();
    let forward = Thread::named("signals").start(move || {
        for signal in signals.forever() {
            if matches!(signal, SIGTERM | SIGHUP) {
                // SAFETY: the child is not waited for before this thread has ended.
                unsafe { libc::kill(pid, signal) };
            }
        }
    })?;
    let status = child.wait();
    handle.close();
    let _ = forward.join();
    status
}
