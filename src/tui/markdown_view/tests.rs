//! Golden texts for a width, and invariants for any text.

use super::*;
use crate::tui::style::Color;
use proptest::prelude::*;
use std::sync::LazyLock;

static DARK: LazyLock<Theme> = LazyLock::new(Theme::dark);

pub(super) fn look(width: usize) -> Look<'static> {
    Look {
        theme: &DARK,
        width,
        hyperlinks: false,
        code_indent: "  ",
        diagrams: Diagrams::Final,
        base: Style::PLAIN,
        is_plain: false,
    }
}

#[track_caller]
fn check(text: &str, width: usize, expected: &[&str]) {
    let lines = lines(text, &look(width));
    let shown: Vec<&str> = lines.iter().map(|line| line.text().trim_end()).collect();
    assert_eq!(shown, expected, "{text:?} at {width}");
    for step in 1..4 {
        assert_eq!(streamed(text, step, width), lines, "{text:?} by {step}");
    }
}

/// All final lines of a text that arrives in pieces. At any time they are, with the open ones, the lines of the
/// text so far.
fn streamed(text: &str, step: usize, width: usize) -> Vec<Line> {
    const LIMIT: usize = 3;
    let look = look(width);
    let mut stream = Stream::default();
    let letters: Vec<char> = text.chars().collect();
    let (mut all, mut given) = (Vec::new(), String::new());
    // Half of a fence is not shown.
    let is_plain = !text.contains(['`', '~']);
    for part in letters.chunks(step) {
        let part: String = part.iter().collect();
        all.extend(stream.push(&part, &look));
        given.push_str(&part);
        let open = stream.open(&look, usize::MAX);
        assert!(open.iter().all(|line| line.width() <= width));
        let end = stream.open(&look, LIMIT);
        assert!(end.len() >= LIMIT.min(open.len()) && open.ends_with(&end), "{given:?}");
        if is_plain {
            let so_far: Vec<Line> = all.iter().cloned().chain(open).collect();
            assert_eq!(so_far, lines(&given, &look), "{given:?}");
        }
    }
    all.extend(stream.finish(&look));
    all
}

#[test]
fn lines_stay_as_they_were_written() {
    check("one\ntwo\n- three\n  four", 20, &["one", "two", "", "- three", "  four"]);
}

#[test]
fn headings_paragraphs_and_rules() {
    check(
        "# One\n## Two\n### Three four\ntext that\nwraps  \nhard\n***",
        12,
        &["One", "", "Two", "", "Three four", "", "text that", "wraps", "hard", "", "────────────"],
    );
    check("", 10, &[]);
}

#[test]
fn lists_and_quotes() {
    check(
        "- one two three four\n  1. a\n  2. b\n     - [x] c\n     - [ ] d\n-\n",
        17,
        &["- one two three", "  four", "  1. a", "  2. b", "     - [x] c", "     - [ ] d", "-"],
    );
    check("9. a\n\n10. b\n\n    c", 12, &["9. a", "", "10. b", "", "    c"]);
    check("> abc def gh\n>\n> - e", 10, &["│ abc def", "│ gh", "│", "│ - e"]);
    // Blank rows stand where blank lines do.
    check("- a\n- b\n  - c\n\n- d\n\n  e\n- f", 12, &["- a", "- b", "  - c", "", "- d", "", "  e", "- f"]);
    // No room for marks beside the text.
    check("> a b c d", 6, &["a b c", "d"]);
    check("100. ab cd ef", 8, &["100.", "ab cd ef"]);
}

#[test]
fn code_is_indented_without_its_fences() {
    check("```rust\nfn a() {\n\n\tb\n}\n```\nx", 20, &["  fn a() {", "", "      b", "  }", "", "x"]);
    check("a\n```\n```\n~~~\n\n~~~\nb", 20, &["a", "", "", "", "", "", "b"]);
    check("a\n```\n\n\n```\nb", 20, &["a", "", "", "", "", "b"]);
    check("```\nabcdefghij", 10, &["  abcdefgh", "  ij"]);
    let lines = lines("```rust\nfn\n```", &look(20));
    let span = lines[0].spans().last().unwrap();
    assert_eq!(span.style, DARK.style(Role::SyntaxKeyword));
}

#[test]
fn tables_are_fitted() {
    let table = "|a|bc|\n|-|-:|\n|1|2|\n|x y z|**w**|";
    check(
        table,
        20,
        &[
            "┌───────┬────┐",
            "│ a     │ bc │",
            "├───────┼────┤",
            "│ 1     │  2 │",
            "│ x y z │  w │",
            "└───────┴────┘",
        ],
    );
    check(
        table,
        12,
        &[
            "┌─────┬────┐",
            "│ a   │ bc │",
            "├─────┼────┤",
            "│ 1   │  2 │",
            "├─────┼────┤",
            "│ x y │  w │",
            "│ z   │    │",
            "└─────┴────┘",
        ],
    );
    check(table, 9, &["| a | bc", "|", "| --- |", "--- |", "| 1 | 2 |", "| x y z |", "w |"]);
}

