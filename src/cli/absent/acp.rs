//! `--mode acp` in a build without it.

use super::flags::Args;
use crate::base::feature;

pub fn serve(_: &Args) -> Result<u8, String> {
    Err(format!("There is no ACP mode: {}", feature::absent("acp")))
}
