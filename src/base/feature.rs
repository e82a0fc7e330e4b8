//! Parts that a build may leave out: the cargo features.
//!
//! Where a part is left out, its `mod` line takes a file of the folder `absent` or one called `absent.rs` in
//! its place: the interface that the others use, which says so.

/// Features, each with whether this build has it.
const FEATURES: &[(&str, bool)] = &[
    ("acp", cfg!(feature = "acp")),
    ("clouds", cfg!(feature = "clouds")),
    ("interactive", cfg!(feature = "interactive")),
    ("sandbox", cfg!(feature = "sandbox")),
];

/// The features that this build leaves out.
pub fn left_out() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name)
}

/// What is said where a part is asked for that was left out.
pub fn absent(feature: &str) -> String {
    format!("this pi was built without {feature} (a feature of the build, see: pi docs start)")
}
