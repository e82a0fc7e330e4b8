//! The simple commands in a shell command, for rules about them.
//!
//! The reader covers what commands of models are made of: lists, pipelines, subshells, loops, quotes,
//! substitutions, redirections, here-documents. Commands inside substitutions are read as well. What has
//! another meaning than its words say (functions, `case`, arithmetic, `[[`) is not read: the whole text is then
//! not understood. A text that a shell would reject may be read; every command in it is found all the same.

/// Nesting beyond this depth is not read.
const DEPTH_MAX: usize = 32;

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// An unquoted `*`.
    Star,
    /// What the shell puts there is not known: a variable, a substitution, a pattern of file names.
    Unknown,
}

/// A word after the removal of quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word(pub Vec<Piece>);

impl Word {
    /// The word's text, if the shell expands nothing in it.
    pub fn text(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    fn push(&mut self, letter: char) {
        match self.0.last_mut() {
            Some(Piece::Text(text)) => text.push(letter),
            _ => self.0.push(Piece::Text(letter.into())),
        }
    }

    /// Adds quoted text, which makes a word even if it is empty.
    fn quote(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }
}

/// A command without operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// Assignments before the program: `NAME=value`.
    pub assignments: Vec<Word>,
    /// The program and its arguments. Empty for assignments or redirections alone.
    pub words: Vec<Word>,
    /// Files that redirections write.
    pub writes: Vec<Word>,
    /// Files that redirections read.
    pub reads: Vec<Word>,
}

/// Returns the simple commands of `text` in their order; `None` if it is not understood.
pub fn parse(text: &str) -> Option<Vec<Simple>> {
    let mut reader = Reader::new(text, 0);
    reader.list(false)?;
    reader.here.is_empty().then_some(reader.found)
}

/// Returns the words of a pattern, which holds no operator; `None` if it is not understood.
pub fn words(text: &str) -> Option<Vec<Word>> {
    let mut reader = Reader::new(text, 0);
    let mut words = Vec::new();
    loop {
        reader.blanks();
        if reader.peek().is_none() {
            return Some(words);
        }
        let (word, _) = reader.word()?;
        let is_known = |piece: &Piece| *piece != Piece::Unknown;
        if word.0.is_empty() || !word.0.iter().all(is_known) {
            return None;
        }
        words.push(word);
    }
}

/// Quotes a word so that [`words`] reads it as it is.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    match !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A here-document whose body has not been read.
struct Here {
    delimiter: String,
    is_quoted: bool,
    strips_tabs: bool,
}

struct Reader {
    letters: Vec<char>,
    at: usize,
    depth: usize,
    here: Vec<Here>,
    found: Vec<Simple>,
}

