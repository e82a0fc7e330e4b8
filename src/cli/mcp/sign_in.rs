//! `pi mcp login` and `pi mcp logout`.

use super::{Place, Words};
use crate::base::cancel::CancelToken;
use crate::cli::auth::Console;
use crate::cli::say::say_plain;
use crate::llm::event::ErrorKind;
use crate::mcp::access;
use crate::mcp::config::{Entry, Scope};
use crate::mcp::fault::Fault;
use crate::mcp::server::{END, Server};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Time for a sign-in, in seconds.
const TIMEOUT_SECONDS: f64 = 300.0;

pub(super) fn login(args: &[String]) -> Result<u8, String> {
    let words = Words::parse(
        "login",
        args,
        &[("--local", false), ("--scope", true), ("--timeout", true)],
        usize::MAX,
    )?;
    let timeout = match words.value("--timeout") {
        Some(text) => text.parse().ok().filter(|seconds: &f64| *seconds > 0.0),
        None => Some(TIMEOUT_SECONDS),
    };
    let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let timeout = timeout.ok_or("--timeout must be a number of seconds above 0")?;
    let (place, entry) = find("login", &words)?;
    place.connect(|context, services| {
        let name = entry.name.clone();
        let resource = access::sign_in(&entry, services, place.dirs.agent()).ok_or_else(|| none(&entry))?;
        let server = Server::new(entry, context.clone(), None);
        // What the server answers says whether, and where, to sign in.
        let wanted = words.value("--scope");
        let challenge = match server.client(&context.cancel) {
            Ok(_) if wanted.is_some() => None,
            Ok(_) => return done(&server, format!("Already signed in to the MCP server \"{name}\"")),
            Err(Fault::SignIn(challenge)) => challenge,
            Err(fault) => return Err(server.error(format_args!("cannot connect: {fault}"))),
        };
        let cancel = context.cancel.child();
        let ended = CancelToken::new();
        let signed_in = thread::scope(|scope| {
            scope.spawn(|| {
                if !ended.wait_timeout(timeout) {
                    cancel.cancel();
                }
            });
            let result = resource.sign_in(challenge.as_deref(), wanted, &Console::new(None, None), &cancel);
            ended.cancel();
            result
        });
        signed_in.map_err(|error| match error.kind {
            ErrorKind::Aborted => format!(
                "The sign-in to the MCP server \"{name}\" was cancelled, or not done within {} seconds",
                timeout.as_secs_f64()
            ),
            _ => format!("Cannot sign in to the MCP server \"{name}\": {}", error.message),
        })?;
        server.reconnect(&context.cancel).map_err(|text| format!("Signed in, but {text}"))?;
        done(&server, format!("Signed in to the MCP server \"{name}\""))
    })
}

pub(super) fn logout(args: &[String]) -> Result<u8, String> {
    let words = Words::parse("logout", args, &[("--local", false)], usize::MAX)?;
    let (place, entry) = find("logout", &words)?;
    place.connect(|context, services| {
        let resource = access::sign_in(&entry, services, place.dirs.agent()).ok_or_else(|| none(&entry))?;
        let removed = resource.sign_out(&context.cancel).map_err(|error| error.message)?;
        Ok(say_plain(&match removed {
            true => format!("Signed out of the MCP server \"{}\".\n", entry.name),
            false => format!("There is no sign-in to the MCP server \"{}\".\n", entry.name),
        }))
    })
}

fn done(server: &Arc<Server>, text: String) -> Result<u8, String> {
    let tools = server.offer().tools.len();
    server.close(Instant::now() + END);
    Ok(say_plain(&format!("{text} ({tools} tool{}).\n", if tools == 1 { "" } else { "s" })))
}

/// The entry of the server that a command is about.
fn find(command: &str, words: &Words) -> Result<(Place, Entry), String> {
    let [name] = words.words.as_slice() else {
        return Err(format!("{command} takes the name of one server: pi mcp {command} <server> [-l]"));
    };
    let place = Place::find()?;
    let mut entry = place.entry(name)?;
    if words.has("--local") && entry.scope != Scope::Project {
        return Err(format!("\"{name}\" is in {}: leave --local out", entry.source.display()));
    }
    if let Some(provider) = entry.provider() {
        return Err(format!("\"{name}\" gets the credential of a provider: pi auth {command} {provider}"));
    }
    // One that is off can be signed in to before it is switched on.
    entry.fields.shift_remove("enabled");
    Ok((place, entry))
}

fn none(entry: &Entry) -> String {
    format!(
        "\"{}\" has no sign-in: only servers over HTTP have one, unless their headers have \"Authorization\"",
        entry.name
    )
}
