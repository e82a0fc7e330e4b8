//! `--help`, from the table of flags.

use super::table::{Flag, GROUPS, Value};
use std::fmt::Write;

/// Where the descriptions begin.
const COLUMN: usize = 34;

pub fn text() -> String {
    let mut text = String::from(
        "pi - a coding agent for the terminal\n\n\
         Usage:\n  \
         pi [options] [--] [@files...] [messages...]\n  \
         pi docs [topic]\n\n\
         With -p, or when stdin or stdout is not a terminal, pi answers on stdout and exits.\n\
         Piped text and @files come before the first message; further messages follow in turn.\n",
    );
    for group in GROUPS.iter().filter(|group| !group.title.is_empty()) {
        let _ = write!(text, "\n{}:\n", group.title);
        for flag in group.flags {
            let name = name(flag);
            // A long name has its description on the next line.
            let gap = if name.len() + 4 > COLUMN {
                format!("\n{:COLUMN$}", "")
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "  {name:<width$}{gap}{}",
                flag.help,
                width = if gap.is_empty() { COLUMN - 2 } else { 0 }
            );
        }
    }
    text.push_str(
        "\nExamples:\n  \
         pi --model faux/demo -p \"What is in this folder?\"   a scripted demo, without any key\n  \
         pi -p \"Explain main.rs\"\n  \
         git diff | pi -p \"Review this change\"\n  \
         pi -p -c \"And the tests?\"                           go on with the last session\n  \
         pi --mode json \"List the files\" | jq -c .type\n\n\
         Manual: pi docs. Keys are read from the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, ...);\n\
         a server on this machine (Ollama, llama.cpp, LM Studio, vLLM) needs none.\n",
    );
    text
}

/// `--model <pattern>`, `--print, -p [prompt]`.
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
