//! Finds extensions and reads how each is started.

use super::host;
use super::registration::Registration;
use crate::base::json;
use crate::base::{executable, file};
use crate::resources::place::{self, Kind, MANIFEST};
use crate::resources::source::{Scope, Source};
use crate::resources::text_file;
use crate::runtime::config::Inputs;
use crate::runtime::trust::Consent;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a file that are searched for a word.
const SEARCHED_MAX: u64 = 4 << 20;

/// An extension that can be started.
#[derive(Clone, Debug)]
pub struct Found {
    /// The program or the manifest.
    pub path: PathBuf,
    /// Its name in messages.
    pub name: String,
    /// The `sourceInfo` that other programs are told.
    pub source: Value,
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Extensions of one group are run by one process: the program of the first.
    pub group: Option<String>,
    /// What a manifest says that it registers; started when that is first used.
    pub lazy: Option<Registration>,
    /// What the user agreed to in the project that it comes from.
    pub consent: Option<Arc<Consent>>,
}

impl Found {
    /// The extension, started at once.
    pub fn eager(self) -> Self {
        Self { lazy: None, ..self }
    }

    /// True for an extension of the TypeScript pi, which the host runs.
    pub fn is_script(&self) -> bool {
        place::is_script(&self.path)
    }

    /// True if `word` stands in a file that makes it up: its manifest, or a program beside that.
    pub fn mentions(&self, word: &str) -> bool {
        let is_in = |file: &Path| {
            let bytes = file::read_start(file, SEARCHED_MAX).unwrap_or_default();
            memchr::memmem::find(&bytes, word.as_bytes()).is_some()
        };
        let folder = self.path.parent().unwrap_or(&self.path);
        let args = self.args.iter().map(|arg| folder.join(arg)).filter(|_| self.path.ends_with(MANIFEST));
        let program = Some(self.program.clone()).filter(|program| program.starts_with(folder));
        is_in(&self.path) || program.into_iter().chain(args).any(|file| is_in(&file))
    }
}

#[derive(Deserialize)]
struct Manifest {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    name: Option<String>,
    group: Option<String>,
    #[serde(default)]
    lazy: bool,
    #[serde(flatten)]
    registration: Map<String, Value>,
}

/// The extensions of the command line, the project, the user and packages, in load order, and what is wrong with
/// others. With `only_named` there are only those of the command line.
pub fn find(inputs: &Inputs, only_named: bool) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for source in inputs.places().files(Kind::Extensions, only_named) {
        let real = source.path.canonicalize().unwrap_or_else(|_| source.path.clone());
        let read = match source.bounds.refusal(&real) {
            Some(why) => Err(format!("is not used: it {why}")),
            None => read(&source, inputs.dirs.agent()),
        };
        let consent = inputs.consent.clone().filter(|_| source.scope == Scope::Project);
        match read {
            Ok(extension) => found.push(Found { consent, ..extension }),
            Err(fault) => problems.push(format!("Extension {} {fault}", source.path.display())),
        }
    }
    (found, problems)
}

fn read(source: &Source, agent: &Path) -> Result<Found, String> {
    let path = &source.path;
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if place::is_script(path) {
        let (program, args) = host::program(agent)?;
        let is_index = path.file_stem().is_some_and(|stem| stem == "index");
        return Ok(Found {
            path: path.clone(),
            name: name(path.parent().filter(|_| is_index).unwrap_or(path)),
            source: source.to_json(),
            program,
            args,
            env: BTreeMap::new(),
            group: Some("host".to_owned()),
            lazy: None,
            consent: None,
        });
    }
    if !path.ends_with(MANIFEST) {
        if !executable::is_one(path) {
            return Err("is no program: make it executable (chmod +x), or name a pi-extension.json".into());
        }
        return Ok(Found {
            path: path.clone(),
            name: name(path),
            source: source.to_json(),
            program: path.clone(),
            args: Vec::new(),
            env: BTreeMap::new(),
            group: None,
            lazy: None,
            consent: None,
        });
    }
    let folder = path.parent().unwrap_or(path);
    let bytes = file::read(path, text_file::BYTES_MAX).map_err(|error| format!("cannot be read: {error}"))?;
    let manifest: Manifest = json::parse(&bytes).map_err(|error| format!("is not understood: {error}"))?;
    let program = if manifest.command.contains('/') {
        folder.join(&manifest.command)
    } else {
        executable::find(&manifest.command)
            .ok_or_else(|| format!("needs the program {:?}, which is not in PATH", manifest.command))?
    };
    let lazy = match manifest.lazy {
        false => None,
        true => match Registration::read(&Value::Object(manifest.registration)) {
            (_, faults) if !faults.is_empty() => {
                return Err(format!("is not understood: {}", faults.join("; ")));
            }
            (known, _) if known.tools.is_empty() && known.commands.is_empty() => {
                return Err(
                    "would never start: with \"lazy\" it has to list its \"tools\" or \"commands\"".into()
                );
            }
            (known, _) => Some(known),
        },
    };
    Ok(Found {
        path: path.clone(),
        name: manifest.name.unwrap_or_else(|| name(folder)),
        source: source.to_json(),
        program: place::tidy(&program),
        args: manifest.args,
        env: manifest.env,
        group: manifest.group.filter(|_| lazy.is_none()),
        lazy,
        consent: None,
    })
}
