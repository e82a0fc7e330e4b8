//! Another pi as a process, driven over its RPC mode.
//!
//!     cargo run --example client -- target/debug/pi

use pi::client::Client;
use std::error::Error;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let program = std::env::args().nth(1).unwrap_or("pi".into());
    let words = ["--mode", "rpc", "--no-session", "--model", "faux/echo"];
    let mut client = Client::spawn(Command::new(program).args(words))?;
    client.prompt("Hello")?;
    loop {
        let event = client.next_event()?;
        let step = &event["assistantMessageEvent"];
        if step["type"] == "text_delta" {
            print!("{}", step["delta"].as_str().unwrap_or_default());
        }
        if event["type"] == "agent_settled" {
            break;
        }
    }
    println!();
    let stats = client.request("get_session_stats", serde_json::Value::Null)?;
    println!("{} tokens", stats["tokens"]["total"]);
    client.close()?;
    Ok(())
}
