//! Whether the project is trusted: `/trust`.

use super::Question;
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::runtime::trust::{Answer, Entry, Project, Store};

pub fn run(app: &mut App, _: &str) {
    let project = Project::new(&app.stage.cwd, app.dirs.home());
    let store = Store::new(app.dirs.agent());
    let saved = match store.find(&project) {
        Ok(saved) => saved,
        Err(reason) => return app.say(Weight::Error, &reason),
    };
    let surfaces = project.surfaces();
    let look = project.snapshot();
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
    let (mark, blank) = match app.stage.is_plain {
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
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let question = Question::new("Project trust", &text, &labels, move |app, chosen| {
        let Some(answer) = chosen.and_then(|index| answers.get(index)) else {
            return;
        };
        if answer.is_trusted && project.snapshot() != look {
            app.say(Weight::Warning, "The project has changed while you were asked.");
            return run(app, "");
        }
        match store.answer(&project, answer, &look) {
            Ok(()) => {
                let what = if answer.is_trusted { "trusted" } else { "untrusted" };
                let text = format!(
                    "Saved trust decision: {what}. Restart pi for this to take effect, or use /reload."
                );
                app.say(Weight::Info, &text);
            }
            Err(reason) => app.say(Weight::Error, &reason),
        }
    });
    app.open(question);
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
