//! A build without the interactive terminal. Questions are not drawn, and the manual has no keys.

use crate::base::feature;
use crate::mode::signal::Watch;
use crate::runtime::session::Session;
use crate::runtime::{Block, CancelToken, Dirs, Settings, Store};
use serde_json::Value;

pub struct Options {
    pub dirs: Dirs,
    pub store: Store,
    pub first: Option<(String, Vec<Block>)>,
    pub prompts: Vec<String>,
    pub draft: Option<String>,
    pub fullscreen: Option<bool>,
    pub verbose: bool,
}

pub fn is_there() -> Result<(), String> {
    let absent = feature::absent("interactive");
    Err(format!("There is no conversation on a terminal: {absent}. Ask with -p, or use --mode rpc"))
}

pub fn run(_: Session, _: Options, _: &CancelToken, _: &Watch) -> Result<u8, String> {
    is_there().map(|()| 0)
}

pub fn commands() -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)> {
    std::iter::empty()
}

pub fn theme_colors() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    std::iter::empty()
}

pub struct Survey {
    pub look: String,
    pub clipboard: Result<String, &'static str>,
}

pub fn survey(_: &Settings) -> Option<Survey> {
    None
}

pub fn keys() -> String {
    String::new()
}

pub fn keybindings_schema() -> Option<Value> {
    None
}

pub fn theme_schema() -> Option<Value> {
    None
}

pub mod question {
    //! Questions on the screen: never asked.

    use crate::runtime::{Dirs, Settings, Store};
    use std::io;
    use std::path::{Path, PathBuf};

    #[derive(Clone, Copy)]
    pub struct Context<'a> {
        pub dirs: &'a Dirs,
        pub settings: &'a Settings,
        pub cwd: &'a Path,
    }

    pub enum Answer<T> {
        Given(T),
        Left,
        End(u8),
    }

    pub fn choose(_: Context<'_>, _: &str, _: &str, _: &[String]) -> io::Result<Answer<usize>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub struct Switch {
        pub group: String,
        pub label: String,
        pub note: String,
        pub search: String,
    }

    pub trait Switches {
        fn title(&self) -> String;
        fn about(&self) -> String;
        fn rows(&self) -> Vec<Switch>;
        fn toggle(&mut self, index: usize) -> Result<(), String>;
        fn change_scope(&mut self) -> bool;
    }

    pub fn switch(_: Context<'_>, _: impl Switches + 'static) -> io::Result<u8> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn pick(_: Context<'_>, _: &Store) -> io::Result<Answer<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
