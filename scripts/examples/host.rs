//! The agent inside a program, with a tool of the program's own.
//!
//!     PI_FAUX_SCRIPT=scripts/examples/host.json cargo run --example host
//!     cargo run --example host -- anthropic/claude-sonnet-4-5     # with ANTHROPIC_API_KEY

use pi::sdk::{AgentEvent, AssistantEvent, CancelToken, Dirs, Event, FnTool, Setup};
use pi::sdk::{ToolError, ToolOutput, end_children, plain_text};
use serde_json::json;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let parameters =
        json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}});
    let weather = FnTool::new("weather", "The weather in a city", parameters, |call| {
        match call.arguments["city"].as_str() {
            Some("Lisbon") => Ok(ToolOutput::text("Sunny, 24 degrees")),
            _ => Err(ToolError::new("There is no forecast for this city")),
        }
    });
    let model = std::env::args().nth(1).unwrap_or("faux/script".into());
    let (mut session, warnings) = Setup::new(std::env::current_dir()?, Dirs::find()?.agent(), model)
        .system_prompt("You tell the weather in one sentence.")
        .tool(weather)
        .start(&CancelToken::new())?;
    warnings.iter().for_each(|warning| eprintln!("{warning}"));
    session.prompt("Do I need an umbrella in Lisbon?".into(), Vec::new(), &mut |event| {
        if let Event::Agent(AgentEvent::MessageUpdate {
            event: AssistantEvent::TextDelta { delta, .. },
            ..
        }) = event
        {
            print!("{}", plain_text(delta.as_bytes()));
        }
        Ok(())
    })?;
    println!();
    let failure = session.last_answer().ok_or("There is no answer")?.error_message.clone();
    session.close()?;
    end_children();
    Ok(failure.map_or(Ok(()), Err)?)
}
