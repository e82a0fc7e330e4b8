//! Checks of keys, and of the files that pi reads and writes.

use super::{Finding, Place};
use crate::base::file::Temp;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Checks which providers have a credential. No command is run and no token renewed to find out.
pub fn keys(place: &Place) -> Vec<Finding> {
    let services = &place.inputs.services;
    let mut findings = Vec::new();
    if let Err(error) = services.credentials.stored() {
        findings.push(Finding::bad(
            "keys",
            error,
            "correct auth.json, or move it away and store the keys again: pi auth login",
        ));
    }
    let known = services.registry.providers();
    let usable: Vec<&str> = known
        .into_iter()
        .filter(|provider| !services.is_faux(provider) && services.usable(provider))
        .collect();
    findings.push(match usable.is_empty() {
        false => Finding::ok("keys", usable.join(", ")),
        true => Finding::warning(
            "keys",
            "no provider has a key",
            "set the variable of a provider (pi docs providers), sign in (pi auth login), or run a server (pi docs local)",
        ),
    });
    findings
}

/// Checks the folders and files of pi. `problems` were met when the files were read.
pub fn files(place: &Place, problems: Vec<String>) -> Vec<Finding> {
    let agent = place.agent();
    let mut findings: Vec<Finding> = problems
        .iter()
        .map(|problem| Finding::bad("files", problem, "correct the file; until then its defaults apply"))
        .collect();
    match fs::metadata(&agent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = agent.ancestors().find(|folder| folder.exists()).unwrap_or(&agent).to_owned();
            findings.push(writable(&parent, &format!("{}, made when it is needed", agent.display())));
        }
        Err(error) => findings.push(Finding::bad(
            "files",
            format_args!("{}: {error}", agent.display()),
            "make the folder readable, or set PI_CODING_AGENT_DIR to another one",
        )),
        Ok(about) => {
            findings.push(writable(&agent, &agent.display().to_string()));
            findings.extend(private(&agent, &about));
            let sessions = agent.join("sessions");
            for path in ["auth.json", "models.json", "settings.json"].map(|name| agent.join(name)) {
                if let Ok(about) = fs::metadata(&path) {
                    // Settings hold no keys; those that others may change decide what runs, though.
                    let about = if path.ends_with("settings.json") {
                        changeable(&path, &about)
                    } else {
                        private(&path, &about)
                    };
                    findings.extend(about);
                }
            }
            if sessions.is_dir() {
                findings.push(writable(&sessions, &sessions.display().to_string()));
            }
        }
    }
    findings.push(writable(&std::env::temp_dir(), &std::env::temp_dir().display().to_string()));
    findings
}

/// Checks whether a file can be made and filled in `folder`.
fn writable(folder: &Path, shown: &str) -> Finding {
    const BYTES: usize = 64 << 10;
    let tried = Temp::create(folder, 0o600).and_then(|mut temp| {
        temp.file.write_all(&[0; BYTES])?;
        temp.file.sync_all()
    });
    match tried {
        Ok(()) => Finding::ok("files", format_args!("{shown} can be written")),
        Err(error) => {
            let advice = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space: sessions cannot be stored"
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "set PI_CODING_AGENT_DIR to a folder that can be written, or use --no-session"
                }
                _ => "make it writable for this user, or set PI_CODING_AGENT_DIR or TMPDIR to another folder",
            };
            Finding::bad("files", format_args!("{} cannot be written: {error}", folder.display()), advice)
        }
    }
}

/// Returns what is wrong if others may read the file or folder.
fn private(path: &Path, about: &Metadata) -> Option<Finding> {
    let mode = about.permissions().mode() & 0o777;
    let wanted = if about.is_dir() { 0o700 } else { 0o600 };
    if mode & 0o077 != 0 {
        return Some(Finding::bad(
            "files",
            format_args!("{} can be used by others (mode {mode:03o})", path.display()),
            format_args!("chmod {wanted:o} {}", path.display()),
        ));
    }
    owned(path, about)
}

/// Returns what is wrong if others may change the file.
fn changeable(path: &Path, about: &Metadata) -> Option<Finding> {
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Some(Finding::bad(
            "files",
            format_args!("{} can be changed by others (mode {mode:03o})", path.display()),
            format_args!("chmod go-w {}", path.display()),
        ));
    }
    owned(path, about)
}

fn owned(path: &Path, about: &Metadata) -> Option<Finding> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    (about.uid() != user).then(|| {
        Finding::warning(
            "files",
            format_args!("{} belongs to another user (uid {})", path.display(), about.uid()),
            "run pi as its owner, or set PI_CODING_AGENT_DIR to a folder of your own",
        )
    })
}
