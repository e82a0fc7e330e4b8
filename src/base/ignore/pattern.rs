//! One line of an ignore file, parsed and matched like git does, byte by byte.
//!
//! Git removes the literal prefix of a pattern with a `/` before it interprets wildcards, so that `a**/b` is
//! `a` followed by any folders. This is reproduced, to ignore the same files as git.

/// A rule of an ignore file.
#[derive(Debug)]
pub struct Pattern {
    /// `!`: re-includes what an earlier rule ignored.
    pub negated: bool,
    /// Trailing `/`.
    dirs_only: bool,
    /// No `/` inside: matched against names, at any depth.
    by_name: bool,
    literal: Vec<u8>,
    wild: Vec<Token>,
}

#[derive(Debug)]
enum Token {
    Byte(u8),
    /// `?`: any byte except `/`.
    Any,
    Set(Box<ByteSet>),
    /// `*`: any bytes except `/`.
    Star,
    /// `**` at the end: the rest of the path.
    Rest,
    /// `**/`: any number of folders, including none.
    Folders,
    /// `**\/`: at least one folder; the slash is the next token.
    SomeFolders,
}

/// What the pattern requires of the last component of a path.
#[derive(Debug, PartialEq)]
pub enum Name {
    Exactly(Vec<u8>),
    /// `*.txt`: what follows the last dot.
    Extension(Vec<u8>),
    Unknown,
}

impl Pattern {
    /// `None` for a blank line, a comment, and a pattern that can never match. The line has no `\n`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        // Git reads C strings.
        let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(b"#") {
            return None;
        }
        let mut text = trim_spaces(line);
        let negated = text.starts_with(b"!");
        if negated {
            text = &text[1..];
        }
        let dirs_only = text.ends_with(b"/");
        if dirs_only {
            text = &text[..text.len() - 1];
        }
        let by_name = !text.contains(&b'/');
        if !by_name {
            text = text.strip_prefix(b"/").unwrap_or(text);
        }
        if text.is_empty() {
            return None;
        }
        let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let wild = text.iter().position(special).unwrap_or(text.len());
        let (literal, wild) = text.split_at(wild);
        Some(Self { negated, dirs_only, by_name, literal: literal.to_vec(), wild: tokens(wild, by_name)? })
    }

    /// True if the pattern matches an entry. `path` is relative to the folder of the ignore file and ends in
    /// `name`.
    pub fn matches(&self, path: &[u8], name: &[u8], is_dir: bool) -> bool {
        if self.dirs_only && !is_dir {
            return false;
        }
        let text = if self.by_name { name } else { path };
        text.strip_prefix(self.literal.as_slice()).is_some_and(|rest| wild_match(&self.wild, rest))
    }

    pub fn name(&self) -> Name {
        let ends_part = |token: &Token| matches!(token, Token::Byte(b'/') | Token::Folders);
        let cut = self.wild.iter().rposition(ends_part);
        let last = &self.wild[cut.map_or(0, |at| at + 1)..];
        let mut name = match cut {
            // `a**/b` matches `ab` too.
            Some(0) if !matches!(self.literal.last(), None | Some(b'/')) => return Name::Unknown,
            Some(_) => Vec::new(),
            None => {
                let literal = self.literal.rsplit(|byte| *byte == b'/').next();
                literal.unwrap_or_default().to_vec()
            }
        };
        let bytes = |tokens: &[Token]| -> Option<Vec<u8>> {
            let byte = |token: &Token| match token {
                Token::Byte(byte) => Some(*byte),
                _ => None,
            };
            tokens.iter().map(byte).collect()
        };
        if let Some(tail) = bytes(last) {
            name.extend(tail);
            return Name::Exactly(name);
        }
        match last {
            [Token::Star, Token::Byte(b'.'), tail @ ..] if name.is_empty() => match bytes(tail) {
                Some(tail) if !tail.contains(&b'.') => Name::Extension(tail),
                _ => Name::Unknown,
            },
            _ => Name::Unknown,
        }
    }
}

