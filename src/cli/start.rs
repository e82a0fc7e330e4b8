//! Starts a session from the command line.

use super::ask;
use super::command::Refused;
use super::flags::{Args, Mode, Unknown};
use super::migrate;
use super::model;
use super::open;
use super::package::named::named;
use super::sandbox;
use super::trust::{self, Agreed};
use crate::base::cancel::CancelToken;
use crate::base::order::Order;
use crate::extension::{About, Extensions, find};
use crate::helper;
use crate::llm::model::{Model, ThinkingLevel, shown_url};
use crate::llm::secret::Secret;
use crate::mode::REFERENCE_VERSION;
use crate::mode::interactive::question;
use crate::mode::report;
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::runtime::checkpoint;
use crate::runtime::command_hook;
use crate::runtime::config::{Config, Inputs, Place, configure};
use crate::runtime::control::{Control, Parts};
use crate::runtime::job::{self, kept};
use crate::runtime::outcome::Wanted;
use crate::runtime::overrides::Overrides;
use crate::runtime::plan;
use crate::runtime::recorded_tools::RecordedTools;
use crate::runtime::selection::Selection;
use crate::runtime::selection::tools_named;
use crate::runtime::service::Services;
use crate::runtime::session::Session;
use crate::runtime::succession::{Folder, Next, Renewal, Succession};
use crate::runtime::todo;
use crate::runtime::undo::{Extent, Watch};
use crate::session::context::SessionContext;
use crate::session::{Conversation, Log, SessionError, Store};
use crate::tools::backend::Over;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

/// Options that hold while the program runs, for every conversation.
#[derive(Clone)]
pub struct Launch {
    pub over: Overrides,
    /// Trust in the project for this run: `--approve` or `--no-approve`.
    pub approve: Option<bool>,
    /// The state of the project that is trusted, as another pi says.
    pub agreed_state: Option<String>,
    /// Projects that the user trusted for this run.
    pub agreed: Agreed,
    pub session_dir: Option<String>,
    pub no_session: bool,
    /// The folder that paths of the command line are relative to.
    pub started_in: PathBuf,
    pub questions: Questions,
    /// The programs that take part in sessions, once they are started.
    extensions: Option<Arc<Extensions>>,
    /// How programs that take part in sessions know the mode.
    pub mode: &'static str,
    /// True in interactive mode, in which the user can choose a model later.
    pub is_interactive: bool,
    /// Parts of the program that `--extension` switches on whatever else says.
    builtins: Vec<String>,
    /// No servers of the Model Context Protocol.
    pub no_mcp: bool,
    /// Background jobs outlive pi.
    keeps_jobs: bool,
    verbose: bool,
    is_offline: bool,
    /// Extensions may decide on the trust of projects.
    pub hears_extensions: bool,
    /// True once the packages of `--extension` were fetched.
    has_fetched: Arc<AtomicBool>,
    /// Plan mode from the start; true if the plan is accepted without a question.
    plan: Option<bool>,
}

/// How questions before a session are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Questions {
    Never,
    /// As numbered lines.
    Lines,
    /// As drawn lists.
    OnScreen,
}

/// Why a session cannot start.
pub enum NotStarted {
    /// No model is available.
    NoModel(String),
    Failed(String),
}

impl Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NoModel(text) | Self::Failed(text)) = self;
        f.write_str(text)
    }
}

