//! What is taken back, and what is left alone.

use super::*;
use crate::tools::testing::{TempDir, call};
use crate::tools::{Workspace, builtin};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::sync::Arc;

struct Desk {
    dir: TempDir,
    workspace: Arc<Workspace>,
    journal: Journal,
}

impl Desk {
    fn new() -> Self {
        let dir = TempDir::create();
        let session = dir.path().join("session.jsonl");
        let workspace = Workspace { changes: Arc::new(Journal::new(&session)), ..dir.workspace() };
        Self { dir, workspace: Arc::new(workspace), journal: Journal::new(&session) }
    }

    fn write(&self, path: &str, content: &str) {
        let tool = builtin("write", &self.workspace).unwrap();
        call(tool.as_ref(), json!({"path": path, "content": content})).unwrap();
    }

    fn edit(&self, path: &str, old: &str, new: &str) {
        let tool = builtin("edit", &self.workspace).unwrap();
        let edits = json!([{"oldText": old, "newText": new}]);
        call(tool.as_ref(), json!({"path": path, "edits": edits})).unwrap();
    }

    /// Takes back the last `count` steps; gives what stands in the way of each file.
    fn undo(&self, count: usize, force: bool) -> Vec<Option<String>> {
        let steps = self.journal.steps().unwrap();
        let last = &steps[steps.len().saturating_sub(count)..];
        let done = carry_out(&self.journal, plan(&self.journal, last), force, None);
        done.into_iter().map(|undone| undone.error).collect()
    }

    fn mode(&self, path: &str) -> u32 {
        let there = fs::metadata(self.dir.path().join(path)).unwrap();
        there.permissions().mode() & 0o7777
    }
}

