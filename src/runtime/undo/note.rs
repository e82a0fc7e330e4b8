//! Tells the model which changes were undone.

use super::{Undone, note};
use crate::agent::run::Fatal;
use crate::runtime::session::Session;

impl Session {
    /// Appends a message about undone changes, which the model sees with its next request.
    pub fn note_undone(&mut self, done: &[Undone]) -> Result<(), Fatal> {
        let Some(note) = note(done) else {
            return Ok(());
        };
        self.refresh()?;
        let mut log = self.control().log();
        log.append(note)?;
        log.turn_ended();
        Ok(())
    }
}
