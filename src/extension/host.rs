//! The host of TypeScript and JavaScript extensions: a program for Node, or bun, that is part of this one.
//!
//! `host/start.mjs` is its entry. The files are written once into the agent folder, under the hash of their content;
//! the folder appears whole or not at all. A Node that is too old gives way to bun in the entry itself, or is
//! refused there, so that a start costs no second process that asks for the version.

use crate::base::executable;
use crate::base::file;
use crate::base::hex::hex;
use crate::base::packed::{Packed, packed};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name and content of each file.
const FILES: &[(&str, Packed)] = &[
    ("components.mjs", packed!("src/extension/host/components.mjs")),
    ("conversation.mjs", packed!("src/extension/host/conversation.mjs")),
    ("editor.mjs", packed!("src/extension/host/editor.mjs")),
    ("environment.mjs", packed!("src/extension/host/environment.mjs")),
    ("events.mjs", packed!("src/extension/host/events.mjs")),
    ("exec.mjs", packed!("src/extension/host/exec.mjs")),
    ("extension.mjs", packed!("src/extension/host/extension.mjs")),
    ("keys.mjs", packed!("src/extension/host/keys.mjs")),
    ("lists.mjs", packed!("src/extension/host/lists.mjs")),
    ("loader.mjs", packed!("src/extension/host/loader.mjs")),
    ("main.mjs", packed!("src/extension/host/main.mjs")),
    ("markdown.mjs", packed!("src/extension/host/markdown.mjs")),
    ("mirror.mjs", packed!("src/extension/host/mirror.mjs")),
    ("missing.mjs", packed!("src/extension/host/missing.mjs")),
    ("peer.mjs", packed!("src/extension/host/peer.mjs")),
    ("pi-agent-core.mjs", packed!("src/extension/host/pi-agent-core.mjs")),
    ("pi-ai.mjs", packed!("src/extension/host/pi-ai.mjs")),
    ("pi-coding-agent.mjs", packed!("src/extension/host/pi-coding-agent.mjs")),
    ("pi-tui.mjs", packed!("src/extension/host/pi-tui.mjs")),
    ("provider-object.mjs", packed!("src/extension/host/provider-object.mjs")),
    (ENTRY, packed!("src/extension/host/start.mjs")),
    ("text.mjs", packed!("src/extension/host/text.mjs")),
    ("theme.mjs", packed!("src/extension/host/theme.mjs")),
    ("tools.mjs", packed!("src/extension/host/tools.mjs")),
    ("truncate.mjs", packed!("src/extension/host/truncate.mjs")),
    ("typebox.mjs", packed!("src/extension/host/typebox.mjs")),
    ("ui.mjs", packed!("src/extension/host/ui.mjs")),
];
const ENTRY: &str = "start.mjs";
/// Begins the names of its folders.
const FOLDER: &str = "extension-host-";
/// Age from which the folder of another version is removed.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// The messages move to descriptors 3 and 4, so that nothing that an extension or a child of it prints gets between
/// them.
const SCRIPT: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;

/// Path and arguments of the program that runs the host. The error says what is missing.
pub fn program(agent: &Path) -> Result<(PathBuf, Vec<String>), String> {
    let node = executable::find("node");
    let is_node = node.is_some();
    let runner = node.or_else(|| executable::find("bun"));
    let runner = runner.ok_or("needs Node 22.18 or newer, or bun, and neither is in PATH")?;
    let cache = agent.join("cache");
    let folder = install(&cache).map_err(|error| {
        format!("needs its host, which cannot be written into {}: {error}", cache.display())
    })?;
    let words = [&runner, &folder.join(ENTRY), &cache.join("extension-host-sources")];
    let [runner, entry, sources] = words.map(|path| path.to_string_lossy().into_owned());
    let mut args = vec!["-c".to_owned(), SCRIPT.to_owned(), "host".to_owned(), runner];
    args.extend(is_node.then(|| "--disable-warning=ExperimentalWarning".to_owned()));
    args.extend([entry, sources]);
    Ok((executable::SHELL.into(), args))
}

/// Writes the files below `cache`, unless they are there. Gives their folder.
fn install(cache: &Path) -> io::Result<PathBuf> {
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    for (name, content) in FILES {
        digest.update(name.as_bytes());
        digest.update(content.0);
    }
    let folder = cache.join(format!("{FOLDER}{}", &hex(digest.finish().as_ref())[..16]));
    if folder.is_dir() {
        return Ok(folder);
    }
    file::make_private_folder(cache)?;
    remove_stale(cache);
    let draft = cache.join(format!("{FOLDER}draft-{}", std::process::id()));
    let written = fill(&draft).and_then(|()| fs::rename(&draft, &folder));
    if written.is_err() {
        let _ = fs::remove_dir_all(&draft);
    }
    // Another process may have been faster.
    if folder.is_dir() { Ok(folder) } else { written.map(|()| folder) }
}

fn fill(draft: &Path) -> io::Result<()> {
    file::make_private_folder(draft)?;
    FILES.iter().try_for_each(|(name, content)| fs::write(draft.join(name), content.text()))
}

/// Removes folders of other versions, and drafts of processes that were killed.
fn remove_stale(cache: &Path) {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FOLDER)) {
        let changed = entry.metadata().and_then(|about| about.modified()).ok();
        let age = changed.and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
        if age > STALE {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_host_is_in_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/extension/host");
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let known = FILES.iter().map(|(name, _)| (*name).to_owned());
        assert_eq!(known.collect::<BTreeSet<_>>(), names.collect());
    }

    #[test]
    fn the_files_are_written_once() {
        let temp = TempDir::create();
        let cache = temp.path().join("cache");
        let folder = install(&cache).unwrap();
        assert_eq!(fs::read_to_string(folder.join(ENTRY)).unwrap(), include_str!("host/start.mjs"));
        fs::write(folder.join(ENTRY), "changed").unwrap();
        assert_eq!(install(&cache).unwrap(), folder);
        assert_eq!(fs::read_to_string(folder.join(ENTRY)).unwrap(), "changed");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "a draft is left");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error() {
        let temp = TempDir::create();
        let file = temp.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(install(&file.join("cache")).is_err());
    }
}
