//! The tool as called by a model, and the search of one file in blocks.

use super::search::{Found, Match, Searcher};
use super::*;
use crate::agent::CancelToken;
use crate::llm::model::Model;
use crate::tools::local::Local;
use crate::tools::testing::{TempDir, call, call_with, text};
use crate::tools::truncate::MAX_BYTES;
use proptest::prelude::*;
use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::os::unix::fs::symlink;

fn grep(tree: &TempDir, arguments: Value) -> (String, Value) {
    let tool = tool(Arc::new(tree.workspace()));
    let result = call(tool.as_ref(), arguments);
    let details = result.as_ref().ok().and_then(|output| output.details.clone());
    let text = text(&result).replace(tree.path().to_str().unwrap(), "CWD");
    (text, details.unwrap_or_default())
}

/// Checks a result without details.
#[track_caller]
fn check(tree: &TempDir, arguments: Value, expected: &str) {
    let (text, details) = grep(tree, arguments);
    assert_eq!(text, expected);
    assert_eq!(details, Value::Null);
}

fn sample() -> TempDir {
    let tree = TempDir::create();
    tree.write("b.txt", "one\ntwo\nThree\n");
    tree.write("a/x.rs", "two\r\nthree two\r\n");
    tree.write("a/.hidden", "a two");
    tree.write("skip/x.rs", "two");
    tree.write(".gitignore", "/skip\n");
    tree.write("image", "two\0two");
    tree.write(".git/config", "two\n");
    tree
}

#[test]
fn matches_are_shown_with_path_and_line_in_order() {
    let tree = sample();
    let all = "a/.hidden:1: a two\na/x.rs:1: two\na/x.rs:2: three two\nb.txt:2: two";
    check(&tree, json!({"pattern": "two"}), all);
    check(&tree, json!({"pattern": "two", "path": ""}), all);
    check(&tree, json!({"pattern": "t.o$", "path": "."}), all);
    check(&tree, json!({"pattern": "^two", "path": "a"}), "x.rs:1: two");
    check(&tree, json!({"pattern": "two", "path": "b.txt"}), "b.txt:2: two");
    check(&tree, json!({"pattern": "nowhere"}), "No matches found");
    check(&tree, json!({"pattern": "THREE", "ignoreCase": true, "path": "b.txt"}), "b.txt:3: Three");
    check(&tree, json!({"pattern": "t.o", "literal": true}), "No matches found");
    check(&tree, json!({"pattern": "two", "path": ".git"}), "config:1: two");
    check(&tree, json!({"pattern": "two", "path": "skip"}), "x.rs:1: two");
    check(&tree, json!({"pattern": "two", "path": "skip/x.rs", "glob": "*.c"}), "x.rs:1: two");
}

#[test]
fn nothing_is_taken_for_a_flag() {
    let tree = TempDir::create();
    tree.write("--help/-e", "-e --version\n");
    check(&tree, json!({"pattern": "-e"}), "--help/-e:1: -e --version");
    check(&tree, json!({"pattern": "--version", "path": "--help", "glob": "-e"}), "-e:1: -e --version");
    check(&tree, json!({"pattern": "x", "path": "--help"}), "No matches found");
}

