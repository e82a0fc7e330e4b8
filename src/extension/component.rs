//! Components: parts of the screen that an extension draws.
//!
//! The extension is asked for the lines of a component when its room changes and when it asks to be drawn again; what
//! it drew last stays on the screen meanwhile. Keys go to it without waiting.

use super::connection::{Answer, Failed};
use super::{Instance, call};
use crate::base::cancel::CancelToken;
use crate::runtime::ui::{Change, Component, Ui};
use crate::tools::process::peer::STACK;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time for lines.
const RENDER_MAX: Duration = Duration::from_secs(5);
/// Rows of a component without the focus.
const ROWS: usize = 10;

/// A component of an extension, as the screen knows it.
pub struct Remote {
    instance: Arc<Instance>,
    name: String,
    /// Cells and rows; none before the screen has said.
    room: Mutex<Option<(usize, usize)>>,
    redraw: Sender<()>,
    close: Sender<Option<Value>>,
}

/// Lines, and the row and column of the cursor.
type Picture = (Vec<String>, Option<(usize, usize)>);

struct Orders {
    redraw: Receiver<()>,
    close: Receiver<Option<Value>>,
}

impl Remote {
    fn new(instance: &Arc<Instance>, name: &str) -> (Arc<Self>, Orders) {
        let (redraw, redraws) = bounded(1);
        let (close, closes) = bounded(1);
        let remote =
            Self { instance: instance.clone(), name: name.to_owned(), room: Mutex::default(), redraw, close };
        (Arc::new(remote), Orders { redraw: redraws, close: closes })
    }

    /// Has it drawn again. One order that waits is enough.
    pub fn redraw(&self) {
        let _ = self.redraw.try_send(());
    }

    /// Takes it from the screen, with a result.
    pub fn close(&self, result: Option<Value>) {
        let _ = self.close.try_send(result);
    }

    /// Asks for the lines, and the row and column of the cursor.
    fn lines(&self, width: usize, rows: usize, cancel: &CancelToken) -> Result<Picture, Failed> {
        let connection = self.instance.connection().ok_or_else(|| Failed::Over(self.instance.end_text()))?;
        let params =
            json!({"extension": self.instance.id, "component": self.name, "width": width, "rows": rows});
        let drawn = connection.ask("component.render", params, Some(RENDER_MAX), cancel)?;
        let lines = drawn["lines"].as_array().into_iter().flatten();
        let lines = lines.map(|line| line.as_str().unwrap_or_default().to_owned()).collect();
        let number =
            |name: &str| drawn["cursor"][name].as_u64().and_then(|number| usize::try_from(number).ok());
        Ok((lines, number("row").zip(number("column"))))
    }

    fn tell(&self, method: &str, mut params: Value) {
        params["extension"] = self.instance.id.as_str().into();
        params["component"] = self.name.as_str().into();
        if let Some(connection) = self.instance.connection() {
            connection.offer(method, params);
        }
    }
}

impl Component for Remote {
    fn resize(&self, width: usize, rows: usize) {
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = Some((width, rows));
        self.redraw();
    }

    fn input(&self, data: &str, key: &str) {
        self.tell("component.input", json!({"data": data, "key": key}));
    }

    fn dismiss(&self) {
        self.close(None);
    }
}

/// Shows a component with the focus until it is closed.
pub fn custom(instance: &Arc<Instance>, ui: &Arc<dyn Ui>, name: &str, cancel: &CancelToken) -> Answer {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    let (remote, orders) = Remote::new(instance, name);
    if !ui.open(number, remote.clone()) {
        return Ok(json!({}));
    }
    instance.show(name, remote.clone());
    let over = instance.connection().map(|connection| connection.over().clone()).unwrap_or_default();
    let answer = loop {
        select! {
            recv(orders.redraw) -> _ => {
                let room = *remote.room.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((width, rows)) = room else { continue };
                match remote.lines(width, rows, cancel) {
                    Ok((lines, cursor)) => ui.drawn(number, lines, cursor),
                    Err(Failed::Cancelled) => break Err(call::cancelled()),
                    Err(failed) => break Err(call::failed(format_args!("The component {name}: {failed}"))),
                }
            }
            recv(orders.close) -> result => break Ok(match result.ok().flatten() {
                Some(result) => json!({"result": result}),
                None => json!({}),
            }),
            recv(cancel.receiver()) -> _ => break Err(call::cancelled()),
            recv(over.receiver()) -> _ => break Err(call::cancelled()),
        }
    };
    instance.hide(name);
    ui.close(number);
    remote.tell("component.closed", json!({}));
    answer
}

/// Puts a component where `change` puts its lines, until it is closed or replaced.
pub fn place(
    instance: &Arc<Instance>,
    ui: Arc<dyn Ui>,
    name: &str,
    change: impl Fn(Vec<String>) -> Change + Send + 'static,
) -> Answer {
    let (remote, orders) = Remote::new(instance, name);
    instance.show(name, remote.clone());
    remote.redraw();
    // The instance keeps it: it ends when it is let go of there.
    let weak = Arc::downgrade(&remote);
    drop(remote);
    let draw = move || {
        let never = CancelToken::new();
        while orders.redraw.recv().is_ok() {
            let Some(remote) = weak.upgrade() else { return };
            match remote.lines(ui.width(), ROWS, &never) {
                Ok((lines, _)) => ui.show(change(lines)),
                Err(_) => return,
            }
        }
    };
    let spawned = thread::Builder::new().name("ext-draw".into()).stack_size(STACK).spawn(draw);
    spawned.map(|_| Value::Null).map_err(|error| call::failed(format_args!("Cannot start a thread: {error}")))
}
