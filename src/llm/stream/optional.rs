//! Parameters that a request can do without, and what is done when a server refuses one by name.
//!
//! Protocols write requests as their originals take them; gateways and other servers that speak the same
//! protocol often refuse what they do not know. The refused parameter is left out and the request is sent
//! again. Once a request has gone through, what was left out is remembered for the address and the model as
//! long as the process lives: later requests go without it from the start, so that each extends the one
//! before and the prompt cache holds.
//!
//! A parameter that stands for something the user chose goes with a notice, others go silently. What the
//! conversation is made of is never left out. The limit of the answer gets its other name, where it has one.

use super::refusal::{self, BETA};
use crate::llm::body::Body;
use crate::llm::event::StreamError;
use crate::llm::limits;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::StreamOptions;
use serde_json::value::RawValue;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often one request is changed. A server may name one parameter at a time.
const ROUNDS_MAX: usize = 8;

/// What is said of a refusal that stays an error.
const ADVICE: &str =
    "(the switches under `compat` in models.json say what a server takes; see: pi docs models)";

#[derive(Debug, PartialEq)]
struct Parameter {
    /// All of them stand in the path that a server names.
    words: &'static [&'static str],
    /// Where requests have it; `*` is each item of a list.
    places: &'static [&'static [&'static str]],
    loss: Loss,
}

/// What the user loses with a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Nothing,
    Thinking,
    Choice,
}

const fn plain(words: &'static [&'static str], places: &'static [&'static [&'static str]]) -> Parameter {
    Parameter { words, places, loss: Loss::Nothing }
}

const fn thinking(words: &'static [&'static str], places: &'static [&'static [&'static str]]) -> Parameter {
    Parameter { words, places, loss: Loss::Thinking }
}

const fn chosen(words: &'static [&'static str], places: &'static [&'static [&'static str]]) -> Parameter {
    Parameter { words, places, loss: Loss::Choice }
}

/// The first row whose words fit is taken: parts of a parameter stand before the whole.
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
    plain(&["strict"], &[&["tools", "*", "strict"], &["tools", "*", "function", "strict"]]),
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

/// What chat completions call the limit of the answer.
const LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// Never left out, not even where `samplingParams` name them.
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

/// Values of the header `anthropic-beta` that nothing in the body depends on.
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
    /// The user has been told.
    told: bool,
}

/// What was learnt about an address and a model.
struct Learnt {
    url: String,
    model: String,
    needs: Vec<Need>,
}

static LEARNT: Mutex<Vec<Learnt>> = Mutex::new(Vec::new());

fn learnt() -> MutexGuard<'static, Vec<Learnt>> {
    LEARNT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request on its way to what the server takes.
pub(super) struct Fitting<'a> {
    model: &'a Model,
    options: &'a StreamOptions,
    url: &'a str,
    server: &'a str,
    needs: Vec<Need>,
    /// Names of parameters that are missed and that the user has not been told of.
    missed: Vec<String>,
    rounds: usize,
}

impl<'a> Fitting<'a> {
    /// Takes out of the request what its address is known to refuse.
    pub(super) fn new(
        model: &'a Model,
        options: &'a StreamOptions,
        url: &'a str,
        headers: &mut Vec<(String, String)>,
        body: &mut Vec<u8>,
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
        if !needs.is_empty()
            && let Ok(mut parsed) = serde_json::from_slice::<Body>(body)
        {
            for need in needs {
                fitting.apply(&need, headers, &mut parsed);
                fitting.needs.push(need);
            }
            *body = parsed.into_bytes();
        }
        fitting
    }

