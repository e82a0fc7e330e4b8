//! Every frame is checked in a terminal emulator.

use super::emulator::{Terminal, cells, narrowed, plain};
use super::*;
use crate::tui::style::{Color, Style};
use proptest::prelude::*;

fn lines(texts: &[&str]) -> Vec<Line> {
    texts.iter().map(|text| plain(text)).collect()
}

fn with_cursor(text: &str, cursor: usize) -> Line {
    let mut line = plain(text);
    line.cursor = Some(cursor);
    line
}

#[test]
fn what_is_printed_stays_above_what_is_live() {
    let mut terminal = Terminal::new(20, 6);
    terminal.draw(&["one"], &lines(&["> ", "status"]));
    assert_eq!(terminal.rows(), ["one", "> ", "status"]);
    terminal.draw(&["two", "three"], &lines(&["> a", "status"]));
    assert_eq!(terminal.rows(), ["one", "two", "three", "> a", "status"]);
    terminal.draw(&["four", "five"], &lines(&["> a", "status"]));
    assert_eq!(terminal.everything(), ["one", "two", "three", "four", "five", "> a", "status"]);
    terminal.draw(&[], &lines(&["> a"]));
    assert_eq!(terminal.rows(), ["two", "three", "four", "five", "", "> a"]);
    terminal.draw(&["six"], &[]);
    assert_eq!(terminal.rows(), ["two", "three", "four", "five", "six"]);
}

#[test]
fn a_live_region_on_the_last_row_stays_there() {
    let five = lines(&["1", "2", "3", "> ", "status"]);
    let two = lines(&["> ", "status"]);
    for is_located in [false, true] {
        let mut terminal = Terminal::new(20, 8);
        terminal.draw(&["a"], &two);
        if is_located {
            terminal.screen.locate(usize::from(terminal.cursor().0));
        }
        // There are rows below: it ends where it ends.
        terminal.draw(&[], &five);
        terminal.draw(&["b"], &two);
        assert_eq!(terminal.rows(), ["a", "b", "> ", "status"]);
        terminal.draw(&["c", "d"], &five);
        let screen = |terminal: &Terminal| terminal.rows().join(" ");
        assert_eq!(screen(&terminal), "b c d 1 2 3 >  status");
        // Printed lines take the rows of a region that becomes shorter; nothing scrolls.
        terminal.draw(&["e", "f", "g"], &two);
        assert_eq!(screen(&terminal), "b c d e f g >  status");
        terminal.draw(&[], &five);
        assert_eq!(screen(&terminal), "e f g 1 2 3 >  status");
        terminal.draw(&["h"], &two);
        assert_eq!(screen(&terminal), "e f g h   >  status");
        // The empty rows are filled before anything scrolls.
        terminal.draw(&["i"], &lines(&["x", "> ", "status"]));
        assert_eq!(screen(&terminal), "e f g h i x >  status");
        terminal.draw(&["j", "k"], &two);
        assert_eq!(screen(&terminal), "f g h i j k >  status");
        let all = terminal.everything().join(" ");
        assert_eq!(all, "a b c d e f g h i j k >  status");
        // A theme that changes draws all of it again.
        let out = terminal.screen.clear();
        terminal.parser.process(out.as_bytes());
        terminal.draw(&[], &lines(&["status"]));
        assert_eq!(screen(&terminal), "f g h i j k  status");
    }
}

