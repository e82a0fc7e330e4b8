//! Switches single resources on and off: rules in the settings, as `pi config` of the TypeScript pi writes them.

use super::package::{KINDS, is_local, source_of};
use super::pattern::relative;
use super::place::{Kind, Places, tidy};
use super::source::{Found, Scope, Source};
use crate::base::json::json;
use crate::base::order::Order;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A resource that settings, folders or packages bring.
#[derive(Clone, Debug)]
pub struct Resource {
    pub kind: Kind,
    pub source: Source,
    pub is_on: bool,
}

/// What a project says of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Nothing.
    Inherit,
    Load,
    Unload,
}

/// All resources that can be switched: those of packages first, of the user before those of the project.
pub fn resources(places: &Places<'_>) -> Vec<Resource> {
    let mut all = Vec::new();
    for kind in KINDS {
        let found = places.configured(kind).into_iter();
        all.extend(found.map(|(source, is_on)| Resource { kind, source, is_on }));
    }
    all.order_by_key(|resource| {
        let source = &resource.source;
        let package = match &source.found {
            Found::Package(text) => (0, text.to_string()),
            _ => (1, String::new()),
        };
        let kind = KINDS.iter().position(|kind| *kind == resource.kind);
        (package.0, source.scope == Scope::Project, package.1, source.base.clone(), kind, resource.name())
    });
    all
}

impl Resource {
    pub fn name(&self) -> String {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = &self.source.path;
        let folder = path.parent().map(name).unwrap_or_default();
        match self.kind {
            Kind::Skills if path.ends_with("SKILL.md") => folder,
            Kind::Extensions if folder != "extensions" => format!("{folder}/{}", name(path)),
            _ => name(path),
        }
    }

    /// Where the resource comes from, for people.
    pub fn group(&self) -> String {
        let source = &self.source;
        let whose = if source.scope == Scope::Project { "Project" } else { "User" };
        match (&source.found, &source.base) {
            (Found::Package(text), _) => format!("{text} ({})", source.scope.name()),
            (Found::Looked, Some(base)) => format!("{whose} ({}/)", base.display()),
            _ => format!("{whose} settings"),
        }
    }

    /// True if both are one file of one kind.
    pub fn is(&self, other: &Self) -> bool {
        let real = |resource: &Self| resource.source.path.canonicalize().ok();
        self.kind == other.kind && (self.source.path == other.source.path || real(self) == real(other))
    }

    /// The rule's path: relative to the folder that the resource belongs to.
    fn pattern(&self, settings_folder: &Path) -> String {
        let base = self.source.base.as_deref().unwrap_or(settings_folder);
        text(&relative(base, &self.source.path))
    }

    /// Writes into the settings of the resource's own scope, in `folder`, that it is on or off.
    pub fn set(&self, values: &mut Map<String, Value>, folder: &Path, is_on: bool) -> Result<(), String> {
        let pattern = self.pattern(folder);
        let Found::Package(package) = &self.source.found else {
            let rules = list(values, self.kind.name())?;
            rules.retain(|rule| !is_rule_of(rule, &|target| target == pattern));
            rules.push(rule(is_on, &pattern));
            return Ok(());
        };
        let packages = list(values, "packages")?;
        let entry = packages.iter_mut().find(|entry| source_of(entry) == Some(package));
        let entry = as_object(entry.ok_or_else(|| format!("{package} is in no list of packages any more"))?)?;
        let rules = self.package_rules(entry)?;
        rules.retain(|rule| !is_rule_of(rule, &|target| target == pattern));
        rules.push(rule(is_on, &pattern));
        Ok(())
    }

