//! A build without extensions: none is found, and one that is asked for is refused.

use crate::base::cancel::CancelToken;
use crate::base::feature;
use crate::resources::dirs::Dirs;
use crate::resources::package::Package;
use crate::runtime::config::Inputs;
use crate::runtime::control::Control;
use crate::runtime::lent::LentModels;
use crate::runtime::ui::{Asker, Problem};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

pub mod find {
    //! Finds nothing.

    use super::{Found, Inputs, Package, feature};

    pub fn find(inputs: &Inputs, _: bool) -> (Vec<Found>, Vec<String>) {
        let absent = feature::absent("extensions");
        let refuse = |package: &Package| format!("The extension {} is not used: {absent}", package.text);
        (Vec::new(), inputs.named_packages.iter().map(refuse).collect())
    }
}

/// Is never found.
pub enum Found {}

impl Found {
    pub fn eager(self) -> Self {
        self
    }

    pub fn mentions(&self, _: &str) -> bool {
        false
    }
}

pub struct Vote {
    pub is_trusted: bool,
    pub is_kept: bool,
}

pub struct About {
    pub asker: Option<Asker>,
    pub flags: Map<String, Value>,
    pub cwd: PathBuf,
    pub dirs: Dirs,
}

impl About {
    pub fn new(inputs: &Inputs, _: &'static str, _: &'static str) -> Self {
        Self { asker: None, flags: Map::new(), cwd: inputs.cwd.clone(), dirs: inputs.dirs.clone() }
    }
}

pub struct Extensions;

impl Extensions {
    pub fn start(_: About, _: Vec<Found>) -> Arc<Self> {
        Arc::new(Self)
    }

    pub fn attach(self: &Arc<Self>, _: &Control) {}

    pub fn await_all_started(&self, _: &CancelToken, _: impl FnOnce(&str)) {}

    pub fn models(&self) -> LentModels {
        LentModels::default()
    }

    pub fn differ(&self, _: &About, _: &[Found]) -> bool {
        false
    }

    pub fn restart(self: &Arc<Self>, _: About, _: Vec<Found>) {}

    pub fn take_flags(&self, _: impl FnMut(&str, bool) -> Option<Value>) {}

    pub fn vote(&self, _: &str) -> Option<Vote> {
        None
    }

    pub fn list(&self) -> String {
        String::new()
    }

    pub fn take_problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    pub fn end(&self) {}
}
