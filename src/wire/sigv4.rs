//! AWS Signature Version 4, without I/O.
//!
//! The given headers are signed; host, date, hash of the body and session token are added. A query
//! is not supported, since no request has one. The path is percent-encoded twice, as all services except S3
//! require.

use crate::base::hex::hex;
use crate::base::order::Order;
use crate::base::time;
use crate::llm::body::Payload;
use crate::llm::http::Target;
use crate::llm::options::Keys;
use ring::{digest, hmac};
use std::fmt::Write as _;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Headers left out of the signature, such as those that proxies change.
const UNSIGNED: &[&str] = &[
    "authorization",
    "cache-control",
    "connection",
    "expect",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-amzn-trace-id",
];

/// The region, service and time for which a signature is valid.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub region: &'a str,
    pub service: &'a str,
    pub now_ms: u64,
}

/// The headers to add to a POST of `body` to `url`; `None` if the URL is invalid.
pub fn sign(
    keys: &Keys,
    scope: &Scope<'_>,
    url: &str,
    headers: &[(String, String)],
    body: &Payload<'_>,
) -> Option<Vec<(String, String)>> {
    let (host, path) = host_and_path(url)?;
    let mut hash = digest::Context::new(&digest::SHA256);
    body.each_part(&mut |part| hash.update(part));
    let body_hash = hex(hash.finish().as_ref());
    let mut added = vec![
        ("x-amz-date".to_owned(), date(scope.now_ms)),
        ("x-amz-content-sha256".to_owned(), body_hash.clone()),
    ];
    if let Some(token) = &keys.session_token {
        added.push(("x-amz-security-token".to_owned(), token.expose().to_owned()));
    }
    let all = headers.iter().chain(&added);
    let all = all.map(|(name, value)| (name.as_str(), value.as_str()));
    let all: Vec<_> = all.chain([("host", host.as_str())]).collect();
    let authorization = authorization(keys, scope, "POST", &path, &all, &body_hash);
    added.push(("host".to_owned(), host));
    added.push(("authorization".to_owned(), authorization));
    Some(added)
}

fn authorization(
    keys: &Keys,
    scope: &Scope<'_>,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body_hash: &str,
) -> String {
    let date = date(scope.now_ms);
    let day = &date[..8];
    let (region, service) = (scope.region, scope.service);
    let place = format!("{day}/{region}/{service}/aws4_request");

    let (canonical, names) = canonical_headers(headers);
    let path = percent(path, "/");
    let request = format!("{method}\n{path}\n\n{canonical}\n{names}\n{body_hash}");
    let request_hash = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
    let to_sign = format!("{ALGORITHM}\n{date}\n{place}\n{request_hash}");

    let secret = format!("AWS4{}", keys.secret.expose());
    let key = [day, region, service, "aws4_request"]
        .iter()
        .fold(secret.into_bytes(), |key, part| mac(&key, part).as_ref().to_vec());
    let signature = hex(mac(&key, &to_sign).as_ref());
    format!("{ALGORITHM} Credential={}/{place}, SignedHeaders={names}, Signature={signature}", keys.id)
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

/// The canonical headers, one line each, sorted by name, with values of equal names joined; and the list of
/// names.
fn canonical_headers(headers: &[(&str, &str)]) -> (String, String) {
    let mut all: Vec<(String, String)> = headers
        .iter()
        .map(|(name, value)| {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            (name.to_ascii_lowercase(), value)
        })
        .filter(|(name, _)| !UNSIGNED.contains(&name.as_str()))
        .collect();
    all.order_by(|(a, _), (b, _)| a.cmp(b)); // stable: values stay in their order
    all.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1.push(',');
            first.1.push_str(&later.1);
        }
        same
    });
    let mut lines = String::new();
    for (name, value) in &all {
        let _ = writeln!(lines, "{name}:{value}"); // to a string: cannot fail
    }
    let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
    (lines, names.join(";"))
}

/// Formats a time as `20150830T123600Z`.
fn date(ms: u64) -> String {
    let iso = time::iso(ms);
    let seconds = iso.split('.').next().unwrap_or_default();
    let mut date = seconds.replace(['-', ':'], "");
    date.push('Z');
    date
}

