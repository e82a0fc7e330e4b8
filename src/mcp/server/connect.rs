//! Connecting to a server: what carries the messages, the greeting, and what the server offers.

use super::{END, Offer, Server};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::http::Secrets;
use crate::mcp::client::{Client, Kind};
use crate::mcp::config::{Entry, Scope, Transport as Way};
use crate::mcp::ear::Ear;
use crate::mcp::fault::Fault;
use crate::mcp::http::{Http, Target};
use crate::mcp::peer::{Peer, Transport};
use crate::mcp::question::Questions;
use crate::mcp::stdio;
use crate::models::config_value::{self, Keep};
use crate::tools::process::peer::{self as process, Program};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

impl Server {
    pub(super) fn connect(self: &Arc<Self>, cancel: &CancelToken) -> Result<(Client, Offer), Fault> {
        let entry = self.entry();
        let outcome = self.connect_by(&entry, false, cancel);
        // The protocol's first transport refuses the POST that its follower begins with.
        let may_be_old = matches!(entry.transport(), Way::Http { is_old: false, .. });
        match outcome {
            Err(Fault::Status { status: 400 | 404 | 405, text }) if may_be_old => {
                let old = self.connect_by(&entry, true, cancel);
                old.map_err(|fault| match fault {
                    Fault::SignIn(_) | Fault::Scope(_) | Fault::Aborted => fault,
                    _ => Fault::Failed(format!("HTTP status 404 or 405: {text}")),
                })
            }
            outcome => outcome,
        }
    }

    fn connect_by(
        self: &Arc<Self>,
        entry: &Entry,
        as_old: bool,
        cancel: &CancelToken,
    ) -> Result<(Client, Offer), Fault> {
        let peer = Peer::new(Box::new(Ear { server: Arc::downgrade(self), log: self.context.log.clone() }));
        let offered = match &self.context.questions {
            Some(_) => Questions::capabilities(),
            None => json!({"roots": {}}),
        };
        let timeout = entry.timeout();
        let attempt = || {
            let transport = self.transport(entry, as_old, &peer, cancel)?;
            peer.attach(transport);
            let client = Client::greet(peer.clone(), timeout, &offered, cancel)?;
            let offer = read_offer(&client, cancel)?;
            Ok((client, offer))
        };
        let outcome = attempt();
        if let Err(fault) = &outcome {
            let words = peer.last_words();
            peer.close(Instant::now() + END);
            // A program that does not answer may have said why.
            if let (Fault::Timeout(_), Some(words)) = (fault, words) {
                return Err(Fault::Failed(format!("{fault}:\n{words}")));
            }
            return outcome;
        }
        let (server, closing) = (Arc::downgrade(self), peer.clone());
        peer.over()
            .on_cancel(move || {
                if let Some(server) = server.upgrade() {
                    server.lost(&closing);
                }
            })
            .forget();
        outcome
    }

    fn transport(
        &self,
        entry: &Entry,
        as_old: bool,
        peer: &Peer,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Transport>, Fault> {
        // A client writes values as they are.
        let is_lent = entry.scope == Scope::Client;
        let resolve = |pairs: &[(&str, &str)], what: &str| -> Result<Vec<(String, String)>, Fault> {
            let resolve = |(name, value): &(&str, &str)| {
                if is_lent {
                    return Ok(((*name).to_owned(), (*value).to_owned()));
                }
                let place = format!("{what} \"{name}\"");
                let value = config_value::resolve(value, &place, Keep::Process, &self.context.env, cancel);
                let value = value.map_err(Fault::Failed)?;
                Ok(((*name).to_owned(), value.expose().to_owned()))
            };
            pairs.iter().map(resolve).collect()
        };
        match entry.transport() {
            Way::Stdio { command, args, env, cwd } => {
                let home = |text: &str| match is_lent {
                    true => text.to_owned(),
                    false => expand_home(text, self.context.home.as_deref()),
                };
                let env = resolve(&env, "env")?;
                for (name, value) in &env {
                    self.context.vault.learn_if_random(name, value);
                }
                let env = stdio::environment(&env);
                let cwd =
                    cwd.map_or_else(|| self.context.cwd.clone(), |cwd| self.context.cwd.join(home(cwd)));
                let name = home(command);
                let path = process::find(&name, &cwd, &env).map_err(|error| {
                    Fault::Failed(format!("Cannot start {name} in {}: {error}", cwd.display()))
                })?;
                let args = args.iter().map(|arg| home(arg).into()).collect();
                let program = Program { path, args, cwd, env };
                let program = match entry.memory() {
                    Some(megabytes) => stdio::limited(program, megabytes),
                    None => program,
                };
                Ok(Box::new(stdio::start(&program, &entry.name, peer, &self.context.log)?))
            }
            Way::Http { url, headers, is_old } => {
                let written = headers.clone();
                let headers = resolve(&headers, "header")?;
                let mut secrets = Secrets::new(&self.context.vault);
                for ((name, value), (_, text)) in headers.iter().zip(&written) {
                    // What comes from elsewhere is likely a secret.
                    if is_lent || value != text {
                        secrets.add(value);
                        secrets.mask_header(name);
                    }
                }
                let target = Target {
                    url: url.to_owned(),
                    headers,
                    secrets,
                    authority: (self.context.authority)(entry),
                    is_old: is_old || as_old,
                };
                Ok(Box::new(Http::open(target, peer, entry.timeout(), cancel)?))
            }
        }
    }
}

pub(super) fn read_offer(client: &Client, cancel: &CancelToken) -> Result<Offer, Fault> {
    let list = |what: &str, kind: Kind| match client.offers(what) {
        true => client.list(kind, cancel),
        false => Ok(Vec::new()),
    };
    let mut tools = list("tools", Kind::Tools)?;
    let mut names = std::collections::BTreeSet::new();
    tools
        .retain(|tool| names.insert(tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()));
    Ok(Offer {
        tools,
        prompts: list("prompts", Kind::Prompts)?,
        instructions: client.instructions.clone(),
        has_resources: client.offers("resources"),
    })
}

/// The path that `~` and `~/…` mean.
fn expand_home(text: &str, home: Option<&Path>) -> String {
    let rest = match text {
        "~" => Some(""),
        text => text.strip_prefix("~/"),
    };
    match (rest, home) {
        (Some(""), Some(home)) => home.to_string_lossy().into_owned(),
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => text.to_owned(),
    }
}