impl From<String> for NotStarted {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

impl From<NotStarted> for String {
    fn from(error: NotStarted) -> Self {
        error.to_string()
    }
}

/// Prints a warning on stderr.
pub fn warn(text: &dyn Display) {
    report::warning(text);
}

/// Changes the working folder of the process to `dir`.
pub fn work_in(dir: &str) -> Result<(), String> {
    std::env::set_current_dir(dir).map_err(|error| format!("Cannot work in {dir}: {error}"))
}

impl Launch {
    /// Makes a launch that may ask the user questions. Changes to the folder of `--cwd`.
    pub fn new(args: &Args) -> Result<Self, String> {
        let is_interactive = ask::is_drawn(&args.run);
        let questions = match args.run.mode {
            _ if is_interactive => Questions::OnScreen,
            None | Some(Mode::Text) if args.run.list_models.is_none() => Questions::Lines,
            _ => Questions::Never,
        };
        if let Some(dir) = &args.session.cwd {
            work_in(dir)?;
        }
        let started_in = current_dir()?;
        let mut over = args.over.clone();
        if let (true, Some(Selection::Only(names))) = (args.run.plan, &mut over.tools.selection) {
            names.push(plan::NAME.to_owned());
        }
        if let Some(file) = &args.run.output_schema {
            over.wanted = Some(Arc::new(output_schema(&started_in, file)?));
        }
        Ok(Self {
            over,
            approve: args.approve,
            agreed_state: args.agreed_state.clone(),
            agreed: Agreed::default(),
            session_dir: args.session.session_dir.clone(),
            no_session: args.session.no_session,
            started_in,
            questions,
            extensions: None,
            mode: match args.run.mode {
                _ if is_interactive => "tui",
                Some(Mode::Rpc) => "rpc",
                Some(Mode::Json) => "json",
                Some(Mode::Acp) => "acp",
                Some(Mode::Mcp) => "mcp",
                Some(Mode::Jobs) => "jobs",
                Some(Mode::Text) | None => "print",
            },
            is_interactive,
            builtins: args.run.builtins.clone(),
            no_mcp: args.run.no_mcp,
            keeps_jobs: args.run.keep_jobs,
            verbose: args.run.verbose,
            is_offline: args.run.offline,
            hears_extensions: false,
            has_fetched: Arc::default(),
            plan: args.run.plan.then_some(args.run.yes),
        })
    }

    /// Makes a launch like [`Launch::new`], but without questions to the user.
    pub fn unasked(args: &Args) -> Result<Self, String> {
        Ok(Self { questions: Questions::Never, ..Self::new(args)? })
    }

    /// Makes a launch in which extensions may decide on the trust of projects.
    pub fn hearing_extensions(self) -> Self {
        Self { hears_extensions: true, ..self }
    }

    /// Loads settings, models and keys for the current folder. Faulty files are reported and defaults used.
    /// The user may be asked whether to trust the project.
    pub fn inputs(&self) -> Result<Inputs, String> {
        let cwd = current_dir()?;
        let dirs = Dirs::find().map_err(|error| error.to_string())?;
        let (settings, diagnostics) = Settings::load(dirs.agent());
        migrate::run(dirs.agent(), &settings);
        diagnostics.iter().for_each(report::warning);
        let mut inputs = Inputs::load(dirs, cwd, self.started_in.clone(), settings, &mut warn);
        // A reload uses what the start has fetched.
        let is_first = !self.has_fetched.swap(true, Ordering::Relaxed);
        let sources = &self.over.resources.extensions;
        inputs.named_packages = named(&inputs, sources, self.is_offline, is_first)?;
        self.decide_trust(&mut inputs)?;
        Ok(inputs)
    }

    /// Starts the extensions of the current folder. What cannot be used is an error on the command line, and a
    /// warning elsewhere.
    /// Flags that pi does not know are given to the extensions that do.
    pub fn start_extensions(&mut self, inputs: &mut Inputs, args: &mut Args) -> Result<(), Refused> {
        let over = &self.over.resources;
        let (found, problems) = find::find(inputs, over.no_extensions);
        if let Some(problem) = problems.first().filter(|_| !over.extensions.is_empty()) {
            return Err(problem.clone().into());
        }
        problems.iter().for_each(report::warning);
        inputs.adds_tools = !found.is_empty();
        if args.run.plan && !found.is_empty() {
            // An extension's own flag of the name comes first.
            args.unknown.push(Unknown { name: plan::NAME.to_owned(), value: None, next: None });
        }
        let mut about = About::new(inputs, self.mode, REFERENCE_VERSION);
        for flag in &args.unknown {
            about.flags.insert(flag.name.clone(), flag.value.clone().map_or(true.into(), Into::into));
        }
        self.extensions = Some(Extensions::start(about, found));
        if !args.unknown.is_empty() {
            self.give_flags(args)?;
        }
        Ok(())
    }

