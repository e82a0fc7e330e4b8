//! Starting a thread.
//!
//! Its work is boxed: the standard library makes some two kilobytes of code for each type of work that it is given.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// A thread that is to be started.
pub struct Thread(Builder);

impl Thread {
    /// A thread with the name that debuggers and `ps` show.
    pub fn named(name: &str) -> Self {
        Self(Builder::new().name(name.to_owned()))
    }

    /// Sets the size of the stack in bytes.
    pub fn stack(self, size: usize) -> Self {
        Self(self.0.stack_size(size))
    }

    pub fn start<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
        self.0.spawn(work)
    }

    /// Starts a thread that may borrow what outlives the scope.
    pub fn start_in<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, T>> {
        let work: Box<dyn FnOnce() -> T + Send + 'scope> = Box::new(work);
        self.0.spawn_scoped(scope, work)
    }
}
