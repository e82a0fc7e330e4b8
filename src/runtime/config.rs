//! The configuration of a conversation, and [`configure`], which makes it.
//!
//! Files and the environment provide values ([`Inputs`], [`Resources`]); the command line or an embedding
//! program takes precedence ([`Overrides`]). A start, a reload, an ACP session and the SDK all use
//! [`configure`].

use super::command_hook::rule::HookRules;
use super::expand::Commands;
use super::limit::Limits;
use super::outcome::Wanted;
use super::output_dir::{Beside, Passing};
use super::overrides::{ModelOverrides, Overrides, ResourceOverrides, SandboxOverrides};
use super::permission::Policy;
use super::prompt::Source;
use super::selection::{active_tools, all_tools};
use super::service::Services;
use super::undo::{Journal, Watch};
use crate::agent::queue::QueueMode;
use crate::agent::tool::Tool;
use crate::auth::credential::Credentials;
use crate::base::env::Env;
use crate::models::Registry;
use crate::models::resolve::{self, Scoped};
use crate::resources::agent::{self, Agents};
use crate::resources::context_file::{self, ContextFile};
use crate::resources::dirs::Dirs;
use crate::resources::package::{self, Package};
use crate::resources::place::{self, Kind, Places};
use crate::resources::prompt::{self, UserPrompts};
use crate::resources::settings::Settings;
use crate::resources::trust::{Consent, Passed};
use crate::resources::{Diagnostic, skill, template};
use crate::session::Log;
use crate::tools::backend::{Backend, Over};
use crate::tools::local::Local;
use crate::tools::sandbox::Sandbox;
use crate::tools::sandbox::confined::Confined;
use crate::tools::{self, Changes, Forgotten, OutputDir, Workspace};
use crate::wire::faux;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Receives warnings about configuration files.
pub type Warn<'a> = &'a mut dyn FnMut(&dyn Display);

/// The configuration of a conversation. A run keeps the configuration that it started with.
#[derive(Clone)]
pub struct Config {
    pub services: Services,
    pub settings: Settings,
    pub workspace: Arc<Workspace>,
    /// All tools of the program that can be made active.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What the user agreed to in the project; `None` if what it brings is not used.
    pub consent: Option<Arc<Consent>>,
    pub prompt: Arc<Source>,
    /// Context files, such as `AGENTS.md`, whose text is in the system prompt.
    pub context_files: Vec<PathBuf>,
    pub themes: Themes,
    /// Skills and prompt templates, which the user calls with a slash.
    pub commands: Commands,
    /// The models that the user can cycle through, in the user's order; all models if empty.
    pub scope: Vec<Scoped>,
    pub limits: Limits,
    /// The JSON value that each run must end with, if any.
    pub wanted: Option<Arc<Wanted>>,
    /// Commands that run at events.
    pub hooks: Arc<HookRules>,
    /// Definitions of agents, for helpers.
    pub agents: Agents,
    /// The overrides that the configuration was made with.
    pub over: Overrides,
    /// The folder that paths of the overrides are relative to.
    pub started_in: PathBuf,
    pub agent_dir: PathBuf,
}

impl Config {
    /// Returns the modes of the steering and the follow-up queue from the settings.
    pub(super) fn queue_modes(&self) -> (QueueMode, QueueMode) {
        let mode = |name: &str| QueueMode::parse(name).unwrap_or_default();
        (mode(self.settings.steering_mode()), mode(self.settings.follow_up_mode()))
    }

    /// The flags that confine another pi in `folder`, this one's or a copy, as this one is confined. The error says why
    /// none can be started: it would use a project that has changed since the user agreed to it, or go without its hooks.
    pub fn confinement(&self, folder: &Path, notes: &mut Vec<String>) -> Result<Vec<OsString>, String> {
        let SandboxOverrides { mode, network, writable } = &self.over.sandbox;
        let mut words: Vec<OsString> = Vec::new();
        if let Some(mode) = mode {
            words.extend(["--sandbox".into(), mode.into()]);
        }
        for folder in writable {
            words.extend(["--sandbox-write".into(), self.started_in.join(folder).into_os_string()]);
        }
        if *network {
            words.push("--sandbox-net".into());
        }
        let passed = self.consent.as_ref().map(|consent| consent.pass_on(folder, notes)).transpose()?;
        match passed {
            Some(Passed::All) => words.push("--approve".into()),
            Some(Passed::State(state)) => words.extend(["--approve-state".into(), state.into()]),
            Some(Passed::Nothing) | None => words.push("--no-approve".into()),
        }
        Ok(words)
    }
}

