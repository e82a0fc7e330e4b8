//! Locates the home, agent and session folders.

use crate::base::file_url;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    home: Option<PathBuf>,
    agent: PathBuf,
    /// The value of `PI_CODING_AGENT_SESSION_DIR`.
    sessions: Option<String>,
}

/// There is no usable home folder, and `PI_CODING_AGENT_DIR` is not set.
#[derive(Debug, PartialEq, Eq)]
pub enum NoHome {
    Unknown,
    /// `HOME` is a relative path, so it depends on the working folder.
    Relative(PathBuf),
}

impl fmt::Display for NoHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("Could not find your home folder: ")?,
            Self::Relative(home) => write!(f, "HOME is not an absolute path ({}): ", home.display())?,
        }
        f.write_str("set HOME, or PI_CODING_AGENT_DIR to the folder for settings and sessions")
    }
}

impl std::error::Error for NoHome {}

impl Dirs {
    /// Finds the folders from the environment. No home folder is an error unless `PI_CODING_AGENT_DIR` is
    /// set.
    pub fn find() -> Result<Self, NoHome> {
        // The user database may have a home folder that the environment lacks.
        Self::new(|name| std::env::var_os(name), std::env::home_dir())
    }

    fn new(env: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Result<Self, NoHome> {
        let env = |name| env(name).filter(|value| !value.is_empty());
        let home = home.filter(|home| !home.as_os_str().is_empty());
        let agent = match env("PI_CODING_AGENT_DIR") {
            Some(folder) => expand(Path::new(&folder), home.as_deref()),
            None => match home.as_deref() {
                None => return Err(NoHome::Unknown),
                Some(home) if home.is_relative() => return Err(NoHome::Relative(home.to_owned())),
                Some(home) => home.join(".pi/agent"),
            },
        };
        Ok(Self {
            agent: std::path::absolute(&agent).unwrap_or(agent),
            home: home.map(|home| std::path::absolute(&home).unwrap_or(home)),
            sessions: env("PI_CODING_AGENT_SESSION_DIR").map(|folder| folder.to_string_lossy().into_owned()),
        })
    }

    /// Uses the given agent folder, and the user's home folder.
    pub fn with_agent(agent: PathBuf) -> Self {
        Self { home: std::env::home_dir(), agent, sessions: None }
    }

    /// One folder as home and agent folder.
    #[cfg(test)]
    pub fn at(folder: &Path) -> Self {
        Self { home: Some(folder.to_owned()), agent: folder.to_owned(), sessions: None }
    }

    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the folder of settings, credentials and sessions: `PI_CODING_AGENT_DIR`, or `~/.pi/agent`.
    pub fn agent(&self) -> &Path {
        &self.agent
    }

    /// Resolves `path` relative to `cwd`, after expanding a leading `~`. A `file://` URL is its path.
    pub fn resolve(&self, path: &str, cwd: &Path) -> PathBuf {
        resolve(path, self.home(), cwd)
    }

    /// Returns the session folder that the user chose by flag, environment or setting, in this order.
    pub fn sessions(&self, flag: Option<&str>, setting: Option<&str>, cwd: &Path) -> Option<PathBuf> {
        let chosen = flag.or(self.sessions.as_deref()).or(setting)?;
        (!chosen.is_empty()).then(|| self.resolve(chosen, cwd))
    }
}

/// Resolves `path` relative to `base`, after expanding a leading `~` to `home`. A `file://` URL is its path.
pub fn resolve(path: &str, home: Option<&Path>, base: &Path) -> PathBuf {
    let of_url = path.strip_prefix("file://").and_then(|rest| file_url::path(rest).ok());
    of_url.unwrap_or_else(|| base.join(expand(Path::new(path), home)))
}

fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_owned(),
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(env: &[(&str, &str)], home: Option<&str>) -> Result<Dirs, NoHome> {
        let get = |name: &str| {
            let found = env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Dirs::new(get, home.map(PathBuf::from))
    }

    #[test]
    fn the_agent_folder_is_in_the_home_folder_unless_the_environment_says_otherwise() {
        let name = "PI_CODING_AGENT_DIR";
        type Row<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, Option<&'a str>);
        let rows: &[Row<'_>] = &[
            (&[], Some("/h"), Some("/h/.pi/agent")),
            (&[(name, "")], Some("/h"), Some("/h/.pi/agent")),
            (&[(name, "/x")], Some("/h"), Some("/x")),
            (&[(name, "/x")], None, Some("/x")),
            (&[(name, "~")], Some("/h"), Some("/h")),
            (&[(name, "~/x/y")], Some("/h"), Some("/h/x/y")),
            (&[], None, None),
            (&[], Some(""), None),
            (&[], Some("rel"), None),
            (&[(name, "/x")], Some("rel"), Some("/x")),
        ];
        for (env, home, agent) in rows {
            let found = dirs(env, *home).ok();
            assert_eq!(found.as_ref().map(Dirs::agent), agent.map(Path::new), "{env:?}");
        }
        assert!(dirs(&[(name, "x")], None).unwrap().agent().is_absolute());
        for error in [NoHome::Unknown, NoHome::Relative("rel".into())] {
            assert!(error.to_string().contains("HOME"));
        }
    }

    #[test]
    fn a_flag_goes_before_the_environment_and_that_before_a_setting() {
        let with = dirs(&[("PI_CODING_AGENT_SESSION_DIR", "~/env")], Some("/h")).unwrap();
        let without = dirs(&[], Some("/h")).unwrap();
        let cwd = Path::new("/w");
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(with.sessions(Some("flag"), Some("set"), cwd), path("/w/flag"));
        assert_eq!(with.sessions(None, Some("set"), cwd), path("/h/env"));
        assert_eq!(without.sessions(None, Some("~/set"), cwd), path("/h/set"));
        assert_eq!(without.sessions(None, Some("../set"), cwd), path("/w/../set"));
        assert_eq!(without.sessions(None, Some(""), cwd), None);
        assert_eq!(without.sessions(None, None, cwd), None);
        assert_eq!(without.resolve("~x/y", cwd), PathBuf::from("/w/~x/y"));
    }
}
