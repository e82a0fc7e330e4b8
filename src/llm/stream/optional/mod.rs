//! Optional parameters of a request, which are left out if a server rejects them by name.
//!
//! Gateways and compatible servers often reject parameters that the original server of a protocol accepts.
//! The rejected parameter is left out and the request is sent again. After a success the change is remembered
//! for the address and the model until the process ends: later requests are changed from the start, so that
//! each extends the previous one and the prompt cache stays valid.
//!
//! The user gets a notice about a parameter that represents a choice of the user. The parts of the
//! conversation are never left out. The output limit of chat completions is renamed instead.

use super::refusal::{self, BETA};
use crate::llm::body::{Body, Place};
use crate::llm::event::StreamError;
use crate::llm::limits;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::StreamOptions;
use serde_json::value::RawValue;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of changes to one request. A server may name one parameter at a time.
const ROUNDS_MAX: usize = 8;

/// Advice added to the error if a rejected parameter cannot be left out.
const ADVICE: &str =
    "(the switches under `compat` in models.json say what a server takes; see: pi docs models)";

#[derive(Debug, PartialEq)]
struct Parameter {
    /// Words that must all occur in the path that a server names.
    words: &'static [&'static str],
    /// Paths of the parameter in requests; `*` stands for each item of a list.
    places: &'static [Place],
    loss: Loss,
}

/// What the user loses without a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Nothing,
    Thinking,
    Choice,
}

const fn plain(words: &'static [&'static str], places: &'static [Place]) -> Parameter {
    Parameter { words, places, loss: Loss::Nothing }
}

const fn thinking(words: &'static [&'static str], places: &'static [Place]) -> Parameter {
    Parameter { words, places, loss: Loss::Thinking }
}

const fn chosen(words: &'static [&'static str], places: &'static [Place]) -> Parameter {
    Parameter { words, places, loss: Loss::Choice }
}

/// The first row whose words match is used: parts of a parameter come before the whole.
const PARAMETERS: &[Parameter] = &[
    plain(
        &["cache_control", "ttl"],
        &[
            &["system", "*", "cache_control", "ttl"],
            &["tools", "*", "cache_control", "ttl"],
            &["messages", "*", "content", "*", "cache_control", "ttl"],
        ],
    ),
    plain(
        &["cache_control"],
        &[
            &["system", "*", "cache_control"],
            &["tools", "*", "cache_control"],
            &["messages", "*", "content", "*", "cache_control"],
        ],
    ),
    plain(&["eager_input_streaming"], &[&["tools", "*", "eager_input_streaming"]]),
    plain(
        &["strict"],
        &[
            &["tools", "*", "strict"],
            &["tools", "*", "function", "strict"],
            &["toolConfig", "tools", "*", "toolSpec", "strict"],
        ],
    ),
    plain(&["reasoning", "summary"], &[&["reasoning", "summary"]]),
    plain(&["thinking", "clear_thinking"], &[&["thinking", "clear_thinking"]]),
    plain(
        &["thinking", "display"],
        &[&["thinking", "display"], &["additionalModelRequestFields", "thinking", "display"]],
    ),
    plain(&["include_thoughts"], &[&["generationConfig", "thinkingConfig", "includeThoughts"]]),
    thinking(&["thinking_config"], &[&["generationConfig", "thinkingConfig"]]),
    chosen(&["generation_config", "temperature"], &[&["generationConfig", "temperature"]]),
    thinking(&["chat_template_args"], &[&["chat_template_args"]]),
    thinking(&["chat_template_kwargs"], &[&["chat_template_kwargs"]]),
    thinking(&["enable_thinking"], &[&["enable_thinking"]]),
    thinking(&["output_config"], &[&["output_config"]]),
    thinking(&["prompt_mode"], &[&["prompt_mode"]]),
    thinking(&["reasoning"], &[&["reasoning"]]),
    thinking(&["reasoning_effort"], &[&["reasoning_effort"]]),
    thinking(&["thinking"], &[&["thinking"], &["additionalModelRequestFields", "thinking"]]),
    plain(&["include"], &[&["include"]]),
    plain(&["metadata"], &[&["metadata"]]),
    plain(&["parallel_tool_calls"], &[&["parallel_tool_calls"]]),
    plain(&["prompt_cache_key"], &[&["prompt_cache_key"]]),
    plain(&["prompt_cache_options"], &[&["prompt_cache_options"]]),
    plain(&["prompt_cache_retention"], &[&["prompt_cache_retention"]]),
    plain(&["return_progress"], &[&["return_progress"]]),
    plain(&[STORE], &[&[STORE]]),
    plain(&["stream_options"], &[&["stream_options"]]),
    plain(&["text"], &[&["text"]]),
    plain(&[TOOL_CHOICE], &[&[TOOL_CHOICE]]),
    plain(&["tool_stream"], &[&["tool_stream"]]),
    chosen(&["max_output_tokens"], &[&["max_output_tokens"]]),
    chosen(&["priority"], &[&["priority"]]),
    chosen(&["service_tier"], &[&["service_tier"]]),
    chosen(&["temperature"], &[&["temperature"]]),
];

