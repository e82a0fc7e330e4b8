//! The sources of packages: npm specifications, git URLs, paths.

use std::fmt;

/// Prefixes of sources that are no paths.
const REMOTE: [&str; 7] = ["npm:", "git:", "github:", "http:", "https:", "ssh:", "builtin:"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageSource {
    /// `npm:name@version`.
    Npm {
        /// The specification, as npm takes it.
        spec: String,
        name: String,
        version: Option<String>,
    },
    /// `git:host/owner/name@ref`, or a URL.
    Git {
        /// The URL that git clones.
        url: String,
        host: String,
        /// The path at the host, without `.git`.
        path: String,
        /// A tag, a branch or a commit.
        reference: Option<String>,
    },
    /// A file or a folder.
    Local(String),
}

/// Why a source cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct BadSource {
    source: String,
    why: &'static str,
}

impl fmt::Display for BadSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, why } = self;
        write!(
            f,
            "{source} is no source of a package: {why}. Examples: npm:@scope/name@1.0.0, \
             git:github.com/owner/name@v1, https://host/owner/name, ./folder"
        )
    }
}

/// True if a source is the path of a file or a folder.
pub fn is_local(source: &str) -> bool {
    let source = source.trim();
    !REMOTE.iter().any(|prefix| source.starts_with(prefix))
}

impl PackageSource {
    pub fn parse(source: &str) -> Result<Self, BadSource> {
        let source = source.trim();
        let refuse = |why| BadSource { source: source.to_owned(), why };
        if is_local(source) {
            return if source.is_empty() {
                Err(refuse("it is empty"))
            } else {
                Ok(Self::Local(source.into()))
            };
        }
        if let Some(spec) = source.strip_prefix("npm:") {
            return npm(spec.trim()).map_err(refuse);
        }
        let url = match source.strip_prefix("git:") {
            Some(rest) if !rest.starts_with("//") => rest.trim(),
            _ => source,
        };
        git(url).map_err(refuse)
    }

    /// True if an update never moves the package to another version.
    pub fn is_pinned(&self) -> bool {
        match self {
            Self::Npm { version, .. } => version.as_deref().is_some_and(is_exact),
            Self::Git { reference, .. } => reference.is_some(),
            Self::Local(_) => false,
        }
    }

    /// The name of the package without its version; none for a path.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Npm { name, .. } => Some(format!("npm:{name}")),
            Self::Git { host, path, .. } => Some(format!("git:{host}/{path}")),
            Self::Local(_) => None,
        }
    }
}

/// True for a whole version such as `1.2.3` or `1.2.3-beta.1`, not for a range or a tag.
pub fn is_exact(version: &str) -> bool {
    let version = version.strip_prefix(['v', '=']).unwrap_or(version);
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3 && numbers.iter().all(|part| part.parse::<u64>().is_ok()) && !version.contains(' ')
}

fn npm(spec: &str) -> Result<PackageSource, &'static str> {
    // The first character may be the sign of a scope.
    let at = spec.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
    let (name, version) = match at.and_then(|at| spec.split_at_checked(at)) {
        Some((name, version)) => (name, version.strip_prefix('@').filter(|version| !version.is_empty())),
        None => (spec, None),
    };
    let parts: Vec<&str> = name.strip_prefix('@').unwrap_or(name).split('/').collect();
    let is_scoped = name.starts_with('@');
    let is_part = |part: &&str| {
        !part.is_empty()
            && !part.starts_with(['.', '-', '_'])
            && part.chars().all(|c| c.is_alphanumeric() || "-._~".contains(c))
    };
    if parts.len() != if is_scoped { 2 } else { 1 } || !parts.iter().all(is_part) {
        return Err("the name is none that npm knows");
    }
    Ok(PackageSource::Npm {
        spec: spec.to_owned(),
        name: name.to_owned(),
        version: version.map(str::to_owned),
    })
}

