//! The two rows at the bottom: folder, branch and session; tokens, cost, context and model.

use super::activity::Spent as RunSpent;
use super::effect::Effect;
use super::feed::Feed;
use super::look::Look;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::runtime::control::Control;
use crate::runtime::permission::Mode;
use crate::runtime::stats::{Context, ContextUsage, Stats};
use crate::runtime::{Model, ThinkingLevel, Usage, git_branch};
use crate::tui::line::Line;
use crate::tui::select::elapsed;
use crate::tui::style::Style;
use crate::tui::theme::Role;
use crate::tui::width::width;
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Entries that are summed immediately; more are left to another thread.
const AT_ONCE: usize = 500;

pub struct Footer {
    cwd: PathBuf,
    branch: Option<String>,
    pub name: Option<String>,
    spent: Spent,
    /// Number of changes to spending and conversation: a sum from before a change is outdated.
    changes: u64,
    context: Option<Context>,
    /// True if the last answer failed: the context is then as large as it was before.
    has_failed: bool,
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    /// The model that a virtual model chose last, and its thinking level.
    routed: Option<String>,
    compacts: bool,
    /// What is asked about, unless nothing is.
    asks: Option<String>,
    /// True if more than one provider is usable.
    names_provider: bool,
    /// True if the provider's usage is paid for by a subscription.
    is_subscribed: bool,
    /// Tokens per second of the current answer, or of the last.
    pub speed: Option<f64>,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cost: f64,
    /// The part of the cost that kept the prompt cache warm.
    warmed: f64,
    /// Cached share of the last prompt.
    hit_rate: Option<f64>,
}

impl Footer {
    pub fn new(control: &Control, cwd: PathBuf, feed: &Arc<Feed>) -> Self {
        let now = control.snapshot();
        let mut footer = Self {
            cwd,
            branch: None,
            name: None,
            spent: Spent::default(),
            changes: 0,
            context: None,
            has_failed: false,
            model: now.model,
            thinking: now.thinking,
            routed: None,
            compacts: now.switches.auto_compaction,
            asks: None,
            names_provider: false,
            is_subscribed: false,
            speed: None,
        };
        footer.begin(control, feed);
        footer
    }

    /// Sums the cost of another conversation. The rest is read by [`Self::refresh`].
    pub fn begin(&mut self, control: &Control, feed: &Arc<Feed>) {
        self.count_providers(control);
        (self.spent, self.has_failed) = (Spent::default(), false);
        self.sum(control, feed);
    }

    /// Sums the cost of everything in the conversation again.
    pub fn sum(&mut self, control: &Control, feed: &Arc<Feed>) {
        self.changes += 1;
        if control.log().index().slots.len() <= AT_ONCE {
            self.spent = Spent { hit_rate: self.spent.hit_rate, ..Spent::of(&control.stats()) };
            return;
        }
        let (control, feed, changes) = (control.clone(), feed.clone(), self.changes);
        let sum = move || {
            let stats = Box::new(control.stats());
            feed.effect(Effect::Summed { changes, stats });
        };
        // Without the thread the sums are missing, nothing else.
        let _ = Thread::named("sums").start(sum);
    }

    /// Applies a sum; starts again if tokens were spent meanwhile, which the sum may or may not include.
    pub fn summed(&mut self, changes: u64, stats: &Stats, control: &Control, feed: &Arc<Feed>) {
        match self.changes == changes {
            true => self.spent = Spent { hit_rate: self.spent.hit_rate, ..Spent::of(stats) },
            false => self.sum(control, feed),
        }
    }

    /// Counts the usable providers again.
    pub fn count_providers(&mut self, control: &Control) {
        self.names_provider = control.models().usable_providers().len() > 1;
    }

    /// Reads the session's state again; the cost does not depend on the size of the session file.
    pub fn refresh(&mut self, control: &Control) {
        let now = control.snapshot();
        (self.cwd, self.name) = (now.cwd, now.session_name);
        (self.model, self.thinking) = (now.model, now.thinking);
        self.compacts = now.switches.auto_compaction;
        let mode = control.permissions().policy().mode;
        self.asks = (mode.about() != Mode::Free.about()).then(|| mode.about());
        self.branch = git_branch(&self.cwd);
        self.is_subscribed = control.models().is_subscribed(&self.model);
        self.routed = control.models().routed().map(|(model, level)| match level {
            Some(level) => format!("{} • {level}", model.id),
            None => model.id.clone(),
        });
        let known = self.context.as_ref().and_then(|context| context.tokens).filter(|_| self.has_failed);
        self.context = control.context_usage().map(|usage| {
            let usage = ContextUsage { tokens: known.or(usage.tokens), ..usage };
            Context { tokens: usage.tokens, context_window: usage.window, percent: usage.percent() }
        });
    }

