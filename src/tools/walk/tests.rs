//! Walks of real trees, compared with git.

use super::*;
use crate::tools::backend::{Child, DirEntry, ShellCommand, Source, Stat};
use crate::tools::local::Local;
use crate::tools::testing::TempDir;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Finds all entries; folders end in a slash.
struct All;

impl Search for All {
    type Worker = ();
    type Found = String;
    const BATCH: usize = 3;

    fn worker(&self) {}

    fn enters(&self, (): &mut (), _: &Entry<'_>) -> bool {
        true
    }

    fn wants(&self, (): &mut (), _: &Entry<'_>) -> bool {
        true
    }

    fn look(&self, (): &mut (), entry: &Entry<'_>, _: usize, _: &Stop) -> io::Result<Option<String>> {
        assert!(entry.relative().ends_with(entry.name()));
        assert!(entry.path().as_os_str().as_bytes().ends_with(entry.relative()));
        let slash = if entry.kind == Kind::Dir { "/" } else { "" };
        Ok(Some(String::from_utf8_lossy(entry.relative()).into_owned() + slash))
    }

    fn count(_: &String) -> usize {
        1
    }

    fn bytes(path: &String) -> usize {
        path.len()
    }
}

/// The disk, or the replacement of `listing`.
struct Disk<'a> {
    listing: &'a (dyn Fn(&Path) -> Option<io::Result<Vec<DirEntry>>> + Sync),
}

fn entries(names: impl IntoIterator<Item = String>, kind: Kind) -> Vec<DirEntry> {
    let entry = |name: String| DirEntry { name: name.into(), kind };
    names.into_iter().map(entry).collect()
}

impl Backend for Disk<'_> {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        Local.open(path)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Local.stat(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        (self.listing)(path).unwrap_or_else(|| Local.list(path))
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        Local.write(path, content)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        Local.create_dir_all(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Local.canonical(path)
    }

    fn spawn(&self, command: &ShellCommand) -> io::Result<Box<dyn Child>> {
        Local.spawn(command)
    }
}

fn walk<'a>(backend: &'a dyn Backend, root: &Path, cancel: &'a CancelToken) -> Walk<'a> {
    Walk {
        backend,
        root: root.to_owned(),
        scope: Some(Scope::load(backend, root, root, Some(&root.join("home")), None)),
        cancel,
        deadline: Instant::now() + SEARCH_TIME,
        limit: usize::MAX,
    }
}

/// All results of a walk.
fn all(root: &Path) -> Vec<String> {
    let cancel = CancelToken::new();
    let mut found = Vec::new();
    let summary = walk(&Local, root, &cancel).run(&All, &mut |path| found.push(path));
    assert_eq!(summary.unwrap(), Summary::default());
    found
}

#[test]
fn what_is_found_comes_in_path_order() {
    let tree = TempDir::create();
    for path in ["b", "a.b", "a/z", "a/b/c", "a/b.c", "a-/x", "é", "B", "a/b/9", "a/1", "a/2", "a/3"] {
        tree.write(path, "");
    }
    let expected = [
        "B", "a/", "a/1", "a/2", "a/3", "a/b/", "a/b/9", "a/b/c", "a/b.c", "a/z", "a-/", "a-/x", "a.b", "b",
        "é",
    ];
    for _ in 0..20 {
        assert_eq!(all(tree.path()), expected);
    }
}

/// Folders three deep, ten in each, with ten files.
fn made(path: &Path) -> Option<io::Result<Vec<DirEntry>>> {
    let depth = path.components().count() - Path::new("/made").components().count();
    let mut made = entries((0..10).map(|n| format!("{n}.txt")), Kind::File);
    if depth < 3 {
        made.extend(entries((0..10).map(|n| n.to_string()), Kind::Dir));
    }
    Some(Ok(made))
}

