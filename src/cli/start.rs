//! From the command line to a session that can be asked.

use super::ask;
use super::flags::{Args, Mode};
use super::migrate;
use super::model;
use super::open;
use super::sandbox;
use super::stranger;
use super::trust::{self, Agreed};
use crate::agent::tool::Tool;
use crate::auth::credential::Credentials;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::model::{Model, ThinkingLevel, shown_url};
use crate::llm::options::CacheRetention;
use crate::llm::secret::Secret;
use crate::mode::interactive::question;
use crate::mode::report::{self, warning as warn};
use crate::models::Registry;
use crate::models::local;
use crate::resources::context_file;
use crate::resources::dirs::Dirs;
use crate::resources::place::{self, Kind, Places};
use crate::resources::prompt::{self, UserPrompts};
use crate::resources::settings::Settings;
use crate::resources::{Diagnostic, skill, template};
use crate::runtime::approval::{Ask, Rules};
use crate::runtime::expand::Commands;
use crate::runtime::limit::Limits;
use crate::runtime::outcome::Wanted;
use crate::runtime::output_dir::{Beside, Passing};
use crate::runtime::prompt::Source;
use crate::runtime::service::Services;
use crate::runtime::session::{Ground, Parts, Prompt, Session, Themes};
use crate::runtime::succession::{Folder, Succession};
use crate::runtime::undo::Journal;
use crate::session::context::SessionContext;
use crate::session::{Log, SessionError};
use crate::tools::backend::{Backend, Over};
use crate::tools::local::Local;
use crate::tools::sandbox::Sandbox;
use crate::tools::sandbox::confined::Confined;
use crate::tools::{self, Changes, Forgotten, OutputDir, Workspace};
use crate::wire::faux;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

/// How long servers on this machine may take to answer, all of them together.
const LOCAL_LIMIT: Duration = Duration::from_millis(200);

/// The tools of a new session.
const DEFAULT_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

/// What is known before a session is opened.
pub struct World {
    pub cwd: PathBuf,
    /// Where pi was started: paths of the command line begin there.
    pub started_in: PathBuf,
    pub dirs: Dirs,
    pub settings: Settings,
    /// Whether what the project in `cwd` brings may be used.
    pub is_trusted: bool,
    pub agreed: Agreed,
    may_ask: bool,
    /// pi is to be used on the terminal: questions are drawn, and there is somebody to choose a model when
    /// none can be used.
    pub is_interactive: bool,
    /// Who else has files: an editor.
    pub files: Option<Over>,
    /// A prompt that got no answer, to be written on.
    pub draft: Option<String>,
    pub services: Services,
}

impl World {
    /// Reads settings, models and keys. What is wrong with them is said, and the defaults are used. The
    /// user may be asked whether the project is trusted.
    pub fn load(args: &Args) -> Result<Self, String> {
        let may_ask = matches!(args.mode, None | Some(Mode::Text)) && args.list_models.is_none();
        Self::load_with(args, may_ask, Agreed::default())
    }

    /// Loads as [`World::load`] does, without asking anything.
    pub fn load_unasked(args: &Args) -> Result<Self, String> {
        Self::load_with(args, false, Agreed::default())
    }

    /// Loads again without asking anything. What the user agreed to while the program runs still counts.
    fn load_again(args: &Args, agreed: &Agreed) -> Result<Self, String> {
        Self::load_with(args, false, agreed.clone())
    }

    fn load_with(args: &Args, may_ask: bool, agreed: Agreed) -> Result<Self, String> {
        if let Some(dir) = &args.cwd {
            std::env::set_current_dir(dir).map_err(|error| format!("Cannot work in {dir}: {error}"))?;
        }
        let cwd = std::env::current_dir().map_err(|error| {
            format!("The current folder cannot be used: {error}. Change to another one, or use --cwd.")
        })?;
        let dirs = Dirs::find().map_err(|error| error.to_string())?;
        migrate::run(dirs.agent());
        let (settings, diagnostics) = Settings::load(dirs.agent());
        diagnostics.iter().for_each(warn);
        let (mut registry, warnings) = Registry::load(dirs.agent());
        warnings.iter().for_each(warn);
        registry.add(faux::models());
        let credentials = Credentials::load(dirs.agent(), Env::process());
        registry.set_allowed(credentials.allowed_models());
        if let Some(text) = credentials.warning() {
            warn(text);
        }
        let mut services = Services::new(registry, credentials, &settings);
        services.local_servers = stranger::allowed(dirs.agent());
        services.cache = match std::env::var("PI_CACHE_RETENTION").as_deref() {
            Ok("long") => CacheRetention::Long,
            Ok("none") => CacheRetention::None,
            _ => CacheRetention::Short,
        };
        let mut world = Self {
            started_in: cwd.clone(),
            cwd,
            dirs,
            settings,
            is_trusted: false,
            agreed,
            may_ask,
            files: None,
            is_interactive: ask::is_drawn(args),
            draft: None,
            services,
        };
        world.enter(args)?;
        Ok(world)
    }