#[test]
fn a_glob_chooses_files_and_brings_no_ignored_one_back() {
    let tree = TempDir::create();
    for path in ["src/a.rs", "src/a.ts", "src/deep/b.rs", "lib/src/c.rs", "a.rs", "out/d.rs"] {
        tree.write(path, "x");
    }
    tree.write(".gitignore", "out\n");
    let files = |glob: &str, path: &str| {
        let (text, _) = grep(&tree, json!({"pattern": "x", "glob": glob, "path": path}));
        let paths = text.lines().map(|line| line.trim_end_matches(":1: x").to_owned());
        paths.collect::<Vec<_>>()
    };
    let all = ["a.rs", "lib/src/c.rs", "src/a.rs", "src/a.ts", "src/deep/b.rs"];
    assert_eq!(files("*", "."), all);
    assert_eq!(files("**/*", "."), all);
    assert_eq!(files("", "."), all);
    assert_eq!(files("*.ts", "."), ["src/a.ts"]);
    assert_eq!(files("!*.rs", "."), ["src/a.ts"]);
    assert_eq!(files("src/*.rs", "."), ["src/a.rs"]);
    assert_eq!(files("/src/*.rs", "."), ["src/a.rs"]);
    assert_eq!(files("./src/*.rs", "."), ["src/a.rs"]);
    assert_eq!(files("src/**/*.rs", "src"), ["No matches found"]);
    assert_eq!(files("**/*.rs", "src"), ["a.rs", "deep/b.rs"]);
    assert_eq!(files("deep/*", "src"), ["deep/b.rs"]);
    assert_eq!(files("src/", "."), ["src/a.rs", "src/a.ts", "src/deep/b.rs"]);
    assert_eq!(files("!src", "."), ["a.rs"]);
    assert_eq!(files("!src/", "."), ["a.rs"]);
    assert_eq!(files("!a.rs/", "."), all);
    assert_eq!(files("!src/deep/**", "."), ["a.rs", "lib/src/c.rs", "src/a.rs", "src/a.ts"]);
    assert_eq!(files("*.{ts,js}", "."), ["src/a.ts"]);
    assert_eq!(files("*.RS", "."), ["No matches found"]);
}

#[test]
fn context_belongs_to_each_match() {
    let tree = TempDir::create();
    tree.write("f", "1\n2 x\n3 x\n4\n5\n");
    check(
        &tree,
        json!({"pattern": "x", "context": 1}),
        "f-1- 1\nf:2: 2 x\nf-3- 3 x\nf-2- 2 x\nf:3: 3 x\nf-4- 4",
    );
    check(&tree, json!({"pattern": "1", "context": 1.9}), "f:1: 1\nf-2- 2 x");
    check(&tree, json!({"pattern": "5", "context": 1e30}), "f-1- 1\nf-2- 2 x\nf-3- 3 x\nf-4- 4\nf:5: 5");
    check(&tree, json!({"pattern": "4", "context": -3}), "f:4: 4");
}

#[test]
fn notices_say_what_was_left_out() {
    let tree = TempDir::create();
    tree.write("f", "x\nx\nx\n");
    let notice = "x\n\n[2 matches limit reached. Use limit=4 for more, or refine pattern]";
    assert_eq!(
        grep(&tree, json!({"pattern": "x", "limit": 2})),
        (format!("f:1: x\nf:2: {notice}"), json!({"matchLimitReached": 2}))
    );
    check(&tree, json!({"pattern": "x", "limit": 3}), "f:1: x\nf:2: x\nf:3: x");
    check(&tree, json!({"pattern": "x", "path": "f", "limit": 3}), "f:1: x\nf:2: x\nf:3: x");
    let (text, _) = grep(&tree, json!({"pattern": "x", "limit": 0}));
    assert!(text.ends_with("[1 matches limit reached. Use limit=2 for more, or refine pattern]"));

    tree.write("g", format!("{}\n", "é".repeat(501)));
    let (text, details) = grep(&tree, json!({"pattern": "é"}));
    let shown = "é".repeat(500);
    assert_eq!(
        text,
        format!(
            "g:1: {shown}... [truncated]\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]"
        )
    );
    assert_eq!(details, json!({"linesTruncated": true}));

    let line = "y".repeat(600);
    tree.write("h", [line.as_str()].repeat(1000).join("\n"));
    let (text, details) = grep(&tree, json!({"pattern": "y", "limit": 900}));
    let (lines, notices) = text.split_once("\n\n").unwrap();
    assert_eq!(
        notices,
        "[900 matches limit reached. Use limit=1800 for more, or refine pattern. 50.0KB limit reached. Some lines truncated to 500 chars. Use read tool to see full lines]"
    );
    assert!(lines.len() <= MAX_BYTES && lines.len() > MAX_BYTES - 600);
    let truncation = &details["truncation"];
    assert_eq!(details["matchLimitReached"], 900);
    assert_eq!(truncation["totalLines"], 900);
    let each = |number: usize| format!("h:{number}: {}... [truncated]\n", "y".repeat(500)).len();
    assert_eq!(truncation["totalBytes"], (1..=900).map(each).sum::<usize>() - 1);
    assert_eq!(truncation["outputBytes"], lines.len());
    assert_eq!(truncation["truncatedBy"], "bytes");
}

