//! Requests to a server, and what is done when it refuses them.

use super::{Server, State};
use crate::auth::oauth::resource::asked_scope;
use crate::base::cancel::CancelToken;
use crate::mcp::client::Client;
use crate::mcp::config::Entry;
use crate::mcp::fault::Fault;
use crate::runtime::permission::quoted;
use crossbeam_channel::{bounded, select};
use std::sync::Arc;
use std::time::Duration;

/// Pause before a request that only reads is made once more.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

impl Server {
    pub(super) fn fault_text(&self, fault: &Fault) -> String {
        match fault {
            Fault::Scope(challenge) => self.error(wider_hint(&self.entry(), challenge)),
            Fault::SignIn(_) => self.error(sign_in_hint(&self.entry())),
            fault => self.error(fault),
        }
    }

    /// Runs a request, and opens the connection before if need be. The error names the server. A request that only
    /// reads is made once more after a passing failure; another one only when the server has certainly not run it: it has
    /// forgotten the session, or refused the request for want of a scope that the user has signed in for since.
    pub fn run<T>(
        self: &Arc<Self>,
        only_reads: bool,
        cancel: &CancelToken,
        request: impl Fn(&Client) -> Result<T, Fault>,
    ) -> Result<T, String> {
        let mut is_first = true;
        loop {
            let outcome = self.client(cancel).and_then(|client| {
                let outcome = request(&client);
                if let Err(Fault::SessionGone | Fault::SignIn(_)) = &outcome {
                    self.forget(&client);
                }
                outcome
            });
            let fault = match outcome {
                Ok(value) => return Ok(value),
                Err(fault) => fault,
            };
            let again = std::mem::take(&mut is_first)
                && match &fault {
                    Fault::SessionGone => true,
                    Fault::Scope(challenge) => self.widen(challenge, cancel),
                    fault => only_reads && fault.is_passing() && !cancel.wait_timeout(AGAIN_AFTER),
                };
            if !again || cancel.is_cancelled() {
                match &fault {
                    Fault::SignIn(challenge) => self.slot().state = State::NeedsSignIn(challenge.clone()),
                    Fault::Scope(challenge) => self.slot().wants = Some(challenge.clone()),
                    _ => return Err(self.fault_text(&fault)),
                }
                self.tell();
                return Err(self.fault_text(&fault));
            }
        }
    }

    /// Leaves a connection that is of no use any more. Requests that are under way on it end by themselves.
    fn forget(&self, client: &Client) {
        let mut slot = self.slot();
        if slot.client.as_ref().is_some_and(|known| known.peer.is(&client.peer)) {
            slot.client = None;
        }
    }

    /// Signs in for what `challenge` asks, if the user wants that. Of several requests that are refused at a time one
    /// asks. True if the request can be sent again.
    fn widen(&self, challenge: &str, cancel: &CancelToken) -> bool {
        let Some(widen) = &self.context.widen else { return false };
        let _done = {
            let mut slot = self.slot();
            // The user did not want that, or it did not help.
            if slot.wants.as_deref() == Some(challenge) {
                return false;
            }
            if let Some(under_way) = slot.widening.clone() {
                drop(slot);
                select! {
                    recv(under_way) -> _ => return true,
                    recv(cancel.receiver()) -> _ => return false,
                }
            }
            let (done, under_way) = bounded::<()>(0);
            slot.widening = Some(under_way);
            done
        };
        let is_wider = widen(&self.entry(), challenge, cancel);
        let mut slot = self.slot();
        slot.widening = None;
        if is_wider {
            slot.wants = None;
        }
        is_wider
    }
}

/// What a user can do about a server that refuses pi.
pub fn sign_in_hint(entry: &Entry) -> String {
    match (entry.provider(), entry.has_authorization()) {
        (None, false) if !entry.scope.is_stored() => {
            format!("it wants a sign-in: /mcp login {}", entry.name)
        }
        (Some(provider), _) => format!("it wants a sign-in: pi auth login {provider}"),
        (None, true) => "the credential in its headers was refused".to_owned(),
        (None, false) => {
            format!("it wants a sign-in: pi mcp login {0} (in a session: /mcp login {0})", entry.name)
        }
    }
}

/// What a user can do about a server that wants more scopes than the sign-in has.
pub fn wider_hint(entry: &Entry, challenge: &str) -> String {
    let (scope, flag) = match asked_scope(challenge) {
        Some(scope) => (format!(" ({scope})"), format!(" --scope {}", quoted(&scope))),
        None => Default::default(),
    };
    match (entry.provider(), !entry.scope.is_stored()) {
        (Some(provider), _) => format!("it wants more scopes{scope} than the sign-in of {provider} has"),
        (None, true) => format!("it wants more scopes{scope} for this: /mcp login {}", entry.name),
        (None, false) => format!(
            "it wants more scopes{scope} for this: pi mcp login {0}{flag} (in a session: /mcp login {0})",
            entry.name
        ),
    }
}
