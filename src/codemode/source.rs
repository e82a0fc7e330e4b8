//! A script's first line may hold options: `// @options: {"max_output_tokens": 2000, "timeout_ms": 60000}`.

use serde_json::Value;
use std::time::Duration;

const MARK: &str = "// @options:";

/// Tokens of output if a script names no other number.
const TOKENS: u64 = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub max_output_tokens: u64,
    /// Time limit of the whole script, the wait for a free engine included.
    pub timeout: Option<Duration>,
}

/// Reads the options of a script. The code stays as it is, so that lines keep their numbers.
pub fn options(code: &str) -> Result<Options, String> {
    if code.trim().is_empty() {
        return Err("The script is empty".into());
    }
    if code.trim_start().starts_with("```") {
        return Err("The code must be JavaScript alone, without a code fence".into());
    }
    let mut options = Options { max_output_tokens: TOKENS, timeout: None };
    let mut lines = code.lines();
    let first = lines.next().unwrap_or_default();
    if lines.any(|line| line.trim_start().starts_with(MARK)) {
        return Err(format!("{MARK} must be the first line of the script, and there once"));
    }
    let Some(text) = first.trim_start().strip_prefix(MARK) else { return Ok(options) };
    let wrong = |why: &str| format!("The options of the script are wrong: {why}");
    let Ok(Value::Object(fields)) = serde_json::from_str(text.trim()) else {
        return Err(wrong("after // @options: comes an object of JSON, in the same line"));
    };
    for (name, value) in &fields {
        let number = value.as_u64().filter(|number| *number > 0);
        let number = number.ok_or_else(|| wrong(&format!("\"{name}\" must be a whole number above 0")));
        match name.as_str() {
            "max_output_tokens" => options.max_output_tokens = number?,
            "timeout_ms" => options.timeout = Some(Duration::from_millis(number?)),
            _ => {
                return Err(wrong(&format!(
                    "\"{name}\" is unknown; max_output_tokens and timeout_ms are known"
                )));
            }
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_in_the_first_line_or_nowhere() {
        let usual = Options { max_output_tokens: TOKENS, timeout: None };
        assert_eq!(options("return 1"), Ok(usual.clone()));
        assert_eq!(options("// a comment\nreturn 1"), Ok(usual.clone()));
        let timed = Options { timeout: Some(Duration::from_secs(1)), ..usual.clone() };
        assert_eq!(options("// @options: {\"timeout_ms\": 1000}\nreturn 1"), Ok(timed));
        assert_eq!(options("// @options: {}"), Ok(usual));
        for (code, expected) in [
            ("", "is empty"),
            ("```js\n1\n```", "without a code fence"),
            ("1\n// @options: {}", "must be the first line"),
            ("// @options: {}\n// @options: {}", "must be the first line"),
            ("// @options: x", "an object of JSON"),
            ("// @options: {\"a\": 1}", "\"a\" is unknown"),
            ("// @options: {\"timeout_ms\": 0}", "above 0"),
            ("// @options: {\"max_output_tokens\": \"1\"}", "above 0"),
        ] {
            let error = options(code).unwrap_err();
            assert!(error.contains(expected), "{code}: {error}");
        }
    }
}
