//! The line before the cursor as input, the completed line as output.

use super::*;
use proptest::prelude::*;

fn file(at: usize, path: &str, is_quoted: bool) -> Wanted {
    Wanted::File(Token { at, path: path.to_owned(), is_file: true, is_quoted })
}

fn path(at: usize, path: &str, is_quoted: bool) -> Wanted {
    Wanted::Path(Token { at, path: path.to_owned(), is_file: false, is_quoted })
}

fn argument(command: &str, text: &str, at: usize) -> Wanted {
    Wanted::Argument { command: command.to_owned(), text: text.to_owned(), at }
}

#[test]
fn the_text_before_the_cursor_says_what_is_wanted() {
    for (before, unasked, asked) in [
        ("", None, Some(path(0, "", false))),
        ("/", Some(Wanted::Command(String::new())), Some(Wanted::Command(String::new()))),
        ("/mo", Some(Wanted::Command("mo".into())), Some(Wanted::Command("mo".into()))),
        ("/model ", Some(argument("model", "", 7)), Some(path(7, "", false))),
        ("/model so", Some(argument("model", "so", 7)), Some(path(7, "so", false))),
        ("/usr/bi", Some(path(0, "/usr/bi", false)), Some(path(0, "/usr/bi", false))),
        ("see /us", Some(path(4, "/us", false)), Some(path(4, "/us", false))),
        ("see @", Some(file(4, "", false)), Some(file(4, "", false))),
        ("see @src/ma", Some(file(4, "src/ma", false)), Some(file(4, "src/ma", false))),
        ("me@home", None, Some(path(0, "me@home", false))),
        ("a=@b", Some(file(2, "b", false)), Some(file(2, "b", false))),
        ("これは、@ma", Some(file(12, "ma", false)), Some(file(12, "ma", false))),
        ("see @\"my fi", Some(file(4, "my fi", true)), Some(file(4, "my fi", true))),
        ("see \"my fi", Some(path(4, "my fi", true)), Some(path(4, "my fi", true))),
        ("a \"b\" c", None, Some(path(6, "c", false))),
        ("see ./x", Some(path(4, "./x", false)), Some(path(4, "./x", false))),
        ("~/x", Some(path(0, "~/x", false)), Some(path(0, "~/x", false))),
        ("word", None, Some(path(0, "word", false))),
        ("word ", None, Some(path(5, "", false))),
    ] {
        assert_eq!(wanted(before, true, false), unasked, "{before:?}");
        assert_eq!(wanted(before, true, true), asked, "{before:?}");
    }
    assert_eq!(wanted("/mo", false, false), Some(path(0, "/mo", false)));
}

fn token_of(before: &str) -> (Wanted, Token) {
    let wanted = wanted(before, true, true).unwrap();
    match &wanted {
        Wanted::File(token) | Wanted::Path(token) => (wanted.clone(), token.clone()),
        _ => panic!("{wanted:?}"),
    }
}

#[test]
fn entries_of_a_folder_complete_a_path() {
    let entries = ["main.rs", "My Notes", "mod", ".git", "bad\nname"];
    let folders = ["mod", ".git"];
    for (before, parts, expected) in [
        ("", ("", ""), &["'.git/'", "'mod/'", "'main.rs'", "'\"My Notes\"'"][..]),
        ("src/m", ("src/", "m"), &["'src/mod/'", "'src/main.rs'", "'\"src/My Notes\"'"]),
        ("./MA", ("./", "MA"), &["'./main.rs'"]),
        ("~", ("~/", ""), &["'~/.git/'", "'~/mod/'", "'~/main.rs'", "'\"~/My Notes\"'"]),
        ("\"m", ("", "m"), &["'\"mod/\"'", "'\"main.rs\"'", "'\"My Notes\"'"]),
        ("x/zz", ("x/", "zz"), &[]),
    ] {
        let (_, token) = token_of(before);
        assert_eq!(token.parts(), parts);
        let entries = entries.map(|name| (name.to_owned(), folders.contains(&name)));
        let items = token.path_items(entries.into_iter());
        let values: Vec<String> = items.iter().map(|item| format!("'{}'", item.value)).collect();
        assert_eq!(values, expected, "{before:?}");
    }
}

#[test]
fn the_chosen_item_stands_in_the_line() {
    for (before, behind, value, label, expected) in [
        ("/mo", "", "model", "model", "/model |"),
        ("/mo", " x", "model", "model", "/model |x"),
        ("/model so", "", "sonnet", "sonnet", "/model sonnet|"),
        ("see @ma", " now", "@main.rs", "main.rs", "see @main.rs | now"),
        ("see @sr", "", "@src/", "src/", "see @src/|"),
        ("see @\"my", "\"", "@\"my dir/\"", "my dir/", "see @\"my dir/|\""),
        ("see @my", "", "@\"my file\"", "my file", "see @\"my file\" |"),
        ("cat ./ma", "", "./main.rs", "main.rs", "cat ./main.rs|"),
        ("cat \"m", "\" b", "\"m y\"", "m y", "cat \"m y\"| b"),
    ] {
        let wanted = wanted(before, true, false).unwrap();
        let change = wanted.apply(&Item::new(value, label), before, behind);
        let line = format!("{before}{behind}");
        let mut text = change.text.clone();
        text.insert(change.cursor, '|');
        let found = format!("{}{text}{}", &line[..change.range.start], &line[change.range.end..]);
        assert_eq!(found, expected);
    }
}