    /// Gives unknown flags to the extensions that registered them. The word behind a flag that takes a text is no message.
    fn give_flags(&mut self, args: &mut Args) -> Result<(), Refused> {
        let mut unknown = std::mem::take(&mut args.unknown);
        let mut words = Vec::new();
        if let Some(extensions) = &self.extensions {
            extensions.await_all_started(&CancelToken::new(), |text| report::note(text));
            extensions.take_flags(|name, takes_text| {
                let at = unknown.iter().position(|flag| flag.name == name)?;
                let flag = unknown.remove(at);
                Some(match (flag.value, flag.next.filter(|_| takes_text)) {
                    (Some(value), _) => value.into(),
                    (None, Some(next)) => {
                        words.push(next);
                        args.messages.get(next).cloned().unwrap_or_default().into()
                    }
                    (None, None) => true.into(),
                })
            });
        }
        if args.run.plan {
            match unknown.iter().position(|flag| flag.name == plan::NAME) {
                Some(own) => drop(unknown.remove(own)),
                None => {
                    self.plan = None;
                    if let Some(Selection::Only(names)) = &mut self.over.tools.selection {
                        names.pop_if(|name| name == plan::NAME);
                    }
                }
            }
        }
        words.order();
        for at in words.into_iter().rev().filter(|&at| at < args.messages.len()).collect::<Vec<_>>() {
            args.messages.remove(at);
        }
        match unknown.first() {
            Some(flag) => {
                if let Some(extensions) = &self.extensions {
                    extensions.end();
                }
                Err(Refused::unknown(flag))
            }
            None => Ok(()),
        }
    }

    /// Finds the extensions of the folder of `inputs`. The result replaces the running ones when it is called:
    /// in any case if `always`, otherwise if folder, trust or programs are others.
    pub fn next_extensions(&self, inputs: &mut Inputs, always: bool) -> impl FnOnce() + Send + 'static {
        let over = &self.over.resources;
        let next = self.extensions.clone().map(|extensions| {
            let (found, problems) = find::find(inputs, over.no_extensions);
            problems.iter().for_each(report::warning);
            inputs.adds_tools = !found.is_empty();
            (extensions, About::new(inputs, self.mode, REFERENCE_VERSION), found)
        });
        move || {
            if let Some((extensions, about, found)) = next
                && (always || extensions.differ(&about, &found))
            {
                extensions.restart(about, found);
            }
        }
    }

    /// Changes to another folder, and decides on trust in its project.
    pub fn enter(&self, inputs: &mut Inputs, folder: PathBuf) -> Result<(), String> {
        inputs.enter(folder);
        self.decide_trust(inputs)
    }

    fn decide_trust(&self, inputs: &mut Inputs) -> Result<(), String> {
        let trusted = trust::decide(self, inputs)?;
        inputs.trust(trusted, &mut warn);
        Ok(())
    }