/// Removes trailing spaces, except an escaped one; tabs are kept.
fn trim_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        match byte {
            b' ' => at += 1,
            b'\\' => {
                at = (at + 2).min(line.len());
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    &line[..end]
}

/// `None` for a pattern that can never match: an unclosed set, one of an unknown class, a final `\`.
fn tokens(pattern: &[u8], by_name: bool) -> Option<Vec<Token>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = pattern.get(at) {
        at += 1;
        match byte {
            b'?' => out.push(Token::Any),
            b'\\' => {
                out.push(Token::Byte(*pattern.get(at)?));
                at += 1;
            }
            b'[' => {
                let (set, end) = ByteSet::parse(pattern, at)?;
                out.push(Token::Set(Box::new(set)));
                at = end;
            }
            b'*' => {
                let starts = at == 1 || pattern.get(at.wrapping_sub(2)) == Some(&b'/');
                let first = at;
                while pattern.get(at) == Some(&b'*') {
                    at += 1;
                }
                let double = at > first && starts && !by_name;
                out.push(match (double, &pattern[at..]) {
                    (true, []) => Token::Rest,
                    (true, [b'/', ..]) => {
                        at += 1;
                        Token::Folders
                    }
                    (true, [b'\\', b'/', ..]) => Token::SomeFolders,
                    _ => Token::Star,
                });
            }
            _ => out.push(Token::Byte(byte)),
        }
    }
    Some(out)
}

/// Matches with two backtracking points, which are enough: a later `*` can match all that an earlier one in
/// the same folder could, a later `**` all that any earlier wildcard could.
fn wild_match(tokens: &[Token], text: &[u8]) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut deep: Option<(usize, usize)> = None;
    loop {
        let here = text.get(at).copied();
        let step = match tokens.get(token) {
            None if here.is_none() => return true,
            None => false,
            Some(Token::Rest) => return true,
            Some(Token::Star) => {
                star = Some((token, at));
                true
            }
            Some(Token::Folders | Token::SomeFolders) => {
                deep = Some((token, at));
                star = None;
                true
            }
            Some(Token::Byte(byte)) => {
                at += 1;
                here == Some(*byte)
            }
            Some(Token::Any) => {
                at += 1;
                here.is_some_and(|byte| byte != b'/')
            }
            Some(Token::Set(set)) => {
                at += 1;
                here.is_some_and(|byte| byte != b'/' && set.contains(byte))
            }
        };
        if step {
            token += 1;
            continue;
        }
        if let Some((back, from)) = star {
            match text.get(from) {
                Some(byte) if *byte != b'/' => {
                    star = Some((back, from + 1));
                    (token, at) = (back + 1, from + 1);
                    continue;
                }
                _ => star = None,
            }
        }
        let Some((back, from)) = deep else {
            return false;
        };
        // Folders end after a slash; the slash after some folders is a token of its own.
        let Some(slash) = text[from..].iter().position(|byte| *byte == b'/') else {
            return false;
        };
        let after = from + slash + 1;
        deep = Some((back, after));
        token = back + 1;
        at = match tokens[back] {
            Token::SomeFolders => after - 1,
            _ => after,
        };
    }
}

/// A set such as `[a-z]`.
#[derive(Debug)]
struct ByteSet([u64; 4]);

impl ByteSet {
    /// Parses a set whose `[` is before `at`; also returns the position after its `]`.
    fn parse(pattern: &[u8], mut at: usize) -> Option<(Self, usize)> {
        let mut set = Self([0; 4]);
        let negated = matches!(pattern.get(at), Some(b'!' | b'^'));
        if negated {
            at += 1;
        }
        let first = at;
        // The start of a range, if a `-` follows.
        let mut start: Option<u8> = None;
        loop {
            let byte = *pattern.get(at)?;
            at += 1;
            start = match byte {
                b']' if at - 1 > first => break,
                b'\\' => {
                    let byte = *pattern.get(at)?;
                    at += 1;
                    set.insert(byte);
                    Some(byte)
                }
                b'-' if start.is_some() && !matches!(pattern.get(at), None | Some(b']')) => {
                    let mut end = *pattern.get(at)?;
                    at += 1;
                    if end == b'\\' {
                        end = *pattern.get(at)?;
                        at += 1;
                    }
                    for byte in start?..=end {
                        set.insert(byte);
                    }
                    None
                }
                b'[' if pattern.get(at) == Some(&b':') => {
                    let close = at + 1 + pattern[at + 1..].iter().position(|b| *b == b']')?;
                    match pattern[at + 1..close].strip_suffix(b":") {
                        Some(name) => {
                            let class = class(name)?;
                            (0..=u8::MAX).filter(class).for_each(|b| set.insert(b));
                            at = close + 1;
                            None
                        }
                        // Not a class: a bracket among others.
                        None => {
                            set.insert(b'[');
                            Some(b'[')
                        }
                    }
                }
                _ => {
                    set.insert(byte);
                    Some(byte)
                }
            };
        }
        if negated {
            set.0 = set.0.map(|word| !word);
        }
        Some((set, at))
    }

    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }
}

/// The POSIX classes, limited to ASCII.
fn class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        // Git's own table leaves the vertical tab and the form feed out.
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}
