//! Rows of Markdown and a short form of the parsed blocks; invariants for any text.

use super::*;
use proptest::prelude::*;

/// A block in one line: `h1(…)`, `p(…)`, `code:rust(…)`, `quote[…]`, `ul[item | item]`, `table`.
fn show(block: &Block) -> String {
    match block {
        Block::Heading { level, text } => format!("h{level}({})", inline(text)),
        Block::Paragraph(text) => format!("p({})", inline(text)),
        Block::Code { language, text } => format!("code:{language}({text})"),
        Block::Quote(blocks) => format!("quote[{}]", all(blocks)),
        Block::Rule => "rule".into(),
        Block::List(list) => {
            let kind = list.start.map_or("ul".into(), |start| format!("ol{start}"));
            let items = list.items.iter().map(|item| {
                let task = item.task.map_or("", |done| if done { "[x]" } else { "[ ]" });
                let spaced = if item.spaced { "~" } else { "" };
                format!("{spaced}{task}{}{}", all(&item.blocks), if item.gap { " ~" } else { "" })
            });
            format!("{kind}[{}]", items.collect::<Vec<_>>().join(" | "))
        }
        Block::Table(table) => {
            let row = |row: &Vec<Vec<Inline>>| {
                let cells: Vec<String> = row.iter().map(|cell| inline(cell)).collect();
                cells.join(",")
            };
            let rows: Vec<String> = table.rows.iter().map(row).collect();
            format!("table{:?}({};{})", table.align, row(&table.head), rows.join(";"))
        }
    }
}

fn all(blocks: &[Block]) -> String {
    blocks.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn inline(inlines: &[Inline]) -> String {
    let mut out = String::new();
    for inline in inlines {
        match inline {
            Inline::Text(text) => out.push_str(text),
            Inline::Code(code) => out.push_str(&format!("`{code}`")),
            Inline::Formula(formula) => out.push_str(&format!("{{f {}}}", formula.source())),
            Inline::SoftBreak => out.push('/'),
            Inline::HardBreak => out.push_str("//"),
            Inline::Open(style) => out.push_str(match style {
                Style::Emphasis => "{e ",
                Style::Strong => "{s ",
                Style::Strike => "{d ",
            }),
            Inline::Close(_) | Inline::CloseLink => out.push('}'),
            Inline::OpenLink { url } => out.push_str(&format!("{{<{url}> ")),
            Inline::Image { url, alt } => out.push_str(&format!("{{!{alt} {url}}}")),
        }
    }
    out
}

/// Checks `text` parsed as a whole and in pieces.
#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(all(&parse(text)), expected, "{text:?}");
    grows(text, 1);
}

#[track_caller]
fn grows(text: &str, step: usize) {
    let mut growing = Growing::default();
    let chars: Vec<char> = text.chars().collect();
    for part in chars.chunks(step.max(1)) {
        growing.push(&part.iter().collect::<String>());
    }
    let mut blocks = growing.take_closed();
    blocks.extend_from_slice(growing.open());
    assert_eq!(blocks, parse(text), "{text:?} by {step}");
}

#[test]
fn a_line_that_seems_to_begin_a_table_closes_nothing() {
    check("a\n| \n- ---", "p(a/|) rule");
    check("a\n|b|\n|-|", "p(a) table[None](b;)");
}

#[test]
fn blocks() {
    check("", "");
    check(" \n\t\n", "");
    check("a\nb\n\nc", "p(a/b) p(c)");
    check("a\r\nb\r\n\r\nc", "p(a/b) p(c)");
    check("# a\n## b ##\n###### c\n####### d", "h1(a) h2(b) h6(c) p(####### d)");
    check("#a\n# #\n#", "p(#a) h1() h1()");
    check("a\nb\n===\nc\n---", "h1(a/b) h2(c)");
    check("---\n***\n- - -\n--", "rule rule rule p(--)");
    check("a\n> b\nc\n\nd", "p(a) quote[p(b/c)] p(d)");
    check(">> a\n> b", "quote[quote[p(a/b)]]");
    check("> ```\n> x\ny", "quote[code:(x)] p(y)");
    check("    a\n\n      b\n\nc", "code:(a\n\n  b) p(c)");
    check("a\n    b", "p(a/b)");
    check("<script>x</script>", "p(<script>x</script>)");
}

