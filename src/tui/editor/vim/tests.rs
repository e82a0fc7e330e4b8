//! Letters as input, text and cursor as output. `|` is the cursor, `<e>` Escape, `<r>` Ctrl+R, `<n>` a line end.

use super::*;
use crate::tui::editor::Editor;
use crate::tui::style::Style;

fn press(editor: &mut Editor, keys: &str) {
    let keymap = Keymap::default();
    let mut rest = keys;
    while let Some(letter) = rest.chars().next() {
        let special = [
            ("<e>", Key::plain(Code::Escape)),
            ("<r>", Key::new(Code::Char('r'), Modifiers::CTRL)),
            ("<n>", Key::new(Code::Enter, Modifiers::SHIFT)),
        ];
        let found = special.into_iter().find(|(name, _)| rest.starts_with(name));
        let (name, key) = found.unwrap_or(("", Key::plain(Code::Char(letter))));
        rest = &rest[name.len().max(if name.is_empty() { letter.len_utf8() } else { 0 })..];
        editor.handle(&key, &keymap);
        let line = editor.buffer.line(editor.cursor.line);
        assert!(line.is_char_boundary(editor.cursor.byte), "{keys}");
        editor.render(20, 5, Style::PLAIN, Style::PLAIN);
    }
}

/// An editor in normal mode.
fn editor(state: &str) -> Editor {
    let (before, behind) = state.split_once('|').unwrap();
    let mut editor = Editor::new();
    editor.set_vim(true);
    editor.set_text(&format!("{before}{behind}"));
    press(&mut editor, "<e>");
    editor.move_to(Position::default().after(before));
    editor
}

fn state(editor: &Editor) -> String {
    let before = editor.buffer.slice(Position::default()..editor.cursor);
    let behind = editor.buffer.slice(editor.cursor..editor.buffer.end());
    format!("{before}|{behind}")
}

#[track_caller]
fn check(before: &str, rows: &[(&str, &str)]) {
    for (keys, after) in rows {
        let mut editor = editor(before);
        press(&mut editor, keys);
        assert_eq!(state(&editor), *after, "{before:?} {keys}");
    }
}

#[test]
fn the_cursor_moves() {
    check(
        "one |two.three\n\n  four fi-ve",
        &[
            ("h", "one| two.three\n\n  four fi-ve"),
            ("2l", "one tw|o.three\n\n  four fi-ve"),
            ("99l", "one two.thre|e\n\n  four fi-ve"),
            ("w", "one two|.three\n\n  four fi-ve"),
            ("2w", "one two.|three\n\n  four fi-ve"),
            ("3w", "one two.three\n|\n  four fi-ve"),
            ("4w", "one two.three\n\n  |four fi-ve"),
            ("W", "one two.three\n|\n  four fi-ve"),
            ("99w", "one two.three\n\n  four fi-v|e"),
            ("e", "one tw|o.three\n\n  four fi-ve"),
            ("3e", "one two.thre|e\n\n  four fi-ve"),
            ("4e", "one two.three\n\n  fou|r fi-ve"),
            ("2E", "one two.three\n\n  fou|r fi-ve"),
            ("b", "|one two.three\n\n  four fi-ve"),
            ("Gb", "one two.three\n|\n  four fi-ve"),
            ("G$b", "one two.three\n\n  four fi-|ve"),
            ("G$B", "one two.three\n\n  four |fi-ve"),
            ("0", "|one two.three\n\n  four fi-ve"),
            ("$", "one two.thre|e\n\n  four fi-ve"),
            ("G", "one two.three\n\n  |four fi-ve"),
            ("G0", "one two.three\n\n|  four fi-ve"),
            ("G0^", "one two.three\n\n  |four fi-ve"),
            ("2G", "one two.three\n|\n  four fi-ve"),
            ("Ggg", "|one two.three\n\n  four fi-ve"),
            ("j", "one two.three\n|\n  four fi-ve"),
            ("jj", "one two.three\n\n  fo|ur fi-ve"),
            ("fe", "one two.thr|ee\n\n  four fi-ve"),
            ("fe;", "one two.thre|e\n\n  four fi-ve"),
            ("fe;,", "one two.thr|ee\n\n  four fi-ve"),
            ("2fe", "one two.thre|e\n\n  four fi-ve"),
            ("te", "one two.th|ree\n\n  four fi-ve"),
            ("te;", "one two.thr|ee\n\n  four fi-ve"),
            ("$Fo", "one tw|o.three\n\n  four fi-ve"),
            ("$To", "one two|.three\n\n  four fi-ve"),
            ("fz", "one |two.three\n\n  four fi-ve"),
        ],
    );
    check("|a\u{301}b 日本", &[("l", "a\u{301}|b 日本"), ("w", "a\u{301}b |日本"), ("$", "a\u{301}b 日|本")]);
}

