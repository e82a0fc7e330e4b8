//! Each row is checked whole and split in two at every byte.

use super::*;
use proptest::prelude::*;

fn decode(parts: &[&[u8]]) -> Vec<Input> {
    decode_with(Decoder::default(), parts)
}

fn decode_with(mut decoder: Decoder, parts: &[&[u8]]) -> Vec<Input> {
    let mut out = Vec::new();
    for part in parts {
        decoder.push(part, &mut out);
    }
    if decoder.is_waiting() {
        decoder.time_out(&mut out);
    }
    out
}

fn shown(inputs: &[Input]) -> Vec<String> {
    let show = |input: &Input| match input {
        Input::Key(Key { action: Action::Release, .. }) => "released".into(),
        Input::Key(key) => key.to_string(),
        Input::Paste(text) => format!("paste {text:?}"),
        Input::Focus(on) => format!("focus {on}"),
        Input::Mouse(mouse) => format!("{:?} {} {}", mouse.kind, mouse.column, mouse.row),
        Input::Reply(reply) => format!("{reply:?}"),
    };
    inputs.iter().map(show).collect()
}

/// Checks the inputs decoded from `bytes`, whole and split in two at every byte.
#[track_caller]
fn check(bytes: impl AsRef<[u8]>, expected: &[&str]) {
    let bytes = bytes.as_ref();
    assert_eq!(shown(&decode(&[bytes])), expected, "{:?}", String::from_utf8_lossy(bytes));
    for cut in 0..bytes.len() {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(shown(&decode(&[a, b])), expected, "cut at {cut}");
    }
}

#[test]
fn characters() {
    check("aZ ü日👍", &["a", "Z", "space", "ü", "日", "👍"]);
    check(b"\r\t\x7f\x08\0", &["enter", "tab", "backspace", "backspace", "ctrl+space"]);
    check(b"\x01\x0a\x1a\x1d\x1f", &["ctrl+a", "ctrl+j", "ctrl+z", "ctrl+]", "ctrl+-"]);
    // Broken characters are nothing.
    check(b"a\xffb\xe6\x97c\x80", &["a", "b", "c"]);
}

#[test]
fn cursor_and_function_keys() {
    check("\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F", &["up", "down", "right", "left", "home", "end"]);
    check("\x1bOA\x1bOP\x1bOS\x1bOM\x1bOp", &["up", "f1", "f4", "enter", "0"]);
    check(
        "\x1b[3~\x1b[5~\x1b[6~\x1b[2~\x1b[1~\x1b[4~",
        &["delete", "pageup", "pagedown", "insert", "home", "end"],
    );
    check("\x1b[15~\x1b[17~\x1b[24~\x1b[[A", &["f5", "f6", "f12", "f1"]);
    check("\x1b[1;5A\x1b[1;3D\x1b[3;5~\x1b[1;2R", &["ctrl+up", "alt+left", "ctrl+delete", "shift+f3"]);
    check("\x1b[Z", &["shift+tab"]);
    check("\x1b[E\x1bOE\x1b[57427u", &["clear", "clear", "clear"]);
    // PuTTY and some consoles write two brackets.
    check("\x1b[[5~\x1b[[6~a", &["pageup", "pagedown", "a"]);
}

#[test]
fn modifiers_of_rxvt() {
    check(
        "\x1b[a\x1b[b\x1b[c\x1b[d\x1b[e",
        &["shift+up", "shift+down", "shift+right", "shift+left", "shift+clear"],
    );
    check(
        "\x1bOa\x1bOb\x1bOc\x1bOd\x1bOe",
        &["ctrl+up", "ctrl+down", "ctrl+right", "ctrl+left", "ctrl+clear"],
    );
    check(
        "\x1b[2$\x1b[3$\x1b[5$\x1b[7$\x1b[8$x",
        &["shift+insert", "shift+delete", "shift+pageup", "shift+home", "shift+end", "x"],
    );
    check("\x1b[2^\x1b[7^\x1b[23^\x1b[3@", &["ctrl+insert", "ctrl+home", "ctrl+f11", "ctrl+shift+delete"]);
    check("\x1b\x1b[a\x1b\x1bOc", &["alt+shift+up", "ctrl+alt+right"]);
}

