//! Text that others have styled: SGR sequences become styles, all other control sequences are dropped.

use super::line::Line;
use super::style::{Attributes, Color, Style};

/// The line of `text`, which begins in the style `base`.
pub fn line(text: &str, base: Style) -> Line {
    let mut line = Line::new();
    let mut style = Style::PLAIN;
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (plain, sequence) = rest.split_at(at);
        line.push(plain, style.over(base));
        let (end, parameters) = scan(sequence.as_bytes());
        if let Some(parameters) = parameters.and_then(|range| sequence.get(range)) {
            style = apply(style, parameters);
        }
        rest = sequence.get(end..).unwrap_or_default();
    }
    line.push(rest, style.over(base));
    line
}

/// The end of the control sequence that `bytes` begin with, and the parameters of an SGR sequence.
fn scan(bytes: &[u8]) -> (usize, Option<std::ops::Range<usize>>) {
    let ends_at = |from: usize, is_end: &dyn Fn(u8) -> bool| {
        bytes.iter().skip(from).position(|&byte| is_end(byte)).map_or(bytes.len(), |at| from + at + 1)
    };
    match bytes.get(1) {
        Some(b'[') => {
            let end = ends_at(2, &|byte| (0x40..=0x7e).contains(&byte));
            let is_sgr = end > 2 && bytes.get(end - 1) == Some(&b'm');
            (end, is_sgr.then(|| 2..end - 1))
        }
        // Strings up to BEL or the string terminator.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = ends_at(2, &|byte| byte == 7 || byte == 0x1b);
            let has_terminator = bytes.get(end - 1) == Some(&0x1b) && bytes.get(end) == Some(&b'\\');
            (end + usize::from(has_terminator), None)
        }
        Some(byte) if byte.is_ascii() => (2, None),
        _ => (1, None),
    }
}

/// `style` after the parameters of an SGR sequence. Unknown ones are passed over.
fn apply(mut style: Style, parameters: &str) -> Style {
    let mut numbers = parameters.split([';', ':']).map(|number| number.parse::<u16>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        let small = |number: u16| u8::try_from(number).unwrap_or(u8::MAX);
        match number {
            0 => style = Style::PLAIN,
            1 => style = style.with(Attributes::BOLD),
            2 => style = style.with(Attributes::DIM),
            3 => style = style.with(Attributes::ITALIC),
            4 => style = style.with(Attributes::UNDERLINE),
            7 => style = style.with(Attributes::INVERSE),
            9 => style = style.with(Attributes::STRIKE),
            22 => style.attributes = style.attributes.without(Attributes::BOLD | Attributes::DIM),
            23 => style.attributes = style.attributes.without(Attributes::ITALIC),
            24 => style.attributes = style.attributes.without(Attributes::UNDERLINE),
            27 => style.attributes = style.attributes.without(Attributes::INVERSE),
            29 => style.attributes = style.attributes.without(Attributes::STRIKE),
            30..=37 => style.foreground = Color::Indexed(small(number - 30)),
            40..=47 => style.background = Color::Indexed(small(number - 40)),
            90..=97 => style.foreground = Color::Indexed(small(number - 82)),
            100..=107 => style.background = Color::Indexed(small(number - 92)),
            39 => style.foreground = Color::Default,
            49 => style.background = Color::Default,
            38 | 48 => {
                let mut next = || numbers.next().map(small).unwrap_or_default();
                let color = match next() {
                    5 => Color::Indexed(next()),
                    2 => Color::Rgb(next(), next(), next()),
                    _ => continue,
                };
                match number {
                    38 => style.foreground = color,
                    _ => style.background = color,
                }
            }
            _ => {}
        }
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_kept_and_other_sequences_are_not() {
        let rows = [
            ("plain", "plain", 1),
            ("\x1b[31mred\x1b[0m plain", "red plain", 2),
            ("\x1b[1;38;5;12mx\x1b[22my\x1b[39mz", "xyz", 3),
            ("\x1b[38;2;1;2;3mrgb", "rgb", 1),
            ("a\x1b[2Jb\x1b[10;10Hc", "abc", 1),
            ("a\x1b]0;title\x07b\x1b]8;;x\x1b\\c", "abc", 1),
            ("a\x1b(0b\x1b", "a0b", 1),
            ("cut \x1b[31", "cut ", 1),
        ];
        for (text, expected, spans) in rows {
            let line = line(text, Style::PLAIN);
            let shown = if text.contains("\x1b(") { "a0b" } else { expected };
            assert_eq!(line.text(), shown, "{text:?}");
            assert_eq!(line.spans().count(), spans, "{text:?}");
        }
        let red = line("\x1b[31mr\x1b[mx", Style::PLAIN);
        let styles: Vec<Color> = red.spans().map(|span| span.style.foreground).collect();
        assert_eq!(styles, [Color::Indexed(1), Color::Default]);
    }
}