    /// Changes the request after an error status, if the error names parameters that can be missed. False
    /// when nothing was changed: the error stays, with advice where that may help.
    pub(super) fn adapt(
        &mut self,
        error: &mut StreamError,
        said: &str,
        headers: &mut Vec<(String, String)>,
        body: &mut Vec<u8>,
    ) -> bool {
        // 500 is what some gateways make of a refusal.
        if !matches!(error.status, Some(400 | 422 | 500 | 501)) {
            return false;
        }
        let named = refusal::named(said);
        let Some(mut parsed) =
            (!named.is_empty()).then(|| serde_json::from_slice::<Body>(body).ok()).flatten()
        else {
            return false;
        };
        let mut changed = false;
        let is_spent = self.rounds >= ROUNDS_MAX;
        for path in named.iter().filter(|_| !is_spent) {
            let edits = self.edits(path);
            let is_thinking = matches!(&edits[..], [Edit::Drop(meant)] if meant.loss == Loss::Thinking);
            let mut helped = self.learn(edits, headers, &mut parsed);
            if !helped && is_thinking {
                // The name that a gateway has translated ours to.
                let others = PARAMETERS.iter().filter(|parameter| parameter.loss == Loss::Thinking);
                helped = self.learn(others.map(Edit::Drop), headers, &mut parsed);
            }
            changed |= helped;
        }
        if changed {
            self.rounds += 1;
            *body = parsed.into_bytes();
        } else if named.iter().any(|path| !REQUIRED.contains(&path[0].as_str()) && parsed.has(&path[0])) {
            error.message = format!("{} {ADVICE}", error.message);
        }
        changed
    }

