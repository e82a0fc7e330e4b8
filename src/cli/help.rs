//! Makes the text of `--help` from the table of flags.

use super::subcommand;
use super::table::GROUPS;
use std::fmt::Write;

/// What the program is, in a phrase.
pub const ABOUT: &str = "a coding agent for the terminal";

/// When the program answers on stdout, and what it is asked.
pub const DESCRIPTION: &str = "\
With -p, or when stdin or stdout is not a terminal, pi answers on stdout and
exits. Piped text and @files come before the first message; further messages
follow in turn.";

/// The column in which descriptions begin.
const COLUMN: usize = 32;
/// Width of a line, which fits every terminal.
const WIDTH: usize = 80;

pub fn text() -> String {
    let mut text = format!("pi - {ABOUT}\n\nUsage:\n  pi [options] [--] [@files...] [messages...]\n");
    for row in subcommand::all() {
        let _ = writeln!(text, "  pi {:<25}{}", row.usage(), row.about);
    }
    let _ = write!(text, "\n{DESCRIPTION}\n");
    for group in GROUPS.iter().filter(|group| !group.title.is_empty()) {
        let _ = write!(text, "\n{}:\n", group.title);
        for flag in group.flags {
            let name = flag.usage();
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
