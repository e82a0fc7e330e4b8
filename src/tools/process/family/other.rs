//! Processes of a command without `/proc`: the shell's group as a whole.

use super::super::group::Number;
use crate::tools::backend::Survivor;

/// Empty, since a group has only a number.
pub type Known = ();

/// Empty, since the group is all that is looked at.
pub type Strangers = ();

pub fn strangers() -> Strangers {}

pub fn members(_: &str, group: Number, _: &Strangers, _: &mut Known) -> Vec<Survivor> {
    let group = group.is_alive().then(|| Survivor { pid: group.id, name: "process group".into() });
    group.into_iter().collect()
}

/// True, since a signal to the group reaches all known processes.
pub fn is_in(_: i32, _: Number) -> bool {
    true
}