#[test]
fn the_file_that_was_meant_is_first() {
    let paths = [
        ("src", true),
        ("src/main.rs", false),
        ("src/domain.rs", false),
        ("tests/main", true),
        ("tests/main/a.rs", false),
        ("docs/MAIN", false),
        ("m/a/i/n.rs", false),
        ("other.txt", false),
    ];
    let all = || paths.iter().map(|&(path, is_folder)| Candidate { path, is_folder });
    let ranked = rank(all(), "main", 20);
    let found: Vec<&str> = ranked.iter().map(|candidate| candidate.path).collect();
    assert_eq!(
        found,
        ["tests/main", "docs/MAIN", "src/main.rs", "src/domain.rs", "tests/main/a.rs", "m/a/i/n.rs",]
    );
    assert_eq!(rank(all(), "main", 2).len(), 2);
    assert_eq!(
        rank(all(), "", 3).iter().map(|c| c.path).collect::<Vec<_>>(),
        ["src", "other.txt", "docs/MAIN"]
    );
    let (_, token) = token_of("@main");
    let items = token.file_items("lib/", ranked.into_iter().take(2));
    assert_eq!(items[0], Item::new("@lib/tests/main/", "main/").about("lib/tests/main"));
    assert_eq!(items[1], Item::new("@lib/docs/MAIN", "MAIN").about("lib/docs/MAIN"));
}

#[test]
fn the_best_of_many_are_the_best_of_all() {
    let paths: Vec<String> = (0..5000).map(|n| format!("dir{}/file{n}.rs", n % 7)).collect();
    let all = || paths.iter().map(|path| Candidate { path, is_folder: false });
    for query in ["", "file42", "42.rs", "dir3", "d3f1"] {
        let whole = rank(all(), query, 5000);
        assert_eq!(rank(all(), query, 20), whole[..20.min(whole.len())], "{query:?}");
    }
}

#[test]
fn commands_are_found_with_their_arguments() {
    let all = [
        ("model", Some("[ref]"), "Choose a model"),
        ("scoped-models", None, "Models to switch between"),
        ("skill:review", None, "Review code"),
        ("name", Some("[name]"), ""),
    ];
    let names = |query| {
        let items = commands(query, all.into_iter());
        items.into_iter().map(|item| item.value).collect::<Vec<_>>()
    };
    assert_eq!(names("mo"), ["model", "scoped-models"]);
    assert_eq!(names("rev"), ["skill:review"]);
    assert_eq!(names("skill:r"), ["skill:review"]);
    assert_eq!(names("").len(), 4);
    let items = commands("name", all.into_iter());
    assert_eq!(items[0].about.as_deref(), Some("[name]"));
    let items = commands("model", all.into_iter());
    assert_eq!(items[0].about.as_deref(), Some("[ref] — Choose a model"));
}

#[test]
fn the_popup_chooses() {
    use crate::tui::key::Key;
    use crate::tui::keymap::Keymap;
    use crate::tui::select::Looks;
    let keymap = Keymap::default();
    let press = |popup: &mut Popup, key| popup.handle(&Key::parse(key).unwrap(), &keymap);
    let items: Vec<Item> = ["a", "model", "models", "b", "c", "d"].map(|name| Item::new(name, name)).to_vec();
    let wanted = wanted("/models", true, false).unwrap();
    let mut popup = Popup::new(wanted.clone(), items.clone(), 5).unwrap();
    let texts: Vec<String> =
        popup.render(40, &Looks::default()).iter().map(|line| line.text().to_owned()).collect();
    assert_eq!(texts, ["  a", "  model", "→ models", "  b", "  c", "  (3/6)"]);
    assert_eq!(press(&mut popup, "x"), Answer::Ignored);
    assert_eq!(press(&mut popup, "up"), Answer::Handled);
    let chosen = |sends| Answer::Chosen { item: items[1].clone(), sends };
    assert_eq!(press(&mut popup, "tab"), chosen(false));
    assert_eq!(press(&mut popup, "enter"), chosen(true));
    assert_eq!(press(&mut popup, "escape"), Answer::Closed);
    assert!(Popup::new(wanted, Vec::new(), 5).is_none());
}

proptest! {
    #[test]
    fn a_change_is_always_within_the_line(before in "[/@\"' a.~日=]{0,12}", behind in "[\" a]{0,3}", is_asked: bool) {
        if let Some(wanted) = wanted(&before, true, is_asked) {
            let line = format!("{before}{behind}");
            for label in ["a b", "dir/"] {
                let item = match &wanted {
                    Wanted::File(token) | Wanted::Path(token) => Item::new(&token.written(label), label),
                    _ => Item::new(label, label),
                };
                let change = wanted.apply(&item, &before, &behind);
                prop_assert!(line.get(change.range).is_some());
                prop_assert!(change.text.is_char_boundary(change.cursor));
            }
        }
    }
}
