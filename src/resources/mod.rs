//! What the user and the project bring along: folders, settings, context files, skills, prompt templates,
//! and the system prompt made of them.

pub mod context_file;
pub mod dirs;
pub mod file;
mod frontmatter;
pub mod git;
mod import;
mod pattern;
pub mod place;
pub mod prompt;
pub mod settings;
pub mod skill;
pub mod source;
pub mod template;
pub mod text_file;
pub mod trust;
mod yaml;

use std::fmt;
use std::path::PathBuf;

/// Something the user should know; the run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub path: PathBuf,
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

/// The text of a file as people save it: without a byte order mark, and with U+FFFD where it is not
/// UTF-8.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod scratch {
    //! A folder for one test, removed with it.

    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    pub struct Scratch(PathBuf);

    impl Scratch {
        pub fn new() -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("pi-resources-test-{}-{count}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path).unwrap();
            Self(path.canonicalize().unwrap())
        }

        pub fn path(&self) -> &Path {
            &self.0
        }

        pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
            let path = self.0.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content).unwrap();
            path
        }

        pub fn fifo(&self, name: &str) -> PathBuf {
            use std::os::unix::ffi::OsStrExt;
            let path = self.0.join(name);
            let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
            // SAFETY: the name ends with a NUL and outlives the call.
            assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
            path
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
