//! Scripts that begin anew with each session, as in the reference: what they keep in their factory is of one session.
//! Programs in other languages go on, and are told of the new session.

use super::limit::INITIALIZE_MAX;
use super::start::groups;
use super::{Extensions, Instance};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use std::sync::Arc;

impl Extensions {
    /// Has loaded scripts begin anew, until `cancel` is cancelled. One that fails has no part in the session.
    pub(super) fn begin_anew(self: &Arc<Self>, cancel: &CancelToken) {
        let is_loaded =
            |one: &Arc<Instance>| one.found.is_script() && one.start_ms() > 0 && !one.is_loading();
        let loaded: Vec<Arc<Instance>> = self.instances().into_iter().filter(is_loaded).collect();
        for group in groups(loaded) {
            let Some(connection) = group.iter().find_map(|one| one.connection()) else { continue };
            let ids: Vec<&str> = group.iter().map(|one| one.id.as_str()).collect();
            let answer = connection.ask("renew", json!({"extensions": ids}), Some(INITIALIZE_MAX), cancel);
            for instance in &group {
                self.clear(instance);
                let taken = match &answer {
                    Ok(answer) => instance.renew(answer),
                    Err(failed) => Err(format!("did not begin anew for this session: {failed}")),
                };
                self.take_in(instance, taken);
            }
            if answer.is_err() {
                connection.end("did not begin anew");
            }
        }
    }
}
