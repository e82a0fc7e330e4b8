//! The section of the system prompt that lists the servers whose tools are not declared.

use super::config::namespace;
use crate::base::order::Order;

/// The name of the section.
pub const NAME: &str = "mcp_servers";

/// Characters of a server's line after its name.
const SUMMARY_MAX: usize = 250;
/// Characters of the section.
const SECTION_MAX: usize = 4096;

/// A server in the section.
pub struct Row {
    pub name: String,
    /// The tools that reach its tools.
    pub reached_by: &'static str,
    pub summary: String,
}

/// The ways in which tools of a server are reached: from scripts, after a search, or both.
pub const WAYS: [&str; 3] = ["codemode", "tool_search", "codemode, tool_search"];

/// The text of the section, with its tag; none without servers.
pub fn text(servers: &[Row]) -> Option<String> {
    if servers.is_empty() {
        return None;
    }
    let mut servers: Vec<_> = servers.iter().collect();
    servers.order_by(|a, b| a.name.cmp(&b.name));
    let has = |way: &str| servers.iter().any(|row| row.reached_by.contains(way));
    let intro = match (has(WAYS[0]), has(WAYS[1])) {
        (true, false) => "Servers with tools that are not declared: call them from codemode scripts.",
        (false, _) => {
            "Servers with tools that are not declared yet. tool_search finds them and declares what fits."
        }
        (true, true) => {
            "Servers with tools that are not declared yet: call them from codemode scripts, or let tool_search find and \
             declare them, as each server's line says."
        }
    };
    let head = |row: &&Row| format!("- {} ({})", namespace(&row.name), row.reached_by);
    let heads: Vec<String> = servers.iter().map(head).collect();
    let rest = |count: usize| match count {
        0 => String::new(),
        1 => "\n- … and 1 more server".to_owned(),
        count => format!("\n- … and {count} more servers"),
    };
    let size = |kept: usize| {
        let heads: usize = heads.iter().take(kept).map(|head| head.chars().count() + 1).sum();
        intro.len() + heads + rest(servers.len() - kept).chars().count()
    };
    let kept = (0..=servers.len()).rev().find(|kept| size(*kept) <= SECTION_MAX).unwrap_or(0);
    let room = (SECTION_MAX.saturating_sub(size(kept)) / kept.max(1)).saturating_sub(2).min(SUMMARY_MAX);
    let mut text = intro.to_owned();
    for (head, row) in heads.iter().zip(&servers).take(kept) {
        let summary = cut(row.summary.lines().next().unwrap_or_default().trim(), room);
        text.push_str(&format!("\n{head}"));
        if !summary.is_empty() {
            text.push_str(&format!(": {summary}"));
        }
    }
    text.push_str(&rest(servers.len() - kept));
    Some(format!("<{NAME}>\n{text}\n</{NAME}>"))
}

/// The beginning of a text, with an ellipsis if it is longer.
fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    if chars_max <= 1 {
        return String::new();
    }
    let start: String = text.chars().take(chars_max - 1).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_a_line_each_within_the_limits() {
        assert_eq!(text(&[]), None);
        let row = |at: usize, about: &str| Row {
            name: format!("server-{at:03}"),
            reached_by: WAYS[1],
            summary: about.to_owned(),
        };
        let servers =
            |count: usize, about: &str| -> Vec<Row> { (0..count).map(|at| row(at, about)).collect() };
        let one = text(&servers(1, "Does this\nand that")).unwrap();
        assert!(one.starts_with("<mcp_servers>\n") && one.ends_with("\n</mcp_servers>"), "{one}");
        assert!(one.contains("\n- mcp__server_000 (tool_search): Does this\n"), "{one}");
        let long = text(&servers(1, &"x".repeat(1000))).unwrap();
        assert!(long.contains(&format!(": {}…\n", "x".repeat(249))), "{long}");
        for count in [20, 100, 500] {
            let many = text(&servers(count, &"ü".repeat(300))).unwrap();
            assert!(many.chars().count() <= SECTION_MAX + 40, "{count}");
            assert_eq!(many.contains(" more server"), count == 500, "{count}");
        }
    }
}
