//! Chooses the proxy for a server from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. Lower-case
//! names take precedence, as in the reference.
//!
//! https falls back to the proxy for http. Servers on this machine are reached directly.

use super::failure::Target;
use crate::base::env::Env;
use crate::llm::event::{ErrorKind, StreamError};
use std::net::IpAddr;
use ureq::Proxy;

/// The proxy for a server; `None` for a direct connection.
pub(super) fn choose(target: &Target, env: &Env) -> Result<Option<Proxy>, StreamError> {
    if is_loopback(&target.host) {
        return Ok(None);
    }
    let names: &[&str] = match target.secure {
        true => &["https_proxy", "all_proxy", "http_proxy"],
        false => &["http_proxy", "all_proxy"],
    };
    let both_cases = |name: &str| {
        let upper = name.to_uppercase();
        let value = env.get(name).map(|value| (name.to_owned(), value));
        value.or_else(|| env.get(&upper).map(|value| (upper, value)))
    };
    let Some((name, url)) = names.iter().find_map(|name| both_cases(name)) else {
        return Ok(None);
    };
    if both_cases("no_proxy").is_some_and(|(_, list)| is_listed(&list, &target.host, target.port)) {
        return Ok(None);
    }
    // The value is not shown: it may contain a password.
    Proxy::new(url.trim()).map(Some).map_err(|_| {
        let text = format!(
            "{name} is not the URL of a proxy: it should look like http://host:port or socks5://host:port"
        );
        StreamError::new(ErrorKind::Request, text)
    })
}

/// Host and port, without credentials.
pub(super) fn shown(proxy: &Proxy) -> String {
    format!("{}:{}", proxy.host(), proxy.port())
}

/// True if `host` is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        Err(_) => {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost")
        }
    }
}

/// True if a `NO_PROXY` list contains the host. Entries are separated by commas or blanks: a name (which
/// includes its subdomains, with or without a leading `.` or `*.`), an address, a network (`10.0.0.0/8`),
/// each with an optional port, or `*`.
fn is_listed(list: &str, host: &str, port: u16) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    let entries = list.split(|c: char| c == ',' || c.is_whitespace());
    entries.filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        let (name, wanted_port) = split_port(entry);
        if wanted_port.is_some_and(|wanted| wanted != port) {
            return false;
        }
        if let Some(address) = address {
            return match name.split_once('/') {
                Some((network, bits)) => in_network(address, network, bits),
                None => name.parse() == Ok(address),
            };
        }
        let name = name.trim_start_matches('*').trim_start_matches('.');
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let before = host.strip_suffix(&name);
        !name.is_empty() && before.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Splits `host:port` or `[v6]:port`; the port is optional. An IPv6 address without brackets has no port.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((address, rest)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
        return (address, port);
    }
    match entry.split_once(':') {
        Some((host, port)) if !port.contains(':') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

fn in_network(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else {
        return false;
    };
    let (a, b, width) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let Some(host_bits) = u32::checked_sub(width, bits) else {
        return false;
    };
    a.checked_shr(host_bits).unwrap_or(0) == b.checked_shr(host_bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_lists() {
        let rows = [
            ("", "a.com", false),
            ("*", "a.com", true),
            ("a.com", "a.com", true),
            ("A.com", "a.COM", true),
            ("a.com.", "a.com", true),
            ("a.com", "x.a.com", true),
            ("a.com", "xa.com", false),
            (".a.com", "x.a.com", true),
            ("*.a.com", "x.a.com", true),
            ("b.com, a.com", "a.com", true),
            ("b.com a.com", "a.com", true),
            ("a.com:443", "a.com", true),
            ("a.com:80", "a.com", false),
            (".", "a.com", false),
            (",,", "a.com", false),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1:443", "10.0.0.1", true),
            ("10.0.0.0/8", "10.2.3.4", true),
            ("10.0.0.0/8", "11.2.3.4", false),
            ("0.0.0.0/0", "11.2.3.4", true),
            ("10.0.0.0/33", "10.0.0.0", false),
            ("0.0.0.1", "10.0.0.1", false),
            ("::/0", "10.2.3.4", false),
            ("fd00::/8", "[fd12::1]", true),
            ("[fd12::1]:443", "[fd12::1]", true),
            ("fd12::1", "[fd12::1]", true),
        ];
        for (list, host, expected) in rows {
            assert_eq!(is_listed(list, host, 443), expected, "{list} {host}");
        }
    }

    #[test]
    fn the_variable_that_counts() {
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>);
        let rows: [Row<'_>; 11] = [
            ("https://a.com", &[], None),
            ("https://a.com", &[("HTTPS_PROXY", "http://p:1")], Some("p:1")),
            ("https://a.com", &[("https_proxy", "http://p:1"), ("HTTPS_PROXY", "http://q:1")], Some("p:1")),
            ("https://a.com", &[("HTTP_PROXY", "http://p:1")], Some("p:1")),
            ("http://a.com", &[("HTTPS_PROXY", "http://p:1")], None),
            ("http://a.com", &[("ALL_PROXY", "socks5://u:secret@p")], Some("p:1080")),
            ("http://a.com", &[("http_proxy", "p:8080")], Some("p:8080")),
            ("https://a.com", &[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", "a.com")], None),
            ("https://a.com", &[("HTTPS_PROXY", "http://p:1"), ("no_proxy", "b.com")], Some("p:1")),
            ("http://localhost:1", &[("HTTP_PROXY", "http://p:1")], None),
            ("http://[::1]:1", &[("HTTP_PROXY", "http://p:1")], None),
        ];
        for (url, env, expected) in rows {
            let target = Target::new(&url.parse().unwrap()).unwrap();
            let settings: Vec<_> =
                env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let proxy = choose(&target, &Env::of([]).with(&settings)).unwrap();
            assert_eq!(proxy.as_ref().map(shown).as_deref(), expected, "{url} {env:?}");
        }
    }

    #[test]
    fn a_bad_proxy_url_is_named_by_its_variable_only() {
        let target = Target::new(&"https://a.com".parse().unwrap()).unwrap();
        for bad in ["http://user:secret@", "gopher://user:secret@p", "http://user:secret@p:x y"] {
            let error = choose(&target, &Env::of([("HTTPS_PROXY", bad)])).unwrap_err();
            assert!(error.message.contains("HTTPS_PROXY"), "{}", error.message);
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
    }

    #[test]
    fn this_machine() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "x.localhost",
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
            "::1",
            "0.0.0.0",
            "::ffff:127.0.0.1",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "localhost.com", "notlocalhost", "128.0.0.1", "10.0.0.1", "[fe80::1]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
