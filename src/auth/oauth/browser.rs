//! The browser flow: the provider redirects the browser to a local server, or the user pastes the redirect
//! address.

use super::callback::{Callback, Expected};
use super::client::{Client, Grant};
use super::entry::{cancelled, failed};
use super::flow::Flow;
use super::form::{self, Returned};
use super::interaction::{Answer, Event, Prompt};
use super::pkce::{self, Pkce};
use super::token::Token;
use super::wire::Wire;
use crate::base::thread::Thread;
use crate::llm::event::StreamError;
use crossbeam_channel::{Receiver, bounded, never, select};

/// Maximum number of invalid pastes.
const ATTEMPTS: usize = 5;

/// The parts of a browser flow that depend on the provider.
pub(super) struct Browser {
    /// Returns the URL of the provider's authorization page.
    pub page: fn(&Wire<'_>) -> Result<String, StreamError>,
    /// Extra parameters of the authorization URL.
    pub query: &'static [(&'static str, &'static str)],
    /// Port, host and path of the redirect address registered with the provider.
    pub port: u16,
    /// True if a free port is used when `port` is taken.
    pub any_port: bool,
    pub host: &'static str,
    pub path: &'static str,
    /// Name of the provider, for messages.
    pub name: &'static str,
    /// True if the PKCE verifier is used as the state, which is then also sent to the token endpoint.
    pub state_is_verifier: bool,
    /// A message shown while the token is requested.
    pub progress: Option<&'static str>,
}

impl Browser {
    /// Opens the provider's page, and exchanges the returned code for a token.
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
            Ok(format!("{page}?{}", form::encode(&[&standard, self.query].concat())))
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

/// The redirect address, and the state expected in it.
pub(super) struct Return {
    /// 0 for any free port.
    pub port: u16,
    /// True if a free port is used when that one is taken.
    pub any_port: bool,
    /// Host as registered with the provider.
    pub host: &'static str,
    pub path: String,
    pub state: Option<String>,
    pub name: &'static str,
}

/// An authorization code, and the redirect address of its request.
pub(super) struct Code {
    pub code: String,
    pub redirect_uri: String,
    /// Client id issued by the sign-in, if any.
    pub client_id: Option<String>,
    /// Issuer that the answer names, if any (RFC 9207).
    pub issuer: Option<String>,
}

/// Shows the user the URL `authorize(redirect_uri)` and waits for the code.
pub(super) fn code(
    flow: &Flow<'_>,
    back: Return,
    authorize: impl FnOnce(&str) -> Result<String, StreamError>,
) -> Result<Code, StreamError> {
    let Return { port, any_port, host, path, state, name } = back;
    let wanted = flow.wire.hosts.port(port);
    let callback_host = flow.wire.env.get("PI_OAUTH_CALLBACK_HOST");
    let callback_host = callback_host.or_else(|| (host == "[::1]").then(|| "::1".to_owned()));
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
        url: authorize(&redirect_uri)?,
        instructions:
            "Sign in there. If the browser is on another machine, paste the address that it ends at here."
                .to_owned(),
    });

    let received = callback.as_ref().map_or_else(|_| never(), |callback| callback.received.clone());
    let stop_asking = flow.wire.cancel.child();
    let found = std::thread::scope(|scope| {
        let (sender, pasted) = bounded(1);
        let asker = Thread::named("sign-in paste");
        let (stop, redirect, state) = (&stop_asking, &redirect_uri, &state);
        let asker = asker.start_in(scope, move || {
            let _ = sender.send(paste(flow, redirect, state.as_deref(), stop));
        });
        let found = match asker {
            Ok(_) => wait(flow, &received, &pasted, problem),
            Err(error) => Err(failed(format!("cannot start a thread: {error}"))),
        };
        stop_asking.cancel();
        found
    })?;
    Ok(Code { code: found.code, redirect_uri, client_id: found.client_id, issuer: found.issuer })
}

type Pasted = Option<Result<Returned, StreamError>>;

/// Waits for the code from the browser or from the user, whichever comes first. If nobody can be asked, only
/// the browser can supply it.
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

/// Asks for the redirect address or the code until the input is valid; `None` if nobody can be asked.
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
