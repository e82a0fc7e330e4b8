//! A rule about tool calls: the tool, and what the call is about.
//!
//! `bash` is every call of `bash`, `mcp__files__*` of every tool with such a name. In parentheses follows what
//! the call is about: for a command its words (`bash(cargo test *)`; a last `*` stands for any further words),
//! for a tool with a path a glob of files (`edit(src/**)`), else an argument and a glob
//! (`fetch(url=https://docs.rs/*)`).

use super::shell::{self, Piece, Simple, Word};
use super::{Call, Place, Subject};
use crate::base::glob::{Dialect, Glob};
use crate::runtime::selection;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How far a rule is about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    No,
    /// Parts of the call are not known before it runs.
    Maybe,
    Yes,
}

impl From<bool> for Match {
    fn from(is_match: bool) -> Self {
        if is_match { Self::Yes } else { Self::No }
    }
}

#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    /// The tool's name; `*` stands for any letters.
    tool: String,
    /// `None` for every call of the tool.
    about: Option<About>,
}

/// What a call is about, in each way in which a call can be about something.
#[derive(Clone, Debug)]
struct About {
    /// The words of a command. Empty if the text cannot be one.
    words: Vec<Word>,
    /// True if further words may follow.
    goes_on: bool,
    files: Files,
    /// The name of an argument, and a pattern with `*`.
    argument: Option<(String, String)>,
}

/// Files below a folder.
#[derive(Clone, Debug)]
struct Files {
    base: Base,
    glob: Option<Glob>,
    /// The folder whose content the glob means, relative to the base.
    folder: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
enum Base {
    Project,
    Home,
    Root,
}

/// True for two rules with one text.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Rule {
    /// Parses a rule. An error says what is wrong, to follow the rule's text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        let (tool, about) = match text.split_once('(') {
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or("does not end in )")?)),
            None => (text, None),
        };
        let is_name = |letter: char| letter.is_alphanumeric() || "_-.*".contains(letter);
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err("does not begin with the name of a tool");
        }
        let about = about.map(str::trim).filter(|about| !matches!(*about, "" | "*"));
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), about: about.map(About::parse).transpose()? })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if the rule is about every call of the tool.
    pub fn is_about_all_of(&self, tool: &str) -> bool {
        self.about.is_none() && self.names(tool)
    }

    fn names(&self, tool: &str) -> bool {
        selection::matches(&self.tool, tool)
    }

    /// How far the rule forbids or questions a call. What is not known counts as [`Match::Maybe`].
    pub fn concerns(&self, call: &Call<'_>) -> Match {
        let Some(about) = self.about.as_ref() else {
            return self.names(call.tool).into();
        };
        let Subject::Command(found) = &call.subject else {
            let is_about = || about.has_argument(call) || about.files.have_any(call.paths(), call.place);
            return (self.names(call.tool) && is_about()).into();
        };
        let writes = self.names("write") || self.names("edit");
        let (runs, reads) = (self.names(call.tool), self.names("read"));
        if !runs && !writes && !reads {
            return Match::No;
        }
        let Some(found) = found else {
            return Match::Maybe;
        };
        let mut most = Match::No;
        let mut is_moved = false;
        for simple in found {
            if runs {
                most = most.max(about.is_part_of(&simple.words, 0));
            }
            let targets = simple.writes.iter().filter(|_| writes);
            for target in targets.chain(simple.reads.iter().filter(|_| reads)) {
                let is_file = |paths: &[PathBuf]| about.files.have_any(paths, call.place);
                most = most.max(match target_paths(target, is_moved, call.place) {
                    Some(paths) => is_file(&paths).into(),
                    None => Match::Maybe,
                });
            }
            is_moved |= moves(simple);
        }
        most
    }

    /// True if the rule allows every command of a simple command, without its redirections.
    pub fn allows_command(&self, tool: &str, simple: &Simple, is_moved: bool) -> bool {
        let Some(about) = self.about.as_ref().filter(|_| self.names(tool)) else {
            return false;
        };
        // A relative program is another one in another folder.
        let program = simple.words.first().and_then(Word::text);
        if is_moved && program.is_some_and(|program| program.contains('/') && !program.starts_with('/')) {
            return false;
        }
        let words: Vec<&Word> = simple.assignments.iter().chain(&simple.words).collect();
        about.fits(&words, false) == Match::Yes
    }

    /// True if the rule allows a call that runs no command.
    pub fn allows(&self, call: &Call<'_>) -> bool {
        let Some(about) = &self.about else {
            return self.names(call.tool);
        };
        let are_files = || self.allows_files(call.tool, call.paths(), call.place);
        self.names(call.tool) && (about.has_argument(call) || are_files())
    }

    /// True if the rule allows `tool` to touch a file, by each of its paths.
    pub fn allows_files(&self, tool: &str, paths: &[PathBuf], place: &Place<'_>) -> bool {
        self.names(tool)
            && match &self.about {
                Some(about) => !paths.is_empty() && paths.iter().all(|path| about.files.have(path, place)),
                None => true,
            }
    }
}

