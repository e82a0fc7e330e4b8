//! The profiles in AWS's shared files, `~/.aws/config` and `~/.aws/credentials`.

use super::ini;
use crate::auth::aws::env::refused;
use crate::base::env::Env;
use crate::llm::event::StreamError;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

#[derive(Default)]
pub struct Profiles {
    profiles: BTreeMap<String, Profile>,
    sso_sessions: BTreeMap<String, Profile>,
    services: BTreeMap<String, Profile>,
    /// Paths of both files, for messages.
    pub files: String,
}

/// The settings of one section.
#[derive(Debug, Default)]
pub struct Profile(BTreeMap<String, String>);

impl Profile {
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    fn merge(&mut self, values: BTreeMap<String, String>) {
        self.0.extend(values);
    }
}

impl Profiles {
    /// Reads both files; the credentials file overrides the configuration file. A missing file counts as
    /// empty.
    pub fn load(env: &Env) -> Result<Self, StreamError> {
        let [config, credentials] = paths(env);
        let mut all = Self::default();
        let shown = [&config, &credentials].into_iter().flatten();
        let shown: Vec<_> = shown.map(|path| path.display().to_string()).collect();
        all.files = shown.join(" and ");
        for section in ini::parse(&read(config)?) {
            let (kind, name) = match section.name.split_once(' ') {
                Some((kind, name)) => (kind, name.trim_matches(['"', '\''])),
                None => ("profile", section.name.as_str()),
            };
            let map = match kind {
                "profile" if section.name.contains(' ') || name == "default" => &mut all.profiles,
                "sso-session" => &mut all.sso_sessions,
                "services" => &mut all.services,
                _ => continue,
            };
            map.entry(name.to_owned()).or_default().merge(section.values);
        }
        for section in ini::parse(&read(credentials)?) {
            let profile = all.profiles.entry(section.name).or_default();
            profile.merge(section.values);
        }
        Ok(all)
    }

    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.profiles.get(name)
    }

    pub fn sso_session(&self, name: &str) -> Option<&Profile> {
        self.sso_sessions.get(name)
    }

    /// The `endpoint_url` that a profile sets for a service: from the profile's `services` section, otherwise
    /// from the profile itself.
    pub fn endpoint(&self, profile: &str, service: &str) -> Option<&str> {
        let profile = self.get(profile)?;
        let section = profile.get("services").and_then(|name| self.services.get(name));
        let own = section.and_then(|section| section.get(&format!("{service}.endpoint_url")));
        own.or_else(|| profile.get("endpoint_url"))
    }
}

/// Paths of the configuration file and of the credentials file.
pub fn paths(env: &Env) -> [Option<PathBuf>; 2] {
    let path = |variable: &str, usual: &str| match env.get(variable) {
        Some(path) => Some(expand(env, &path)),
        None => Some(home(env)?.join(".aws").join(usual)),
    };
    [path("AWS_CONFIG_FILE", "config"), path("AWS_SHARED_CREDENTIALS_FILE", "credentials")]
}

pub fn home(env: &Env) -> Option<PathBuf> {
    env.get("HOME").map(PathBuf::from)
}

/// Replaces a leading `~/` with the home folder.
fn expand(env: &Env, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), home(env)) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

fn read(path: Option<PathBuf>) -> Result<String, StreamError> {
    let Some(path) = path else {
        return Ok(String::new());
    };
    match std::fs::read(&path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(refused(format!("Cannot read {}: {error}", path.display()))),
    }
}