#[test]
fn links_lead_somewhere_or_say_where() {
    check("[a](https://x.y/z) b", 40, &["a (https://x.y/z) b"]);
    check("<https://x.y> ![p](q.png)", 40, &["https://x.y [p] (q.png)"]);
    check("[a@b.c](mailto:a@b.c)", 40, &["a@b.c"]);
    check("![](data:image/png;base64,AAAA)", 40, &["[image] (data:…)"]);
    let look = Look { hyperlinks: true, ..look(40) };
    let all = lines("[a *b*](https://x.y) [c](javascript:d)", &look);
    assert_eq!(all[0].text(), "a b c (javascript:d)");
    let linked: String = all[0].spans().filter(|s| s.link.is_some()).map(|s| s.text).collect();
    assert_eq!(linked, "a b");
}

#[test]
fn formulas_are_written_out() {
    check("so $\\alpha^2$ and \\(s \\to \\infty\\).", 40, &["so α² and s → ∞."]);
    check("$$\\{3x,\\; x \\in \\{0, \\pm 1\\}\\}$$", 40, &["{3x, x ∈ {0, ± 1}}"]);
    check("\\$x-y\\$ **$a*b*c$**", 40, &["$x-y$ a*b*c"]);
    check(
        "is\n\\[\nA = \\begin{pmatrix}\n1 & 2 \\\\\n3 & 4\n\\end{pmatrix}\n\\]\nhere",
        20,
        &["is", "", "A = ⎛1  2⎞", "    ⎝3  4⎠", "", "here"],
    );
    let cases = "$$\\begin{cases} a + b & c \\\\ d & e \\end{cases}$$";
    check(cases, 40, &["⎧ a + b  c", "⎩ d      e"]);
    // Without room for rows of their own.
    check(cases, 9, &["{ a + b,", "c; d, e"]);
    check(&format!("- so {cases}"), 40, &["- so { a + b, c; d, e"]);
    // What cannot be drawn is as it was written.
    check("\\(\\unknown{a_b*c*}\\)", 40, &["\\(\\unknown{a_b*c*}\\)"]);
    check("$$\n\\unknown{x}\n$$", 40, &["$$", "\\unknown{x}", "$$"]);
    check("$$\na_1*b*\n", 40, &["$$", "a_1*b*"]);
}

