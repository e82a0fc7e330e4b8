//! Starting programs, and how long others wait for them.

use super::connection::{Connection, RETIRED, Serve};
use super::limit::{END_MAX, INITIALIZE_MAX, MODELS_MAX, stops_clock};
use super::request::{Answer, Failed};
use super::{About, Extensions, Found, Instance, PROTOCOL_VERSION, State, call};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::patience::{patience, seconds_until};
use crate::base::thread::Thread;
use crate::jsonrpc::message::{Failure, INVALID_PARAMS};
use crate::runtime::task::Task;
use crate::tools::process::peer::{Program, STACK};
use serde_json::Value;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The event that asks for further skills, prompt templates and themes.
const DISCOVER: &str = "resources_discover";
/// How long the first prompt waits for a program that says nothing.
const SILENT_MAX: Duration = Duration::from_millis(250);
/// How long the first prompt waits for the next sign of a program that says that it is loading.
const LOADING_MAX: Duration = Duration::from_secs(3);
/// How long the conversation of an opened session waits for extensions that may draw parts of it.
const ALL_MAX: Duration = Duration::from_secs(2);

impl Extensions {
    /// Ends all extensions and starts those that `found` gives, in the folder that `about` names.
    pub fn restart(self: &Arc<Self>, about: About, found: Vec<Found>) {
        let old = std::mem::take(&mut self.state().instances);
        // One that is still being started is not let in any more.
        for instance in &old {
            instance.retire();
            instance.set_ready();
        }
        end_all(&old);
        for instance in &old {
            if let Some(control) = self.control.get() {
                control.remove_addition(&instance.owner());
            }
            self.clear(instance);
        }
        {
            let mut state = self.state();
            let flags = std::mem::take(&mut state.about.flags);
            *state = State::new(About { flags, ..about });
        }
        self.launch(found);
    }

    /// Ends all programs.
    pub fn end(&self) {
        end_all(&self.instances());
    }

    /// Starts programs, all at the same time.
    pub(super) fn launch(self: &Arc<Self>, found: Vec<Found>) {
        let instances: Vec<Arc<Instance>> =
            found.into_iter().enumerate().map(|(rank, found)| Arc::new(Instance::new(rank, found))).collect();
        for instance in instances.iter().filter(|instance| instance.is_lazy()) {
            instance.set_ready();
        }
        self.state().instances.clone_from(&instances);
        self.count_events();
        for group in groups(instances) {
            if let [instance] = group.as_slice()
                && instance.is_lazy()
            {
                self.apply(instance);
                continue;
            }
            let (extensions, starting) = (self.clone(), group.clone());
            let run = move || {
                extensions.bring_up(&starting);
                // Those that are still loading join by themselves.
                starting.iter().filter(|one| !one.is_loading()).for_each(|one| extensions.join(one));
            };
            if let Err(error) = Thread::named("ext-start").stack(2 * STACK).start(run) {
                self.report(&group[0], "start", &format!("no thread can be started: {error}"));
                group.iter().for_each(|instance| instance.set_ready());
            }
        }
    }

    /// Starts the program of a group and takes what each instance registers.
    fn bring_up(self: &Arc<Self>, group: &[Arc<Instance>]) {
        let about = self.state().about.clone();
        let agreed = self.agreed(group);
        match start(&agreed, self, &about) {
            Ok(failures) => {
                for (instance, failure) in agreed.iter().zip(failures) {
                    match failure {
                        None => self.apply(instance),
                        Some(why) => self.report(instance, "start", &why),
                    }
                }
            }
            Err(why) if why == RETIRED => {}
            Err(why) => agreed.iter().take(1).for_each(|first| self.report(first, "start", &why)),
        }
        group.iter().for_each(|instance| instance.set_answered());
    }

