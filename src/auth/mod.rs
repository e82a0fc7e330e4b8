//! The key that a request carries: stored and configured credentials, sign-ins, and the clouds' own chains.

#[cfg_attr(not(feature = "clouds"), path = "absent/aws.rs")]
pub mod aws;
pub mod credential;
pub mod expiring;
mod federation;
#[cfg_attr(not(feature = "clouds"), path = "absent/gcp.rs")]
pub mod gcp;
pub mod oauth;
pub mod provider;