/// The themes that the user can choose.
#[derive(Clone, Debug, Default)]
pub struct Themes {
    /// Theme files. If two files have a theme of one name, the earlier file wins.
    pub files: Vec<PathBuf>,
    /// The theme from the command line, which overrides the setting.
    pub wanted: Option<String>,
}

/// Folders, settings, models and keys, from which a configuration is made.
pub struct Inputs {
    pub dirs: Dirs,
    pub cwd: PathBuf,
    /// The folder that paths of the command line are relative to.
    pub started_in: PathBuf,
    pub settings: Settings,
    /// True if resources of the project in `cwd` may be used.
    pub is_trusted: bool,
    /// What the user agreed to in the project.
    pub consent: Option<Arc<Consent>>,
    pub services: Services,
    /// True if parts of the program will add tools: names that are not known yet may be theirs.
    pub adds_tools: bool,
    /// Packages of the settings.
    packages: Vec<Package>,
    /// Packages, folders and files of `--extension`.
    pub named_packages: Vec<Package>,
}

impl Inputs {
    /// Loads models and keys. The project is untrusted until [`Inputs::trust`] is called.
    pub fn load(dirs: Dirs, cwd: PathBuf, started_in: PathBuf, settings: Settings, warn: Warn<'_>) -> Self {
        let (mut registry, warnings) = Registry::load(dirs.agent());
        warnings.iter().for_each(|text| warn(text));
        registry.add(faux::models());
        let credentials = Credentials::load(dirs.agent(), Env::process());
        registry.set_allowed(credentials.allowed_models());
        if let Some(text) = credentials.warning() {
            warn(&text);
        }
        let services = Services::new(registry, credentials, &settings, dirs.agent());
        let mut inputs = Self {
            dirs,
            cwd,
            started_in,
            settings,
            is_trusted: false,
            consent: None,
            services,
            adds_tools: false,
            packages: Vec::new(),
            named_packages: Vec::new(),
        };
        inputs.find_packages();
        inputs
    }

    /// Reads the packages of the settings. Gives what is wrong with entries.
    fn find_packages(&mut self) -> Vec<String> {
        let (packages, problems) = package::configured(&self.places());
        self.packages = packages;
        problems
    }

    /// Why packages of the settings are not used.
    pub fn package_faults(&self) -> impl Iterator<Item = String> {
        self.packages.iter().filter_map(Package::fault)
    }

    /// Reads the settings again: the user's, and the project's if it is trusted.
    pub fn read_settings(&mut self) {
        self.settings = Settings::load(self.dirs.agent()).0;
        if self.is_trusted {
            self.settings.add_project(&self.cwd);
        }
        self.find_packages();
    }

    /// Changes the working folder. Its project is untrusted until [`Inputs::trust`] is called.
    pub fn enter(&mut self, folder: PathBuf) {
        self.cwd = folder;
        self.is_trusted = false;
        self.consent = None;
        self.settings.remove_project();
    }

    /// Applies the settings of the project in `cwd`. `consent` is what the user agreed to, or `None` for an
    /// untrusted project.
    pub fn trust(&mut self, consent: Option<Consent>, warn: Warn<'_>) {
        self.is_trusted = consent.is_some();
        if let Some(consent) = &consent {
            let diagnostics = self.settings.add_project_as(&self.cwd, &consent.snapshot.settings);
            diagnostics.iter().for_each(|diagnostic| warn(diagnostic));
        }
        self.consent = consent.map(Arc::new);
        self.find_packages().iter().for_each(|problem| warn(problem));
        self.services.follow(&self.settings);
    }

