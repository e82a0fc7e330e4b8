//! The `ask` tool: questions of the model to the user, with answers to choose from.

use super::addition::Addition;
use super::ui::{Dialog, Ui};
use crate::agent::call::{Arguments, Body, CallInfo};
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::llm::message::ToolSpec;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const NAME: &str = "ask";

/// The answer that is not among those proposed.
const OTHER: &str = "Something else…";
/// Ends the choice of several answers.
const ENOUGH: &str = "That is all";
const RECOMMENDED: &str = " (recommended)";

const QUESTIONS_MAX: usize = 8;
const OPTIONS_MAX: usize = 12;

/// The tool for a user who is reached through `ui`. It is not active before it is chosen.
/// A question that nobody answers for `limit` gets its recommended answer, if it has one.
pub fn addition(ui: Arc<dyn Ui>, limit: Option<Duration>) -> Addition {
    Addition { tools: vec![Arc::new(AskTool { info: info(), ui, limit })], ..Addition::default() }
}

fn info() -> ToolInfo {
    ToolInfo {
        spec: ToolSpec {
            name: NAME.into(),
            description: "Ask the user what you cannot find out yourself and must know to go on. He may also answer in \
                          his own words."
                .into(),
            parameters: json!({
                "type": "object",
                "required": ["questions"],
                "properties": {"questions": {"type": "array", "minItems": 1, "maxItems": QUESTIONS_MAX, "items": {
                    "type": "object",
                    "required": ["question", "options"],
                    "properties": {
                        "question": {"type": "string", "minLength": 1},
                        "options": {"type": "array", "maxItems": OPTIONS_MAX, "items": {"type": "string"}},
                        "multi": {"type": "boolean", "description": "Several options may be chosen"},
                        "recommended": {"type": "integer", "description": "Number of the best option, from 1"},
                    },
                }}},
            }),
            ..ToolSpec::default()
        },
        label: NAME.into(),
        snippet: Some("Ask the user".into()),
        sequential: true,
        reads_only: true,
        starts_inactive: true,
        ..ToolInfo::default()
    }
}

struct AskTool {
    info: ToolInfo,
    ui: Arc<dyn Ui>,
    limit: Option<Duration>,
}

/// A question of a call.
struct Question<'a> {
    text: &'a str,
    options: Vec<&'a str>,
    is_multi: bool,
    /// Index of the recommended option.
    recommended: Option<usize>,
}

impl<'a> Question<'a> {
    fn all(arguments: &'a Arguments) -> impl Iterator<Item = Self> {
        let questions = arguments.get("questions").and_then(Value::as_array);
        questions.into_iter().flatten().map(|question| {
            let options = question["options"].as_array().into_iter().flatten();
            let options: Vec<&str> = options.filter_map(Value::as_str).collect();
            let number = question["recommended"].as_u64().and_then(|number| usize::try_from(number).ok());
            Question {
                text: question["question"].as_str().unwrap_or_default(),
                is_multi: question["multi"] == true,
                recommended: number.and_then(|number| number.checked_sub(1)).filter(|at| *at < options.len()),
                options,
            }
        })
    }
}

impl AskTool {
    /// The answers to a question; `None` if it was dismissed.
    fn answers(&self, question: &Question<'_>, call: &Invocation<'_>) -> Option<Vec<String>> {
        let limit = self.limit.filter(|_| question.recommended.is_some());
        let ask = |dialog: &Dialog<'_>| self.ui.ask(dialog, limit, call.cancel);
        let own_words = || {
            let input = Dialog::Input { title: question.text, placeholder: None };
            ask(&input).filter(|text| !text.trim().is_empty())
        };
        if question.options.is_empty() {
            return own_words().map(|text| vec![text]);
        }
        let mut chosen: Vec<String> = Vec::new();
        loop {
            let shown = question.options.iter().enumerate().map(|(at, option)| {
                let mark = if question.recommended == Some(at) { RECOMMENDED } else { "" };
                (format!("{option}{mark}"), *option)
            });
            let left: Vec<(String, &str)> =
                shown.filter(|(_, option)| !chosen.iter().any(|known| known == option)).collect();
            let mut labels: Vec<String> = left.iter().map(|(label, _)| label.clone()).collect();
            labels.push(OTHER.into());
            if !chosen.is_empty() {
                labels.push(ENOUGH.into());
            }
            let title = match chosen.as_slice() {
                [] => question.text.to_owned(),
                chosen => format!("{}\nChosen: {}", question.text, chosen.join(", ")),
            };
            let asked = Instant::now();
            let answer = match ask(&Dialog::Select { title: &title, options: &labels }) {
                Some(answer) => answer,
                // Nobody was there. What was chosen already counts.
                None if limit.is_some_and(|limit| asked.elapsed() >= limit)
                    && !call.cancel.is_cancelled() =>
                {
                    if chosen.is_empty() {
                        let best = question.recommended.and_then(|at| question.options.get(at));
                        chosen.extend(best.map(|best| format!("{best} (nobody answered in time)")));
                    }
                    return Some(chosen);
                }
                None => return None,
            };
            match answer.as_str() {
                ENOUGH if !chosen.is_empty() => return Some(chosen),
                OTHER => match own_words() {
                    Some(text) => chosen.push(text),
                    // Back to the choice, unless there is nobody left to make it.
                    None if call.cancel.is_cancelled() => return None,
                    None => continue,
                },
                answer => {
                    let option = left.iter().find(|(label, option)| label == answer || *option == answer);
                    chosen.push(option.map_or(answer, |(_, option)| option).to_owned());
                }
            }
            if !question.is_multi
                || question.options.iter().all(|option| chosen.iter().any(|one| one == option))
            {
                return Some(chosen);
            }
        }
    }
}

