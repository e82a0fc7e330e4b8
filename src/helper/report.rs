//! Reports of helpers, and the result of a `task` call that is made of them.

use crate::agent::tool::ToolOutput;
use crate::base::json::json;
use crate::base::order::Order;
use crate::llm::message::Usage;
use crate::runtime::helpers::Report;
use crate::session::compaction::add_usage;
use serde_json::Value;

/// Maximum bytes of all reports of a call together.
const BYTES_MAX: usize = 24 * 1024;

fn head(report: &Report) -> String {
    let Report { name, agent, status, .. } = report;
    let mut head = format!("## {name} ({agent}): {}\n", status.name());
    if let Some(note) = &report.note {
        head.push_str(&format!("[{note}]\n"));
    }
    if let Some(changes) = &report.changes {
        head.push_str(&format!("[{}]\n", changes.summary()));
    }
    head
}

fn section(report: &Report, mut section: String, bytes_max: usize) -> String {
    let name = &report.name;
    let text = report.text.trim();
    let shown = cut(text, bytes_max);
    if !text.is_empty() {
        section.push_str(&format!("\n{shown}\n"));
    }
    if shown.len() < text.len() {
        let how = if report.is_kept { format!("; read agent://{name} has all") } else { String::new() };
        section.push_str(&format!("[cut after {} of {} bytes{how}]\n", shown.len(), text.len()));
    }
    section
}

/// The beginning of `text` in at most `bytes_max` bytes, up to the end of a line if one is near.
fn cut(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    // A character has at most four bytes.
    let head = (0..4).find_map(|back| text.get(..bytes_max.saturating_sub(back))).unwrap_or_default();
    match head.rfind('\n') {
        Some(end) if end > bytes_max / 2 => head.get(..end).unwrap_or(head),
        _ => head,
    }
}

/// The progress of all tasks of a call.
pub fn progress(reports: &[Report]) -> ToolOutput {
    let lines: Vec<String> = reports.iter().map(Report::line).collect();
    ToolOutput::text(lines.join("\n")).with_details(details(reports))
}

/// The result of a call, with all reports in the order of the tasks.
pub fn result(reports: &[Report]) -> ToolOutput {
    let mut usage = Usage::default();
    reports.iter().for_each(|report| usage = add_usage(&usage, &report.usage));
    // What short reports leave over goes to the longer ones.
    let mut lengths: Vec<usize> = reports.iter().map(|report| report.text.len()).collect();
    lengths.order();
    let heads: Vec<String> = reports.iter().map(head).collect();
    let mut left = BYTES_MAX.saturating_sub(heads.iter().map(String::len).sum());
    let mut share = left;
    for (at, length) in lengths.iter().enumerate() {
        share = left / (lengths.len() - at);
        left -= share.min(*length);
    }
    let sections: Vec<String> =
        reports.iter().zip(heads).map(|(report, head)| section(report, head, share)).collect();
    let structured = reports.iter().map(|report| {
        let result = report.data.clone().unwrap_or_else(|| report.text.as_str().into());
        json!({"name": report.name, "status": report.status.name(), "result": result, "note": report.note})
    });
    ToolOutput {
        usage: (usage.total_tokens > 0).then_some(usage),
        structured: Some(structured.collect()),
        ..ToolOutput::text(sections.join("\n")).with_details(details(reports))
    }
}

fn details(reports: &[Report]) -> Value {
    let helpers: Vec<Value> = reports.iter().map(Report::to_json).collect();
    json!({"helpers": helpers})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::message::text_of;
    use crate::runtime::helpers::{Changes, Status};

    fn report(name: &str, text: &str) -> Report {
        Report {
            name: name.into(),
            agent: "general".into(),
            status: Status::Done,
            text: text.into(),
            is_kept: true,
            ..Report::default()
        }
    }

    #[test]
    fn long_reports_share_what_short_ones_leave() {
        let long = "line\n".repeat(10_000);
        let output = result(&[report("a", "short"), report("b", &long), report("c", &long)]);
        let text = text_of(&output.content);
        assert!(text.starts_with("## a (general): done\n\nshort\n\n## b (general): done\n"), "{text}");
        assert!(text.len() < BYTES_MAX + 400 && text.len() > BYTES_MAX - 400, "{}", text.len());
        assert!(text.contains("of 49999 bytes; read agent://b has all]"), "{text}");
        assert!(text.trim_end().ends_with("read agent://c has all]"));
        let alone = text_of(&result(&[report("a", &"é".repeat(BYTES_MAX))]).content);
        assert!(alone.contains("[cut after 24554 of 49152 bytes"), "{}", &alone[alone.len() - 100..]);
    }

    #[test]
    fn many_changes_and_long_reports_stay_within_the_limit() {
        let files: Vec<String> = (0..5000).map(|number| format!("folder/of/files/{number}")).collect();
        let changes = Changes { files, is_applied: true, ..Changes::default() };
        let row = Report { changes: Some(changes), ..report("a", &"line\n".repeat(10_000)) };
        let text = text_of(&result(&vec![row; 16]).content);
        assert!(text.len() < BYTES_MAX + 16 * 80, "{}", text.len());
        assert!(text.contains(" and 4980 more]\n"), "{text}");
    }

    #[test]
    fn a_failure_says_so_and_keeps_what_there_is() {
        let failed = Report {
            status: Status::Failed,
            note: Some("no key".into()),
            is_kept: false,
            ..report("a", "half")
        };
        let text = text_of(&result(&[failed]).content);
        assert_eq!(text, "## a (general): failed\n[no key]\n\nhalf\n");
    }
}