#[test]
fn a_limit_gives_the_first_and_ends_the_walk() {
    let listings = AtomicUsize::new(0);
    let disk = Disk {
        listing: &|path| {
            listings.fetch_add(1, Relaxed);
            made(path)
        },
    };
    let first = |limit: usize| {
        listings.store(0, Relaxed);
        let cancel = CancelToken::new();
        let mut limited = walk(&disk, Path::new("/made"), &cancel);
        limited.limit = limit;
        let mut found = Vec::new();
        limited.run(&All, &mut |path| found.push(path)).unwrap();
        (found, listings.load(Relaxed))
    };
    let (all, folders) = first(usize::MAX);
    assert_eq!((all.len(), folders), (11_110 + 1110, 1111));
    for limit in [1, 2, 3, 10, 100, 1000, all.len(), all.len() + 1] {
        let (found, folders) = first(limit);
        assert_eq!(found, all[..limit.min(all.len())]);
        assert!(limit > 100 || folders < 400, "{limit}: {folders} listed");
    }
}

#[test]
fn links_and_git_are_not_entered() {
    let tree = TempDir::create();
    tree.write(".git/config", "");
    tree.write("sub/.git", "gitdir: elsewhere");
    tree.write("sub/.git2/x", "");
    symlink("..", tree.path().join("sub/up")).unwrap();
    symlink("loop", tree.path().join("loop")).unwrap();
    assert_eq!(all(tree.path()), ["loop", "sub/", "sub/.git2/", "sub/.git2/x", "sub/up"]);
    let cancel = CancelToken::new();
    let mut inside = walk(&Local, &tree.path().join(".git"), &cancel);
    inside.scope = None;
    let mut found = Vec::new();
    inside.run(&All, &mut |path| found.push(path)).unwrap();
    assert_eq!(found, ["config"]);
}

#[test]
fn ignored_folders_are_not_listed_and_hold_no_exceptions() {
    let tree = TempDir::create();
    tree.write(".gitignore", "target/\n!target/keep\nlogs/*\n!logs/keep\n");
    tree.write("target/keep", "");
    tree.write("target/.gitignore", "!*");
    tree.write("logs/keep", "");
    tree.write("logs/other", "");
    let seen = Mutex::new(Vec::new());
    let disk = Disk {
        listing: &|path| {
            seen.lock().unwrap().push(path.to_owned());
            None
        },
    };
    let cancel = CancelToken::new();
    let mut found = Vec::new();
    walk(&disk, tree.path(), &cancel).run(&All, &mut |path| found.push(path)).unwrap();
    assert_eq!(found, [".gitignore", "logs/", "logs/keep"]);
    assert_eq!(seen.into_inner().unwrap(), [tree.path().to_owned(), tree.path().join("logs")]);
}