fn git(url: &str) -> Result<PackageSource, &'static str> {
    let (place, fragment) = match url.split_once('#') {
        Some((place, fragment)) => (place, Some(fragment)),
        None => (url, None),
    };
    // The part before the path: what git needs to reach the host, and the host's name.
    let (before, host, path) = if let Some(rest) = place.strip_prefix("git@") {
        let (host, path) = rest.split_once(':').ok_or("it names no path after the host")?;
        (format!("git@{host}:"), host.to_owned(), path)
    } else if let Some((scheme, rest)) = place.split_once("://") {
        if !["https", "http", "ssh", "git"].contains(&scheme) {
            return Err("the URL is none of https, http, ssh or git");
        }
        let (authority, path) = rest.split_once('/').ok_or("it names no path after the host")?;
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default().to_lowercase();
        (format!("{scheme}://{authority}/"), host, path)
    } else {
        let (host, path) = place.split_once('/').ok_or("it names no repository")?;
        if !host.contains('.') && host != "localhost" {
            return Err("it does not begin with the name of a host");
        }
        (format!("https://{host}/"), host.to_owned(), path)
    };
    let (path, reference) = match path.split_once('@') {
        Some((path, reference)) => (path, Some(reference)),
        None => (path, fragment),
    };
    let path = path.trim_start_matches('/').trim_end_matches('/');
    let reference = reference.filter(|reference| !reference.is_empty());
    // A word that begins with a dash would be an option of git.
    if reference.is_some_and(|reference| reference.starts_with('-')) || host.starts_with('-') {
        return Err("a name in it begins with a dash");
    }
    let name = path.strip_suffix(".git").unwrap_or(path);
    let decoded = name.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/");
    let is_unsafe = |part: &str| part.is_empty() || part == "." || part == ".." || part == ".git";
    if decoded.contains(['\\', '\0']) || decoded.split('/').any(is_unsafe) || host.contains(['/', '\\']) {
        return Err("the path is none of a repository");
    }
    if host.is_empty() || is_unsafe(&host) || !name.contains('/') {
        return Err("it names no owner and repository");
    }
    Ok(PackageSource::Git {
        url: format!("{before}{path}"),
        host,
        path: name.to_owned(),
        reference: reference.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    #[test]
    fn sources_of_npm() {
        /// Source; name, version, whether it is pinned.
        type Row<'a> = (&'a str, Option<(&'a str, Option<&'a str>, bool)>);
        let rows: &[Row<'_>] = &[
            ("npm:foo", Some(("foo", None, false))),
            ("npm: foo@1.2.3 ", Some(("foo", Some("1.2.3"), true))),
            ("npm:@a/b", Some(("@a/b", None, false))),
            ("npm:@a/b@^1.0.0", Some(("@a/b", Some("^1.0.0"), false))),
            ("npm:@a/b@1.0.0-beta.1", Some(("@a/b", Some("1.0.0-beta.1"), true))),
            ("npm:foo@latest", Some(("foo", Some("latest"), false))),
            ("npm:foo@1", Some(("foo", Some("1"), false))),
            ("npm:foo@", Some(("foo", None, false))),
            ("npm:", None),
            ("npm:@a", None),
            ("npm:a/b", None),
            ("npm:../x", None),
            ("npm:@a/..", None),
            ("npm:--prefix", None),
            ("npm:.bin", None),
            ("npm:a b", None),
        ];
        for (source, expected) in rows {
            let parsed = PackageSource::parse(source).ok();
            let is_pinned = parsed.as_ref().is_some_and(PackageSource::is_pinned);
            let found = match &parsed {
                Some(PackageSource::Npm { name, version, .. }) => {
                    Some((&**name, version.as_deref(), is_pinned))
                }
                _ => None,
            };
            assert_eq!(found, *expected, "{source}");
        }
    }

    #[test]
    fn sources_of_git() {
        /// Source; URL, host, path, reference.
        type Row<'a> = (&'a str, Option<(&'a str, &'a str, &'a str, Option<&'a str>)>);
        let github = |reference| Some(("https://github.com/u/r", "github.com", "u/r", reference));
        let rows: &[Row<'_>] = &[
            ("git:github.com/u/r", github(None)),
            ("git:github.com/u/r@v1", github(Some("v1"))),
            ("https://github.com/u/r", github(None)),
            ("https://github.com/u/r/", github(None)),
            ("https://github.com/u/r@v1", github(Some("v1"))),
            ("https://github.com/u/r#v1", github(Some("v1"))),
            (
                "git:https://GitHub.com/u/r@a/b",
                Some(("https://GitHub.com/u/r", "github.com", "u/r", Some("a/b"))),
            ),
            ("https://h.org/u/r.git", Some(("https://h.org/u/r.git", "h.org", "u/r", None))),
            ("git:git@github.com:u/r@v1", Some(("git@github.com:u/r", "github.com", "u/r", Some("v1")))),
            ("ssh://git@h.org:22/u/r", Some(("ssh://git@h.org:22/u/r", "h.org", "u/r", None))),
            ("https://a:b@h.org/u/r@v1", Some(("https://a:b@h.org/u/r", "h.org", "u/r", Some("v1")))),
            ("git://h.org/u/v/r", Some(("git://h.org/u/v/r", "h.org", "u/v/r", None))),
            ("git:localhost/u/r", Some(("https://localhost/u/r", "localhost", "u/r", None))),
            ("git:u/r", None),
            ("git:github.com/u", None),
            ("git:github.com/../r", None),
            ("git:github.com/u/%2e%2e/%2e%2e/r", None),
            ("git:github.com/u/.git", None),
            ("git:github.com/u/r@--upload-pack=x", None),
            ("git:ext::sh -c x/y", None),
            ("git:file:///tmp/u/r", None),
            ("github:u/r", None),
            ("https://h.org", None),
        ];
        for (source, expected) in rows {
            let parsed = PackageSource::parse(source);
            let found = match &parsed {
                Ok(PackageSource::Git { url, host, path, reference }) => {
                    Some((&**url, &**host, &**path, reference.as_deref()))
                }
                _ => None,
            };
            assert_eq!(found, *expected, "{source}");
        }
    }

    #[test]
    fn all_else_is_a_path() {
        for source in ["./x", "../x", "/x", "~/x", "x", "npm", "git@github.com:u/r"] {
            assert_eq!(PackageSource::parse(source), Ok(PackageSource::Local(source.into())));
        }
        let said = PackageSource::parse(" ").unwrap_err().to_string();
        assert!(said.contains("it is empty") && said.contains("npm:"), "{said}");
    }

    proptest! {
        #[test]
        fn a_package_stays_in_its_folder(source in "(npm:|git:|https://|git@)[-.@/:#%2efa~_\\\\ ]{0,24}") {
            let folder = match PackageSource::parse(&source) {
                Ok(PackageSource::Npm { name, .. }) => name,
                Ok(PackageSource::Git { host, path, .. }) => format!("{host}/{path}"),
                _ => return Ok(()),
            };
            let root = Path::new("/root/packages");
            let inside = super::super::super::walk::tidy(&root.join(&folder));
            prop_assert!(inside.starts_with(root) && inside != root, "{folder}");
        }
    }
}
