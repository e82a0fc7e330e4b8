//! The list of `/context`: what fills the model's window, by part and by message.

use super::frame::{inside, title};
use super::list::{ListDialog, Rows};
use crate::base::order::Order;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::Effect;
use crate::mode::interactive::footer::tokens;
use crate::mode::interactive::look::Look;
use crate::runtime::filling::Filling;
use crate::tui::key::{Code, Key};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;

pub struct Context {
    filling: Filling,
    /// True if the largest message is the first.
    is_by_size: bool,
}

pub fn context(filling: Filling) -> ListDialog<Context> {
    let rows = Context { filling, is_by_size: false };
    let mut list = List::new(Vec::new()).searchable();
    rows.fill(&mut list);
    ListDialog::new(list, rows)
}

impl Context {
    fn fill(&self, list: &mut List) {
        let filling = &self.filling;
        let mut messages: Vec<&(String, u64)> = filling.messages.iter().collect();
        if self.is_by_size {
            messages.order_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
        }
        let item = |name: &str, size: u64, group| {
            Item::new(name, name).setting(&self.share(size)).group(group).search(name.to_owned())
        };
        let free = filling.window.saturating_sub(filling.total);
        let parts = filling.parts.iter().map(|(part, size)| item(part.name(), *size, "Parts"));
        let free = (filling.window > 0).then(|| item("free", free, "Parts"));
        let messages = messages.into_iter().map(|(name, size)| item(name, *size, "Messages"));
        list.set_items(parts.chain(free).chain(messages).collect());
    }

    /// A size in tokens and percent of the window.
    fn share(&self, size: u64) -> String {
        match self.filling.window {
            0 => tokens(size),
            window => format!("{} {:.1}%", tokens(size), size as f64 * 100.0 / window as f64),
        }
    }
}

impl Rows for Context {
    fn rows_max(&self) -> usize {
        24
    }

    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let Filling { window, total, .. } = self.filling;
        let of = if window > 0 { format!(" of {}", tokens(window)) } else { String::new() };
        let mut head = title("Context", look);
        head.push(
            &format!("  {}{of} tokens; the sizes of parts are estimates", self.share(total)),
            look.style(Role::Muted),
        );
        vec![head.cut(inside(look))]
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        match self.is_by_size {
            true => &[(Action::TAB, "by time"), (Action::SELECT_CANCEL, "leave")],
            false => &[(Action::TAB, "by size"), (Action::SELECT_CANCEL, "leave")],
        }
    }

    fn other_rows(&self, detail: usize) -> usize {
        // Two headings take rows, too.
        8 + detail
    }

    fn choose(&mut self, _: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        Vec::new()
    }

    fn key(&mut self, key: &Key, list: &mut List, _: &UiConfig) -> Option<Vec<Effect>> {
        (key.code == Code::Tab).then(|| {
            self.is_by_size = !self.is_by_size;
            self.fill(list);
            Vec::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;
    use crate::runtime::filling::Part;

    #[test]
    fn parts_and_messages_are_listed_with_their_share() {
        let filling = Filling {
            window: 10_000,
            total: 2_500,
            parts: vec![(Part::System, 1_000), (Part::Prompts, 20)],
            messages: vec![("prompt: small".into(), 5), ("prompt: large".into(), 15)],
        };
        let mut shown = Shown::new(|_| context(filling));
        let text = shown.text(80);
        for part in
            ["2.5k 25.0% of 10k tokens", "system prompt", "1.0k 10.0%", "free", "7.5k 75.0%", "20 0.2%"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.find("small") < text.find("large"), "{text}");
        shown.press("tab");
        let text = shown.text(80);
        assert!(text.find("small") > text.find("large"), "{text}");
        shown.type_text("small");
        assert!(!shown.text(80).contains("large"));
    }
}
