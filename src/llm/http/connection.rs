//! Connections that are closed by a cancellation.
//!
//! Each request has a [`Lease`], which records the current socket of the request, including one to a proxy; a
//! cancellation shuts the socket down. ureq keeps connections between requests and runs each request on its
//! caller's thread, so a reused connection finds the lease of its next request in a thread-local.

use super::tls::{TlsConnector, Trust};
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, NextTimeout, ShutdownHandle,
    SocksConnector, TcpConnector, Transport,
};
use ureq::{Error, Timeout};

thread_local! {
    static CURRENT: RefCell<Option<Arc<Lease>>> = const { RefCell::new(None) };
}

/// The socket of one request, and the state of its connection.
#[derive(Default)]
pub(super) struct Lease(Mutex<State>);

#[derive(Default)]
struct State {
    cancelled: bool,
    socket: Option<Weak<dyn ShutdownHandle>>,
    /// True if the connection served an earlier request.
    reused: bool,
    connected: bool,
    /// True after the first byte of the answer.
    answered: bool,
    patience: Option<Duration>,
}

impl Lease {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Assigns connections used on this thread to the lease, until the result is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Entered {
        Entered(CURRENT.replace(Some(self.clone())))
    }

    /// Closes the socket, or the next one to be opened.
    pub(super) fn cancel(&self) {
        let socket = {
            let mut state = self.lock();
            state.cancelled = true;
            state.socket.take()
        };
        if let Some(socket) = socket.and_then(|socket| socket.upgrade()) {
            socket.shutdown();
        }
    }

    /// Limits each further read to `patience`.
    pub(super) fn set_patience(&self, patience: Duration) {
        self.lock().patience = Some(patience);
    }

    pub(super) fn has_connected(&self) -> bool {
        self.lock().connected
    }

    /// True if a kept connection failed because the server had closed it before the request: the request can
    /// be sent again.
    pub(super) fn went_stale(&self, error: &Error) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
        let closed = matches!(error, Error::Io(error) if matches!(
            error.kind(),
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof
        ));
        let state = self.lock();
        closed && state.reused && !state.answered && !state.cancelled
    }

    fn check(&self) -> Result<(), Error> {
        match self.lock().cancelled {
            true => Err(cancelled()),
            false => Ok(()),
        }
    }

    fn take(&self, socket: Weak<dyn ShutdownHandle>) -> Result<(), Error> {
        let mut state = self.lock();
        if state.cancelled {
            return Err(cancelled());
        }
        state.socket = Some(socket);
        state.connected = true;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cancelled() -> Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "cancelled").into()
}

/// Restores the thread's previous lease when dropped.
pub(super) struct Entered(Option<Arc<Lease>>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Opens connections: directly or through a proxy, with TLS for https.
pub(super) fn connector(trust: Arc<Trust>) -> impl Connector {
    let chain =
        ().chain(SocksConnector::default())
            .chain(ConnectProxyConnector::default())
            .chain(TcpConnector::default())
            .chain(TlsConnector::new(trust));
    Leasing(chain)
}

#[derive(Debug)]
struct Leasing<C>(C);

impl<C: Connector> Connector for Leasing<C> {
    type Out = Leased<C::Out>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<Self::Out>, Error> {
        let lease = CURRENT.with_borrow(Clone::clone);
        // The request may have been cancelled during the name lookup.
        lease.as_deref().map_or(Ok(()), Lease::check)?;

        // The chain reports its socket as soon as it exists. A connection to a proxy is opened by a nested
        // call of this function, so the report passes through both calls.
        let socket = Arc::new(OnceLock::new());
        let register = {
            let socket = socket.clone();
            let outer = details.register_shutdown.clone();
            move |handle: Weak<dyn ShutdownHandle>| {
                let _ = socket.set(handle.clone());
                if let Some(lease) = &lease {
                    lease.take(handle.clone())?;
                }
                outer(handle)
            }
        };
        let details = ConnectionDetails {
            uri: details.uri,
            addrs: details.addrs.clone(),
            config: details.config,
            request_level: details.request_level,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: details.current_time.clone(),
            run_connector: details.run_connector.clone(),
            register_shutdown: Arc::new(register),
        };
        let transport = self.0.connect(&details, chained)?;
        Ok(transport.map(|transport| Leased {
            transport,
            socket: socket.get().cloned(),
            lease: None,
            used: false,
        }))
    }
}

/// A connection, and the lease of its current request.
struct Leased<T> {
    transport: T,
    socket: Option<Weak<dyn ShutdownHandle>>,
    lease: Option<Arc<Lease>>,
    used: bool,
}

impl<T> Leased<T> {
    /// Takes the lease of the thread's request.
    fn attach(&mut self) -> Result<(), Error> {
        if self.lease.is_some() {
            return Ok(());
        }
        self.lease = CURRENT.with_borrow(Clone::clone);
        let used = std::mem::replace(&mut self.used, true);
        if let Some(lease) = &self.lease {
            if let Some(socket) = &self.socket {
                lease.take(socket.clone())?;
            }
            lease.lock().reused = used;
        }
        Ok(())
    }
}

impl<T: Transport> Transport for Leased<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.attach()?;
        self.transport.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, mut timeout: NextTimeout) -> Result<bool, Error> {
        if let Some(patience) = self.lease.as_ref().and_then(|lease| lease.lock().patience) {
            timeout = NextTimeout { after: patience.into(), reason: Timeout::RecvBody, ..timeout };
        }
        loop {
            match self.transport.await_input(timeout) {
                // A signal for another part of the program.
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(true) => {
                    if let Some(lease) = &self.lease {
                        lease.lock().answered = true;
                    }
                    return Ok(true);
                }
                other => return other,
            }
        }
    }

    /// ureq calls this between two requests only.
    fn is_open(&mut self) -> bool {
        self.lease = None;
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

impl<T: fmt::Debug> fmt::Debug for Leased<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transport.fmt(f)
    }
}
