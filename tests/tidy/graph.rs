//! Which source file imports which, read from the text of `use` lines and paths.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static COMMENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)//.*$").unwrap());
static USE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\buse\s+([^;]+);").unwrap());
static PATH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?:^|[^:\w])((?:\w+::)+\w+)").unwrap());

/// A path of names below the crate.
type Module = Vec<String>;

pub struct Graph {
    edges: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

impl Graph {
    /// Reads `files` below `src`, each with its text without tests.
    pub fn read(src: &Path, files: &[(PathBuf, String)]) -> Self {
        let modules: BTreeMap<Module, PathBuf> =
            files.iter().map(|(path, _)| (module(src, path), path.clone())).collect();
        let mut edges = BTreeMap::new();
        for (path, text) in files {
            let here = module(src, path);
            let used = paths(text).into_iter().filter_map(|path| absolute(&here, path, &modules));
            let owners = used.filter_map(|used| owner(&modules, &used));
            edges.insert(path.clone(), owners.filter(|owner| owner != path).collect());
        }
        Self { edges }
    }

    /// The groups of files in which each reaches every other, largest first.
    pub fn circles(&self) -> Vec<Vec<&PathBuf>> {
        let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> =
            self.edges.keys().map(|file| (file, self.reach(file))).collect();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for file in self.edges.keys() {
            if seen.contains(file) || !reached[file].contains(file) {
                continue;
            }
            let circle: Vec<_> =
                reached[file].iter().copied().filter(|other| reached[other].contains(file)).collect();
            seen.extend(circle.iter().copied());
            circles.push(circle);
        }
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    fn reach<'a>(&'a self, from: &'a PathBuf) -> BTreeSet<&'a PathBuf> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            open.extend(self.edges[file].iter().filter(|next| found.insert(*next)));
        }
        found
    }
}

fn module(src: &Path, path: &Path) -> Module {
    let path = path.strip_prefix(src).unwrap().with_extension("");
    let mut names: Module = path.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    if names.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        names.pop();
    }
    names
}

/// The file that holds `path`, or the module that it is an item of.
fn owner(modules: &BTreeMap<Module, PathBuf>, path: &[String]) -> Option<PathBuf> {
    (1..=path.len()).rev().find_map(|len| modules.get(&path[..len])).cloned()
}

fn absolute(here: &[String], path: Module, modules: &BTreeMap<Module, PathBuf>) -> Option<Module> {
    let first = path.first()?.as_str();
    match first {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([here, &path[1..]].concat()),
        "super" => {
            let up = path.iter().take_while(|name| *name == "super").count();
            Some([&here[..here.len().checked_sub(up)?], &path[up..]].concat())
        }
        _ => {
            let child = [here, &path[..1]].concat();
            modules.contains_key(&child).then(|| [here, &path].concat())
        }
    }
}

/// Every path in `text`: the leaves of `use` trees, and what stands in code with `::` behind it.
fn paths(text: &str) -> Vec<Module> {
    let text = COMMENT.replace_all(text, "");
    let mut found = Vec::new();
    for tree in USE.captures_iter(&text) {
        leaves(&tree[1], &[], &mut found);
    }
    let rest = USE.replace_all(&text, "");
    found.extend(PATH.captures_iter(&rest).map(|path| names(&path[1])));
    found
}

fn names(path: &str) -> Module {
    path.split("::").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

fn leaves(tree: &str, before: &[String], found: &mut Vec<Module>) {
    let tree = tree.trim();
    let Some((head, group)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        let mut path = [before, &names(path)].concat();
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        found.push(path);
        return;
    };
    let before = [before, &names(head)].concat();
    let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
    let (mut depth, mut start) = (0, 0);
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                leaves(&group[start..at], &before, found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !group[start..].trim().is_empty() {
        leaves(&group[start..], &before, found);
    }
}

#[test]
fn paths_are_found_in_use_trees_and_in_code() {
    let text = "use a::{self, b::{C, d}, E as F};\nfn f() { super::g::h(); x.y::<Z>(); k::L }\n";
    let found: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["a", "a::b::C", "a::b::d", "a::E", "super::g::h", "k::L"]);
}
