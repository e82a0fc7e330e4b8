//! Waits for changes of files, without looking at them again and again.
//!
//! Linux only (`inotify`): elsewhere [`Watch::new`] fails, and [`IS_THERE`] says so before.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;

/// True if this system tells of changes.
pub const IS_THERE: bool = cfg!(target_os = "linux");

/// Files whose changes are told. Each has a number.
#[cfg(target_os = "linux")]
pub struct Watch(std::fs::File);

#[cfg(target_os = "linux")]
impl Watch {
    pub fn new() -> io::Result<Self> {
        use std::os::fd::FromRawFd;
        // SAFETY: the call has no pointers.
        let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
        match fd {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: the descriptor is new, and nothing else owns it.
            fd => Ok(Self(unsafe { std::fs::File::from_raw_fd(fd) })),
        }
    }

    /// Watches a file, also for its end. A file that is watched already keeps its number.
    pub fn add(&self, path: &Path) -> io::Result<i32> {
        use std::os::fd::AsRawFd;
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
        let mask = libc::IN_MODIFY | libc::IN_DELETE_SELF | libc::IN_MOVE_SELF;
        // SAFETY: the descriptor is open, and the path ends with a zero byte.
        match unsafe { libc::inotify_add_watch(self.0.as_raw_fd(), path.as_ptr(), mask) } {
            -1 => Err(io::Error::last_os_error()),
            number => Ok(number),
        }
    }

    pub fn remove(&self, number: i32) {
        use std::os::fd::AsRawFd;
        // SAFETY: the call has no pointers; an unknown number is refused.
        unsafe { libc::inotify_rm_watch(self.0.as_raw_fd(), number) };
    }

    /// Waits for changes: the numbers of the files. None once `end` is readable or closed at its other end.
    pub fn wait(&self, end: RawFd) -> io::Result<Option<BTreeSet<i32>>> {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        const HEAD: usize = size_of::<libc::inotify_event>();
        loop {
            match crate::base::poll::poll([end, self.0.as_raw_fd()], None)? {
                [true, _] => return Ok(None),
                [_, false] => continue,
                _ => {}
            }
            let mut bytes = [0; 256 * HEAD];
            let count = match (&self.0).read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                count => count?,
            };
            // Events of files themselves have no name behind them.
            let events = bytes.get(..count).unwrap_or_default().chunks_exact(HEAD);
            let number = |event: &[u8]| {
                let (number, rest) = event.split_first_chunk()?;
                let mask = u32::from_ne_bytes(*rest.first_chunk()?);
                // The end of a watch is no change.
                (mask & libc::IN_IGNORED == 0).then(|| i32::from_ne_bytes(*number))
            };
            let numbers: BTreeSet<i32> = events.filter_map(number).collect();
            if !numbers.is_empty() {
                return Ok(Some(numbers));
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub enum Watch {}

#[cfg(not(target_os = "linux"))]
impl Watch {
    pub fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn add(&self, _: &Path) -> io::Result<i32> {
        match *self {}
    }

    pub fn remove(&self, _: i32) {
        match *self {}
    }

    pub fn wait(&self, _: RawFd) -> io::Result<Option<BTreeSet<i32>>> {
        match *self {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::fs;
    use std::os::fd::AsRawFd;

    #[test]
    fn changes_of_watched_files_are_told() {
        let dir = TempDir::create();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("a"), "").unwrap();
        fs::write(path("b"), "").unwrap();
        let (end, sender) = io::pipe().unwrap();
        let watch = Watch::new().unwrap();
        let a = watch.add(&path("a")).unwrap();
        let b = watch.add(&path("b")).unwrap();
        assert_eq!(watch.add(&path("a")).unwrap(), a);
        assert!(watch.add(&path("none")).is_err());
        fs::write(path("b"), "1").unwrap();
        assert_eq!(watch.wait(end.as_raw_fd()).unwrap(), Some([b].into()));
        watch.remove(b);
        fs::write(path("b"), "2").unwrap();
        fs::remove_file(path("a")).unwrap();
        assert_eq!(watch.wait(end.as_raw_fd()).unwrap(), Some([a].into()));
        drop(sender);
        assert_eq!(watch.wait(end.as_raw_fd()).unwrap(), None);
    }
}