impl Reader {
    fn new(text: &str, depth: usize) -> Self {
        Self { letters: text.chars().collect(), at: 0, depth, here: Vec::new(), found: Vec::new() }
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn second(&self) -> Option<char> {
        self.letters.get(self.at + 1).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn next_if(&mut self, letter: char) -> bool {
        let is_there = self.peek() == Some(letter);
        self.at += usize::from(is_there);
        is_there
    }

    /// Skips blanks and continued lines.
    fn blanks(&mut self) {
        loop {
            match (self.peek(), self.second()) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n')) => self.at += 2,
                _ => return,
            }
        }
    }

    /// Reads commands up to the end of the text, or up to `)`.
    fn list(&mut self, is_nested: bool) -> Option<()> {
        loop {
            self.blanks();
            match (self.peek(), self.second()) {
                (None, _) => return (!is_nested).then_some(()),
                (Some(')'), _) => {
                    self.at += 1;
                    return is_nested.then_some(());
                }
                (Some('\n'), _) => {
                    self.at += 1;
                    self.bodies()?;
                }
                // The end of a branch of `case`.
                (Some(';'), Some(';' | '&')) => return None,
                (Some('&'), Some('>')) => self.command()?,
                (Some(';' | '&' | '|'), _) => self.at += 1,
                _ => self.command()?,
            }
        }
    }

    /// Reads commands after `(` up to `)`.
    fn nested(&mut self) -> Option<()> {
        if self.depth >= DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        self.list(true)?;
        self.depth -= 1;
        Some(())
    }

    /// Reads one simple command with its redirections, or the word that begins or ends a compound command.
    fn command(&mut self) -> Option<()> {
        const OPENERS: [&str; 10] = ["if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"];
        const CLOSERS: [&str; 3] = ["fi", "done", "}"];
        const UNREAD: [&str; 6] = ["case", "esac", "function", "coproc", "[[", "select"];
        let mut simple = Simple::default();
        loop {
            self.blanks();
            let is_first = simple == Simple::default();
            match (self.peek(), self.second()) {
                (None | Some('\n' | ';' | ')' | '|'), _) => break,
                (Some('&'), Some('>')) => {
                    self.at += 2;
                    self.next_if('>');
                    simple.writes.push(self.target()?);
                }
                (Some('&'), _) => break,
                (Some('#'), _) => {
                    while self.peek().is_some_and(|letter| letter != '\n') {
                        self.at += 1;
                    }
                    break;
                }
                (Some('('), next) => {
                    if !is_first || next == Some('(') {
                        return None;
                    }
                    self.at += 1;
                    self.nested()?;
                }
                (Some('<' | '>'), next) if next != Some('(') => self.redirection(&mut simple)?,
                _ => {
                    let (word, is_quoted) = self.word()?;
                    let text = word.text().filter(|_| !is_quoted);
                    let is_digits = |text: &str| text.chars().all(|letter| letter.is_ascii_digit());
                    let is_redirected = matches!(self.peek(), Some('<' | '>')) && self.second() != Some('(');
                    match text {
                        Some(text) if is_redirected && (is_digits(text) || is_braced(text)) => {}
                        Some(text) if is_first && UNREAD.contains(&text) => return None,
                        Some(text) if is_first && OPENERS.contains(&text) => {}
                        Some(text) if is_first && CLOSERS.contains(&text) => {}
                        Some("for") if is_first => self.names()?,
                        _ if simple.words.is_empty() && is_assignment(&word) => simple.assignments.push(word),
                        _ => simple.words.push(word),
                    }
                }
            }
        }
        if simple != Simple::default() {
            self.found.push(simple);
        }
        Some(())
    }

    /// Reads the name and the words of a `for`. They are no commands, but may hold some.
    fn names(&mut self) -> Option<()> {
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';') => return Some(()),
                Some('#' | '&' | '|' | '(' | ')' | '<' | '>') => return None,
                _ => drop(self.word()?),
            }
        }
    }

    /// Reads an operator such as `>` with its target.
    fn redirection(&mut self, simple: &mut Simple) -> Option<()> {
        let is_input = self.next()? == '<';
        if is_input && self.next_if('<') {
            if self.next_if('<') {
                return self.target().map(drop);
            }
            let strips_tabs = self.next_if('-');
            self.blanks();
            let (word, is_quoted) = self.word()?;
            let delimiter = word.text()?.to_owned();
            self.here.push(Here { delimiter, is_quoted, strips_tabs });
            return Some(());
        }
        if self.next_if('&') {
            let target = self.target()?;
            let is_descriptor = |text: &str| {
                let text = text.strip_suffix('-').unwrap_or(text);
                text.chars().all(|letter| letter.is_ascii_digit())
            };
            if !target.text().is_some_and(is_descriptor) {
                if is_input { simple.reads.push(target) } else { simple.writes.push(target) }
            }
            return Some(());
        }
        let writes = !is_input || self.next_if('>');
        if !is_input && !self.next_if('>') {
            self.next_if('|');
        }
        let target = self.target()?;
        if is_input {
            simple.reads.push(target.clone());
        }
        if writes {
            simple.writes.push(target);
        }
        Some(())
    }

    fn target(&mut self) -> Option<Word> {
        self.blanks();
        let (word, _) = self.word()?;
        (!word.0.is_empty()).then_some(word)
    }

    /// Reads the bodies of here-documents after the end of their line.
    fn bodies(&mut self) -> Option<()> {
        for here in std::mem::take(&mut self.here) {
            loop {
                let rest = self.letters.get(self.at..).unwrap_or_default();
                let end = rest.iter().position(|letter| *letter == '\n').unwrap_or(rest.len());
                let line: String = rest.get(..end).unwrap_or_default().iter().collect();
                let is_last = end == rest.len();
                self.at += end + usize::from(!is_last);
                let text = if here.strips_tabs { line.trim_start_matches('\t') } else { &line };
                if text == here.delimiter || is_last {
                    break;
                }
                if !here.is_quoted && ["$(", "${", "`"].iter().any(|begin| line.contains(begin)) {
                    return None;
                }
            }
        }
        Some(())
    }

    /// Reads a word; true if a part of it is quoted. Empty before an operator.
    fn word(&mut self) -> Option<(Word, bool)> {
        let (mut word, mut is_quoted, start) = (Word::default(), false, self.at);
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' | '\n' | ';' | '|' | '&' | ')' => break,
                '<' | '>' => {
                    if self.second() != Some('(') {
                        break;
                    }
                    self.at += 2;
                    self.substitution(&mut word)?;
                    continue;
                }
                // A function, an array, or an extended pattern.
                '(' | '\0' => return None,
                _ => self.at += 1,
            }
            match letter {
                '\'' => {
                    is_quoted = true;
                    word.quote(&self.until('\'')?);
                }
                '"' => {
                    is_quoted = true;
                    word.quote("");
                    self.double_quoted(&mut word)?;
                }
                '\\' => {
                    is_quoted = true;
                    match self.next()? {
                        '\n' => {}
                        escaped => word.push(escaped),
                    }
                }
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backticks(&mut word)?,
                '*' => word.0.push(Piece::Star),
                '{' if self.next_if('}') => word.quote("{}"),
                // A group; anywhere else braces may be expanded.
                '{' if self.at == start + 1 && matches!(self.peek(), None | Some(' ' | '\t' | '\n')) => {
                    word.push('{');
                }
                '?' | '[' if self.at == start + 1 && matches!(self.peek(), None | Some(' ' | '\t')) => {
                    word.push(letter);
                }
                '[' if self.at == start + 1 && self.peek() == Some('[') => {
                    self.at += 1;
                    word.quote("[[");
                }
                '?' | '[' | '{' => word.0.push(Piece::Unknown),
                '=' if self.at == start + 1 => word.0.push(Piece::Unknown),
                _ => word.push(letter),
            }
        }
        Some((word, is_quoted))
    }

    /// Reads up to `end`, which is consumed.
    fn until(&mut self, end: char) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.next()? {
                letter if letter == end => return Some(text),
                // The body of a here-document would begin inside the quotes.
                '\n' if !self.here.is_empty() => return None,
                letter => text.push(letter),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.next()? {
                '"' => return Some(()),
                '\n' if !self.here.is_empty() => return None,
                '\\' => match self.next()? {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
                    other => {
                        word.push('\\');
                        word.push(other);
                    }
                },
                '$' => self.dollar(word, true)?,
                '`' => self.backticks(word)?,
                letter => word.push(letter),
            }
        }
    }

    /// Reads what follows a dollar.
    fn dollar(&mut self, word: &mut Word, in_quotes: bool) -> Option<()> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                if self.peek() == Some('(') {
                    return None;
                }
                self.substitution(word)?;
            }
            Some('{') => {
                self.at += 1;
                let name = self.until('}')?;
                // Other forms may hold commands.
                let is_plain = |letter: char| letter.is_alphanumeric() || "_./:-,+%#*".contains(letter);
                if !name.chars().all(is_plain) {
                    return None;
                }
                word.0.push(Piece::Unknown);
            }
            Some('\'') if !in_quotes => {
                self.at += 1;
                let mut text = String::new();
                let mut has_escapes = false;
                loop {
                    match self.next()? {
                        '\'' => break,
                        '\\' => {
                            has_escapes = true;
                            self.next()?;
                        }
                        letter => text.push(letter),
                    }
                }
                match has_escapes {
                    true => word.0.push(Piece::Unknown),
                    false => word.quote(&text),
                }
            }
            // A text to translate.
            Some('"') if !in_quotes => {}
            Some('[') => return None,
            Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => {
                while self.peek().is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                    self.at += 1;
                }
                word.0.push(Piece::Unknown);
            }
            Some(letter) if letter.is_ascii_digit() || "?#@*!$-".contains(letter) => {
                self.at += 1;
                word.0.push(Piece::Unknown);
            }
            _ => word.push('$'),
        }
        Some(())
    }

    /// Reads the commands of a substitution after `(`.
    fn substitution(&mut self, word: &mut Word) -> Option<()> {
        // Shells differ in where the body of a here-document before it begins.
        if !self.here.is_empty() {
            return None;
        }
        self.nested()?;
        word.0.push(Piece::Unknown);
        self.here.is_empty().then_some(())
    }

    /// Reads a command between backticks.
    fn backticks(&mut self, word: &mut Word) -> Option<()> {
        let mut text = String::new();
        loop {
            match self.next()? {
                '`' => break,
                '\\' => match self.next()? {
                    escaped @ ('`' | '\\' | '$') => text.push(escaped),
                    other => text.extend(['\\', other]),
                },
                '\n' if !self.here.is_empty() => return None,
                letter => text.push(letter),
            }
        }
        if self.depth >= DEPTH_MAX {
            return None;
        }
        let mut inner = Self::new(&text, self.depth + 1);
        inner.list(false)?;
        if !inner.here.is_empty() {
            return None;
        }
        self.found.append(&mut inner.found);
        word.0.push(Piece::Unknown);
        Some(())
    }
}