#[test]
fn what_is_there_for_a_while_covers_printed_lines_and_gives_them_back() {
    let two = lines(&["> ", "status"]);
    let five = lines(&["> /", "1", "2", "3", "status"]);
    let mut terminal = Terminal::new(20, 8);
    terminal.draw(&["a", "b", "c", "d"], &two);
    let screen = |terminal: &mut Terminal| terminal.everything().join(" ");
    terminal.screen.locate(usize::from(terminal.cursor().0));
    for _ in 0..2 {
        terminal.screen.set_overlay(3);
        terminal.draw(&[], &five);
        assert_eq!(screen(&mut terminal), "a b c > / 1 2 3 status");
        terminal.screen.set_overlay(0);
        terminal.draw(&[], &two);
        // It did not reach the last row, and does not now.
        assert_eq!(screen(&mut terminal), "a b c d >  status");
    }
    terminal.draw(&["e", "f", "g"], &two);
    terminal.screen.set_overlay(3);
    terminal.draw(&[], &five);
    assert_eq!(screen(&mut terminal), "a b c d > / 1 2 3 status");
    // What is printed meanwhile comes below what is covered, and is covered, too.
    terminal.draw(&["h"], &five);
    assert_eq!(screen(&mut terminal), "a b c d e > / 1 2 3 status");
    terminal.screen.set_overlay(0);
    terminal.draw(&["i", "j"], &two);
    assert_eq!(screen(&mut terminal), "a b c d e f g h i j >  status");
    terminal.draw(&["k", "l", "m"], &two);
    terminal.screen.set_overlay(3);
    terminal.draw(&[], &five);
    let out = terminal.screen.clear();
    terminal.parser.process(out.as_bytes());
    assert_eq!(screen(&mut terminal), "a b c d e f g h i j k l m");
}

#[test]
fn only_what_changed_is_written() {
    let mut terminal = Terminal::new(40, 10);
    let long = "a line that stays as it is, 38 cells.";
    terminal.draw(&[], &lines(&[long, long, "12 tokens", long]));
    terminal.draw(&[], &lines(&[long, long, "12 tokens", long]));
    assert_eq!(terminal.written, 0);
    terminal.draw(&[], &lines(&[long, long, "13 tokens", long]));
    assert_eq!(terminal.rows(), [long, long, "13 tokens", long]);
    let marks = "\x1b[?2026h\x1b[?2026l".len();
    assert!(terminal.written <= marks + "\x1b[1A\r\x1b[1C\x1b[K3 tokens\n\r".len(), "{}", terminal.written);
}

#[test]
fn a_row_that_becomes_shorter_is_erased_as_a_whole() {
    let mut terminal = Terminal::new(40, 10);
    terminal.draw(&[], &lines(&["a longer row", "status"]));
    let out = terminal.screen.draw(&[], &lines(&["a long", "status"]));
    assert!(out.contains("\x1b[Ka long\n"), "{out:?}");
}

#[test]
fn the_cursor_is_where_the_line_says() {
    let mut terminal = Terminal::new(10, 5);
    terminal.draw(&["x"], &[plain("----"), with_cursor("> ab", 3), plain("----")]);
    assert_eq!(terminal.cursor(), (2, 3));
    assert!(!terminal.parser.screen().hide_cursor());
    terminal.draw(&[], &[plain("----"), with_cursor("> ab", 4), plain("----")]);
    assert_eq!(terminal.cursor(), (2, 4));
    terminal.draw(&[], &[plain("----"), with_cursor("> 90123456", 10), plain("----")]);
    assert_eq!(terminal.cursor(), (2, 9));
    terminal.draw(&[], &lines(&["----"]));
    assert!(terminal.parser.screen().hide_cursor());
}

#[test]
fn full_rows_and_wide_characters_fit() {
    let mut terminal = Terminal::new(6, 5);
    terminal.draw(&["abcdef", "abcdefgh"], &lines(&["日本語x", "日本語"]));
    assert_eq!(terminal.rows(), ["abcdef", "abcdef", "gh", "日本…", "日本語"]);
    terminal.draw(&[], &lines(&["日本語", "日本語"]));
    assert_eq!(terminal.rows(), ["abcdef", "abcdef", "gh", "日本語", "日本語"]);
}

#[test]
fn a_frame_higher_than_the_screen_shows_its_end() {
    let mut terminal = Terminal::new(10, 3);
    terminal.draw(&["above"], &lines(&["1", "2", "3", "4", "5"]));
    assert_eq!(terminal.rows(), ["3", "4", "5"]);
    terminal.draw(&[], &lines(&["1", "2", "3", "4", "5", "6"]));
    assert_eq!(terminal.rows(), ["4", "5", "6"]);
    assert_eq!(terminal.everything(), ["above", "4", "5", "6"]);
}