const STORE: &str = "store";
const TOOL_CHOICE: &str = "tool_choice";

/// The names of the output limit in chat completions.
const LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// Fields that are never left out, not even if `samplingParams` name them.
const REQUIRED: &[&str] = &[
    "model",
    "messages",
    "input",
    "contents",
    "instructions",
    "system",
    "tools",
    "stream",
    LIMITS[0],
    LIMITS[1],
];

/// Values of the header `anthropic-beta` on which nothing in the body depends.
const BETAS: &[&str] = &["fine-grained-tool-streaming-2025-05-14", "interleaved-thinking-2025-05-14"];

#[derive(Clone, Debug, PartialEq)]
enum Edit {
    Drop(&'static Parameter),
    /// A parameter of `samplingParams`.
    DropNamed(String),
    Rename(&'static str, &'static str),
    Beta(&'static str),
}

/// A change that requests to an address need.
#[derive(Clone, Debug)]
struct Need {
    edit: Edit,
    /// True after a notice told the user about the change.
    told: bool,
}

/// The changes needed for an address and a model.
struct Learnt {
    url: String,
    model: String,
    needs: Vec<Need>,
}

static LEARNT: Mutex<Vec<Learnt>> = Mutex::new(Vec::new());

fn learnt() -> MutexGuard<'static, Vec<Learnt>> {
    LEARNT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adapts one request to its server.
pub(super) struct Fitting<'a> {
    model: &'a Model,
    options: &'a StreamOptions,
    url: &'a str,
    server: &'a str,
    needs: Vec<Need>,
    /// Names of removed parameters that the next notice to the user lists.
    missed: Vec<String>,
    rounds: usize,
}

impl<'a> Fitting<'a> {
    /// Applies the changes already known for the address.
    pub(super) fn new(
        model: &'a Model,
        options: &'a StreamOptions,
        url: &'a str,
        headers: &mut Vec<(String, String)>,
        body: &mut Body<'_>,
    ) -> Self {
        let url = url.split('?').next().unwrap_or(url); // keys may stand behind it
        let server = super::host_of(url).unwrap_or(&model.provider);
        let needs = {
            let learnt = learnt();
            let known = learnt.iter().find(|known| known.url == url && known.model == model.id);
            known.map_or_else(Vec::new, |known| known.needs.clone())
        };
        let mut fitting =
            Self { model, options, url, server, needs: Vec::new(), missed: Vec::new(), rounds: 0 };
        for need in needs {
            fitting.apply(&need, headers, body);
            fitting.needs.push(need);
        }
        fitting
    }

    /// Changes the request after an error status, if the error names optional parameters. False if nothing
    /// was changed: the error remains, with advice where that may help.
    pub(super) fn adapt(
        &mut self,
        error: &mut StreamError,
        said: &str,
        headers: &mut Vec<(String, String)>,
        body: &mut Body<'_>,
    ) -> bool {
        // Some gateways answer a rejection with status 500.
        if !matches!(error.status, Some(400 | 422 | 500 | 501)) {
            return false;
        }
        let named = refusal::named(said);
        let mut changed = false;
        let is_spent = self.rounds >= ROUNDS_MAX;
        for path in named.iter().filter(|_| !is_spent) {
            let edits = self.edits(path);
            let is_thinking = matches!(&edits[..], [Edit::Drop(meant)] if meant.loss == Loss::Thinking);
            let mut helped = self.learn(edits, headers, body);
            if !helped && is_thinking {
                // The name into which a gateway has translated the parameter.
                let others = PARAMETERS.iter().filter(|parameter| parameter.loss == Loss::Thinking);
                helped = self.learn(others.map(Edit::Drop), headers, body);
            }
            changed |= helped;
        }
        if changed {
            self.rounds += 1;
        } else if named.iter().any(|path| !REQUIRED.contains(&path[0].as_str()) && body.has(&path[0])) {
            error.message = format!("{} {ADVICE}", error.message);
        }
        changed
    }

    /// Applies those of `edits` that were not applied yet. False if none changes the request.
    fn learn(
        &mut self,
        edits: impl IntoIterator<Item = Edit>,
        headers: &mut Vec<(String, String)>,
        body: &mut Body<'_>,
    ) -> bool {
        let mut changed = false;
        for edit in edits {
            let need = Need { edit, told: false };
            if self.needs.iter().all(|known| known.edit != need.edit) && self.apply(&need, headers, body) {
                changed = true;
                self.needs.push(need);
            }
        }
        changed
    }

    /// Remembers the changes after a success. Returns a notice for the user, if any.
    pub(super) fn settle(mut self) -> Option<String> {
        if self.needs.is_empty() {
            return None;
        }
        for need in &mut self.needs {
            need.told = need.told || need.edit.name().is_some_and(|name| self.missed.contains(&name));
        }
        let mut learnt = learnt();
        learnt.retain(|known| known.url != self.url || known.model != self.model.id);
        let (url, model) = (self.url.to_owned(), self.model.id.clone());
        learnt.push(Learnt { url, model, needs: self.needs });
        let (server, model, missed) = (self.server, &self.model.id, self.missed.join(", "));
        (!missed.is_empty())
            .then(|| format!("{server} does not take {missed}: requests to {model} go without it"))
    }

