//! An extension of pi: a tool for the model and a command for you. `pi docs extensions` is the protocol.

use serde_json::{Value, json};
use std::io::{self, BufRead, Write};

fn registration() -> Value {
    json!({
        "protocolVersion": 1,
        "tools": [{
            "name": "@NAME@",
            "description": "Greets somebody",
            "parameters": {
                "type": "object",
                "properties": {"who": {"type": "string", "description": "Who is greeted"}},
                "required": ["who"],
            },
        }],
        "commands": [{"name": "@NAME@", "description": "Greets you"}],
    })
}

/// Answers a request of pi. `send` makes calls of our own.
fn handle(method: &str, params: &Value, send: &mut dyn FnMut(Value)) -> Result<Value, String> {
    match method {
        "initialize" => Ok(registration()),
        "tool.call" => {
            let who = params["arguments"]["who"].as_str().ok_or("\"who\" is missing")?;
            Ok(json!({"content": format!("Hello, {who}.")}))
        }
        "command.run" => {
            send(json!({"jsonrpc": "2.0", "id": "note", "method": "ui.notify",
                "params": {"message": "Hello.", "type": "info"}}));
            Ok(Value::Null)
        }
        _ => Ok(Value::Null),
    }
}

/// Reads requests until the end of `input`, and writes answers.
fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    for line in input.lines() {
        let message: Value = serde_json::from_str(&line?)?;
        // An answer to a call of ours, or a notification.
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
        let mut calls = Vec::new();
        let answer = match handle(method, &message["params"], &mut |call| calls.push(call)) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(why) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": why}}),
        };
        for message in calls.iter().chain([&answer]) {
            writeln!(output, "{message}")?;
        }
        output.flush()?;
        if method == "shutdown" {
            break;
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    serve(io::stdin().lock(), io::stdout().lock())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_registers_and_greets() {
        let ask = |id: u32, method: &str, params: Value| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
        };
        let input = ask(1, "initialize", json!({})) + &ask(2, "tool.call", json!({"arguments": {"who": "Ada"}}));
        let mut output = Vec::new();
        serve(input.as_bytes(), &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers[0]["result"]["protocolVersion"], 1);
        assert_eq!(answers[1]["result"]["content"], "Hello, Ada.");
    }
}
