//! Dialog to open a stored session.

pub mod list;
pub mod picker;

#[cfg(test)]
mod tests;
