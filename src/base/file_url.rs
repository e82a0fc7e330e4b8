//! URLs of local files.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The path of a `file://` URL; `rest` follows the two slashes.
pub fn path(rest: &str) -> Result<PathBuf, String> {
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(format!("The URL file://{rest} names another machine; only local files can be reached."));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let [first, tail @ ..] = left {
        left = tail;
        let digit = |at: usize| tail.get(at).and_then(|byte| (*byte as char).to_digit(16));
        match (*first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                left = tail.get(2..).unwrap_or_default();
            }
            _ => bytes.push(*first),
        }
    }
    if bytes.contains(&0) {
        return Err("The path contains a NUL character, which no file name can have.".to_owned());
    }
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}
