//! What is typed in the normal and visual modes, as commands. Pure: [`parse`] gets the letters since the last
//! command.

/// Most repetitions of a command.
const COUNT_MAX: usize = 9_999;

/// Ctrl+R.
pub const REDO: char = '\u{12}';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More letters are needed.
    Partial,
    Invalid,
    Done(Command, Option<usize>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Go(Motion),
    Operate(Operator, Target),
    Insert(Place),
    Open {
        above: bool,
    },
    Put {
        before: bool,
    },
    Undo,
    Redo,
    Replace(char),
    SwapCase,
    Join,
    Repeat,
    /// Begins to select, or ends it.
    Select {
        lines: bool,
    },
    SwapEnds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    Left,
    Right,
    Up,
    Down,
    /// Words; `big` ones end at white space only.
    Word {
        big: bool,
    },
    WordBack {
        big: bool,
    },
    WordEnd {
        big: bool,
    },
    LineStart,
    FirstLetter,
    LineEnd,
    Top,
    Bottom,
    Find(Find),
    FindAgain {
        reversed: bool,
    },
}

/// A letter in the line: on it, or one short of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Find {
    pub letter: char,
    pub is_forward: bool,
    pub is_short: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Delete,
    Change,
    Yank,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Motion(Motion),
    Lines,
    Selection,
    Object(Object),
}

/// A text object; `around` includes its delimiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: ObjectKind,
    pub around: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Word { big: bool },
    Quoted(char),
    Bracketed(char, char),
}

/// Where text is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Here,
    Behind,
    FirstLetter,
    LineEnd,
}

/// Reads the letters since the last command.
pub fn parse(keys: &str, is_visual: bool) -> Parsed {
    let (count, rest) = number(keys);
    let mut letters = rest.chars();
    let Some(first) = letters.next() else {
        return Parsed::Partial;
    };
    let rest = letters.as_str();
    let done = |command| Parsed::Done(command, count);
    let on = |operator, motion| done(Command::Operate(operator, Target::Motion(motion)));
    let selected = |operator| done(Command::Operate(operator, Target::Selection));
    match (first, is_visual) {
        ('d' | 'x' | 'X' | 'D', true) => selected(Operator::Delete),
        ('c' | 's' | 'C' | 'S', true) => selected(Operator::Change),
        ('y' | 'Y', true) => selected(Operator::Yank),
        ('o', true) => done(Command::SwapEnds),
        ('d', _) => operated(Operator::Delete, count, rest),
        ('c', _) => operated(Operator::Change, count, rest),
        ('y', _) => operated(Operator::Yank, count, rest),
        ('x', _) => on(Operator::Delete, Motion::Right),
        ('X', _) => on(Operator::Delete, Motion::Left),
        ('s', _) => on(Operator::Change, Motion::Right),
        ('D', _) => on(Operator::Delete, Motion::LineEnd),
        ('C', _) => on(Operator::Change, Motion::LineEnd),
        ('S', _) => done(Command::Operate(Operator::Change, Target::Lines)),
        ('Y', _) => done(Command::Operate(Operator::Yank, Target::Lines)),
        ('i', false) => done(Command::Insert(Place::Here)),
        ('a', false) => done(Command::Insert(Place::Behind)),
        ('I', false) => done(Command::Insert(Place::FirstLetter)),
        ('A', false) => done(Command::Insert(Place::LineEnd)),
        ('o', false) => done(Command::Open { above: false }),
        ('O', false) => done(Command::Open { above: true }),
        ('p', _) => done(Command::Put { before: false }),
        ('P', _) => done(Command::Put { before: true }),
        ('u', false) => done(Command::Undo),
        (REDO, false) => done(Command::Redo),
        ('r', _) => rest.chars().next().map_or(Parsed::Partial, |letter| done(Command::Replace(letter))),
        ('~', _) => done(Command::SwapCase),
        ('J', _) => done(Command::Join),
        ('.', false) => done(Command::Repeat),
        ('v', _) => done(Command::Select { lines: false }),
        ('V', _) => done(Command::Select { lines: true }),
        _ => match motion(first, rest) {
            Found::Done(motion) => done(Command::Go(motion)),
            Found::Partial => Parsed::Partial,
            Found::Invalid => Parsed::Invalid,
        },
    }
}

/// The count at the beginning; a zero is a motion.
fn number(keys: &str) -> (Option<usize>, &str) {
    let end = keys.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(keys.len());
    match keys.split_at_checked(end) {
        Some((digits, rest)) if !digits.is_empty() && !digits.starts_with('0') => {
            (Some(digits.parse().unwrap_or(COUNT_MAX).min(COUNT_MAX)), rest)
        }
        _ => (None, keys),
    }
}