#[test]
fn another_size_fills_the_screen_again() {
    let mut terminal = Terminal::new(20, 6);
    terminal.draw(&["one two three", "four"], &lines(&["> abc", "status"]));
    terminal.parser.screen_mut().set_size(cells(4), cells(8));
    let out = terminal.screen.resize(
        Size { columns: 8, rows: 4 },
        &lines(&["one two three", "four"]),
        &lines(&["> abc", "status"]),
    );
    terminal.parser.process(out.as_bytes());
    assert_eq!(terminal.rows(), ["three", "four", "> abc", "status"]);
    terminal.draw(&["five"], &lines(&["> abcd", "status"]));
    assert_eq!(terminal.rows(), ["four", "five", "> abcd", "status"]);
}

/// Rows of a terminal after a change of width: too wide rows continue in further ones.
fn reflowed(old: &Terminal, columns: usize, rows: usize) -> vt100::Parser {
    let mut new = vt100::Parser::new(cells(rows), cells(columns), 1000);
    let (cursor, column) = old.cursor();
    let mut written = Vec::new();
    let mut place = (0, 0);
    for (row, text) in old.rows().iter().enumerate() {
        let letters: Vec<char> = text.chars().collect();
        if row == usize::from(cursor) {
            let column = usize::from(column);
            place = (written.len() + column / columns, column % columns);
        }
        match letters.is_empty() {
            true => written.push(String::new()),
            false => written.extend(letters.chunks(columns).map(|part| part.iter().collect())),
        }
    }
    new.process(written.join("\r\n").as_bytes());
    let scrolled = written.len().saturating_sub(rows);
    let (row, column) = (place.0.saturating_sub(scrolled) + 1, place.1 + 1);
    new.process(format!("\x1b[{row};{column}H").as_bytes());
    new
}

#[test]
fn after_a_change_of_width_only_what_is_live_is_drawn_again() {
    let bar = "─";
    let live = |width: usize| {
        vec![plain(&bar.repeat(width)), with_cursor("typed", 5), plain(&bar.repeat(width)), plain("status")]
    };
    for (from, to, rows) in [(20, 8, 30), (20, 8, 12), (8, 20, 12), (20, 19, 7), (20, 7, 9), (20, 20, 12)] {
        let mut terminal = Terminal::new(from, 12);
        terminal.draw(&["one two three", "four", "five six"], &live(from));
        terminal.screen.locate(usize::from(terminal.cursor().0));
        terminal.draw(&["seven"], &live(from));
        terminal.parser = reflowed(&terminal, to, rows);
        let size = Size { columns: to, rows };
        let at = usize::from(terminal.cursor().0);
        let out = terminal.screen.resize_at(size, at, Some(true), &live(to));
        terminal.parser.process(out.unwrap().as_bytes());
        let all = terminal.everything().join("").replace(' ', "");
        let expected = format!("onetwothreefourfivesixseven{0}typed{0}status", bar.repeat(to));
        assert_eq!(all, expected, "{from} {to} {rows}");
        // It goes on where it is.
        terminal.draw(&["eight"], &live(to));
        let all = terminal.everything().join("").replace(' ', "");
        assert_eq!(all, expected.replace("seven", "seveneight"), "{from} {to} {rows}");
    }
}

#[test]
fn a_width_that_changes_in_steps_leaves_no_copies() {
    let live = |width: usize| {
        let rule = "-".repeat(width);
        vec![plain(""), plain(&rule), with_cursor("typed", 5), plain(&rule), plain("status")]
    };
    for (step, count) in [(1, 3), (1, 30), (3, 3), (3, 30), (7, 6), (7, 30), (30, 30)] {
        let mut terminal = Terminal::new(50, 16);
        terminal.draw(&[], &live(50));
        terminal.screen.locate(usize::from(terminal.cursor().0));
        for number in 0..count {
            terminal.draw(&[&format!("line {number}.")], &live(50));
        }
        let mut columns = 50;
        while columns > 12 {
            columns = (columns - step.min(columns)).max(12);
            terminal.parser = narrowed(&mut terminal, columns);
            let at = usize::from(terminal.cursor().0);
            let size = Size { columns, rows: 16 };
            let out = terminal.screen.resize_at(size, at, Some(true), &live(columns)).unwrap();
            terminal.parser.process(out.as_bytes());
        }
        terminal.draw(&["last."], &live(12));
        let all = terminal.everything();
        let seen: Vec<&str> = all.iter().map(String::as_str).filter(|row| !row.is_empty()).collect();
        let mut expected: Vec<String> = (0..count).map(|number| format!("line {number}.")).collect();
        expected.extend(["last.", &"-".repeat(12), "typed", &"-".repeat(12), "status"].map(String::from));
        assert_eq!(seen, expected, "{step} {count}");
    }
}