    /// Takes in what an instance registers that its program loaded after the answer to `initialize`.
    pub(super) fn loaded(self: &Arc<Self>, instance: &Arc<Instance>, fields: &Value) {
        // The answer comes first, but another thread takes it in.
        if let Some(connection) = instance.connection() {
            instance.wait_until_taken(connection.over());
        }
        if !instance.has_loaded() {
            return;
        }
        let taken = match fields["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => {
                let faults = instance.register(fields);
                instance.set_started();
                Ok(faults)
            }
        };
        self.take_in(instance, taken);
        self.join(instance);
    }

    /// Adds what an instance has registered to the session, and reports the faults of it. One that has failed leaves
    /// the session.
    pub(super) fn take_in(
        self: &Arc<Self>,
        instance: &Arc<Instance>,
        registered: Result<Vec<String>, String>,
    ) {
        match registered {
            Ok(faults) => {
                self.report_faults(instance, &faults);
                self.apply(instance);
            }
            Err(why) => {
                instance.fail(&why);
                // It may have registered something on the way, such as a gate that would now block every call.
                instance.clear_registration();
                self.count_events();
                self.clear(instance);
                if let Some(control) = self.control.get() {
                    control.remove_addition(&instance.owner());
                }
                self.report(instance, "start", &why);
            }
        }
    }

    /// Lets an instance take part in a session that may have begun before.
    fn join(&self, instance: &Arc<Instance>) {
        self.greet(instance);
        instance.set_ready();
    }

    /// The instances of a group whose files are those that the user agreed to. Others fail.
    fn agreed(&self, group: &[Arc<Instance>]) -> Vec<Arc<Instance>> {
        let of_project = |instance: &&Arc<Instance>| instance.found.consent.is_some();
        // All of a project have the same consent.
        let consent = group.iter().find_map(|instance| instance.found.consent.as_ref());
        let Some(Err(why)) = consent.map(|consent| consent.check()) else { return group.to_vec() };
        let why = format!("is not started: {why}. Reload to be asked about it");
        for instance in group.iter().filter(of_project) {
            instance.fail(&why);
            self.report(instance, "start", &why);
        }
        group.iter().filter(|instance| !of_project(instance)).cloned().collect()
    }

    /// The connection of an instance; starts a lazy one.
    pub(super) fn connection(self: &Arc<Self>, instance: &Arc<Instance>) -> Result<Arc<Connection>, Failed> {
        if let Some(connection) = instance.connection() {
            return Ok(connection);
        }
        if instance.begins_now() {
            self.bring_up(std::slice::from_ref(instance));
            self.greet(instance);
        }
        instance.connection().ok_or_else(|| Failed::Over("is not running".to_owned()))
    }

    /// Tells an instance that came late that the session has begun.
    fn greet(&self, instance: &Arc<Instance>) {
        let opening = self.state().opening.clone();
        let Some(event) = opening.filter(|_| instance.start_ms() > 0 && !instance.is_greeted()) else {
            return;
        };
        let _ = self.ask_one(instance, &event, None, &CancelToken::new());
        let subscribed = &instance.registration().events;
        if subscribed.iter().any(|subscription| subscription.event == DISCOVER)
            && let Some(control) = self.control.get()
            && let Err(why) = control.hand_over(Task::Discover)
        {
            self.report(instance, DISCOVER, &why);
        }
    }

    /// Waits until every extension has been started or has failed and has found out its models, or `cancel` is cancelled. `tell` is told which keep
    /// it waiting longer than a prompt would wait.
    pub fn await_all_started(&self, cancel: &CancelToken, tell: impl FnOnce(&str)) {
        let limit = Instant::now() + INITIALIZE_MAX + END_MAX;
        let begun = self.state().begun;
        let instances = self.instances();
        instances.iter().for_each(|one| one.await_ready(|| prompt_limit(one, begun).min(limit), cancel));
        let late: Vec<&str> =
            instances.iter().filter(|one| one.is_coming()).map(|one| &*one.found.name).collect();
        if !late.is_empty() && !cancel.is_cancelled() {
            tell(&format!(
                "Waiting for extensions ({}), {} s at most",
                late.join(", "),
                seconds_until(limit)
            ));
            self.await_start(limit, cancel);
        }
        let limit = Instant::now() + MODELS_MAX;
        instances.iter().for_each(|one| one.await_models(limit, cancel));
    }

    /// Waits for extensions that may have a handler of `tool_call`, and says so. For one that has it, or whose file
    /// names the event, that is until 30 s after the start, for others as long as they show that they are loading.
    pub(super) fn await_gates(&self, cancel: &CancelToken) {
        let begun = self.state().begun;
        let last = begun + INITIALIZE_MAX;
        for instance in self.instances().iter().filter(|one| one.is_coming() && Instant::now() < last) {
            let is_gate = instance.may_gate();
            let limit = || match instance.last_sign().unwrap_or(begun) + patience(LOADING_MAX) {
                _ if is_gate => last,
                limit => limit.min(last),
            };
            let left = seconds_until(limit());
            if left > 0 && instance.is_waited_for() {
                let text = format!("is still being started: a tool call waits for it, {left} s at most");
                self.report(instance, "start", &text);
            }
            instance.await_ready(limit, cancel);
        }
    }

    /// Waits for the end of every start, until `limit` has passed or `cancel` is cancelled.
    pub(super) fn await_start(&self, limit: Instant, cancel: &CancelToken) {
        self.instances().iter().for_each(|instance| instance.wait_until_ready(limit, cancel));
    }

    /// When a conversation that is to be drawn is not to wait for extensions any more.
    pub(super) fn drawing_limit(&self) -> Instant {
        self.state().begun + patience(ALL_MAX)
    }

    /// The extensions that the first prompt is to wait for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Arc<Instance>> {
        let (begun, instances) = {
            let state = self.state();
            (state.begun, if state.is_settled { Vec::new() } else { state.instances.clone() })
        };
        let now = Instant::now();
        instances.into_iter().filter(move |one| !one.has_answered() && prompt_limit(one, begun) > now)
    }

    /// Waits as long as the first prompt is to wait, once. A `cancel` ends the wait for good.
    pub(super) fn await_settled(&self, cancel: &CancelToken) {
        let begun = self.state().begun;
        // The limit of one that says that it is loading moves on.
        while !cancel.is_cancelled()
            && let Some(instance) = self.awaited().next()
        {
            instance.wait_for_answer(prompt_limit(&instance, begun), cancel);
        }
        self.state().is_settled = true;
    }

    /// Names the extensions that a prompt goes without since they are still being started, once for each.
    pub(super) fn report_missing(&self) {
        for instance in self.instances() {
            if instance.is_missed() {
                let text =
                    "is still being started: this prompt goes without it, and what it registers joins later";
                self.report(&instance, "start", text);
            }
        }
    }
}