    /// Adds the usage of an answer that has ended. One that failed says nothing of the context.
    pub fn spend(&mut self, usage: &Usage, has_failed: bool) {
        self.has_failed = has_failed;
        self.changes += 1;
        if has_failed && usage.input == 0 && usage.output == 0 {
            return;
        }
        let spent = &mut self.spent;
        spent.add(usage);
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        let prompt = usage.input.saturating_add(cached);
        let seen = cached > 0;
        spent.hit_rate = (seen && prompt > 0).then(|| percent(usage.cache_read, prompt));
    }

    /// Adds the usage of a request that kept the prompt cache warm.
    pub fn warm(&mut self, usage: &Usage) {
        self.changes += 1;
        self.spent.add(usage);
        self.spent.warmed += usage.cost.total;
    }

    /// One line about a run that has ended: its time, tokens and cost, and how full the context is.
    pub fn sum_up(&self, took: Duration, spent: &RunSpent, is_plain: bool) -> String {
        let mut parts = vec![format!("Worked {}", elapsed(took.max(Duration::from_secs(1))))];
        parts.push(match is_plain {
            true => format!("in {} out {}", tokens(spent.input), tokens(spent.output)),
            false => format!("↑{} ↓{}", tokens(spent.input), tokens(spent.output)),
        });
        if spent.cost > 0.0 {
            parts.push(format!("${:.3}", spent.cost));
        }
        if let Some(context) = &self.context
            && let Some(percent) = context.percent
        {
            parts.push(format!("{percent:.1}% of {}", tokens(context.context_window)));
        }
        parts.join(if is_plain { ", " } else { " · " })
    }

    /// What a footer of the user's own can show, by name.
    pub fn fields(&self, look: &Look<'_>) -> Vec<(&'static str, String)> {
        let spent = &self.spent;
        let context = self.context.as_ref();
        let share = |percent: f64| format!("{percent:.1}%");
        let thinking = if self.model.reasoning { self.thinking.name() } else { "" };
        vec![
            ("cwd", look.path(&self.cwd)),
            ("branch", self.branch.clone().unwrap_or_default()),
            ("session", self.name.clone().unwrap_or_default()),
            ("provider", self.model.provider.clone()),
            ("model", self.model.id.clone()),
            ("thinking", thinking.to_owned()),
            ("context", context.and_then(|context| context.percent).map_or_else(|| "?".to_owned(), share)),
            ("window", tokens(context.map_or(self.model.context_window, |context| context.context_window))),
            ("cost", format!("${:.3}", spent.cost)),
            ("input", tokens(spent.input)),
            ("output", tokens(spent.output)),
            ("cacheRead", tokens(spent.cache_read)),
            ("cacheWrite", tokens(spent.cache_write)),
            ("hitRate", spent.hit_rate.map(share).unwrap_or_default()),
            ("speed", self.speed.map(|speed| format!("{speed:.0} tok/s")).unwrap_or_default()),
        ]
    }

    /// The state of the session as JSON, for a command that prints a footer.
    pub fn state(&self) -> Value {
        let (spent, context) = (&self.spent, self.context.as_ref());
        json!({
            "cwd": self.cwd,
            "branch": self.branch,
            "model": {
                "provider": self.model.provider,
                "id": self.model.id,
                "name": self.model.name,
                "thinking": self.thinking.name(),
            },
            "context": {
                "tokens": context.and_then(|context| context.tokens),
                "window": context.map_or(self.model.context_window, |context| context.context_window),
                "percent": context.and_then(|context| context.percent),
            },
            "usage": {
                "input": spent.input,
                "output": spent.output,
                "cacheRead": spent.cache_read,
                "cacheWrite": spent.cache_write,
                "cost": spent.cost,
            },
        })
    }

