//! The note that tells the model which changes were undone.

use super::{Undone, note};
use crate::agent::run::Fatal;
use crate::runtime::session::Session;

impl Session {
    /// The model is told at its next request of what was undone.
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
