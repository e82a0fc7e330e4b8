//! The packages, folders and files that `--extension` names.

use super::store::{Installer, no_network};
use crate::base::file;
use crate::resources::package::{self, KINDS, Package, PackageSource, Store};
use crate::runtime::config::Inputs;

/// Reads the packages that `--extension` names. With `fetch`, those of npm and git are installed or refreshed.
pub fn named(
    inputs: &Inputs,
    sources: &[String],
    offline: bool,
    fetch: bool,
) -> Result<Vec<Package>, String> {
    let store = Store::temporary(inputs.dirs.agent());
    let installer = Installer::new(&inputs.settings, false);
    let package = |source: &String| {
        let resolve = |path: &str| inputs.dirs.resolve(path.trim(), &inputs.started_in);
        let package = Package::new(source, &store, resolve).map_err(|error| error.to_string())?;
        if fetch && !package::is_local(source) {
            file::make_private_folder(&store.base)
                .map_err(|error| format!("{}: could not be made: {error}", store.base.display()))?;
            installer.refresh(&package, &store, no_network(offline))?;
        }
        let is_nothing = || KINDS.iter().all(|kind| package.files(*kind, inputs.dirs.home()).is_empty());
        match (&package.source, package.root.exists()) {
            (PackageSource::Local(_), false) => {
                Err(format!("Extension path does not exist: {}", package.root.display()))
            }
            (_, false) => Err(package.fault().unwrap_or_default()),
            _ if is_nothing() => Err(format!("There is no extension in {}", package.root.display())),
            _ => Ok(package),
        }
    };
    sources.iter().map(package).collect()
}
