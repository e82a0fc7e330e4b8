//! Rules that would allow a call and others like it, for the answer "always".

use super::rule::{moves, target_paths};
use super::shell::{Simple, Word, quoted};
use super::{Call, Policy, Subject};
use std::path::Path;

/// Rules that belong together, and what they allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Always {
    /// What is allowed, to follow "always allow".
    pub label: String,
    pub rules: Vec<String>,
}

/// Programs whose arguments say what runs or what is lost: their rules are about one command line.
const EXACT: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "eval", "exec", "source", ".", "python", "python3", "node", "deno",
    "bun", "perl", "ruby", "php", "lua", "awk", "sed", "sudo", "doas", "su", "env", "xargs", "find", "ssh",
    "scp", "rsync", "docker", "podman", "kubectl", "rm", "mv", "cp", "dd", "chmod", "chown", "kill", "pkill",
    "killall", "curl", "wget", "nohup", "nice", "timeout", "command", "builtin", "watch", "parallel", "tee",
    "ln", "git", "cd", "npx",
];

/// Commands of programs in [`EXACT`] that are as harmless as others.
const EXCEPT: &[(&str, &[&str])] = &[(
    "git",
    &["status", "diff", "log", "show", "add", "commit", "branch", "fetch", "pull", "stash", "blame"],
)];

/// More rules for one call would not be read by anybody.
const RULES_MAX: usize = 4;

/// Returns what can be allowed for good, the narrowest first.
pub fn proposals(policy: &Policy, call: &Call<'_>) -> Vec<Always> {
    let narrow = match &call.subject {
        Subject::Command(Some(found)) => of_command(policy, call, found),
        Subject::Path { paths, is_folder } => paths.first().and_then(|path| {
            let folder = if *is_folder { Some(&**path) } else { path.parent() };
            of_folder(call, folder?)
        }),
        Subject::Command(None) | Subject::Other => None,
    };
    let all = Always { label: format!("every call of {}", call.tool), rules: vec![call.tool.to_owned()] };
    narrow.into_iter().chain([all]).collect()
}

/// Rules for the beginning of each command that is not allowed yet.
fn of_command(policy: &Policy, call: &Call<'_>, found: &[Simple]) -> Option<Always> {
    let mut rules: Vec<String> = Vec::new();
    let mut add = |rule: String| {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    };
    let mut is_moved = false;
    for simple in found {
        let has_words = !simple.words.is_empty() || !simple.assignments.is_empty();
        if has_words && !policy.allows_words(call, simple, is_moved) {
            add(format!("{}({})", call.tool, beginning(simple)?));
        }
        for target in &simple.writes {
            if !policy.allows_target(target, is_moved, call.place) {
                target_paths(target, is_moved, call.place)?;
                add(format!("write({})", literal(target.text()?)?));
            }
        }
        is_moved |= moves(simple);
    }
    (1..=RULES_MAX).contains(&rules.len()).then(|| Always { label: rules.join(", "), rules })
}

/// The words of a command that a rule names, with `*` for the others.
fn beginning(simple: &Simple) -> Option<String> {
    let words: Vec<Option<&str>> = simple.words.iter().map(Word::text).collect();
    let mut count = 0;
    let is_exact = loop {
        let program = (*words.get(count)?)?;
        let name = program.rsplit('/').next().unwrap_or(program);
        count += 1;
        let next = words.get(count).copied().flatten().filter(|next| is_name(next));
        let is_harmless = |(program, commands): &(&str, &[&str])| {
            *program == name && next.is_some_and(|next| commands.contains(&next))
        };
        if EXACT.contains(&name) && !EXCEPT.iter().any(is_harmless) {
            break true;
        }
        count += usize::from(next.is_some());
        // The word behind is a program again.
        if !next.is_some_and(|next| ["run", "exec"].contains(&next)) || words.len() == count {
            break false;
        }
    };
    let named = if is_exact { words.as_slice() } else { words.get(..count)? };
    let assigned = simple.assignments.iter().map(Word::text);
    let words: Option<Vec<String>> =
        assigned.chain(named.iter().copied()).map(|word| word.map(quoted)).collect();
    Some(words?.join(" ") + if is_exact { "" } else { " *" })
}

/// True for a word that may be the command of a program, such as `test` in `cargo test`.
fn is_name(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_lowercase())
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_:".contains(letter))
}

/// The rule for the files of a folder.
fn of_folder(call: &Call<'_>, folder: &Path) -> Option<Always> {
    let inside = call.place.folders.iter().find_map(|base| folder.strip_prefix(base).ok());
    let (files, label) = match inside {
        Some(inside) if inside == Path::new("") => ("./**".to_owned(), "this folder".to_owned()),
        Some(inside) => (format!("{}/**", literal(inside.to_str()?)?), inside.display().to_string()),
        None if folder == Path::new("/") => return None,
        None => (format!("{}/**", literal(folder.to_str()?)?), folder.display().to_string()),
    };
    let tool = call.tool;
    Some(Always { label: format!("{tool} in {label}"), rules: vec![format!("{tool}({files})")] })
}

/// A path as a glob of that path alone; `None` for one with signs of globs.
fn literal(path: &str) -> Option<&str> {
    (!path.contains(['*', '?', '[', '{', '\\', '(', ')'])).then_some(path)
}