    /// What questions are drawn with; none where they are not drawn.
    pub fn ground(&self) -> Option<question::Context<'_>> {
        (self.may_ask && self.is_interactive).then_some(question::Context {
            dirs: &self.dirs,
            settings: &self.settings,
            cwd: &self.cwd,
        })
    }

    /// Whether somebody can be asked on the terminal.
    pub fn may_ask(&self) -> bool {
        self.may_ask
    }

    /// Takes up what the project in `cwd` brings, if it is trusted.
    pub fn enter(&mut self, args: &Args) -> Result<(), String> {
        self.settings.remove_project();
        let decided = trust::decide(args, self)?;
        self.is_trusted = decided.is_some();
        if let Some(look) = decided {
            self.settings.add_project_as(&self.cwd, &look.settings).iter().for_each(warn);
        }
        self.services.follow(&self.settings);
        Ok(())
    }

    /// Skills and prompt templates, and what is wrong with them.
    pub fn find_commands(&self, args: &Args) -> (Commands, Vec<Diagnostic>) {
        let places = self.places();
        let (skills, mut diagnostics) = skill::load(&places, args.no_skills, &self.named(&args.skills));
        let (templates, of_templates) =
            template::load(&places, args.no_prompt_templates, &self.named(&args.prompt_templates));
        diagnostics.extend(of_templates);
        (Commands { templates, skills }, diagnostics)
    }

    /// Theme files, the one that wins first.
    fn find_themes(&self, args: &Args) -> Themes {
        let places = self.places();
        let named = self.named(&args.themes).into_iter();
        let mut files: Vec<PathBuf> = named
            .flat_map(|path| match places.named(Kind::Themes, &path) {
                Some(found) => found,
                None => {
                    warn(format_args!("Theme path does not exist: {}", path.display()));
                    Vec::new()
                }
            })
            .map(|source| source.path)
            .collect();
        if !args.no_themes {
            let found = places.files(Kind::Themes).into_iter();
            files.extend(found.map(|source| source.path));
        }
        Themes { files, wanted: args.use_theme.clone() }
    }

    fn places(&self) -> Places<'_> {
        Places {
            agent: self.dirs.agent(),
            home: self.dirs.home(),
            cwd: &self.cwd,
            settings: &self.settings,
            is_trusted: self.is_trusted,
        }
    }

    /// Paths of the command line.
    fn named(&self, paths: &[String]) -> Vec<PathBuf> {
        let paths = paths.iter().map(|path| path.trim());
        paths.map(|path| place::tidy(&self.dirs.resolve(path, &self.started_in))).collect()
    }

    /// Asks the servers of this machine for their models, and adds them. `is_asked_for`: the user named them,
    /// so those that other users run count too.
    pub fn find_local(&mut self, is_asked_for: bool) -> local::Found {
        if is_asked_for {
            self.services.local_servers = local::Allowed::All;
        }
        let services = &self.services;
        let found = local::discover(services.credentials.env(), LOCAL_LIMIT, &services.local_servers);
        found.refusals.iter().for_each(warn);
        self.services.registry.add(found.offers.iter().map(|offer| Model::clone(&offer.model)));
        found
    }
}

