//! How tools of a server reach the model.

use super::Entry;
use crate::runtime::selection::matches;
use serde_json::Value;

/// How the model reaches a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exposure {
    /// Declared from the start.
    Direct,
    /// Called from scripts; found by a search where there are none.
    #[default]
    Codemode,
    /// Declared once a search has found it.
    Deferred,
    /// Not at all.
    Hidden,
}

impl Exposure {
    /// The names, in the order in which they are listed for users.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("codemode", Self::Codemode),
        ("deferred", Self::Deferred),
        ("direct", Self::Direct),
        ("hidden", Self::Hidden),
    ];

    /// The name that takes the place of an older one.
    pub fn renamed(name: &str) -> &str {
        match name {
            "codemode-deferred" => "codemode",
            name => name,
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == Self::renamed(name)).map(|(_, exposure)| *exposure)
    }

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, exposure)| *exposure == self).map_or("hidden", |(name, _)| name)
    }

    /// True for tools that a search finds.
    pub fn is_searched(self) -> bool {
        matches!(self, Self::Codemode | Self::Deferred)
    }
}

impl Entry {
    pub fn exposure(&self) -> Exposure {
        self.fields.get("exposure").and_then(Value::as_str).and_then(Exposure::parse).unwrap_or_default()
    }

    fn overrides(&self) -> impl Iterator<Item = (&str, Exposure)> {
        let overrides = self.fields.get("toolExposure").and_then(Value::as_object);
        overrides
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), Exposure::parse(value.as_str()?)?)))
    }

    /// The exposure of one tool: that of its name, of the first pattern that matches, or of the server.
    pub fn exposure_of(&self, tool: &str) -> Exposure {
        let named = self.overrides().find(|(name, _)| *name == tool);
        let matching = || self.overrides().find(|(name, _)| name.contains('*') && matches(name, tool));
        named.or_else(matching).map_or(self.exposure(), |(_, exposure)| exposure)
    }

    /// True if some tool of the server may have an exposure that is `wanted`.
    pub fn may_expose(&self, wanted: impl Fn(Exposure) -> bool) -> bool {
        wanted(self.exposure()) || self.overrides().any(|(_, exposure)| wanted(exposure))
    }
}
