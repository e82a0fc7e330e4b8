//! One run of a script: what it puts out, and the answers to what it asks for.
//!
//! Calls run at the same time, each on a thread that writes its answer itself: whoever reads the script's messages
//! never waits for the script to read. The end of the script, for whatever reason, cancels what still runs.

use super::declare;
use super::engine::{self, Child, Engine};
use super::models::{self, Asking, Question};
use super::search::{self, Document};
use super::source::Options;
use super::store;
use crate::agent::tool::{Invocation, Namespace, Tool, ToolInfo, ToolOutput};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::llm::message::Block;
use crate::runtime::control::Control;
use crate::runtime::nested::NestedCall;
use crate::runtime::nested_calls::{Calls, Status};
use crossbeam_channel::{Receiver, Sender, after, bounded, never, select};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::io::PipeWriter;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

/// Scripts that run at a time in this process, if PI_CODEMODE_MAX_WORKERS does not say otherwise.
const SCRIPTS_MAX: usize = 2;
/// Longest wait for one of them to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Calls of a script that run at a time, and those that may wait.
const CALLS_MAX: usize = 16;
const WAITING_MAX: usize = 10_000;
/// Limits of what a script may put out.
const CHARS_MAX: usize = 16 << 20;
const ITEMS_MAX: usize = 100_000;
/// Matches of a search if the script does not say how many.
const MATCHES: u64 = 8;

/// What a script puts out.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Text(String),
    Console(String),
    Image { data: String, mime_type: String },
}

/// What came of a script.
pub struct Outcome {
    pub items: Vec<Item>,
    /// Why it failed.
    pub error: Option<String>,
    pub calls: Calls,
    /// Images that models made for it.
    pub images_made: usize,
}

/// Runs a script to its end.
pub fn run(control: &Control, call: &Invocation<'_>, code: &str, options: &Options) -> Outcome {
    let failed = |error: String| {
        let error = Some(format!("{error}\n\nThe script did not start."));
        Outcome { items: Vec::new(), error, calls: Calls::new(call.id), images_made: 0 }
    };
    let late = options.timeout.map_or_else(never, after);
    let _slot = match Slot::take(&late, call.cancel) {
        Ok(slot) => slot,
        Err(why) => return failed(why),
    };
    let Some(engine) = Engine::find() else { return failed("There is no JavaScript engine any more".into()) };
    let child = match engine.start() {
        Ok(child) => child,
        Err(error) => return failed(format!("The JavaScript engine cannot be started: {error}")),
    };
    let tools = declare::callable(control);
    let described = |tool: &Arc<dyn Tool>| {
        let info = tool.info();
        json!({"id": declare::identifier(&info.spec.name), "name": info.spec.name, "description": declare::sample(info)})
    };
    let first = json!({"code": code, "tools": tools.iter().map(described).collect::<Vec<_>>(),
        "models": models::NAMES, "store": store::load(control)});
    let (ended, ends) = bounded(CALLS_MAX + 1);
    let script = Script {
        control,
        call,
        tools,
        calls: Mutex::new(Calls::new(call.id)),
        asking: Asking::default(),
        cancel: call.cancel.child(),
        alone: Mutex::new(()),
        ended,
    };
    script.publish();
    let mut items = Items::default();
    let Child { stdin, received, .. } = &child;
    let stdin = Mutex::new(stdin);
    let error = thread::scope(|scope| {
        let mut jobs = Jobs { script: &script, stdin: &stdin, scope, running: 0, waiting: VecDeque::new() };
        let begun = jobs.add(Job::Answer(first));
        let done = begun
            .and_then(|()| script.follow(&mut jobs, &mut items, received, &ends, &late, &child, options));
        // Whoever still writes to the script, or runs for it, ends.
        child.kill();
        script.cancel.cancel();
        done
    });
    let images_made = script.asking.images_made();
    let mut calls = script.calls.into_inner().unwrap_or_else(PoisonError::into_inner);
    calls.close();
    let error = error.err().map(|error| format!("{error}\n\n{}", calls.summary()));
    Outcome { items: items.all, error, calls, images_made }
}

/// The right to run a script.
struct Slot;

/// Rights to run a script, which wait here while nobody has them.
fn slots() -> &'static (Sender<Slot>, Receiver<Slot>) {
    static SLOTS: OnceLock<(Sender<Slot>, Receiver<Slot>)> = OnceLock::new();
    SLOTS.get_or_init(|| {
        let set = std::env::var("PI_CODEMODE_MAX_WORKERS").ok().and_then(|text| text.parse().ok());
        let count = set.filter(|count| (1..=64).contains(count)).unwrap_or(SCRIPTS_MAX);
        let (sender, receiver) = bounded(count);
        (0..count).for_each(|_| drop(sender.send(Slot)));
        (sender, receiver)
    })
}

