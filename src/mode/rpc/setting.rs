//! Commands that set options of the next request: model, thinking level, modes, tools, names.

use super::field::HostToolSpec;
use super::reply::Reply;
use super::server::Server;
use crate::base::json::json;
use crate::mode::report;
use crate::runtime::control::InterruptMode;
use crate::runtime::{QueueMode, ThinkingLevel};

pub fn model(server: &Server, (provider, id): (String, String), reply: Reply) {
    match server.control.models().set(&provider, &id, &mut server.listener()) {
        Ok(Some(model)) => reply.data(model.shown()),
        Ok(None) => reply.fail(format_args!("Model not found: {provider}/{id}")),
        Err(reason) => reply.fail(reason),
    }
}

/// Switches to the next model. The data is null if there is no other one.
pub fn cycle_model(server: &Server, (): (), reply: Reply) {
    let cycled = server.control.models().cycle(true, &mut server.listener());
    reply.give(cycled.map(|cycled| {
        cycled.map(|cycled| {
            json!({"model": cycled.model.shown(), "thinkingLevel": cycled.thinking, "isScoped": cycled.is_scoped})
        })
    }));
}

pub fn thinking_level(server: &Server, level: ThinkingLevel, reply: Reply) {
    reply.finish(server.control.models().set_thinking(level, &mut server.listener()));
}

/// Switches to the next thinking level. The data is null if the model does not support thinking.
pub fn cycle_thinking_level(server: &Server, (): (), reply: Reply) {
    let level = server.control.models().cycle_thinking(&mut server.listener());
    reply.give(level.map(|level| level.map(|level| json!({"level": level}))));
}

pub fn steering_mode(server: &Server, mode: QueueMode, reply: Reply) {
    remembered(server.control.preferences().set_steering_mode(mode), reply);
}

pub fn follow_up_mode(server: &Server, mode: QueueMode, reply: Reply) {
    remembered(server.control.preferences().set_follow_up_mode(mode), reply);
}

pub fn interrupt_mode(server: &Server, mode: InterruptMode, reply: Reply) {
    server.control.preferences().set_interrupt_mode(mode);
    reply.done();
}

pub fn auto_compaction(server: &Server, on: bool, reply: Reply) {
    remembered(server.control.preferences().set_auto_compaction(on), reply);
}

pub fn auto_retry(server: &Server, on: bool, reply: Reply) {
    remembered(server.control.preferences().set_auto_retry(on), reply);
}

/// Responds after storing a setting. If storing fails, the setting still applies to this process.
fn remembered(stored: Result<(), String>, reply: Reply) {
    if let Err(reason) = stored {
        report::warning(reason);
    }
    reply.done();
}

pub fn cumulative_events(server: &Server, on: bool, reply: Reply) {
    server.output.set_cumulative(on);
    reply.done();
}

pub fn session_name(server: &Server, name: String, reply: Reply) {
    match name.trim() {
        "" => reply.fail("Session name cannot be empty"),
        name => reply.finish(server.control.set_name(name, &mut server.listener())),
    }
}

pub fn active_tools(server: &Server, names: Vec<String>, reply: Reply) {
    reply.data(json!({"toolNames": server.control.tools().set_active(&names)}));
}

pub fn register_tools(server: &Server, tools: Vec<HostToolSpec>, reply: Reply) {
    let tools = tools.into_iter().map(|tool| server.host_tools.tool(tool));
    let active = server.control.tools().register(tools.collect());
    reply.give(active.map(|names| json!({"toolNames": names})));
}

pub fn unregister_tools(server: &Server, names: Vec<String>, reply: Reply) {
    reply.data(json!({"toolNames": server.control.tools().unregister(&names)}));
}

pub fn plan_mode(server: &Server, enabled: bool, reply: Reply) {
    let control = &server.control;
    let done = if enabled { control.begin_planning(false) } else { control.end_planning() };
    match done {
        Ok(()) => reply.done(),
        Err(reason) => reply.fail(reason),
    }
}