    /// The rules for the kind in the entry of a package. An empty list, which uses nothing, becomes one that excludes
    /// all: with a rule for one file alone, all others would be used.
    fn package_rules<'a>(&self, entry: &'a mut Map<String, Value>) -> Result<&'a mut Vec<Value>, String> {
        let uses_none = entry.get(self.kind.name()).is_some_and(|rules| *rules == json!([]));
        let is_delta = entry.get("autoload") == Some(&json!(false));
        let rules = list(entry, self.kind.name())?;
        if uses_none && !is_delta {
            rules.push(json!("!**"));
        }
        Ok(rules)
    }

    /// What the project's settings, in `project`, say of the resource. `home` is the folder of the user's settings.
    pub fn overridden(&self, values: &Map<String, Value>, project: &Path, home: &Path) -> Override {
        let (rules, names, empty_unloads) = match &self.source.found {
            Found::Package(_) => {
                let packages = values.get("packages").and_then(Value::as_array).into_iter().flatten();
                let entry = packages.into_iter().find(|entry| self.is_of(entry, project, home));
                let rules = entry.and_then(|entry| entry[self.kind.name()].as_array());
                let is_delta = entry.is_some_and(|entry| entry["autoload"] == false);
                (rules, vec![self.pattern(home)], !is_delta)
            }
            _ => {
                let rules = values.get(self.kind.name()).and_then(Value::as_array);
                (rules, self.names_in_project(project), false)
            }
        };
        let Some(rules) = rules else { return Override::Inherit };
        if rules.is_empty() && empty_unloads {
            return Override::Unload;
        }
        let mut said = rules.iter().filter_map(Value::as_str).filter_map(|rule| {
            let (sign, target) = signed(rule);
            names.iter().any(|name| name == target).then_some(match sign {
                Some('!' | '-') => Override::Unload,
                _ => Override::Load,
            })
        });
        said.next_back().unwrap_or(Override::Inherit)
    }

    /// Writes into the project's settings what it says of the resource. `inherited` is true for a resource that the
    /// user's settings bring, too.
    pub fn set_override(
        &self,
        values: &mut Map<String, Value>,
        over: Override,
        inherited: bool,
        (project, home): (&Path, &Path),
    ) -> Result<(), String> {
        if matches!(self.source.found, Found::Package(_)) {
            return self.set_package_override(values, over, (project, home));
        }
        let names = self.names_in_project(project);
        let path = text(&self.source.path);
        let pattern = if inherited { path } else { self.pattern(project) };
        let rules = list(values, self.kind.name())?;
        rules.retain(|rule| {
            let is_plain =
                rule.as_str().is_some_and(|rule| over == Override::Inherit && inherited && rule == pattern);
            !is_plain && !is_rule_of(rule, &|target| names.iter().any(|name| name == target))
        });
        if over != Override::Inherit {
            // The project names a file of the user to speak of it.
            if inherited && !rules.contains(&json!(pattern)) {
                rules.push(json!(pattern));
            }
            rules.push(rule(over == Override::Load, &pattern));
        }
        if rules.is_empty() {
            values.shift_remove(self.kind.name());
        }
        Ok(())
    }

    fn set_package_override(
        &self,
        values: &mut Map<String, Value>,
        over: Override,
        (project, home): (&Path, &Path),
    ) -> Result<(), String> {
        let pattern = self.pattern(home);
        let packages = list(values, "packages")?;
        let at = match packages.iter().position(|entry| self.is_of(entry, project, home)) {
            Some(at) => at,
            None if over == Override::Inherit => return Ok(()),
            None => {
                packages.push(json!({"source": self.source_for(project, home), "autoload": false}));
                packages.len() - 1
            }
        };
        let Some(entry) = packages.get_mut(at) else { return Ok(()) };
        let fields = as_object(entry)?;
        let rules = self.package_rules(fields)?;
        rules.retain(|rule| rule.as_str().is_none_or(|rule| signed(rule).1 != pattern));
        if over != Override::Inherit {
            rules.push(rule(over == Override::Load, &pattern));
        }
        if rules.is_empty() {
            fields.shift_remove(self.kind.name());
        }
        if !KINDS.iter().any(|kind| fields.contains_key(kind.name())) {
            match fields.get("autoload") == Some(&json!(false)) {
                true => drop(packages.remove(at)),
                false => *entry = fields.get("source").cloned().unwrap_or_default(),
            }
        }
        if packages.is_empty() {
            values.shift_remove("packages");
        }
        Ok(())
    }

    /// The paths by which rules of a project may call the resource.
    fn names_in_project(&self, project: &Path) -> Vec<String> {
        let path = &self.source.path;
        let mut names = vec![text(path), text(&relative(project, path))];
        names.extend(self.source.base.iter().map(|base| text(&relative(base, path))));
        names
    }

    /// True if an entry of the project's packages is the package of the resource.
    fn is_of(&self, entry: &Value, project: &Path, home: &Path) -> bool {
        let (Found::Package(own), Some(theirs)) = (&self.source.found, source_of(entry)) else {
            return false;
        };
        let from = if self.source.scope == Scope::Project { project } else { home };
        let place = |path: &str, base: &Path| tidy(&base.join(path));
        **own == *theirs || (is_local(own) && is_local(theirs) && place(own, from) == place(theirs, project))
    }

    /// The source of the user's package, as the project's settings name it.
    fn source_for(&self, project: &Path, home: &Path) -> String {
        match &self.source.found {
            Found::Package(source) if is_local(source) => {
                match relative(project, &tidy(&home.join(&**source))) {
                    path if path == PathBuf::new() => ".".to_owned(),
                    path => text(&path),
                }
            }
            Found::Package(source) => source.to_string(),
            _ => String::new(),
        }
    }
}