    /// Returns the context of drawn questions; `None` if questions are not drawn.
    pub fn screen<'a>(&self, inputs: &'a Inputs) -> Option<question::Context<'a>> {
        (self.questions == Questions::OnScreen).then_some(question::Context {
            dirs: &inputs.dirs,
            settings: &inputs.settings,
            cwd: &inputs.cwd,
        })
    }

    /// Returns the store of sessions for the folder of `inputs`.
    pub fn store(&self, inputs: &Inputs) -> Store {
        open::store(&inputs.dirs, &inputs.settings, self.session_dir.as_deref(), &inputs.cwd)
    }

    /// Makes the session of `log`. The session can change to other conversations.
    pub fn session(
        mut self,
        inputs: Inputs,
        log: Log,
        name: Option<&str>,
        cancel: &CancelToken,
    ) -> Result<Session, String> {
        let store = (!self.no_session).then(|| self.store(&inputs));
        let (plan, launch) = (self.plan, self.clone());
        let first = self.parts(inputs, log, name, None, cancel)?;
        self.questions = Questions::Never;
        let (follower, token) = (self.clone(), cancel.clone());
        let make = move |log: Log, folder: Folder| {
            let mut inputs = follower.inputs()?;
            open::follow(&follower, &mut inputs, &log, folder)?;
            let enter = Box::new(follower.next_extensions(&mut inputs, false));
            Ok(Next { parts: follower.parts(inputs, log, None, None, &token)?, enter })
        };
        let extensions = self.extensions.clone();
        let succession = Succession::new(store, make, move |old, why| self.read_again(old, why));
        let session = Session::new(first, Some(succession), cancel);
        launch.offer_tools(session.control());
        if let Some(accepts) = plan {
            session.control().begin_planning(accepts)?;
        }
        if let Some(extensions) = extensions {
            extensions.attach(session.control());
        }
        Ok(session)
    }

    /// Makes the session of `log` for an editor, with `folders` beside the working folder. Unsaved files of the editor are read in place of those on
    /// the disk.
    pub fn session_of_editor(
        &self,
        inputs: Inputs,
        log: Log,
        folders: &[PathBuf],
        files: &Over,
        cancel: &CancelToken,
    ) -> Result<Session, NotStarted> {
        let over = &self.over.resources;
        let mut launch = self.clone();
        let folders = folders.iter().map(|folder| folder.to_string_lossy().into_owned());
        launch.over.sandbox.writable.extend(folders);
        let mut inputs = inputs;
        let (found, problems) = find::find(&inputs, over.no_extensions);
        problems.iter().for_each(report::warning);
        inputs.adds_tools = !found.is_empty();
        let extensions = Extensions::start(About::new(&inputs, self.mode, REFERENCE_VERSION), found);
        launch.extensions = Some(extensions.clone());
        let parts = launch.parts(inputs, log, None, Some(files), cancel).inspect_err(|_| extensions.end())?;
        let session = Session::new(parts, None, cancel);
        self.offer_tools(session.control());
        extensions.attach(session.control());
        Ok(session)
    }

    /// True if a part of the program is switched on: `codemode`, `mcp`.
    pub fn has_part(&self, name: &str, settings: &Settings) -> bool {
        let switched_off = settings.texts("extensions").unwrap_or_default();
        self.is_named(name)
            || (self.may_have_part(name) && !switched_off.contains(&format!("-builtin:{name}")))
    }

    /// True if flags do not leave the part out.
    pub fn may_have_part(&self, name: &str) -> bool {
        self.is_named(name) || !self.over.resources.no_extensions
    }

    /// True if a flag names the part.
    fn is_named(&self, name: &str) -> bool {
        self.builtins.iter().any(|known| known == name)
    }

    /// Returns an error if there is no model or key for a new session.
    pub fn check_key(&self, mut inputs: Inputs, cancel: &CancelToken) -> Result<(), String> {
        let model = model::choose(self, &mut inputs, &SessionContext::default())?.model;
        let model = self.address(&mut inputs.services, model);
        inputs.services.check(&model, cancel).map_err(|error| error.to_string())
    }

    /// Removes the stored credential of the provider that a new session would use.
    pub fn sign_out(&self, mut inputs: Inputs, cancel: &CancelToken) -> Result<(), String> {
        let provider = &model::choose(self, &mut inputs, &SessionContext::default())?.model.provider;
        let removed = inputs.services.credentials.remove(provider, cancel);
        match removed.map_err(|error| error.message)? {
            true => Ok(()),
            false => Err(format!(
                "No stored credentials for {provider}. The environment and models.json stay as they are."
            )),
        }
    }

    /// Makes the parts of a session for the conversation in `log`.
    fn parts(
        &self,
        mut inputs: Inputs,
        mut log: Log,
        name: Option<&str>,
        files: Option<&Over>,
        cancel: &CancelToken,
    ) -> Result<Parts, NotStarted> {
        log.hide(inputs.services.vault().clone());
        let context = log.context();
        log.take_notices().iter().for_each(report::warning);
        self.lend_models(&mut inputs, &context, cancel);
        let choice = model::choose(self, &mut inputs, &context)?;
        let thinking = model::thinking(self.over.model.thinking, &inputs.settings, &context, &choice);
        let model = self.address(&mut inputs.services, choice.model);
        self.tell_address(&inputs.services, &model, cancel);
        record(&mut log, name, &context, &model, thinking).map_err(|error| error.to_string())?;
        let sandbox = sandbox::choose(&self.over.sandbox, &inputs.settings, &inputs.dirs, &inputs.cwd)?;
        let place = Place::new(&log, sandbox, files, self.watch(&inputs));
        let resources = inputs.resources(&self.over.resources, &mut warn);
        let (config, tools) = configure(inputs, resources, &self.over, choice.scope, place, &mut warn);
        let messages = context.messages.iter().map(|known| &known.message);
        let (tools, absent) = match RecordedTools::of(messages) {
            Some(recorded) if self.over.tools.leave_recorded() => {
                let active = recorded.changed(self.over.tools.changes()).active;
                let tools = tools_named(&config.tools, &active);
                (tools, active.into_iter().filter(|name| !self.over.tools.is_excluded(name)).collect())
            }
            _ => (tools, Vec::new()),
        };
        Ok(Parts { conversation: Conversation::new(log, context), model, thinking, config, tools, absent })
    }

    /// Adds the models that extensions have registered. Waits for them if a model is named that is not known
    /// otherwise.
    fn lend_models(&self, inputs: &mut Inputs, context: &SessionContext, cancel: &CancelToken) {
        let Some(extensions) = &self.extensions else { return };
        if model::names_unknown(&self.over.model, inputs, context) {
            extensions.await_all_started(cancel, |text| report::note(text));
        }
        inputs.services.lend(extensions.models());
    }

    /// Adds the models of all extensions, and ends these.
    pub fn lend_all_models(&self, inputs: &mut Inputs) {
        let Some(extensions) = &self.extensions else { return };
        extensions.await_all_started(&CancelToken::new(), |text| report::note(text));
        inputs.services.lend(extensions.models());
        extensions.end();
        crate::tools::process::shut_down();
        for problem in extensions.take_problems() {
            report::warning(format_args!("Extension {}: {}", problem.source, problem.error));
        }
    }

    /// Returns the watch of the working folder, if what commands change should be undone.
    fn watch(&self, inputs: &Inputs) -> Option<Arc<Watch>> {
        let extent = match inputs.settings.word("undo.commands") {
            "on" => Extent::All(inputs.settings.count("undo.maxBytes")),
            "off" => return None,
            _ if matches!(self.mode, "print" | "json") => return None,
            // The pi that runs this one looks at what it changes.
            _ if std::env::var_os("PI_CODING_AGENT").is_some() => return None,
            _ => Extent::Small,
        };
        Some(Watch::new(&inputs.cwd, inputs.dirs.agent(), inputs.dirs.home(), extent))
    }

    /// Reloads the configuration of a conversation from its files.
    fn read_again(&self, old: &Config, why: &Renewal) -> Result<Config, String> {
        let mut inputs = self.inputs()?;
        inputs.services.keep(&old.services);
        let mut over = self.over.resources.clone();
        match why {
            Renewal::Reload => self.next_extensions(&mut inputs, true)(),
            Renewal::Found(found) => {
                over.skills.extend(found.skills.iter().cloned());
                over.prompt_templates.extend(found.prompts.iter().cloned());
                over.themes.extend(found.themes.iter().cloned());
                inputs.adds_tools = self.extensions.is_some();
            }
        }
        let resources = inputs.resources(&over, &mut warn);
        let scope = inputs.scope(&self.over.model, &mut warn);
        let place = Place::of(&old.workspace);
        Ok(configure(inputs, resources, &self.over, scope, place, &mut warn).0)
    }

    /// Applies the key and the URL of the command line to requests to `model`.
    fn address(&self, services: &mut Services, model: Arc<Model>) -> Arc<Model> {
        if let Some(key) = &self.over.model.api_key {
            services.credentials.give(&model.provider, Secret::new(key.as_str()));
        }
        let Some(url) = &self.over.model.base_url else {
            return model;
        };
        let url = url.trim_end_matches('/').to_owned();
        services.base_url = Some((model.provider.clone(), url.clone()));
        Arc::new(Model { base_url: url, ..Model::clone(&model) })
    }

    /// Prints the URL of requests with `--verbose`, or a note if a URL in the environment is ignored.
    fn tell_address(&self, services: &Services, model: &Model, cancel: &CancelToken) {
        if let Some(text) = model::ignored_base_url(model, services.credentials.env()) {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| report::note(text));
        }
        if self.verbose {
            let configured = services.registry.configured(&model.provider, Some(&model.id));
            let model = &Arc::new(model.clone());
            let key = services.credentials.resolve(model, &configured, cancel);
            let key = key.map_or_else(|error| error.to_string(), |resolved| resolved.source.to_string());
            report::note(format_args!(
                "Model: {}/{} at {}; key: {key}",
                model.provider,
                model.id,
                shown_url(&model.base_url)
            ));
        }
    }

    /// Adds the tools that work on a session itself, and the commands of the settings.
    fn offer_tools(&self, control: &Control) {
        helper::isolate::recover(&control.config().agent_dir).iter().for_each(report::warning);
        helper::offer(control);
        todo::offer(control);
        command_hook::offer(control);
        job::offer(control);
        if self.mode != "jobs" && (self.is_interactive || self.keeps_jobs || job::is_active(control)) {
            kept::offer(control, self.keeps_jobs, report::note);
        }
        plan::offer(control);
        checkpoint::offer(control);
    }
}

