//! Parts of the conversation that extensions draw.
//!
//! The drawing thread never waits for an extension: a part that is not drawn yet is asked for on a thread of its
//! own, and stands on the screen as it was drawn last, or in pi's own form. A part is printed into the scrollback
//! when it has been drawn as it is at the end.

use crate::base::thread::Thread;
use crate::runtime::CancelToken;
use crate::runtime::addition::Renderer;
use crate::runtime::control::Control;
use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Drawings that are kept. All are forgotten when there are more.
const KEPT_MAX: usize = 1000;
/// Parts that wait to be drawn.
const WAITING_MAX: usize = 64;

/// A part of the conversation.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// `message`, `entry`, `toolCall` or `toolResult`.
    pub kind: &'static str,
    /// The custom type, or the name of the tool.
    pub name: &'a str,
    /// Tells parts of one kind apart.
    pub id: &'a str,
    /// Another one for each state of the part; [`LAST`] for the last.
    pub version: u64,
}

/// The version of a part that does not change any more.
pub const LAST: u64 = u64::MAX;

/// How a part is drawn.
pub enum Drawing {
    /// In pi's own form.
    Own,
    /// Not yet in its present state; with the lines of a state before.
    Waiting(Option<Texts>),
    Lines(Texts),
}

/// Lines as an extension has written them.
pub type Texts = Arc<[String]>;

/// Kind, id, width, and whether it is shown in full.
type Key = (&'static str, String, usize, bool);

#[derive(Default)]
struct Known {
    version: u64,
    is_asked: bool,
    /// None for pi's own form.
    lines: Option<Texts>,
    has_lines: bool,
}

/// What was drawn, and the thread that has parts drawn.
#[derive(Default)]
pub struct Drawings {
    shared: Arc<Shared>,
    source: Option<(Control, Sender<Job>)>,
}

#[derive(Default)]
struct Shared {
    known: Mutex<HashMap<Key, Known>>,
    /// Counts what was drawn: a view that was laid out before is out of date.
    count: AtomicU64,
    /// Counts how often a part was wanted that is not drawn yet.
    awaited: AtomicU64,
}

struct Job {
    key: Key,
    version: u64,
    renderer: Arc<dyn Renderer>,
    part: Value,
}

impl Drawings {
    /// Has parts drawn; `redraw` is called when one is.
    pub fn new(control: &Control, cancel: &CancelToken, redraw: impl Fn() + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let (jobs, waiting) = bounded(WAITING_MAX);
        let run = {
            let (shared, cancel) = (shared.clone(), cancel.clone());
            move || draw_all(&waiting, &shared, &redraw, &cancel)
        };
        // Without the thread everything is drawn in pi's own form.
        let thread = Thread::named("ext-render").stack(256 << 10).start(run);
        Self { shared, source: thread.is_ok().then(|| (control.clone(), jobs)) }
    }

    pub fn count(&self) -> u64 {
        self.shared.count.load(Ordering::Relaxed)
    }

    /// How often a part was wanted that is not drawn yet.
    pub fn awaited(&self) -> u64 {
        self.shared.awaited.load(Ordering::Relaxed)
    }

    /// True if an extension draws such parts.
    pub fn draws(&self, kind: &str, name: &str) -> bool {
        let source = self.source.as_ref();
        source.is_some_and(|(control, _)| control.renderer(kind, name).is_some())
    }

    /// The drawing of a part in so many cells, in full if `is_open`; has it drawn if there is none. `fields` describe
    /// the part in the form of the request `render`.
    pub fn of(&self, part: Part<'_>, width: usize, is_open: bool, fields: impl FnOnce() -> Value) -> Drawing {
        let Some((control, jobs)) = &self.source else { return Drawing::Own };
        let key: Key = (part.kind, part.id.to_owned(), width, is_open);
        let mut known = self.shared.known();
        let entry = known.get(&key);
        if let Some(entry) = entry.filter(|entry| entry.has_lines && entry.version == part.version) {
            return entry.lines.clone().map_or(Drawing::Own, Drawing::Lines);
        }
        let before = entry.and_then(|entry| entry.lines.clone());
        if entry.is_some_and(|entry| entry.is_asked) {
            self.shared.awaited.fetch_add(1, Ordering::Relaxed);
            return Drawing::Waiting(before);
        }
        let Some(renderer) = control.renderer(part.kind, part.name) else { return Drawing::Own };
        if known.len() > KEPT_MAX {
            known.clear();
        }
        let mut fields = fields();
        fields["kind"] = part.kind.into();
        (fields["width"], fields["expanded"]) = (width.into(), is_open.into());
        let job = Job { key: key.clone(), version: part.version, renderer, part: fields };
        // When there is no room now, it is asked for at the next paint.
        if jobs.try_send(job).is_ok() {
            known.entry(key).or_default().is_asked = true;
        }
        self.shared.awaited.fetch_add(1, Ordering::Relaxed);
        Drawing::Waiting(before)
    }

    /// Forgets what was drawn of a part.
    pub fn forget(&self, id: &str) {
        self.shared.known().retain(|(_, known, ..), entry| known != id || entry.is_asked);
        self.shared.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets everything: others may draw now.
    pub fn clear(&self) {
        self.shared.known().clear();
        self.shared.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, HashMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn draw_all(jobs: &Receiver<Job>, shared: &Shared, redraw: &impl Fn(), cancel: &CancelToken) {
    while let Ok(Job { key, version, renderer, part }) = jobs.recv() {
        let lines = renderer.draw(part, cancel);
        let lines = lines.map(Arc::from);
        shared.known().insert(key, Known { version, is_asked: false, lines, has_lines: true });
        shared.count.fetch_add(1, Ordering::Relaxed);
        redraw();
    }
}
