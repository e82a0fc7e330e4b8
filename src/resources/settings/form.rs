//! The forms of settings' values: which values are valid, their description, and parsing from the command
//! line.

use crate::llm::model::ThinkingLevel;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Flag,
    /// `true`, `false` or one of these words.
    FlagOr(&'static [&'static str]),
    /// A whole number from 0.
    Count,
    /// A whole number from the first to the second bound, both included.
    Range(u64, u64),
    /// The word, or a whole number from the minimum to the maximum, both included.
    CountOr(&'static str, u64, u64),
    /// A number greater than 0.
    Amount,
    /// A number of seconds, greater than 0.
    Seconds,
    /// Milliseconds as a number or a string. The word `disabled` means 0.
    Timeout,
    Text,
    Texts,
    /// A list of any values.
    List,
    OneOf(&'static [&'static str]),
    /// An object with a thinking level for each name.
    Levels,
    /// An object with whole numbers under these names.
    Counts(&'static [&'static str]),
    /// An object with a list of commands for each event.
    Hooks,
    /// An object with whole numbers under these names, for each `provider/model`.
    ModelCounts(&'static [&'static str]),
    /// An object with a list of texts for each name.
    TextLists,
}

pub const LEVELS: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh", "max"];

impl Form {
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Self::Flag => value.is_boolean(),
            Self::FlagOr(words) => value.is_boolean() || Self::OneOf(words).fits(value),
            Self::Count => whole(value).is_some(),
            Self::Range(least, most) => whole(value).is_some_and(|count| (least..=most).contains(&count)),
            Self::CountOr(word, least, most) => value == word || Self::Range(least, most).fits(value),
            Self::Seconds | Self::Amount => value.as_f64().is_some_and(|number| number > 0.0),
            Self::Timeout => timeout_ms(value).is_some(),
            Self::Text => value.is_string(),
            Self::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Self::List => value.is_array(),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Hooks => value.is_object(),
            Self::Levels => value.as_object().is_some_and(|levels| {
                let level = |level: &Value| level.as_str().and_then(ThinkingLevel::parse).is_some();
                levels.values().all(level)
            }),
            Self::Counts(names) => value.as_object().is_some_and(|counts| {
                let mut known = counts.iter().filter(|(name, _)| names.contains(&name.as_str()));
                known.all(|(_, count)| whole(count).is_some())
            }),
            Self::ModelCounts(names) => value
                .as_object()
                .is_some_and(|models| models.values().all(|model| Self::Counts(names).fits(model))),
            Self::TextLists => {
                value.as_object().is_some_and(|lists| lists.values().all(|list| Self::Texts.fits(list)))
            }
        }
    }

    /// Describes the form, to end a sentence with "must be".
    pub fn describe(self) -> String {
        match self {
            Self::Flag => "true or false".into(),
            Self::FlagOr(words) => format!("true, false or {}", words.join(", ")),
            Self::Count => "a whole number, 0 or more".into(),
            Self::Range(least, most) => format!("a whole number from {least} to {most}"),
            Self::CountOr(word, least, most) => format!("{word}, or a whole number from {least} to {most}"),
            Self::Amount => "a number, more than 0".into(),
            Self::Seconds => "a number of seconds, more than 0".into(),
            Self::Timeout => "a number of milliseconds, 0 for none".into(),
            Self::Text => "a text".into(),
            Self::Texts => "a list of texts".into(),
            Self::List => "a list".into(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::Levels => format!("an object of levels, each one of {}", LEVELS.join(", ")),
            Self::Hooks => "an object with a list of commands for each event".into(),
            Self::TextLists => "an object of lists of texts".into(),
            Self::Counts(names) => format!("an object of whole numbers for {}", names.join(", ")),
            Self::ModelCounts(names) => {
                format!("an object of whole numbers for {}, for each provider/model", names.join(", "))
            }
        }
    }

    /// Parses a word of the command line. `None` if it does not fit.
    pub fn read(self, word: &str) -> Option<Value> {
        let is_text = matches!(self, Self::Text | Self::OneOf(_));
        let parsed = || serde_json::from_str(word).ok();
        let value = match self {
            _ if is_text => Value::from(word),
            // A single entry needs no brackets.
            Self::Texts => parsed().filter(Value::is_array).unwrap_or_else(|| Value::from(vec![word])),
            _ => parsed().unwrap_or_else(|| Value::from(word)),
        };
        self.fits(&value).then_some(value)
    }
}

/// Returns a number without a fraction, as JavaScript sees it: `5.0` is 5.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // in range, and whole
pub fn whole(value: &Value) -> Option<u64> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let number = value.as_f64()?;
    ((0.0..=LARGEST).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
pub fn timeout_ms(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) if text.trim().eq_ignore_ascii_case("disabled") => 0.0,
        Value::String(text) => text.trim().parse().ok()?,
        value => value.as_f64()?,
    };
    (number.is_finite() && number >= 0.0).then_some(number as u64)
}
