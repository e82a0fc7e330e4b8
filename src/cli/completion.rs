//! `pi completions SHELL`: completion scripts for bash, zsh and fish, made from the tables of flags and
//! subcommands.
//!
//! The scripts need nothing but their shell: no package of completions, and no call of pi while a line is
//! typed.

use super::say::{BAD_USAGE, say};
use super::subcommand;
use super::table::{Flag, Value, shown};
use crate::mode::report;
use std::ffi::OsString;
use std::fmt::Write;

/// Writes the script of a shell.
type Script = fn() -> String;

const SHELLS: &[(&str, Script)] = &[("bash", bash), ("zsh", zsh), ("fish", fish)];

pub fn shells() -> Vec<&'static str> {
    SHELLS.iter().map(|(name, _)| *name).collect()
}

/// Runs `pi completions`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let shell = match words {
        [word] => SHELLS.iter().find(|(name, _)| word == name),
        _ => None,
    };
    match shell {
        Some((_, script)) => say(&script()),
        None => {
            report::error(format_args!(
                "Name the shell: pi completions {}\nTo send such words to a model: pi -- WORDS",
                shells().join("|")
            ));
            BAD_USAGE
        }
    }
}

/// What completes the value of a flag.
enum Candidates {
    Words(Vec<&'static str>),
    Files,
    Folders,
    /// Only the user knows.
    Unknown,
}

/// Returns what completes a value with this name in `--help`, such as `file` or `text|json`.
fn candidates(value: &'static str) -> Candidates {
    let parts: Vec<&str> = value.split('|').collect();
    match value {
        "dir" => Candidates::Folders,
        _ if parts.iter().any(|part| matches!(*part, "file" | "path")) => Candidates::Files,
        // The word `list` stands for one of the user's own.
        _ if parts.len() > 1 => Candidates::Words(parts.into_iter().filter(|part| *part != "list").collect()),
        _ => Candidates::Unknown,
    }
}

/// The flag's names as words: `--print` and `-p`.
fn names(flag: &Flag) -> Vec<String> {
    let long = format!("--{}", flag.long);
    std::iter::once(long).chain(flag.short.map(|short| format!("-{short}"))).collect()
}

fn bash() -> String {
    let mut text = String::from(
        "# Completions of pi for bash.\n\
         _pi() {\n    \
             local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} IFS=$'\\n'\n    \
             COMPREPLY=()\n    \
             # An equals sign is a word of its own.\n    \
             if [[ $cur == = ]]; then cur=; \
             elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n    \
             if ((COMP_CWORD > 1)); then\n        \
                 case ${COMP_WORDS[1]} in\n",
    );
    for row in subcommand::all() {
        let words = (row.words)().join(" ");
        let _ = writeln!(text, "            {}) _pi_words '{words}'; _pi_paths -f; return ;;", row.name);
    }
    text.push_str("        esac\n    fi\n    case $prev in\n");
    let (mut files, mut folders, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for flag in shown() {
        let Value::Required(value) = flag.value else { continue };
        match candidates(value) {
            Candidates::Words(words) => {
                let _ = writeln!(
                    text,
                    "        {}) _pi_words '{}'; return ;;",
                    names(flag).join("|"),
                    words.join(" ")
                );
            }
            Candidates::Files => files.extend(names(flag)),
            Candidates::Folders => folders.extend(names(flag)),
            Candidates::Unknown => unknown.extend(names(flag)),
        }
    }
    let flags: Vec<String> = shown().flat_map(names).collect();
    let commands: Vec<&str> = subcommand::all().map(|row| row.name).collect();
    let _ = write!(
        text,
        "        {}) _pi_paths -f; return ;;\n        \
         {}) _pi_paths -d; return ;;\n        \
         {}) return ;;\n    \
         esac\n    \
         case $cur in\n        \
         -*) _pi_words '{}' ;;\n        \
         @*) cur=${{cur#@}}; _pi_paths -f; COMPREPLY=(\"${{COMPREPLY[@]/#/@}}\"); \
         compopt -o nospace 2>/dev/null ;;\n        \
         *) ((COMP_CWORD > 1)) || _pi_words '{}' ;;\n    \
         esac\n\
         }}\n\
         _pi_words() {{\n    \
         local IFS=$' \\n' word\n    \
         while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -W \"$1\" -- \"$cur\")\n\
         }}\n\
         _pi_paths() {{\n    \
         local path\n    \
         while IFS= read -r path; do COMPREPLY+=(\"$path\"); done < <(compgen \"$1\" -- \"$cur\")\n    \
         compopt -o filenames 2>/dev/null\n\
         }}\n\
         complete -F _pi pi\n",
        files.join("|"),
        folders.join("|"),
        unknown.join("|"),
        flags.join(" "),
        commands.join(" "),
    );
    text
}

fn zsh() -> String {
    let mut text = String::from(
        "#compdef pi\n\
         # Completions of pi for zsh.\n\
         _pi() {\n    \
         local -a commands=(\n",
    );
    for row in subcommand::all() {
        let _ = writeln!(text, "        {}", single(&format!("{}:{}", row.name, row.about)));
    }
    text.push_str("    )\n    if (( CURRENT > 2 )); then\n        case $words[2] in\n");
    for row in subcommand::all() {
        let words = (row.words)().join(" ");
        let _ = writeln!(text, "            {}) compadd -- {words}; _files; return ;;", row.name);
    }
    text.push_str(
        "        esac\n    \
         elif [[ $PREFIX != -* && $PREFIX != @* ]]; then\n        \
         _describe command commands\n        \
         return\n    \
         fi\n    \
         _arguments \\\n",
    );
    for flag in shown() {
        let names = names(flag);
        let value = match flag.value {
            Value::None => String::new(),
            Value::Required(value) => {
                let action = match candidates(value) {
                    Candidates::Words(words) => format!("({})", words.join(" ")),
                    Candidates::Files => "_files".to_owned(),
                    Candidates::Folders => "_files -/".to_owned(),
                    Candidates::Unknown => " ".to_owned(),
                };
                format!(":{value}:{action}")
            }
            Value::Optional(value) => format!("::{value}: "),
        };
        let about = format!("[{}]{value}", bracketed(flag.help));
        for name in &names {
            let _ = writeln!(text, "        {} \\", single(&format!("*{name}{about}")));
        }
    }
    text.push_str(
        "        '*:message:_pi_message'\n\
         }\n\
         _pi_message() { compset -P @ && _files }\n\
         if [[ $funcstack[1] == _pi ]]; then _pi \"$@\"; else compdef _pi pi; fi\n",
    );
    text
}

fn fish() -> String {
    let mut text = String::from(
        "# Completions of pi for fish.\n\
         complete -c pi -f\n\
         complete -c pi -n 'string match -q \"@*\" -- (commandline -ct)' \
         -a '(__fish_complete_path (string sub -s 2 -- (commandline -ct)) | string replace -r \"^\" @)'\n",
    );
    for row in subcommand::all() {
        let _ = writeln!(
            text,
            "complete -c pi -n __fish_use_subcommand -a {} -d {}",
            row.name,
            fish_quoted(row.about)
        );
        let words = (row.words)().join(" ");
        let _ =
            writeln!(text, "complete -c pi -n '__fish_seen_subcommand_from {}' -F -a '{words}'", row.name);
    }
    for flag in shown() {
        let short = match flag.short {
            Some(short) if short.len() == 1 => format!(" -s {short}"),
            Some(short) => format!(" -o {short}"),
            None => String::new(),
        };
        let value = match flag.value {
            Value::None | Value::Optional(_) => String::new(),
            Value::Required(value) => match candidates(value) {
                Candidates::Words(words) => format!(" -x -a '{}'", words.join(" ")),
                Candidates::Files => " -r -F".to_owned(),
                Candidates::Folders => " -x -a '(__fish_complete_directories)'".to_owned(),
                Candidates::Unknown => " -x".to_owned(),
            },
        };
        let _ = writeln!(text, "complete -c pi -l {}{short}{value} -d {}", flag.long, fish_quoted(flag.help));
    }
    text
}

/// Quotes a word for bash and zsh.
fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn fish_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

/// Escapes a description between the brackets of a specification for zsh's `_arguments`.
fn bracketed(text: &str) -> String {
    text.replace('\\', r"\\").replace('[', r"\[").replace(']', r"\]").replace(':', r"\:")
}
