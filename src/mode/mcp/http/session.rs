//! The sessions of clients: each has tools, calls and questions of its own.

use super::stream::Streams;
use crate::base::random;
use crate::mode::mcp::peer::{Peer, Way, reason};
use crate::mode::mcp::serve::{Server, SharedHost};
use crate::mode::report;
use crate::runtime::CancelToken;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions at a time. Beyond that the one that was not used for the longest time ends, if it has nothing to do.
const SESSIONS_MAX: usize = 16;

pub struct Session {
    pub id: String,
    pub server: Server,
    pub streams: Arc<Streams>,
    cancel: CancelToken,
    /// What the tools work in.
    inner: Mutex<Option<crate::runtime::session::Session>>,
}

impl Session {
    /// Ends the calls of the session, and all that they have started.
    fn close(&self) {
        self.cancel.cancel();
        self.streams.close_all();
        self.server.finish();
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(error)) = inner.map(crate::runtime::session::Session::close) {
            report::warning(error.0);
        }
    }
}

pub struct Sessions {
    host: SharedHost,
    can_run: bool,
    cancel: CancelToken,
    /// The one used last stands last.
    all: Mutex<Vec<Arc<Session>>>,
}

impl Sessions {
    pub fn new(host: SharedHost, can_run: bool, cancel: CancelToken) -> Self {
        Self { host, can_run, cancel, all: Mutex::default() }
    }

    pub fn begin(&self) -> Result<Arc<Session>, String> {
        self.make_room()?;
        let id = random::text().map_err(|_| "The system has no random numbers")?;
        let cancel = self.cancel.child();
        let inner = {
            let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
            host.open_tools(&cancel).map_err(reason)?
        };
        let streams = Arc::new(Streams::default());
        let peer = Peer::new(Way::Streams(streams.clone()));
        let control = inner.control().clone();
        let server = Server::new(peer, self.host.clone(), control, self.can_run, cancel.clone());
        let session = Arc::new(Session { id, server, streams, cancel, inner: Mutex::new(Some(inner)) });
        self.all().push(session.clone());
        Ok(session)
    }

    /// Ends a session that nobody uses, if there are too many.
    fn make_room(&self) -> Result<(), String> {
        let ended = {
            let mut all = self.all();
            if all.len() < SESSIONS_MAX {
                return Ok(());
            }
            let place = all.iter().position(|session| session.streams.is_idle());
            all.remove(place.ok_or_else(|| format!("{SESSIONS_MAX} sessions are at work"))?)
        };
        ended.close();
        Ok(())
    }

    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        let mut all = self.all();
        let place = all.iter().position(|session| session.id == id)?;
        let session = all.remove(place);
        all.push(session.clone());
        Some(session)
    }

    /// Ends a session. False if there is none with this id.
    pub fn end(&self, id: &str) -> bool {
        let Some(session) = self.find(id) else { return false };
        self.all().retain(|other| other.id != id);
        session.close();
        true
    }

    /// Ends what is under way.
    pub fn cancel_all(&self) {
        for session in self.all().iter() {
            session.cancel.cancel();
            session.streams.close_all();
        }
    }

    pub fn close_all(&self) {
        let all = std::mem::take(&mut *self.all());
        all.iter().for_each(|session| session.close());
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
