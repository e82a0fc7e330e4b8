//! What the parts of an extension that pi uses (its renderer, its providers) know of it.

use super::connection::{Connection, Failed};
use super::registration::Registration;
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
}
