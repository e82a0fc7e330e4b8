//! Time limits that several parts share.

use std::time::Duration;

/// Time for the answer to `initialize`.
pub const INITIALIZE_MAX: Duration = Duration::from_secs(30);
/// Time for a program to find out the models of its providers. The host of TypeScript extensions ends after 10 s.
pub const MODELS_MAX: Duration = Duration::from_secs(11);
/// Time for the end of all programs.
pub const END_MAX: Duration = Duration::from_secs(2);
/// Time for a handler that sets no limit.
pub const HANDLER_MAX: Duration = Duration::from_secs(30);

/// True if the limit of a handler does not run while the program waits for this call. Calls that wait for the run
/// are not among them: a handler that waits for the run, which waits for the handler, ends by its limit.
pub fn stops_clock(method: &str) -> bool {
    method.starts_with("ui.")
        || matches!(
            method,
            "exec" | "models.classify" | "models.complete" | "models.generateImages" | "tools.execute"
        )
}
