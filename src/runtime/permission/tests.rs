//! Decisions, by table, and what must hold for any command.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// The verdict on a call in `/p`, home `/h`. `rules` are lines such as `allow bash(ls *)`. The call is a command
/// behind `$`, or a tool and a path or JSON arguments.
fn decide(mode: &str, rules: &str, call: &str) -> Verdict {
    with(mode, rules, call, judge)
}

fn with<T>(mode: &str, rules: &str, call: &str, then: impl Fn(&Policy, &Call<'_>) -> T) -> T {
    let mut policy = Policy { mode: Mode::of_setting(mode), ..Policy::default() };
    if mode == "every" {
        policy.mode = Mode::Every;
    }
    for line in rules.lines() {
        let (effect, rule) = line.trim().split_once(' ').unwrap();
        let effect = Effect::ALL.into_iter().find(|known| known.name() == effect).unwrap();
        policy.add(effect, Scope::User, rule);
    }
    assert_eq!(policy.faults, Vec::<String>::new());
    let resolve = |path: &str| {
        let path = match path.strip_prefix("~/") {
            Some(rest) => Path::new("/h").join(rest),
            None => Path::new("/p").join(path),
        };
        let path = crate::runtime::normalize_path(&path);
        // A link in the project leads to a secret.
        let real = (path == Path::new("/p/link")).then(|| PathBuf::from("/h/.ssh/id"));
        [path].into_iter().chain(real).collect()
    };
    let folders = [PathBuf::from("/p")];
    let place = Place { folders: &folders, home: Some(Path::new("/h")), resolve: &resolve };
    let (tool, about) = match call.strip_prefix('$') {
        Some(command) => ("bash", command.trim_start()),
        None => call.split_once(' ').unwrap_or((call, "")),
    };
    let arguments = serde_json::from_str(about).unwrap_or(json!({}));
    let subject = match (tool, about.starts_with('{')) {
        ("bash", _) => Subject::Command(parse_command(about)),
        (_, true) => Subject::Other,
        _ => Subject::Path { paths: resolve(about), is_folder: tool == "grep" },
    };
    let reads_only = ["read", "grep"].contains(&tool);
    let none = Map::new();
    let arguments = arguments.as_object().unwrap_or(&none);
    then(&policy, &Call { tool, reads_only, subject, arguments, place: &place })
}

/// `+` allowed, `?` asked, `-` denied.
fn sign(verdict: &Verdict) -> char {
    match verdict {
        Verdict::Allow => '+',
        Verdict::Ask(_) => '?',
        Verdict::Deny(_) => '-',
    }
}

#[test]
fn modes_decide_where_no_rule_does() {
    for (mode, expected) in
        [("free", "+++"), ("writes", "+??"), ("all", "???"), ("read-only", "+--"), ("every", "???")]
    {
        let signs: String =
            ["read a", "write a", "$ ls"].iter().map(|call| sign(&decide(mode, "", call))).collect();
        assert_eq!(signs, expected, "{mode}");
    }
}

#[test]
fn deny_goes_before_ask_and_ask_before_allow() {
    for (mode, rules, call, expected) in [
        ("all", "allow read", "read a", '+'),
        ("free", "ask read", "read a", '?'),
        ("free", "allow read\nask read", "read a", '?'),
        ("free", "allow read\nask read\ndeny read", "read a", '-'),
        ("all", "deny read(a)\nallow read", "read a", '-'),
        ("all", "deny read(a)\nallow read", "read b", '+'),
        // What a mode refuses is not allowed by a rule, and a client of its own rules sees every call.
        ("read-only", "allow bash", "$ ls", '-'),
        ("read-only", "deny read", "read a", '-'),
        ("every", "allow read", "read a", '?'),
    ] {
        assert_eq!(sign(&decide(mode, rules, call)), expected, "{mode} {rules} {call}");
    }
}

#[test]
fn a_command_is_allowed_only_if_each_part_is() {
    for (rules, call, expected) in [
        ("allow bash(cargo test *)", "$ cargo test", '+'),
        ("allow bash(cargo test *)", "$ cargo test --lib 'a b' $X *.rs", '+'),
        ("allow bash(cargo test:*)", "$ cargo test --lib", '+'),
        ("allow bash(cargo test)", "$ cargo test --lib", '?'),
        ("allow bash(cargo test *)", "$ 'cargo' te\"st\" x", '+'),
        ("allow bash(cargo test *)", "$ cargo testament", '?'),
        ("allow bash(cargo test *)", "$ cargo build; cargo test", '?'),
        ("allow bash(cargo test *)", "$ cargo test; rm x", '?'),
        ("allow bash(cargo test *)", "$ cargo test && rm x", '?'),
        ("allow bash(cargo test *)", "$ cargo test | sh", '?'),
        ("allow bash(cargo test *)", "$ cargo test & rm x", '?'),
        ("allow bash(cargo test *)", "$ cargo test\nrm x", '?'),
        ("allow bash(cargo test *)", "$ cargo test $(rm x)", '?'),
        ("allow bash(cargo test *)", "$ cargo test `rm x`", '?'),
        ("allow bash(cargo test *)", "$ cargo test <(rm x)", '?'),
        ("allow bash(cargo test *)", "$ cargo test \"$(rm x)\"", '?'),
        ("allow bash(cargo test *)", "$ cargo test '$(rm x)'", '+'),
        ("allow bash(cargo test *)", "$ (cargo test)", '+'),
        ("allow bash(cargo test *)", "$ if cargo test; then cargo test x; fi", '+'),
        ("allow bash(cargo test *)", "$ echo cargo test", '?'),
        ("allow bash(cargo test *)", "$ ./cargo test", '?'),
        ("allow bash(cargo test *)", "$ /tmp/cargo test", '?'),
        ("allow bash(cargo test *)", "$ $X cargo test", '?'),
        ("allow bash(cargo test *)", "$ cargo $X", '?'),
        ("allow bash(cargo test *)", "$ PATH=/tmp cargo test", '?'),
        ("allow bash(cargo test *)", "$ PATH=/tmp; cargo test", '?'),
        ("allow bash(RUST_LOG=debug cargo test *)", "$ RUST_LOG=debug cargo test", '+'),
        ("allow bash(cargo test *)", "$ cargo test 2>&1 >/dev/null", '+'),
        ("allow bash(cargo test *)", "$ cargo test > log", '?'),
        ("allow bash(cargo test *)\nallow write(log)", "$ cargo test > log", '+'),
        ("allow bash(cargo test *)\nallow write(log)", "$ cargo test > ../log", '?'),
        ("allow bash(cargo test *)\nallow write(log)", "$ cargo test > $X", '?'),
        ("allow bash(cargo test *)\nallow write(*)", "$ cargo test > link", '+'),
        ("allow bash(cargo test *)\nallow write(./**)", "$ cargo test > link", '?'),
        ("allow bash(*)\nask read", "$ cd / && rm x", '+'),
        ("allow bash(cd *)\nallow bash(./run *)", "$ ./run", '+'),
        ("allow bash(cd *)\nallow bash(./run *)", "$ cd x && ./run", '?'),
        ("allow bash(cd *)\nallow bash(ls *)\nallow write(log)", "$ cd x && ls > log", '?'),
        ("allow bash(npm run test-* *)", "$ npm run test-a --x", '+'),
        ("allow bash(npm run test-*)", "$ npm run build", '?'),
        ("allow bash(git -C * status)", "$ git -C /a/b status", '+'),
        ("allow bash(git -C * status)", "$ git -C $X status", '?'),
        ("allow bash", "$ f() { rm x; }; f", '+'),
        ("allow bash(f *)", "$ f() { rm x; }; f", '?'),
        ("allow bash(ls *)", "$ # nothing", '?'),
        ("allow bash(git commit *)", "$ git commit -m \"$(cat <<'EOF'\nit's `all` here\nEOF\n)\"", '?'),
        (
            "allow bash(git commit *)\nallow bash(cat *)",
            "$ git commit -m \"$(cat <<'EOF'\nit's `all` here\nEOF\n)\"",
            '+',
        ),
    ] {
        assert_eq!(sign(&decide("writes", rules, call)), expected, "{rules} {call}");
    }
}

#[test]
fn a_command_is_denied_wherever_it_stands() {
    for (rules, call, expected) in [
        ("deny bash(rm *)", "$ rm -rf x", '-'),
        ("deny bash(rm *)", "$ ls; rm x", '-'),
        ("deny bash(rm *)", "$ echo $(rm x)", '-'),
        ("deny bash(rm *)", "$ /bin/rm x", '-'),
        ("deny bash(rm *)", "$ \\rm x", '-'),
        ("deny bash(rm *)", "$ A=1 rm x", '-'),
        ("deny bash(rm *)", "$ sudo -u root rm x", '-'),
        ("deny bash(rm *)", "$ find . -exec rm {} ';'", '-'),
        ("deny bash(rm *)", "$ bash -c 'ls && rm x'", '-'),
        ("deny bash(rm *)", "$ sudo sh -c 'rm x'", '-'),
        ("deny bash(rm *)", "$ eval 'rm x'", '-'),
        ("deny bash(rm *)", "$ bash -c \"$X\"", '?'),
        ("deny bash(rm *)", "$ $X y", '?'),
        ("deny bash(rm *)", "$ r{m,} y", '?'),
        ("deny bash(rm *)", "$ f() { x; }", '?'),
        ("deny bash(rm *)", "$ echo rm $X", '+'),
        ("deny bash(rm *)", "$ echo 'rm x'", '+'),
        ("deny bash(git push *)", "$ git push", '-'),
        ("deny bash(git push *)", "$ git $X", '?'),
        ("deny bash(git push *)", "$ git status", '+'),
        ("ask bash(git push *)", "$ git pull && git push", '?'),
        ("ask bash(git push *)\nallow bash(git *)", "$ git push", '?'),
        ("deny write(.env)", "$ echo x > .env", '-'),
        ("deny write(.env)", "$ echo x >> a", '+'),
        ("deny write(.env)", "$ echo x > $X", '?'),
        ("deny write(.env)", "$ cd a && echo x > .env", '?'),
        ("deny edit(.env)", "$ echo x > .env", '-'),
        ("deny read(~/.ssh/**)", "$ cat < ~/.ssh/id", '-'),
        ("deny read(~/.ssh/**)", "$ cat x", '+'),
    ] {
        assert_eq!(sign(&decide("free", rules, call)), expected, "{rules} {call}");
    }
}

#[test]
fn files_and_arguments_are_matched_by_globs() {
    for (rules, call, expected) in [
        ("allow edit(src/**)", "edit src/a/b.rs", '+'),
        ("allow edit(src/**)", "edit src/../b.rs", '?'),
        ("allow edit(src/**)", "edit /p/src/b.rs", '+'),
        ("allow edit(src/**)", "write src/b.rs", '?'),
        ("allow edit(src/*)", "edit src/a/b.rs", '?'),
        ("allow edit(./**)", "edit a", '+'),
        ("allow edit(./**)", "edit /q/a", '?'),
        // Both the link and what it leads to must be allowed.
        ("allow edit(./**)", "edit link", '?'),
        ("deny read(~/.ssh/**)", "read ~/.ssh/id", '-'),
        ("deny read(~/.ssh/**)", "read link", '-'),
        ("deny read(/h/.ssh/**)", "read ~/.ssh", '-'),
        ("deny *(**/.env)", "read a/b/.env", '-'),
        ("deny *(**/.env)", "write .env", '-'),
        ("allow mcp__files__*", "mcp__files__put {}", '+'),
        ("allow mcp__files__*", "mcp__other__put {}", '?'),
        ("allow fetch(url=https://docs.rs/*)", r#"fetch {"url": "https://docs.rs/x/y"}"#, '+'),
        ("allow fetch(url=https://docs.rs/*)", r#"fetch {"url": "https://docs.rs.example/x"}"#, '?'),
        ("allow fetch(url=https://docs.rs/*)", r#"fetch {"uri": "https://docs.rs/x"}"#, '?'),
        ("allow fetch(deep=true)", r#"fetch {"deep": true}"#, '+'),
    ] {
        assert_eq!(sign(&decide("writes", rules, call)), expected, "{rules} {call}");
    }
}

#[test]
fn a_rule_that_cannot_be_read_lets_nothing_through() {
    for text in ["", "(x)", "bash(ls", "bash (ls)", "bash(ls $X)extra", "a b"] {
        assert!(Rule::parse(text).is_err(), "{text}");
        let mut policy = Policy::default();
        policy.add(Effect::Allow, Scope::User, text);
        assert_eq!((policy.faults.len(), policy.asks_for_all), (1, false));
        policy.add(Effect::Deny, Scope::User, text);
        assert!(policy.asks_for_all && policy.entries.is_empty());
    }
    assert!(Rule::parse(" bash( * ) ").unwrap().is_about_all_of("bash"));
}

#[test]
fn what_is_proposed_is_narrow_and_allows_the_call() {
    for (rules, call, expected) in [
        ("", "$ cargo test --lib", "bash(cargo test *)"),
        ("", "$ ls -la src", "bash(ls *)"),
        ("", "$ cat src/a.rs", "bash(cat *)"),
        ("", "$ rm -rf 'a b'", "bash(rm -rf 'a b')"),
        ("", "$ python3 x.py", "bash(python3 x.py)"),
        ("", "$ git status -s", "bash(git status *)"),
        ("", "$ git push origin", "bash(git push origin)"),
        ("", "$ npm run build -- x", "bash(npm run build *)"),
        ("", "$ uv run python x.py", "bash(uv run python x.py)"),
        ("", "$ RUST_LOG=a cargo test", "bash(RUST_LOG=a cargo test *)"),
        ("", "$ cd src && make && make", "bash(cd src) bash(make *)"),
        ("allow bash(cd *)", "$ cd src && make", "bash(make *)"),
        ("", "$ make > log 2>&1", "bash(make *) write(log)"),
        ("", "$ rm $X", ""),
        ("", "$ f() { x; }", ""),
        ("", "$ a; b; c; d; e", ""),
        ("", "edit src/a/b.rs", "edit(src/a/**)"),
        ("", "edit b.rs", "edit(./**)"),
        ("", "write /q/r/b", "write(/q/r/**)"),
        ("", "grep src", "grep(src/**)"),
        ("", r#"own {"x": 1}"#, ""),
    ] {
        let all = with("all", rules, call, proposals);
        let tool = call.split(' ').next().unwrap().replace('$', "bash");
        assert_eq!(all.last().unwrap().rules, [tool]);
        let narrow = all.get(..all.len() - 1).unwrap();
        let found: Vec<&str> = narrow.iter().flat_map(|always| &always.rules).map(String::as_str).collect();
        assert_eq!(found.join(" "), expected, "{call}");
        for always in &all {
            let more: Vec<String> = always.rules.iter().map(|rule| format!("allow {rule}")).collect();
            let rules = format!("{rules}\n{}", more.join("\n"));
            assert_eq!(decide("all", rules.trim(), call), Verdict::Allow, "{rules} {call}");
        }
    }
}

proptest! {
    /// A command that is denied stays denied or asked about, and one that is not allowed stays asked about, in
    /// whatever list it stands and however it is quoted.
    #[test]
    fn nothing_around_a_command_makes_it_run(
        before in prop::sample::select(vec![
            "", "ls;", "ls && ", "ls | ", "(", "if ls; then ", "ls $(", "ls \"$(", "ls `", "ls <(", "! ", "{ ", "A=1 ",
            "ls > x; ", "for a in b; do ", "ls # x\n", "ls \\\n; ", "2>&1 ", ">x ", "cat <<E\nE\n",
        ]),
        program in prop::sample::select(vec!["rm", "'rm'", "r\"m\"", "\\rm", "/bin/rm", "r'm'"]),
        arguments in "[a-z $*'\"]{0,10}",
        after in prop::sample::select(vec!["", "; ls", ")", ")\"", "`", " | ls", "\nls", "; fi", "; done", "; }", " > /dev/null"]),
    ) {
        let command = format!("$ {before}{program} {arguments}{after}");
        let rules = "allow bash(ls *)\nallow bash(cat *)\nallow write(x)";
        prop_assert_eq!(sign(&decide("writes", rules, &command)), '?', "{}", command);
        let denied = decide("free", "deny bash(rm *)", &command);
        prop_assert!(denied != Verdict::Allow, "{}", command);
    }

    #[test]
    fn any_rule_and_command_are_decided_on(rule in "[a-z*()/ '\"$=.-]{0,20}", command in "[a-z*(){}<>|&;'\"$` \\\\\n-]{0,40}") {
        let mut policy = Policy::default();
        policy.add(Effect::Deny, Scope::User, &format!("bash({rule})"));
        let _ = decide("writes", "allow bash(ls *)", &format!("$ {command}"));
        let _ = Rule::parse(&rule);
    }
}
