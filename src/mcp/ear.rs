//! What a server asks and tells in the middle of a conversation.

use super::log::Log;
use super::peer::Handler;
use super::server::Server;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::jsonrpc::message::Failure;
use serde_json::Value;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Weak};

/// The `file://` address of a folder.
fn file_uri(path: &Path) -> String {
    let encode = |byte: &u8| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    format!("file://{}", path.as_os_str().as_bytes().iter().map(encode).collect::<String>())
}

/// Answers a server.
pub struct Ear {
    pub server: Weak<Server>,
    pub log: Arc<Log>,
}

impl Handler for Ear {
    fn request(&self, method: &str, params: &Value, cancel: &CancelToken) -> Option<Result<Value, Failure>> {
        let server = self.server.upgrade()?;
        match method {
            "roots/list" => {
                let cwd = &server.context.cwd;
                let name = cwd.file_name().map(|name| name.to_string_lossy().into_owned());
                let root = json!({"uri": file_uri(cwd), "name": name.unwrap_or_default()});
                Some(Ok(json!({"roots": [root]})))
            }
            method => server.context.questions.as_ref()?.answer(&server.name(), method, params, cancel),
        }
    }

    fn notification(&self, method: &str, params: &Value) {
        let Some(server) = self.server.upgrade() else { return };
        match method {
            "notifications/message" => self.log.message(&server.name(), params),
            "notifications/tools/list_changed" | "notifications/prompts/list_changed" => server.refresh(),
            "notifications/resources/updated" => {
                server.resource_updated(params["uri"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }
}