#[test]
fn errors_say_what_is_wrong() {
    let tree = sample();
    check(&tree, json!({"pattern": "x", "path": "no/where"}), "error: Path not found: CWD/no/where");
    check(
        &tree,
        json!({"pattern": "x", "path": "/dev/zero"}),
        "error: Cannot read /dev/zero: it is a device, pipe or socket, not a regular file",
    );
    let (text, _) = grep(&tree, json!({"pattern": "("}));
    assert!(text.starts_with("error: regex parse error:\n    (\n"), "{text}");
    let (text, _) = grep(&tree, json!({"pattern": "x", "glob": "[a"}));
    assert_eq!(text, "error: Invalid glob '[a': a '[' is not closed");
    let (text, _) = grep(&tree, json!({"pattern": "two", "path": "image"}));
    assert_eq!(text, "No matches found\n\n[image is a binary file and was not searched]");
}

#[test]
fn a_cancelled_call_is_aborted() {
    let tree = sample();
    let tool = tool(Arc::new(tree.workspace()));
    let cancel = CancelToken::new();
    cancel.cancel();
    for path in [".", "b.txt"] {
        let arguments = json!({"pattern": "x", "path": path});
        let result = call_with(tool.as_ref(), arguments, &cancel, &Model::default());
        assert_eq!(result, Err(ToolError::aborted()));
    }
}

#[test]
fn a_search_that_takes_too_long_gives_what_it_has() {
    let tree = sample();
    let tool =
        Grep { workspace: Arc::new(tree.workspace()), time: Duration::ZERO, info: ToolInfo::default() };
    let result = call(&tool, json!({"pattern": "x"}));
    assert_eq!(
        text(&result),
        "No matches found\n\n[Stopped after 0 s, later paths were not searched. Use a narrower path or pattern]"
    );
}

#[test]
fn odd_files_do_no_harm() {
    let tree = TempDir::create();
    tree.write("a", "needle");
    symlink("/dev/zero", tree.path().join("zeros")).unwrap();
    symlink(tree.path(), tree.path().join("up")).unwrap();
    symlink("a", tree.path().join("link")).unwrap();
    let huge = File::create(tree.path().join("huge")).unwrap();
    huge.set_len(100 << 30).unwrap();
    tree.fifo("pipe");
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff\n");
    fs::write(tree.path().join(odd), b"needle\x1b[31m \xff").unwrap();
    check(
        &tree,
        json!({"pattern": "needle"}),
        "a:1: needle\nodd\u{fffd}\u{fffd}:1: needle\u{1b}[31m \u{fffd}",
    );
    check(&tree, json!({"pattern": "needle", "path": "link"}), "link:1: needle");
    check(&tree, json!({"pattern": "needle", "path": "up/a"}), "a:1: needle");
}

/// Searches text through a reader that returns pieces of `step` bytes.
fn search(text: &[u8], pattern: &str, context: usize, limit: usize, step: usize) -> Found {
    struct Pieces<'a>(Cursor<&'a [u8]>, usize);
    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let len = out.len().min(self.1);
            self.0.read(&mut out[..len])
        }
    }
    let regex = pattern::compile(pattern, false, false).unwrap();
    let mut searcher = Searcher::new(regex, context, None);
    let deadline = Instant::now() + SEARCH_TIME;
    Stop::during(&CancelToken::new(), deadline, |stop| {
        let mut source = Pieces(Cursor::new(text), step);
        // One that has been used before.
        let used = searcher.search(&mut Cursor::new("old\ntext"), "f", 9, stop);
        assert!(used.is_ok());
        searcher.search(&mut source, "f", limit, stop).unwrap()
    })
}

fn texts(found: Found) -> Vec<String> {
    match found {
        Found::Matches(matches) => matches.into_iter().map(|found| found.text).collect(),
        Found::Binary => vec!["binary".to_owned()],
    }
}

