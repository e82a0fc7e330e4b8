//! Rows of a diff and their lines.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(diff: &str, width: usize, expected: &[&str]) {
    let lines = lines(diff, &Theme::dark(), width);
    let texts: Vec<&str> = lines.iter().map(|line| line.text().trim_end()).collect();
    assert_eq!(texts, expected, "{diff:?} at {width}");
}

#[test]
fn numbers_stand_before_the_text() {
    check("   ...\n  9 a\n-10 b\n+10 c\n 11 d", 20, &["    ⋯", "  9 a", "-10 b", "+10 c", " 11 d"]);
    check("-1 one two three\n+1", 12, &["-1 one two", "   three", "+1"]);
    check("+1 \tif\n+2 \t\tx", 20, &["+1     if", "+2         x"]);
    // A text of digits is no number.
    check("+ 1 22 x", 20, &["+1 22 x"]);
    check("-100 abcdef", 8, &["-abcdef"]);
    check("", 20, &[]);
    check("no diff at all", 10, &["no diff at", "all"]);
}

#[test]
fn colours_and_marks() {
    let theme = Theme::dark();
    let lines = lines("-1 let a = 1;\n+1 let a = 2;\n 2 x", &theme, 40);
    let marked = |line: &Line| -> Vec<(String, Role)> {
        let role = |style: Style| {
            [Role::ToolDiffRemoved, Role::ToolDiffAdded, Role::ToolDiffContext]
                .into_iter()
                .find(|role| theme.color(*role) == style.foreground)
        };
        let spans = line.spans();
        spans
            .filter(|span| span.style.attributes.has(Attributes::INVERSE))
            .filter_map(|span| Some((span.text.to_owned(), role(span.style)?)))
            .collect()
    };
    assert_eq!(marked(&lines[0]), [("1".into(), Role::ToolDiffRemoved)]);
    assert_eq!(marked(&lines[1]), [("2".into(), Role::ToolDiffAdded)]);
    assert_eq!(marked(&lines[2]), []);
    // As many as each other are pairs; else it is not known which belong together.
    let pairs = super::lines("-1 a b c\n-2 d e f\n+1 a b x\n+2 d e y", &theme, 40);
    assert!(pairs.iter().all(|line| marked(line).len() == 1));
    let uneven = super::lines("-1 a b c\n+1 a b x\n+2 d e y", &theme, 40);
    assert!(uneven.iter().all(|line| marked(line).is_empty()));
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_width(
        diff in "([-+ ] {0,2}[0-9]{0,4} [a日\t ]{0,20}\n|  \\.\\.\\.\n|x){0,8}", width in 2_usize..40,
    ) {
        for line in lines(&diff, &Theme::dark(), width) {
            prop_assert!(line.width() <= width, "{:?}", line.text());
        }
    }
}
