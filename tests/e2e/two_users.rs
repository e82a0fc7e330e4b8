//! A home that two users share, and root in the home of a user. Needs root, and is skipped without.

use crate::agent::{Outcome, World};
use crate::server::Reply;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const ANNA: u32 = 61_001;
const BEN: u32 = 61_002;
const ROOT: u32 = 0;

/// True if this process is root, and can be others; says so if not.
fn is_root() -> bool {
    // SAFETY: it only reads the id of the user.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        eprintln!("skipped: only root can be two users");
    }
    is_root
}

fn below(folder: &Path, visit: &dyn Fn(&Path)) {
    visit(folder);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            below(&entry.path(), visit);
        } else {
            visit(&entry.path());
        }
    }
}

/// A world whose home is Anna's; `PI` is a program that other users may run.
struct Home {
    world: World,
    program: PathBuf,
}

impl Home {
    fn new(world: World) -> Self {
        below(&world.home(), &|path| chown(path, Some(ANNA), Some(ANNA)).unwrap());
        for folder in [world.work(), world.tmp()] {
            fs::set_permissions(folder, Permissions::from_mode(0o1777)).unwrap();
        }
        // The folder of the build may be closed to others.
        let program = world.home().with_file_name("pi");
        if fs::hard_link(env!("CARGO_BIN_EXE_pi"), &program).is_err() {
            // Copied by another process: a program that this one has written could be busy.
            let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_pi")).arg(&program).status();
            assert!(copied.unwrap().success());
        }
        Self { world, program }
    }

    /// What the user gets who gives these words.
    fn run(&self, user: u32, words: &str) -> Outcome {
        let mut pi = self.world.pi();
        let old = pi.command();
        let mut command = Command::new(&self.program);
        command.env_clear().current_dir(self.world.work()).uid(user).gid(user);
        command.envs(old.get_envs().filter_map(|(name, value)| Some((name, value?))));
        *old = command;
        pi.words(words).run()
    }

    /// Lets everybody write to the folders, as a shared home does that was opened to a group.
    fn open_to_all(&self) {
        below(&self.world.agent_dir(), &|path| {
            if path.is_dir() {
                fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
            }
        });
        for path in ["models.json", "settings.json"] {
            let path = self.world.agent_dir().join(path);
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
    }

    fn sessions_of(&self, user: u32) -> Vec<PathBuf> {
        let mut files = self.world.session_files();
        files.retain(|path| {
            path.extension() == Some(OsStr::new("jsonl")) && path.metadata().unwrap().uid() == user
        });
        files
    }
}

const PRINT: &str = "--model mock/m1 -p";

#[test]
fn a_home_that_is_closed_is_an_error_that_says_so_and_can_be_done_without() {
    if !is_root() {
        return;
    }
    let (world, server) = crate::world([Reply::text("one"), Reply::text("two")]);
    let home = Home::new(world);
    home.run(ANNA, &format!("{PRINT} first")).success().stdout_is("one\n");
    let agent = home.world.agent_dir();
    fs::set_permissions(&agent, Permissions::from_mode(0o700)).unwrap();
    for words in ["--model faux/echo -p hi", "--model faux/echo -p -c hi", "sessions"] {
        let outcome = home.run(BEN, words).fails_with(1);
        assert!(outcome.stderr.contains("Permission denied") && outcome.stdout.is_empty(), "{outcome:?}");
    }
    let outcome = home.run(BEN, "--model faux/echo --no-session -p hi").success();
    outcome.stdout_is("hi\n").stderr_has("settings.json: could not be read");
    assert_eq!(server.requests().len(), 1);
    home.run(ANNA, &format!("{PRINT} -c second")).success().stdout_is("two\n");
    assert_eq!(home.sessions_of(BEN).len(), 0);
}

#[test]
fn in_a_shared_home_each_goes_on_with_sessions_of_their_own() {
    if !is_root() {
        return;
    }
    let (world, server) = crate::world((0..5).map(|n| Reply::text(&format!("answer {n}"))));
    let home = Home::new(world);
    home.run(ANNA, &format!("{PRINT} anna-1")).success();
    home.open_to_all();
    // The newest session is Anna's, and closed.
    home.run(BEN, &format!("{PRINT} -c ben-1")).success();
    home.run(BEN, &format!("{PRINT} -c ben-2")).success();
    home.run(ANNA, &format!("{PRINT} -c anna-2")).success();
    let requests = server.requests();
    let sent = |n: usize, text: &str| {
        requests[n].messages().iter().any(|message| message.to_string().contains(text))
    };
    assert!(!sent(1, "anna-1") && sent(2, "ben-1") && sent(3, "anna-1") && !sent(3, "ben-1"));
    let (anna, ben) = (home.sessions_of(ANNA), home.sessions_of(BEN));
    assert_eq!((anna.len(), ben.len()), (1, 1));
    for file in anna.iter().chain(&ben) {
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    }
    for (user, own, other) in [(ANNA, "anna-1", "ben-1"), (BEN, "ben-1", "anna-1")] {
        let listed = home.run(user, "sessions").success().stdout;
        assert!(listed.contains(own) && !listed.contains(other), "{listed}");
    }
    // Asked for by its name, a session of the other is an error, and stays.
    let before = fs::read(&anna[0]).unwrap();
    let refused = home.run(BEN, &format!("{PRINT} hi --session {}", anna[0].display())).fails_with(1);
    refused.stderr_has("Permission denied");
    home.run(BEN, &format!("sessions rm --yes {}", anna[0].display())).fails_with(1);
    assert_eq!(fs::read(&anna[0]).unwrap(), before);
}

#[test]
fn what_root_changes_stays_the_users() {
    if !is_root() {
        return;
    }
    let (world, _server) = crate::world([]);
    world.write_config("auth.json", "{}");
    let home = Home::new(world);
    let agent = home.world.agent_dir();
    for file in ["auth.json", "settings.json"] {
        fs::set_permissions(agent.join(file), Permissions::from_mode(0o600)).unwrap();
    }
    home.run(ROOT, "config set theme dark").success();
    home.world.pi().words("auth login openai --stdin").stdin("sk-canary\n").run().success();
    for file in ["auth.json", "settings.json"] {
        let about = agent.join(file).metadata().unwrap();
        assert_eq!((about.uid(), about.gid(), about.mode() & 0o777), (ANNA, ANNA, 0o600), "{file}");
    }
    home.run(ANNA, "config get theme").success().stdout_is("dark\n");
    home.run(ANNA, "--model faux/echo -p hi").success();
}
