//! Refuses `--mode acp` in a build without ACP.

use super::start::Launch;
use crate::base::feature;

pub fn serve(_: Launch) -> Result<u8, String> {
    Err(format!("There is no ACP mode: {}", feature::absent("acp")))
}
