//! What others add to a session, and how prompts, messages and work of theirs reach it.

use super::Control;
use crate::agent::message::AgentMessage;
use crate::agent::tool::Tool;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::Block;
use crate::resources::prompt::PromptOptions;
use crate::runtime::addition::{Addition, Completer, NamedCommand, OWN, Owner, Renderer, SlashCommand};
use crate::runtime::ask;
use crate::runtime::hook::{Flow, Hooked, Hooks, InputSource, custom_message, read};
use crate::runtime::lent::RegisteredServer;
use crate::runtime::task::{Streaming, Taken};
use crate::runtime::ui::{Change, Problem, Ui};
use serde_json::Value;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

impl Control {
    /// Replaces what `owner` adds to the session, from the next request on.
    pub fn set_addition(&self, owner: Owner, addition: Addition) {
        let mut state = self.state();
        let before = state.tools.clone();
        state.set_addition(owner, addition);
        let specs =
            |tools: &[Arc<dyn Tool>]| tools.iter().map(|tool| tool.info().spec.clone()).collect::<Vec<_>>();
        let is_other = specs(&before) != specs(&state.tools);
        drop(state);
        if is_other && let Some(ui) = self.ui() {
            ui.show(Change::Tools);
        }
    }

    /// Takes away what `owner` added.
    pub fn remove_addition(&self, owner: &Owner) {
        self.state().remove_addition(owner);
    }

    /// The slash commands that were added.
    pub fn added_commands(&self) -> Vec<NamedCommand> {
        self.state().additions.commands()
    }

    /// The MCP servers that extensions bring.
    pub fn registered_servers(&self) -> Vec<RegisteredServer> {
        self.state().additions.servers().into_iter().cloned().collect()
    }

    /// Parts that propose texts for the editor.
    pub fn completers(&self) -> Vec<Arc<dyn Completer>> {
        self.state().additions.completers()
    }

    /// The part that draws such parts of the conversation in place of the program; see [`Renderer::draws`].
    pub fn renderer(&self, kind: &str, name: &str) -> Option<Arc<dyn Renderer>> {
        self.state().additions.renderer(kind, name)
    }

    /// The added command that `text` calls, and its arguments.
    pub fn added_command(&self, text: &str) -> Option<(NamedCommand, String)> {
        let call = text.strip_prefix('/')?;
        let (name, arguments) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
        let command = self.added_commands().into_iter().find(|command| command.name == name)?;
        Some((command, arguments.to_owned()))
    }

    /// The action that was added for the key that `is_pressed` knows.
    pub fn added_shortcut(&self, is_pressed: impl Fn(&str) -> bool) -> Option<Arc<dyn SlashCommand>> {
        let state = self.state();
        let mut shortcuts = state.additions.shortcuts();
        shortcuts.find(|(key, _)| is_pressed(key)).map(|(_, action)| action.clone())
    }

    /// Where the tool with this name comes from; none for a built-in one.
    pub fn tool_source(&self, name: &str) -> Option<Value> {
        self.state().additions.source(name).filter(|source| !source.is_null()).cloned()
    }

    /// Sets the surface that reaches the user. The tool that asks him is offered if he can answer.
    pub fn set_ui(&self, ui: Arc<dyn Ui>) {
        if ui.is_attended() {
            let limit = self.config().settings.number("ask.timeoutSeconds");
            let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let addition = ask::addition(ui.clone(), limit);
            self.set_addition(Owner { rank: OWN, name: ask::NAME.into() }, addition);
        }
        *self.0.ui.lock().unwrap_or_else(PoisonError::into_inner) = Some(ui);
        if self.is_planning() {
            self.show_planning();
        }
    }

