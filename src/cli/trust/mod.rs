//! Decides whether the project in the working folder is trusted, and asks if there is no decision.

mod extension;

use super::ask;
use super::start::{Launch, Questions};
use crate::extension::Vote;
use crate::mode::report;
use crate::resources::trust::{self, Answer, Consent, Project, Snapshot, Store};
use crate::runtime::config::Inputs;
use extension::How;
use std::collections::HashMap;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why the user is asked about a project.
enum Reason {
    Unknown,
    /// The project was trusted, but now brings more or other things, which are named.
    Changed(Vec<String>),
    /// The project changed while the user was asked.
    ChangedMeanwhile,
}

/// Snapshots of projects that are trusted while the program runs, by real path. Clones share one map.
#[derive(Clone, Default)]
pub struct Agreed(Arc<Mutex<HashMap<PathBuf, Snapshot>>>);

impl Agreed {
    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, Snapshot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, root: &Path, snapshot: &Snapshot) {
        self.known().insert(root.to_owned(), snapshot.clone());
    }

    /// Names what is new or changed since the user agreed; `None` for a project without an agreement.
    fn changes(&self, root: &Path, snapshot: &Snapshot) -> Option<Vec<String>> {
        self.known().get(root).map(|known| snapshot.changes_since(known))
    }
}

/// Decides on the project in the folder of `inputs`. Returns what the user agreed to; `None` for an untrusted
/// project. An error says that earlier decisions cannot be read.
pub fn decide(launch: &Launch, inputs: &Inputs) -> Result<Option<Consent>, String> {
    let Launch { approve, agreed, .. } = launch;
    if *approve == Some(false) {
        return Ok(None);
    }
    let project = Project::new(&inputs.cwd, inputs.dirs.home());
    let store = Store::new(inputs.dirs.agent());
    let surfaces = project.surfaces();
    if let Some(state) = &launch.agreed_state {
        return match surfaces.is_empty() {
            true => Ok(None),
            false => in_state(state, project, &store),
        };
    }
    // A project without surfaces needs no decision.
    let snapshot = if surfaces.is_empty() { Snapshot::nothing() } else { store.snapshot(&project)? };
    let news = agreed.changes(project.root(), &snapshot);
    let is_approved = *approve == Some(true) && news.is_none();
    if is_approved {
        agreed.add(project.root(), &snapshot);
    }
    // A stored "do not trust" also covers surfaces that the project gets later.
    if !is_approved
        && surfaces.is_empty()
        && store.find(&project).is_ok_and(|entry| entry.is_some_and(|entry| !entry.is_trusted))
    {
        return Ok(None);
    }
    if is_approved || surfaces.is_empty() {
        note(&project, &store);
        return Ok(Some(match surfaces.is_empty() {
            true => Consent::to_nothing(project),
            false => Consent::new(project, snapshot),
        }));
    }
    if news.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Some(Consent::new(project, snapshot)));
    }
    if launch.hears_extensions
        && let Some(vote) = extension::ask(inputs, &how(launch))
    {
        return voted(&store, agreed, project, snapshot, &vote);
    }
    let reason = match (store.find(&project)?, news) {
        (Some(entry), _) if !entry.is_trusted => return Ok(None),
        (Some(_), _) => match changes(&project, &store, &snapshot) {
            changes if changes.is_empty() => return Ok(Some(Consent::new(project, snapshot))),
            changes => Reason::Changed(changes),
        },
        (None, Some(news)) => Reason::Changed(news),
        (None, None) => match inputs.settings.default_project_trust() {
            "always" => return Ok(Some(Consent::to_all(project, snapshot))),
            "never" => return Ok(None),
            _ => Reason::Unknown,
        },
    };
    let question = Question { project: &project, surfaces: &surfaces, store: &store };
    if let Some(screen) = launch.screen(inputs) {
        return question.ask(agreed, snapshot, reason, |about, labels| {
            Ok(ask::choose_drawn(screen, TITLE, about, labels))
        });
    }
    if launch.questions == Questions::Lines && io::stdin().is_terminal() && io::stderr().is_terminal() {
        return question.ask(agreed, snapshot, reason, ask_lines);
    }
    let why = match reason {
        Reason::Changed(changes) => {
            format!("the project has changed since it was trusted: {}", trust::list(&changes))
        }
        _ => format!("the project is not trusted: {}", list(&project, &surfaces)),
    };
    report::note(format_args!("Not used, since {why}. Look at that first, then run with --approve"));
    Ok(None)
}

fn how(launch: &Launch) -> How {
    How {
        only_named: launch.over.resources.no_extensions,
        mode: launch.mode,
        draws: match launch.questions {
            Questions::OnScreen => Some(true),
            Questions::Lines => ask::possible().then_some(false),
            Questions::Never => None,
        },
    }
}