#[test]
fn a_terminal_that_cuts_rows_off_keeps_its_cursor() {
    let mut terminal = Terminal::new(20, 8);
    let live = vec![plain("12345678901234567890"), with_cursor("typed", 5), plain("status")];
    terminal.draw(&["one two three", "four"], &live);
    terminal.screen.locate(usize::from(terminal.cursor().0));
    terminal.parser.screen_mut().set_size(cells(8), cells(10));
    let size = Size { columns: 10, rows: 8 };
    let at = usize::from(terminal.cursor().0);
    let live = vec![plain("1234567890"), with_cursor("typed", 5), plain("status")];
    let out = terminal.screen.resize_at(size, at, None, &live).unwrap();
    terminal.parser.process(out.as_bytes());
    assert_eq!(terminal.rows(), ["one two th", "four", "1234567890", "typed", "status"]);
}

#[test]
fn without_a_known_place_nothing_is_said_of_it() {
    let mut terminal = Terminal::new(20, 8);
    terminal.draw(&["one"], &[plain("a row that is long"), with_cursor("live", 1)]);
    let size = Size { columns: 9, rows: 8 };
    assert_eq!(terminal.screen.resize_at(size, 1, None, &[]), None);
    assert!(terminal.screen.resize_at(size, 1, Some(true), &[]).is_some());
}

#[test]
fn colours_are_closed_and_compared() {
    let mut terminal = Terminal::new(10, 3);
    let red = Style::foreground(Color::Indexed(1));
    terminal.draw(&[], &[Line::of("ab", red)]);
    let color = |terminal: &Terminal, column| terminal.parser.screen().cell(0, column).unwrap().fgcolor();
    assert_eq!(color(&terminal, 0), vt100::Color::Idx(1));
    terminal.draw(&[], &[plain("ab")]);
    assert_eq!(color(&terminal, 1), vt100::Color::Default);
}

#[test]
fn what_was_live_can_be_taken_away() {
    let mut terminal = Terminal::new(10, 4);
    terminal.draw(&["one"], &lines(&["> ", "status"]));
    let out = terminal.screen.clear();
    terminal.parser.process(out.as_bytes());
    assert_eq!(terminal.rows(), ["one"]);
    assert_eq!(terminal.cursor(), (1, 0));
}

fn raw(rows: usize, erase: &str) -> Raw {
    Raw {
        rows,
        // An image, and a letter to see where it was drawn; the cursor is left elsewhere.
        sequence: "\x1b_Ga=T,i=1;QUJD\x1b\\X\x1b[1;1H".into(),
        erase: erase.into(),
        instead: lines(&["[picture]"]),
    }
}

#[test]
fn a_raw_block_fills_rows_above_what_is_live() {
    let mut terminal = Terminal::new(20, 6);
    let live = lines(&["> ", "status"]);
    terminal.draw(&["one"], &live);
    let out = terminal.screen.draw_raw(&raw(3, ""), &live);
    terminal.parser.process(out.as_bytes());
    assert_eq!(terminal.rows(), ["one", "X", "", "", "> ", "status"]);
    // At the end of the screen it scrolls first.
    let out = terminal.screen.draw_raw(&raw(2, ""), &live);
    terminal.parser.process(out.as_bytes());
    terminal.draw(&["two"], &live);
    assert_eq!(terminal.everything(), ["one", "X", "", "", "X", "", "two", "> ", "status"]);
}

#[test]
fn a_raw_block_without_room_is_told_of() {
    let mut terminal = Terminal::new(20, 4);
    let live = lines(&["> "]);
    for rows in [0, 4, 100] {
        let out = terminal.screen.draw_raw(&raw(rows, ""), &live);
        terminal.parser.process(out.as_bytes());
    }
    assert_eq!(terminal.rows(), ["[picture]", "[picture]", "[picture]", "> "]);
}