    pub fn lines(&self, look: &Look<'_>) -> Vec<Line> {
        let dim = look.style(Role::Dim);
        let mut place = look.path(&self.cwd);
        if let Some(branch) = &self.branch {
            let _ = write!(place, " ({branch})");
        }
        if let Some(name) = &self.name {
            let _ = write!(place, " • {name}");
        }
        let mut place = Line::of(&place, dim);
        if let Some(asks) = &self.asks {
            // It stays when the folder's name is long.
            let asks = format!(" • {asks}");
            place = place.cut(look.short().saturating_sub(width(&asks)));
            place.push(&asks, look.style(Role::Warning));
        }
        vec![place.cut(look.short()), self.figures(look, dim)]
    }

    /// Tokens, cost and context to the left, the model to the right. What has no room is left out, the least
    /// important first: the context and the model stay.
    fn figures(&self, look: &Look<'_>, dim: Style) -> Line {
        let mut parts = self.parts(look, dim);
        let mut model = self.model_parts();
        let width_of = |parts: &[Part], model: &[(u8, String)]| {
            let left: usize = parts.iter().map(|part| width(&part.text) + 1).sum();
            left + 1 + model.iter().map(|(_, text)| width(text)).sum::<usize>()
        };
        while width_of(&parts, &model) > look.short() {
            let ranks = parts.iter().map(|part| part.rank).chain(model.iter().map(|(rank, _)| *rank));
            let Some(last) = ranks.max().filter(|rank| *rank > 0) else { break };
            parts.retain(|part| part.rank < last);
            model.retain(|(rank, _)| *rank < last);
        }
        let mut line = Line::new();
        for part in &parts {
            line.push(&part.text, part.style);
            line.push(" ", dim);
        }
        let model: String = model.into_iter().map(|(_, text)| text).collect();
        let room = look.short().saturating_sub(line.width() + 1);
        let model = Line::of(&model, dim).cut(room);
        line.pad_to(look.short().saturating_sub(model.width()), dim);
        line.append(&model);
        line.cut(look.short())
    }

    /// The figures, from left to right.
    fn parts(&self, look: &Look<'_>, dim: Style) -> Vec<Part> {
        let spent = &self.spent;
        let mut parts = Vec::new();
        let mut push = |rank, text: String, style| parts.push(Part { rank, text, style });
        let names = match look.is_plain {
            true => ["in ", "out ", "cached ", "stored "],
            false => ["↑", "↓", "R", "W"],
        };
        let counts = [spent.input, spent.output, spent.cache_read, spent.cache_write];
        for ((name, count), rank) in names.into_iter().zip(counts).zip([4, 3, 6, 7]) {
            if count > 0 {
                push(rank, format!("{name}{}", tokens(count)), dim);
            }
        }
        if let Some(rate) = spent.hit_rate {
            push(8, format!("CH{rate:.1}%"), dim);
        }
        if spent.cost > 0.0 || self.is_subscribed {
            let paid = if self.is_subscribed { " (sub)" } else { "" };
            push(1, format!("${:.3}{paid}", spent.cost), dim);
        }
        if spent.warmed > 0.0 {
            push(11, format!("(warming ${:.3})", spent.warmed), dim);
        }
        if let Some(speed) = self.speed {
            push(5, format!("{speed:.0} tok/s"), dim);
        }
        let window =
            self.context.as_ref().map_or(self.model.context_window, |context| context.context_window);
        let filled = match self.context.as_ref().map(|context| context.percent) {
            Some(None) => None,
            Some(Some(percent)) => Some(percent),
            None => Some(0.0),
        };
        let style = match filled {
            Some(percent) if percent > 90.0 => look.style(Role::Error),
            Some(percent) if percent > 70.0 => look.style(Role::Warning),
            _ => dim,
        };
        match filled {
            Some(percent) => push(0, format!("{percent:.1}%/{}", tokens(window)), style),
            None => push(0, format!("?/{}", tokens(window)), style),
        }
        if self.compacts {
            push(9, "(auto)".to_owned(), style);
        }
        parts
    }