    pub fn ui(&self) -> Option<Arc<dyn Ui>> {
        self.0.ui.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a group of handlers.
    pub fn add_hooks(&self, hooks: Arc<dyn Hooks>) {
        self.0.hooks.lock().unwrap_or_else(PoisonError::into_inner).0.push(hooks);
    }

    pub(crate) fn hooked(&self) -> Hooked {
        self.0.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Names of handlers that are being started and that a prompt is to wait for.
    pub fn settling(&self) -> Vec<String> {
        self.hooked().0.iter().flat_map(|hooks| hooks.settling()).collect()
    }

    /// Begins a wait for handlers that are being started. From now on an abort ends it.
    pub fn begin_settling(&self) -> CancelToken {
        let cancel = self.0.root.child();
        self.state().waits.push(cancel.clone());
        cancel
    }

    /// Waits for handlers outside of a run, until `cancel` is cancelled or the user aborts.
    pub(crate) fn wait_for_handlers<T>(
        &self,
        cancel: &CancelToken,
        wait: impl FnOnce(&CancelToken) -> T,
    ) -> T {
        let cancel = cancel.child();
        self.state().waits.push(cancel.clone());
        let done = wait(&cancel);
        self.state().waits.retain(|known| !known.is(&cancel));
        done
    }

    /// True while something waits for handlers that an abort would end.
    pub fn waits_for_handlers(&self) -> bool {
        !self.state().waits.is_empty()
    }

    /// Waits a moment for handlers that are being started.
    pub fn settle_hooks(&self, begun: &CancelToken) {
        self.hooked().0.iter().for_each(|hooks| hooks.settle(begun));
        self.state().waits.retain(|wait| !wait.is(begun));
    }

    /// Has handlers begin anew for a session that takes the place of another. An abort ends the wait.
    pub fn renew_hooks(&self) {
        let hooked = self.hooked();
        self.wait_for_handlers(&self.0.root, |cancel| {
            hooked.0.iter().for_each(|hooks| hooks.clone().renew(cancel));
        });
    }

    /// True while handlers are being started that may add to the session.
    pub fn has_hooks_to_come(&self) -> bool {
        self.hooked().0.iter().any(|hooks| hooks.is_to_come())
    }

    /// Waits until all handlers have been started, for a time that a person waits.
    pub fn await_hooks(&self, cancel: &CancelToken) {
        self.hooked().0.iter().for_each(|hooks| hooks.await_all(cancel));
    }

    pub(crate) fn close_hooks(&self) {
        self.hooked().0.iter().for_each(|hooks| hooks.close());
    }

    /// True if somebody looks at keys before the screen does.
    pub fn takes_keys(&self) -> bool {
        self.hooked().wants("terminal_input")
    }

    /// What is left of typed text when all have looked at it: none if it is dealt with. Waits for others.
    pub fn look_at_keys(&self, data: String) -> Option<String> {
        let mut is_consumed = false;
        let fields = || json!({"data": data});
        let event = self.hooked().ask("terminal_input", fields, self.root(), &mut |event, result| {
            let Ok(mut result) = result else { return Flow::Next };
            if result["consume"] == true {
                is_consumed = true;
                return Flow::Stop;
            }
            if let Some(data) = result.get_mut("data").filter(|data| data.is_string()) {
                event["data"] = data.take();
            }
            Flow::Next
        });
        let left = event.and_then(|event| event["data"].as_str().map(str::to_owned)).unwrap_or(data);
        (!is_consumed).then_some(left)
    }

    /// True if somebody wants to know of another theme.
    pub fn takes_theme(&self) -> bool {
        self.hooked().wants("theme_changed")
    }

    /// Tells that the screen has another theme.
    pub fn tell_theme(&self, name: &str) {
        self.hooked().tell("theme_changed", || json!({"name": name}), self.root());
    }

    /// True if a prompt has to wait for others before it is taken: it calls an added command, or is looked at.
    pub fn is_looked_at(&self, text: &str) -> bool {
        self.added_command(text).is_some() || self.hooked().wants("input")
    }

    /// Runs the added command that `text` calls, or lets handlers look at the text. Waits for others: not for the
    /// session's thread.
    pub fn take_input(
        &self,
        text: String,
        images: Vec<Block>,
        source: InputSource,
        streaming: Option<Streaming>,
        cancel: &CancelToken,
    ) -> Taken {
        if let Some((named, arguments)) = self.added_command(&text) {
            if let Err(error) = named.command.run(&arguments, cancel) {
                let source = format!("command:{}", named.name);
                self.report(&Problem { source, event: "command".into(), error });
            }
            return Taken::Handled;
        }
        let streaming = streaming.map(|streaming| match streaming {
            Streaming::Steer => "steer",
            Streaming::FollowUp => "followUp",
        });
        let mut is_handled = false;
        let fields = || {
            let mut fields = json!({"text": text, "source": source.name()});
            if !images.is_empty() {
                fields["images"] = json!(images);
            }
            if let Some(streaming) = streaming.filter(|_| !self.is_idle()) {
                fields["streamingBehavior"] = streaming.into();
            }
            fields
        };
        let mut fold = |event: &mut Value, result: Result<Value, String>| {
            let mut result = result.unwrap_or_default();
            match result["action"].as_str() {
                Some("handled") => {
                    is_handled = true;
                    return Flow::Stop;
                }
                Some("transform") => {
                    for name in ["text", "images"] {
                        if let Some(value) = result.get_mut(name).filter(|value| !value.is_null()) {
                            event[name] = value.take();
                        }
                    }
                }
                _ => {}
            }
            Flow::Next
        };
        let (event, is_aborted) = self.wait_for_handlers(cancel, |cancel| {
            (self.hooked().ask("input", fields, cancel, &mut fold), cancel.is_cancelled())
        });
        match event {
            _ if is_handled => Taken::Handled,
            _ if is_aborted => Taken::Aborted,
            None => Taken::Goes(text, images),
            Some(mut event) => {
                let images = event.get_mut("images").and_then(|images| read(images.take())).unwrap_or(images);
                Taken::Goes(event["text"].as_str().map_or(text, str::to_owned), images)
            }
        }
    }

    /// Asks what is to be added to the run of `message`, and takes up what handlers make of the system prompt and the
    /// tools.
    pub(crate) fn prepare_run(&self, message: &AgentMessage, cancel: &CancelToken) -> Vec<AgentMessage> {
        let mut messages = Vec::new();
        let hooked = self.hooked();
        if !hooked.wants("before_agent_start") {
            return messages;
        }
        let before = self.prompt_options();
        let fields = || {
            let mut fields = match message {
                AgentMessage::User(user) => {
                    let blocks = user.content.to_blocks();
                    let images: Vec<&Block> =
                        blocks.iter().filter(|block| matches!(block, Block::Image(_))).collect();
                    let text: String = blocks.iter().filter_map(Block::as_text).collect();
                    let mut fields = json!({"messageType": "user", "prompt": text});
                    if !images.is_empty() {
                        fields["images"] = json!(images);
                    }
                    fields
                }
                message => json!({"messageType": "custom", "message": message}),
            };
            fields["systemPrompt"] = self.system_prompt().0.into();
            fields["systemPromptOptions"] = before.clone();
            fields
        };
        let mut options = before.clone();
        hooked.ask("before_agent_start", fields, cancel, &mut |event, result| {
            let Ok(Value::Object(mut result)) = result else { return Flow::Next };
            let mut given: Vec<Value> = result.remove("message").into_iter().collect();
            if let Some(Value::Array(more)) = result.remove("messages") {
                given = more;
            }
            messages.extend(given.into_iter().filter(Value::is_object).filter_map(custom_message));
            let mut changed = options.clone();
            if let (Value::Object(changed), Some(Value::Object(fields))) =
                (&mut changed, result.remove("systemPromptOptions"))
            {
                changed.extend(fields);
            }
            if let Some(text @ Value::String(_)) = result.remove("systemPrompt") {
                changed["forceSystemPrompt"] = text;
            }
            if changed == options {
                return Flow::Next;
            }
            match self.render_prompt(&changed) {
                Ok(text) => event["systemPrompt"] = text.into(),
                Err(why) => return Flow::Fault(why),
            }
            options = changed;
            event["systemPromptOptions"] = options.clone();
            Flow::Next
        });
        // What handlers have sent goes with the first request.
        self.queues().steering.mark();
        if options != before
            && let Some(options) = read::<PromptOptions>(options)
        {
            if before["selectedTools"] != json!(options.selected_tools) {
                self.tools().set_active(&options.selected_tools);
            }
            self.state().set_run_prompt(Some(options));
        }
        messages
    }

    /// Shows a failure of a part that was added.
    pub fn report(&self, problem: &Problem) {
        if let Some(ui) = self.ui() {
            ui.problem(problem);
        }
    }
}
