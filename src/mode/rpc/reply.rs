//! The response to a command.

use crate::mode::output::Output;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Display;
use std::sync::Arc;

/// Sends the response to a command, exactly once.
pub struct Reply {
    output: Arc<Output>,
    id: Option<Value>,
    command: Option<String>,
}

#[derive(Serialize)]
struct Response<'a, T: Serialize> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Reply {
    pub fn new(output: Arc<Output>, id: Option<Value>, command: Option<String>) -> Self {
        Self { output, id, command }
    }

    /// Another handle on this reply, for a case where the first may be lost. Only one of them may be used.
    pub fn again(&self) -> Self {
        Self::new(self.output.clone(), self.id.clone(), self.command.clone())
    }

    pub fn id(&self) -> Option<&Value> {
        self.id.as_ref()
    }

    pub fn done(self) {
        self.send(true, None::<()>, None);
    }

    pub fn data(self, data: impl Serialize) {
        self.send(true, Some(data), None);
    }

    /// Responds with the data of `outcome`, or its error.
    pub fn give(self, outcome: Result<impl Serialize, impl Display>) {
        match outcome {
            Ok(data) => self.data(data),
            Err(reason) => self.fail(reason),
        }
    }

    /// Responds with success, or the error of `outcome`.
    pub fn finish<T>(self, outcome: Result<T, impl Display>) {
        match outcome {
            Ok(_) => self.done(),
            Err(reason) => self.fail(reason),
        }
    }

    pub fn fail(self, error: impl Display) {
        self.send(false, None::<()>, Some(error.to_string()));
    }

    /// Responds to `interrupt` as in the first protocol.
    pub fn interrupted(self) {
        #[derive(Serialize)]
        struct Interrupted<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a Value>,
            r#type: &'static str,
        }
        let line = Interrupted { id: self.id.as_ref(), r#type: "interrupted" };
        let _ = self.output.line(&line);
    }

    fn send(&self, success: bool, data: Option<impl Serialize>, error: Option<String>) {
        let response = Response {
            id: self.id.as_ref(),
            r#type: "response",
            command: self.command.as_deref(),
            success,
            data,
            error,
        };
        // A reader that has gone ends the program by the output's token.
        let _ = self.output.line(&response);
    }
}