/// The session of `log`, with the model, tools and prompt that the command line asks for.
pub fn session(args: &Args, world: World, log: Log, cancel: &CancelToken) -> Result<Session, String> {
    let dir = args.session_dir.as_deref();
    let store = open::store(&world.dirs, &world.settings, dir, &world.cwd);
    let started_in = world.started_in.clone();
    let agreed = world.agreed.clone();
    let first = parts(args, world, log, cancel)?;
    let (is_passing, token) = (args.no_session, cancel.clone());
    // What was said for the first session only.
    let args = Args { cwd: None, name: None, ..args.clone() };
    let (same_args, same_start, same_agreed) = (args.clone(), started_in.clone(), agreed.clone());
    let renew = move |old: &Ground| {
        let mut world = World::load_again(&same_args, &same_agreed)?;
        world.started_in.clone_from(&same_start);
        Ok(renewed(&same_args, world, old))
    };
    let make = move |log: Log, folder: Folder| {
        let mut world = World::load_again(&args, &agreed)?;
        world.started_in.clone_from(&started_in);
        open::follow(&args, &mut world, &log, folder)?;
        parts(&args, world, log, &token)
    };
    let kept = (!is_passing).then_some(store);
    let succession = Succession::new(kept, make, renew);
    Ok(Session::new(first, Some(succession), cancel))
}

/// Opens the session in `log`, in the folder that `world` was loaded for. It stays with this conversation.
pub fn session_of(args: &Args, world: World, log: Log, cancel: &CancelToken) -> Result<Session, String> {
    Ok(Session::new(parts(args, world, log, cancel)?, None, cancel))
}

/// Says why the model of a new session cannot be asked, where no key or no model is the reason.
pub fn check_key(args: &Args, mut world: World, cancel: &CancelToken) -> Result<(), String> {
    let model = model::choose(args, &mut world, &SessionContext::default())?.model;
    give_key(args, &mut world, &model)?;
    world.services.check(&model, cancel).map_err(|error| error.to_string())
}

/// Uses the key of the command line for requests to `model`.
fn give_key(args: &Args, world: &mut World, model: &Model) -> Result<(), String> {
    let Some(key) = &args.api_key else {
        return Ok(());
    };
    if args.model.is_none() && args.models.is_none() {
        return Err(
            "--api-key requires a model to be specified via --model, --provider/--model, or --models".into(),
        );
    }
    world.services.credentials.give(&model.provider, Secret::new(key.as_str()));
    Ok(())
}

/// What the conversation in `log` needs.
fn parts(args: &Args, mut world: World, mut log: Log, cancel: &CancelToken) -> Result<Parts, String> {
    log.hide(world.services.vault().clone());
    let context = log.context();
    for notice in log.take_notices() {
        warn(notice);
    }
    let choice = model::choose(args, &mut world, &context)?;
    let thinking = model::thinking(args, &world, &context, &choice);
    let mut model = choice.model;
    give_key(args, &mut world, &model)?;
    if let Some(url) = &args.base_url {
        let url = url.trim_end_matches('/').to_owned();
        world.services.base_url = Some((model.provider.clone(), url.clone()));
        model = Arc::new(Model { base_url: url, ..Model::clone(&model) });
    }
    if let Some(text) = model::ignored_base_url(&model, world.services.credentials.env()) {
        static TOLD: Once = Once::new();
        TOLD.call_once(|| report::note(text));
    }
    if args.verbose {
        let configured = world.services.registry.configured(&model.provider, Some(&model.id));
        let key = world.services.credentials.resolve(&model, &configured, cancel);
        let key = key.map_or_else(|error| error.to_string(), |resolved| resolved.source.to_string());
        report::note(format_args!(
            "Model: {}/{} at {}; key: {key}",
            model.provider,
            model.id,
            shown_url(&model.base_url)
        ));
    }
    record(args, &mut log, &context, &model, thinking).map_err(|error| error.to_string())?;
    let sandbox = sandbox::choose(args, &world.settings, &world.dirs, &world.cwd)?;
    let workspace = workspace(&world, &log, sandbox);
    let tools = choose_tools(args, &world.settings, &workspace);
    let (commands, diagnostics) = world.find_commands(args);
    diagnostics.iter().for_each(warn);
    let wanted = wanted(args, &world.started_in)?;
    let themes = world.find_themes(args);
    let (prompt, context_files) = prompt_source(args, &world, &commands, wanted.as_deref());
    Ok(Parts {
        log,
        model,
        thinking,
        marks: context.marks,
        messages: context.into_messages(),
        ground: Ground {
            limits: limits(args, &world.settings),
            approval: approval(args),
            wanted,
            tools: all_tools(args, &tools, &workspace),
            services: world.services,
            settings: world.settings,
            workspace,
            prompt,
            context_files,
            themes,
            commands,
            scope: choice.scope,
        },
        tools,
    })
}

