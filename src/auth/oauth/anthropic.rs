//! Anthropic's copy-code sign-in: a page shows the code, which the user pastes.

use super::client::Grant;
use super::entry::failed;
use super::flow::Flow;
use super::form;
use super::interaction::{Answer, Event, Prompt};
use super::pkce::Pkce;
use super::table::{ANTHROPIC, ANTHROPIC_PAGE};
use super::token::Token;
use crate::auth::oauth::entry::cancelled;
use crate::llm::event::StreamError;

const SHOWN_AT: &str = "https://platform.claude.com/oauth/code/callback";

pub(super) fn with_code(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let pkce = Pkce::new()?;
    let query = form::encode(&[
        ("code", "true"),
        ("client_id", ANTHROPIC.id),
        ("response_type", "code"),
        ("redirect_uri", SHOWN_AT),
        ("scope", ANTHROPIC.scope),
        ("code_challenge", &pkce.challenge),
        ("code_challenge_method", "S256"),
        ("state", &pkce.verifier),
    ]);
    flow.tell(Event::Url {
        url: format!("{ANTHROPIC_PAGE}?{query}"),
        instructions: "Sign in there, in a browser anywhere, and paste the code that the page shows."
            .to_owned(),
    });
    let prompt =
        Prompt::Code { message: "Code from the page".to_owned(), placeholder: "code#state".to_owned() };
    let pasted = match flow.interaction.ask(&prompt, flow.wire.cancel) {
        Answer::Text(text) => {
            form::pasted(&text).ok_or_else(|| failed("there is no code in what was pasted"))?
        }
        Answer::Nobody => return Err(failed("nobody is there to paste the code")),
        Answer::Cancelled => return Err(cancelled()),
    };
    if pasted.state.as_ref().is_some_and(|state| *state != pkce.verifier) {
        return Err(failed("that is the code of another sign-in (its state differs); start again"));
    }
    let grant = Grant {
        code: &pasted.code,
        verifier: &pkce.verifier,
        redirect_uri: SHOWN_AT,
        state: Some(&pkce.verifier),
    };
    ANTHROPIC.exchange(&flow.wire, &grant)
}