#[test]
fn operators_delete_change_and_copy() {
    check(
        "one |two three\nfour\nfive",
        &[
            ("x", "one |wo three\nfour\nfive"),
            ("3x", "one | three\nfour\nfive"),
            ("X", "one|two three\nfour\nfive"),
            ("dw", "one |three\nfour\nfive"),
            ("d2w", "one| \nfour\nfive"),
            ("2dw", "one| \nfour\nfive"),
            ("de", "one | three\nfour\nfive"),
            ("db", "|two three\nfour\nfive"),
            ("d0", "|two three\nfour\nfive"),
            ("D", "one| \nfour\nfive"),
            ("dfh", "one |ree\nfour\nfive"),
            ("dth", "one |hree\nfour\nfive"),
            ("dfz", "one |two three\nfour\nfive"),
            ("dd", "|four\nfive"),
            ("2dd", "|five"),
            ("9dd", "|"),
            ("dj", "|five"),
            ("dk", "one |two three\nfour\nfive"),
            ("dG", "|"),
            ("Gdd", "one two three\n|four"),
            ("Gdgg", "|"),
            ("cwTWO<e>", "one TW|O three\nfour\nfive"),
            ("c2wX<e>", "one |X\nfour\nfive"),
            ("ccX<e>", "|X\nfour\nfive"),
            ("CX<e>", "one |X\nfour\nfive"),
            ("sX<e>", "one |Xwo three\nfour\nfive"),
            ("SX<e>", "|X\nfour\nfive"),
            ("cjX<e>", "|X\nfive"),
            ("rX", "one |Xwo three\nfour\nfive"),
            ("3rX", "one XX|X three\nfour\nfive"),
            ("99rX", "one |two three\nfour\nfive"),
            ("~", "one T|wo three\nfour\nfive"),
            ("3~", "one TWO| three\nfour\nfive"),
            ("J", "one two three| four\nfive"),
            ("3J", "one two three four| five"),
            ("yyp", "one two three\n|one two three\nfour\nfive"),
            ("yyP", "|one two three\none two three\nfour\nfive"),
            ("yy2p", "one two three\n|one two three\none two three\nfour\nfive"),
            ("ddp", "four\n|one two three\nfive"),
            ("xp", "one w|to three\nfour\nfive"),
            ("ywP", "one two| two three\nfour\nfive"),
            ("yw$p", "one two threetwo| \nfour\nfive"),
            ("yjGp", "one two three\nfour\nfive\n|one two three\nfour"),
            ("diw", "one | three\nfour\nfive"),
            ("daw", "one |three\nfour\nfive"),
        ],
    );
    check(
        "f(a, |b) \"c d\"",
        &[
            ("ci(x<e>", "f(|x) \"c d\""),
            ("da(", "f| \"c d\""),
            ("di\"", "f(a, b) \"|\""),
            ("da\"", "f(a, b)| "),
            ("dib", "f(|) \"c d\""),
            ("di[", "f(a, |b) \"c d\""),
        ],
    );
}

