//! Commands that try to break out, and the results.

#[cfg(target_os = "linux")]
mod probe;

use super::confined::Confined;
use super::*;
use crate::tools::backend::{Backend, Progress, ShellCommand};
use crate::tools::testing::TempDir;
use crate::tools::testing::leak::LeakGuard;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;

/// A writable folder `in`, and a protected one `out`.
struct World {
    folder: TempDir,
    backend: Confined,
    /// Name of the working folder, in `folder`.
    cwd: &'static str,
    /// Excludes other tests, which end all processes.
    _alone: LeakGuard,
}

impl World {
    /// `None` if the kernel cannot confine; nothing is tested then.
    fn new(mode: Mode, network: bool) -> Option<Self> {
        Self::working_in("in", mode, network)
    }

    fn working_in(cwd: &'static str, mode: Mode, network: bool) -> Option<Self> {
        let alone = LeakGuard::new();
        let folder = TempDir::create();
        folder.write("in/file", "inside");
        folder.write("in/a/file", "inside");
        folder.write("out/file", "outside");
        platform::gaps().ok()?;
        let path = |name: &str| folder.path().join(name);
        let policy = Policy { mode, cwd: path(cwd), writable: vec![path("in")], network, terminal: false };
        let sandbox = Arc::new(Sandbox::with_passing(policy, &[]).unwrap());
        Some(Self { folder, backend: Confined { sandbox }, cwd, _alone: alone })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command in the working folder. Returns whether it succeeded, and its output.
    fn sh(&self, text: &str) -> (bool, String) {
        let command = ShellCommand {
            call: String::new(),
            shell: None,
            text: text.into(),
            cwd: self.path(self.cwd),
            env: std::env::vars_os().collect(),
            keep_background: false,
            input: None,
        };
        let mut child = self.backend.spawn(&command).expect("a shell");
        let (mut output, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            match child.next(&mut buffer, None).expect("the next of the shell") {
                Progress::Output(count) => output.extend(&buffer[..count]),
                Progress::Waited => {}
                Progress::Ended(end) => {
                    let output = String::from_utf8_lossy(&output).into_owned();
                    return (end.exit_code == Some(0), output);
                }
            }
        }
    }

    #[track_caller]
    fn check(&self, command: &str, goes_well: bool) {
        let (well, output) = self.sh(command);
        assert_eq!(well, goes_well, "{command}\n{output}");
    }
}

/// Attempts that need only a shell and common programs.
const ESCAPES: &[&str] = &[
    "echo x > ../out/file",
    "echo x >> ../out/file",
    "echo x > ../out/new",
    "rm ../out/file",
    "mkdir ../out/folder",
    "ln -s /etc/passwd ../out/link",
    "mkfifo ../out/pipe",
    "mv ../out/file ../out/moved",
    "mv ../out/file here",
    "mv file ../out/file",
    "ln ../out/file hard",
    "ln -s ../out/file soft && echo x > soft",
    "ln -s ../out folder && echo x > folder/new",
    "exec 9< ../out/file; echo x > /proc/self/fd/9",
    "cd ../out && echo x > file",
    "(setsid sh -c 'echo x > ../out/file; test \"$(cat ../out/file)\" = x')",
    "sh -c 'sh -c \"echo x > ../out/file\"'",
    "chmod 777 ../out/file",
    "ln -s ../out/file soft2 && chmod 777 soft2",
    "exec 9< ../out/file; chmod 777 /proc/self/fd/9",
    "chmod 777 \"$PWD/../out/file\"",
    "cd ../out && chmod 777 file",
    "touch ../out/file",
    "touch -h ../out/file",
    "chown \"$(id -u)\" ../out/file",
    "cp -p file ../out/file",
    "truncate -s 0 ../out/file",
    "dd if=/dev/zero of=../out/file bs=1 count=1 conv=notrunc",
    "kill -0 $PPID",
];

#[test]
fn nothing_outside_is_written() {
    for mode in [Mode::Workspace, Mode::ReadOnly] {
        for escape in ESCAPES {
            let Some(world) = World::new(mode, true) else {
                return;
            };
            let before = fs::metadata(world.path("out/file")).unwrap();
            world.check(escape, false);
            let after = fs::metadata(world.path("out/file")).unwrap();
            assert_eq!(fs::read(world.path("out/file")).unwrap(), b"outside", "{escape}");
            assert_eq!(
                (before.mode(), before.mtime_nsec(), before.nlink(), before.ino()),
                (after.mode(), after.mtime_nsec(), after.nlink(), after.ino()),
                "{escape}"
            );
            assert_eq!(fs::read_dir(world.path("out")).unwrap().count(), 1, "{escape}");
        }
    }
}

#[test]
fn work_inside_goes_on_as_ever() {
    let Some(world) = World::new(Mode::Workspace, false) else {
        return;
    };
    let work = [
        "echo x > new && cat new && rm new",
        "mkdir -p b/c && echo x > b/c/d && mv b/c/d b/d && rm -r b",
        "ln file hard && ln -s file soft && rm hard soft",
        "echo x > script && chmod +x script && test -x script && chmod u-w script",
        "touch -d @1000 file && test \"$(stat -c %Y file)\" = 1000 && touch file",
        "ln -s file soft && touch -h -d @2000 soft && test \"$(stat -c %Y soft)\" = 2000",
        "ln -s gone hanging && touch -h -d @2000 hanging && ! chmod 600 hanging",
        "cp -a file copy && test \"$(stat -c %y file)\" = \"$(stat -c %y copy)\"",
        "chown \"$(id -u):$(id -g)\" file",
        "chmod 640 \"$PWD/file\" && exec 9< file && chmod 600 /proc/self/fd/9",
        "mkdir d && cd d && chmod 700 . && chmod 755 ../d",
        "mkfifo pipe && (echo x > pipe & cat pipe)",
        "echo x > /dev/null && echo y > /dev/stdout && echo z > /dev/stderr",
        "cat ../out/file && ls /etc > /dev/null",
        "true & wait; (sleep 0 &) ; kill -0 $$",
        "tar cf - file | tar xf - -C d && test -f d/file",
    ];
    for command in work {
        world.check(command, true);
    }
    let mode = fs::metadata(world.path("in/script")).unwrap().permissions().mode();
    assert_eq!(mode & 0o222, 0);
}

#[test]
fn a_read_only_sandbox_writes_nowhere() {
    let Some(world) = World::new(Mode::ReadOnly, false) else {
        return;
    };
    for command in ["echo x > new", "chmod 600 file", "touch file", "rm file"] {
        world.check(command, false);
    }
    world.check("cat file && echo x > /dev/null", true);
}

#[test]
fn the_network_is_open_only_when_it_is_asked_for() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    for network in [true, false] {
        let Some(world) = World::new(Mode::Workspace, network) else {
            return;
        };
        world.check(&connect, network);
    }
}

