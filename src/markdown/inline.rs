//! Parses the text of a block into inlines.
//!
//! One pass from left to right makes pieces; marks that may begin or end a style wait in a list until their
//! partner comes, brackets wait on a stack, as in the appendix of the CommonMark specification. Repeated
//! searches (for the end of a code span, the opener of a style, the end of an address) are bounded or cached,
//! so that the time is linear.

use super::formula::Ends;
use super::link::{decode, target};
use super::{DEPTH_MAX, Inline, Style};
use std::collections::HashMap;

pub fn inlines(text: &str) -> Vec<Inline> {
    let mut parser = Parser {
        text,
        at: 0,
        pieces: Vec::new(),
        runs: Vec::new(),
        brackets: Vec::new(),
        link_floor: 0,
        ticks: None,
        ends: Ends::default(),
    };
    parser.pieces();
    parser.styles(0);
    shallow(parser.pieces)
}

enum Piece {
    Done(Inline),
    /// An address that is its own link; becomes text inside another link.
    Address {
        url: String,
        text: String,
    },
    /// Marks that may style adjacent text. In order: marks that end a style, unmatched marks as text, marks
    /// that begin a style.
    Run {
        mark: char,
        closes: Vec<Style>,
        left: usize,
        opens: Vec<Style>,
    },
}

/// A run of marks that may still be paired.
struct Run {
    piece: usize,
    mark: char,
    left: usize,
    /// Marks at the start of parsing.
    len: usize,
    can_open: bool,
    can_close: bool,
    previous: Option<usize>,
    next: Option<usize>,
    gone: bool,
}

struct Bracket {
    piece: usize,
    is_image: bool,
    /// Number of runs before the bracket.
    runs: usize,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    pieces: Vec<Piece>,
    runs: Vec<Run>,
    brackets: Vec<Bracket>,
    /// Brackets below this one on the stack contain a link, so they cannot become links.
    link_floor: usize,
    /// Positions of backtick runs by length, the last first; computed on first use.
    ticks: Option<HashMap<usize, Vec<usize>>>,
    ends: Ends,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn pieces(&mut self) {
        while let Some(first) = self.rest().chars().next() {
            let rest = self.rest();
            match first {
                '$' => self.formula(|parser| parser.text(1)),
                '\\' if rest.starts_with("\\(") || rest.starts_with("\\[") => {
                    self.formula(|parser| parser.escape(rest));
                }
                '\\' => self.escape(rest),
                '`' => self.code(rest),
                '*' | '_' | '~' => self.run(rest, first),
                '[' => self.bracket(1, false),
                '!' if rest.starts_with("![") => self.bracket(2, true),
                ']' => self.close_bracket(),
                '<' => self.angle(rest),
                '&' => self.entity(rest),
                '\n' => self.line_end(false, 1),
                'h' if rest.starts_with("http://") || rest.starts_with("https://") => {
                    self.address(rest);
                }
                _ => {
                    let len = first.len_utf8();
                    let after = rest.get(len..).unwrap_or_default();
                    self.text(len + plain_len(after));
                }
            }
        }
    }

    fn push(&mut self, inline: Inline) {
        self.pieces.push(Piece::Done(inline));
    }

    /// Adds `len` bytes as text.
    fn text(&mut self, len: usize) {
        let end = self.at + len;
        let text = self.text.get(self.at..end).unwrap_or_default();
        self.at = end;
        self.push_text(text);
    }

    fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Done(Inline::Text(last))) => last.push_str(text),
            _ => self.push(Inline::Text(text.to_owned())),
        }
    }

    /// Parses a formula at the current position, or calls `otherwise` if there is none.
    fn formula(&mut self, otherwise: impl FnOnce(&mut Self)) {
        match self.ends.formula(self.text, self.at) {
            Some((formula, behind)) => {
                self.push(Inline::Formula(formula));
                self.at = behind;
            }
            None => otherwise(self),
        }
    }

    fn escape(&mut self, rest: &str) {
        match rest.chars().nth(1) {
            Some('\n') => self.line_end(true, 2),
            Some(mark) if mark.is_ascii_punctuation() => {
                self.at += 1;
                self.text(1);
            }
            _ => self.text(1),
        }
    }

    fn line_end(&mut self, hard: bool, len: usize) {
        let mut hard = hard;
        if let Some(Piece::Done(Inline::Text(last))) = self.pieces.last_mut() {
            let kept = last.trim_end_matches(' ').len();
            hard |= last.len() - kept >= 2;
            last.truncate(kept);
        }
        self.push(if hard { Inline::HardBreak } else { Inline::SoftBreak });
        self.at += len;
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn code(&mut self, rest: &str) {
        let len = run_len(rest, '`');
        let text = self.text;
        let ticks = self.ticks.get_or_insert_with(|| tick_runs(text));
        let start = self.at + len;
        // Runs behind us are of no use any more.
        let ends = ticks.get_mut(&len).map(|places| {
            while places.last().is_some_and(|place| *place < start) {
                places.pop();
            }
            places.last().copied()
        });
        let Some(end) = ends.flatten() else {
            return self.text(len);
        };
        let code = self.text.get(start..end).unwrap_or_default();
        let code = code.replace('\n', " ");
        let padded = code.len() > 2 && code.starts_with(' ') && code.ends_with(' ');
        let inner = code.get(1..code.len().saturating_sub(1));
        let code = match inner {
            Some(inner) if padded && !inner.trim().is_empty() => inner.to_owned(),
            _ => code,
        };
        self.push(Inline::Code(code));
        self.at = end + len;
    }

    fn run(&mut self, rest: &str, mark: char) {
        let len = run_len(rest, mark);
        let before = self.text.get(..self.at).and_then(|t| t.chars().next_back());
        let after = rest.get(len..).and_then(|text| text.chars().next());
        let blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let sign = |c: Option<char>| c.is_some_and(is_punctuation);
        let left = !blank(after) && (!sign(after) || blank(before) || sign(before));
        let right = !blank(before) && (!sign(before) || blank(after) || sign(after));
        let (can_open, can_close) = match mark {
            '_' => (left && (!right || sign(before)), right && (!left || sign(after))),
            _ => (left, right),
        };
        if (mark == '~' && len != 2) || !(can_open || can_close) {
            return self.text(len);
        }
        self.at += len;
        self.runs.push(Run {
            piece: self.pieces.len(),
            mark,
            left: len,
            len,
            can_open,
            can_close,
            previous: None,
            next: None,
            gone: false,
        });
        self.pieces.push(Piece::Run { mark, closes: Vec::new(), left: len, opens: Vec::new() });
    }

    fn bracket(&mut self, len: usize, is_image: bool) {
        self.brackets.push(Bracket { piece: self.pieces.len(), is_image, runs: self.runs.len() });
        // A piece of its own: it may become the beginning of a link.
        let text = if is_image { "![" } else { "[" };
        self.push(Inline::Text(text.to_owned()));
        self.push(Inline::Text(String::new()));
        self.at += len;
    }

    fn close_bracket(&mut self) {
        let Some(bracket) = self.brackets.pop() else {
            return self.text(1);
        };
        let in_link = !bracket.is_image && self.brackets.len() < self.link_floor;
        self.link_floor = self.link_floor.min(self.brackets.len());
        let target = self.rest().get(1..).and_then(target);
        let Some((url, len)) = target.filter(|_| !in_link) else {
            return self.text(1);
        };
        self.at += 1 + len;
        self.styles(bracket.runs);
        if bracket.is_image {
            let inside = shallow(self.pieces.drain(bracket.piece..).skip(1).collect());
            let alt = super::plain(&inside);
            return self.push(Inline::Image { url, alt });
        }
        for piece in self.pieces.iter_mut().skip(bracket.piece) {
            if let Piece::Address { text, .. } = piece {
                *piece = Piece::Done(Inline::Text(std::mem::take(text)));
            }
        }
        if let Some(piece) = self.pieces.get_mut(bracket.piece) {
            *piece = Piece::Done(Inline::OpenLink { url });
        }
        self.push(Inline::CloseLink);
        self.link_floor = self.brackets.len();
    }

    /// Parses `<https://address>` or `<name@host>`; any other angle bracket is text.
    fn angle(&mut self, rest: &str) {
        let inside = rest.get(1..).unwrap_or_default();
        let end = inside.find(|c: char| c == '>' || c == '<' || c.is_whitespace());
        let Some((address, _)) =
            end.and_then(|end| inside.split_at_checked(end)).filter(|(_, after)| after.starts_with('>'))
        else {
            return self.text(1);
        };
        let scheme = address.split_once(':').is_some_and(|(scheme, _)| {
            let rest = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
            (2..=32).contains(&scheme.len())
                && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(rest)
        });
        let mail = address.split_once('@').is_some_and(|(name, host)| {
            let host = host
                .split('.')
                .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
            !name.is_empty() && host && !name.contains(['\\', ':', '/', '"'])
        });
        let url = match (scheme, mail) {
            (true, _) => address.to_owned(),
            (_, true) => format!("mailto:{address}"),
            _ => return self.text(1),
        };
        self.at += address.len() + 2;
        let text = address.to_owned();
        self.pieces.push(Piece::Address { url, text });
    }

    /// Parses a bare address.
    fn address(&mut self, rest: &str) {
        let before = self.text.get(..self.at).and_then(|t| t.chars().next_back());
        let end = rest.find(|c: char| c.is_whitespace() || c.is_control() || "<`\"".contains(c));
        let mut address = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        if !self.brackets.is_empty()
            && let Some((inside, _)) = address.split_once(']')
        {
            address = inside;
        }
        let count = |text: &str, c: u8| text.bytes().filter(|byte| *byte == c).count();
        let mut unpaired = count(address, b')').saturating_sub(count(address, b'('));
        while let Some(last) = address.chars().next_back() {
            match last {
                ')' if unpaired > 0 => unpaired -= 1,
                '?' | '!' | '.' | ',' | ':' | ';' | '*' | '_' | '~' | '\'' | '|' => {}
                _ => break,
            }
            address = address.get(..address.len() - 1).unwrap_or_default();
        }
        let named = address.split_once("//").is_some_and(|(_, host)| !host.is_empty());
        if !named || before.is_some_and(char::is_alphanumeric) {
            return self.text(1);
        }
        self.at += address.len();
        let (url, text) = (address.to_owned(), address.to_owned());
        self.pieces.push(Piece::Address { url, text });
    }

    fn entity(&mut self, rest: &str) {
        const LONGEST: usize = 10;
        let end = rest.bytes().take(LONGEST).position(|byte| byte == b';');
        let decoded = end.and_then(|end| Some((decode(rest.get(1..end)?)?, end + 1)));
        match decoded {
            Some((decoded, len)) => {
                self.push_text(decoded.encode_utf8(&mut [0; 4]));
                self.at += len;
            }
            None => self.text(1),
        }
    }

    /// Pairs the runs from `bottom` on, then removes them.
    fn styles(&mut self, bottom: usize) {
        let count = self.runs.len();
        for at in bottom..count {
            if let Some(run) = self.runs.get_mut(at) {
                run.previous = (at > bottom).then(|| at - 1);
                run.next = (at + 1 < count).then_some(at + 1);
            }
        }
        // Below these places there is no opener for such a closer.
        let mut floors: HashMap<(char, bool, usize), usize> = HashMap::new();
        let mut next = (bottom < count).then_some(bottom);
        while let Some(at) = next {
            let Some(closer) = self.runs.get(at).filter(|closer| closer.can_close) else {
                next = self.runs.get(at).and_then(|run| run.next);
                continue;
            };
            let kind = (closer.mark, closer.can_open, closer.len % 3);
            let floor = floors.get(&kind).copied().unwrap_or(bottom);
            let mut before = closer.previous;
            let opener = loop {
                match before.and_then(|at| Some((at, self.runs.get(at)?))) {
                    Some((at, run)) if at >= floor => {
                        if run.can_open && run.mark == closer.mark && may_pair(run, closer) {
                            break Some(at);
                        }
                        before = run.previous;
                    }
                    _ => break None,
                }
            };
            match opener {
                Some(opener) => {
                    self.pair(opener, at);
                    next = match self.runs.get(at) {
                        Some(run) if run.gone => run.next,
                        _ => Some(at),
                    };
                }
                None => {
                    floors.insert(kind, at);
                    next = closer.next;
                    if !closer.can_open {
                        self.forget(at);
                    }
                }
            }
        }
        self.runs.truncate(bottom);
    }

    /// Makes a style from two runs. Runs between them can no longer be paired.
    fn pair(&mut self, opener: usize, closer: usize) {
        let (Some(first), Some(last)) = (self.runs.get(opener), self.runs.get(closer)) else {
            return;
        };
        let (used, style) = match last.mark {
            '~' => (2, Style::Strike),
            _ if first.left >= 2 && last.left >= 2 => (2, Style::Strong),
            _ => (1, Style::Emphasis),
        };
        let (first, last) = (first.piece, last.piece);
        if let Some(Piece::Run { left, opens, .. }) = self.pieces.get_mut(first) {
            *left -= used;
            opens.push(style);
        }
        if let Some(Piece::Run { left, closes, .. }) = self.pieces.get_mut(last) {
            *left -= used;
            closes.push(style);
        }
        if let Some(run) = self.runs.get_mut(opener) {
            run.next = Some(closer);
        }
        if let Some(run) = self.runs.get_mut(closer) {
            run.previous = Some(opener);
        }
        for at in [opener, closer] {
            if let Some(run) = self.runs.get_mut(at) {
                run.left -= used;
                if run.left == 0 {
                    self.forget(at);
                }
            }
        }
    }

    /// Removes a run from the list. Its link to the next run is kept.
    fn forget(&mut self, at: usize) {
        let Some(run) = self.runs.get_mut(at) else {
            return;
        };
        run.gone = true;
        let (previous, next) = (run.previous, run.next);
        if let Some(run) = previous.and_then(|at| self.runs.get_mut(at)) {
            run.next = next;
        }
        if let Some(run) = next.and_then(|at| self.runs.get_mut(at)) {
            run.previous = previous;
        }
    }
}