/// Follows the answer of an extension.
fn voted(
    store: &Store,
    agreed: &Agreed,
    project: Project,
    snapshot: Snapshot,
    vote: &Vote,
) -> Result<Option<Consent>, String> {
    if vote.is_kept {
        let decisions = vec![(project.root().to_owned(), Some(vote.is_trusted))];
        let answer = Answer { label: String::new(), is_trusted: vote.is_trusted, decisions };
        store.answer(&project, &answer, &snapshot)?;
    }
    if !vote.is_trusted {
        return Ok(None);
    }
    agreed.add(project.root(), &snapshot);
    Ok(Some(Consent::new(project, snapshot)))
}

/// Stores what a trusted project brings, so that later additions count as new.
fn note(project: &Project, store: &Store) {
    // An unreadable store is reported once there is something to decide.
    if let Ok(Some(entry)) = store.find(project)
        && entry.is_trusted
        && let Ok(snapshot) = store.snapshot(project)
    {
        changes(project, store, &snapshot);
    }
}

/// Names what a trusted project brings more or otherwise than when it was trusted.
fn changes(project: &Project, store: &Store, snapshot: &Snapshot) -> Vec<String> {
    store.changes(project, snapshot).unwrap_or_else(|error| {
        report::warning(format_args!(
            "What this project runs cannot be remembered, so changes of it go unseen: {error}"
        ));
        Vec::new()
    })
}

/// Trusts a project in the state that the user of another pi agreed to.
fn in_state(state: &str, project: Project, store: &Store) -> Result<Option<Consent>, String> {
    let snapshot = store.snapshot(&project)?;
    match snapshot.state() == state {
        true => Ok(Some(Consent::new(project, snapshot))),
        false => Err("The project has changed since it was trusted".to_owned()),
    }
}

/// Lists the surfaces of a project by short names.
fn list(project: &Project, surfaces: &[PathBuf]) -> String {
    const SHOWN: usize = 4;
    let short = |path: &PathBuf| {
        let path = path.strip_prefix(project.root()).unwrap_or(path);
        path.display().to_string()
    };
    let mut names: Vec<String> = surfaces.iter().take(SHOWN).map(short).collect();
    if surfaces.len() > SHOWN {
        names.push(format!("{} more", surfaces.len() - SHOWN));
    }
    names.join(", ")
}

const TITLE: &str = "Trust project folder?";

struct Question<'a> {
    project: &'a Project,
    surfaces: &'a [PathBuf],
    store: &'a Store,
}

impl Question<'_> {
    /// Returns the text of the question.
    fn about(&self, snapshot: &Snapshot, reason: &Reason) -> String {
        let why = match reason {
            Reason::Unknown => String::new(),
            Reason::Changed(changes) => {
                format!("\nYou trusted it before. It has changed since: {}", trust::list(changes))
            }
            Reason::ChangedMeanwhile => "\nIt has changed while you were asked.".to_owned(),
        };
        format!(
            "{}{why}\n\nIt brings {}. Trusted, its settings, prompts and skills are used \
             and its extensions run.{}",
            self.project.root().display(),
            list(self.project, self.surfaces),
            snapshot.describe()
        )
    }

    /// Asks the user. Asks again if the project has changed during the question.
    fn ask(
        &self,
        agreed: &Agreed,
        mut snapshot: Snapshot,
        mut reason: Reason,
        choose: impl Fn(&str, &[String]) -> Result<Option<usize>, String>,
    ) -> Result<Option<Consent>, String> {
        let answers = self.project.answers(true);
        let labels: Vec<String> = answers.iter().map(|answer| answer.label.clone()).collect();
        loop {
            let chosen = choose(&self.about(&snapshot, &reason), &labels)?;
            let Some(answer) = chosen.and_then(|chosen| answers.get(chosen)) else {
                return Ok(None);
            };
            let now = self.store.snapshot(self.project)?;
            if answer.is_trusted && now != snapshot {
                (snapshot, reason) = (now, Reason::ChangedMeanwhile);
                continue;
            }
            return self.answered(agreed, answer, snapshot);
        }
    }

    fn answered(
        &self,
        agreed: &Agreed,
        answer: &Answer,
        snapshot: Snapshot,
    ) -> Result<Option<Consent>, String> {
        self.store.answer(self.project, answer, &snapshot)?;
        if !answer.is_trusted {
            return Ok(None);
        }
        if answer.decisions.is_empty() {
            agreed.add(self.project.root(), &snapshot);
        }
        Ok(Some(Consent::new(self.project.clone(), snapshot)))
    }
}

fn ask_lines(about: &str, labels: &[String]) -> Result<Option<usize>, String> {
    report::note(format_args!("{TITLE}\n{about}\n"));
    for (number, label) in labels.iter().enumerate() {
        report::note(format_args!("{}. {label}", number + 1));
    }
    report::note("Number, or Enter for no:");
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|error| format!("Cannot read the answer: {error}"))?;
    let number = line.trim().parse::<usize>().ok();
    Ok(number.and_then(|number| number.checked_sub(1)))
}
