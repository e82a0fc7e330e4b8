//! Restores the terminal when pi is killed.

use crate::runtime::lifeline;
use crate::tui::terminal::Lost;
use std::os::fd::BorrowedFd;

/// Arranges for the terminal to be restored if this process is killed.
pub fn keep(tty: BorrowedFd<'_>, lost: Option<&Lost<'_>>) {
    let lost = lost.map(|&Lost { before, off, is_lent }| lifeline::Lost { before, off, is_lent });
    lifeline::hold_terminal(tty, lost.as_ref());
}
