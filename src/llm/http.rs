//! HTTP to model servers.

use super::cancel::CancelToken;
use super::event::{ErrorKind, StreamError};
use std::io::Read;
use std::time::Duration;

/// A whole answer, whatever its status.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The largest body that [`get`] and [`post`] take, in bytes.
pub const REPLY_LIMIT: usize = 16 << 20;

impl Reply {
    /// True for 200 to 299.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// Asks for `url` and waits for the whole answer, `timeout` at most for all of it. Error statuses are
/// answers too.
pub fn get(
    url: &str,
    headers: &[(&str, &str)],
    timeout: Duration,
    cancel: &CancelToken,
) -> Result<Reply, StreamError> {
    let mut request = agent(timeout).get(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    finish(request.call(), cancel)
}

/// Like [`get`], with a body. The content type is JSON unless `headers` say otherwise.
pub fn post(
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    timeout: Duration,
    cancel: &CancelToken,
) -> Result<Reply, StreamError> {
    let mut request = agent(timeout).post(url);
    let typed = headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if !typed {
        request = request.content_type("application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    finish(request.send(body), cancel)
}

fn agent(timeout: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .build()
        .into()
}

fn finish(
    answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    cancel: &CancelToken,
) -> Result<Reply, StreamError> {
    if cancel.is_cancelled() {
        return Err(StreamError::aborted());
    }
    let transport =
        |error: &dyn std::fmt::Display| StreamError::new(ErrorKind::Transport, error.to_string());
    let mut answer = answer.map_err(|error| transport(&error))?;
    let headers = answer.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let mut reply = Reply {
        status: answer.status().as_u16(),
        headers: headers.collect(),
        body: Vec::new(),
    };
    let mut body = answer.body_mut().as_reader().take(REPLY_LIMIT as u64 + 1);
    body.read_to_end(&mut reply.body)
        .map_err(|error| transport(&error))?;
    if reply.body.len() > REPLY_LIMIT {
        return Err(transport(&"the answer is too large"));
    }
    Ok(reply)
}
