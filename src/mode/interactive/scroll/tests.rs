//! The visible part of a long conversation, and how few items are read for it.

use super::*;
use crate::mode::interactive::event_loop::Client;
use crate::mode::interactive::screen::Frame;
use crate::mode::interactive::testing::Bench;
use crate::runtime::control::user_message;
use crate::tui::key::Input;
use crate::tui::style::Attributes;
use serde_json::json;

/// Alternating prompts and answers, `count` of each.
fn bench(count: usize) -> Bench {
    let mut bench = Bench::new();
    bench.app.config.size.rows = 12;
    {
        let mut log = bench.app.control.log();
        for turn in 0..count {
            let prompt = user_message(format!("prompt {turn} end"), Vec::new());
            log.append_message(&prompt).unwrap();
            let answer = serde_json::from_value(json!({"role": "assistant", "api": "", "provider": "",
                "model": "", "stopReason": "stop",
                "content": [{"type": "text", "text": format!("answer {turn} end\n\nmore")}]}));
            log.append_message(&answer.unwrap()).unwrap();
        }
    }
    bench.app.view.begin();
    bench
}

struct Window {
    bench: Bench,
    scroll: Scroll,
}

impl Window {
    fn new(count: usize) -> Self {
        Self { bench: bench(count), scroll: Scroll::default() }
    }