#[test]
fn bytes_and_mode_come_back_exactly() {
    let contents: [&[u8]; 4] = [b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb", b"", b"\xff\xfea\0\r\0\n\0"];
    for before in contents {
        let desk = Desk::new();
        let path = desk.dir.write("f", before);
        fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
        desk.write("f", "other");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(desk.undo(1, false), [None]);
        assert_eq!((desk.dir.read("f").as_slice(), desk.mode("f")), (before, 0o751));
        assert_eq!(desk.journal.steps().unwrap(), []);
    }
}

#[test]
fn steps_are_taken_back_one_or_several_at_a_time() {
    let desk = Desk::new();
    desk.dir.write("a", "1\n");
    desk.edit("a", "1", "2");
    desk.write("b", "new");
    desk.edit("a", "2", "3");
    let shown: Vec<String> = desk.journal.steps().unwrap().iter().map(|step| step.tool.clone()).collect();
    assert_eq!(shown, ["edit", "write", "edit"]);
    assert_eq!(desk.undo(1, false), [None]);
    assert_eq!(desk.dir.read("a"), b"2\n");
    desk.edit("a", "2", "4");
    assert_eq!(desk.undo(3, false), [None, None]);
    assert_eq!(desk.dir.read("a"), b"1\n");
    assert!(!desk.dir.path().join("b").exists());
    // Numbers go on, also for another process.
    desk.write("b", "again");
    assert_eq!(desk.journal.steps().unwrap()[0].number, 5);
}

#[test]
fn what_was_made_goes_with_its_folders() {
    let desk = Desk::new();
    desk.dir.write("there/x", "");
    desk.write("there/new/deep/f", "x");
    desk.write("made/f", "x");
    desk.dir.write("made/other", "not ours");
    assert_eq!(desk.undo(2, false), [None, None]);
    assert!(!desk.dir.path().join("there/new").exists() && desk.dir.path().join("there/x").exists());
    assert_eq!(desk.dir.read("made/other"), b"not ours");
}

#[test]
fn links_stay_links() {
    let desk = Desk::new();
    desk.dir.write("real", "old");
    symlink("real", desk.dir.path().join("link")).unwrap();
    symlink("later", desk.dir.path().join("dangling")).unwrap();
    desk.write("link", "new");
    desk.write("dangling", "new");
    assert_eq!(desk.undo(2, false), [None, None]);
    assert_eq!(desk.dir.read("real"), b"old");
    assert!(!desk.dir.path().join("later").exists());
    for link in ["link", "dangling"] {
        assert!(fs::symlink_metadata(desk.dir.path().join(link)).unwrap().is_symlink());
    }
}

#[test]
fn changes_of_others_are_not_lost_unasked() {
    let desk = Desk::new();
    desk.dir.write("a", "1\n");
    desk.edit("a", "1", "2");
    desk.dir.write("a", "mine\n");
    let since = Some("was changed since".to_owned());
    assert_eq!(desk.undo(1, false), std::slice::from_ref(&since));
    assert_eq!(desk.dir.read("a"), b"mine\n");
    // In between, too.
    desk.edit("a", "mine", "yours");
    let error = desk.undo(2, false);
    assert_eq!(error, [Some("was changed by something else after step 1".to_owned())]);
    assert_eq!(desk.undo(1, false), [None]);
    assert_eq!(desk.dir.read("a"), b"mine\n");
    fs::remove_file(desk.dir.path().join("a")).unwrap();
    assert_eq!(desk.undo(1, false), [since]);
    assert_eq!(desk.undo(1, true), [None]);
    assert_eq!(desk.dir.read("a"), b"1\n");
}

#[test]
fn a_file_that_is_as_it_was_is_left_alone() {
    let desk = Desk::new();
    desk.dir.write("a", "1\n");
    desk.edit("a", "1", "2");
    desk.dir.write("a", "1\n");
    let plans = plan(&desk.journal, &desk.journal.steps().unwrap());
    assert_eq!((&plans[0].action, &plans[0].conflict), (&Action::Nothing, &None));
    assert_eq!(desk.undo(1, false), [None]);
    assert_eq!(desk.journal.steps().unwrap(), []);
}

#[test]
fn what_cannot_be_put_back_is_said_and_nothing_is_touched() {
    let desk = Desk::new();
    desk.dir.write("a", "1\n");
    desk.edit("a", "1", "2");
    let kept = desk.dir.path().join("session.undo/00000001.before");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(&kept, "damaged").unwrap();
    assert_eq!(desk.undo(1, true), [Some("its kept content is damaged".to_owned())]);
    fs::remove_file(&kept).unwrap();
    assert!(desk.undo(1, true)[0].as_ref().unwrap().starts_with("its earlier content is not kept any more"));
    assert_eq!(desk.dir.read("a"), b"2\n");
    fs::remove_file(desk.dir.path().join("a")).unwrap();
    fs::create_dir(desk.dir.path().join("a")).unwrap();
    assert!(desk.undo(1, true)[0].is_some());
}

#[test]
fn a_change_that_failed_is_no_step() {
    let desk = Desk::new();
    desk.dir.write("file", "x");
    let tool = builtin("write", &desk.workspace).unwrap();
    call(tool.as_ref(), json!({"path": "file/below", "content": ""})).unwrap_err();
    assert_eq!(desk.journal.steps().unwrap(), []);
}

#[test]
fn a_damaged_line_costs_its_step_alone() {
    let desk = Desk::new();
    desk.write("a", "1");
    let journal = desk.dir.path().join("session.undo/journal");
    let torn = fs::read_to_string(&journal).unwrap() + "{\"type\":\"chan";
    fs::write(&journal, torn).unwrap();
    desk.write("b", "2");
    assert_eq!(desk.journal.steps().unwrap().len(), 2);
}

/// A folder that was swapped for a link leads elsewhere: nothing there is changed or removed.
#[test]
fn a_folder_that_became_a_link_is_refused() {
    for (first, second) in [(Some("EVIL"), "same"), (None, "same")] {
        let desk = Desk::new();
        desk.dir.write("out/f", "same");
        if let Some(first) = first {
            desk.write("d/f", first);
        }
        desk.write("d/f", second);
        let d = desk.dir.path().join("d");
        fs::rename(&d, desk.dir.path().join("d.old")).unwrap();
        symlink("out", &d).unwrap();
        let errors = desk.undo(1, true);
        assert!(errors[0].as_ref().unwrap().ends_with("/d is not the folder that it was"), "{errors:?}");
        assert_eq!(desk.dir.read("out/f"), b"same");
        let plans = plan(&desk.journal, &desk.journal.steps().unwrap());
        assert_eq!(preview(&desk.journal, &plans[0]), None);
    }
}

/// The journal's words are another's: paths, modes and folders are not believed.
#[test]
fn a_journal_that_was_made_up_does_no_harm() {
    let desk = Desk::new();
    let path = desk.dir.write("f", "old");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    desk.write("f", "new");
    let journal = desk.dir.path().join("session.undo/journal");
    let honest = fs::read_to_string(&journal).unwrap();
    let write = |path: &str, mode: &str, folders: &str| {
        let made_up = honest
            .replace(
                &format!("{:?}", desk.dir.path().join("f").canonicalize().unwrap()),
                &format!("{path:?}"),
            )
            .replace("\"mode\":420", mode)
            .replace("\"after\":", &format!("\"folders\":{folders},\"after\":"));
        assert_ne!(made_up, honest);
        fs::write(&journal, made_up).unwrap();
    };
    for path in ["f", "../f", "/tmp/../f", "", "/"] {
        write(path, "\"mode\":420", "[]");
        let errors = desk.undo(1, true);
        assert_eq!(errors, [Some("its path in the journal is not an absolute one".to_owned())], "{path}");
    }
    write(path.canonicalize().unwrap().to_str().unwrap(), "\"mode\":2541", "[]");
    assert_eq!(desk.undo(1, true), [None]);
    assert_eq!((desk.dir.read("f").as_slice(), desk.mode("f")), (&b"old"[..], 0o755));
    // An empty folder elsewhere is none that came with the file.
    let desk = Desk::new();
    desk.write("made/f", "x");
    let empty = desk.dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let journal = desk.dir.path().join("session.undo/journal");
    let made = desk.dir.path().join("made").canonicalize().unwrap();
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replace(&format!("[{made:?}]"), &format!("[{empty:?}]"))).unwrap();
    assert_eq!(desk.undo(1, true), [None]);
    assert!(empty.exists() && made.exists());
}

#[test]
fn a_journal_behind_a_link_is_not_read_or_written() {
    let desk = Desk::new();
    desk.write("f", "new");
    let folder = desk.dir.path().join("session.undo");
    fs::rename(&folder, desk.dir.path().join("elsewhere")).unwrap();
    symlink("elsewhere", &folder).unwrap();
    assert!(desk.journal.steps().unwrap_err().to_string().ends_with("is a symbolic link"));
    let before = desk.dir.read("elsewhere/journal");
    desk.write("g", "new");
    assert_eq!(desk.dir.read("elsewhere/journal"), before);
}