impl Call<'_> {
    fn paths(&self) -> &[PathBuf] {
        match &self.subject {
            Subject::Path { paths, .. } => paths,
            Subject::Command(_) | Subject::Other => &[],
        }
    }
}

/// The paths of the target of a redirection; `None` if they are not known.
pub fn target_paths(target: &Word, is_moved: bool, place: &Place<'_>) -> Option<Vec<PathBuf>> {
    let text = target.text()?;
    let is_known = text.starts_with('/') || !(is_moved || text.starts_with('~') && !text.starts_with("~/"));
    is_known.then(|| (place.resolve)(text))
}

/// True if a command changes the folder of those after it.
pub fn moves(simple: &Simple) -> bool {
    // A program that is not known may be one of these.
    let is_mover = |name: &str| ["cd", "pushd", "popd", "builtin", "command", "eval", "."].contains(&name);
    simple.words.first().is_some_and(|program| program.text().is_none_or(is_mover))
}

/// Programs that run what their arguments say.
const RUNNERS: &[&str] = &[
    "sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "command", "builtin", "exec", "xargs",
    "stdbuf", "setsid", "watch", "find", "fd", "parallel", "busybox", "chroot", "strace", "unshare",
    "script", "trap",
];

/// Programs that run an argument as a text of commands.
const SHELLS: &[&str] =
    &["sh", "bash", "dash", "zsh", "ksh", "ash", "eval", "su", "trap", "watch", "script", "parallel"];

/// Commands inside arguments are followed to this depth.
const DEPTH_MAX: usize = 8;

