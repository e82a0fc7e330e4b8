//! What `--version` prints, for people and for programs.

use crate::base::feature;
use crate::base::json::json;
use crate::mode::REFERENCE_VERSION;
use serde_json::Value;

/// The commit of the source. A build outside of a repository, or without the variable, does not know it.
const COMMIT: Option<&str> = option_env!("PI_COMMIT");

/// Returns the version of the compatible TypeScript pi, since programs that drive pi compare it. A terminal
/// gets this program's own version, too.
pub fn text(is_terminal: bool) -> String {
    match is_terminal {
        true => {
            let without: String = feature::left_out().map(|name| format!(", without {name}")).collect();
            format!("{REFERENCE_VERSION} (native pi {}{without})\n", env!("CARGO_PKG_VERSION"))
        }
        false => format!("{REFERENCE_VERSION}\n"),
    }
}

/// Returns what is known of this build.
pub fn object() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "referenceVersion": REFERENCE_VERSION,
        "commit": COMMIT.filter(|commit| !commit.is_empty()),
        "features": feature::included().collect::<Vec<_>>(),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "static": feature::IS_STATIC,
    })
}
