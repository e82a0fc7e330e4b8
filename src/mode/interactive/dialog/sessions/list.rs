//! The stored sessions that are shown, and their order.

use crate::base::order::Order;
use crate::runtime::CancelToken;
use crate::runtime::stored::{Info, Query};
use crate::tui::fuzzy;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Characters of a session's first message that are searched and shown.
const MESSAGE_MAX: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Sessions of the current folder.
    Current,
    All,
}

/// Results of threads for the picker.
pub enum Found {
    /// Sessions of a scope, if still wanted.
    Listed {
        scope: Scope,
        sessions: Sessions,
        is_whole: bool,
        cancel: CancelToken,
    },
    /// Sessions whose messages match the search, with the matching text.
    Hits {
        hits: Vec<(PathBuf, Option<String>)>,
        is_last: bool,
        cancel: CancelToken,
    },
    Renamed(Result<(), String>),
    /// Result of a removal; true for a session that is in the trash.
    Removed {
        path: PathBuf,
        result: Result<bool, String>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Forks below their parents.
    #[default]
    Threaded,
    Recent,
    /// Best matches first.
    Fuzzy,
}

impl Sort {
    pub fn name(self) -> &'static str {
        match self {
            Self::Threaded => "Threaded",
            Self::Recent => "Recent",
            Self::Fuzzy => "Fuzzy",
        }
    }

    pub fn next(self) -> Self {
        match self {
            Self::Threaded => Self::Recent,
            Self::Recent => Self::Fuzzy,
            Self::Fuzzy => Self::Threaded,
        }
    }
}

/// A row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Index of the session.
    pub session: usize,
    /// Row of the session that this one was forked from.
    parent: Option<usize>,
    is_last: bool,
}

impl Shown {
    fn flat(session: usize) -> Self {
        Self { session, parent: None, is_last: true }
    }
}

/// A session, with the searchable text of its row.
#[derive(Clone)]
pub struct Entry {
    info: Arc<Info>,
    text: Arc<str>,
    /// Name and folder: the part in which letters of a word may be scattered.
    named: Arc<str>,
}

impl Entry {
    pub fn new(info: Info) -> Self {
        let name = info.name.as_deref().unwrap_or_default();
        let said = beginning(&info.first_message);
        let named = format!("{name} {}", info.cwd).into();
        Self { text: format!("{} {name} {said} {}", info.id, info.cwd).into(), named, info: Arc::new(info) }
    }
}

/// The sessions of a scope, the most recently active first.
#[derive(Clone, Default)]
pub struct Sessions {
    entries: Vec<Entry>,
    pub infos: Arc<Vec<Arc<Info>>>,
}

impl Sessions {
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.order_by(|a, b| {
            let (a, b) = (&a.info, &b.info);
            b.by_activity(a).then_with(|| b.path.cmp(&a.path))
        });
        Self { infos: Arc::new(entries.iter().map(|entry| entry.info.clone()).collect()), entries }
    }

    pub fn without(&self, path: &Path) -> Self {
        let mut entries = self.entries.clone();
        entries.retain(|entry| entry.info.path != path);
        Self::new(entries)
    }

    /// All sessions, without a search.
    pub fn all(&self, sort: Sort, only_named: bool) -> Vec<Shown> {
        let sessions = (0..self.infos.len()).filter(|&at| !only_named || self.is_named(at));
        match sort {
            Sort::Threaded => self.threads(&sessions.collect::<Vec<_>>()),
            Sort::Recent | Sort::Fuzzy => sessions.map(Shown::flat).collect(),
        }
    }

    /// Sessions that match the search: in their row, or in `hits`, whose messages match.
    pub fn found(
        &self,
        line: &str,
        sort: Sort,
        only_named: bool,
        hits: &HashMap<PathBuf, Option<String>>,
    ) -> Result<Vec<Shown>, String> {
        let query = Query::parse_line(line)?;
        let is_plain = !line.trim_start().starts_with("re:") && !line.contains('"');
        let mut order: Vec<usize> = match is_plain {
            true => {
                let pairs = self.entries.iter().map(|entry| (&*entry.named, &*entry.text));
                fuzzy::filter_pairs(line, pairs)
            }
            false => (0..self.entries.len())
                .filter(|&at| {
                    let entry = self.entries.get(at);
                    entry.is_some_and(|entry| query.fits(&entry.text))
                })
                .collect(),
        };
        let mut is_in = vec![false; self.infos.len()];
        for &at in &order {
            if let Some(is_in) = is_in.get_mut(at) {
                *is_in = true;
            }
        }
        order.extend(self.infos.iter().enumerate().filter_map(|(at, info)| {
            let is_new = !is_in.get(at).copied().unwrap_or(true) && hits.contains_key(&info.path);
            is_new.then_some(at)
        }));
        if sort == Sort::Recent {
            order.order();
        }
        let order = order.into_iter();
        Ok(order.filter(|&at| !only_named || self.is_named(at)).map(Shown::flat).collect())
    }

    fn is_named(&self, at: usize) -> bool {
        let name = self.infos.get(at).and_then(|info| info.name.as_deref());
        name.is_some_and(|name| !name.trim().is_empty())
    }

    /// Rows with forks below their parents; a thread is sorted by its newest session.
    fn threads(&self, sessions: &[usize]) -> Vec<Shown> {
        let by_path: HashMap<&Path, usize> =
            sessions.iter().filter_map(|&at| Some((self.infos.get(at)?.path.as_path(), at))).collect();
        let parent = |at: usize| {
            let parent = self.infos.get(at)?.parent_session_path.as_deref()?;
            by_path.get(Path::new(parent)).copied().filter(|&parent| parent != at)
        };
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        // Sessions are sorted by age: a thread comes where the first of it comes.
        let mut is_placed = vec![false; self.infos.len()];
        for &at in sessions {
            let mut next = Some(at);
            while let Some(at) = next {
                let Some(placed) = is_placed.get_mut(at).filter(|placed| !**placed) else {
                    break;
                };
                *placed = true;
                next = parent(at);
                children.entry(next).or_default().push(at);
            }
        }
        let mut rows: Vec<Shown> = Vec::with_capacity(sessions.len());
        let mut open: Vec<Shown> = Vec::new();
        let push = |open: &mut Vec<Shown>, of: Option<usize>, row: Option<usize>| {
            let children = children.get(&of).map_or(&[][..], Vec::as_slice);
            let numbered = children.iter().enumerate().rev();
            open.extend(numbered.map(|(nth, &session)| Shown {
                session,
                parent: row,
                is_last: nth + 1 == children.len(),
            }));
        };
        push(&mut open, None, None);
        while let Some(shown) = open.pop() {
            rows.push(shown);
            push(&mut open, Some(shown.session), Some(rows.len() - 1));
        }
        // Files that name each other as parents hang on nothing.
        if rows.len() < sessions.len() {
            let mut is_shown = vec![false; self.infos.len()];
            for row in &rows {
                if let Some(shown) = is_shown.get_mut(row.session) {
                    *shown = true;
                }
            }
            let lost = sessions.iter().filter(|at| !is_shown.get(**at).copied().unwrap_or(true));
            rows.extend(lost.map(|&at| Shown::flat(at)));
        }
        rows
    }
}