    /// Makes those of `edits` that were not made yet. False when none changes the request.
    fn learn(
        &mut self,
        edits: impl IntoIterator<Item = Edit>,
        headers: &mut Vec<(String, String)>,
        body: &mut Body,
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

    /// The request went through: what it needed is remembered. Gives what the user should know.
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

    /// What helps against a refusal of the parameter at `path`.
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

    /// The parameter of `samplingParams` that `name` means.
    fn own_name(&self, name: &str) -> Option<&str> {
        let mut own = limits::sampling_params(self.model, self.options);
        own.find(|(known, _)| refusal::snake(known) == name).map(|(known, _)| known.as_str())
    }

    /// Makes one change. False when there is nothing to change in this request.
    fn apply(&mut self, need: &Need, headers: &mut Vec<(String, String)>, body: &mut Body) -> bool {
        let changed = match &need.edit {
            Edit::Drop(parameter) if self.must_keep(parameter, body) => false,
            Edit::Drop(parameter) => {
                let removed = parameter.places.iter().filter(|place| body.remove_at(place));
                removed.count() > 0
            }
            Edit::DropNamed(name) => body.remove(name).is_some(),
            Edit::Rename(from, to) => !body.has(to) && body.rename(from, to),
            Edit::Beta(flag) => remove_beta(headers, flag),
        };
        if changed && !need.told && self.is_missed(&need.edit) {
            self.missed.extend(need.edit.name().filter(|name| !self.missed.contains(name)));
        }
        changed
    }

    /// Whether `parameter` carries more in this request than the server's habit.
    fn must_keep(&self, parameter: &Parameter, body: &Body) -> bool {
        match *parameter.words {
            // A call was demanded or forbidden.
            [TOOL_CHOICE] => {
                let choice = body.get(TOOL_CHOICE).map(RawValue::get);
                choice.is_none_or(|choice| !choice.contains("\"auto\""))
            }
            // Without it they keep the conversation.
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

    /// Whether the user chose what `edit` takes away.
    fn is_missed(&self, edit: &Edit) -> bool {
        match edit {
            Edit::DropNamed(_) => true,
            Edit::Rename(..) | Edit::Beta(_) => false,
            Edit::Drop(parameter) => {
                let own = parameter.places[0].len() == 1 && self.own_name(parameter.words[0]).is_some();
                own || match parameter.loss {
                    // A server of this protocol keeps conversations unless it is told not to.
                    Loss::Nothing => *parameter.words == [STORE] && self.is_responses(),
                    Loss::Thinking => self.options.thinking != ThinkingLevel::Off,
                    Loss::Choice => true,
                }
            }
        }
    }
}

impl Edit {
    /// Of the parameter that is left out.
    fn name(&self) -> Option<String> {
        match self {
            Self::Drop(parameter) => Some(parameter.words.join(".")),
            Self::DropNamed(name) => Some(name.clone()),
            Self::Rename(..) | Self::Beta(_) => None,
        }
    }
}

impl Parameter {
    /// Whether a server that names `path` means this parameter, or something inside it.
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
mod tests {
    use super::*;
    use crate::llm::event::ErrorKind;
    use crate::llm::options::ToolChoice;
    use serde_json::{Value, json};

    struct Case {
        model: Model,
        options: StreamOptions,
        url: String,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    }

    /// A request to an address that no other test uses.
    fn request(url: &str, api: &str, body: &str) -> Case {
        Case {
            model: Model { id: "m1".into(), api: api.into(), ..Model::default() },
            options: StreamOptions::default(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    impl Case {
        /// Sends the request to a server that refuses `names`, one after another, in Anthropic's form. Gives
        /// the body that went through, or the error, and the notice.
        fn send(&self, names: &[&str]) -> (Result<String, String>, Option<String>) {
            let (mut headers, mut body) = (self.headers.clone(), self.body.clone());
            let mut fitting = Fitting::new(&self.model, &self.options, &self.url, &mut headers, &mut body);
            for name in names {
                let message = format!("{name}: Extra inputs are not permitted");
                let said = json!({"error": {"message": message}}).to_string();
                let mut error =
                    StreamError { status: Some(400), ..StreamError::new(ErrorKind::Provider, "400 no") };
                if !fitting.adapt(&mut error, &said, &mut headers, &mut body) {
                    return (Err(error.message), None);
                }
            }
            (Ok(String::from_utf8(body).unwrap()), fitting.settle())
        }
    }

    #[test]
    fn a_refused_parameter_goes_and_the_rest_stays_as_it_was() {
        let body = r#"{"model":"m1","messages":[{"a":1.0e3}],"store":false,"stream_options":{"x":1}}"#;
        let case = request("http://one.test/a?key=k", "openai-completions", body);
        let left = r#"{"model":"m1","messages":[{"a":1.0e3}],"stream_options":{"x":1}}"#;
        assert_eq!(case.send(&["store"]), (Ok(left.to_owned()), None));
        // The next request goes without it from the start, to this address and model only.
        assert_eq!(case.send(&[]).0.unwrap(), left);
        let other = request("http://one.test/b", "openai-completions", body);
        assert_eq!(other.send(&[]).0.unwrap(), body);
        let other = Case { model: Model { id: "m2".into(), ..case.model.clone() }, ..case };
        assert_eq!(other.send(&[]).0.unwrap(), body);
    }

    #[test]
    fn where_parameters_stand() {
        let rows = [
            (
                "tools.0.function.strict",
                json!({"tools": [{"function": {"strict": true, "a": 1}}, {"b": 2}]}),
                json!({"tools": [{"function": {"a": 1}}, {"b": 2}]}),
            ),
            (
                "tools.3.custom.strict",
                json!({"tools": [{"strict": true, "a": 1}]}),
                json!({"tools": [{"a": 1}]}),
            ),
            (
                "tools.0.custom.eager_input_streaming",
                json!({"tools": [{"eager_input_streaming": true}]}),
                json!({"tools": [{}]}),
            ),
            (
                "messages.0.content.0.text.cache_control.ttl",
                json!({"messages": [{"content": [{"cache_control": {"type": "e", "ttl": "1h"}}]}, {"content": "x"}]}),
                json!({"messages": [{"content": [{"cache_control": {"type": "e"}}]}, {"content": "x"}]}),
            ),
            (
                "system.0.cache_control",
                json!({"system": [{"cache_control": {}}], "tools": [{"cache_control": {}}]}),
                json!({"system": [{}], "tools": [{}]}),
            ),
            ("text.verbosity", json!({"text": {"verbosity": "low"}}), json!({})),
            (
                "reasoning.summary",
                json!({"reasoning": {"effort": "low", "summary": "auto"}}),
                json!({"reasoning": {"effort": "low"}}),
            ),
            ("reasoning.effort", json!({"reasoning": {"effort": "low", "summary": "auto"}}), json!({})),
            (
                "generation_config.thinking_config.thinking_level",
                json!({"generationConfig": {"a": 1, "thinkingConfig": {"thinkingLevel": "LOW"}}}),
                json!({"generationConfig": {"a": 1}}),
            ),
            (
                "max_completion_tokens",
                json!({"max_completion_tokens": 5, "z": 1}),
                json!({"max_tokens": 5, "z": 1}),
            ),
            ("max_tokens", json!({"max_tokens": 5}), json!({"max_completion_tokens": 5})),
            ("tool_choice", json!({"tool_choice": "auto"}), json!({})),
            ("toolChoice", json!({"tool_choice": {"type": "auto"}}), json!({})),
        ];
        for (number, (name, before, after)) in rows.iter().enumerate() {
            let url = format!("http://places.test/{number}");
            let case = request(&url, "openai-completions", &before.to_string());
            let left: Value = serde_json::from_str(&case.send(&[name]).0.expect(name)).unwrap();
            assert_eq!(left, *after, "{name}");
        }
    }

    #[test]
    fn what_a_request_is_made_of_is_never_left_out() {
        let body = json!({"model": "m", "messages": [{"reasoning": 1}], "tools": [{"store": 1}], "stream": true,
            "max_tokens": 5, "tool_choice": "required", "reasoning": {}, "store": true, "provider": {}});
        for (api, name, is_advised) in [
            ("anthropic-messages", "model", false),
            ("anthropic-messages", "messages", false),
            ("anthropic-messages", "tools", false),
            ("anthropic-messages", "max_tokens", false),
            ("anthropic-messages", "tool_choice", true),
            ("anthropic-messages", "provider", true),
            ("anthropic-messages", "nothing_of_ours", false),
            ("openai-completions", "stream", false),
            ("openai-completions", "messages.0.reasoning", false),
            ("openai-completions", "tools.0.store", false),
            ("openai-responses", "store", true),
        ] {
            let case = request("https://api.openai.com/v1", api, &body.to_string());
            let mut expected = "400 no".to_owned();
            if is_advised {
                expected = format!("{expected} {ADVICE}");
            }
            assert_eq!(case.send(&[name]), (Err(expected), None), "{api} {name}");
        }
    }

    #[test]
    fn the_limit_is_renamed_once_and_never_back() {
        let case = request("http://limit.test/", "openai-completions", r#"{"max_completion_tokens":5}"#);
        assert!(case.send(&["max_completion_tokens", "max_tokens"]).0.is_err());
        // A request that failed teaches nothing.
        assert_eq!(case.send(&[]).0.unwrap(), r#"{"max_completion_tokens":5}"#);
    }

    #[test]
    fn a_server_that_refuses_the_same_thing_again_is_not_asked_for_ever() {
        let case = request("http://again.test/", "openai-completions", r#"{"store":false}"#);
        assert!(case.send(&["store", "store"]).0.is_err());
        let names: Vec<&Parameter> = PARAMETERS.iter().filter(|row| row.places[0].len() == 1).collect();
        let names: Vec<&str> = names.iter().map(|row| row.words[0]).take(ROUNDS_MAX + 1).collect();
        let body: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!("auto"))).collect();
        let case = request("http://again.test/", "openai-completions", &Value::from(body).to_string());
        assert!(case.send(&names[..ROUNDS_MAX]).0.is_ok());
        let case = Case { url: "http://again.test/b".into(), ..case };
        assert!(case.send(&names).0.is_err());
    }

    #[test]
    fn only_what_the_user_chose_goes_with_a_notice_and_once() {
        let body = r#"{"reasoning_effort":"low","top_k":3,"seed":1}"#;
        let mut case = request("http://host.test:1/", "openai-completions", body);
        let own = json!({"topK": 3, "top_k": 3, "seed": 1});
        assert_eq!(case.send(&["reasoning_effort"]).1, None);
        // The parameter is known to be refused, and now it is missed.
        case.options.thinking = ThinkingLevel::High;
        let said = |names: &str| format!("host.test does not take {names}: requests to m1 go without it");
        assert_eq!(case.send(&[]), (Ok(r#"{"top_k":3,"seed":1}"#.into()), Some(said("reasoning_effort"))));
        assert_eq!(case.send(&[]).1, None);
        case.options.sampling_params = own.as_object().unwrap().clone();
        case.options.sampling_params.remove("topK");
        assert_eq!(case.send(&["top_k", "seed"]), (Ok("{}".into()), Some(said("top_k, seed"))));
        assert_eq!(case.send(&[]), (Ok("{}".into()), None));

        let mut case = request("http://host.test:2/", "openai-responses", r#"{"store":false}"#);
        assert_eq!(case.send(&["store"]).1, Some(said("store")));
        case.url = "http://host.test:3/".into();
        case.model.api = "openai-completions".into();
        assert_eq!(case.send(&["store"]).1, None);
        case.url = "http://host.test:4/".into();
        case.body = r#"{"temperature":1}"#.into();
        assert_eq!(case.send(&["temperature"]).1, Some(said("temperature")));
    }

    #[test]
    fn thinking_is_known_by_the_name_that_a_gateway_gives_it() {
        let body = r#"{"a":1,"thinking":{"type":"enabled"},"output_config":{"effort":"low"}}"#;
        let mut sent = request("http://translated.test/", "anthropic-messages", body);
        sent.options.thinking = ThinkingLevel::Low;
        let (left, notice) = sent.send(&["reasoning.effort"]);
        assert_eq!(left.unwrap(), r#"{"a":1}"#);
        assert!(notice.unwrap().contains("thinking"));
    }

    #[test]
    fn a_demand_for_a_call_is_kept_where_the_choice_is_refused() {
        let mut case = request("http://choice.test/", "openai-completions", r#"{"tool_choice":"auto"}"#);
        case.options.tool_choice = Some(ToolChoice::Auto);
        assert_eq!(case.send(&["tool_choice"]), (Ok("{}".into()), None));
        case.body = r#"{"tool_choice":"required"}"#.into();
        assert_eq!(case.send(&[]).0.unwrap(), r#"{"tool_choice":"required"}"#);
    }

    #[test]
    fn betas_are_taken_out_of_their_header() {
        let (fine, tongue) = (BETAS[0], "oauth-2025-04-20");
        let headers = |value: &str| vec![("anthropic-beta".to_owned(), value.to_owned())];
        let case = request("http://beta.test/", "anthropic-messages", "{}");
        for (before, said, after) in [
            (format!("{tongue},{fine}"), "invalid beta flag".to_owned(), headers(tongue)),
            (
                fine.to_owned(),
                format!("Unexpected value(s) `{fine}` for the `anthropic-beta` header"),
                Vec::new(),
            ),
        ] {
            let (mut sent, mut body) = (headers(&before), b"{}".to_vec());
            let mut error = StreamError { status: Some(400), ..StreamError::new(ErrorKind::Provider, "no") };
            let mut fitting = Fitting::new(&case.model, &case.options, &case.url, &mut sent, &mut body);
            assert!(fitting.adapt(&mut error, &said, &mut sent, &mut body));
            assert_eq!(sent, after);
            assert!(!fitting.adapt(&mut error, &said, &mut sent, &mut body));
        }
    }
}
