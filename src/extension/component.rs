//! Components: parts of the screen that an extension draws.
//!
//! The extension is asked for the lines of a component when its room changes and when it asks to be drawn again; what
//! it drew last stays on the screen meanwhile. Keys go to it without waiting.

use super::request::{Answer, Failed};
use super::{Instance, call};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::runtime::overlay::Overlay;
use crate::runtime::ui::{Awaited, Change, Component, Picture, Place, Query, Room, Ui};
use crate::tools::process::peer::STACK;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use serde::Deserialize;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time for lines.
const RENDER_MAX: Duration = Duration::from_secs(5);
/// Rows of a component without the focus.
const ROWS: usize = 10;

/// A component of an extension, as the screen knows it.
pub struct Remote {
    instance: Arc<Instance>,
    name: String,
    /// The number that the screen knows it by.
    pub number: u64,
    /// What the user is waited for meanwhile.
    awaited: Option<Awaited>,
    /// None before the screen has said.
    room: Mutex<Option<Room>>,
    redraw: Sender<()>,
    close: Sender<Option<Value>>,
}

struct Orders {
    redraw: Receiver<()>,
    close: Receiver<Option<Value>>,
}

impl Remote {
    fn new(instance: &Arc<Instance>, name: &str, awaited: Option<Awaited>) -> (Arc<Self>, Orders) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let (redraw, redraws) = bounded(1);
        let (close, closes) = bounded(1);
        let (instance, name) = (instance.clone(), name.to_owned());
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let remote = Self { instance, name, number, awaited, room: Mutex::default(), redraw, close };
        (Arc::new(remote), Orders { redraw: redraws, close: closes })
    }

    /// Takes it from the screen, with a result.
    pub fn close(&self, result: Option<Value>) {
        let _ = self.close.try_send(result);
    }

    /// Has the extension draw it.
    fn draw(&self, room: Room, cancel: &CancelToken) -> Result<Picture, Failed> {
        let connection = self.instance.connection().ok_or_else(|| Failed::Over(self.instance.end_text()))?;
        let params = json!({"extension": self.instance.id, "component": self.name, "width": room.width,
            "rows": room.rows, "screenColumns": room.columns});
        let drawn = connection.ask("component.render", params, Some(RENDER_MAX), cancel)?;
        let lines = drawn["lines"].as_array().into_iter().flatten();
        let lines = lines.map(|line| line.as_str().unwrap_or_default().to_owned()).collect();
        let number =
            |name: &str| drawn["cursor"][name].as_u64().and_then(|number| usize::try_from(number).ok());
        Ok(Picture {
            lines,
            cursor: number("row").zip(number("column")),
            overlay: drawn
                .get("overlayOptions")
                .and_then(|options| Overlay::deserialize(options).ok())
                .map(Box::new),
            is_hidden: drawn["hidden"] == true,
        })
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
    fn resize(&self, room: Room) {
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = Some(room);
        self.redraw();
    }

    fn focus(&self, is_focused: bool) {
        self.tell("component.focus", json!({"focused": is_focused}));
    }

    /// Has it drawn again. One order that waits is enough.
    fn redraw(&self) {
        let _ = self.redraw.try_send(());
    }

    fn input(&self, data: &str, key: &str) {
        self.tell("component.input", json!({"data": data, "key": key}));
    }

    fn dismiss(&self) {
        self.close(None);
    }

    fn awaited(&self) -> Option<&Awaited> {
        self.awaited.as_ref()
    }
}

/// Shows a component until it is closed.
pub fn custom(
    instance: &Arc<Instance>,
    ui: &Arc<dyn Ui>,
    name: &str,
    place: Place,
    awaited: Option<Awaited>,
    cancel: &CancelToken,
) -> Answer {
    let (remote, orders) = Remote::new(instance, name, awaited);
    if !ui.open(remote.number, remote.clone(), place) {
        return Ok(json!({}));
    }
    instance.show(name, remote.clone());
    let answer = attend(&remote, &orders, ui, cancel);
    instance.hide(name);
    answer
}

/// Shows a component as the editor until it is replaced or its extension ends.
pub fn editor(instance: &Arc<Instance>, ui: Arc<dyn Ui>, name: &str) -> Answer {
    let (remote, orders) = Remote::new(instance, name, None);
    if !ui.open(remote.number, remote.clone(), Place::Editor) {
        return Ok(Value::Null);
    }
    instance.show(name, remote.clone());
    let draw = move || drop(attend(&remote, &orders, &ui, &CancelToken::new()));
    let spawned = Thread::named("ext-draw").stack(STACK).start(draw);
    spawned.map(|_| Value::Null).map_err(|error| call::failed(format_args!("Cannot start a thread: {error}")))
}

/// Draws a component when it is asked to, until it is closed. Gives its result.
fn attend(remote: &Remote, orders: &Orders, ui: &Arc<dyn Ui>, cancel: &CancelToken) -> Answer {
    let Remote { instance, name, number, .. } = remote;
    let over = instance.connection().map(|connection| connection.over().clone()).unwrap_or_default();
    let answer = loop {
        select! {
            recv(orders.redraw) -> _ => {
                let room = *remote.room.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(room) = room else { continue };
                match remote.draw(room, cancel) {
                    Ok(picture) => ui.drawn(*number, picture),
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
    ui.close(*number);
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
    let (remote, orders) = Remote::new(instance, name, None);
    instance.show(name, remote.clone());
    remote.redraw();
    // The instance keeps it: it ends when it is let go of there.
    let weak = Arc::downgrade(&remote);
    drop(remote);
    let draw = move || {
        let never = CancelToken::new();
        while orders.redraw.recv().is_ok() {
            let Some(remote) = weak.upgrade() else { return };
            let width = ui.read(Query::Width).as_u64().and_then(|width| usize::try_from(width).ok());
            let width = width.unwrap_or(80);
            match remote.draw(Room { width, rows: ROWS, columns: width }, &never) {
                Ok(picture) => ui.show(change(picture.lines)),
                Err(_) => return,
            }
        }
    };
    let spawned = Thread::named("ext-draw").stack(STACK).start(draw);
    spawned.map(|_| Value::Null).map_err(|error| call::failed(format_args!("Cannot start a thread: {error}")))
}
