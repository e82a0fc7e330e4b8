//! Who may connect: programs of this user that know the token, and no web page.

use super::socket::Request;
use crate::base::random;

/// The variable that sets the token.
const VARIABLE: &str = "PI_MCP_TOKEN";

pub struct Guard {
    token: Option<String>,
    /// True if the token was made here, so that nobody knows it.
    is_made: bool,
    /// True if the kernel lets only this user connect.
    is_private: bool,
}

impl Guard {
    pub fn new(is_private: bool) -> Result<Self, String> {
        let set = std::env::var(VARIABLE).ok().filter(|token| !token.is_empty());
        let (token, is_made) = match set {
            Some(token) => (Some(token), false),
            None if is_private => (None, false),
            None => {
                let made = random::text().map_err(|_| "The system has no random numbers")?;
                (Some(made), true)
            }
        };
        Ok(Self { token, is_made, is_private })
    }

    /// The header that clients must send; a token that was set is not shown.
    pub fn header(&self) -> Option<String> {
        let token = self.token.as_deref()?;
        let shown = if self.is_made { token } else { "$PI_MCP_TOKEN" };
        Some(format!("Authorization: Bearer {shown}"))
    }

    /// Fails with a status and a reason.
    pub fn check(&self, request: &Request) -> Result<(), (u16, &'static str)> {
        let is_here = |host: Option<&str>| host.is_some_and(is_loopback);
        // A name that points to loopback is how pages of others get here.
        if !self.is_private && !is_here(request.header("host")) {
            return Err((403, "The Host must be of this machine"));
        }
        if let Some(origin) = request.header("origin") {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            if !is_here(host) {
                return Err((403, "The Origin must be of this machine"));
            }
        }
        let sent = request.header("authorization").and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        match &self.token {
            Some(token) if !sent.is_some_and(|sent| is_equal(sent.as_bytes(), token.as_bytes())) => {
                Err((401, "The token is missing or wrong"))
            }
            _ => Ok(()),
        }
    }
}

/// True for a host of loopback, with or without a port.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) if port.is_empty() || port.starts_with(':') => name,
        Some(_) => return false,
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// Compares without telling by its time where the first difference is.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine_are_known() {
        for (host, expected) in [
            ("localhost", true),
            ("LOCALHOST:80", true),
            ("127.0.0.1:8600", true),
            ("[::1]:80", true),
            ("[::1]", true),
            ("example.com", false),
            ("localhost.example.com", false),
            ("127.0.0.1.example.com", false),
            ("[::1]x", false),
            ("", false),
            ("null", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
        for (one, other) in [("a", "a"), ("", ""), ("a", "b"), ("a", "ab"), ("ab", "a")] {
            assert_eq!(is_equal(one.as_bytes(), other.as_bytes()), one == other);
        }
    }
}