#[test]
fn half_of_a_fence_is_not_shown_while_it_comes() {
    let look = look(40);
    let rows = |text: &str| {
        let mut stream = Stream::default();
        let mut lines = stream.push(text, &look);
        lines.extend(stream.open(&look, usize::MAX));
        lines.iter().map(|line| line.text().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rows("```ts\nx\n``"), ["  x"]);
    assert_eq!(rows("```ts\n``"), [""]);
    assert_eq!(rows("- a\n\n~~~~\nx\n~~~"), ["- a", "", "  x"]);
    assert_eq!(rows("```ts\nx\n``y"), ["  x", "  ``y"]);
    // At the end it is what it is.
    check("```\nx\n``", 40, &["  x", "  ``"]);
}

#[test]
fn diagrams_are_drawn_when_they_are_complete() {
    let fence = |code: &str| format!("x\n```mermaid\n{code}\n```\ny");
    let source = fence("graph LR\nA --> B");
    check(&source, 40, &["x", "", "  ┌───┐   ┌───┐", "  │ A ├──▶│ B │", "  └───┘   └───┘", "", "y"]);
    check(&fence("pie\n\"a\" : 1"), 12, &["x", "", "  pie", "  \"a\" : 1", "", "y"]);
    check(&fence("graph LR\nA -->"), 40, &["x", "", "  graph LR", "  A -->", "", "y"]);
    check(&fence(&"%".repeat(9000)), 9004, &["x", "", &format!("  {}", "%".repeat(9000)), "", "y"]);
    let shown = |text: &str, diagrams: Diagrams| {
        let look = Look { diagrams, ..look(40) };
        let mut stream = Stream::default();
        assert_eq!(stream.push(text, &look), []);
        stream.open(&look, usize::MAX).iter().map(|line| line.text().to_owned()).collect::<Vec<_>>()
    };
    let growing = "```mermaid\ngraph LR\nA --> B\n``";
    let code = ["  graph LR", "  A --> B"];
    assert_eq!(shown(growing, Diagrams::Final), code);
    assert_eq!(shown(growing, Diagrams::Streaming)[1], "  │ A ├──▶│ B │");
    assert_eq!(shown("- ```mermaid\n  graph LR\n  A --> B\n", Diagrams::Final)[0], "-   graph LR");
    let off = lines(&source, &Look { diagrams: Diagrams::Off, ..look(40) });
    assert_eq!(off[2].text(), code[0]);
}

#[test]
fn styles_add_up() {
    let base = Style::foreground(Color::Indexed(3)).with(Attributes::ITALIC);
    let all = lines("a **b `c`**", &Look { base, ..look(40) });
    let styles: Vec<Style> = all[0].spans().map(|span| span.style).collect();
    let code = Style { foreground: DARK.color(Role::MdCode), ..base.with(Attributes::BOLD) };
    assert_eq!(styles, [base, base.with(Attributes::BOLD), code]);
}

#[test]
fn long_code_is_laid_out_once() {
    let look = look(40);
    let mut stream = Stream::default();
    let mut given = stream.push("```rust\n", &look).len();
    for number in 0..10_000 {
        given += stream.push(&format!("let x{number} = "), &look).len();
        given += stream.push(&format!("{number};\n"), &look).len();
        assert!(stream.open(&look, usize::MAX).len() <= 1);
    }
    assert!(given >= 9_999);
    assert_eq!(given + stream.finish(&look).len(), 10_000);
}

#[test]
fn of_a_long_list_only_the_last_item_may_change() {
    let look = look(40);
    let mut stream = Stream::default();
    let mut given = 0;
    for number in 0..1_000 {
        given += stream.push(&format!("- {number} **b**\n  - c\n"), &look).len();
        given += stream.push(if number % 2 == 0 { "  - d\n\n" } else { "" }, &look).len();
        assert!(stream.open(&look, usize::MAX).len() <= 4);
    }
    assert_eq!(given + stream.finish(&look).len(), 500 * (4 + 2));
}

/// Text with likely markup.
fn markup() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-c 日é👍]{1,12}",
        "(\n|\n\n|  \n)",
        "(\n- [a-c]{1,3}|\n\\| [a-c日]{1,9} \\| b \\||\n\\| A \\| B \\|\n\\|-\\|-\\|\n)",
        "\n(- |1\\. |> |# |### |```|```rust|    |\\| ?a ?\\| ?b\n\\|-\\|-:\n\\|)",
        "(\\$|\\$\\$|\n\\$\\$\n|\\\\\\(|\\\\\\)|\\\\\\[|\n\\\\\\]|\\\\frac|\\\\begin\\{cases\\}|\\\\end\\{cases\\}|\\\\\\\\)",
        "(\n```mermaid\n|graph LR\n|\nA --> [BC]\n|\\*\\*|_|`|~~|\\[a\\]\\(http://b.c\\)|!\\[a\\]\\(b\\)|\\| |\n```\n|---|\t|- \\[x\\] )",
    ];
    prop::collection::vec(part, 0..25).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_width(text in markup(), width in 2_usize..40) {
        for line in lines(&text, &look(width)) {
            prop_assert!(line.width() <= width, "{:?} at {width} in {text:?}", line.text());
        }
    }

    #[test]
    fn what_streams_ends_as_the_whole(text in markup(), step in 1_usize..9, width in 2_usize..40) {
        prop_assert_eq!(streamed(&text, step, width), lines(&text, &look(width)), "{}", text);
    }
}

/// A link's target is a web or mail address, and is written out if its text names another.
#[test]
fn a_link_cannot_pass_for_another() {
    let look = Look { hyperlinks: true, ..look(80) };
    for (text, shown, is_link) in [
        ("[docs](https://a.example/x)", "docs", true),
        ("[https://a.example/x](https://a.example/x)", "https://a.example/x", true),
        (
            "[https://github.com/login](https://evil.example/a)",
            "https://github.com/login (evil.example)",
            true,
        ),
        ("[go to github.com now](https://evil.example)", "go to github.com now (evil.example)", true),
        ("[www.a.example](https://a.example/x)", "www.a.example", true),
        ("[https://github.com](https://github.com@evil.example)", "https://github.com (evil.example)", true),
        ("[me@a.example](mailto:you@evil.example)", "me@a.example (evil.example)", true),
        ("[report](file:///tmp/evil.command)", "report (file:///tmp/evil.command)", false),
        ("[share](file://evil.host/x)", "share (file://evil.host/x)", false),
        ("[src/main.x1](https://a.example)", "src/main.x1", true),
    ] {
        let lines = lines(text, &look);
        assert_eq!(lines[0].text(), shown, "{text}");
        assert_eq!(lines[0].spans().any(|span| span.link.is_some()), is_link, "{text}");
    }
}