/// When the first prompt is not to wait for an instance any more.
fn prompt_limit(instance: &Instance, begun: Instant) -> Instant {
    match instance.last_sign() {
        Some(sign) => sign + patience(LOADING_MAX),
        None => begun + patience(SILENT_MAX),
    }
}

/// Starts the program of `group` and waits for what its instances register. Gives why each failed, if it did.
fn start(
    group: &[Arc<Instance>],
    extensions: &Arc<Extensions>,
    about: &About,
) -> Result<Vec<Option<String>>, String> {
    let Some(first) = group.first() else { return Ok(Vec::new()) };
    if first.is_retired() {
        return Err(RETIRED.to_owned());
    }
    let found = &first.found;
    let mut env = about.env();
    if found.consent.is_some() {
        // Compiled files beside the sources would count as a change of the project.
        env.entry("PYTHONDONTWRITEBYTECODE".into()).or_insert_with(|| "1".into());
    }
    env.extend(found.env.iter().map(|(name, value)| (name.into(), value.into())));
    let program = Program {
        path: found.program.clone(),
        args: found.args.iter().map(Into::into).collect(),
        cwd: about.cwd.clone(),
        env,
    };
    let server = Arc::new(Server { extensions: extensions.clone(), group: group.to_vec() });
    let connection = Connection::start(&program, server)
        .map_err(|error| format!("cannot be started ({}): {error}", program.path.display()))?;
    let instances: Vec<Value> = group
        .iter()
        .map(|one| {
            json!({"id": one.id, "path": one.found.path.to_string_lossy(), "args": one.found.args,
                "sourceInfo": one.found.source})
        })
        .collect();
    let params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "referenceVersion": about.reference_version,
        "mode": about.mode,
        "hasUI": about.has_ui(),
        "cwd": about.cwd.to_string_lossy(),
        "agentDir": about.dirs.agent().to_string_lossy(),
        "executable": std::env::current_exe().ok(),
        "isProjectTrusted": about.is_trusted,
        "extensions": instances,
        "flags": about.flags,
    });
    // Calls may come before the answer does.
    if !group.iter().all(|instance| instance.enter(&connection)) {
        connection.end(RETIRED);
        return Err(RETIRED.to_owned());
    }
    let answer = connection.ask("initialize", params, Some(INITIALIZE_MAX), &CancelToken::new());
    let answer = answer.map_err(|failed| match failed {
        Failed::Late(limit) => format!("did not answer initialize within {limit:?}"),
        failed => failed.to_string(),
    });
    let answer = answer.and_then(|answer| check_version(&answer).map(|()| answer)).inspect_err(|why| {
        group.iter().for_each(|instance| instance.fail(why));
        connection.end(why);
    })?;
    let failures: Vec<Option<String>> = group
        .iter()
        .map(|instance| match instance.take(&answer) {
            Ok(faults) => {
                extensions.report_faults(instance, &faults);
                None
            }
            Err(why) => {
                instance.fail(&why);
                Some(why)
            }
        })
        .collect();
    if failures.iter().all(Option::is_some) {
        connection.end(RETIRED);
    }
    // One whose program ended meanwhile will not say that it is loaded.
    if connection.is_over() {
        group.iter().filter(|instance| instance.has_loaded()).for_each(|instance| instance.set_ready());
    }
    Ok(failures)
}