/// The ground of a conversation that goes on, from what its files say now. What belongs to the run of the
/// program stays: a key and an address of the command line, models that were found, the sandbox.
fn renewed(args: &Args, mut world: World, old: &Ground) -> Ground {
    let services = &mut world.services;
    services.credentials.give_as(&old.services.credentials);
    services.registry.add_found_by(&old.services.registry);
    services.base_url.clone_from(&old.services.base_url);
    services.local_servers.clone_from(&old.services.local_servers);
    let workspace = Arc::new(Workspace {
        cwd: world.cwd.clone(),
        home: old.workspace.home.clone(),
        backend: old.workspace.backend.clone(),
        options: options(&world),
        env: Mutex::default(),
        outputs: old.workspace.outputs.clone(),
        changes: old.workspace.changes.clone(),
        vault: world.services.vault().clone(),
    });
    let again = |tool: &Arc<dyn Tool>| {
        let made = tools::builtin(&tool.info().spec.name, &workspace);
        made.unwrap_or_else(|| tool.clone())
    };
    let tools = old.tools.iter().map(again).collect();
    let (commands, diagnostics) = world.find_commands(args);
    diagnostics.iter().for_each(warn);
    let (prompt, context_files) = prompt_source(args, &world, &commands, old.wanted.as_deref());
    let themes = world.find_themes(args);
    let scope = model::listed(args, &world);
    Ground {
        limits: limits(args, &world.settings),
        approval: approval(args),
        wanted: old.wanted.clone(),
        tools,
        services: world.services,
        settings: world.settings,
        workspace,
        prompt,
        context_files,
        themes,
        commands,
        scope,
    }
}

/// Flags go before settings.
fn limits(args: &Args, settings: &Settings) -> Limits {
    let seconds = args.timeout.or_else(|| settings.limit_amount("seconds"));
    Limits {
        turns: args.max_turns.or_else(|| settings.limit("turns")),
        cost: args.max_cost.or_else(|| settings.limit_amount("cost")),
        tokens: args.max_tokens.or_else(|| settings.limit("tokens")),
        session_cost: settings.limit_amount("sessionCost"),
        session_tokens: settings.limit("sessionTokens"),
        time: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        loops: settings.limit_loops(),
    }
}

/// What `--output-schema` asks for.
fn wanted(args: &Args, from: &Path) -> Result<Option<Arc<Wanted>>, String> {
    let Some(file) = &args.output_schema else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(from.join(file))
        .map_err(|error| format!("Cannot read the output schema {file}: {error}"))?;
    let wanted =
        Wanted::parse(&text).map_err(|fault| format!("The output schema {file} cannot be used: {fault}"))?;
    Ok(Some(Arc::new(wanted)))
}

fn approval(args: &Args) -> Rules {
    Rules {
        ask: args.ask_tools.as_deref().map(Ask::parse).unwrap_or_default(),
        allowed: args.allow_tools.clone().unwrap_or_default(),
    }
}

/// What a session's file says before the first message.
fn record(
    args: &Args,
    log: &mut Log,
    context: &SessionContext,
    model: &Model,
    thinking: ThinkingLevel,
) -> Result<(), SessionError> {
    if let Some(name) = &args.name {
        log.append_session_info(name)?;
    }
    let is_new = context.messages.is_empty();
    if is_new && !model.is_none() {
        log.append_model_change(&model.provider, &model.id)?;
    }
    if is_new || context.thinking_level.as_deref() != Some(thinking.name()) {
        log.append_thinking_level(thinking.name())?;
    }
    Ok(())
}

fn workspace(world: &World, log: &Log, sandbox: Option<Arc<Sandbox>>) -> Arc<Workspace> {
    let outputs: Arc<dyn OutputDir> = match log.path() {
        Some(path) => Arc::new(Beside::new(path)),
        None => Arc::new(Passing::default()),
    };
    let changes: Arc<dyn Changes> = match log.path() {
        Some(path) => Arc::new(Journal::new(path)),
        None => Arc::new(Forgotten),
    };
    let disk: Arc<dyn Backend> = match sandbox {
        Some(sandbox) => Arc::new(Confined { sandbox }),
        None => Arc::new(Local),
    };
    Arc::new(Workspace {
        cwd: world.cwd.clone(),
        home: world.dirs.home().map(ToOwned::to_owned),
        backend: match &world.files {
            Some(over) => over(disk),
            None => disk,
        },
        options: options(world),
        env: Mutex::default(),
        outputs,
        changes,
        vault: world.services.vault().clone(),
    })
}

