//! The list of sessions on a screen.

use crate::mode::interactive::testing::Bench;

/// A bench with sessions in its folder: id, name, first prompt.
fn bench(sessions: &[(&str, &str, &str)]) -> Bench {
    let mut bench = Bench::new();
    let cwd = bench.app.config.places.cwd.display().to_string();
    let folder = bench.app.store.folder(&bench.app.config.places.cwd);
    std::fs::create_dir_all(&folder).unwrap();
    for (hour, (id, name, prompt)) in sessions.iter().enumerate() {
        let mut text = format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"2024-12-03T14:00:00.000Z\",\"cwd\":\"{cwd}\"}}\n\
             {{\"type\":\"message\",\"id\":\"a{id}\",\"parentId\":null,\"timestamp\":\"2024-12-03T{hour:02}:00:00.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{prompt}\",\"timestamp\":17332{hour:02}0000000}}}}\n\
             {{\"type\":\"message\",\"id\":\"b{id}\",\"parentId\":\"a{id}\",\"timestamp\":\"2024-12-03T{hour:02}:00:00.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"more of {id}, the secret word\",\"timestamp\":17332{hour:02}0000000}}}}\n"
        );
        if !name.is_empty() {
            text.push_str(&format!(
                "{{\"type\":\"session_info\",\"id\":\"c{id}\",\"parentId\":\"b{id}\",\"timestamp\":\"2024-12-03T{hour:02}:00:00.000Z\",\"name\":\"{name}\"}}\n"
            ));
        }
        std::fs::write(folder.join(format!("{id}.jsonl")), text).unwrap();
    }
    bench.send("/resume");
    wait(&mut bench, "◉ Current Folder");
    bench
}

#[track_caller]
fn wait(bench: &mut Bench, part: &str) -> String {
    loop {
        let screen = bench.screen(100);
        if screen.contains(part) {
            return screen;
        }
        bench.wait();
    }
}

const SOME: &[(&str, &str, &str)] =
    &[("one", "", "fix the parser"), ("two", "My name", "write tests"), ("three", "", "a third thing")];

#[test]
fn all_rows_of_a_low_screen_are_for_sessions() {
    let mut bench = bench(SOME);
    bench.app.config.size.rows = 14;
    let screen = bench.screen(100);
    assert!(screen.contains("My name") && screen.contains("fix the parser"), "{screen}");
    assert!(!screen.contains("/3)"), "{screen}");
}

#[test]
fn sessions_are_listed_and_searched_by_row_and_by_text() {
    let mut bench = bench(SOME);
    let screen = bench.screen(100);
    assert!(screen.contains("Resume Session (Current Folder)"), "{screen}");
    assert!(screen.contains("› a third thing"), "{screen}");
    assert!(screen.contains("  My name"), "{screen}");
    assert!(screen.contains("Sort: Threaded"), "{screen}");
    bench.type_text("parser");
    let screen = bench.screen(100);
    assert!(screen.contains("› fix the parser"), "{screen}");
    assert!(!screen.contains("My name"), "{screen}");
    bench.press("ctrl+u");
    bench.type_text("\"of two\"");
    let screen = wait(&mut bench, "› My name");
    assert!(screen.contains("more of two, the secret word"), "{screen}");
    bench.press("ctrl+u");
    bench.type_text("re:(");
    assert!(bench.screen(100).contains("Invalid search pattern"));
    for columns in [1, 9, 30] {
        bench.screen(columns);
    }
    bench.press("escape");
    assert!(!bench.app.has_dialog());
}

#[test]
fn keys_sort_filter_and_show_paths() {
    let mut bench = bench(SOME);
    bench.press("ctrl+n");
    let screen = bench.screen(100);
    assert!(screen.contains("› My name") && !screen.contains("third"), "{screen}");
    assert!(screen.contains("Name: Named"), "{screen}");
    bench.press("ctrl+n ctrl+s ctrl+p");
    let screen = bench.screen(100);
    assert!(screen.contains("Sort: Recent") && screen.contains("path (on)"), "{screen}");
    assert!(screen.contains("three.jsonl"), "{screen}");
    bench.press("tab");
    wait(&mut bench, "◉ All");
}

#[test]
fn a_session_is_renamed_and_deleted_after_a_question() {
    let mut bench = bench(SOME);
    bench.press("down ctrl+r");
    assert!(bench.screen(100).contains("Rename Session"));
    bench.press("ctrl+u");
    bench.type_text("Another");
    bench.press("enter");
    wait(&mut bench, "› Another");
    bench.press("ctrl+d");
    assert!(bench.screen(100).contains("Delete session?"));
    bench.press("escape ctrl+d x enter");
    while bench.screen(100).contains("Another") {
        bench.wait();
    }
    assert!(bench.screen(100).contains("› fix the parser"));
    let folder = bench.app.store.folder(&bench.app.config.places.cwd);
    assert!(!folder.join("two.jsonl").exists() && folder.join("one.jsonl").exists());
}

#[test]
fn the_session_that_is_open_is_not_deleted() {
    let mut bench = bench(&[]);
    assert!(bench.screen(100).contains("No sessions in current folder. Press Tab to view all."));
    bench.press("ctrl+d enter");
    assert!(bench.app.has_dialog());
}
