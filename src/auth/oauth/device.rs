//! The device flow (RFC 8628): polls the server until the user has entered the code.

use super::client::Client;
use super::entry::{cancelled, failed};
use super::flow::Flow;
use super::interaction::Event;
use super::token::{Token, whole};
use super::wire::{Answer, Wire, web_address};
use crate::llm::event::{ErrorKind, StreamError};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_secs(1);
/// Added to the polling interval after each `slow_down`.
const SLOWER: Duration = Duration::from_secs(5);
/// Assumed lifetime of a code if the server names none, in seconds.
pub(super) const LIFETIME_SECONDS: f64 = 15.0 * 60.0;

/// The parts of a device flow that depend on the provider.
pub(super) struct Device {
    pub client_id: &'static str,
    /// Path of the device authorization endpoint.
    pub path: &'static str,
    /// Additional fields of the authorization request.
    pub fields: &'static [(&'static str, &'static str)],
    pub token_path: &'static str,
    /// Name of the device code request in error messages.
    pub what: &'static str,
    pub token_what: &'static str,
    /// Answer fields that may hold the URL of the page; the first valid one is shown.
    pub pages: &'static [&'static str],
    /// True if the page must be https.
    pub secure_page: bool,
    /// True if an answer without a lifetime is an error.
    pub needs_lifetime: bool,
    /// True if the first poll comes after one interval.
    pub wait_first: bool,
}

/// Default values for the rows of the table.
pub(super) const DEVICE: Device = Device {
    client_id: "",
    path: "",
    fields: &[],
    token_path: "",
    what: "",
    token_what: "",
    pages: &["verification_uri_complete", "verification_uri"],
    secure_page: false,
    needs_lifetime: false,
    wait_first: true,
};

/// Shows the user a code, waits until it was entered, and returns the token.
pub(super) fn sign_in(flow: &Flow<'_>, client: &Client, device: &Device) -> Result<Token, StreamError> {
    let host = (client.host)(&flow.wire)?;
    let answer = authorize(flow, device, &host)?;
    client.read(&answer, device.token_what, None)
}

/// Shows the user a code of the server at `host`, and returns the answer of the token endpoint after it was
/// entered.
pub(super) fn authorize(flow: &Flow<'_>, device: &Device, host: &str) -> Result<Answer, StreamError> {
    let (wire, what) = (&flow.wire, device.what);
    let url = format!("{host}{}", device.path);
    let form = [&[("client_id", device.client_id)], device.fields].concat();
    let answer = wire.post_form(&url, &form).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let field = |name| answer.text(name).ok_or_else(|| answer.lacks(what, name));
    let (device_code, user_code) = (field("device_code")?, field("user_code")?);
    let page = device.pages.iter().find_map(|name| web_address(answer.text(name)?));
    let page = page.filter(|page| !device.secure_page || page.starts_with("https://"));
    let page_field = device.pages.last().copied().unwrap_or_default();
    let expires = answer.positive("expires_in").or((!device.needs_lifetime).then_some(LIFETIME_SECONDS));
    let expires = expires.ok_or_else(|| answer.lacks(what, "expires_in"))?;
    flow.tell(Event::DeviceCode {
        user_code: user_code.to_owned(),
        url: page.ok_or_else(|| answer.lacks(what, page_field))?,
        expires_in_seconds: whole(expires),
    });
    let pace = Pace {
        interval_seconds: answer.positive("interval"),
        expires_in_seconds: expires,
        wait_first: device.wait_first,
    };
    let url = format!("{host}{}", device.token_path);
    let form = [("grant_type", GRANT), ("client_id", device.client_id), ("device_code", device_code)];
    poll(wire, &pace, || {
        // Some servers send errors with status 200.
        let answer = wire.post_form(&url, &form).send()?;
        match answer.is_ok() && answer.error().is_none() {
            true => Ok(Poll::Done(answer)),
            false => read_error(&answer, device.token_what),
        }
    })
}

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

pub(super) enum Poll<T> {
    Done(T),
    Pending,
    /// The new interval in seconds, if the server names one.
    SlowDown(Option<f64>),
}

pub(super) struct Pace {
    pub interval_seconds: Option<f64>,
    pub expires_in_seconds: f64,
    pub wait_first: bool,
}

/// Polls until the sign-in succeeds, fails or the code expires. A poll that fails with a server or connection
/// error is repeated.
pub(super) fn poll<T>(
    wire: &Wire<'_>,
    pace: &Pace,
    mut ask: impl FnMut() -> Result<Poll<T>, StreamError>,
) -> Result<T, StreamError> {
    let end = wire.clock.now() + seconds(pace.expires_in_seconds);
    let mut interval = pace.interval_seconds.map_or(INTERVAL, seconds).max(SHORTEST);
    let mut slowed = false;
    let mut wait_now = pace.wait_first;
    loop {
        let left = end.saturating_sub(wire.clock.now());
        if wait_now && wire.clock.wait(interval.min(left), wire.cancel) || wire.cancel.is_cancelled() {
            return Err(cancelled());
        }
        wait_now = true;
        if wire.clock.now() >= end {
            let hint = match slowed {
                true => " The server asked to slow down: a wrong clock of a virtual machine does that.",
                false => "",
            };
            return Err(failed(format!("the code has expired; start again.{hint}")));
        }
        match ask() {
            Ok(Poll::Done(value)) => return Ok(value),
            Ok(Poll::Pending) => {}
            Ok(Poll::SlowDown(asked)) => {
                slowed = true;
                let asked = asked.filter(|asked| asked.is_finite() && *asked > 0.0);
                interval = asked.map_or(interval + SLOWER, seconds).max(SHORTEST);
            }
            Err(error) if is_passing(&error) => interval += SLOWER,
            Err(error) => return Err(error),
        }
    }
}

fn is_passing(error: &StreamError) -> bool {
    matches!(error.kind, ErrorKind::Transport | ErrorKind::Timeout | ErrorKind::Provider)
}

/// A duration of at most a day.
fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0))
}

/// Reads the OAuth error of a failed poll.
pub(super) fn read_error<T>(answer: &Answer, what: &str) -> Result<Poll<T>, StreamError> {
    match answer.error() {
        Some("authorization_pending") => Ok(Poll::Pending),
        Some("slow_down") => Ok(Poll::SlowDown(answer.positive("interval"))),
        Some("access_denied" | "authorization_denied") => Err(failed("the sign-in was denied")),
        Some("expired_token") => Err(failed("the code has expired; start again")),
        _ => Err(answer.refused(what)),
    }
}