impl Override {
    /// The state that follows when the user switches, for a resource that is on or off without the project's word.
    pub fn next(self, is_on: bool) -> Self {
        match (self, is_on) {
            (Self::Inherit, true) | (Self::Load, false) => Self::Unload,
            (Self::Inherit, false) | (Self::Unload, true) => Self::Load,
            (Self::Load, true) | (Self::Unload, false) => Self::Inherit,
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn rule(is_on: bool, pattern: &str) -> Value {
    format!("{}{pattern}", if is_on { '+' } else { '-' }).into()
}

/// The sign of a rule, and what follows it.
fn signed(rule: &str) -> (Option<char>, &str) {
    match rule.strip_prefix(['!', '+', '-']) {
        Some(target) => (rule.chars().next(), target),
        None => (None, rule),
    }
}

/// True for a rule with a sign whose target `is_meant`. A path without a sign is no rule: it brings the file.
fn is_rule_of(rule: &Value, is_meant: &dyn Fn(&str) -> bool) -> bool {
    let (sign, target) = signed(rule.as_str().unwrap_or_default());
    sign.is_some() && is_meant(target)
}

/// The list of this name, which is made if there is none.
fn list<'a>(values: &'a mut Map<String, Value>, name: &str) -> Result<&'a mut Vec<Value>, String> {
    match values.entry(name).or_insert_with(|| json!([])) {
        Value::Array(list) => Ok(list),
        _ => Err(format!("{name} is not a list; nothing was changed")),
    }
}

/// An entry of packages as an object.
fn as_object(entry: &mut Value) -> Result<&mut Map<String, Value>, String> {
    if entry.is_string() {
        *entry = json!({"source": entry});
    }
    entry.as_object_mut().ok_or_else(|| "An entry of packages is neither a text nor an object".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::*;
    use crate::base::testing::TempDir;
    use crate::resources::package;

    /// The user's and the project's view of the resources, as names with their states.
    struct Scene {
        scratch: TempDir,
    }

    impl Scene {
        fn folders(&self) -> (PathBuf, PathBuf) {
            (self.scratch.path().join("agent"), self.scratch.path().join("p"))
        }

        fn resources(&self, with_project: bool) -> Vec<Resource> {
            let (agent, cwd) = self.folders();
            let (mut settings, _) = Settings::load(&agent);
            if with_project {
                settings.add_project(&cwd);
            }
            let places = Places {
                agent: &agent,
                home: None,
                cwd: &cwd,
                settings: &settings,
                is_trusted: with_project,
                packages: &[],
                named_packages: &[],
            };
            let packages = package::configured(&places).0;
            resources(&Places { packages: &packages, ..places })
        }

        fn on(&self, with_project: bool) -> Vec<String> {
            let on = self.resources(with_project).into_iter().filter(|resource| resource.is_on);
            on.map(|resource| resource.name()).collect()
        }

        fn change(
            &self,
            file: &str,
            change: impl FnOnce(&mut Map<String, Value>) -> Result<(), String>,
        ) -> Value {
            let path = self.scratch.path().join(file);
            super::super::settings::update(&path, change).unwrap();
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
        }

        fn find(&self, name: &str, with_project: bool) -> Resource {
            self.resources(with_project).into_iter().find(|resource| resource.name() == name).unwrap()
        }

        fn switch(&self, name: &str) -> Value {
            let resource = self.find(name, false);
            self.change("agent/settings.json", |values| {
                resource.set(values, &self.folders().0, !resource.is_on)
            })
        }

        /// Moves to the next state in the project.
        fn cycle(&self, name: &str) -> (Override, Value) {
            let (agent, cwd) = self.folders();
            let project = cwd.join(".pi");
            let resource = self.find(name, true);
            let global = self.resources(false).into_iter().find(|other| other.is(&resource));
            let mut next = Override::Inherit;
            let values = self.change("p/.pi/settings.json", |values| {
                next = resource
                    .overridden(values, &project, &agent)
                    .next(global.as_ref().is_none_or(|g| g.is_on));
                resource.set_override(values, next, global.is_some(), (&project, &agent))
            });
            (next, values)
        }
    }

    fn scene(packages: &Value) -> Scene {
        let scratch = TempDir::create();
        for name in ["a", "b"] {
            scratch.write(&format!("agent/npm/node_modules/x/prompts/{name}.md"), "");
        }
        scratch.write("agent/prompts/top.md", "");
        scratch.write("agent/skills/s/SKILL.md", "");
        scratch.write("p/.pi/prompts/own.md", "");
        scratch.write("agent/settings.json", json!({"packages": packages, "theme": "dark"}).to_string());
        Scene { scratch }
    }

    #[test]
    fn the_user_switches_with_rules() {
        let scene = scene(&json!(["npm:x"]));
        assert_eq!(scene.on(false), ["a.md", "b.md", "s", "top.md"]);
        let values = scene.switch("top.md");
        assert_eq!(values["prompts"], json!(["-prompts/top.md"]));
        let values = scene.switch("s");
        assert_eq!(values["skills"], json!(["-skills/s/SKILL.md"]));
        let values = scene.switch("a.md");
        assert_eq!(values["packages"], json!([{"source": "npm:x", "prompts": ["-prompts/a.md"]}]));
        assert_eq!(scene.on(false), ["b.md"]);
        let values = scene.switch("a.md");
        assert_eq!(values["packages"], json!([{"source": "npm:x", "prompts": ["+prompts/a.md"]}]));
        assert_eq!(scene.switch("top.md")["prompts"], json!(["+prompts/top.md"]));
        assert_eq!(scene.on(false), ["a.md", "b.md", "top.md"]);
        assert_eq!(scene.switch("a.md")["theme"], "dark");
    }

    #[test]
    fn one_file_of_an_entry_that_uses_none_is_switched_on_alone() {
        let scene = scene(&json!([{"source": "npm:x", "prompts": []}]));
        let values = scene.switch("a.md");
        assert_eq!(values["packages"][0]["prompts"], json!(["!**", "+prompts/a.md"]));
        assert_eq!(scene.on(false), ["a.md", "s", "top.md"]);
    }

    #[test]
    fn a_project_overrides_and_inherits() {
        let scene = scene(&json!(["npm:x"]));
        let top = scene.folders().0.join("prompts/top.md").display().to_string();
        let off = json!([top, format!("-{top}")]);
        assert_eq!(scene.cycle("top.md"), (Override::Unload, json!({"prompts": off})));
        assert!(!scene.on(true).contains(&"top.md".into()) && scene.on(false).contains(&"top.md".into()));
        let on = json!([top, format!("+{top}")]);
        assert_eq!(scene.cycle("top.md"), (Override::Load, json!({"prompts": on})));
        assert_eq!(scene.cycle("top.md"), (Override::Inherit, json!({})));

        let entry =
            |rule: &str| json!({"packages": [{"source": "npm:x", "autoload": false, "prompts": [rule]}]});
        assert_eq!(scene.cycle("b.md"), (Override::Unload, entry("-prompts/b.md")));
        assert!(!scene.on(true).contains(&"b.md".into()) && scene.on(true).contains(&"a.md".into()));
        assert_eq!(scene.cycle("b.md"), (Override::Load, entry("+prompts/b.md")));
        assert_eq!(scene.cycle("b.md"), (Override::Inherit, json!({})));

        // What only the project brings is on without a word of it.
        assert_eq!(scene.cycle("own.md"), (Override::Unload, json!({"prompts": ["-prompts/own.md"]})));
        assert!(!scene.on(true).contains(&"own.md".into()));
    }
}