fn options(world: &World) -> tools::Options {
    let settings = &world.settings;
    tools::Options {
        shell_path: settings
            .shell_path()
            .map(|path| world.dirs.resolve(path, &world.cwd).to_string_lossy().into_owned()),
        shell_command_prefix: settings.shell_command_prefix().map(str::to_owned),
        bash_timeout_seconds: settings.bash_timeout_seconds(),
        bash_keep_background: settings.bash_keep_background(),
        output_cap_bytes: settings.bash_output_cap_bytes(),
        resize_images: settings.resize_images(),
    }
}

fn choose_tools(args: &Args, settings: &Settings, workspace: &Arc<Workspace>) -> Vec<Arc<dyn Tool>> {
    let names = match &args.tools {
        Some(names) => names.clone(),
        None if args.no_tools || args.no_builtin_tools => Vec::new(),
        // Those that change something are left out below.
        None if args.read_only => tools::names().map(str::to_owned).collect(),
        None => settings.default_tools().unwrap_or_else(|| DEFAULT_TOOLS.map(str::to_owned).to_vec()),
    };
    let excluded = args.exclude_tools.as_deref().unwrap_or_default();
    let known = tools::names().collect::<Vec<_>>().join(", ");
    for name in excluded.iter().filter(|name| tools::builtin(name, workspace).is_none()) {
        warn(format_args!("There is no tool \"{name}\" to exclude. Known: {known}"));
    }
    let mut chosen = Vec::new();
    for name in names.iter().filter(|name| !excluded.contains(name)) {
        match tools::builtin(name, workspace) {
            Some(tool) if args.read_only && !tool.info().reads_only => {}
            Some(tool) => chosen.push(tool),
            None => warn(format_args!("There is no tool \"{name}\". Known: {known}")),
        }
    }
    chosen
}

/// The active tools, and those that can be made active.
fn all_tools(args: &Args, active: &[Arc<dyn Tool>], workspace: &Arc<Workspace>) -> Vec<Arc<dyn Tool>> {
    let excluded = args.exclude_tools.as_deref().unwrap_or_default();
    let is_active = |name: &str| active.iter().any(|tool| tool.info().spec.name == name);
    let others = tools::names()
        .filter(|_| args.tools.is_none() && !args.no_tools && !args.no_builtin_tools)
        .filter(|name| !is_active(name) && !excluded.iter().any(|excluded| excluded == name))
        .filter_map(|name| tools::builtin(name, workspace))
        .filter(|tool| !args.read_only || tool.info().reads_only);
    active.iter().cloned().chain(others).collect()
}

/// Reads what the prompt is made from, once.
fn prompt_source(
    args: &Args,
    world: &World,
    commands: &Commands,
    wanted: Option<&Wanted>,
) -> (Prompt, Vec<PathBuf>) {
    let custom = args.system_prompt.as_deref();
    let (texts, diagnostics) = prompt::user_prompts(
        &world.dirs,
        world.is_trusted.then_some(&world.cwd),
        &world.started_in,
        custom,
        &args.append_system_prompt,
    );
    diagnostics.iter().for_each(warn);
    let context_files = if args.no_context_files {
        Vec::new()
    } else {
        let (files, diagnostics) = context_file::load(world.dirs.agent(), &world.cwd, world.dirs.home());
        diagnostics.iter().for_each(warn);
        files
    };
    let addendum: Vec<String> = texts.addendum.into_iter().chain(wanted.map(Wanted::demand)).collect();
    let context_paths = context_files.iter().map(|file| file.path.clone()).collect();
    let source = Source {
        texts: UserPrompts {
            custom: texts.custom,
            addendum: (!addendum.is_empty()).then(|| addendum.join("\n\n")),
        },
        context_files,
        skills: commands.skills.clone(),
        cwd: world.cwd.clone(),
    };
    (source.into_prompt(), context_paths)
}