#[test]
fn a_key_of_another_script_commands_as_the_one_in_its_place() {
    check("\x1b[1089::99;5u\x1b[1074::100;5u\x1b[1103::122;5u", &["ctrl+c", "ctrl+d", "ctrl+z"]);
    check("\x1b[1079::112;6u\x1b[1089:1057:99;6:2u", &["ctrl+shift+p", "ctrl+shift+c"]);
    check("\x1b[1089::99;5:3u\x1b[1080::98;3u\x1b[1083::107;9u", &["released", "alt+b", "super+k"]);
    // Greek, Hebrew; a French `é` where `2` is; a key without an equal.
    check("\x1b[968::99;5u\x1b[1489::99;5u\x1b[233::50;5u", &["ctrl+c", "ctrl+c", "ctrl+2"]);
    check("\x1b[1089;5u", &["ctrl+с"]);
    // What Dvorak, Colemak and others have in another place is itself.
    check("\x1b[111::115;5u\x1b[47::91;5u\x1b[49::97;5u", &["ctrl+o", "ctrl+/", "ctrl+1"]);
    // Text is what it is.
    check("\x1b[1089::99u\x1b[1089:1057:99;2u\x1b[1089:1057:99;2;1057u", &["с", "С", "С"]);
}

#[test]
fn a_key_with_hyper_or_meta_types_nothing() {
    check("\x1b[99;17u\x1b[99;33u", &["hyper+c", "hyper+c"]);
    let typed = |bytes: &[u8]| match decode(&[bytes])[..] {
        [Input::Key(key)] => key.typed(),
        _ => None,
    };
    assert_eq!(typed(b"\x1b[99;17u"), None);
    assert_eq!(typed(b"\x1b[99;33u"), None);
    assert_eq!(typed(b"\x1b[99;65u"), Some('c'));
}

#[test]
fn a_key_let_go_after_an_escape_of_one_byte() {
    check("\x1b\x1b[27;129:3u", &["escape", "released"]);
    check("\x1b\x1b[27;1:3u", &["escape", "released"]);
    check("\x1b\x1b[27;1:3ua", &["escape", "released", "a"]);
    // A key that is pressed is an Alt.
    check("\x1b\x1b[1;1:1A", &["alt+up"]);
}

#[test]
fn what_0x08_is_depends_on_the_terminal() {
    check("\x08\x1b\x08", &["backspace", "alt+backspace"]);
    let windows = decode_with(Decoder::new(true), &[b"\x08\x1b\x08\x7f"]);
    assert_eq!(shown(&windows), ["ctrl+backspace", "ctrl+alt+backspace", "backspace"]);
}

#[test]
fn a_control_character_that_two_keys_send_is_both() {
    let twin = |bytes: &[u8]| match decode(&[bytes])[..] {
        [Input::Key(key)] => key.twin().map(|key| key.to_string()),
        _ => panic!("{bytes:?}"),
    };
    for (bytes, expected) in [
        (&b"\x08"[..], Some("ctrl+h")),
        (b"\x1f", Some("ctrl+_")),
        (b"\x1b\x1f", Some("ctrl+alt+_")),
        (b"\x1b\x1b", Some("ctrl+alt+[")),
        (b"\x1b", None),
        (b"\x7f", None),
        (b"-", None),
        (b"\x1b[45;5u", None),
        (b"\x1b[127u", None),
    ] {
        assert_eq!(twin(bytes).as_deref(), expected, "{bytes:?}");
    }
}

