//! `session.*`: the conversation, and changes to another one.

use super::{Answer, Call, Failure, INVALID_PARAMS, cancelled, failed, json_of, unknown};
use crate::base::json::json;
use crate::llm::message::Content;
use crate::runtime::control::{Streaming, Taken, user_message};
use crate::runtime::event::Event;
use crate::runtime::hook::{InputSource, custom_message};
use crate::runtime::task::{self, Ask, Delivery, Task};
use crossbeam_channel::{bounded, select};
use serde_json::Value;

impl Call<'_> {
    pub(super) fn session(&self, name: &str) -> Answer {
        let (control, params) = (self.control, self.params);
        match name {
            "state" => Ok(self.state()),
            "header" => json_of(control.log().header()),
            "entries" => {
                let since = params.optional_text("since")?;
                // The entry may be one of another session.
                let known = control.tree().entries(since);
                let since = since.filter(|_| known.is_some());
                let (entries, leaf) = known.or_else(|| control.tree().entries(None)).unwrap_or_default();
                let id = control.log().header().id.clone();
                Ok(json!({"entries": entries, "leafId": leaf, "sessionId": id, "since": since}))
            }
            "branch" => {
                let from = params.optional_text("from")?;
                let log = control.log();
                let index = log.index();
                let leaf = from.or(log.leaf()).and_then(|id| index.find(id));
                if let (Some(from), None) = (from, leaf) {
                    return Err(failed(format_args!("Entry not found: {from}")));
                }
                let entries: Vec<_> =
                    index.path(leaf).into_iter().filter_map(|position| log.entry_at(position)).collect();
                Ok(json!({"entries": entries}))
            }
            "messages" => Ok(json!({"messages": *control.messages()})),
            "tree" => {
                let (tree, leaf) = control.tree().json();
                let tree: Value = serde_json::from_str(&tree).map_err(failed)?;
                Ok(json!({"tree": tree, "leafId": leaf}))
            }
            "systemPrompt" => {
                if let Some(options) = params.get("options") {
                    return Ok(json!({"text": control.render_prompt(options).map_err(failed)?}));
                }
                let (text, sections) = control.system_prompt();
                Ok(json!({"text": text, "sections": sections, "options": control.prompt_options()}))
            }
            "sendMessage" => {
                let message = custom_message(params.required("message")?).ok_or_else(|| {
                    Failure::new(INVALID_PARAMS, "\"message\" must have a \"customType\" and a \"content\"")
                })?;
                let triggers = params.optional("triggerTurn")?;
                let delivery = match params.optional_text("deliverAs")? {
                    Some("nextTurn") => Delivery::NextTurn,
                    _ if triggers == Some(false) => Delivery::AfterTurn,
                    Some("followUp") => Delivery::Now(Streaming::FollowUp),
                    _ => Delivery::Now(Streaming::Steer),
                };
                let starts_none = triggers != Some(true) || control.snapshot().is_streaming;
                control.send(message, delivery, triggers == Some(true)).map_err(failed)?;
                self.await_run(starts_none)
            }
            "preview" => {
                let entries = params.get("entries").cloned().unwrap_or_else(|| json!([]));
                control.preview(params.text("event")?, &entries).map_err(failed)
            }
            "sendUserMessage" => self.send_user_message(),
            "appendEntry" => {
                let data = params.get("data").cloned();
                let id =
                    control.append_custom(params.text("customType")?.to_owned(), data).map_err(failed)?;
                Ok(json!({"id": id}))
            }
            "setName" => {
                let name = params.text("name")?;
                control.set_name(name, &mut |event| self.emit(event)).map_err(failed)?;
                Ok(Value::Null)
            }
            "setLabel" => {
                let label = params.optional_text("label")?;
                let entry = control.tree().set_label(params.text("entryId")?, label).map_err(failed)?;
                self.emit(&Event::EntryAppended { entry: &entry });
                Ok(Value::Null)
            }
            "abort" => {
                control.abort_work();
                Ok(Value::Null)
            }
            "shutdown" => {
                // Where prompts come from the command line, pi ends when they are done.
                let mode = self.extensions.state().about.mode;
                if !matches!(mode, "print" | "json") {
                    let root = control.root().clone();
                    control.when_idle(move || root.cancel());
                }
                Ok(Value::Null)
            }
            "waitForIdle" => {
                let (tell, idle) = bounded(1);
                control.when_idle(move || {
                    let _ = tell.try_send(());
                });
                select! {
                    recv(idle) -> _ => Ok(Value::Null),
                    recv(self.cancel.receiver()) -> _ => Err(cancelled()),
                }
            }
            "new" => {
                let parent = params.optional_text("parentSession")?.map(str::to_owned);
                let entries = params.optional("setup")?.map_or(Ok(Vec::new()), task::first_entries);
                let entries = entries.map_err(|fault| Failure::new(INVALID_PARAMS, fault))?;
                self.replace(Ask::New { parent, entries })
            }
            "switch" => self.replace(Ask::Switch(params.text("sessionPath")?.into())),
            "fork" => {
                let entry = params.text("entryId")?.to_owned();
                self.replace(match params.optional_text("position")? {
                    Some("at") => Ask::ForkAt(entry),
                    _ => Ask::ForkBefore(entry),
                })
            }
            "reload" => {
                control.may_reload().map_err(failed)?;
                self.on_session(Ask::Reload)
            }
            "compact" => {
                let instructions = params.optional_text("customInstructions")?.map(str::to_owned);
                self.on_session(Ask::Compact { instructions })
            }
            "navigate" => self.navigate(),
            _ => unknown(&format!("session.{name}")),
        }
    }

    fn state(&self) -> Value {
        let control = self.control;
        let now = control.snapshot();
        let leaf = control.log().leaf().map(str::to_owned);
        let usage = control.context_usage().map(|usage| {
            json!({"tokens": usage.tokens, "contextWindow": usage.window, "percent": usage.percent()})
        });
        let mut state = json!({
            "sessionId": now.session_id,
            "cwd": now.cwd.to_string_lossy(),
            "leafId": leaf,
            "isIdle": control.is_idle(),
            "hasPendingMessages": now.pending_message_count > 0,
            "model": now.model.shown(),
            "thinkingLevel": now.thinking,
            "activeTools": now.active_tools,
            "contextUsage": usage,
        });
        if let Some(path) = now.session_file {
            state["sessionFile"] = path.to_string_lossy().into();
        }
        if let Some(name) = now.session_name {
            state["sessionName"] = name.into();
        }
        state
    }

    fn send_user_message(&self) -> Answer {
        let params = self.params;
        let content: Content = params.required("content")?;
        let (text, images) = match content {
            Content::Text(text) => (text, Vec::new()),
            Content::Blocks(blocks) => {
                let (texts, others): (Vec<_>, Vec<_>) =
                    blocks.into_iter().partition(|block| block.as_text().is_some());
                let texts: Vec<&str> = texts.iter().filter_map(|block| block.as_text()).collect();
                (texts.join("\n"), others)
            }
        };
        let streaming = match params.optional_text("deliverAs")? {
            Some("steer") => Some(Streaming::Steer),
            Some("followUp") => Some(Streaming::FollowUp),
            _ => None,
        };
        if streaming.is_none() && self.control.snapshot().is_streaming {
            return Err(failed(
                "Agent is already processing. Specify deliverAs ('steer' or 'followUp') to queue the message.",
            ));
        }
        let expands = params.flag("expandPromptTemplates")?;
        let taken = match expands {
            true => self.control.take_input(text, images, InputSource::Extension, streaming, self.cancel),
            false => Taken::Goes(text, images),
        };
        let (mut text, images) = match taken {
            Taken::Goes(text, images) => (text, images),
            Taken::Handled => return Ok(Value::Null),
            Taken::Aborted => return Err(cancelled()),
        };
        if expands {
            text = self.control.expand(text).0;
        }
        let is_queued = self.control.snapshot().is_streaming;
        let delivery = Delivery::Now(streaming.unwrap_or(Streaming::Steer));
        self.control.send(user_message(text, images), delivery, true).map_err(failed)?;
        self.await_run(is_queued)
    }

    /// Waits for the end of the run that a message has started, if the call asks for that.
    fn await_run(&self, is_none: bool) -> Answer {
        match self.params.flag("wait")? && !is_none {
            true => self.on_session(Ask::Wait),
            false => Ok(Value::Null),
        }
    }

    fn navigate(&self) -> Answer {
        let params = self.params;
        let owned = |name: &str| params.optional_text(name).map(|text| text.map(str::to_owned));
        self.on_session(Ask::Navigate {
            target: params.text("targetId")?.to_owned(),
            summarize: params.flag("summarize")?,
            instructions: owned("customInstructions")?,
            replace_instructions: params.flag("replaceInstructions")?,
            label: owned("label")?,
        })
    }

    /// Ends the run and has the session go on with another conversation.
    fn replace(&self, ask: Ask) -> Answer {
        self.control.abort_work();
        self.on_session(ask)
    }

    /// Has the session's thread do something, and waits for that.
    fn on_session(&self, ask: Ask) -> Answer {
        let (tell, told) = bounded(1);
        self.control.hand_over(Task::Ask(ask, tell)).map_err(failed)?;
        select! {
            recv(told) -> answer => match answer {
                Ok(answer) => answer.map_err(failed),
                Err(_) => Err(failed("The session has ended")),
            },
            recv(self.cancel.receiver()) -> _ => Err(cancelled()),
        }
    }
}