impl Tool for AskTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        let texts: Vec<&str> = Question::all(arguments).map(|question| question.text).collect();
        let title = (!texts.is_empty()).then(|| format!("Ask: {}", texts.join(" ")).into());
        CallInfo { title, body: Body::Arguments, rows: 10, ..CallInfo::default() }
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let (mut lines, mut answers) = (Vec::new(), Vec::new());
        for question in Question::all(call.arguments) {
            let chosen = self.answers(&question, call);
            if call.cancel.is_cancelled() {
                return Err(ToolError::aborted());
            }
            let told = chosen.as_ref().map_or("(the user did not answer)".into(), |chosen| chosen.join("; "));
            lines.push(format!("{}\n{told}", question.text));
            answers.push(json!({"question": question.text, "answers": chosen}));
        }
        let output = ToolOutput::text(lines.join("\n\n"));
        Ok(output.with_details(json!({"answers": answers})))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ui::{Change, Problem};
    use super::*;
    use crate::base::cancel::CancelToken;
    use crate::llm::message::text_of;
    use crate::llm::model::Model;
    use std::sync::Mutex;

    /// Gives these answers, and keeps what was asked.
    struct Script(Mutex<(Vec<Option<&'static str>>, Vec<String>)>);

    impl Ui for Script {
        fn ask(&self, dialog: &Dialog<'_>, _: Option<Duration>, _: &CancelToken) -> Option<String> {
            let mut script = self.0.lock().unwrap();
            let options = match dialog {
                Dialog::Select { options, .. } => options.join("|"),
                _ => String::new(),
            };
            script.1.push(format!("{} {}: {options}", dialog.kind(), dialog.title()));
            script.0.remove(0).map(str::to_owned)
        }

        fn show(&self, _: Change) {}

        fn problem(&self, _: &Problem) {}
    }

    #[track_caller]
    fn check(question: Value, answers: &[Option<&'static str>], asked: &[&str], told: &str) {
        let ui = Arc::new(Script(Mutex::new((answers.to_vec(), Vec::new()))));
        let tool = AskTool { info: info(), ui: ui.clone(), limit: None };
        let (cancel, model) = (CancelToken::new(), Model::default());
        let arguments = json!({"questions": [question]});
        let call = Invocation {
            id: "1",
            arguments: arguments.as_object().unwrap(),
            cancel: &cancel,
            model: &model,
            update: &|_| {},
        };
        let output = tool.run(&call).unwrap();
        assert_eq!(text_of(&output.content), format!("Which?\n{told}"));
        assert_eq!(ui.0.lock().unwrap().1, asked);
    }

    #[test]
    fn an_answer_is_chosen_or_typed() {
        let one = || json!({"question": "Which?", "options": ["a", "b"], "recommended": 2});
        let choice = "select Which?: a|b (recommended)|Something else…";
        check(one(), &[Some("a")], &[choice], "a");
        check(one(), &[Some("b (recommended)")], &[choice], "b");
        check(one(), &[None], &[choice], "(the user did not answer)");
        check(one(), &[Some(OTHER), None, Some("b")], &[choice, "input Which?: ", choice], "b");
        check(one(), &[Some(OTHER), Some("my own")], &[choice, "input Which?: "], "my own");
        let open = json!({"question": "Which?", "options": []});
        check(open, &[Some("text")], &["input Which?: "], "text");
        let many = json!({"question": "Which?", "options": ["a", "b", "c"], "multi": true});
        check(
            many,
            &[Some("c"), Some("a"), Some(ENOUGH)],
            &[
                "select Which?: a|b|c|Something else…",
                "select Which?\nChosen: c: a|b|Something else…|That is all",
                "select Which?\nChosen: c, a: b|Something else…|That is all",
            ],
            "c; a",
        );
    }
}
