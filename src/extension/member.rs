//! What the parts of an extension that pi uses (its renderer, its providers) know of it.

use super::account::OfAccounts;
use super::connection::Connection;
use super::registration::Registration;
use super::request::Failed;
use super::sign_in::News;
use crate::runtime::service::Services;
use crossbeam_channel::Sender;
use serde_json::Value;
use std::sync::Arc;

pub trait Member: Send + Sync {
    /// The id that messages name it by.
    fn id(&self) -> &str;

    /// Its name, for people.
    fn name(&self) -> &str;

    fn registration(&self) -> Arc<Registration>;

    /// Its connection; starts a lazy one.
    fn connection(&self) -> Result<Arc<Connection>, Failed>;

    /// Tells the user of a failure.
    fn report(&self, event: &str, error: &str);

    /// Sends the events of a stream to `sender`, until it is left.
    fn attend(&self, stream: &str, sender: Sender<Value>);

    fn leave(&self, stream: &str);

    /// Sends what the extension says while it signs in at `provider` to `sender`, until that is none.
    fn hear_login(&self, provider: &str, sender: Option<Sender<News>>);

    /// Models and credentials as they were when the extensions were started; changes of auth.json are seen.
    fn services(&self) -> Services;

    /// What is known of its providers' models for stored accounts.
    fn of_accounts(&self) -> &OfAccounts;

    /// Adds what it has registered to the session anew.
    fn apply(&self);
}