/// The connector lines before a row.
pub fn lines_before(rows: &[Shown], index: usize, is_plain: bool) -> String {
    let mut parts = Vec::new();
    let mut next = rows.get(index);
    while let Some(row) = next
        && let Some(parent) = row.parent
    {
        parts.push(match (parts.is_empty(), row.is_last) {
            _ if is_plain => "  ",
            (true, true) => "└─ ",
            (true, false) => "├─ ",
            (false, true) => "   ",
            (false, false) => "│  ",
        });
        next = rows.get(parent);
    }
    parts.into_iter().rev().collect()
}

/// The first words of a text, on one line.
pub fn beginning(text: &str) -> String {
    let few: String = text.trim_start().chars().take(MESSAGE_MAX).collect();
    few.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: &str, hour: u32, parent: Option<&str>) -> Info {
        Info {
            path: PathBuf::from(format!("/s/{id}")),
            id: id.to_owned(),
            cwd: "/home/me".to_owned(),
            name: id.strip_prefix("named-").map(str::to_owned),
            parent_session_path: parent.map(|parent| format!("/s/{parent}")),
            created: None,
            modified: format!("2024-12-03T{hour:02}:00:00.000Z"),
            message_count: 2,
            first_message: format!("about {id}"),
        }
    }

    fn drawn(sessions: &Sessions, rows: &[Shown]) -> Vec<String> {
        (0..rows.len())
            .map(|index| {
                let id = &sessions.infos[rows[index].session].id;
                format!("{}{id}", lines_before(rows, index, false))
            })
            .collect()
    }

    fn sessions() -> Sessions {
        let infos = vec![
            info("old", 1, None),
            info("fork", 2, Some("old")),
            info("named-deep", 9, Some("fork")),
            info("other", 5, None),
            info("late", 4, Some("old")),
            info("lost", 3, Some("gone")),
            info("self", 2, Some("self")),
            info("circle-a", 1, Some("circle-b")),
            info("circle-b", 1, Some("circle-a")),
        ];
        Sessions::new(infos.into_iter().map(Entry::new).collect())
    }

    #[test]
    fn forks_stand_under_what_they_come_from() {
        let sessions = sessions();
        let rows = sessions.all(Sort::Threaded, false);
        assert_eq!(
            drawn(&sessions, &rows),
            [
                "old",
                "├─ fork",
                "│  └─ named-deep",
                "└─ late",
                "other",
                "lost",
                "self",
                "circle-b",
                "circle-a",
            ]
        );
        let recent = sessions.all(Sort::Recent, false);
        assert_eq!(drawn(&sessions, &recent)[..3], ["named-deep", "other", "late"]);
        let named = sessions.all(Sort::Threaded, true);
        assert_eq!(drawn(&sessions, &named), ["named-deep"]);
    }

    #[test]
    fn rows_are_found_by_what_they_say_and_by_what_was_said() {
        let sessions = sessions();
        let hits: HashMap<PathBuf, Option<String>> = [("/s/late".into(), None)].into();
        for (line, sort, expected) in [
            ("other", Sort::Fuzzy, Ok(&["other", "late"][..])),
            ("other", Sort::Recent, Ok(&["other", "late"])),
            // Scattered letters count in names and folders only.
            ("othr", Sort::Fuzzy, Ok(&["late"])),
            ("\"about lost\"", Sort::Threaded, Ok(&["lost", "late"])),
            ("re:^cir.*-a", Sort::Threaded, Ok(&["circle-a", "late"])),
            ("re:(", Sort::Threaded, Err(())),
        ] {
            let rows = sessions.found(line, sort, false, &hits);
            let ids = rows.map(|rows| drawn(&sessions, &rows)).map_err(drop);
            let expected = expected.map(|ids| ids.iter().map(|id| (*id).to_owned()).collect());
            assert_eq!(ids, expected, "{line}");
        }
    }

    #[test]
    fn the_youngest_comes_first_and_one_can_be_taken_out() {
        let sessions = sessions().without(Path::new("/s/other"));
        let ids: Vec<&str> = sessions.infos.iter().map(|info| info.id.as_str()).collect();
        assert_eq!(ids[..3], ["named-deep", "late", "lost"]);
    }
}