fn check_version(answer: &Value) -> Result<(), String> {
    match answer["protocolVersion"].as_u64() {
        Some(PROTOCOL_VERSION) => Ok(()),
        Some(version) => Err(format!(
            "speaks version {version} of the protocol; this pi speaks version {PROTOCOL_VERSION}"
        )),
        None => Err("did not say which version of the protocol it speaks".to_owned()),
    }
}

/// Answers the calls of the program of a group.
struct Server {
    extensions: Arc<Extensions>,
    group: Vec<Arc<Instance>>,
}

impl Server {
    /// The instance that a call is of: the one that it names, or the only one.
    fn caller(&self, params: &Value) -> Result<&Arc<Instance>, Failure> {
        let named = params["extension"].as_str();
        let found = match (named, self.group.as_slice()) {
            (None, [only]) => Some(only),
            (Some(id), group) => group.iter().find(|instance| instance.id == id),
            (None, _) => None,
        };
        found.ok_or_else(|| Failure::new(INVALID_PARAMS, "\"extension\" names no instance of this program"))
    }
}

impl Serve for Server {
    fn waits(&self, method: &str, params: &Value) -> bool {
        call::waits(method, params)
    }

    fn stops_clock(&self, method: &str) -> bool {
        stops_clock(method)
    }

    fn call(&self, id: Option<&Value>, method: &str, params: Value, cancel: &CancelToken) -> Answer {
        if method == "loading" {
            self.group.iter().for_each(|instance| instance.give_sign());
            return Ok(Value::Null);
        }
        let instance = self.caller(&params)?;
        call::answer(&self.extensions, instance, id, method, params, cancel)
    }

    fn ended(&self, connection: &Connection) {
        let end = connection.end_text();
        let ended = self.group.iter().filter(|instance| instance.has_ended(connection, &end));
        let ended: Vec<_> = ended.collect();
        // One that failed at the start is reported there; one that was shut down is not current.
        for instance in &ended {
            self.extensions.clear(instance);
            if !instance.registration().servers.is_empty() {
                self.extensions.apply_known(instance);
            }
        }
        let had_begun = |instance: &&Arc<Instance>| instance.start_ms() > 0 || instance.is_loading();
        if let Some(instance) = ended.into_iter().find(had_begun) {
            self.extensions.report(instance, "exit", &end);
        }
        // Those that were to come will not.
        self.group.iter().filter(|instance| instance.has_loaded()).for_each(|instance| instance.set_ready());
    }
}

/// The instances that share a program, together, where the first of each group stands.
pub(super) fn groups(instances: Vec<Arc<Instance>>) -> Vec<Vec<Arc<Instance>>> {
    let mut groups: Vec<Vec<Arc<Instance>>> = Vec::new();
    for instance in instances {
        let known = groups.iter_mut().find(|group| {
            let of_group = group.first().map(|first| &first.found.group);
            instance.found.group.is_some() && of_group == Some(&instance.found.group)
        });
        match known {
            Some(group) => group.push(instance),
            None => groups.push(vec![instance]),
        }
    }
    groups
}

/// Ends programs, all at the same time.
fn end_all(instances: &[Arc<Instance>]) {
    let until = Instant::now() + END_MAX;
    thread::scope(|scope| {
        let mut connections: Vec<Arc<Connection>> = Vec::new();
        for instance in instances {
            let Some(connection) = instance.take_connection() else { continue };
            // One that has not even begun has nothing to bring to an end.
            if !instance.has_begun() {
                connection.end(RETIRED);
            }
            if !connections.iter().any(|known| Arc::ptr_eq(known, &connection)) {
                connections.push(connection);
            }
        }
        for connection in connections {
            let spare = connection.clone();
            let end = move || connection.shut_down(until);
            if Thread::named("ext-end").stack(STACK).start_in(scope, end).is_err() {
                spare.end(RETIRED);
            }
        }
    });
}