    /// The provider, model and thinking level, with their ranks.
    fn model_parts(&self) -> Vec<(u8, String)> {
        let mut parts = Vec::new();
        if self.names_provider {
            parts.push((10, format!("({}) ", self.model.provider)));
        }
        parts.push((0, self.model.id.clone()));
        if self.model.reasoning {
            parts.push((
                2,
                match self.thinking {
                    ThinkingLevel::Off => " • thinking off".to_owned(),
                    level => format!(" • {}", level.name()),
                },
            ));
        }
        if let Some(routed) = &self.routed {
            parts.push((1, format!(" → {routed}")));
        }
        parts
    }
}

/// A figure of the footer.
struct Part {
    /// Rank 0 always stays, the others give way from the highest on.
    rank: u8,
    text: String,
    style: Style,
}

impl Spent {
    fn of(stats: &Stats) -> Self {
        let tokens = &stats.tokens;
        Self {
            input: tokens.input,
            output: tokens.output,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            cost: stats.cost,
            warmed: stats.warmed,
            hit_rate: None,
        }
    }

    fn add(&mut self, usage: &Usage) {
        let add = |sum: &mut u64, count| *sum = sum.saturating_add(count);
        add(&mut self.input, usage.input);
        add(&mut self.output, usage.output);
        add(&mut self.cache_read, usage.cache_read);
        add(&mut self.cache_write, usage.cache_write);
        self.cost += usage.cost.total;
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// A number as `950`, `1.2k`, `128k`, `1.5M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..10_000 => format!("{:.1}k", count as f64 / 1e3),
        10_000..1_000_000 => format!("{}k", (count as f64 / 1e3).round()),
        1_000_000..10_000_000 => format!("{:.1}M", count as f64 / 1e6),
        _ => format!("{}M", (count as f64 / 1e6).round()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::testing::Bench;

    #[test]
    fn what_has_no_room_gives_way_and_the_context_and_model_stay() {
        let mut bench = Bench::new();
        let footer = &mut bench.app.status.footer;
        let usage =
            Usage { input: 1500, output: 180, cache_read: 5000, cache_write: 400, ..Usage::default() };
        footer.spend(&usage, false);
        footer.spent.cost = 0.005;
        footer.names_provider = true;
        let config = &bench.app.config;
        let at = |width: usize| {
            let lines = footer.lines(&config.look().within(width));
            lines.last().unwrap().text().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        for (width, expected) in [
            (100, "↑1.5k ↓180 R5.0k W400 CH72.5% $0.005 0.0%/128k (auto) (mock) m1"),
            (60, "↑1.5k ↓180 R5.0k W400 CH72.5% $0.005 0.0%/128k m1"),
            (46, "↑1.5k ↓180 R5.0k W400 $0.005 0.0%/128k m1"),
            (40, "↑1.5k ↓180 $0.005 0.0%/128k m1"),
            (22, "0.0%/128k m1"),
            (10, "0.0%/128k"),
        ] {
            assert_eq!(at(width), expected, "{width}");
        }
    }

    #[test]
    fn the_model_that_a_virtual_one_chose_stands_beside_it() {
        let mut bench = Bench::new();
        let footer = &mut bench.app.status.footer;
        footer.routed = Some("small • low".to_owned());
        let config = &bench.app.config;
        let at = |width: usize| footer.lines(&config.look().within(width)).last().unwrap().text().to_string();
        assert!(at(60).ends_with("m1 → small • low"), "{}", at(60));
        assert!(at(20).ends_with("m1"), "{}", at(20));
    }

    #[test]
    fn a_failed_answer_leaves_the_context_as_it_was() {
        let mut bench = Bench::new();
        let footer = &mut bench.app.status.footer;
        footer.context = Some(Context { tokens: Some(64_000), context_window: 128_000, percent: Some(50.0) });
        footer.spend(&Usage::default(), true);
        footer.refresh(&bench.app.control);
        assert_eq!(footer.context.as_ref().unwrap().percent, Some(50.0));
        footer.spend(&Usage::default(), false);
        footer.refresh(&bench.app.control);
        assert_ne!(footer.context.as_ref().unwrap().percent, Some(50.0));
    }

    #[test]
    fn counts_of_tokens_are_short() {
        for (count, shown) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (9_949, "9.9k"),
            (12_345, "12k"),
            (128_000, "128k"),
            (1_048_576, "1.0M"),
            (23_000_000, "23M"),
        ] {
            assert_eq!(tokens(count), shown);
        }
    }
}