/// True for `{name}` before a redirection.
fn is_braced(text: &str) -> bool {
    text.starts_with('{') && text.ends_with('}')
}

/// True for a word that assigns a variable.
fn is_assignment(word: &Word) -> bool {
    let Some(Piece::Text(text)) = word.0.first() else {
        return false;
    };
    let Some((name, _)) = text.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A command as its words, `?` for what is not known, with what it assigns, writes and reads.
    fn show(simple: &Simple) -> String {
        let shown = |word: &Word| match word.text() {
            Some(text) => text.to_owned(),
            None => "?".to_owned(),
        };
        let mut parts: Vec<String> = simple.assignments.iter().map(shown).collect();
        parts.extend(simple.words.iter().map(shown));
        parts.extend(simple.writes.iter().map(|word| format!("»{}", shown(word))));
        parts.extend(simple.reads.iter().map(|word| format!("«{}", shown(word))));
        parts.join(" ")
    }

    #[test]
    fn every_simple_command_is_found() {
        let rows: &[(&str, &[&str])] = &[
            ("", &[]),
            ("# only a comment", &[]),
            ("cargo test --lib", &["cargo test --lib"]),
            ("cd a && cargo test | tail -5 || true; ls &", &["cd a", "cargo test", "tail -5", "true", "ls"]),
            ("a |& b\nc # d\n\n  e", &["a", "b", "c", "e"]),
            ("echo a#b \\\n c", &["echo a#b c"]),
            (r#"git commit -m "it's; rm -rf /" 'a && b' c\;d"#, &["git commit -m it's; rm -rf / a && b c;d"]),
            (r"r'm' \rm", &["rm rm"]),
            ("echo $(rm x) `ls y`", &["rm x", "ls y", "echo ? ?"]),
            (r#"echo "a $(rm x) b""#, &["rm x", "echo ?"]),
            ("echo '$(rm x)'", &["echo $(rm x)"]),
            ("diff <(sort a) <(sort b)", &["sort a", "sort b", "diff ? ?"]),
            ("(cd x; make) > log", &["cd x", "make", "»log"]),
            ("{ a; b; } 2>&1", &["a", "b"]),
            ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
            ("for f in *.rs $(ls); do cat $f; done", &["ls", "cat ?"]),
            ("while read x; do echo $x; done < in", &["read x", "echo ?", "«in"]),
            ("! time make", &["make"]),
            ("FOO=1 BAR=$x make a=b", &["FOO=1 ? make a=b"]),
            ("FOO=1", &["FOO=1"]),
            ("make >a 2>>b &>c >|d <e 2>&1 <&- >&f", &["make »a »b »c »d »f «e"]),
            ("echo 2 >x 2>y", &["echo 2 »x »y"]),
            ("a<>b", &["a »b «b"]),
            ("cat <<EOF\nrm x\nEOF\nls", &["cat", "ls"]),
            ("cat <<'EOF'\n$(rm x)\nEOF\nls", &["cat", "ls"]),
            ("cat <<-A <<B > f\nx\n\tA\ny\nB\nls", &["cat »f", "ls"]),
            ("cat <<< $x", &["cat"]),
            ("find . -exec rm {} \\;", &["find . -exec rm {} ;"]),
            ("rm *.o", &["rm ?"]),
            ("{rm,-rf,x}", &["?"]),
            ("echo ${HOME} $1 $? $", &["echo ? ? ? $"]),
            ("echo $'a b' $'\\x72m'", &["echo a b ?"]),
            ("[ -f x ] && test -f y", &["[ -f x ]", "test -f y"]),
            ("echo \"a\\\"b\\c\"", &["echo a\"b\\c"]),
        ];
        for (text, expected) in rows {
            let found = parse(text).map(|found| found.iter().map(show).collect::<Vec<_>>());
            assert_eq!(found.unwrap_or_default(), *expected, "{text}");
        }
    }

    #[test]
    fn what_may_mean_something_else_is_not_read() {
        for text in [
            "f() { rm x; }",
            "function f { a; }",
            "case x in a) b;; esac",
            "[[ a > b ]]",
            "((i++))",
            "echo $((1 + 1))",
            "echo 'a",
            "echo \"a",
            "echo `a",
            "echo $(a",
            "(a",
            "a)",
            "a=(1 2)",
            "echo ${x:=$(rm x)}",
            "echo ${x@P}",
            "echo ${!x}",
            "cat <<EOF\n$(rm x)\nEOF",
            "cat <<EOF 'a\nb'\nEOF",
            "echo @(a|b)",
            "cat <<EOF",
            "a >",
            "$[1]",
            "echo a\0b",
            "coproc a",
            "echo \\$(rm",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"$(".repeat(100_000)), None);
        assert_eq!(parse(&"(".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-c '\"`$(){}|&;<>\\\\\n#=*~!-]{0,40}") {
            let _ = parse(&text);
            let _ = words(&text);
        }

        /// A command that stands in a list is found whatever stands around it, or nothing is understood.
        #[test]
        fn no_command_hides(
            before in "[a-c '\"`$(){}|&;<\\\\\n-]{0,20}",
            joint in prop::sample::select(vec![";", "&&", "||", "|", "\n", "&"]),
        ) {
            // What follows a here-document is its body.
            if !before.contains("<<") && parse(&before).is_some() {
                let text = format!("{before}{joint} needle x");
                let is_needle = |simple: &Simple| {
                    simple.words.first().and_then(Word::text) == Some("needle")
                };
                // A backslash at the end takes the joint into the word before.
                if let Some(found) = parse(&text).filter(|_| !before.ends_with('\\')) {
                    prop_assert!(found.iter().any(is_needle), "{}", text);
                }
            }
        }

        #[test]
        fn a_quoted_word_is_one_word(word in "[^\0]{0,12}") {
            let read = words(&format!("a {} b", quoted(&word))).unwrap();
            prop_assert_eq!(read.len(), 3);
            prop_assert_eq!(read[1].text(), Some(word.as_str()));
        }
    }
}