#[test]
fn blocks_leave_no_seams() {
    let block = 64 * 1024;
    for at in block - 8..block + 8 {
        // A match on a line of its own around the edge of the first block.
        let mut text = vec![b'.'; at];
        text[at / 2] = b'\n';
        text[at - 3] = b'\n';
        text.extend_from_slice(b"needle here\nafter\nlast");
        let expected =
            ["f-2- ".to_owned() + &".".repeat(500) + "... [truncated]\nf:3: ..needle here\nf-4- after"];
        for step in [at, 1000, usize::MAX] {
            assert_eq!(texts(search(&text, "needle", 1, 9, step)), expected, "{at}");
        }
        // A NUL: binary in the first block, later the end of the text.
        text[at - 1] = 0;
        let expected: &[&str] = if at <= block { &["binary"] } else { &["f:2: ...."] };
        let found = texts(search(&text, r"^\.", 0, 2, 4096));
        let found: Vec<&str> = found.iter().map(|text| text.get(..9).unwrap_or(text)).collect();
        assert_eq!(found.last(), expected.last(), "{at}");
    }
}

#[test]
fn long_lines_are_searched_whole() {
    let mut text = b"first\n".to_vec();
    text.resize(10 << 20, b'x');
    text.extend_from_slice(b"needle\nlast needle\n");
    let found = texts(search(&text, "needle", 1, 9, 1 << 16));
    let start = "x".repeat(500) + "... [truncated]";
    assert_eq!(
        found,
        [format!("f-1- first\nf:2: {start}\nf-3- last needle"), format!("f-2- {start}\nf:3: last needle"),]
    );
}

#[test]
fn of_a_line_beyond_all_bounds_every_part_is_searched() {
    const MAX: usize = 16 << 20;
    for needle_at in [MAX - 3, MAX + 100] {
        let mut text = b"first\n".to_vec();
        text.resize(6 + needle_at, b'x');
        text.extend_from_slice(b"needle");
        text.resize(MAX + 200_000, b'x');
        text.extend_from_slice(b"\nneedle");
        let found = texts(search(&text, "needle", 0, 9, usize::MAX));
        let numbers: Vec<&str> = found.iter().map(|text| &text[..6]).collect();
        assert_eq!(numbers, ["f:2: x", "f:3: n"], "{needle_at}");
        // No part but the first starts the line.
        let at_start = texts(search(&text, "^x+n", 0, 9, usize::MAX)).len();
        assert_eq!(at_start, usize::from(needle_at < MAX));
    }
}

#[test]
fn encodings_with_a_mark_are_text() {
    let units: Vec<u8> = "\u{feff}one\ntwó\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(texts(search(&units, "^two|twó", 0, 9, 7)), ["f:2: twó"]);
    assert_eq!(texts(search(b"\xef\xbb\xbfone\n", "^one", 0, 9, 2)), ["f:1: one"]);
    assert_eq!(texts(search(b"", "^", 0, 9, 2)), [""; 0]);
    assert_eq!(texts(search(b"\n", "^$", 0, 9, 2)), ["f:1: "]);
    assert_eq!(texts(search(b"a\n\nb", "", 0, 9, 2)), ["f:1: a", "f:2: ", "f:3: b"]);
}

#[test]
fn patterns_that_make_others_slow_are_linear() {
    let text = "a".repeat(200_000) + "\n" + &"a\n".repeat(100_000);
    for pattern in ["(a*)*b", "(a|a)*b", "([a-z]+)+$x", "[^b]*b|ab", r"(\w+\s*)+:"] {
        assert_eq!(texts(search(text.as_bytes(), pattern, 0, 9, usize::MAX)), [""; 0], "{pattern}");
    }
}

