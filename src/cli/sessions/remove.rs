//! `pi sessions rm` and `pi sessions prune`.

use super::row::{json_line, one_line};
use super::{Failure, Sessions};
use crate::base::json::json;
use crate::base::time;
use crate::cli::ask;
use crate::helper::isolate;
use crate::mode::{exit, report};
use crate::session::info::Info;
use crate::session::upkeep;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl Sessions {
    /// Asks before something is removed. Without a terminal, `--yes` is required.
    fn may_remove(&self, what: &str) -> Result<bool, Failure> {
        if self.options.yes {
            return Ok(true);
        }
        if !ask::possible() {
            return Err(Failure::Failed(format!("{what} would be removed for good. Say --yes to do it.")));
        }
        Ok(ask::confirm(&format!("Remove {what} for good?")))
    }

    /// Removes the named sessions. Returns the exit code.
    pub fn remove(&self) -> Result<u8, Failure> {
        let words = self.options.words.iter();
        let paths: Vec<PathBuf> = words.map(|word| self.find(word)).collect::<Result<_, _>>()?;
        // A path may name a file that is not a session.
        if let Some(other) = paths.iter().find(|path| self.store.info(path).is_none()) {
            let other = other.display();
            return Err(Failure::Failed(format!("{other} is not a session")));
        }
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        if !self.may_remove(&names.join(", "))? {
            return Ok(exit::FAILED);
        }
        self.remove_all(paths, upkeep::remove)
    }

    fn remove_all<E: Display>(
        &self,
        paths: Vec<PathBuf>,
        remove: impl Fn(&Path) -> Result<(), E>,
    ) -> Result<u8, Failure> {
        let mut code = exit::DONE;
        let mut out = io::stdout().lock();
        for path in paths {
            match remove(&path) {
                Ok(()) if self.options.json => {
                    writeln!(out, "{}", json_line(&json!({ "removed": path })))?;
                }
                Ok(()) => writeln!(out, "Removed {}", one_line(&path.to_string_lossy(), usize::MAX))?,
                Err(error) => {
                    report::error(error);
                    code = exit::FAILED;
                }
            }
        }
        Ok(code)
    }

    /// Removes old sessions, and files that belong to no session. Returns the exit code.
    pub fn prune(&self) -> Result<u8, Failure> {
        let options = &self.options;
        let mut folders = vec![self.store.folder(&self.cwd)];
        if options.all {
            folders = self.store.folders();
        }
        let oldest = options.older_than_days.map(|days| {
            let age = Duration::from_secs(days.saturating_mul(86_400));
            let time = SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH);
            millis(time)
        });
        let mut old: Vec<PathBuf> = Vec::new();
        if oldest.is_some() || options.keep.is_some() {
            let infos = self.infos().into_iter().skip(options.keep.unwrap_or(0));
            // A time that cannot be read is no reason to remove a session.
            let is_before =
                |info: &Info, oldest| time::parse_iso(&info.modified).is_some_and(|at| at < oldest);
            let is_old = |info: &Info| oldest.is_none_or(|oldest| is_before(info, oldest));
            old.extend(infos.filter(is_old).map(|info| info.path));
        }
        let lost = folders.iter().flat_map(|folder| upkeep::leftovers(folder, false));
        let lost: Vec<PathBuf> = lost.collect();
        let mut copies = isolate::forgotten(self.dirs.agent());
        copies.retain(|copy| {
            options.all || isolate::root_of(copy).is_none_or(|root| self.cwd.starts_with(root))
        });
        if old.is_empty() && lost.is_empty() && copies.is_empty() {
            report::note("There is nothing to remove");
            return Ok(exit::DONE);
        }
        let mut parts = Vec::new();
        for (count, name) in [(old.len(), "session"), (lost.len(), "leftover")] {
            parts.extend((count > 0).then(|| counted(count, name)));
        }
        if !copies.is_empty() {
            let names: Vec<String> = copies.iter().map(|copy| copy.display().to_string()).collect();
            let what = if names.len() == 1 { "the copy" } else { "the copies" };
            parts.push(format!("{what} in which helpers worked ({})", names.join(", ")));
        }
        if !self.may_remove(&parts.join(" and "))? {
            return Ok(exit::FAILED);
        }
        let copies = self.remove_all(copies, isolate::discard)?;
        let sessions = self.remove_all(old, upkeep::remove)?;
        let leftovers = self.remove_all(lost, upkeep::remove_leftover)?;
        Ok(sessions.max(leftovers).max(copies))
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
