//! Exports a session as JSON lines: the current branch as a chain, or every line of the file.

use super::source::Source;
use crate::base::json::json;
use crate::base::time;
use crate::llm::message::now_ms;
use crate::session::entry::VERSION;
use serde_json::Value;
use std::io::{self, Write};

pub fn write(source: &Source<'_>, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let header = source.log.header();
    if all {
        let mut header = header.clone();
        header.cwd = source.shown(&header.cwd);
        header.parent_session = header.parent_session.map(|parent| source.shown(&parent));
        line(out, &header)?;
    } else {
        let (id, cwd) = (&header.id, source.shown(&header.cwd));
        let timestamp = time::iso(now_ms());
        line(
            out,
            &json!({"type": "session", "version": VERSION, "id": id, "timestamp": timestamp, "cwd": cwd}),
        )?;
    }
    let positions: Vec<u32> = match u32::try_from(source.index().slots.len()) {
        Ok(count) if all => (0..count).collect(),
        _ => source.index().path(source.log.leaf_position()),
    };
    let mut parent = Value::Null;
    for position in positions {
        let Some(mut fields) = source.fields(position) else {
            continue;
        };
        if !all {
            fields.insert("parentId".to_owned(), parent);
            parent = source.id(position).into();
        }
        line(out, &fields)?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