/// Reference implementation of a search, line by line.
fn naive(text: &str, pattern: &str, context: usize, limit: usize) -> Vec<String> {
    let regex = pattern::compile(pattern, false, false).unwrap();
    let lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    let count = if text.is_empty() { 0 } else { lines.len() };
    let hits = (0..count).filter(|at| regex.is_match(lines[*at].as_bytes()));
    hits.take(limit)
        .map(|hit| {
            let around = hit.saturating_sub(context)..(hit + context + 1).min(count);
            let line = |at: usize| {
                let mark = if at == hit { ':' } else { '-' };
                format!("f{mark}{}{mark} {}", at + 1, lines[at])
            };
            around.map(line).collect::<Vec<_>>().join("\n")
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_search_in_blocks_is_a_search_line_by_line(
        lines in proptest::collection::vec("[ab ]{0,6}", 0..12),
        pattern in prop::sample::select(vec!["a", "^a", "b$", "a.b", r"a\s", "", "^$", "[^a]b", r"\bb"]),
        pad in 65_500_usize..65_560,
        context in 0_usize..4,
        limit in 1_usize..6,
        end in any::<bool>(),
    ) {
        // The lines lie around the edge of the first block.
        let mut text = "x".repeat(pad) + "\n" + &lines.join("\n");
        if end {
            text.push('\n');
        }
        let found = texts(search(text.as_bytes(), pattern, context, limit, 5000));
        let expected: Vec<String> = naive(&text, pattern, context, limit)
            .into_iter()
            .map(|block| block.replace(&"x".repeat(pad), &("x".repeat(500) + "... [truncated]")))
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn what_is_not_shown_is_counted() {
    let line = format!("{}\n", "x".repeat(400));
    let Found::Matches(matches) = search(line.repeat(500).as_bytes(), "x", 0, 1000, usize::MAX) else {
        panic!("it is text");
    };
    let sum = |of: fn(&Match) -> usize| matches.iter().map(of).sum::<usize>();
    assert_eq!((sum(|found| found.count), sum(|found| found.lines)), (500, 500));
    assert!(sum(|found| found.text.len()) < MAX_BYTES + 1000);
    // With the newlines between those that are counted only.
    let all: usize = (1..=500).map(|number: usize| format!("f:{number}: ").len() + 400).sum();
    let (rest, shown) = matches.split_last().unwrap();
    assert_eq!(sum(|found| found.bytes), all + rest.count - 1);
    assert!(rest.text.is_empty() && shown.iter().all(|found| found.count == 1));
}

#[test]
fn a_file_is_not_read_on_once_there_is_enough() {
    struct Endless(usize);
    impl Read for Endless {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            assert!(self.0 < 10, "reads on");
            out.fill(b'\n');
            Ok(out.len())
        }
    }
    let regex = pattern::compile("^", false, false).unwrap();
    let deadline = Instant::now() + SEARCH_TIME;
    Stop::during(&CancelToken::new(), deadline, |stop| {
        let found = Searcher::new(regex.clone(), 2, None).search(&mut Endless(0), "f", 3, stop);
        assert_eq!(texts(found.unwrap()).len(), 3);
    });
    let cancel = CancelToken::new();
    cancel.cancel();
    Stop::during(&cancel, deadline, |stop| {
        let never = pattern::compile("a", false, false).unwrap();
        Searcher::new(never, 0, None).search(&mut Endless(0), "f", 3, stop).unwrap();
    });
}

#[test]
fn the_local_disk_opens_what_it_listed_but_follows_no_link() {
    let tree = TempDir::create();
    tree.write("a", "text");
    symlink("a", tree.path().join("link")).unwrap();
    assert!(Local.open_listed(&tree.path().join("a")).is_ok());
    assert!(Local.open_listed(&tree.path().join("link")).is_err());
}

#[test]
fn a_secret_is_hidden_before_its_line_is_cut() {
    let tree = TempDir::create();
    let long = format!("{}sk-0123456789abc needle", "x".repeat(485));
    tree.write("a", format!("sk-0123456789abc\n{long}\nsk-0123456789abc"));
    let workspace = tree.workspace();
    workspace.vault.learn("K", "sk-0123456789abc");
    let tool = tool(Arc::new(workspace));
    for path in [".", "a"] {
        let text = text(&call(&*tool, json!({"pattern": "needle", "path": path, "context": 1})));
        assert!(text.starts_with("a-1- ‹secret:K›\na:2: xxx") && text.contains("xx‹secret:K›"), "{text}");
        assert!(text.contains("\na-3- ‹secret:K›") && !text.contains("sk-0"), "{text}");
    }
}