    /// Returns the models of `--models` or the `enabledModels` setting; empty if every model is meant.
    pub fn scope(&self, over: &ModelOverrides, warn: Warn<'_>) -> Vec<Scoped> {
        let patterns = over.models.clone().or_else(|| self.settings.enabled_models()).unwrap_or_default();
        if patterns.is_empty() {
            return Vec::new();
        }
        let usable = |provider: &str| self.services.usable(provider);
        let (scope, warnings) = resolve::scope(&self.services.registry, &usable, &patterns);
        warnings.iter().for_each(|text| warn(text));
        scope
    }

    /// Loads skills and prompt templates, with diagnostics of faulty files.
    pub fn commands(&self, over: &ResourceOverrides) -> (Commands, Vec<Diagnostic>) {
        let places = self.places();
        let (skills, mut diagnostics) = skill::load(&places, over.no_skills, &self.named(&over.skills));
        let (templates, of_templates) =
            template::load(&places, over.no_prompt_templates, &self.named(&over.prompt_templates));
        diagnostics.extend(of_templates);
        (Commands { templates, skills }, diagnostics)
    }

    /// Loads the definitions of agents, with diagnostics of faulty files.
    pub fn agents(&self) -> (Agents, Vec<Diagnostic>) {
        agent::load(&self.places())
    }

    /// Loads skills, templates, agents, themes, context files and prompts.
    pub fn resources(&self, over: &ResourceOverrides, warn: Warn<'_>) -> Resources {
        let (commands, mut diagnostics) = self.commands(over);
        let (agents, of_agents) = self.agents();
        diagnostics.extend(of_agents);
        let (themes, of_themes) = self.themes(over);
        let (prompts, of_prompts) = prompt::user_prompts(
            &self.dirs,
            self.is_trusted.then_some(&self.cwd),
            &self.started_in,
            over.system_prompt.as_deref(),
            &over.append_system_prompt,
        );
        let (context_files, of_context) = match over.no_context_files {
            true => Default::default(),
            false => context_file::load(self.dirs.agent(), &self.cwd, self.dirs.home()),
        };
        self.package_faults().for_each(|fault| warn(&fault));
        diagnostics.iter().for_each(|diagnostic| warn(diagnostic));
        of_themes.iter().for_each(|text| warn(text));
        diagnostics = of_prompts;
        diagnostics.extend(of_context);
        diagnostics.iter().for_each(|diagnostic| warn(diagnostic));
        Resources { commands, agents, themes, context_files, prompts }
    }

    fn themes(&self, over: &ResourceOverrides) -> (Themes, Vec<String>) {
        let (mut files, mut missing) = (Vec::new(), Vec::new());
        let places = self.places();
        for path in self.named(&over.themes) {
            match places.named(Kind::Themes, &path) {
                Some(found) => files.extend(found),
                None => missing.push(format!("Theme path does not exist: {}", path.display())),
            }
        }
        files.extend(places.files(Kind::Themes, over.no_themes));
        let files = files.into_iter().map(|source| source.path).collect();
        (Themes { files, wanted: over.use_theme.clone() }, missing)
    }

    pub fn places(&self) -> Places<'_> {
        Places {
            agent: self.dirs.agent(),
            home: self.dirs.home(),
            cwd: &self.cwd,
            settings: &self.settings,
            is_trusted: self.is_trusted,
            packages: &self.packages,
            named_packages: &self.named_packages,
        }
    }

    /// Makes paths of the command line absolute.
    fn named(&self, paths: &[String]) -> Vec<PathBuf> {
        let paths = paths.iter().map(|path| path.trim());
        paths.map(|path| place::tidy(&self.dirs.resolve(path, &self.started_in))).collect()
    }
}

/// Resources of a conversation that are read from files.
#[derive(Default)]
pub struct Resources {
    pub commands: Commands,
    pub agents: Agents,
    pub themes: Themes,
    pub context_files: Vec<ContextFile>,
    pub prompts: UserPrompts,
}

/// Where the tools of a conversation work and where their outputs are kept. A reload does not change it.
pub struct Place {
    backend: Arc<dyn Backend>,
    outputs: Arc<dyn OutputDir>,
    changes: Arc<dyn Changes>,
}