/// Percent-encodes every byte except letters, digits, `-_.~` and those in `keep`.
pub fn percent(text: &str, keep: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || keep.as_bytes().contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The host header, with the port if it is not the scheme's default; and the path.
fn host_and_path(url: &str) -> Option<(String, String)> {
    let uri = url.parse().ok()?;
    let target = Target::new(&uri)?;
    let usual = if target.secure { 443 } else { 80 };
    let host = match target.port == usual {
        true => target.host,
        false => format!("{}:{}", target.host, target.port),
    };
    Some((host, uri.path().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None)
    }

    /// 2015-08-30T12:36:00Z, the time of AWS's published test suite.
    const NOW: u64 = 1_440_938_160_000;

    /// Checks a case of AWS's published test suite: method, path, headers besides host and date, body, and
    /// the expected names and signature.
    #[track_caller]
    fn check(method: &str, path: &str, headers: &[(&str, &str)], body: &str, names: &str, signature: &str) {
        let scope = Scope { region: "us-east-1", service: "service", now_ms: NOW };
        let date = date(NOW);
        let given = [("Host", "example.amazonaws.com"), ("X-Amz-Date", &date)];
        let headers: Vec<_> = given.iter().chain(headers).copied().collect();
        let body_hash = hex(digest::digest(&digest::SHA256, body.as_bytes()).as_ref());
        let got = authorization(&keys(), &scope, method, path, &headers, &body_hash);
        let expected = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders={names}, Signature={signature}"
        );
        assert_eq!(got, expected);
    }

    #[test]
    #[rustfmt::skip]
    fn the_published_cases() {
        let plain = "host;x-amz-date";
        check("GET", "/", &[], "", plain, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
        check("POST", "/", &[], "", plain, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
        check("GET", "/ሴ", &[], "", plain, "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
        check("GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", &[], "", plain,
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f");
        check("POST", "/", &[("My-Header1", "value1")], "", "host;my-header1;x-amz-date",
            "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c");
        check("GET", "/", &[("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")], "",
            "host;my-header1;my-header2;x-amz-date", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
        check("GET", "/", &[("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1")], "",
            "host;my-header1;x-amz-date", "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea");
        check("POST", "/", &[("Content-Type", "application/x-www-form-urlencoded")], "Param1=value1",
            "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
        let token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
        check("POST", "/", &[("X-Amz-Security-Token", token)], "", "host;x-amz-date;x-amz-security-token",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead");
    }

    #[test]
    fn what_is_added_to_a_request() {
        let keys = Keys::new("AKIDEXAMPLE", "secret", Some("token"));
        let scope = Scope { region: "us-west-2", service: "bedrock", now_ms: NOW };
        let headers = [("content-type", "application/json"), ("user-agent", "x")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let url = "https://bedrock-runtime.us-west-2.amazonaws.com/model/a%3A0/converse-stream";
        let added = sign(&keys, &scope, url, &headers, &Payload::Whole(b"{}".to_vec())).unwrap();
        let names: Vec<_> = added.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["x-amz-date", "x-amz-content-sha256", "x-amz-security-token", "host", "authorization"]
        );
        let signed = "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token,";
        assert!(added[4].1.contains(signed), "{}", added[4].1);
        assert_eq!(sign(&keys, &scope, "nonsense", &headers, &Payload::Whole(Vec::new())), None);
    }

    #[test]
    fn the_host_is_named_as_it_is_sent() {
        let rows = [
            ("https://h.test/a%2Fb", "h.test", "/a%2Fb"),
            ("https://h.test:443", "h.test", "/"),
            ("http://127.0.0.1:8080/x", "127.0.0.1:8080", "/x"),
            ("http://[::1]:81/", "[::1]:81", "/"),
        ];
        for (url, host, path) in rows {
            let expected = Some((host.to_owned(), path.to_owned()));
            assert_eq!(host_and_path(url), expected, "{url}");
        }
    }
}
