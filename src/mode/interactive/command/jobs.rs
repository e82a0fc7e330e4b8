//! `/jobs`: commands in the background.

use crate::base::json::json;
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::effect::Effect;
use crate::runtime::job;

/// `/jobs [id]`, `/jobs run COMMAND`, `/jobs stop ID`, `/jobs send ID TEXT`.
pub fn run(app: &mut App, arguments: &str) {
    let (word, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    let rest = rest.trim();
    let (id, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let asked = match word {
        "" => json!({"op": "list"}),
        "run" if !rest.is_empty() => json!({"op": "start", "command": rest}),
        "stop" if !rest.is_empty() => json!({"op": "stop", "job": rest}),
        "send" if !rest.is_empty() => json!({"op": "send", "job": id, "text": text}),
        "run" | "stop" | "send" => {
            return app.error("Usage: /jobs [ID], /jobs run COMMAND, /jobs stop ID, /jobs send ID TEXT");
        }
        id => json!({"op": "tail", "job": id, "lines": 200}),
    };
    let control = app.control.clone();
    app.find_out("jobs", move || {
        let asked = asked.as_object().cloned().unwrap_or_default();
        match job::act(&control, &asked, control.root()) {
            Ok(text) => Effect::Say(Weight::Info, text),
            Err(reason) => Effect::Say(Weight::Error, reason),
        }
    });
}