impl Place {
    /// Makes the place for the conversation of `log`. `over` wraps the backend, for instance to read files
    /// from an editor before the disk. `watch` tells what commands change.
    pub fn new(
        log: &Log,
        sandbox: Option<Arc<Sandbox>>,
        over: Option<&Over>,
        watch: Option<Arc<Watch>>,
    ) -> Self {
        let disk: Arc<dyn Backend> = match sandbox {
            Some(sandbox) => Arc::new(Confined { sandbox }),
            None => Arc::new(Local),
        };
        let backend = match over {
            Some(over) => over(disk),
            None => disk,
        };
        match log.path() {
            Some(path) => {
                let changes = Arc::new(Journal::watching(path, watch));
                Self { backend, outputs: Arc::new(Beside::new(path)), changes }
            }
            None => Self { backend, outputs: Arc::new(Passing::default()), changes: Arc::new(Forgotten) },
        }
    }

    /// Returns the place of an existing workspace.
    pub fn of(workspace: &Workspace) -> Self {
        Self {
            backend: workspace.backend.clone(),
            outputs: workspace.outputs.clone(),
            changes: workspace.changes.clone(),
        }
    }
}

/// Makes a configuration, and the list of tools that are active at first.
pub fn configure(
    inputs: Inputs,
    resources: Resources,
    over: &Overrides,
    scope: Vec<Scoped>,
    place: Place,
    warn: Warn<'_>,
) -> (Config, Vec<Arc<dyn Tool>>) {
    let Resources { commands, agents, themes, context_files, prompts } = resources;
    let workspace = Arc::new(Workspace {
        cwd: inputs.cwd.clone(),
        home: inputs.dirs.home().map(ToOwned::to_owned),
        backend: place.backend,
        options: tool_options(&inputs),
        env: Mutex::default(),
        outputs: place.outputs,
        changes: place.changes,
        vault: inputs.services.vault().clone(),
    });
    let (hooks, problems) = HookRules::parse(inputs.settings.both("hooks"));
    problems.iter().for_each(|problem| warn(problem));
    let policy = Policy::new(None, &[], &inputs.settings, &inputs.cwd);
    policy.faults.iter().for_each(|fault| warn(fault));
    let mut unspoken = |_: &dyn Display| {};
    let warn: Warn<'_> = if inputs.adds_tools { &mut unspoken } else { warn };
    let active = active_tools(&over.tools, &inputs.settings, &workspace, warn);
    let demand = over.wanted.as_ref().map(|wanted| wanted.demand());
    let addendum: Vec<String> = prompts.addendum.into_iter().chain(demand).collect();
    let config = Config {
        tools: all_tools(&over.tools, &active, &workspace),
        consent: inputs.consent,
        workspace,
        context_files: context_files.iter().map(|file| file.path.clone()).collect(),
        prompt: Arc::new(Source {
            texts: UserPrompts {
                custom: prompts.custom,
                addendum: (!addendum.is_empty()).then(|| addendum.join("\n\n")),
            },
            context_files,
            skills: commands.skills.clone(),
            cwd: inputs.cwd,
        }),
        commands,
        themes,
        scope,
        limits: over.limits.clone().or(&inputs.settings),
        wanted: over.wanted.clone(),
        hooks: Arc::new(hooks),
        agents,
        over: over.clone(),
        started_in: inputs.started_in,
        agent_dir: inputs.dirs.agent().to_owned(),
        services: inputs.services,
        settings: inputs.settings,
    };
    (config, active)
}

fn tool_options(inputs: &Inputs) -> tools::Options {
    let settings = &inputs.settings;
    let shell_path = settings.text("shellPath").map(|path| inputs.dirs.resolve(path, &inputs.cwd));
    tools::Options {
        shell_path: shell_path.map(|path| path.to_string_lossy().into_owned()),
        shell_command_prefix: settings.text("shellCommandPrefix").map(str::to_owned),
        bash_timeout_seconds: settings.number("bash.timeoutSeconds"),
        bash_keep_background: settings.flag("bash.keepBackground"),
        output_cap_bytes: settings.count("bash.outputCapBytes"),
        resize_images: settings.flag("images.autoResize"),
    }
}
