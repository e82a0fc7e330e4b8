//! Makes the text of `--help` from the table of flags.

use super::table::{Flag, GROUPS, Value};
use std::fmt::Write;

/// The column in which descriptions begin.
const COLUMN: usize = 32;
/// Width of a line, which fits every terminal.
const WIDTH: usize = 80;

pub fn text() -> String {
    let mut text = String::from(
        "pi - a coding agent for the terminal\n\n\
         Usage:\n  \
         pi [options] [--] [@files...] [messages...]\n  \
         pi docs [topic]                   the manual\n  \
         pi auth <command>                 sign in, keys\n  \
         pi config | skills | prompts      settings, and what a project brings\n  \
         pi sessions <command>             list, search, show, import, remove\n  \
         pi export [session] [file]        as a page, Markdown or JSON lines\n  \
         pi undo [n] [--list]              take back what tools did to files\n  \
         pi sandbox -- <command>           try a command in the sandbox\n  \
         pi update --models                fetch the newest catalogue of models\n\n\
         With -p, or when stdin or stdout is not a terminal, pi answers on stdout and\n\
         exits. Piped text and @files come before the first message; further messages\n\
         follow in turn.\n",
    );
    for group in GROUPS.iter().filter(|group| !group.title.is_empty()) {
        let _ = write!(text, "\n{}:\n", group.title);
        for flag in group.flags {
            let name = name(flag);
            let mut line = format!("  {name}");
            // The description of a long name begins on the next line.
            if line.len() >= COLUMN {
                line.push('\n');
                text.push_str(&line);
                line.clear();
            }
            for word in flag.help.split(' ') {
                if line.len() + 1 + word.len() > WIDTH {
                    text.push_str(line.trim_end());
                    text.push('\n');
                    line.clear();
                }
                match line.len() {
                    len if len < COLUMN => line.extend(std::iter::repeat_n(' ', COLUMN - len)),
                    _ => line.push(' '),
                }
                line.push_str(word);
            }
            text.push_str(&line);
            text.push('\n');
        }
    }
    text.push_str(
        "\nExamples:\n  \
         pi --model faux/demo -p \"What is here?\"   a scripted demo, without a key\n  \
         pi -p \"Explain main.rs\"\n  \
         git diff | pi -p \"Review this change\"\n  \
         pi -p -c \"And the tests?\"                 go on with the last session\n  \
         pi --mode json \"List the files\" | jq -c .type\n\n\
         Manual: pi docs. Keys come from the environment (ANTHROPIC_API_KEY,
\
         OPENAI_API_KEY, ...); a server on this machine (Ollama, llama.cpp, LM Studio,
\
         vLLM) needs none.
",
    );
    text
}

/// Returns the flag with its value, such as `--model <pattern>` or `--print, -p [prompt]`.
pub fn name(flag: &Flag) -> String {
    let mut name = format!("--{}", flag.long);
    if let Some(short) = flag.short {
        let _ = write!(name, ", -{short}");
    }
    let _ = match flag.value {
        Value::None => Ok(()),
        Value::Required(value) => write!(name, " <{value}>"),
        Value::Optional(value) => write!(name, " [{value}]"),
    };
    name
}
