//! The two rows at the bottom: folder, branch and session; tokens, cost, context and model.

use super::activity::Spent as RunSpent;
use super::effect::Effect;
use super::feed::Feed;
use super::look::Look;
use crate::runtime::control::Control;
use crate::runtime::stats::{Context, Stats};
use crate::runtime::{Model, ThinkingLevel, Usage, git_branch};
use crate::tui::line::Line;
use crate::tui::select::elapsed;
use crate::tui::style::Style;
use crate::tui::theme::Role;
use crate::tui::width::width;
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
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    compacts: bool,
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
            model: now.model,
            thinking: now.thinking,
            compacts: now.switches.auto_compaction,
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
        self.spent = Spent::default();
        self.sum(control, feed);
    }

    fn sum(&mut self, control: &Control, feed: &Arc<Feed>) {
        self.changes += 1;
        if control.log().index().slots.len() <= AT_ONCE {
            self.spent = Spent::of(&control.stats());
            return;
        }
        let (control, feed, changes) = (control.clone(), feed.clone(), self.changes);
        let sum = move || {
            let stats = Box::new(control.stats());
            feed.effect(Effect::Summed { changes, stats });
        };
        // Without the thread the sums are missing, nothing else.
        let _ = std::thread::Builder::new().name("sums".into()).spawn(sum);
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
        self.branch = git_branch(&self.cwd);
        self.is_subscribed = control.models().is_subscribed(&self.model);
        self.context = control.context_usage().map(|usage| Context {
            tokens: usage.tokens,
            context_window: usage.window,
            percent: usage.percent(),
        });
    }

    /// Adds the usage of an answer that has ended.
    pub fn spend(&mut self, usage: &Usage) {
        self.changes += 1;
        let spent = &mut self.spent;
        let add = |sum: &mut u64, count| *sum = sum.saturating_add(count);
        add(&mut spent.input, usage.input);
        add(&mut spent.output, usage.output);
        add(&mut spent.cache_read, usage.cache_read);
        add(&mut spent.cache_write, usage.cache_write);
        spent.cost += usage.cost.total;
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        let prompt = usage.input.saturating_add(cached);
        let seen = cached > 0;
        spent.hit_rate = (seen && prompt > 0).then(|| percent(usage.cache_read, prompt));
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

    pub fn lines(&self, look: &Look<'_>) -> Vec<Line> {
        let dim = look.style(Role::Dim);
        let mut place = look.path(&self.cwd);
        if let Some(branch) = &self.branch {
            let _ = write!(place, " ({branch})");
        }
        if let Some(name) = &self.name {
            let _ = write!(place, " • {name}");
        }
        vec![Line::of(&place, dim).cut(look.short()), self.figures(look, dim)]
    }

    fn figures(&self, look: &Look<'_>, dim: Style) -> Line {
        let mut left = Line::new();
        let spent = &self.spent;
        let arrows = match look.is_plain {
            true => [
                ("in ", spent.input),
                ("out ", spent.output),
                ("cached ", spent.cache_read),
                ("stored ", spent.cache_write),
            ],
            false => {
                [("↑", spent.input), ("↓", spent.output), ("R", spent.cache_read), ("W", spent.cache_write)]
            }
        };
        for (mark, count) in arrows {
            if count > 0 {
                left.push(&format!("{mark}{} ", tokens(count)), dim);
            }
        }
        if let Some(rate) = spent.hit_rate {
            left.push(&format!("CH{rate:.1}% "), dim);
        }
        if spent.cost > 0.0 || self.is_subscribed {
            let paid = if self.is_subscribed { " (sub)" } else { "" };
            left.push(&format!("${:.3}{paid} ", spent.cost), dim);
        }
        if let Some(speed) = self.speed {
            left.push(&format!("{speed:.0} tok/s "), dim);
        }
        let window =
            self.context.as_ref().map_or(self.model.context_window, |context| context.context_window);
        let auto = if self.compacts { " (auto)" } else { "" };
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
            Some(percent) => left.push(&format!("{percent:.1}%/{}{auto}", tokens(window)), style),
            None => left.push(&format!("?/{}{auto}", tokens(window)), style),
        }
        let mut right = String::new();
        if self.names_provider {
            let _ = write!(right, "({}) ", self.model.provider);
        }
        right.push_str(&self.model.id);
        if self.model.reasoning {
            match self.thinking {
                ThinkingLevel::Off => right.push_str(" • thinking off"),
                level => {
                    let _ = write!(right, " • {}", level.name());
                }
            }
        }
        let room = look.short().saturating_sub(left.width() + 2);
        if width(&right) > room {
            right.clone_from(&self.model.id);
        }
        if width(&right) > room {
            right.clone_from(&self.model.name);
        }
        let right = Line::of(&right, dim).cut(room);
        left.pad_to(look.short().saturating_sub(right.width()), dim);
        left.append(&right);
        left.cut(look.short())
    }
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
            hit_rate: None,
        }
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
