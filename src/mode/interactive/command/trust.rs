//! Trust of the project: `/trust`.

use super::resume;
use crate::mode::interactive::app::App;
use crate::mode::interactive::dialog::question::question;
use crate::mode::interactive::effect::{Effect, Opened, TrustDecision};
use crate::runtime::trust::{Answer, Entry, Project, Store};

pub fn run(app: &mut App, _: &str) {
    let project = Project::new(&app.config.places.cwd, app.dirs.home());
    let store = Store::new(app.dirs.agent());
    let saved = match store.find(&project) {
        Ok(saved) => saved,
        Err(reason) => return app.error(&reason),
    };
    let surfaces = project.surfaces();
    let look = match store.snapshot(&project) {
        Ok(look) => look,
        Err(reason) => return app.error(&reason),
    };
    let is_trusted = surfaces.is_empty() || app.control.config().settings.has_project();
    let now = if is_trusted { "trusted" } else { "untrusted" };
    let mut text = format!(
        "{}\n\nSaved decision: {}\nCurrent session: {now}",
        project.root().display(),
        decision(saved.as_ref(), &project)
    );
    if surfaces.is_empty() {
        text += "\nThe project brings nothing that needs trust.";
    }
    text += &look.describe();
    let answers = project.answers(false);
    let is_saved = |answer: &Answer| {
        let first = answer.decisions.first();
        first.is_some_and(|(path, is_trusted)| {
            saved.as_ref().is_some_and(|saved| saved.path == *path && Some(saved.is_trusted) == *is_trusted)
        })
    };
    let (mark, blank) = match app.config.is_plain {
        true => ("saved: ", ""),
        false => ("✓ ", "  "),
    };
    let labels: Vec<String> = answers
        .iter()
        .map(|answer| {
            let mark = if is_saved(answer) { mark } else { blank };
            format!("{mark}{}", answer.label)
        })
        .collect();
    let then = move |chosen: Option<usize>| match chosen.and_then(|index| answers.get(index)) {
        Some(answer) => {
            let answer = Some(answer.clone());
            vec![Effect::Trust(Box::new(TrustDecision { project, look, answer, session: None }))]
        }
        None => Vec::new(),
    };
    app.open(question("Project trust", &text, &labels, then));
}

/// Stores the user's decision; if the project has changed meanwhile, asks again.
pub fn decide(app: &mut App, decision: TrustDecision) {
    let TrustDecision { project, look, answer, session } = decision;
    let store = Store::new(app.dirs.agent());
    if answer.as_ref().is_some_and(|answer| answer.is_trusted)
        && store.snapshot(&project).as_ref() != Ok(&look)
    {
        app.warn("The project has changed while you were asked.");
        return match session {
            Some(session) => resume::open(app, session),
            None => run(app, ""),
        };
    }
    let stored = answer.map(|answer| {
        let what = if answer.is_trusted { "trusted" } else { "untrusted" };
        store.answer(&project, &answer, &look).map(|()| what)
    });
    match (stored, session) {
        (Some(Err(reason)), None) => app.error(&reason),
        (Some(Ok(what)), None) => app.info(&format!(
            "Saved trust decision: {what}. Restart pi for this to take effect, or use /reload."
        )),
        (None, None) => {}
        (stored, Some(session)) => {
            if let Some(Err(reason)) = stored {
                app.error(&reason);
            }
            resume::open(app, Opened { is_asked: true, ..session });
        }
    }
}

fn decision(saved: Option<&Entry>, project: &Project) -> String {
    let Some(saved) = saved else {
        return "none".to_owned();
    };
    let what = if saved.is_trusted { "trusted" } else { "untrusted" };
    let path = saved.path.display();
    match saved.path == project.root() {
        true => format!("{what} ({path})"),
        false => format!("{what} (inherited from {path})"),
    }
}

#[cfg(test)]
mod tests {
    use crate::mode::interactive::testing::Bench;

    #[test]
    fn a_decision_is_shown_and_stored() {
        let mut bench = Bench::new();
        bench.dir.write(".pi/prompts/x.md", "x");
        bench.send("/trust");
        let screen = bench.screen(120);
        assert!(screen.contains("Project trust"), "{screen}");
        assert!(screen.contains("Saved decision: none"), "{screen}");
        assert!(screen.contains("Current session: untrusted"), "{screen}");
        bench.press("enter");
        let printed = bench.printed();
        assert!(printed.starts_with("Saved trust decision: trusted."), "{printed}");
        let root = bench.dir.path().display().to_string();
        let stored = String::from_utf8(bench.dir.read("trust.json")).unwrap();
        assert!(stored.contains(&format!("\"{root}\": true")), "{stored}");
        bench.send("/trust");
        let screen = bench.screen(120);
        assert!(screen.contains(&format!("Saved decision: trusted ({root})")), "{screen}");
        assert!(screen.contains("→ ✓ Trust"), "{screen}");
        bench.press("escape");
        assert_eq!(bench.printed(), "");
    }
}
