//! Channels for values that are sent now and then.
//!
//! Each type that is sent through a channel of `crossbeam_channel` costs some six kilobytes of code. Here the values
//! are boxed, and all channels are of one type. `select!` takes a [`Receiver`] as it is, and what it gives goes
//! through [`Receiver::open`].
//!
//! Not for signals, which carry nothing, and not for values that borrow.

use crossbeam_channel::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
};
use std::any::Any;
use std::iter::Map;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::{Duration, Instant};

type Parcel = Box<dyn Any + Send>;

pub struct Sender<T>(crossbeam_channel::Sender<Parcel>, PhantomData<fn(T)>);

pub struct Receiver<T>(crossbeam_channel::Receiver<Parcel>, PhantomData<fn() -> T>);

/// A channel with room for `capacity` values; with 0, a send waits for its receiver.
pub fn bounded<T: Send + 'static>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = crossbeam_channel::bounded(capacity);
    (Sender(sender, PhantomData), Receiver(receiver, PhantomData))
}

/// A channel on which nothing comes.
pub fn never<T>() -> Receiver<T> {
    Receiver(crossbeam_channel::never(), PhantomData)
}

fn unpack<T: 'static>(parcel: Parcel) -> T {
    *parcel.downcast().expect("a channel carries values of one type")
}

impl<T: Send + 'static> Sender<T> {
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(Box::new(value)).map_err(|SendError(parcel)| SendError(unpack(parcel)))
    }

    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.0.try_send(Box::new(value)).map_err(|error| match error {
            TrySendError::Full(parcel) => TrySendError::Full(unpack(parcel)),
            TrySendError::Disconnected(parcel) => TrySendError::Disconnected(unpack(parcel)),
        })
    }
}

impl<T: Send + 'static> Sender<T> {
    pub fn send_timeout(&self, value: T, limit: Duration) -> Result<(), SendTimeoutError<T>> {
        self.0.send_timeout(Box::new(value), limit).map_err(|error| match error {
            SendTimeoutError::Timeout(parcel) => SendTimeoutError::Timeout(unpack(parcel)),
            SendTimeoutError::Disconnected(parcel) => SendTimeoutError::Disconnected(unpack(parcel)),
        })
    }
}

impl<T: Send + 'static> Receiver<T> {
    /// The value of what `select!` has received.
    pub fn open(&self, received: Result<Parcel, RecvError>) -> Result<T, RecvError> {
        received.map(unpack)
    }

    pub fn recv(&self) -> Result<T, RecvError> {
        self.open(self.0.recv())
    }

    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.0.try_recv().map(unpack)
    }

    pub fn recv_timeout(&self, limit: Duration) -> Result<T, RecvTimeoutError> {
        self.0.recv_timeout(limit).map(unpack)
    }

    pub fn recv_deadline(&self, limit: Instant) -> Result<T, RecvTimeoutError> {
        self.0.recv_deadline(limit).map(unpack)
    }

    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.0.iter().map(unpack)
    }

    pub fn try_iter(&self) -> impl Iterator<Item = T> {
        self.0.try_iter().map(unpack)
    }
}

impl<T: 'static> IntoIterator for &Receiver<T> {
    type Item = T;
    type IntoIter = Map<crossbeam_channel::IntoIter<Parcel>, fn(Parcel) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.clone().into_iter()
    }
}

impl<T: 'static> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = Map<crossbeam_channel::IntoIter<Parcel>, fn(Parcel) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(unpack)
    }
}

/// For `select!`.
impl<T> Deref for Sender<T> {
    type Target = crossbeam_channel::Sender<Parcel>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// For `select!`.
impl<T> Deref for Receiver<T> {
    type Target = crossbeam_channel::Receiver<Parcel>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}