#[test]
fn text_is_inserted_undone_and_repeated() {
    check(
        "one |two\n  three",
        &[
            ("iX<e>", "one |Xtwo\n  three"),
            ("aX<e>", "one t|Xwo\n  three"),
            ("jIX<e>", "one two\n  |Xthree"),
            ("AX<e>", "one two|X\n  three"),
            ("oX<e>", "one two\n|X\n  three"),
            ("OX<e>", "|X\none two\n  three"),
            ("3ix<e>", "one xx|xtwo\n  three"),
            ("ia b c<e>u", "one |two\n  three"),
            ("cwa b<e>u", "one |two\n  three"),
            ("cwa b<e>u<r>", "one a |b\n  three"),
            ("xxu", "one |wo\n  three"),
            ("xx2u", "one |two\n  three"),
            ("x.", "one |o\n  three"),
            ("x2.", "one| \n  three"),
            ("cwX<e>j^.", "one X\n  |X"),
            ("oa<n>b<e>.", "one two\na\nb\na\n|b\n  three"),
            ("ddu.", "  |three"),
            ("dd.", "|"),
        ],
    );
}

#[test]
fn text_is_selected() {
    check(
        "one |two\nthree\nfour",
        &[
            ("vd", "one |wo\nthree\nfour"),
            ("ved", "one| \nthree\nfour"),
            ("veohd", "on|e\nthree\nfour"),
            ("vjd", "one| \nfour"),
            ("Vd", "|three\nfour"),
            ("Vjd", "|four"),
            ("VjcX<e>", "|X\nfour"),
            ("ve~", "one |TWO\nthree\nfour"),
            ("verx", "one |xxx\nthree\nfour"),
            ("VjJ", "one two| three\nfour"),
            ("yiwjVp", "one two\ntw|o\nfour"),
            ("veyP", "one tw|otwo\nthree\nfour"),
            ("vld.", "one| \nthree\nfour"),
            ("Vd.", "|four"),
            ("v<e>x", "one |wo\nthree\nfour"),
            ("vVvd", "one |wo\nthree\nfour"),
        ],
    );
    let mut editor = editor("a |bc d");
    press(&mut editor, "vl");
    let row = &editor.render(20, 5, Style::PLAIN, Style::PLAIN).lines[0];
    let inverted: Vec<&str> =
        row.spans().filter(|span| span.style != Style::PLAIN).map(|span| span.text).collect();
    assert_eq!(inverted, ["bc"]);
}

#[test]
fn keys_that_are_no_letters_keep_their_meaning() {
    let keymap = Keymap::default();
    let escape = Key::plain(Code::Escape);
    let mut editor = editor("a |b");
    // The application interrupts with it.
    assert_eq!(editor.handle(&escape, &keymap), Outcome::Ignored);
    press(&mut editor, "2d");
    assert_eq!(editor.mode(), Some((Mode::Normal, "2d")));
    assert_eq!(editor.handle(&escape, &keymap), Outcome::Handled);
    assert_eq!(editor.mode(), Some((Mode::Normal, "")));
    assert_eq!(editor.handle(&Key::plain(Code::Enter), &keymap), Outcome::Submit("a b".into()));
    assert_eq!(editor.mode(), Some((Mode::Insert, "")));
    editor.set_vim(false);
    assert_eq!(editor.mode(), None);
    assert_eq!(editor.handle(&escape, &keymap), Outcome::Ignored);
}

/// No letters lead to a panic, or leave the cursor inside a character.
#[test]
fn any_letters_are_read() {
    use proptest::prelude::*;
    let letters = "[hjklwbe0^$gGfFtT;,dcyxXsSDCYiaIAoOpPurJv V~.'\"(1-3é日<]{0,40}";
    proptest!(ProptestConfig::with_cases(512), |(keys in letters, text in "[a-z .(\"é日\n]{0,30}")| {
        let mut editor = editor(&format!("|{text}"));
        press(&mut editor, &keys);
        press(&mut editor, "<e><e>99u");
        let line = editor.buffer.line(editor.cursor.line);
        prop_assert!(editor.cursor.byte < line.len().max(1));
    });
}