#[test]
fn raw_blocks_on_screen_are_erased_before_it_is_filled_again() {
    let mut terminal = Terminal::new(20, 6);
    let live = lines(&["> "]);
    let size = Size { columns: 10, rows: 6 };
    for erase in ["<first>", "<second>"] {
        let out = terminal.screen.draw_raw(&raw(2, erase), &live);
        terminal.parser.process(out.as_bytes());
        terminal.draw(&["one"], &live);
    }
    let out = terminal.screen.resize(size, &[], &live);
    assert!(out.contains("<first><second>\x1b[H"));
    let out = terminal.screen.draw_raw(&raw(2, "<third>"), &live);
    terminal.parser.process(out.as_bytes());
    terminal.draw(&["1", "2", "3", "4", "5"], &live);
    // What scrolled away stays where it is.
    let out = terminal.screen.resize(size, &[], &live);
    assert!(!out.contains('<'));
}

#[derive(Clone, Debug)]
struct Frame {
    above: Vec<String>,
    live: Vec<String>,
    /// Rows at the end of `live` that are there for a while only.
    overlay: usize,
}

fn frame() -> impl Strategy<Value = Frame> {
    let text = || prop::collection::vec("[ab日é ]{0,9}", 0..5);
    (text(), text(), 0..4_usize).prop_map(|(above, live, overlay)| Frame {
        overlay: overlay.min(live.len()),
        above,
        live,
    })
}

proptest! {
    /// The screen ends as if redrawn from scratch, whatever was there before, and no printed line is lost.
    #[test]
    fn frames_follow_each_other(frames in prop::collection::vec(frame(), 1..8)) {
        let mut terminal = Terminal::new(7, 5);
        let mut printed: Vec<String> = Vec::new();
        for Frame { above, live, overlay } in frames {
            terminal.screen.set_overlay(overlay);
            let above: Vec<&str> = above.iter().map(String::as_str).collect();
            let live: Vec<Line> = live.iter().map(|text| plain(text)).collect();
            terminal.draw(&above, &live);
            let wrapped = above.iter().flat_map(|text| wrap(&plain(text), 7));
            printed.extend(wrapped.map(|line| line.text().trim_end().to_owned()));
            let seen = live.iter().map(|line| line.cut(7).text().trim_end().to_owned());
            // Lines that are covered come back later.
            let uncovered = printed.len() - terminal.screen.covered;
            let mut expected: Vec<String> = printed.iter().take(uncovered).cloned().chain(seen).collect();
            while expected.last().is_some_and(String::is_empty) { expected.pop(); }
            let mut all: Vec<String> = terminal.everything();
            for row in &mut all { row.truncate(row.trim_end().len()); }
            while all.last().is_some_and(String::is_empty) { all.pop(); }
            // A region that became shorter has empty rows above.
            if let Some(surplus) = all.len().checked_sub(expected.len()) && surplus > 0 {
                let gap = all.splice(uncovered..uncovered + surplus, []);
                prop_assert!(gap.into_iter().all(|row| row.is_empty()));
            }
            prop_assert_eq!(all, expected);
        }
    }
}

#[test]
fn a_dumb_terminal_gets_no_sequences() {
    let abilities = Abilities { is_dumb: true, ..Abilities::default() };
    let size = Size { columns: 12, rows: 4 };
    let mut screen = Screen::new(size, abilities);
    let rule = || plain("-----------");
    let red = Line::of("red", Style::foreground(Color::Indexed(1)));
    let mut out = screen.draw(&[red], &[rule(), with_cursor("ab", 2)]);
    assert_eq!(out, "red\r\n-----------\r\nab");
    out = screen.draw(&[], &[rule(), with_cursor("abc", 3)]);
    assert_eq!(out, "\r  \rabc");
    assert_eq!(screen.draw(&[], &[with_cursor("abc", 3)]), "");
    out = screen.draw(&[plain("one")], &[with_cursor("abc", 3)]);
    assert_eq!(out, "\r   \rone\r\nabc");
    out = screen.draw(&[], &lines(&["> yes", "  no"]));
    assert_eq!(out, "\r   \r> yes\r\n  no\r\n");
    assert_eq!(screen.draw(&[], &lines(&["> yes", "  no"])), "");
    assert_eq!(screen.clear(), "");
}
