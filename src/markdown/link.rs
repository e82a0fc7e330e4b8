//! Targets of links: the part in parentheses after the brackets, and its entities.

/// Longer destinations and titles of links are plain text.
const DESTINATION_MAX: usize = 8 << 10;
const TITLE_MAX: usize = 1 << 10;

/// Destination and length of `(destination "title")`.
pub fn target(text: &str) -> Option<(String, usize)> {
    let rest = text.strip_prefix('(')?.trim_start_matches(blank);
    let (url, rest) = destination(rest)?;
    let after = rest.trim_start_matches(blank);
    let rest = match after.chars().next() {
        Some(')') => after,
        Some(quote @ ('"' | '\'' | '(')) if after.len() < rest.len() => {
            let end = if quote == '(' { ')' } else { quote };
            let mut escaped = false;
            let len = after.get(1..)?.bytes().take(TITLE_MAX).position(|byte| {
                let found = byte == end as u8 && !escaped;
                escaped = byte == b'\\' && !escaped;
                found
            })?;
            after.get(len + 2..)?.trim_start_matches(blank)
        }
        _ => return None,
    };
    let rest = rest.strip_prefix(')')?;
    Some((unescape(url), text.len() - rest.len()))
}

fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// Splits a text into a destination and the rest.
fn destination(text: &str) -> Option<(&str, &str)> {
    const PARENS_MAX: usize = 32;
    let in_angles = text.strip_prefix('<');
    let inside = in_angles.unwrap_or(text);
    let (mut escaped, mut parens) = (false, 0_usize);
    for (at, byte) in inside.bytes().enumerate().take(DESTINATION_MAX) {
        let ends = match (byte, in_angles) {
            _ if escaped => false,
            (b'>', Some(_)) => return Some((inside.get(..at)?, inside.get(at + 1..)?)),
            (b'<' | b'\n', Some(_)) => return None,
            (_, Some(_)) => false,
            (b'(', None) => {
                parens += 1;
                if parens > PARENS_MAX {
                    return None;
                }
                false
            }
            (b')', None) if parens > 0 => {
                parens -= 1;
                false
            }
            (b')', None) => true,
            (byte, None) => byte <= b' ' || byte == 0x7f,
        };
        if ends {
            return (parens == 0).then_some(inside.split_at_checked(at)?);
        }
        escaped = byte == b'\\' && !escaped;
    }
    None
}

/// Text with backslash escapes removed and entities decoded.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '&']) {
        let (before, mark) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let after = mark.get(1..).unwrap_or_default();
        let sign = after.chars().next().filter(char::is_ascii_punctuation);
        let entity = || {
            let end = after.bytes().take(9).position(|byte| byte == b';')?;
            Some((decode(after.get(..end)?)?, after.get(end + 1..)?))
        };
        (rest, _) = match (mark.starts_with('\\'), sign) {
            (true, Some(sign)) => (after.get(1..).unwrap_or_default(), out.push(sign)),
            (true, None) => (after, out.push('\\')),
            (false, _) => match entity() {
                Some((decoded, after)) => (after, out.push(decoded)),
                None => (after, out.push('&')),
            },
        };
    }
    out.push_str(rest);
    out
}

/// The character that an entity names, without `&` and `;`.
pub fn decode(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        let decoded = char::from_u32(code.ok()?)?;
        return Some(if decoded == '\0' { '\u{fffd}' } else { decoded });
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "hellip" => '…',
        "mdash" => '—',
        "ndash" => '–',
        "rarr" => '→',
        "larr" => '←',
        "times" => '×',
        _ => return None,
    })
}
