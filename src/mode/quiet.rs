//! A surface without a user: questions are dismissed at once, and failures go to stderr.

use super::output::Output;
use super::report;
use crate::runtime::CancelToken;
use crate::runtime::event::Event;
use crate::runtime::ui::{Change, Dialog, Problem, Severity, Ui};
use std::sync::Arc;
use std::time::Duration;

/// Writes events that no run caused to the output, if there is one.
pub struct Quiet(pub Option<Arc<Output>>);

impl Ui for Quiet {
    fn ask(&self, _: &Dialog<'_>, _: Option<Duration>, _: &CancelToken) -> Option<String> {
        None
    }

    fn is_attended(&self) -> bool {
        false
    }

    fn lasts(&self) -> bool {
        false
    }

    fn show(&self, _: Change) {}

    fn problem(&self, Problem { source, event, error }: &Problem) {
        report::note(format_args!("Extension error ({source}): {event}: {error}"));
    }

    fn tell(&self, _: Severity, message: String) {
        report::note(message);
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(output) = &self.0 {
            let _ = output.event_of_command(event);
        }
    }
}
