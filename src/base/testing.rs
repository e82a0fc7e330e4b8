//! Temporary folders and files for tests, removed on drop.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of one test.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn create() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pi-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        // Links in the way would make every comparison of paths harder.
        Self(fs::canonicalize(path).expect("the folder just made"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, creating its parent folders.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("a folder for the test");
        }
        fs::write(&path, content).expect("a file for the test");
        path
    }

    /// Makes a named pipe.
    pub fn fifo(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let name = CString::new(path.as_os_str().as_bytes()).expect("a name without NUL");
        // SAFETY: the name ends with a NUL and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).expect("a file that the test wants")
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder of the test");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The relative paths of all files below the folder, sorted.
    pub fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder of the test") {
                let entry = entry.expect("an entry");
                let (path, kind) = (entry.path(), entry.file_type().expect("the kind of an entry"));
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    let path = path.strip_prefix(&self.0).expect("a path in the folder");
                    files.push(path.to_string_lossy().into_owned());
                }
            }
        }
        files.sort();
        files
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file of one test, in a folder of its own.
pub struct TempFile {
    path: String,
    _folder: TempDir,
}

impl TempFile {
    pub fn create(name: &str, content: impl AsRef<[u8]>) -> Self {
        let folder = TempDir::create();
        let path = folder.write(name, content).to_string_lossy().into_owned();
        Self { path, _folder: folder }
    }

    pub fn path(&self) -> &str {
        &self.path
    }
}
