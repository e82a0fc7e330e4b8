//! The table of `--list-models`: one line for each usable model, with columns as wide as their content.

use super::resolve::{Usable, order};
use crate::base::order::Order;
use crate::llm::model::Model;
use crate::models::Registry;
use crate::wire::faux::PROVIDER as FAUX;
use std::fmt::Write;
use std::sync::Arc;

/// Message if no provider has credentials.
pub const NO_MODELS: &str = "\
No models available: no provider has a key.

  Set a key:      export ANTHROPIC_API_KEY=...   (all variables: pi docs providers)
  Or look first:  pi --model faux/demo -p \"What is in this folder?\"";

const HEAD: [&str; 6] = ["provider", "model", "context", "max-out", "thinking", "images"];

/// The table as text that ends in a line feed. `search` keeps the models that match all its words.
pub fn list_models(registry: &Registry, usable: Usable<'_>, search: Option<&str>) -> String {
    let providers = registry.providers().into_iter();
    let usable = providers.filter(|name| *name != FAUX && usable(name));
    let mut models: Vec<Arc<Model>> = usable.flat_map(|name| registry.offered_of(name)).collect();
    if models.is_empty() {
        return format!("{NO_MODELS}\n");
    }
    if let Some(search) = search {
        models.retain(|model| fits(search, &format!("{} {}", model.provider, model.id)));
        if models.is_empty() {
            return format!("No models matching \"{search}\"\n");
        }
    }
    models.order_by(|a, b| {
        let provider = order::compare(&a.provider, &b.provider);
        provider.then_with(|| order::compare(&a.id, &b.id))
    });
    let rows: Vec<[String; 6]> = models.iter().map(|model| row(model)).collect();
    table(&rows)
}

fn row(model: &Model) -> [String; 6] {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    [
        model.provider.clone(),
        model.id.clone(),
        tokens(model.context_window),
        tokens(model.max_tokens),
        yes(model.reasoning),
        yes(model.takes_images()),
    ]
}

fn table(rows: &[[String; 6]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEAD[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    let head = HEAD.map(str::to_owned);
    for row in std::iter::once(&head).chain(rows) {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            // Writing to a string cannot fail. The last column is padded as well.
            let _ = write!(text, "{gap}{cell:width$}");
        }
        text.push('\n');
    }
    text
}

/// Formats a count as `128K`, `16.4K` or `1M`: at most one decimal, halves rounded up.
fn tokens(count: u64) -> String {
    let (unit, sign) = match count {
        1_000_000.. => (1_000_000, 'M'),
        1_000.. => (1_000, 'K'),
        _ => return count.to_string(),
    };
    if count.is_multiple_of(unit) {
        return format!("{}{sign}", count / unit);
    }
    // Only quarters are exact in binary, so only they can be rounded from a half.
    let is_half = count % unit == unit / 4 || count % unit == unit / 4 * 3;
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    let number = (count + u64::from(is_half)) as f64 / unit as f64;
    format!("{number:.1}{sign}")
}

/// True if `text` contains the letters of each word of `search` in order, with any letters between.
fn fits(search: &str, text: &str) -> bool {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let search = search.to_lowercase();
    let mut words = search.split(|c: char| c.is_whitespace() || c == '/').filter(|word| !word.is_empty());
    words.all(|word| has_letters(word, &text) || swapped(word).is_some_and(|word| has_letters(&word, &text)))
}

fn has_letters(word: &str, text: &[char]) -> bool {
    let mut text = text.iter();
    word.chars().all(|letter| text.any(|c| *c == letter))
}

/// Swaps letters and digits: `gpt5` becomes `5gpt`, and vice versa.
fn swapped(word: &str) -> Option<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let turn = word.find(|c| is_digit(c) != word.starts_with(is_digit))?;
    let (first, second) = word.split_at(turn);
    let plain =
        |part: &str| part.bytes().all(|b| b.is_ascii_digit()) || part.bytes().all(|b| b.is_ascii_lowercase());
    (plain(first) && plain(second)).then(|| format!("{second}{first}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1K"),
            (1024, "1.0K"),
            (1150, "1.1K"),
            (8192, "8.2K"),
            (16_250, "16.3K"),
            (16_384, "16.4K"),
            (16_750, "16.8K"),
            (128_000, "128K"),
            (131_072, "131.1K"),
            (999_999, "1000.0K"),
            (1_000_000, "1M"),
            (1_048_576, "1.0M"),
            (1_050_000, "1.1M"),
            (1_250_000, "1.3M"),
        ] {
            assert_eq!(tokens(count), expected, "{count}");
        }
    }

    #[test]
    fn words_are_found_by_their_letters() {
        for (search, text, expected) in [
            ("", "a", true),
            (" / ", "a", true),
            ("opus", "anthropic claude-opus-5", true),
            ("ANTH OPUS", "anthropic claude-opus-5", true),
            ("anthropic/opus", "anthropic claude-opus-5", true),
            ("acop5", "anthropic claude-opus-5", true),
            ("sonnet", "anthropic claude-opus-5", false),
            ("opus anth x", "anthropic claude-opus-5", false),
            ("5gpt", "openai gpt-5", true),
            ("gpt5", "x 5-gpt", true),
            ("5gpt5", "openai gpt-5", false),
            ("é", "É", true),
        ] {
            assert_eq!(fits(search, text), expected, "{search} in {text}");
        }
    }

    fn check(keys: &[&str], search: Option<&str>, expected: &str) {
        let (registry, _) = Registry::load(std::path::Path::new("/nonexistent"));
        let text = list_models(&registry, &|provider| keys.contains(&provider), search);
        assert_eq!(text, expected);
        assert!(text.ends_with('\n'));
    }

    // Printed by the reference with the keys of these providers set.

    #[test]
    fn the_table_is_that_of_the_reference() {
        check(
            &["anthropic", "deepseek", "google", "groq", "nvidia", "xai"],
            None,
            include_str!("../../tests/data/list_models.txt"),
        );
    }

    #[test]
    fn nothing_found() {
        check(&["groq"], Some("xyzzy"), "No models matching \"xyzzy\"\n");
        check(&[], None, &format!("{NO_MODELS}\n"));
        check(&[], Some("x"), &format!("{NO_MODELS}\n"));
        check(&["faux"], None, &format!("{NO_MODELS}\n"));
    }
}
