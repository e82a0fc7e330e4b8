//! Formats a session for `pi sessions`, as a row for people or as a line of JSON.

use crate::base::order::Order;
use crate::runtime::{age, plain_text};
use crate::session::info::Info;
use serde_json::Value;

/// Returns a line of JSON for a terminal: control characters are escaped.
pub fn json_line(value: &Value) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\u{7f}'..='\u{9f}' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => out.push(char),
        }
    }
    out
}

/// Returns a row for each session, without a newline.
pub fn rows(infos: &[Info], with_folder: bool) -> Vec<String> {
    let ids = short_ids(infos);
    let rows = infos.iter().zip(&ids);
    rows.map(|(info, id)| row(info, id, with_folder)).collect()
}

pub fn row(info: &Info, id: &str, with_folder: bool) -> String {
    let age = age(&info.modified);
    let said = match &info.name {
        Some(name) => format!("[{name}] {}", info.first_message),
        None => info.first_message.clone(),
    };
    let said = one_line(&said, 80);
    let folder = if with_folder { format!("{}  ", one_line(&info.cwd, usize::MAX)) } else { String::new() };
    let (id, count) = (one_line(id, usize::MAX), info.message_count);
    format!("{id}  {age:>4}  {count:>4}  {folder}{said}")
}

/// Returns the shortest unique beginning of each id, of at least eight characters.
pub fn short_ids(infos: &[Info]) -> Vec<String> {
    const SHORTEST: usize = 8;
    let mut sorted: Vec<&str> = infos.iter().map(|info| info.id.as_str()).collect();
    sorted.order();
    let common = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let short = |id: &str| {
        let at = sorted.partition_point(|other| *other < id);
        let before = at.checked_sub(1).and_then(|at| sorted.get(at));
        let neighbours = [before, sorted.get(at + 1)];
        let shared = neighbours.iter().flatten().map(|other| common(id, other));
        let needed = shared.max().unwrap_or(0) + 1;
        id.chars().take(needed.max(SHORTEST)).collect()
    };
    infos.iter().map(|info| short(&info.id)).collect()
}

/// Returns `text` on one line, without control characters, cut to `width` characters.
pub fn one_line(text: &str, width: usize) -> String {
    // Only a part of a long text is needed to fill a line.
    let end = text.char_indices().nth(width.saturating_mul(4));
    let few = end.and_then(|(at, _)| text.get(..at)).unwrap_or(text);
    let plain = plain_text(few.as_bytes());
    let words: Vec<&str> = plain.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(width) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(&line)),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time;
    use std::path::PathBuf;

    fn info(id: &str) -> Info {
        Info {
            path: PathBuf::from(id),
            id: id.into(),
            cwd: "/x".into(),
            name: None,
            parent_session_path: None,
            created: None,
            modified: time::iso(0),
            message_count: 2,
            first_message: "one\ntwo\u{1b}[31m".into(),
        }
    }

    #[test]
    fn short_ids_are_enough_to_tell_sessions_apart() {
        let rows: &[(&[&str], &[&str])] = &[
            (&["0123456789"], &["01234567"]),
            (&["abc"], &["abc"]),
            (&["0123456789", "0123456799"], &["012345678", "012345679"]),
            (&["0123456789", "01234567", "x"], &["012345678", "01234567", "x"]),
            (&[], &[]),
        ];
        for (ids, short) in rows {
            let infos: Vec<Info> = ids.iter().map(|id| info(id)).collect();
            assert_eq!(short_ids(&infos), *short);
        }
    }

    #[test]
    fn a_row_is_one_plain_line() {
        assert_eq!(row(&info("a"), "a", true), format!("a  {:>4}     2  /x  one two", age(&time::iso(0))));
        assert_eq!(one_line("é é é", 3), "é é…");
        assert_eq!(one_line("", 3), "");
    }
}
