//! Cargo features: parts that a build may omit.
//!
//! For an omitted part, its `mod` line uses a file of the folder `absent` or `absent.rs` instead, with the
//! part's interface, which reports the omission.

/// Features, and whether this build includes them.
const FEATURES: &[(&str, bool)] = &[
    ("acp", cfg!(feature = "acp")),
    ("clouds", cfg!(feature = "clouds")),
    ("extensions", cfg!(feature = "extensions")),
    ("interactive", cfg!(feature = "interactive")),
    ("mcp", cfg!(feature = "mcp")),
    ("sandbox", cfg!(feature = "sandbox")),
];

/// True if the C library is part of the program.
pub const IS_STATIC: bool = cfg!(target_feature = "crt-static");

/// The features that this build omits.
pub fn left_out() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name)
}

/// The features that this build includes.
pub fn included() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name)
}

/// The error for a request that needs an omitted feature.
pub fn absent(feature: &str) -> String {
    format!("this pi was built without {feature} (a feature of the build, see: pi docs start)")
}
