//! The way through a browser: it comes back to a server of ours, or the user pastes where it went.

use super::callback::{Callback, Expected};
use super::client::{Client, Grant};
use super::entry::{cancelled, failed};
use super::flow::Flow;
use super::form::{self, Returned};
use super::interaction::{Answer, Event, Prompt};
use super::pkce::{self, Pkce};
use super::token::Token;
use super::wire::Wire;
use crate::llm::event::StreamError;
use crossbeam_channel::{Receiver, bounded, never, select};

/// Attempts to paste something that makes sense.
const ATTEMPTS: usize = 5;

/// How a provider's browser flow differs from the others.
pub(super) struct Browser {
    /// The page that the user is sent to.
    pub page: fn(&Wire<'_>) -> Result<String, StreamError>,
    /// Extra parameters of the authorization URL.
    pub query: &'static [(&'static str, &'static str)],
    /// Where the browser is to come back to, as the provider knows it.
    pub port: u16,
    /// Another port will do where this one is taken.
    pub any_port: bool,
    pub host: &'static str,
    pub path: &'static str,
    /// Who answers, for people.
    pub name: &'static str,
    /// The state is the verifier, and is sent to the token endpoint too.
    pub state_is_verifier: bool,
    /// Told while the token is asked for.
    pub progress: Option<&'static str>,
}

impl Browser {
    /// Sends the user to the provider's page, and exchanges what comes back for a token.
    pub(super) fn sign_in(&self, flow: &Flow<'_>, client: &Client) -> Result<Token, StreamError> {
        let page = (self.page)(&flow.wire)?;
        let pkce = Pkce::new()?;
        let state = if self.state_is_verifier { pkce.verifier.clone() } else { pkce::random()? };
        let back = Return {
            port: self.port,
            any_port: self.any_port,
            host: self.host,
            path: self.path.to_owned(),
            state: Some(state.clone()),
            name: self.name,
        };
        let found = code(flow, back, |redirect_uri| {
            let standard = [
                ("response_type", "code"),
                ("client_id", client.id),
                ("redirect_uri", redirect_uri),
                ("scope", client.scope),
                ("code_challenge", &pkce.challenge),
                ("code_challenge_method", "S256"),
                ("state", &state),
            ];
            format!("{page}?{}", form::encode(&[&standard, self.query].concat()))
        })?;
        if let Some(progress) = self.progress {
            flow.progress(progress);
        }
        let grant = Grant {
            code: &found.code,
            verifier: &pkce.verifier,
            redirect_uri: &found.redirect_uri,
            state: self.state_is_verifier.then_some(&state),
        };
        client.exchange(&flow.wire, &grant)
    }
}

/// Where the browser is to come back to.
pub(super) struct Return {
    /// 0: any that is free.
    pub port: u16,
    /// Any other will do where that one is taken.
    pub any_port: bool,
    /// As the provider knows it.
    pub host: &'static str,
    pub path: String,
    pub state: Option<String>,
    pub name: &'static str,
}

/// A code, and the address that it was asked for with.
pub(super) struct Code {
    pub code: String,
    pub redirect_uri: String,
    /// The client that the sign-in has registered.
    pub client_id: Option<String>,
}

/// Sends the user to `authorize(redirect_uri)` and waits for the code.
pub(super) fn code(
    flow: &Flow<'_>,
    back: Return,
    authorize: impl FnOnce(&str) -> String,
) -> Result<Code, StreamError> {
    let Return { port, any_port, host, path, state, name } = back;
    let wanted = flow.wire.hosts.port(port);
    let callback_host = flow.wire.env.get("PI_OAUTH_CALLBACK_HOST");
    let start = |port| {
        let expected = Expected { path: path.clone(), state: state.clone(), name };
        Callback::start(callback_host.as_deref(), port, expected)
    };
    let mut callback = start(wanted);
    if callback.is_err() && any_port {
        callback = start(0).or(callback);
    }
    let port = callback.as_ref().map_or(port, |callback| callback.port);
    let redirect_uri = format!("http://{host}:{port}{path}");
    let problem = callback
        .as_ref()
        .err()
        .map(|error| format!("Cannot wait for the browser on port {port} of this machine: {error}"));
    if let Some(problem) = &problem {
        flow.progress(format!("{problem}. Paste the address that the browser ends at."));
    }
    flow.tell(Event::Url {
        url: authorize(&redirect_uri),
        instructions:
            "Sign in there. If the browser is on another machine, paste the address that it ends at here."
                .to_owned(),
    });

    let received = callback.as_ref().map_or_else(|_| never(), |callback| callback.received.clone());
    let stop_asking = flow.wire.cancel.child();
    let found = std::thread::scope(|scope| {
        let (sender, pasted) = bounded(1);
        let asker = std::thread::Builder::new().name("sign-in paste".into());
        let (stop, redirect, state) = (&stop_asking, &redirect_uri, &state);
        let asker = asker.spawn_scoped(scope, move || {
            let _ = sender.send(paste(flow, redirect, state.as_deref(), stop));
        });
        let found = match asker {
            Ok(_) => wait(flow, &received, &pasted, problem),
            Err(error) => Err(failed(format!("cannot start a thread: {error}"))),
        };
        stop_asking.cancel();
        found
    })?;
    Ok(Code { code: found.code, redirect_uri, client_id: found.client_id })
}

type Pasted = Option<Result<Returned, StreamError>>;

/// Whichever comes first. Where nobody can be asked the browser is waited for alone.
fn wait(
    flow: &Flow<'_>,
    received: &Receiver<Result<Returned, StreamError>>,
    pasted: &Receiver<Pasted>,
    problem: Option<String>,
) -> Result<Returned, StreamError> {
    let cancel = flow.wire.cancel.receiver();
    let gone = || Err(failed("the callback server ended"));
    select! {
        recv(received) -> code => return code.unwrap_or_else(|_| gone()),
        recv(cancel) -> _ => return Err(cancelled()),
        recv(pasted) -> pasted => match (pasted.ok().flatten(), problem) {
            (Some(code), _) => return code,
            (None, Some(problem)) => return Err(failed(problem)),
            (None, None) => {}
        },
    }
    select! {
        recv(received) -> code => code.unwrap_or_else(|_| gone()),
        recv(cancel) -> _ => Err(cancelled()),
    }
}

/// Asks for the address or the code until it makes sense; `None` where nobody can be asked.
fn paste(
    flow: &Flow<'_>,
    redirect_uri: &str,
    state: Option<&str>,
    stop: &crate::base::cancel::CancelToken,
) -> Pasted {
    let prompt = Prompt::Code {
        message: "Address or code from the browser".to_owned(),
        placeholder: redirect_uri.to_owned(),
    };
    for _ in 0..ATTEMPTS {
        let text = match flow.interaction.ask(&prompt, stop) {
            Answer::Text(text) => text,
            Answer::Nobody => return None,
            Answer::Cancelled => return Some(Err(cancelled())),
        };
        if stop.is_cancelled() {
            return None;
        }
        match form::pasted(&text) {
            Some(pasted) if state.is_some() && pasted.state.is_some() && pasted.state.as_deref() != state => {
                flow.progress(
                    "That is the address of another sign-in (its state differs). Start from the link above.",
                );
            }
            Some(pasted) => return Some(Ok(pasted)),
            None => flow.progress(format!("There is no code in that. It begins with {redirect_uri}?")),
        }
    }
    Some(Err(failed("no code was pasted")))
}
