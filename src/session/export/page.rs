//! The HTML page around the exported entries.
//!
//! The page works without scripts: the current branch comes first, other branches are folded below it. The
//! script only switches branches, searches and folds. The page's policy names script and style by their
//! hashes, so that nothing else runs or is loaded, whatever the session contains.

use super::entry::{self, Turn};
use super::html::{Html, anchor};
use super::source::Source;
use super::survey::{Survey, dollars, spent, thousands};
use super::tree::{self, Run};
use crate::base::time;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::digest;
use std::io::{self, Write};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub fn write(source: &Source<'_>, out: &mut dyn Write) -> io::Result<()> {
    let survey = Survey::new(source);
    let runs = tree::runs(source.index(), source.log.leaf_position());
    let mut page = Page { source, survey: &survey, runs: &runs, html: Html::default(), out };
    page.write()
}

struct Page<'a> {
    source: &'a Source<'a>,
    survey: &'a Survey,
    runs: &'a [Run],
    html: Html,
    out: &'a mut dyn Write,
}

impl Page<'_> {
    fn write(&mut self) -> io::Result<()> {
        self.head();
        self.top();
        self.outline();
        self.html.open("main", &[("id", "conversation"), ("tabindex", "-1")]);
        self.html.open("div", &[("class", "path")]);
        self.flush()?;
        if self.runs.is_empty() {
            self.html.element("p", &[("class", "empty")], "Nothing was said in this session.");
        }
        for (number, run) in self.runs.iter().enumerate().filter(|(_, run)| run.current) {
            self.run(number, run)?;
        }
        self.html.close("div");
        self.others()?;
        self.html.close("main");
        self.foot();
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.html.take().as_bytes())
    }

    fn head(&mut self) {
        let html = &mut self.html;
        html.literal("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        html.open("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy())]);
        html.literal("\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
        html.literal("\n<meta name=\"color-scheme\" content=\"light dark\">");
        html.literal("\n<meta name=\"referrer\" content=\"no-referrer\">\n");
        html.element("title", &[], self.survey.title());
        html.literal("\n<style>");
        html.literal(STYLE);
        html.literal("</style>\n</head>\n<body>\n");
        html.element("a", &[("class", "skip"), ("href", "#conversation")], "Skip to the conversation");
    }

    fn top(&mut self) {
        let header = self.source.log.header();
        let html = &mut self.html;
        html.open("header", &[("class", "top")]);
        html.element("h1", &[], self.survey.title());
        html.open("dl", &[("class", "facts")]);
        let mut fact = |name: &str, value: &str| {
            if !value.is_empty() {
                html.open("div", &[]);
                html.element("dt", &[], name);
                html.element("dd", &[], value);
                html.close("div");
            }
        };
        let ended = self.survey.ended.map(time::iso);
        let (from, to) = (entry::minute(&header.timestamp), ended.as_deref().map(entry::minute));
        let when = match to {
            Some(to) if to != from => {
                let day = |minute: &str| minute.get(..11).map(str::to_owned);
                // If the session ended on the day it began, only the end's time is shown.
                let short = day(&from).and_then(|day| to.strip_prefix(&day));
                format!("{from} – {} UTC", short.unwrap_or(&to))
            }
            _ => format!("{from} UTC"),
        };
        fact("Folder", &self.source.shown(&header.cwd));
        fact("Time", &when);
        fact("Session", &header.id);
        let parent = header.parent_session.as_deref().unwrap_or_default();
        fact("Forked from", &self.source.shown(parent));
        fact("Entries", &thousands(self.source.index().slots.len() as u64));
        fact("Answers", &thousands(self.survey.answers as u64));
        fact("Tokens", &spent_tokens(self.survey));
        let cost = self.survey.sum.cost.total;
        fact("Cost", &if cost > 0.0 { dollars(cost) } else { String::new() });
        html.close("dl");
        html.close("header");
        html.literal("\n");
    }

    /// Adds the outline: every prompt and summary of the tree, and the beginnings of branches.
    fn outline(&mut self) {
        let html = &mut self.html;
        html.open("nav", &[("class", "outline"), ("aria-label", "Outline")]);
        html.open("details", &[]);
        html.element("summary", &[], "Outline");
        html.open("ol", &[]);
        for run in self.runs {
            let depth = match run.depth {
                0 => "d0",
                1 => "d1",
                2 => "d2",
                3 => "d3",
                _ => "d4",
            };
            let place = if run.current { "on" } else { "off" };
            for position in &run.entries {
                let id = self.source.id(*position);
                let label = self.survey.labels.get(id);
                let step = self.survey.steps.get(position);
                if step.is_none() && label.is_none() {
                    continue;
                }
                let (text, kind) = step.map_or(("", "note"), |step| (&step.text, step.kind));
                html.open("li", &[("class", &format!("{depth} {place} {kind}"))]);
                html.open("a", &[("href", &anchor(id))]);
                if let Some(label) = label {
                    html.element("span", &[("class", "label")], &super::html::brief(label, 40));
                }
                html.text(text);
                html.close("a");
                html.close("li");
            }
        }
        html.close("ol");
        html.close("details");
        html.close("nav");
        html.literal("\n");
    }

    fn run(&mut self, number: usize, run: &Run) -> io::Result<()> {
        let parent = run.parent.map(|parent| parent.to_string()).unwrap_or_default();
        self.html.open(
            "section",
            &[("class", "run"), ("data-run", &number.to_string()), ("data-parent", &parent)],
        );
        self.html.literal("\n");
        let mut rest = run.entries.as_slice();
        while !rest.is_empty() {
            let turn = Turn::take(self.source, &mut rest);
            entry::show(&mut self.html, self.source, self.survey, turn);
            self.html.literal("\n");
            self.flush()?;
        }
        if run.children.len() > 1 {
            self.fork(&run.children);
        }
        self.html.close("section");
        self.html.literal("\n");
        self.flush()
    }

    /// Adds links to the branches that begin after a run.
    fn fork(&mut self, children: &[usize]) {
        let html = &mut self.html;
        html.open("nav", &[("class", "fork"), ("aria-label", "Branches")]);
        html.element("p", &[], "The conversation branches here");
        html.open("ul", &[]);
        for number in children {
            let Some(run) = self.runs.get(*number) else {
                continue;
            };
            let id = run.entries.first().map_or("", |first| self.source.id(*first));
            let href = anchor(id);
            let number = number.to_string();
            let mut attributes = vec![("href", href.as_str()), ("data-to", number.as_str())];
            if run.current {
                attributes.push(("aria-current", "true"));
            }
            let text = begins_with(self.survey, run);
            html.open("li", &[]);
            html.element("a", &attributes, &text);
            html.close("li");
        }
        html.close("ul");
        html.close("nav");
    }

    /// Adds the other branches, folded.
    fn others(&mut self) -> io::Result<()> {
        let others = self.runs.iter().filter(|run| !run.current).count();
        if others == 0 {
            return Ok(());
        }
        self.html.open("details", &[("class", "others")]);
        self.html.element("summary", &[], "Other branches");
        self.flush()?;
        for (number, run) in self.runs.iter().enumerate().filter(|(_, run)| !run.current) {
            self.run(number, run)?;
        }
        self.html.close("details");
        Ok(())
    }

    fn foot(&mut self) {
        let html = &mut self.html;
        html.element("footer", &[], concat!("Exported by pi ", env!("CARGO_PKG_VERSION")));
        html.literal("\n<script>");
        html.literal(SCRIPT);
        html.literal("</script>\n</body>\n</html>\n");
    }
}

/// Returns the first prompt of a run, or its first step.
fn begins_with(survey: &Survey, run: &Run) -> String {
    let entries = run.entries.iter();
    let steps = entries.filter_map(|position| survey.steps.get(position));
    let first = steps.clone().find(|step| step.kind == "prompt");
    match first.or_else(|| steps.clone().next()) {
        Some(step) => step.text.clone(),
        None => match run.entries.len() {
            1 => "1 entry".to_owned(),
            count => format!("{} entries", thousands(count as u64)),
        },
    }
}

fn spent_tokens(survey: &Survey) -> String {
    let mut usage = survey.sum.clone();
    usage.cost.total = 0.0;
    spent(&usage)
}

/// Returns a content security policy that loads and sends nothing and allows only the page's own style and
/// script.
fn policy() -> String {
    let hash = |text: &str| {
        let hash = digest::digest(&digest::SHA256, text.as_bytes());
        BASE64_STANDARD.encode(hash)
    };
    format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}