#[test]
fn bytes_that_the_kitty_protocol_has_no_use_for_are_shift_enter() {
    check("\x1b\r\n", &["alt+enter", "ctrl+j"]);
    check("\x1b[?0u\x1b\r", &["Keyboard(0)", "alt+enter"]);
    check("\x1b[?7u\x1b[?62c\x1b\r\n", &["Keyboard(7)", "Attributes", "shift+enter", "shift+enter"]);
    check("\x1b[?7u\x1b\x1b\r", &["Keyboard(7)", "escape", "shift+enter"]);
    check(
        "\x1b[?7u\x1b[?62c\x1b[?0u\x1b[?62c\n",
        &["Keyboard(7)", "Attributes", "Keyboard(0)", "Attributes", "ctrl+j"],
    );
    // A terminal that was come back to, which does not know the protocol.
    check("\x1b[?7u\x1b[?62c\x1b[?62c\x1b\r", &["Keyboard(7)", "Attributes", "Attributes", "alt+enter"]);
}

#[test]
fn alt_and_escape() {
    check("\x1bb\x1b\r\x1b\x7f", &["alt+b", "alt+enter", "alt+backspace"]);
    check("\x1b\x1b[A", &["alt+up"]);
    check("\x1b\x01", &["ctrl+alt+a"]);
    check("\x1bü", &["alt+ü"]);
    check("\x1b", &["escape"]);
    check("\x1b[", &["alt+["]);
    check("\x1bO", &["alt+shift+o"]);
}

#[test]
fn keys_with_their_code_points() {
    check("\x1b[97u\x1b[97;5u\x1b[13;2u\x1b[27u", &["a", "ctrl+a", "shift+enter", "escape"]);
    check("\x1b[97;5:1u\x1b[97;5:2u\x1b[97;5:3u", &["ctrl+a", "ctrl+a", "released"]);
    check("\x1b[97:65;2u\x1b[49;2;33u", &["A", "!"]);
    check("\x1b[27;5;13~\x1b[27;2;9~", &["ctrl+enter", "shift+tab"]);
    check("\x1b[57414u\x1b[57400u\x1b[57441;2u", &["enter", "1"]);
    // Caps lock and num lock are no modifiers.
    check("\x1b[97;65u\x1b[97;133u", &["a", "ctrl+a"]);
    // The character itself after its sequence is the same key.
    check("\x1b[97ua", &["a"]);
    check("\x1b[97uaa", &["a", "a"]);
    check("\x1b[97ub", &["a", "b"]);
}

