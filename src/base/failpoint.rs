//! Points at which a test can make this process fail: `PI_FAIL=name:k:abort|err|panic`.
//!
//! The k-th pass of the named point (counted from 1) aborts the process, returns a full-disk error, or
//! panics. Release builds do not contain them.

use std::io;

/// Passes the point `name`.
#[cfg(not(debug_assertions))]
#[inline]
pub fn hit(_name: &str) -> io::Result<()> {
    Ok(())
}

/// Passes the point `name`.
#[cfg(debug_assertions)]
pub fn hit(name: &str) -> io::Result<()> {
    match plan::due(name) {
        None => Ok(()),
        Some("abort") => std::process::abort(),
        Some("panic") => panic!("failpoint {name}"),
        Some(_) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
    }
}

/// How many of `len` bytes to write before the point `name`: all, unless a test requests a torn write.
pub fn cut(name: &str, len: usize) -> usize {
    #[cfg(debug_assertions)]
    if plan::names(name) {
        return len / 2;
    }
    let _ = name;
    len
}

#[cfg(debug_assertions)]
mod plan {
    use std::cell::RefCell;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Plan {
        name: String,
        passage: u64,
        action: String,
        passed: AtomicU64,
    }

    /// Parses plans separated by commas.
    fn parse(text: &str) -> Vec<Plan> {
        let plan = |text: &str| {
            let mut parts = text.split(':');
            Some(Plan {
                name: parts.next()?.to_owned(),
                passage: parts.next()?.parse().ok()?,
                action: parts.next()?.to_owned(),
                passed: AtomicU64::new(0),
            })
        };
        text.split(',').filter_map(plan).collect()
    }

    impl Plan {
        fn due(&self, name: &str) -> bool {
            self.name == name && self.passed.fetch_add(1, Ordering::Relaxed) + 1 == self.passage
        }
    }

    fn of_process() -> &'static [Plan] {
        static PLANS: OnceLock<Vec<Plan>> = OnceLock::new();
        PLANS.get_or_init(|| parse(&std::env::var("PI_FAIL").unwrap_or_default()))
    }

    thread_local! {
        /// The plans of one test; tests share the process and its environment.
        static OF_TEST: RefCell<Vec<Plan>> = const { RefCell::new(Vec::new()) };
    }

    #[cfg(test)]
    type Watch = Box<dyn FnMut(&str)>;

    #[cfg(test)]
    thread_local! {
        /// Told of each passage in a test's thread.
        pub static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
    }

    pub fn due(name: &str) -> Option<&'static str> {
        #[cfg(test)]
        WATCH.with_borrow_mut(|watch| watch.iter_mut().for_each(|watch| watch(name)));
        if OF_TEST.with_borrow(|plans| plans.iter().any(|plan| plan.due(name))) {
            return Some("err");
        }
        let plan = of_process().iter().find(|plan| plan.due(name))?;
        Some(&plan.action)
    }

    pub fn names(name: &str) -> bool {
        OF_TEST.with_borrow(|plans| plans.iter().any(|plan| plan.name == name))
            || of_process().iter().any(|plan| plan.name == name)
    }

    #[cfg(test)]
    pub fn set(text: &str) {
        OF_TEST.set(parse(text));
    }
}

/// Runs `work` in this thread with plans of its own, which all return errors.
#[cfg(test)]
pub fn with<T>(plans: &str, work: impl FnOnce() -> T) -> T {
    plan::set(plans);
    let result = work();
    plan::set("");
    result
}

/// Runs `work` in this thread, and tells `watch` of each point just before it is passed.
#[cfg(test)]
pub fn watched<T>(watch: impl FnMut(&str) + 'static, work: impl FnOnce() -> T) -> T {
    plan::WATCH.set(Some(Box::new(watch)));
    let result = work();
    plan::WATCH.set(None);
    result
}
