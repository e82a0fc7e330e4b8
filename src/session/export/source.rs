//! Reads the entries of a log one at a time, without secrets.

use super::redact::Redactor;
use crate::agent::call::Describe;
use crate::session::entry::{self, Entry};
use crate::session::index::{Index, Kind};
use crate::session::log::Log;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

pub struct Source<'a> {
    pub log: &'a Log,
    redactor: Option<&'a Redactor>,
    pub describe: Describe<'a>,
    damaged: RefCell<BTreeSet<u32>>,
}

impl<'a> Source<'a> {
    pub fn new(log: &'a Log, redactor: Option<&'a Redactor>, describe: Describe<'a>) -> Self {
        Self { log, redactor, describe, damaged: RefCell::default() }
    }

    pub fn index(&self) -> &'a Index {
        self.log.index()
    }

    pub fn id(&self, position: u32) -> &'a str {
        self.index().get(position).map_or("", |slot| &slot.id)
    }

    pub fn kind(&self, position: u32) -> Kind {
        let slot = self.index().get(position);
        slot.map_or(Kind::Damaged, |slot| slot.kind)
    }

    /// Returns an entry, or `None` if it is damaged.
    pub fn entry(&self, position: u32) -> Option<Entry> {
        self.read(position)
    }

    /// Returns all fields of an entry.
    pub fn fields(&self, position: u32) -> Option<Map<String, Value>> {
        self.read(position)
    }

    /// Parses an entry as `T`, with secrets removed. An unreadable entry is remembered as damaged.
    pub fn read<T: DeserializeOwned>(&self, position: u32) -> Option<T> {
        let line = self.log.line(self.index().get(position)?);
        let read = line.and_then(|line| match self.redactor {
            None => entry::read(&line).ok(),
            Some(redactor) => {
                let mut value: Value = entry::read(&line).ok()?;
                redactor.clean(&mut value);
                serde_json::from_value(value).ok()
            }
        });
        if read.is_none() {
            self.damaged.borrow_mut().insert(position);
        }
        read
    }

    /// Removes secrets from text outside of entries.
    pub fn shown(&self, text: &str) -> String {
        match self.redactor {
            Some(redactor) => redactor.hide(text).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Returns the ids of entries that proved unreadable.
    pub fn damaged(&self) -> Vec<String> {
        let damaged = self.damaged.borrow();
        // The log itself has reported entries that it knew to be damaged.
        let news = damaged.iter().filter(|position| self.kind(**position) != Kind::Damaged);
        news.map(|position| self.id(*position).to_owned()).collect()
    }
}