impl Slot {
    fn take(late: &Receiver<std::time::Instant>, cancel: &CancelToken) -> Result<Held, String> {
        select! {
            recv(slots().1) -> slot => slot.map(|slot| Held(Some(slot))).map_err(|error| error.to_string()),
            recv(cancel.receiver()) -> _ => Err("Script aborted".into()),
            recv(late) -> _ => Err("Script timed out while it waited for others to end".into()),
            default(PATIENCE) => Err(format!(
                "No other script ended within {} seconds, and no more may run at a time \
                 (PI_CODEMODE_MAX_WORKERS). Try again later",
                PATIENCE.as_secs()
            )),
        }
    }
}

/// Gives the slot back at its end.
struct Held(Option<Slot>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            let _ = slots().0.try_send(slot);
        }
    }
}

#[derive(Default)]
struct Items {
    all: Vec<Item>,
    chars: usize,
}

impl Items {
    fn add(&mut self, item: Item) -> Result<(), String> {
        self.chars += match &item {
            Item::Text(text) | Item::Console(text) => text.chars().count(),
            Item::Image { data, .. } => data.len(),
        };
        if self.chars > CHARS_MAX {
            return Err(format!(
                "The script puts out more than {CHARS_MAX} characters. Write large data to a file"
            ));
        }
        if self.all.len() == ITEMS_MAX {
            return Err(format!("The script puts out more than {ITEMS_MAX} items"));
        }
        self.all.push(item);
        Ok(())
    }
}

pub(super) struct Script<'a> {
    pub(super) control: &'a Control,
    call: &'a Invocation<'a>,
    tools: Vec<Arc<dyn Tool>>,
    calls: Mutex<Calls>,
    pub(super) asking: Asking,
    /// Ends the calls of the script.
    pub(super) cancel: CancelToken,
    /// Held by calls of tools that want to be alone.
    alone: Mutex<()>,
    ended: Sender<()>,
}

/// What is done on a thread of its own.
enum Job {
    /// A message for the script.
    Answer(Value),
    Question(Question),
    Call {
        number: Value,
        name: String,
        arguments: Value,
    },
}

/// What is left to be done on that thread.
enum Begun {
    Answer(Value),
    Question(Question),
    Call(BegunCall),
}

/// A call that is recorded.
struct BegunCall {
    number: Value,
    name: String,
    call: NestedCall,
    /// Its place among the recorded calls.
    at: usize,
    /// No call of another such tool runs beside it.
    is_alone: bool,
    /// The script gets the data of the result, not its text.
    gives_data: bool,
}

struct Jobs<'s, 'e, 'a> {
    script: &'e Script<'a>,
    stdin: &'e Mutex<&'e PipeWriter>,
    scope: &'s Scope<'s, 'e>,
    running: usize,
    waiting: VecDeque<Job>,
}

impl Jobs<'_, '_, '_> {
    fn add(&mut self, job: Job) -> Result<(), String> {
        if self.waiting.len() == WAITING_MAX {
            return Err(format!("More than {WAITING_MAX} calls of tools wait"));
        }
        self.waiting.push_back(job);
        self.begin()
    }

    fn begin(&mut self) -> Result<(), String> {
        while self.running < CALLS_MAX
            && let Some(job) = self.waiting.pop_front()
        {
            let (script, stdin) = (self.script, self.stdin);
            // Calls are recorded in this order, whichever thread comes first.
            let begun = match job {
                Job::Answer(answer) => Begun::Answer(answer),
                Job::Question(question) => Begun::Question(question),
                Job::Call { number, name, arguments } => {
                    script.begin_call(number, name, arguments).map_or_else(Begun::Answer, Begun::Call)
                }
            };
            let work = move || {
                let answer = match begun {
                    Begun::Answer(answer) => answer,
                    Begun::Question(asked) => {
                        json!({"id": asked.number, "ok": script.answer_question(&asked)})
                    }
                    Begun::Call(call) => script.answer_call(call),
                };
                // A script that is over takes no answer.
                let _ = engine::send(&mut *lock(stdin), &answer);
                let _ = script.ended.send(());
            };
            Thread::named("js-call")
                .start_in(self.scope, work)
                .map_err(|error| format!("Cannot start a thread: {error}"))?;
            self.running += 1;
        }
        Ok(())
    }
}