#[test]
fn fences() {
    check("```rust ignore\nfn\n\n  x\n```\na", "code:rust(fn\n\n  x) p(a)");
    check("~~~\n```\n~~~~", "code:(```)");
    check("````\n```\n````", "code:(```)");
    check("  ```\n   a\n b\n  ```", "code:( a\nb)");
    check("```\nopen", "code:(open)");
    check("a\n```\nb\n```\nc", "p(a) code:(b) p(c)");
    check("``` `", "p(``` `)");
}

#[test]
fn lists() {
    check("- a\n- b", "ul[p(a) | p(b)]");
    check("- a\n\n- b\n- c\n\n", "ul[p(a) ~ | p(b) | p(c)]");
    check("- a\n\nb", "ul[p(a)] p(b)");
    check("- a\n\n  b\n- c", "ul[~p(a) p(b) | p(c)]");
    check("- a\n  - b\n    - c\n- d", "ul[p(a) ul[p(b) ul[p(c)]] | p(d)]");
    check("3. a\n4. b\n5) c", "ol3[p(a) | p(b)] ol5[p(c)]");
    check("- a\n* b", "ul[p(a)] ul[p(b)]");
    check("- a\nb", "ul[p(a/b)]");
    check("a\n- b\n\nc\n2. d", "p(a) ul[p(b)] p(c/2. d)");
    check("- [ ] a\n- [x] b\n- [y] c", "ul[[ ]p(a) | [x]p(b) | p([y] c)]");
    check("1. ```\n   x\n   ```\n2. y", "ol1[code:(x) | p(y)]");
    check("- \n  a\n-\n\n  b", "ul[p(a) | ] p(b)");
    check("-\ta\n\tb", "ul[p(a/b)]");
    check("-a\n1.b\n1234567890. c", "p(-a/1.b/1234567890. c)");
    check("- a\n---", "ul[p(a)] rule");
    check("-\n- - - a", "ul[ | ul[ul[p(a)]]]");
    check("-     code", "ul[code:(code)]");
}

#[test]
fn tables() {
    check("| a | b |\n|---|:-:|\n| `x` | y\\|z |\n| 1 |\n\nt", "table[None, Center](a,b;`x`,y|z;1) p(t)");
    check("a | b\n:-- | --:\n1 | 2 | 3", "table[Left, Right](a,b;1,2)");
    check("x\n| a |\n|---|\n> q", "p(x) table[None](a;) quote[p(q)]");
    check("| a | b |\n|---|", "p(| a | b |/|---|)");
    check("a\n---|", "p(a/---|)");
}

#[test]
fn inlines() {
    check("*a* _b_ **c** __d__ ~~e~~", "p({e a} {e b} {s c} {s d} {d e})");
    check("***a***", "p({e {s a}})");
    check("**a *b***", "p({s a {e b}})");
    check("*a **b** c*", "p({e a {s b} c})");
    check("a_b_c 2*3*4 * x *", "p(a_b_c 2{e 3}4 * x *)");
    check("*a **b* c**", "p({e a {e {e b} c}})");
    check("~a~ ~~~b~~~", "p(~a~ ~~~b~~~)");
    check("`a*b*` ``c`d`` `e", "p(`a*b*` `c`d` `e)");
    check("` `` ` \\`x`", "p(```` `x`)");
    check("\\*a\\* \\a \\", "p(*a* \\a \\)");
    check("a  \nb\\\nc\nd", "p(a//b//c/d)");
    check("&lt;b&gt; &amp;amp; &#65;&#x42; &nope; &", "p(<b> &amp; AB &nope; &)");
}