/// What follows an operator.
fn operated(operator: Operator, count: Option<usize>, keys: &str) -> Parsed {
    let (second, rest) = number(keys);
    let mut letters = rest.chars();
    let Some(first) = letters.next() else {
        return Parsed::Partial;
    };
    let count = match (count, second) {
        (Some(a), Some(b)) => Some((a * b).min(COUNT_MAX)),
        (a, b) => a.or(b),
    };
    let own = match operator {
        Operator::Delete => 'd',
        Operator::Change => 'c',
        Operator::Yank => 'y',
    };
    let target = match (first, letters.as_str()) {
        (first, _) if first == own => Found::Done(Target::Lines),
        ('i' | 'a', "") => Found::Partial,
        ('i' | 'a', rest) => object(rest, first == 'a'),
        (first, rest) => match motion(first, rest) {
            Found::Done(motion) => Found::Done(Target::Motion(motion)),
            Found::Partial => Found::Partial,
            Found::Invalid => Found::Invalid,
        },
    };
    match target {
        Found::Done(target) => Parsed::Done(Command::Operate(operator, target), count),
        Found::Partial => Parsed::Partial,
        Found::Invalid => Parsed::Invalid,
    }
}

enum Found<T> {
    Done(T),
    Partial,
    Invalid,
}

fn motion(first: char, rest: &str) -> Found<Motion> {
    Found::Done(match first {
        'h' => Motion::Left,
        'l' | ' ' => Motion::Right,
        'j' => Motion::Down,
        'k' => Motion::Up,
        'w' | 'W' => Motion::Word { big: first == 'W' },
        'b' | 'B' => Motion::WordBack { big: first == 'B' },
        'e' | 'E' => Motion::WordEnd { big: first == 'E' },
        '0' => Motion::LineStart,
        '^' => Motion::FirstLetter,
        '$' => Motion::LineEnd,
        'G' => Motion::Bottom,
        ';' | ',' => Motion::FindAgain { reversed: first == ',' },
        'g' => match rest {
            "" => return Found::Partial,
            "g" => Motion::Top,
            _ => return Found::Invalid,
        },
        'f' | 'F' | 't' | 'T' => match rest.chars().next() {
            None => return Found::Partial,
            Some(letter) => Motion::Find(Find {
                letter,
                is_forward: first.is_ascii_lowercase(),
                is_short: first.eq_ignore_ascii_case(&'t'),
            }),
        },
        _ => return Found::Invalid,
    })
}

fn object(rest: &str, around: bool) -> Found<Target> {
    let kind = match rest {
        "w" => ObjectKind::Word { big: false },
        "W" => ObjectKind::Word { big: true },
        "\"" => ObjectKind::Quoted('"'),
        "'" => ObjectKind::Quoted('\''),
        "`" => ObjectKind::Quoted('`'),
        "(" | ")" | "b" => ObjectKind::Bracketed('(', ')'),
        "[" | "]" => ObjectKind::Bracketed('[', ']'),
        "{" | "}" | "B" => ObjectKind::Bracketed('{', '}'),
        "<" | ">" => ObjectKind::Bracketed('<', '>'),
        _ => return Found::Invalid,
    };
    Found::Done(Target::Object(Object { kind, around }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_commands() {
        let find = |letter, is_forward, is_short| Motion::Find(Find { letter, is_forward, is_short });
        let on = |operator, motion| Command::Operate(operator, Target::Motion(motion));
        for (keys, command, count) in [
            ("w", Command::Go(Motion::Word { big: false }), None),
            ("0", Command::Go(Motion::LineStart), None),
            ("10G", Command::Go(Motion::Bottom), Some(10)),
            ("gg", Command::Go(Motion::Top), None),
            ("d2w", on(Operator::Delete, Motion::Word { big: false }), Some(2)),
            ("3d2w", on(Operator::Delete, Motion::Word { big: false }), Some(6)),
            ("d0", on(Operator::Delete, Motion::LineStart), None),
            ("2dd", Command::Operate(Operator::Delete, Target::Lines), Some(2)),
            ("cfx", on(Operator::Change, find('x', true, false)), None),
            ("yT2", on(Operator::Yank, find('2', false, true)), None),
            ("r1", Command::Replace('1'), None),
            ("99999999999999999999x", on(Operator::Delete, Motion::Right), Some(COUNT_MAX)),
            (
                "ci\"",
                Command::Operate(
                    Operator::Change,
                    Target::Object(Object { kind: ObjectKind::Quoted('"'), around: false }),
                ),
                None,
            ),
        ] {
            assert_eq!(parse(keys, false), Parsed::Done(command, count), "{keys}");
            // Until the last letter more is expected.
            for (at, _) in keys.char_indices() {
                assert_eq!(parse(&keys[..at], false), Parsed::Partial, "{}", &keys[..at]);
            }
        }
        for keys in ["dq", "gx", "q", "diq", "1q"] {
            assert_eq!(parse(keys, false), Parsed::Invalid, "{keys}");
        }
        assert_eq!(
            parse("d", true),
            Parsed::Done(Command::Operate(Operator::Delete, Target::Selection), None)
        );
        assert_eq!(parse("i", true), Parsed::Invalid);
    }
}