#[test]
fn what_cannot_be_read_is_skipped_and_counted() {
    let tree = TempDir::create();
    tree.write("a/locked/x", "");
    tree.write("b", "");
    let cancel = CancelToken::new();
    let disk = Disk {
        listing: &|path| {
            let locked = path.ends_with("locked");
            locked.then(|| Err(io::ErrorKind::PermissionDenied.into()))
        },
    };
    let mut found = Vec::new();
    let summary = walk(&disk, tree.path(), &cancel).run(&All, &mut |path| found.push(path));
    assert_eq!(found, ["a/", "a/locked/", "b"]);
    assert_eq!(summary.unwrap().unreadable, 1);
    let root = tree.path().join("a/locked");
    let error = walk(&disk, &root, &cancel).run(&All, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn a_folder_that_goes_away_meanwhile_is_no_error() {
    let tree = TempDir::create();
    tree.write("a/x", "");
    tree.write("b/x", "");
    let gone = tree.path().join("b");
    let disk = Disk {
        listing: &|path| {
            if path.ends_with("b") {
                let _ = fs::remove_dir_all(&gone);
            }
            None
        },
    };
    let cancel = CancelToken::new();
    let mut found = Vec::new();
    let summary = walk(&disk, tree.path(), &cancel).run(&All, &mut |path| found.push(path));
    assert_eq!(summary.unwrap(), Summary::default());
    assert_eq!(found, ["a/", "a/x", "b/"]);
}

#[test]
fn a_cancel_ends_the_walk_within_one_listing() {
    let cancel = CancelToken::new();
    let listings = AtomicUsize::new(0);
    let disk = Disk {
        listing: &|path| {
            if listings.fetch_add(1, Relaxed) == 20 {
                cancel.cancel();
            }
            made(path)
        },
    };
    walk(&disk, Path::new("/made"), &cancel).run(&All, &mut |_| {}).unwrap();
    assert!(listings.into_inner() <= 21 + MAX_THREADS);
}

#[test]
fn a_deadline_ends_the_walk_with_what_it_has() {
    let tree = TempDir::create();
    tree.write("a/x", "");
    let cancel = CancelToken::new();
    let mut late = walk(&Local, tree.path(), &cancel);
    late.deadline = Instant::now();
    let summary = late.run(&All, &mut |_| {}).unwrap();
    assert!(summary.timed_out);
}

#[test]
fn wide_and_deep_trees_are_walked() {
    let cancel = CancelToken::new();
    let disk = Disk {
        listing: &|path| {
            Some(Ok(match path.file_name().and_then(OsStr::to_str) {
                Some("made") => entries(["d".into(), "wide".into()], Kind::Dir),
                Some("wide") => entries((0..50_000).map(|n| format!("{n:05}")), Kind::File),
                _ if path.components().count() < 1000 => entries(["d".into()], Kind::Dir),
                _ => entries(["x".into()], Kind::File),
            }))
        },
    };
    let mut found = Vec::new();
    walk(&disk, Path::new("/made"), &cancel).run(&All, &mut |path| found.push(path)).unwrap();
    assert_eq!(found.len(), 50_000 + 1 + 999);
    assert!(found.is_sorted());
}

#[test]
fn kernel_file_systems_are_entered_by_name_only() {
    let disk = Disk {
        listing: &|path| {
            let names: &[&str] = match path.to_str() {
                Some("/") => &["dev", "etc", "proc", "sys"],
                Some("/proc") => &["sys"],
                _ => &[],
            };
            Some(Ok(entries(names.iter().map(|name| name.to_string()), Kind::Dir)))
        },
    };
    for (root, expected) in [("/", "etc/"), ("/proc", "sys/")] {
        let cancel = CancelToken::new();
        let mut found = Vec::new();
        walk(&disk, Path::new(root), &cancel).run(&All, &mut |path| found.push(path)).unwrap();
        assert_eq!(found, [expected]);
    }
}

/// A deterministic generator, so that a seed always makes one tree.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }

    fn rules(&mut self) -> String {
        const PIECES: &[&str] = &[
            "a",
            "b",
            "c",
            "ab",
            "a.c",
            ".c",
            "x",
            "é",
            "*",
            "*",
            "*",
            "?",
            "**",
            "**/",
            "/**",
            "/",
            "/",
            "/**/",
            "[ab]",
            "[!a]",
            "[^b]",
            "[a-c]",
            "[[:alpha:]]",
            "[]-]",
            "[a",
            "\\*",
            "\\a",
            "\\",
            " ",
            "\\ ",
            "***",
            "a/b",
            "#",
        ];
        let mut text = String::from(self.pick(&["", "", "", "\u{feff}"]));
        for _ in 0..=self.below(5) {
            text.push_str(self.pick(&["", "", "", "!", "/", "!/", "#", " "]));
            for _ in 0..=self.below(4) {
                text.push_str(self.pick(PIECES));
            }
            text.push_str(self.pick(&["", "", "", "/", " ", "\\ ", "\t"]));
            text.push_str(self.pick(&["\n", "\n", "\r\n", "\n\n"]));
        }
        if self.below(3) == 0 {
            text.truncate(text.trim_end().len());
        }
        text
    }

    fn tree(&mut self, folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) {
        const NAMES: &[&str] = &[
            "a", "b", "c", "ab", "ba", "x", "a.c", "b.c", ".c", "a b", "a ", "[a", "*", "!a", "#", "\\", "é",
            "-", "]",
        ];
        if self.below(2) == 0 {
            fs::write(folder.join(".gitignore"), self.rules()).unwrap();
            paths.push(folder.join(".gitignore"));
        }
        for _ in 0..2 + self.below(5) {
            let path = folder.join(self.pick(NAMES));
            if path.symlink_metadata().is_ok() {
                continue;
            }
            match self.below(5) {
                0..3 if depth > 0 => {
                    fs::create_dir(&path).unwrap();
                    self.tree(&path, depth - 1, paths);
                }
                0 => symlink(".", &path).unwrap(),
                _ => fs::write(&path, "").unwrap(),
            }
            paths.push(path);
        }
    }
}

/// The paths that git ignores; `None` if git is not installed.
fn ignored_by_git(root: &Path, home: &Path, paths: &[PathBuf]) -> Option<BTreeSet<PathBuf>> {
    let mut git = Command::new("git")
        .args(["check-ignore", "--no-index", "-z", "--stdin"])
        .current_dir(root)
        .env_clear()
        .env("PATH", std::env::var_os("PATH")?)
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = git.stdin.take().unwrap();
    let list: Vec<u8> = paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
    // Fits into the pipe: git may read it when it likes.
    io::Write::write_all(&mut input, &list).unwrap();
    drop(input);
    let output = git.wait_with_output().unwrap();
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Some(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
}

#[test]
fn what_is_left_out_is_what_git_ignores() {
    for seed in 1..=4 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let tree = TempDir::create();
        let root = tree.path().join("repo");
        let home = tree.path().join("home");
        for folder in [".git/objects", ".git/refs", ".git/info", "home"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::create_dir_all(&home).unwrap();
        fs::remove_dir(root.join("home")).unwrap();
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(root.join(".git/info/exclude"), random.rules()).unwrap();
        fs::write(home.join(".gitconfig"), "[core]\n\texcludesFile = ~/mine\n").unwrap();
        fs::write(home.join("mine"), random.rules()).unwrap();
        let mut paths = Vec::new();
        random.tree(&root, 2, &mut paths);
        for tree in 0..3 {
            let folder = root.join(format!("tree{tree}"));
            fs::create_dir(&folder).unwrap();
            random.tree(&folder, 2, &mut paths);
            paths.push(folder);
        }

        let Some(ignored) = ignored_by_git(&root, &home, &paths) else {
            eprintln!("git is not installed: its rules are not compared");
            return;
        };
        let kept: BTreeSet<PathBuf> = paths
            .iter()
            .filter(|path| !path.ancestors().any(|above| ignored.contains(above)))
            .cloned()
            .collect();
        let cancel = CancelToken::new();
        let mut found = BTreeSet::new();
        let mut walk = walk(&Local, &root, &cancel);
        walk.scope = Some(Scope::load(&Local, &root, &root, Some(&home), None));
        walk.run(&All, &mut |path: String| {
            found.insert(root.join(path.trim_end_matches('/')));
        })
        .unwrap();
        if found != kept {
            for file in paths.iter().filter(|path| path.ends_with(".gitignore")) {
                eprintln!("{}:\n{:?}", file.display(), fs::read_to_string(file).unwrap());
            }
            let text = |name: &Path| fs::read_to_string(name).unwrap();
            eprintln!("exclude: {:?}", text(&root.join(".git/info/exclude")));
            eprintln!("user: {:?}", text(&home.join("mine")));
            let ours: Vec<_> = found.difference(&kept).collect();
            let theirs: Vec<_> = kept.difference(&found).collect();
            panic!("seed {seed}: only we keep {ours:?}, only git keeps {theirs:?}");
        }
    }
}
