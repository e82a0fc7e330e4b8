//! Whether the project in the working folder is trusted: what was decided, and asking when nothing was.

use super::ask;
use super::flags::Args;
use super::start::World;
use crate::mode::interactive::question::Ground;
use crate::mode::report;
use crate::resources::trust::{Project, Store};
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

/// Why a project is asked about.
#[derive(Clone, Copy, PartialEq)]
enum Reason {
    Unknown,
    /// It was trusted, and runs more or other things now.
    Changed,
}

/// Decides for the project in `cwd`. An error: what was decided cannot be read.
pub fn decide(args: &Args, world: &World) -> Result<bool, String> {
    let (dirs, settings) = (&world.dirs, &world.settings);
    if let Some(approved) = args.approve {
        return Ok(approved);
    }
    let project = Project::new(&world.cwd, dirs.home());
    let surfaces = project.surfaces();
    if surfaces.is_empty() {
        return Ok(true);
    }
    let store = Store::new(dirs.agent());
    let reason = match store.find(&project)? {
        Some(entry) if !entry.is_trusted => return Ok(false),
        Some(_) if store.has_changed(&project)? => Reason::Changed,
        Some(_) => return Ok(true),
        None => match settings.default_project_trust() {
            "always" => return Ok(true),
            "never" => return Ok(false),
            _ => Reason::Unknown,
        },
    };
    if let Some(ground) = world.ground() {
        return ask_drawn(ground, &project, &surfaces, &store, reason);
    }
    if world.may_ask() && io::stdin().is_terminal() && io::stderr().is_terminal() {
        return ask_lines(&project, &surfaces, &store, reason);
    }
    let why = match reason {
        Reason::Unknown => "the project is not trusted",
        Reason::Changed => "what the project runs has changed since it was trusted",
    };
    report::note(format_args!(
        "Not used, since {why}: {}. Look at that first, then run with --approve",
        list(&project, &surfaces)
    ));
    Ok(false)
}

/// What there is, by short names.
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

/// What the question depends on.
fn about(project: &Project, surfaces: &[PathBuf], reason: Reason) -> String {
    let why = match reason {
        Reason::Unknown => "",
        Reason::Changed => "\nYou trusted it before; what it runs has changed since.",
    };
    format!(
        "{}{why}\n\nIt brings {}. Trusted, its settings, prompts and skills are used \
         and its extensions run.",
        project.root().display(),
        list(project, surfaces)
    )
}

fn ask_drawn(
    ground: Ground<'_>,
    project: &Project,
    surfaces: &[PathBuf],
    store: &Store,
    reason: Reason,
) -> Result<bool, String> {
    let answers = project.answers(true);
    let labels: Vec<String> = answers.iter().map(|answer| answer.label.clone()).collect();
    let about = about(project, surfaces, reason);
    let chosen = ask::choose_drawn(ground, TITLE, &about, &labels);
    let Some(answer) = chosen.and_then(|chosen| answers.get(chosen)) else {
        return Ok(false);
    };
    store.answer(project, answer)?;
    Ok(answer.is_trusted)
}

const TITLE: &str = "Trust project folder?";

fn ask_lines(project: &Project, surfaces: &[PathBuf], store: &Store, reason: Reason) -> Result<bool, String> {
    report::note(format_args!("{TITLE}\n{}\n", about(project, surfaces, reason)));
    let answers = project.answers(true);
    for (number, answer) in answers.iter().enumerate() {
        report::note(format_args!("{}. {}", number + 1, answer.label));
    }
    report::note("Number, or Enter for no:");
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|error| format!("Cannot read the answer: {error}"))?;
    let number = line.trim().parse::<usize>().ok();
    let answer = number.and_then(|number| answers.get(number.checked_sub(1)?));
    let Some(answer) = answer else {
        return Ok(false);
    };
    store.answer(project, answer)?;
    Ok(answer.is_trusted)
}