impl About {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let command = match text.strip_suffix(":*") {
            Some(begin) => format!("{begin} *"),
            None => text.to_owned(),
        };
        let mut words = shell::words(&command).unwrap_or_default();
        let is_rest = |word: &Word| word.0 == [Piece::Star];
        let goes_on = words.len() > 1 && words.pop_if(|word| is_rest(word)).is_some();
        let argument = text.split_once('=').filter(|(name, _)| {
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
            !name.is_empty() && name.chars().all(is_name)
        });
        let argument = argument.map(|(name, pattern)| (name.to_owned(), pattern.to_owned()));
        let files = Files::parse(text);
        if words.is_empty() && files.glob.is_none() {
            return Err("is neither a command nor a glob");
        }
        Ok(Self { words, goes_on, files, argument })
    }

    fn has_argument(&self, call: &Call<'_>) -> bool {
        let Some((name, pattern)) = &self.argument else {
            return false;
        };
        match call.arguments.get(name) {
            Some(Value::String(text)) => selection::matches(pattern, text),
            Some(value) => selection::matches(pattern, &value.to_string()),
            None => false,
        }
    }

    /// Compares words with those of the rule. With `is_wide` the program may be in any folder.
    fn fits(&self, words: &[&Word], is_wide: bool) -> Match {
        if self.words.is_empty() {
            return Match::No;
        }
        for (index, pattern) in self.words.iter().enumerate() {
            let Some(word) = words.get(index) else {
                return Match::No;
            };
            // It may expand to any number of words.
            let Some(text) = word.text() else {
                return Match::Maybe;
            };
            let name = text.rsplit('/').next().unwrap_or(text);
            let is_program = is_wide && index == 0;
            if !(is_like(pattern, text) || is_program && is_like(pattern, name)) {
                return Match::No;
            }
        }
        let rest = words.get(self.words.len()..).unwrap_or_default();
        match rest {
            _ if self.goes_on => Match::Yes,
            [] => Match::Yes,
            rest if rest.iter().all(|word| word.text().is_none()) => Match::Maybe,
            _ => Match::No,
        }
    }

    /// Compares a command, and those that its arguments hold, with the rule.
    fn is_part_of(&self, words: &[Word], depth: usize) -> Match {
        let all: Vec<&Word> = words.iter().collect();
        let mut most = self.fits(&all, true);
        let Some(program) = words.first() else {
            return Match::No;
        };
        let Some(program) = program.text() else {
            return most.max(Match::Maybe);
        };
        let program = program.rsplit('/').next().unwrap_or(program);
        if RUNNERS.contains(&program) {
            for start in 1..all.len() {
                most = most.max(self.fits(all.get(start..).unwrap_or_default(), true));
            }
        }
        // `sudo sh -c …` is a shell, too.
        let is_shell = |word: &Word| {
            word.text().is_some_and(|text| SHELLS.contains(&text.rsplit('/').next().unwrap_or(text)))
        };
        let runs_text = SHELLS.contains(&program) || RUNNERS.contains(&program) && words.iter().any(is_shell);
        if runs_text {
            for word in words.iter().skip(1) {
                let found = word.text().filter(|_| depth < DEPTH_MAX).and_then(shell::parse);
                most = most.max(match found {
                    Some(found) => found
                        .iter()
                        .fold(Match::No, |most, simple| most.max(self.is_part_of(&simple.words, depth + 1))),
                    None => Match::Maybe,
                });
            }
        }
        most
    }
}

/// True if a text is what a word with `*` says.
fn is_like(pattern: &Word, text: &str) -> bool {
    let mut rest = text;
    let mut is_open = false;
    for (index, piece) in pattern.0.iter().enumerate() {
        match piece {
            Piece::Text(part) if index + 1 == pattern.0.len() && is_open => {
                return rest.ends_with(part.as_str());
            }
            Piece::Text(part) if is_open => match rest.split_once(part.as_str()) {
                Some((_, after)) => (rest, is_open) = (after, false),
                None => return false,
            },
            Piece::Text(part) => match rest.strip_prefix(part.as_str()) {
                Some(after) => rest = after,
                None => return false,
            },
            Piece::Star => is_open = true,
            Piece::Unknown => return false,
        }
    }
    is_open || rest.is_empty()
}

impl Files {
    fn parse(text: &str) -> Self {
        let (base, rest) = match (text.strip_prefix("~/"), text.strip_prefix('/')) {
            (Some(rest), _) => (Base::Home, rest),
            (None, Some(rest)) => (Base::Root, rest),
            (None, None) => (Base::Project, text.strip_prefix("./").unwrap_or(text)),
        };
        let glob = Glob::new(rest, Dialect { lenient: true, ..Dialect::default() }).ok();
        let folder = rest.strip_suffix("/**").or((rest == "**").then_some("")).map(PathBuf::from);
        Self { base, glob, folder }
    }

    fn have_any(&self, paths: &[PathBuf], place: &Place<'_>) -> bool {
        paths.iter().any(|path| self.have(path, place))
    }

    fn have(&self, path: &Path, place: &Place<'_>) -> bool {
        let Some(glob) = &self.glob else {
            return false;
        };
        let is_below = |base: &Path| {
            let Ok(inner) = path.strip_prefix(base) else {
                return false;
            };
            glob.is_match(inner.as_os_str().as_encoded_bytes())
                || self.folder.as_ref().is_some_and(|folder| inner == folder)
        };
        match self.base {
            Base::Project => place.folders.iter().any(|folder| is_below(folder)),
            Base::Home => place.home.is_some_and(is_below),
            Base::Root => is_below(Path::new("/")),
        }
    }
}
