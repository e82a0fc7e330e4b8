//! Commands that change a folder, and their undo.

use super::*;
use crate::base::failpoint;
use crate::runtime::undo::{Journal, carry_out, plan};
use crate::tools::Changes;
use crate::tools::testing::TempDir;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

struct Desk {
    dir: TempDir,
    journal: Journal,
}

/// Kind, mode and content of everything below a folder.
fn everything(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let about = entry.metadata().unwrap();
            let mode = about.permissions().mode() & 0o777;
            let text = if about.is_symlink() {
                format!("link {}", fs::read_link(entry.path()).unwrap().display())
            } else if about.is_dir() {
                folders.push(entry.path());
                format!("folder {mode:o}")
            } else {
                format!("file {mode:o} {:?}", fs::read(entry.path()).unwrap())
            };
            found.insert(entry.path().strip_prefix(root).unwrap().to_owned(), text);
        }
    }
    found
}

impl Desk {
    fn new(setup: &str, extent: Extent) -> Self {
        let dir = TempDir::create();
        for name in ["w", "agent"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let journal = Self::journal(&dir, extent);
        let desk = Self { dir, journal };
        desk.sh(setup);
        desk
    }

    fn journal(dir: &TempDir, extent: Extent) -> Journal {
        let watch = Watch::new(&dir.path().join("w"), &dir.path().join("agent"), None, extent);
        Journal::watching(&dir.path().join("session.jsonl"), Some(watch))
    }

    /// A new process in the same folder.
    fn restart(&mut self) {
        self.journal = Journal::new(&self.dir.path().join("other.jsonl"));
        self.journal = Self::journal(&self.dir, Extent::Small);
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    fn sh(&self, script: &str) {
        let mut command = Command::new("sh");
        let status = command.args(["-ec", script]).current_dir(self.root()).status().unwrap();
        assert!(status.success(), "{script}");
    }

    /// Runs a command that is looked at, and returns the paths that it changed.
    fn run(&self, script: &str) -> Vec<String> {
        let before = self.journal.steps().unwrap().len();
        let number = self.journal.begin("bash", "call", &CancelToken::new());
        self.sh(script);
        if let Some(number) = number {
            self.journal.end("bash", "call", number);
        }
        let root = self.root().canonicalize().unwrap();
        let steps = self.journal.steps().unwrap().split_off(before);
        let path = |path: &Path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        steps.iter().map(|step| path(&step.path)).collect()
    }

    /// Undoes all steps; returns what stood in the way.
    fn undo(&self, force: bool) -> Vec<String> {
        let steps = self.journal.steps().unwrap();
        let done = carry_out(&self.journal, plan(&self.journal, &steps), force, None);
        done.into_iter().filter_map(|done| done.error).collect()
    }
}

const SETUP: &str = "umask 022; printf one >a; printf two >b; mkdir -p d/e; printf three >d/e/c; printf x >d/x; \
    chmod 751 a; ln -s a l; mkdir m; chmod 700 m; ln -s nowhere broken; printf '*.log\nout/\n' >.gitignore; \
    printf old >k.log; mkdir out; printf o >out/o";

#[test]
fn what_a_command_did_is_undone_exactly() {
    let rows: &[(&str, &[&str])] = &[
        ("true", &[]),
        ("printf 1 >a", &["a"]),
        ("touch a; printf two >b", &[]),
        ("chmod 600 a", &["a"]),
        ("rm a l", &["a", "l"]),
        ("mv a z", &["a", "z"]),
        ("mv d q", &["d", "d/e", "d/e/c", "d/x", "q", "q/e", "q/e/c", "q/x"]),
        ("rm -r d", &["d", "d/e", "d/e/c", "d/x"]),
        ("mkdir -p n/o/p; printf n >n/o/f", &["n", "n/o", "n/o/f", "n/o/p"]),
        ("rmdir m", &["m"]),
        ("chmod 755 m; printf i >m/i", &["m", "m/i"]),
        ("ln -sfn b l", &["l"]),
        ("rm l; printf l >l", &["l"]),
        ("rm a; ln -s b a", &["a"]),
        ("rm a; mkdir a; printf i >a/i", &["a", "a/i"]),
        ("rm -r d; printf d >d", &["d", "d/e", "d/e/c", "d/x"]),
        ("rm -r d; ln -s out d", &["d", "d/e", "d/e/c", "d/x"]),
        ("rm -r d; mkdir d; printf new >d/x", &["d/e", "d/e/c", "d/x"]),
        ("mv a t; mv b a; mv t b", &["a", "b"]),
        ("mkdir r; chmod 500 r; chmod 555 d/e", &["d/e", "r"]),
        // What is ignored is not known.
        ("printf new >k.log; printf p >out/p", &[]),
        // What the rules let appear or vanish is no change of it.
        ("printf '*.log\n' >.gitignore", &[".gitignore"]),
        ("printf 'd/\n*.log\nout/\nb\n' >.gitignore", &[".gitignore"]),
        ("printf 'out/\n' >.gitignore; printf n >n.log", &[".gitignore", "n.log"]),
    ];
    for (script, expected) in rows {
        let mut desk = Desk::new(SETUP, Extent::Small);
        let before = everything(&desk.root());
        // What is older than a command by less than the clock's resolution could be its work.
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(desk.run(script), *expected, "{script}");
        let unwatched = script.contains("k.log;");
        assert_eq!(desk.undo(false), [""; 0], "{script}");
        if !unwatched {
            assert_eq!(everything(&desk.root()), before, "{script}");
        }
        assert_eq!(desk.journal.steps().unwrap(), [], "{script}");
        // Once more in a process that takes up what is known.
        desk.restart();
        let before = everything(&desk.root());
        if !unwatched {
            assert_eq!(desk.run(script), *expected, "again: {script}");
            assert_eq!(desk.undo(false), [""; 0], "again: {script}");
            assert_eq!(everything(&desk.root()), before, "again: {script}");
        }
    }
}

#[test]
fn several_commands_are_undone_together() {
    let desk = Desk::new(SETUP, Extent::Small);
    let before = everything(&desk.root());
    desk.run("printf 1 >a; rm -r d");
    desk.run("mkdir d; printf 2 >a; printf y >d/y");
    desk.run("rm a; mv d/y b");
    assert_eq!(desk.undo(false), [""; 0]);
    assert_eq!(everything(&desk.root()), before);
}

#[test]
fn what_others_change_is_not_lost() {
    let desk = Desk::new(SETUP, Extent::Small);
    desk.run("printf 1 >a; printf 1 >b; rm d/x; mkdir n; printf n >n/n");
    desk.sh("printf mine >a; printf mine >d/x; printf mine >n/other");
    let mut said = desk.undo(false);
    said.sort();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("not empty") || said[0].contains("Directory"), "{said:?}");
    assert_eq!(said[1..], ["was changed since", "was changed since"]);
    let read = |path: &str| fs::read_to_string(desk.root().join(path)).unwrap();
    assert_eq!([read("a"), read("d/x"), read("n/other"), read("b")], ["mine", "mine", "mine", "two"]);
    assert!(!desk.root().join("n/n").exists());
    // Between two commands, too.
    let desk = Desk::new(SETUP, Extent::Small);
    desk.run("printf 1 >a");
    desk.sh("printf mine >a");
    desk.run("printf 2 >a");
    assert_eq!(desk.undo(false), ["was changed by something else after step 2"]);
    assert_eq!(desk.undo(true), [""; 0]);
    assert_eq!(fs::read_to_string(desk.root().join("a")).unwrap(), "one");
}

#[test]
fn commands_at_once_and_tools_beside_them_are_told_apart() {
    let desk = Desk::new(SETUP, Extent::Small);
    let before = everything(&desk.root());
    let cancel = CancelToken::new();
    let one = desk.journal.begin("bash", "one", &cancel).unwrap();
    let two = desk.journal.begin("bash", "two", &cancel).unwrap();
    desk.sh("printf 1 >a");
    let path = desk.root().canonicalize().unwrap().join("b");
    let backend: &dyn crate::tools::backend::Backend = &crate::tools::local::Local;
    let change = crate::tools::Change { tool: "write", call: "w", path: &path, content: b"written", backend };
    desk.journal.before(&change).unwrap();
    fs::write(&path, "written").unwrap();
    desk.journal.end("bash", "one", one);
    desk.sh("printf 2 >a");
    desk.journal.end("bash", "two", two);
    let steps: Vec<String> = desk.journal.steps().unwrap().iter().map(|step| step.call.clone()).collect();
    assert_eq!(steps, ["w", "one", "two"]);
    assert_eq!(desk.undo(false), [""; 0]);
    assert_eq!(everything(&desk.root()), before);
}

#[test]
fn what_cannot_be_known_is_said() {
    let said =
        |desk: &Desk| desk.journal.unseen().unwrap().into_iter().map(|unseen| unseen.why).collect::<Vec<_>>();
    // Too large for the small extent, but not for the large one.
    let big = "head -c 1500000 /dev/zero >big";
    for (extent, is_kept) in [(Extent::Small, false), (Extent::All(1 << 30), true)] {
        let desk = Desk::new(big, extent);
        assert_eq!(desk.run("printf 1 >>big"), ["big"]);
        let undone = desk.undo(true);
        assert_eq!(undone.is_empty(), is_kept, "{undone:?}");
        assert!(is_kept || undone[0].contains("too large"), "{undone:?}");
    }
    let desk = Desk::new(big, Extent::All(1 << 20));
    assert_eq!(desk.run("printf 1 >a"), [""; 0]);
    assert!(said(&desk)[0].contains("holds more than 1 MB"), "{:?}", said(&desk));
    // Nothing of it was kept.
    let store = fs::read_dir(desk.dir.path().join("agent/checkpoints")).unwrap().flatten().next().unwrap();
    assert_eq!(fs::metadata(store.path().join("contents")).unwrap().len(), 0);
    let desk = Desk::new("i=0; mkdir f; while [ $i -lt 10001 ]; do : >f/$i; i=$((i+1)); done", Extent::Small);
    desk.run("true");
    assert!(said(&desk)[0].contains("more than 10000 files; the setting undo.commands"), "{:?}", said(&desk));
    // A command whose end never came.
    let desk = Desk::new(SETUP, Extent::Small);
    desk.journal.begin("bash", "x", &CancelToken::new()).unwrap();
    assert_eq!(said(&desk), ["pi ended while it ran"]);
    // The folder of pi itself.
    let dir = TempDir::create();
    let watch = Watch::new(dir.path(), &dir.path().join("agent"), None, Extent::Small);
    assert!(watch.begin(&CancelToken::new()).unwrap_err().contains("agent folder"));
}

#[test]
fn a_full_disk_loses_nothing() {
    for point in ["undo.pack:1:err", "undo.steps:1:err", "undo.write:2:err"] {
        let desk = Desk::new(SETUP, Extent::Small);
        // The first scan has a thread of its own, which knows nothing of the failure.
        desk.run("true");
        failpoint::with(point, || desk.run("printf new >a; printf new >n"));
        let root = desk.root();
        let text = fs::read_to_string(root.join("a")).unwrap();
        let unseen = desk.journal.unseen().unwrap();
        let undone = desk.undo(false);
        let after = fs::read_to_string(root.join("a")).unwrap();
        // Either it is undone, or the change is there and somebody is told.
        let is_told = !unseen.is_empty() || !undone.is_empty();
        assert!(
            text == "new" && (after == "one" || is_told && after == "new"),
            "{point} {unseen:?} {undone:?}"
        );
    }
}

#[test]
fn what_a_full_disk_left_out_is_seen_by_the_next_process() {
    let mut desk = Desk::new(SETUP, Extent::Small);
    desk.run("true");
    // What has just changed is looked at again in any case.
    failpoint::with("undo.pack:1:err", || desk.run("printf new >n; sleep 0.1"));
    desk.restart();
    assert_eq!(desk.run("printf newer >n"), ["n"]);
    desk.undo(false);
    assert_eq!(fs::read_to_string(desk.root().join("n")).unwrap(), "new");
}

#[test]
fn damaged_files_of_the_store_cost_a_scan_alone() {
    for name in ["index", "contents"] {
        let mut desk = Desk::new(SETUP, Extent::Small);
        let before = everything(&desk.root());
        desk.run("true");
        desk.restart();
        let store =
            fs::read_dir(desk.dir.path().join("agent/checkpoints")).unwrap().flatten().next().unwrap();
        let path = store.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() / 2;
        bytes.truncate(at);
        fs::write(&path, bytes).unwrap();
        desk.run("rm -r a b d");
        assert_eq!(desk.undo(false), [""; 0], "{name}");
        assert_eq!(everything(&desk.root()), before, "{name}");
    }
}