/// CommonMark's rule of three: a run that can open and close pairs only if the sum of the lengths is no
/// multiple of three.
fn may_pair(opener: &Run, closer: &Run) -> bool {
    let both = opener.can_close || closer.can_open;
    let thirds = (opener.len + closer.len).is_multiple_of(3);
    !(both && thirds && !(opener.len.is_multiple_of(3) && closer.len.is_multiple_of(3)))
}

/// Bytes before the next character that may be a mark.
fn plain_len(text: &str) -> usize {
    let is_mark = |(at, byte): &(usize, u8)| match byte {
        b'\\' | b'$' | b'`' | b'*' | b'_' | b'~' | b'[' | b'!' | b']' | b'<' | b'&' | b'\n' => true,
        b'h' => text.get(*at..).is_some_and(|rest| rest.starts_with("http")),
        _ => false,
    };
    text.bytes().enumerate().find(is_mark).map_or(text.len(), |(at, _)| at)
}

fn run_len(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

/// Positions of backtick runs by length, the last first.
fn tick_runs(text: &str) -> HashMap<usize, Vec<usize>> {
    let mut runs: HashMap<usize, Vec<usize>> = HashMap::new();
    let bytes = text.as_bytes();
    let mut end = bytes.len();
    while let Some(last) = bytes.get(..end).and_then(|part| memchr::memrchr(b'`', part)) {
        let before = bytes.get(..last).unwrap_or_default();
        let start = before.iter().rposition(|byte| *byte != b'`').map_or(0, |at| at + 1);
        runs.entry(last + 1 - start).or_default().push(start);
        end = start;
    }
    runs
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || (!c.is_ascii() && !c.is_alphanumeric() && !c.is_whitespace() && !c.is_control())
}

/// The inlines of `pieces`, with adjacent texts joined and too deeply nested styles dropped.
fn shallow(pieces: Vec<Piece>) -> Vec<Inline> {
    let mut out = Out::default();
    for piece in pieces {
        match piece {
            Piece::Done(inline) => out.push(inline),
            Piece::Address { url, text } => {
                out.push(Inline::OpenLink { url });
                out.push(Inline::Text(text));
                out.push(Inline::CloseLink);
            }
            Piece::Run { mark, closes, left, opens } => {
                closes.into_iter().for_each(|style| out.push(Inline::Close(style)));
                out.push(Inline::Text(String::from(mark).repeat(left)));
                // The pair found first is the innermost.
                let opens = opens.into_iter().rev();
                opens.for_each(|style| out.push(Inline::Open(style)));
            }
        }
    }
    out.inlines
}

#[derive(Default)]
struct Out {
    inlines: Vec<Inline>,
    depth: usize,
}

impl Out {
    fn push(&mut self, inline: Inline) {
        match inline {
            Inline::Text(text) if text.is_empty() => {}
            Inline::Text(text) => match self.inlines.last_mut() {
                Some(Inline::Text(last)) => last.push_str(&text),
                _ => self.inlines.push(Inline::Text(text)),
            },
            Inline::Open(_) => {
                self.depth += 1;
                if self.depth <= DEPTH_MAX {
                    self.inlines.push(inline);
                }
            }
            Inline::Close(_) => {
                if self.depth <= DEPTH_MAX {
                    self.inlines.push(inline);
                }
                self.depth = self.depth.saturating_sub(1);
            }
            other => self.inlines.push(other),
        }
    }
}
