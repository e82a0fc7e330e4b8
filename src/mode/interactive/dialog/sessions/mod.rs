//! The stored sessions, to go on with one.

pub mod list;
pub mod picker;

#[cfg(test)]
mod tests;