impl Script<'_> {
    /// Takes what the script says until it ends. An error tells why it failed.
    #[allow(clippy::too_many_arguments)] // the channels of one loop
    fn follow(
        &self,
        jobs: &mut Jobs<'_, '_, '_>,
        items: &mut Items,
        received: &Receiver<Result<Value, String>>,
        ends: &Receiver<()>,
        late: &Receiver<std::time::Instant>,
        child: &Child,
        options: &Options,
    ) -> Result<(), String> {
        loop {
            select! {
                recv(received) -> message => match message {
                    Ok(Ok(message)) => {
                        if self.take(message, jobs, items)? {
                            return Ok(());
                        }
                    }
                    Ok(Err(text)) => return Err(format!("Script failed: {text}")),
                    Err(_) => return Err(format!("Script failed: {}", child.why())),
                },
                recv(ends) -> _ => {
                    jobs.running -= 1;
                    jobs.begin()?;
                }
                recv(self.call.cancel.receiver()) -> _ => return Err("Script aborted".into()),
                recv(late) -> _ => {
                    let ms = options.timeout.unwrap_or_default().as_millis();
                    return Err(format!("Script timed out after {ms} ms"));
                }
            }
        }
    }

    /// Takes a message of the script. True at its end.
    fn take(
        &self,
        mut message: Value,
        jobs: &mut Jobs<'_, '_, '_>,
        items: &mut Items,
    ) -> Result<bool, String> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(shown) = message.get("text") {
            items.add(Item::Text(text(Some(shown))))?;
        } else if let Some(line) = message.get("console") {
            items.add(Item::Console(text(Some(line))))?;
        } else if let Some(image) = message.get("image") {
            let (data, mime_type) = (text(image.get("data")), text(image.get("mimeType")));
            items.add(Item::Image { data, mime_type })?;
        } else if let Some(changes) = message.get("done") {
            store::keep(self.control, changes).map_err(|error| format!("store() failed: {error}"))?;
            if let Some(value) = message.get("value") {
                items.add(Item::Text(text(Some(value))))?;
            }
            return Ok(true);
        } else if let Some(failure) = message.get("failed") {
            let stack = text(failure.get("stack"));
            let separator = if stack.is_empty() { "" } else { "\n" };
            let (name, about) = (text(failure.get("name")), text(failure.get("message")));
            return Err(format!("{name}: {about}{separator}{stack}"));
        } else if let Some(number) = message.get("call").cloned() {
            let name = text(message.get("name"));
            let arguments = message.get_mut("arguments").map(Value::take).unwrap_or_default();
            jobs.add(Job::Call { number, name, arguments })?;
        } else if let Some(number) = message.get("ask").cloned() {
            let given = message.get("arguments").and_then(Value::as_array).cloned().unwrap_or_default();
            let name = text(message.get("name"));
            if models::is_question(&name) {
                let job = match self.begin_question(number.clone(), &name, &given) {
                    Ok(question) => Job::Question(question),
                    Err(error) => Job::Answer(json!({"id": number, "error": error})),
                };
                jobs.add(job)?;
                return Ok(false);
            }
            let answer = match self.ask(&name, &given) {
                Ok(Some(found)) => json!({"id": number, "ok": found}),
                Ok(None) => json!({"id": number}),
                Err(error) => json!({"id": number, "error": error}),
            };
            jobs.add(Job::Answer(answer))?;
        }
        Ok(false)
    }

    /// Records a call. The error is the message that answers the script.
    fn begin_call(&self, number: Value, name: String, arguments: Value) -> Result<BegunCall, Value> {
        let Some(tool) = self.tools.iter().find(|tool| tool.info().spec.name == name) else {
            return Err(json!({"id": number, "error": format!("There is no tool {name}")}));
        };
        let Value::Object(arguments) = arguments else {
            return Err(
                json!({"id": number, "error": format!("{name} takes one object with its arguments")}),
            );
        };
        let (id, at) = lock(&self.calls).begin(&name, &Value::Object(arguments.clone()));
        let call = self.control.begin_call(id, Some(self.call.id), &name, arguments, &self.cancel);
        self.publish();
        let info = tool.info();
        // A server's tool says what its data are, or that it gives the whole result.
        let gives_data = info.result.is_some() || info.namespace.is_some();
        Ok(BegunCall { number, name, call, at, is_alone: info.sequential, gives_data })
    }

    /// Calls a tool, and gives the message that answers the script.
    fn answer_call(&self, call: BegunCall) -> Value {
        let BegunCall { number, name, call, at, is_alone, gives_data } = call;
        let name = name.as_str();
        let _alone = is_alone.then(|| lock(&self.alone));
        let (output, is_error) = call.run(&|_| {});
        let text = output.joined_text();
        let status = match (is_error, self.cancel.is_cancelled()) {
            (true, true) => Status::Cancelled,
            (true, false) => Status::Error,
            (false, _) => Status::Ok,
        };
        {
            let mut calls = lock(&self.calls);
            calls.end(at, status, if is_error { &text } else { "" });
            calls.absorb(&output);
        }
        self.publish();
        match (output.structured.filter(|_| gives_data), is_error) {
            (Some(value), _) => json!({"id": number, "ok": value}),
            (None, true) if text.is_empty() => json!({"id": number, "error": format!("{name} failed")}),
            (None, true) => json!({"id": number, "error": text}),
            (None, false) => match output.content.iter().find_map(image_of) {
                Some((data, mime_type)) => json!({"id": number, "ok":
                    {"type": "image", "data": data, "mimeType": mime_type, "note": text}}),
                None => json!({"id": number, "ok": text}),
            },
        }
    }

    /// Answers a function that looks for tools or models. None stands for undefined.
    fn ask(&self, what: &str, given: &[Value]) -> Result<Option<Value>, String> {
        if models::NAMES.contains(&what) {
            return self.list_models(what, given);
        }
        let name = given.first().and_then(Value::as_str).ok_or_else(|| format!("{what}() takes a string"))?;
        let id = declare::identifier(name);
        let is_meant =
            |info: &ToolInfo| info.namespace.as_ref().is_some_and(|namespace| is_called(namespace, &id));
        let infos = self.tools.iter().map(|tool| tool.info());
        let entry = |info: &ToolInfo| json!({"name": declare::identifier(&info.spec.name), "description": declare::sample(info)});
        match what {
            "describeTool" => {
                let found = infos.into_iter().find(|info| declare::identifier(&info.spec.name) == id);
                Ok(found.map(|info| declare::sample(info).into()))
            }
            "describeNamespace" => {
                let found: Vec<&ToolInfo> = infos.filter(|info| is_meant(info)).collect();
                let Some(namespace) = found.first().and_then(|info| info.namespace.as_deref()) else {
                    return Ok(None);
                };
                let mut about = Map::new();
                about.insert("name".into(), namespace.name.as_str().into());
                for (field, text) in
                    [("description", &namespace.description), ("instructions", &namespace.instructions)]
                {
                    text.iter().for_each(|text| drop(about.insert(field.into(), text.as_str().into())));
                }
                let names = found.iter().map(|info| declare::identifier(&info.spec.name));
                about.insert("tools".into(), names.collect());
                Ok(Some(about.into()))
            }
            _ => {
                let options = given.get(1).cloned().unwrap_or_default();
                let limit = match options.get("limit") {
                    None | Some(Value::Null) => MATCHES,
                    Some(limit) => limit
                        .as_u64()
                        .filter(|limit| *limit > 0)
                        .ok_or("searchTools(): limit must be a whole number above 0")?,
                };
                let namespace = options.get("namespace").and_then(Value::as_str).map(declare::identifier);
                let is_in = |info: &&ToolInfo| match (&namespace, &info.namespace) {
                    (None, _) => true,
                    (Some(wanted), Some(own)) => is_called(own, wanted),
                    (Some(_), None) => false,
                };
                let infos: Vec<&ToolInfo> = infos.filter(is_in).collect();
                let documents: Vec<Document> = infos.iter().map(|info| Document::of(info)).collect();
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                let ranked = search::rank(name, &documents, limit);
                Ok(Some(ranked.iter().filter_map(|at| infos.get(*at)).map(|info| entry(info)).collect()))
            }
        }
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }

    /// Shows people the calls so far.
    pub(super) fn publish(&self) {
        let details = lock(&self.calls).details();
        (self.call.update)(ToolOutput { details: Some(details), ..ToolOutput::default() });
    }
}

/// True if `id` is a name of the namespace, as scripts write it.
fn is_called(namespace: &Namespace, id: &str) -> bool {
    let mut names = std::iter::once(&namespace.name).chain(&namespace.aliases);
    names.any(|name| declare::identifier(name) == id)
}

fn image_of(block: &Block) -> Option<(&str, &str)> {
    match block {
        Block::Image(image) => Some((&image.data, &image.mime_type)),
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
