//! Credentials of requests: stored and configured keys, sign-ins, and the credential chains of AWS and Google
//! Cloud.

#[cfg_attr(not(feature = "clouds"), path = "absent/aws.rs")]
pub mod aws;
pub mod credential;
pub mod expiring;
mod federation;
#[cfg_attr(not(feature = "clouds"), path = "absent/gcp.rs")]
pub mod gcp;
pub mod oauth;
pub mod provider;
