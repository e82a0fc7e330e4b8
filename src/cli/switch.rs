//! `pi config` without words: switches extensions, skills, prompt templates and themes on and off, one by one. A list
//! on a terminal, a text elsewhere.

use super::package::agree;
use super::say::say_plain;
use crate::mode::interactive;
use crate::mode::interactive::question::{self, Context, Switch, Switches};
use crate::mode::report;
use crate::resources::package;
use crate::resources::place::{Kind, Places};
use crate::resources::settings;
use crate::resources::source::Scope;
use crate::resources::switch::{Override, Resource, resources};
use crate::runtime::config::Inputs;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// Shows the list, with the project's settings first if `local` is set. Returns the exit code.
pub fn run(inputs: Inputs, local: bool) -> Result<u8, String> {
    if local && !inputs.is_trusted {
        return Err("Project is not trusted. Use --approve to modify local resource config.".into());
    }
    inputs.package_faults().for_each(report::warning);
    let (dirs, shown, cwd) = (inputs.dirs.clone(), inputs.settings.clone(), inputs.cwd.clone());
    let list = ResourceSwitches::new(inputs, local);
    let is_drawn = io::stdin().is_terminal() && io::stdout().is_terminal() && interactive::is_there().is_ok();
    if !is_drawn {
        return Ok(say_plain(&list.text()));
    }
    let context = Context { dirs: &dirs, settings: &shown, cwd: &cwd };
    question::switch(context, list).map_err(|error| format!("Cannot use the terminal: {error}"))
}

struct ResourceSwitches {
    inputs: Inputs,
    /// True if the project's settings are changed, false if the user's are.
    is_project: bool,
    /// What is used without the project.
    global: Vec<Resource>,
    /// What is shown.
    resources: Vec<Resource>,
    /// The project's settings file.
    project: Map<String, Value>,
}

impl ResourceSwitches {
    fn new(inputs: Inputs, is_project: bool) -> Self {
        let mut list =
            Self { inputs, is_project, global: Vec::new(), resources: Vec::new(), project: Map::new() };
        list.read();
        list
    }

    fn read(&mut self) {
        let mut of_user = self.inputs.settings.clone();
        of_user.remove_project();
        let alone = Places { settings: &of_user, is_trusted: false, packages: &[], ..self.inputs.places() };
        let packages = package::configured(&alone).0;
        self.global = resources(&Places { packages: &packages, ..alone });
        self.resources = if self.is_project { resources(&self.inputs.places()) } else { self.global.clone() };
        let lists = package::KINDS.map(Kind::name).into_iter().chain(["packages"]);
        let lists = lists.map(|name| (name.to_owned(), self.inputs.settings.lists(name).1.to_vec().into()));
        self.project = lists.filter(|(_, list): &(_, Value)| *list != Value::Array(Vec::new())).collect();
    }

    /// The folders of the project's and of the user's settings.
    fn folders(&self) -> (PathBuf, PathBuf) {
        (self.inputs.cwd.join(".pi"), self.inputs.dirs.agent().to_owned())
    }

    fn global(&self, resource: &Resource) -> Option<&Resource> {
        self.global.iter().find(|other| other.is(resource))
    }

    fn overridden(&self, resource: &Resource) -> Override {
        let (project, home) = self.folders();
        if self.is_project { resource.overridden(&self.project, &project, &home) } else { Override::Inherit }
    }

    fn label(&self, resource: &Resource) -> String {
        let mark = match (self.overridden(resource), resource.is_on) {
            (Override::Load, _) => '+',
            (Override::Unload, _) => '-',
            (Override::Inherit, true) => 'x',
            (Override::Inherit, false) => ' ',
        };
        format!("[{mark}] {}", resource.name())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let (mut group, mut kind) = (String::new(), "");
        for resource in &self.resources {
            if resource.group() != group {
                group = resource.group();
                kind = "";
                let _ = writeln!(text, "{group}");
            }
            if resource.kind.name() != kind {
                kind = resource.kind.name();
                let _ = writeln!(text, "  {kind}");
            }
            let _ = writeln!(text, "    {}", self.label(resource));
        }
        if text.is_empty() { "No resources found\n".to_owned() } else { text }
    }

    fn toggle_of_user(&self, resource: &Resource) -> Result<(), String> {
        let (_, home) = self.folders();
        settings::update(self.inputs.settings.path(), |values| resource.set(values, &home, !resource.is_on))
    }

    fn cycle_in_project(&self, resource: &Resource) -> Result<(), String> {
        let (project, home) = self.folders();
        let global = self.global(resource);
        let is_users = resource.source.scope == Scope::User;
        let is_on = global.map_or(!is_users || resource.is_on, |global| global.is_on);
        let next = self.overridden(resource).next(is_on);
        settings::update(&settings::project_path(&self.inputs.cwd), |values| {
            resource.set_override(values, next, is_users || global.is_some(), (&project, &home))
        })?;
        agree(&self.inputs);
        Ok(())
    }
}

impl Switches for ResourceSwitches {
    fn title(&self) -> String {
        if self.is_project { "Project resources" } else { "Resources" }.to_owned()
    }

    fn about(&self) -> String {
        let path = match self.is_project {
            true => settings::project_path(&self.inputs.cwd),
            false => self.inputs.settings.path().to_owned(),
        };
        let marks =
            if self.is_project { "[+] and [-] are this project's word, [x] and [ ] yours. " } else { "" };
        let tab = match (self.inputs.is_trusted, self.is_project) {
            (false, _) => "",
            (true, true) => " Tab: your settings.",
            (true, false) => " Tab: this project's settings.",
        };
        format!("{marks}Written to {}.{tab}", path.display())
    }

    fn rows(&self) -> Vec<Switch> {
        let row = |resource: &Resource| Switch {
            group: format!("{}: {}", resource.group(), resource.kind.name()),
            label: self.label(resource),
            note: resource.source.path.display().to_string(),
            search: format!(
                "{} {} {}",
                resource.name(),
                resource.kind.name(),
                resource.source.path.display()
            ),
        };
        self.resources.iter().map(row).collect()
    }

    fn toggle(&mut self, index: usize) -> Result<(), String> {
        let Some(resource) = self.resources.get(index) else { return Ok(()) };
        let done = match self.is_project {
            true => self.cycle_in_project(resource),
            false => self.toggle_of_user(resource),
        };
        self.inputs.read_settings();
        self.read();
        done
    }

    fn change_scope(&mut self) -> bool {
        if self.inputs.is_trusted {
            self.is_project = !self.is_project;
            self.read();
        }
        self.inputs.is_trusted
    }
}
