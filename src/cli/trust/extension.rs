//! Extensions of the user that decide on the trust of a project: the event `project_trust`.
//!
//! Only those whose own file names the event are started for it, and they end again before the project is used: their
//! place in the session, the project's settings and its extensions depend on the answer.

use crate::cli::ask;
use crate::extension::find::find;
use crate::extension::{About, Extensions, Found, Vote};
use crate::mode::REFERENCE_VERSION;
use crate::mode::interactive::question;
use crate::mode::report;
use crate::runtime::config::Inputs;
use crate::runtime::ui::{Asker, Dialog, YES};
use std::sync::{Arc, Mutex, PoisonError};

/// The event, as the files of extensions name it.
const EVENT: &str = "project_trust";

/// How extensions are asked.
pub(super) struct How {
    /// Only those of the command line.
    pub only_named: bool,
    /// The mode that they are told.
    pub mode: &'static str,
    /// True if their questions to the user are drawn, false if they are lines; none if the user cannot be asked.
    pub draws: Option<bool>,
}

/// Asks the extensions of the user and of the command line. `inputs` are those of an untrusted project.
pub(super) fn ask(inputs: &Inputs, how: &How) -> Option<Vote> {
    // What is wrong with others is reported when they are started for the session.
    let (found, _) = find(inputs, how.only_named);
    let voters: Vec<Found> = found.into_iter().filter(|found| found.mentions(EVENT)).collect();
    if voters.is_empty() {
        return None;
    }
    let mut about = About::new(inputs, how.mode, REFERENCE_VERSION);
    about.asker = how.draws.map(|draws| asker(draws, inputs));
    let extensions = Extensions::start(about, voters.into_iter().map(Found::eager).collect());
    let vote = extensions.vote(EVENT);
    extensions.end();
    for problem in extensions.take_problems() {
        report::warning(format_args!("{} ({}): {}", problem.source, problem.event, problem.error));
    }
    vote
}

/// Asks the user what extensions want to know before there is a session.
fn asker(is_drawn: bool, inputs: &Inputs) -> Asker {
    let (dirs, settings, cwd) = (inputs.dirs.clone(), inputs.settings.clone(), inputs.cwd.clone());
    let one_at_a_time = Mutex::new(());
    Arc::new(move |dialog| {
        let _guard = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let (text, options) = match dialog {
            Dialog::Select { options, .. } => ("", options.to_vec()),
            Dialog::Confirm { message, .. } => (*message, vec!["Yes".to_owned(), "No".to_owned()]),
            Dialog::Input { .. } | Dialog::Editor { .. } => return None,
        };
        let chosen = match is_drawn {
            true => {
                let screen = question::Context { dirs: &dirs, settings: &settings, cwd: &cwd };
                ask::choose_drawn(screen, dialog.title(), text, &options)
            }
            false => ask::choose(format!("{}\n{text}", dialog.title()).trim_end(), &options),
        }?;
        match dialog {
            Dialog::Confirm { .. } => (chosen == 0).then(|| YES.to_owned()),
            _ => options.get(chosen).cloned(),
        }
    })
}
