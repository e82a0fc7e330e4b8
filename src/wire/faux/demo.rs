//! `faux/demo`: lists the current folder with the available tools, reads one file, and describes both.
//!
//! The next step is derived from the conversation, so that the demo continues after an abort or in a later
//! run. It changes nothing, works in an empty folder and without tools, and always says that it is a script.

use super::play::{Answer, Pace, Piece};
use crate::base::json::json;
use crate::llm::context::Context;
use crate::llm::message::{Message, ToolResultMessage, text_of};

/// Speed of the demo's answers, in tokens per second.
const TOKENS_PER_SECOND: f64 = 1000.0;

/// Number of lines read from a file.
const LINES: usize = 20;

pub(super) fn answer(context: &Context, thinks: bool) -> Answer {
    let scene = Scene::of(context);
    let (thought, text, call) = match scene.results.as_slice() {
        [] => scene.open(),
        [listing] => scene.pick(listing),
        [listing, .., file] => ("Enough seen; time to tell.", scene.tell(listing, Some(file)), None),
    };
    let mut pieces = Vec::new();
    if thinks {
        pieces.push(Piece::Thinking(thought.to_owned()));
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    pieces.extend(call);
    let pace = Pace { tokens_per_second: Some(TOKENS_PER_SECOND), ..Pace::default() };
    Answer { pace, ..Answer::new(pieces) }
}

/// The next step: thinking, text and tool call.
type Step = (&'static str, String, Option<Piece>);

/// The conversation since the user's last message.
struct Scene<'a> {
    tools: Vec<String>,
    asked: String,
    results: Vec<&'a ToolResultMessage>,
}

impl<'a> Scene<'a> {
    fn of(context: &'a Context) -> Self {
        let mut asked = String::new();
        let mut results = Vec::new();
        for message in &context.messages {
            match message {
                Message::User(user) => {
                    asked = user.content.text();
                    results.clear();
                }
                Message::ToolResult(result) => results.push(&**result),
                Message::System(_) | Message::Assistant(_) => {}
            }
        }
        let tools = context.head().tools.into_iter().map(|tool| tool.name);
        Self { tools: tools.collect(), asked, results }
    }

    fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }

    fn open(&self) -> Step {
        let asked = excerpt(&self.asked);
        let about = match asked.is_empty() {
            true => String::new(),
            false => format!(" A model would now work on “{asked}”."),
        };
        let hello =
            format!("I am `faux/demo`: a script, not a model.{about} I can only show what that looks like.");
        let call = if self.has("ls") {
            tool_call("ls", &json!({"path": "."}))
        } else if self.has("bash") {
            tool_call("bash", &json!({"command": "ls -1p"}))
        } else if self.has("find") {
            tool_call("find", &json!({"pattern": "*", "limit": 50}))
        } else if self.has("read") {
            tool_call("read", &json!({"path": "README.md", "limit": LINES}))
        } else {
            let text = format!(
                "{hello}\n\nNo tool is active that could look at this folder, so there is nothing more to \
                 show. Start without `--no-tools` to see one at work."
            );
            return ("No tools to look around with.", text, None);
        };
        let text = format!("{hello} First, a look at this folder.");
        ("A look at the folder is a safe first step.", text, Some(call))
    }

    fn pick(&self, listing: &ToolResultMessage) -> Step {
        let done = "Nothing here to read; time to tell.";
        if listing.is_error || listing.tool_name == "read" {
            let file = (listing.tool_name == "read").then_some(listing);
            return (done, self.tell(listing, file), None);
        }
        let listed = text_of(&listing.content);
        let Some(file) = choose(&listed) else {
            return (done, self.tell(listing, None), None);
        };
        let call = if self.has("read") {
            tool_call("read", &json!({"path": file, "limit": LINES}))
        } else if self.has("bash") {
            tool_call("bash", &json!({"command": format!("head -n {LINES} -- {}", quoted(file))}))
        } else {
            return (done, self.tell(listing, None), None);
        };
        let text = format!("`{file}` looks worth reading.");
        ("One file will do to show how reading works.", text, Some(call))
    }

    fn tell(&self, listing: &ToolResultMessage, file: Option<&ToolResultMessage>) -> String {
        let mut text = String::new();
        let listed = text_of(&listing.content);
        let direct = listing.tool_name == "read";
        if listing.is_error {
            text.push_str("That did not work here, which is fine for a demonstration.");
        } else if !direct {
            let (files, folders) = count(&listed);
            text.push_str(&match (files, folders) {
                (0, 0) => "This folder is empty.".to_owned(),
                _ => format!("This folder holds {} and {}.", many(files, "file"), many(folders, "folder")),
            });
        }
        if let Some(file) = file.filter(|file| !file.is_error) {
            let content = text_of(&file.content);
            match content.lines().map(str::trim).find(|line| !line.is_empty()) {
                Some(first) => {
                    let first = excerpt(first.trim_start_matches(['#', ' ']));
                    text.push_str(&format!(" The file that I read begins with “{first}”."));
                }
                None => text.push_str(" The file that I read is empty."),
            }
        }
        text.push_str(
            "\n\nThat was a script: nothing was understood, and no file was changed. Every step went \
             through the real tools, though. For real answers, choose a model: `pi docs providers` names \
             the keys, and a server on this machine is found by itself with `--model local`.",
        );
        text.trim_start().to_owned()
    }
}

fn tool_call(name: &str, arguments: &serde_json::Value) -> Piece {
    Piece::ToolCall { id: None, name: name.to_owned(), arguments: arguments.to_string() }
}

/// The names in a listing, one per line; notices in brackets or parentheses are skipped.
fn names(listing: &str) -> impl Iterator<Item = &str> {
    let lines = listing.lines().map(str::trim_end);
    lines.filter(|line| !line.is_empty() && !line.starts_with(['[', '(']))
}

fn count(listing: &str) -> (usize, usize) {
    let folders = names(listing).filter(|name| name.ends_with('/')).count();
    (names(listing).count() - folders, folders)
}

/// The file to read: a README, otherwise the first file that is likely to be text.
fn choose(listing: &str) -> Option<&str> {
    const TEXT: [&str; 16] = [
        "md", "txt", "toml", "json", "rs", "py", "js", "ts", "c", "h", "go", "sh", "yml", "yaml", "html",
        "css",
    ];
    let plain = |name: &&str| {
        let odd = name.ends_with('/') || name.starts_with(['.', '-', '~', '@']);
        !odd && !name.chars().any(char::is_control)
    };
    let files = || names(listing).filter(plain);
    let is_text = |name: &&str| {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        ending.is_some_and(|ending| TEXT.contains(&ending))
    };
    let is_readme = |name: &&str| {
        let start = name.get(..6);
        start.is_some_and(|start| start.eq_ignore_ascii_case("readme"))
    };
    files().find(is_readme).or_else(|| files().find(is_text)).or_else(|| files().next())
}

fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\'', r"'\''"))
}

fn many(count: usize, thing: &str) -> String {
    match count {
        0 => format!("no {thing}s"),
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// The beginning of the first line.
fn excerpt(text: &str) -> String {
    const CHARS: usize = 60;
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