fn current_dir() -> Result<PathBuf, String> {
    std::env::current_dir().map_err(|error| {
        format!("The current folder cannot be used: {error}. Change to another one, or use --cwd.")
    })
}

/// Reads the schema file of `--output-schema`.
fn output_schema(from: &Path, file: &str) -> Result<Wanted, String> {
    let text = std::fs::read_to_string(from.join(file))
        .map_err(|error| format!("Cannot read the output schema {file}: {error}"))?;
    Wanted::parse(&text).map_err(|fault| format!("The output schema {file} cannot be used: {fault}"))
}

/// Records name, model and thinking level in the log before the first message.
fn record(
    log: &mut Log,
    name: Option<&str>,
    context: &SessionContext,
    model: &Model,
    thinking: ThinkingLevel,
) -> Result<(), SessionError> {
    if let Some(name) = name {
        log.append_session_info(name)?;
    }
    let is_new = context.messages.is_empty();
    if is_new && !model.is_none() {
        log.append_model_change(&model.provider, &model.id)?;
    }
    // What the model makes of the recorded level is no change of it.
    let recorded = context.thinking_level.as_deref().and_then(ThinkingLevel::parse);
    if is_new || recorded.map(|level| model.clamp_thinking(level)) != Some(thinking) {
        log.append_thinking_level(thinking.name())?;
    }
    Ok(())
}
