//! The parts of an http or https address.

use super::proxy::is_loopback;

/// An address, as browsers read it: names in lower case, without a port that is the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub is_https: bool,
    /// A name, an IPv4 address, or an IPv6 address in brackets.
    pub host: String,
    /// None for the usual port.
    pub port: Option<u16>,
    pub path: String,
    pub query: Option<String>,
}

/// Takes an address apart; none if it is no http or https address.
pub fn address(url: &str) -> Option<Address> {
    let uri: ureq::http::Uri = url.split('#').next()?.parse().ok()?;
    let (is_https, usual) = match uri.scheme_str()? {
        "https" => (true, 443),
        "http" => (false, 80),
        _ => return None,
    };
    Some(Address {
        is_https,
        host: uri.host().filter(|host| !host.is_empty())?.to_ascii_lowercase(),
        port: uri.port_u16().filter(|port| *port != usual),
        path: uri.path().to_owned(),
        query: uri.query().map(str::to_owned),
    })
}

impl Address {
    /// True for an address of this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// True if what is sent there can be read by nobody else.
    pub fn is_safe(&self) -> bool {
        self.is_https || self.is_loopback()
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{}{port}", self.host)
    }

    /// The whole address without a fragment.
    pub fn href(&self) -> String {
        let query = self.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{}{query}", self.origin(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_browsers_write_them() {
        for (url, href, is_safe) in [
            ("https://A.Example", "https://a.example/", true),
            ("HTTPS://a:443/x?y=Z#f", "https://a/x?y=Z", true),
            ("http://a:80/x/", "http://a/x/", false),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/", true),
            ("http://[::1]:1/c", "http://[::1]:1/c", true),
        ] {
            let found = address(url).unwrap();
            assert_eq!((found.href().as_str(), found.is_safe()), (href, is_safe), "{url}");
        }
        for url in ["ftp://a", "a", "http://", "mailto:x@y", ""] {
            assert_eq!(address(url), None, "{url}");
        }
    }
}