#[test]
fn links() {
    check("[a](b)", "p({<b> a})");
    check("[*a*](<b c> \"t\") d", "p({<b c> {e a}} d)");
    check("[a](b(c)d 't)')", "p({<b(c)d> a})");
    check("[a](b\\)c&amp;d)", "p({<b)c&d> a})");
    check("![a *b*](c)", "p({!a b c})");
    check("[![a](b)](c)", "p({<c> {!a b}})");
    check("[a [b](c) d](e)", "p([a {<c> b} d](e))");
    check("[a] [b]() [c](d", "p([a] {<> b} [c](d)");
    check("*[a*](b)", "p(*{<b> a*})");
    check("<https://x.y> <a@b.c> <b> a<b", "p({<https://x.y> https://x.y} {<mailto:a@b.c> a@b.c} <b> a<b)");
    check(
        "(see https://x.y/a_(b).) xhttps://y",
        "p((see {<https://x.y/a_(b)> https://x.y/a_(b)}.) xhttps://y)",
    );
    check("[https://x](https://y)", "p({<https://y> https://x})");
    check("**https://x**", "p({s {<https://x> https://x}})");
}

#[test]
fn formulas_are_found_before_escapes_and_styles() {
    check("so $x_1*y*z$.", "p(so {f $x_1*y*z$}.)");
    check("$$\\{x \\in \\{0\\}\\}$$", "p({f $$\\{x \\in \\{0\\}\\}$$})");
    check("\\(s \\to \\infty\\) and \\[a\\\\b\\]", "p({f \\(s \\to \\infty\\)} and {f \\[a\\\\b\\]})");
    check("*a $b*c$ d*", "p({e a {f $b*c$} d})");
    check("a $$x\ny$$ b", "p(a {f $$x\ny$$} b)");
    check("[$x$](y)", "p({<y> {f $x$}})");
    check("# $x$", "h1({f $x$})");
    check("|$a$|\n|-|", "table[None]({f $a$};)");
    check("$a\\$b$", "p({f $a\\$b$})");
}

#[test]
fn what_is_no_formula_is_text() {
    for text in [
        "no dollars",
        "$5 and $10",
        "it costs $5-$10",
        "export PATH=$HOME/bin:$PATH",
        "$A$B",
        "\"$a\",\"$b\"",
        "$ x $",
        "$",
        "$$",
        "$$$$",
        "US$5 or 6$",
    ] {
        check(text, &format!("p({text})"));
    }
    check("\\$x-y\\$", "p($x-y$)");
    check("\\(a", "p((a)");
    check("\\[a", "p([a)");
    check("f\\(a\\)", "p(f(a))");
    check("\\[a\\](b)", "p([a](b))");
    check("$5 and `x$`", "p($5 and `x$`)");
    check("**$5** and **6$**", "p({s $5} and {s 6$})");
    check("`$x$`", "p(`$x$`)");
}

#[test]
fn formulas_of_several_lines() {
    check("$$\na\n= b\n- c\n$$", "p({f $$\na\n= b\n- c\n$$})");
    check("is\n\\[\n    x\n\\]\nwhere", "p(is) p({f \\[\nx\n\\]}) p(where)");
    check("\\[ a_1\n+ b \\], so", "p({f \\[a_1\n+ b\\]}, so)");
    check("- a\n  $$\n  b\n  $$\n- c", "ul[p(a) p({f $$\nb\n$$}) | p(c)]");
    check("> $$\n> a\n> $$", "quote[p({f $$\na\n$$})]");
    // Without an end they stay as they were written.
    check("$$\na_1*b*\n- c\n\nd\n$$", "p($$/a_1*b*/- c) p(d) p($$)");
    check("\\[\n```\nx\n```", "p(\\[) code:(x)");
    check("$$ is a variable\n- a", "p($$ is a variable) ul[p(a)]");
}

#[test]
fn only_the_web_and_mail_are_safe() {
    let safe = ["http://x", "HTTPS://x/y?z#a", "mailto:a@b"];
    let not = [
        "javascript:alert(1)",
        "JAVASCRIPT:x",
        "data:text/html,x",
        "file:///etc",
        "x",
        "/x",
        "//x",
        "#x",
        "",
        " http://x",
        "java\nscript:x",
        "http:",
        "vbscript:x",
        "https://a b",
    ];
    safe.iter().for_each(|url| assert!(is_safe_link(url), "{url:?}"));
    not.iter().for_each(|url| assert!(!is_safe_link(url), "{url:?}"));
}

