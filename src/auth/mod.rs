//! The key that a request carries: stored and configured credentials, sign-ins, and the clouds' own chains.

pub mod aws;
pub mod credential;
pub mod expiring;
pub mod gcp;
pub mod oauth;
pub mod provider;
