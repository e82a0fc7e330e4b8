//! Tests of the location of files.

use super::*;
use crate::tools::testing::TempDir;

/// `OPEN_TREE_CLONE`.
const CLONE: libc::c_uint = 1;

/// A detached copy of the mount at `folder`; `None` without the right to make one.
fn detached(folder: &Path) -> Option<OwnedFd> {
    let folder = CString::new(folder.as_os_str().as_bytes()).unwrap();
    let flags = CLONE | libc::O_CLOEXEC.cast_unsigned();
    // SAFETY: the path is a C string that lives through the call.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, folder.as_ptr(), flags) };
    let fd = RawFd::try_from(fd).ok().filter(|&fd| fd >= 0)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[test]
fn a_file_lies_where_its_folder_lies_now() {
    let world = TempDir::create();
    world.write("in/file", "x");
    world.write("out/file", "x");
    let path = |name: &str| world.path().join(name);
    let root = |name: &str| open(&path(name), true).unwrap();
    let roots = [root("in")];
    let below = |name: &str| is_below(&root(name), &roots).unwrap();
    assert!(below("in/file") && below("in"));
    assert!(!below("out/file") && !below("."));
    fs::rename(path("in"), path("moved")).unwrap();
    std::os::unix::fs::symlink("out", path("in")).unwrap();
    assert!(below("moved/file"));
    assert!(!below("in/file"));
    // Without a name it is where it was made.
    let gone = root("moved/file");
    fs::remove_file(path("moved/file")).unwrap();
    assert!(is_below(&gone, &roots).unwrap());
}

#[test]
fn a_mount_that_hangs_nowhere_gives_a_file_no_name() {
    let world = TempDir::create();
    let inside = world.path().join("in");
    world.write("in/file", "x");
    // Below the mount of `out` it has the name of the file that may be changed.
    let outside = world.path().join("out");
    let inner = inside.strip_prefix("/").unwrap();
    fs::create_dir_all(outside.join(inner)).unwrap();
    fs::write(outside.join(inner).join("file"), "x").unwrap();
    let Some(mount) = detached(&outside) else {
        return;
    };
    let file = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())).join(inner).join("file");
    let file = open(&file, true).unwrap();
    assert_eq!(name_of(&file).unwrap(), inside.join("file"));
    assert!(!is_below(&file, &[open(&inside, true).unwrap()]).unwrap());
    // Nor does a link that leads out give it one.
    fs::rename(&inside, world.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(outside.join(inner), &inside).unwrap();
    assert!(!is_below(&file, &[open(world.path(), true).unwrap()]).unwrap());
}