/// Invariants of any blocks: nesting is limited, styles and links are paired.
fn sound(blocks: &[Block], depth: usize) {
    assert!(depth <= DEPTH_MAX);
    for block in blocks {
        match block {
            Block::Heading { level, text } => {
                assert!((1..=6).contains(level));
                paired(text);
            }
            Block::Paragraph(text) => paired(text),
            Block::Quote(inner) => sound(inner, depth + 1),
            Block::List(list) => list.items.iter().for_each(|item| sound(&item.blocks, depth + 1)),
            Block::Table(table) => {
                assert_eq!(table.head.len(), table.align.len());
                assert!(table.rows.iter().all(|row| row.len() <= table.align.len()));
                table.head.iter().for_each(|cell| paired(cell));
                table.rows.iter().flatten().for_each(|cell| paired(cell));
            }
            Block::Code { .. } | Block::Rule => {}
        }
    }
}

fn paired(inlines: &[Inline]) {
    let mut open = Vec::new();
    for inline in inlines {
        match inline {
            Inline::Open(style) => open.push(Some(*style)),
            Inline::Close(style) => assert_eq!(open.pop(), Some(Some(*style)), "{inlines:?}"),
            Inline::OpenLink { .. } => {
                assert!(!open.contains(&None), "a link in a link: {inlines:?}");
                open.push(None);
            }
            Inline::CloseLink => assert_eq!(open.pop(), Some(None), "{inlines:?}"),
            _ => {}
        }
    }
    assert_eq!(open, [], "{inlines:?}");
    assert!(open.len() <= DEPTH_MAX + 1);
}

/// Each text makes a naive parser take quadratic time, or overflow the stack.
#[test]
fn nasty_text_is_read() {
    const COUNT: usize = 4_000;
    let parts = [
        "[",
        "![",
        "[a](",
        "[a](<b",
        "[a](b \"",
        "[a](b '",
        "[](",
        "]",
        "`",
        "`a``b",
        "*a ",
        "a* ",
        "**a *b ",
        "_a*b",
        "*a_ ",
        "~~a",
        "<",
        "<a:",
        "\\",
        "&",
        "> ",
        "- ",
        "1. ",
        "> - ",
        "|",
        "http://",
        "http://a)",
        "a\n",
        "> a\n",
        "- a\n",
        "\t- a\n",
        "|a|\n|-|\n",
        "```\n",
        "~~~",
        "    a\n",
        "a\n=\n",
        "[a](b)",
        "*[a](b)*",
        "***",
        "* a **b** ",
        "[*",
        "![a](b)",
        "|a",
        "\r",
        "\n\n",
        "-\n",
        "> ```\n",
        "# ",
        "---\n",
        "$",
        "$a",
        "$$",
        "$$a",
        "$$\n",
        "$$\na\n",
        "\\(",
        "\\[a",
        "\\[\n",
        "\\(a\\]",
    ];
    for part in parts {
        let text = part.repeat(COUNT);
        sound(&parse(&text), 0);
        sound(&parse(&format!("{text}]({part}`*_)>")), 0);
    }
    let ladder: String = (0..600).map(|n| format!("a{}", "`".repeat(n))).collect();
    sound(&parse(&ladder), 0);
    let deeper: String = (0..600).map(|n| format!("{}- a\n", " ".repeat(n * 2))).collect();
    sound(&parse(&deeper), 0);
    let wide = format!("{}\n{}\n{}", "|a".repeat(COUNT), "|-".repeat(COUNT), "b\n".repeat(COUNT));
    sound(&parse(&wide), 0);
}

proptest! {
    #[test]
    fn any_text_is_sound_and_the_same_when_it_grows(
        text in "([-*_~`#>|=\\[\\]()!<&;\\\\:. \t\n0-9ab$]|http://|\\|-\\||\n\n|- |```|é|\\$\\$|\\\\[\\[\\](]|\n\\$\\$|\n\\\\\\[){0,60}",
        step in 1_usize..20,
    ) {
        sound(&parse(&text), 0);
        grows(&text, step);
    }

    #[test]
    fn plain_words_come_through(words in proptest::collection::vec("[a-gi-zA-Z]{1,8}", 1..20)) {
        let text = words.join(" ");
        prop_assert_eq!(all(&parse(&text)), format!("p({text})"));
    }
}