#[test]
fn the_model_is_told_why_a_command_failed() {
    let Some(world) = World::new(Mode::Workspace, false) else {
        return;
    };
    let (_, output) = world.sh("echo x > ../out/file");
    let note = world.backend.sandbox.explain(&output).unwrap();
    let inside = world.path("in").display().to_string();
    assert!(note.contains(&inside) && note.contains("no network"), "{note}");
    let (_, output) = world.sh("cat nothing-here");
    assert_eq!(world.backend.sandbox.explain(&output), None);
}

#[test]
fn file_tools_write_inside_only() {
    let Some(world) = World::new(Mode::Workspace, false) else {
        return;
    };
    symlink(world.path("out"), world.path("in/link")).unwrap();
    symlink(world.path("out/file"), world.path("in/direct")).unwrap();
    world.backend.create_dir_all(&world.path("in/b/c")).unwrap();
    for inside in ["in/file", "in/new", "in/b/c/new"] {
        world.backend.write(&world.path(inside), b"x").unwrap();
    }
    for outside in ["out/file", "out/new", "in/link/new", "in/link/file", "in/direct", "in/../out/new"] {
        let error = world.backend.write(&world.path(outside), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{outside}");
        assert!(error.to_string().contains("sandbox"), "{error}");
    }
    assert!(world.backend.create_dir_all(&world.path("out/a")).is_err());
    assert_eq!(fs::read(world.path("out/file")).unwrap(), b"outside");
    assert_eq!(fs::read_dir(world.path("out")).unwrap().count(), 1);
}

/// The check of the path only improves the error text; the kernel enforces the rule.
#[cfg(target_os = "linux")]
#[test]
fn the_kernel_holds_file_tools_too() {
    let Some(world) = World::new(Mode::Workspace, false) else {
        return;
    };
    let write = |name: &str| world.backend.sandbox.run(|| fs::write(world.path(name), "x"));
    write("in/file").unwrap();
    assert_eq!(write("out/file").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    // This thread is as free as before.
    fs::write(world.path("out/other"), "x").unwrap();
}

/// A writable folder inside another one, which a command could replace.
#[test]
fn a_folder_is_the_one_that_was_there_at_the_start() {
    let Some(world) = World::working_in("in/a", Mode::Workspace, false) else {
        return;
    };
    world.check("cd / && mv \"$OLDPWD\" \"$OLDPWD/../b\" && ln -s ../out \"$OLDPWD\"", true);
    let named = world.path("in/a").display().to_string();
    for escape in ["echo x > {}/new", "echo x > {}/file", "chmod 777 {}/file", "touch {}/file"] {
        world.check(&escape.replace("{}", &named), false);
    }
    assert!(world.backend.write(&world.path("in/a/new"), b"x").is_err());
    let through = world.path("in/a/new");
    assert!(world.backend.sandbox.run(|| fs::write(&through, "x")).is_err());
    assert_eq!(fs::read_dir(world.path("out")).unwrap().count(), 1);
    assert_eq!(fs::read(world.path("out/file")).unwrap(), b"outside");
    // Work goes on where the folder is now.
    world.check("echo x > new && chmod 600 new", true);
    assert!(world.path("in/b/new").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn terminals_can_be_neither_read_nor_written() {
    use std::os::fd::FromRawFd;
    let (mut ours, mut theirs) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: the first two are places for the new descriptors, the others may be null.
    let status = unsafe { libc::openpty(&raw mut ours, &raw mut theirs, none, none.cast(), none.cast()) };
    assert_eq!(status, 0);
    // SAFETY: both were just opened, and nobody else has them.
    let (mut ours, theirs) = unsafe { (fs::File::from_raw_fd(ours), fs::File::from_raw_fd(theirs)) };
    let name = platform::name_of(&theirs).unwrap().display().to_string();
    std::io::Write::write_all(&mut ours, b"secret\n").unwrap();
    for mode in [Mode::Workspace, Mode::ReadOnly] {
        let Some(world) = World::new(mode, true) else {
            return;
        };
        let fd = std::os::fd::AsRawFd::as_raw_fd(&theirs);
        let other = format!("/proc/{}/fd/{fd}", std::process::id());
        for name in [&*name, &*other] {
            for escape in ["echo x > {}", "head -n1 < {}", "stty -F {} -echo", "exec 9<> {}"] {
                world.check(&escape.replace("{}", name), false);
            }
        }
        for device in ["/dev/ptmx", "/dev/tty", "/dev/console", "/dev/tty0", "/dev/kmsg", "/dev/vda"] {
            world.check(&format!("head -c1 < {device}"), false);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn root_is_left_with_what_builds_need() {
    // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETGID, SETUID.
    const KEPT: u64 = 0b1101_1011;
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    for mode in [Mode::Workspace, Mode::ReadOnly] {
        let Some(world) = World::new(mode, false) else {
            return;
        };
        let (_, status) = world.sh("cat /proc/self/status");
        let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"].map(|name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a set");
            u64::from_str_radix(line.trim_start_matches(':').trim(), 16).expect("a number")
        });
        let [inherited, permitted, effective, ambient, bounding] = sets;
        assert_eq!((inherited, ambient, permitted & !KEPT, effective & !KEPT), (0, 0, 0, 0), "{status}");
        // Without privileges the limit cannot be lowered, and there is nothing that it would limit.
        assert!(!is_root || bounding & !KEPT == 0, "{status}");
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let policy = Policy {
        mode: Mode::Workspace,
        cwd: "/".into(),
        writable: vec!["/no/such/folder".into()],
        network: false,
        terminal: false,
    };
    assert!(Sandbox::new(policy).unwrap_err().contains("/no/such/folder"));
}

#[test]
fn no_supervisor_outlives_its_command() {
    let Some(world) = World::new(Mode::Workspace, false) else {
        return;
    };
    for _ in 0..20 {
        world.check("chmod 600 file", true);
    }
    let threads = || {
        let names = fs::read_dir("/proc/self/task").unwrap().map(|task| {
            let name = task.unwrap().path().join("comm");
            fs::read_to_string(name).unwrap_or_default()
        });
        names.filter(|name| name.trim() == "pi-sandbox").count()
    };
    // The last process has ended, the thread is about to notice. Other tests have theirs.
    for _ in 0..200 {
        if threads() < 10 {
            return;
        }
        std::thread::yield_now();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{} supervisors are left", threads());
}
