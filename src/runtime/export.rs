//! Exports a conversation while it is in use.

use super::control::Control;
use crate::agent::call::Describe;
use crate::session::Log;
use crate::session::export::{ExportError, export_live};
use std::path::{Path, PathBuf};

impl Control {
    /// Exports the session as a page to `path`, or to a new file in its working folder, and returns the
    /// file's path. A saved session is read from its file, so that a run can continue meanwhile.
    pub fn export(&self, path: Option<&Path>) -> Result<PathBuf, ExportError> {
        let cwd = self.state().config.workspace.cwd.clone();
        let describer = self.tools().describer();
        let describe: Describe<'_> = &|name, arguments| describer.describe(name, arguments);
        let (file, leaf) = {
            let log = self.log();
            match log.path().filter(|_| log.is_saved()) {
                None => return export_live(&log, path, &cwd, None, describe),
                Some(file) => (file.to_owned(), log.leaf().map(str::to_owned)),
            }
        };
        let mut log = Log::open_to_read(&file).map_err(ExportError::Session)?;
        log.set_leaf(leaf.as_deref()).map_err(ExportError::Session)?;
        export_live(&log, path, &cwd, None, describe)
    }
}