    fn look_at<T>(&mut self, then: impl FnOnce(&mut Scroll, &Pages<'_>, &Keymap) -> T) -> T {
        let app = &mut self.bench.app;
        let look = Look { is_open: false, ..app.config.look().within(40) };
        let pages = app.view.pages(&mut self.scroll, look, Instant::now());
        then(&mut self.scroll, &pages, &app.config.keymap)
    }

    fn frame(&mut self) -> Vec<String> {
        let feed = self.bench.app.threads.feed.clone();
        let lines = self.look_at(|scroll, pages, _| {
            scroll.look_for(pages, &feed);
            scroll.frame(pages, 10)
        });
        assert!(lines.len() <= 10);
        assert!(lines.iter().all(|line| line.width() <= 40));
        lines.iter().map(|line| line.text().trim().to_owned()).collect()
    }

    fn key(&mut self, key: &Key) -> bool {
        self.look_at(|scroll, pages, keymap| scroll.key(key, keymap, pages))
    }

    fn press(&mut self, keys: &str) {
        for name in keys.split_whitespace() {
            self.key(&Key::parse(name).unwrap());
            self.frame();
        }
    }

    #[track_caller]
    fn check(&mut self, has: &str, has_not: &str) {
        let frame = self.frame();
        assert!(frame.iter().any(|line| line == has), "{has}: {frame:?}");
        assert!(frame.iter().all(|line| line != has_not), "{has_not}: {frame:?}");
    }
}

#[test]
fn a_long_conversation_opens_at_its_end_and_little_of_it_is_read() {
    let mut window = Window::new(5_000);
    window.check("answer 4999 end", "prompt 4990 end");
    assert!(window.scroll.cache.len() < 10, "{}", window.scroll.cache.len());
    window.press("ctrl+home");
    window.check("prompt 0 end", "answer 4999 end");
    assert!(window.scroll.cache.len() < 20, "{}", window.scroll.cache.len());
    for _ in 0..400 {
        window.press("pagedown");
    }
    assert!(window.scroll.cache.len() <= CACHED_MAX);
    window.press("ctrl+end");
    window.check("answer 4999 end", "prompt 0 end");
}

#[test]
fn pages_up_and_down_leave_nothing_out() {
    let mut window = Window::new(20);
    let mut all = vec![window.frame()];
    while !all.last().unwrap().contains(&"prompt 0 end".to_owned()) {
        window.press("pageup");
        all.push(window.frame());
        assert!(all.len() < 100);
    }
    for turn in 0..20 {
        let prompt = format!("prompt {turn} end");
        assert!(all.iter().any(|frame| frame.contains(&prompt)), "{prompt}");
    }
    for _ in 0..all.len() {
        window.press("pagedown");
    }
    assert!(window.scroll.is_at_end());
    window.check("answer 19 end", "prompt 0 end");
}

#[test]
fn one_goes_from_prompt_to_prompt() {
    let mut window = Window::new(9);
    window.frame();
    window.press("ctrl+up");
    let first = window.frame();
    assert!(first.contains(&"prompt 7 end".to_owned()), "{first:?}");
    window.press("ctrl+up ctrl+up");
    window.check("prompt 5 end", "prompt 7 end");
    window.press("ctrl+down");
    window.check("prompt 6 end", "prompt 5 end");
    window.press("ctrl+down ctrl+down ctrl+down ctrl+down");
    assert!(window.scroll.is_at_end());
}

#[test]
fn what_comes_is_followed_at_the_end_only() {
    let mut window = Window::new(9);
    window.press("ctrl+home");
    let before = window.frame();
    window.bench.app.say(crate::mode::interactive::card::Weight::Info, "just said");
    assert_eq!(window.frame(), before);
    window.press("ctrl+end");
    window.check("just said", "prompt 0 end");
    window.bench.app.say(crate::mode::interactive::card::Weight::Info, "said later");
    window.check("said later", "prompt 0 end");
}

#[test]
fn a_search_finds_lines_anywhere() {
    let mut window = Window::new(300);
    window.frame();
    window.press("ctrl+shift+f");
    for letter in "ANSWER 2".chars() {
        let key = Key::plain(crate::tui::key::Code::Char(letter));
        assert!(window.key(&key));
    }
    window.frame();
    let counter = |window: &Window| window.scroll.search.as_ref().unwrap().counter();
    while counter(&window).contains('…') {
        window.bench.wait();
        window.frame();
    }
    // 2, 20 to 29, 200 to 299; the first one that is seen is shown first.
    assert_eq!(counter(&window), "110/111");
    window.check("answer 298 end", "answer 297 end");
    window.press("enter enter");
    assert_eq!(counter(&window), "1/111");
    window.check("answer 2 end", "answer 299 end");
    window.press("shift+enter shift+enter");
    window.check("answer 298 end", "answer 2 end");
    window.press("escape");
    assert!(window.scroll.search.is_none());
}

#[test]
fn ctrl_o_opens_the_viewer_and_keys_close_it() {
    for keys in ["ctrl+o", "q", "escape"] {
        let mut bench = bench(3);
        bench.press("ctrl+o");
        assert!(bench.app.is_full(0, Instant::now()));
        let lines = bench.app.whole(Instant::now());
        assert_eq!(lines.len(), 12);
        let texts: Vec<&str> = lines.iter().map(|line| line.text().trim()).collect();
        assert!(texts.contains(&"answer 2 end"), "{texts:?}");
        assert!(texts.iter().any(|text| text.contains("Transcript end")));
        bench.press("g f / x escape up k j down");
        bench.app.input(Input::Paste("x".into()), Instant::now());
        bench.app.whole(Instant::now());
        assert!(bench.app.is_full(0, Instant::now()));
        bench.press(keys);
        assert!(!bench.app.is_full(0, Instant::now()), "{keys}");
    }
}

/// Presses and drags the left button: `p5,3` at column 5 and row 3, `d` and `r` likewise; `w` goes up.
#[track_caller]
fn selected(window: &mut Window, keys: &str) -> Option<Selected> {
    window.frame();
    let now = Instant::now();
    for key in keys.split_whitespace() {
        window.look_at(|scroll, pages, _| {
            let Some((kind, place)) = key.split_at_checked(1).filter(|(kind, _)| *kind != "w") else {
                return scroll.scroll(-1, pages);
            };
            let kind = match kind {
                "p" => MouseKind::Press(0),
                "d" => MouseKind::Drag(0),
                _ => MouseKind::Release(0),
            };
            let (column, row) = place.split_once(',').unwrap();
            let (column, row) = (column.parse().unwrap(), row.parse().unwrap());
            let mouse = Mouse { kind, column, row, modifiers: crate::tui::key::Modifiers::NONE };
            let is_done = scroll.select(mouse, pages, now);
            assert!(!is_done || kind == MouseKind::Release(0));
        });
        window.frame();
    }
    window.look_at(|scroll, pages, _| scroll.selected(pages))
}

#[test]
fn the_mouse_selects_text() {
    let at = |rows: &[String], text: &str| rows.iter().rposition(|row| row == text).unwrap();
    let rows = Window::new(3).frame();
    let (answer, more) = (at(&rows, "answer 2 end"), at(&rows, "more"));
    assert_eq!(more, answer + 2);
    for (keys, expected) in [
        // The margin is one cell wide.
        (format!("p1,{answer} d6,{answer} r6,{answer}"), Some("answer")),
        (format!("p6,{answer} d1,{answer} r1,{answer}"), Some("answer")),
        (format!("p8,{answer} d2,{more} r2,{more}"), Some("2 end\n\nmo")),
        (format!("p2,{more} d8,{answer} r8,{answer}"), Some("2 end\n\nmo")),
        (format!("p1,{answer} r1,{answer}"), None),
        (format!("p3,{answer} r3,{answer} p3,{answer} r3,{answer}"), Some("answer")),
        (format!("p3,{answer} r3,{answer} p3,{answer} d11,{answer} r11,{answer}"), Some("answer 2 end")),
        (format!("p3,{answer} p3,{answer} p3,{answer} r3,{answer}"), Some("answer 2 end")),
        // A fourth click begins anew.
        (format!("p3,{answer} p3,{answer} p3,{answer} p3,{answer} r3,{answer}"), None),
        (format!("p1,{answer} d6,{answer} r6,{answer} p1,{answer} r1,{answer}"), None),
        (format!("p1,{answer} d6,{answer} r6,{answer} p1,11"), None),
        // It stays with its text, and a drag without the button is none.
        (format!("p1,{answer} d6,{answer} r6,{answer} w d9,{answer}"), Some("answer")),
        (format!("p1,{answer} d500,600 r0,600"), Some("answer 2 end\n\nmore")),
        // Blanks are nothing to copy.
        (format!("p0,{answer} d0,{answer} d1,{0} r1,{0}", answer + 1), Some("answer 2 end\n")),
        (format!("p0,{0} d30,{0} r30,{0}", answer + 1), None),
        (format!("p0,{0} d0,{more} r0,{more}", answer + 1), None),
    ] {
        let text = selected(&mut Window::new(3), &keys).and_then(Selected::text);
        assert_eq!(text.as_deref(), expected, "{keys}");
    }
    let mut window = Window::new(3);
    selected(&mut window, &format!("p1,{answer} d6,{answer}"));
    let feed = window.bench.app.threads.feed.clone();
    let lines = window.look_at(|scroll, pages, _| {
        scroll.look_for(pages, &feed);
        scroll.frame(pages, 10)
    });
    let is_inverse = |span: &crate::tui::line::Span<'_>| span.style.attributes.has(Attributes::INVERSE);
    let inverse: Vec<&str> =
        lines.iter().flat_map(Line::spans).filter(is_inverse).map(|span| span.text).collect();
    assert_eq!(inverse, ["answer"]);
    assert!(window.look_at(|scroll, _, _| scroll.deselect()));
    assert!(!window.look_at(|scroll, _, _| scroll.deselect()));
}

#[test]
fn dragging_along_the_topmost_row_selects_it_and_scrolls_once_it_was_left() {
    let mut window = Window::new(20);
    let top = window.frame();
    selected(&mut window, "p0,0 d3,0 d20,0 r20,0");
    assert_eq!(window.frame(), top);
    selected(&mut window, "p0,0 d3,0 d3,1 d3,0 d4,0");
    assert_ne!(window.frame(), top);
}

#[test]
fn a_drag_that_stands_still_at_the_edge_goes_on_to_the_end() {
    for (keys, has) in [("p5,9 d0,1 d0,0", "prompt 0 end"), ("p0,1 d5,11", "answer 19 end")] {
        let mut window = Window::new(20);
        window.frame();
        if has.starts_with("answer") {
            window.scroll.go_to_start();
        }
        let text = selected(&mut window, keys).and_then(Selected::text).unwrap();
        assert!(!text.contains(has), "{text}");
        let mut now = Instant::now();
        for _ in 0..1000 {
            let Some(left) = window.scroll.drags_in(now) else { break };
            now += left;
            window.look_at(|scroll, pages, _| scroll.drag_on(pages, now));
            window.frame();
        }
        assert_eq!(window.scroll.drags_in(now), None);
        let all = window.look_at(|scroll, pages, _| scroll.selected(pages)).and_then(Selected::text).unwrap();
        assert!(all.contains(has), "{all}");
    }
}

#[test]
fn a_drag_at_the_edge_goes_on_though_nothing_is_drawn() {
    let mut window = Window::new(20);
    selected(&mut window, "p5,9 d0,1 d0,0");
    let mut now = Instant::now();
    while let Some(left) = window.scroll.drags_in(now) {
        now += left;
        window.look_at(|scroll, pages, _| scroll.drag_on(pages, now));
    }
    assert!(window.frame().contains(&"prompt 0 end".to_owned()));
}

#[test]
fn a_long_selection_is_read_on_another_thread() {
    let mut window = Window::new(100);
    selected(&mut window, "p5,9");
    window.scroll.go_to_start();
    let read = |window: &mut Window| window.look_at(|scroll, pages, _| scroll.selected(pages));
    let first = selected(&mut window, "d0,1").unwrap();
    assert!(window.scroll.cache.len() < 30);
    // Only the last one is wanted.
    let second = read(&mut window).unwrap();
    assert_eq!(first.text(), None);
    let text = second.text().unwrap();
    assert!((0..100).all(|turn| text.contains(&format!("prompt {turn} end"))), "{text}");
}

#[test]
fn a_selection_stays_with_its_part_until_that_is_stored() {
    let mut window = Window::new(3);
    let rows = window.frame();
    let answer = rows.iter().rposition(|row| row == "answer 2 end").unwrap();
    let keys = format!("p1,{answer} d6,{answer} r6,{answer}");
    // The selected item is the last of six: the unfinished part 8 where fewer are stored.
    for (stored, live, then_stored, then_live, remains_at) in [
        (6, vec![], 7, vec![], Some(5)),
        (5, vec![8], 5, vec![8, 9], Some(5)),
        (5, vec![8], 6, vec![8], Some(6)),
        (4, vec![7, 8], 4, vec![8], Some(4)),
        (4, vec![7, 8], 6, vec![8, 9], Some(6)),
        (5, vec![8], 6, vec![], None),
        (5, vec![8], 6, vec![9], None),
    ] {
        assert!(selected(&mut window, &keys).is_some());
        (window.scroll.stored, window.scroll.live) = (stored, live);
        window.scroll.follow(then_stored, then_live.clone());
        let place = window.scroll.selection.map(|selection| selection.rows().0.0);
        assert_eq!(place, remains_at, "{then_stored} {then_live:?}");
    }
}

#[test]
fn the_wheel_over_a_dialog_moves_in_the_dialog() {
    let mut window = Window::new(20);
    let bench = &mut window.bench;
    bench.app.config.is_fullscreen = true;
    bench.send("/settings");
    let now = Instant::now();
    let texts = |bench: &mut Bench| -> Vec<String> {
        let lines = bench.app.whole(now);
        lines.iter().map(|line| line.text().trim().to_owned()).collect()
    };
    let first = texts(bench);
    let modifiers = crate::tui::key::Modifiers::NONE;
    let mouse = Mouse { kind: MouseKind::ScrollDown, column: 3, row: 8, modifiers };
    bench.app.input(Input::Mouse(mouse), now);
    let wheeled = texts(bench);
    assert_ne!(wheeled, first);
    for _ in 0..bench.app.config.options.wheel_lines {
        bench.press("up");
    }
    let back = texts(bench);
    assert_eq!(back, first);
}

#[test]
fn escape_takes_a_selection_away_and_does_nothing_else() {
    let mut window = Window::new(3);
    let rows = window.frame();
    let answer = rows.iter().rposition(|row| row == "answer 2 end").unwrap();
    let app = &mut window.bench.app;
    app.config.is_fullscreen = true;
    let now = Instant::now();
    let look = app.config.window_look();
    app.view.with_window(look, now, |window, pages| window.frame(pages, 10).len());
    let mut mouse = |kind, column| {
        let row = u16::try_from(answer).unwrap();
        let modifiers = crate::tui::key::Modifiers::NONE;
        let mouse = Mouse { kind, column, row, modifiers };
        app.input(Input::Mouse(mouse), now);
    };
    mouse(MouseKind::Press(0), 1);
    mouse(MouseKind::Drag(0), 6);
    // Escape would empty the editor of a command.
    app.composer.editor.set_text("!ls");
    window.bench.press("escape");
    assert_eq!(window.bench.app.composer.editor.text(), "!ls");
    window.bench.press("escape");
    assert_eq!(window.bench.app.composer.editor.text(), "");
}

#[test]
fn dragging_past_the_edge_scrolls() {
    let mut window = Window::new(20);
    let drags = "d0,0 ".repeat(60);
    let text = selected(&mut window, &format!("p5,9 {drags}")).and_then(Selected::text).unwrap();
    assert!(text.contains("prompt 10 end") && text.contains("answer 18 end"), "{text}");
}