    /// The changes that help if a server rejects the parameter at `path`.
    fn edits(&self, path: &[String]) -> Vec<Edit> {
        let first = path[0].as_str();
        if first == BETA {
            let flags = BETAS.iter().filter(|flag| path.get(1).is_none_or(|named| named == *flag));
            return flags.map(|flag| Edit::Beta(flag)).collect();
        }
        if self.model.api == "openai-completions"
            && path.len() == 1
            && let Some(at) = LIMITS.iter().position(|name| *name == first)
        {
            let other = Edit::Rename(LIMITS[1 - at], LIMITS[at]);
            let back = self.needs.iter().any(|need| need.edit == other);
            return if back { Vec::new() } else { vec![Edit::Rename(LIMITS[at], LIMITS[1 - at])] };
        }
        if let Some(parameter) = PARAMETERS.iter().find(|parameter| parameter.is_meant(path)) {
            return vec![Edit::Drop(parameter)];
        }
        let own = self.own_name(first).filter(|_| !REQUIRED.contains(&first));
        own.map(|name| Edit::DropNamed(name.to_owned())).into_iter().collect()
    }

    /// The parameter of `samplingParams` with this name in snake case.
    fn own_name(&self, name: &str) -> Option<&str> {
        let mut own = limits::sampling_params(self.model, self.options);
        own.find(|(known, _)| refusal::snake(known) == name).map(|(known, _)| known.as_str())
    }

    /// Applies one change. False if the request does not contain the parameter.
    fn apply(&mut self, need: &Need, headers: &mut Vec<(String, String)>, body: &mut Body<'_>) -> bool {
        let changed = match &need.edit {
            Edit::Drop(parameter) if self.must_keep(parameter, body) => false,
            Edit::Drop(parameter) => {
                let removed = parameter.places.iter().filter(|place| body.remove_at(place));
                removed.count() > 0
            }
            Edit::DropNamed(name) => body.remove(name),
            Edit::Rename(from, to) => !body.has(to) && body.rename(from, to),
            Edit::Beta(flag) => remove_beta(headers, flag),
        };
        if changed && !need.told && self.is_missed(&need.edit) {
            self.missed.extend(need.edit.name().filter(|name| !self.missed.contains(name)));
        }
        changed
    }

    /// True if `parameter` cannot be left out of this request without changing its meaning.
    fn must_keep(&self, parameter: &Parameter, body: &Body<'_>) -> bool {
        match *parameter.words {
            // A tool call was required or forbidden.
            [TOOL_CHOICE] => {
                let choice = body.get(TOOL_CHOICE).map(RawValue::get);
                choice.is_none_or(|choice| !choice.contains("\"auto\""))
            }
            // Without `store` these servers keep the conversation.
            [STORE] => {
                let keepers = ["api.openai.com", "chatgpt.com", ".openai.azure.com"];
                self.is_responses() && keepers.iter().any(|host| self.server.ends_with(host))
            }
            _ => false,
        }
    }

    fn is_responses(&self) -> bool {
        self.model.api.ends_with("-responses")
    }

    /// True if the user chose the parameter that `edit` removes.
    fn is_missed(&self, edit: &Edit) -> bool {
        match edit {
            Edit::DropNamed(_) => true,
            Edit::Rename(..) | Edit::Beta(_) => false,
            Edit::Drop(parameter) => {
                let own = parameter.places[0].len() == 1 && self.own_name(parameter.words[0]).is_some();
                own || match parameter.loss {
                    // A server of this protocol keeps conversations unless told otherwise.
                    Loss::Nothing => *parameter.words == [STORE] && self.is_responses(),
                    Loss::Thinking => self.options.thinking != ThinkingLevel::Off,
                    Loss::Choice => true,
                }
            }
        }
    }
}

impl Edit {
    /// Name of the parameter that is left out.
    fn name(&self) -> Option<String> {
        match self {
            Self::Drop(parameter) => Some(parameter.words.join(".")),
            Self::DropNamed(name) => Some(name.clone()),
            Self::Rename(..) | Self::Beta(_) => None,
        }
    }
}

impl Parameter {
    /// True if `path`, as named by a server, means this parameter or a part of it.
    fn is_meant(&self, path: &[String]) -> bool {
        let is_nested = self.places[0].len() > 1;
        self.words.iter().all(|word| path.iter().any(|part| part == word))
            && (is_nested || path[0] == self.words[0])
    }
}

fn remove_beta(headers: &mut Vec<(String, String)>, flag: &str) -> bool {
    let Some(at) = headers.iter().position(|(name, _)| name.eq_ignore_ascii_case(BETA)) else {
        return false;
    };
    let flags: Vec<&str> = headers[at].1.split(',').map(str::trim).collect();
    if !flags.contains(&flag) {
        return false;
    }
    let left: Vec<&str> = flags.into_iter().filter(|known| *known != flag).collect();
    if left.is_empty() {
        headers.remove(at);
    } else {
        headers[at].1 = left.join(",");
    }
    true
}

#[cfg(test)]
mod tests;