#[test]
fn pastes() {
    check("\x1b[200~a\r\nb\x1b[201~c", &[r#"paste "a\nb""#, "c"]);
    check("\x1b[200~\x1b[201~", &[r#"paste """#]);
    check("\x1b[200~a\x1b[31mb\x1b[201~", &[r#"paste "a\u{1b}[31mb""#]);
    check("\x1b[200~a\x1b[106;5ub\x1b[201~", &[r#"paste "a\nb""#]);
}

#[test]
fn a_paste_beyond_the_limit_is_cut() {
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    decoder.push(b"\x1b[200~", &mut out);
    for _ in 0..20 {
        decoder.push(&vec![b'a'; 1 << 20], &mut out);
        assert!(decoder.held.len() <= PASTE_BYTES_MAX + (2 << 20));
    }
    decoder.push(b"\x1b[20", &mut out);
    decoder.push(b"1~x", &mut out);
    assert!(matches!(&out[..], [Input::Paste(text), Input::Key(_)] if text.len() == PASTE_BYTES_MAX));
}

#[test]
fn answers() {
    check("\x1b[?7u\x1b[?62;4c", &["Keyboard(7)", "Attributes"]);
    check("\x1b]7501;?v=1\x1b\\\x1b]7501;state=idle\x07", &["ProgramStatus"]);
    check("\x1b]11;rgb:ffff/0000/8080\x07", &["Background(255, 0, 128)"]);
    check(
        "\x1b]10;#fff\x07\x1b]4;9;rgb:ff/00/80\x1b\\\x1b]4;x;#fff\x07\x1b]4;256;#fff\x07\x1b]12;#fff\x07",
        &["Foreground(255, 255, 255)", "Palette(9, 255, 0, 128)"],
    );
    check("\x1b]11;rgb:1e/1e/1e\x1b\\x", &["Background(30, 30, 30)", "x"]);
    check("\x1b]11;#1e1e2e\x07\x1b]11;#fff\x07", &["Background(30, 30, 46)", "Background(255, 255, 255)"]);
    check("\x1b]11;#ffff00008080\x07", &["Background(255, 0, 128)"]);
    check(
        "\x1b]11;#\x07\x1b]11;#12345\x07\x1b]11;#é1\x07\x1b]11;#00000000000000f\x07\x1b]11;rgb:0/0\x07",
        &[],
    );
    check("\x1b[?997;1n\x1b[?997;2n", &["Scheme { dark: true }", "Scheme { dark: false }"]);
    check("\x1b[?997;3n\x1b[?997n", &[]);
    check("\x1b[6;18;9t", &["Cell { width: 9, height: 18 }"]);
    check("\x1b_Gi=1;OK\x1b\\", &[r#"Graphics("i=1;OK")"#]);
    check("\x1b[I\x1b[O", &["focus true", "focus false"]);
    check(
        "\x1b[<0;3;4M\x1b[<0;3;4m\x1b[<64;1;1M\x1b[<32;2;2M",
        &["Press(0) 2 3", "Release(0) 2 3", "ScrollUp 0 0", "Drag(0) 1 1"],
    );
}

#[test]
fn what_is_not_known_is_never_typed() {
    check("\x1b[?2026;1$y\x1b[12;34R\x1b[>1;2;3c\x1b[99~", &[]);
    check("\x1bP1$r0m\x1b\\\x1b]0;title\x07\x1b^pm\x1b\\\x1bXsos\x1b\\a", &["a"]);
    check("\x1b[M !!a", &["a"]);
    // A sequence that another breaks off.
    check("\x1b[12\x1b[A", &["up"]);
    check("\x1b]0;tit\x1b[A", &["up"]);
}

proptest! {
    /// Splitting the bytes anywhere does not change the inputs.
    #[test]
    fn cuts_change_nothing(bytes in prop::collection::vec(prop_oneof![
        Just(0x1bu8), Just(b'['), Just(b'O'), Just(b'~'), Just(b'2'), Just(b'0'), Just(b'1'), Just(b';'), Just(b'u'), Just(b']'), Just(7u8), any::<u8>()
    ], 0..60), cut in 0usize..60) {
        let (a, b) = bytes.split_at(cut.min(bytes.len()));
        prop_assert_eq!(decode(&[a, b]), decode(&[&bytes]));
        for input in decode(&[&bytes]) {
            if let Input::Key(key) = input && let Code::Char(letter) = key.code {
                prop_assert!(!letter.is_control());
            }
        }
    }
}

#[test]
fn an_escape_right_before_an_answer_is_a_key() {
    for (answer, expected) in [
        ("\x1b[17;1R", Input::Reply(Reply::Position { row: 16, column: 0 })),
        ("\x1b[?62;22c", Input::Reply(Reply::Attributes)),
        ("\x1b[?1u", Input::Reply(Reply::Keyboard(1))),
        ("\x1b[I", Input::Focus(true)),
        ("\x1b]11;rgb:00/00/00\x07", Input::Reply(Reply::Background(0, 0, 0))),
        ("\x1b[200~x\x1b[201~", Input::Paste("x".into())),
    ] {
        let text = format!("\x1b{answer}");
        for cut in 0..=text.len() {
            let mut decoder = Decoder::default();
            decoder.await_position();
            let mut out = Vec::new();
            let (first, rest) = text.split_at(cut);
            decoder.push(first.as_bytes(), &mut out);
            decoder.push(rest.as_bytes(), &mut out);
            let escape = Input::Key(Key::plain(Code::Escape));
            assert_eq!(out, [escape, expected.clone()], "{answer:?} {cut}");
            // What comes then has no Alt of it.
            out.clear();
            decoder.push(b"a", &mut out);
            assert_eq!(out, [Input::Key(Key::plain(Code::Char('a')))]);
        }
    }
}
