//! A talk about the models of a llama.cpp router: which there are, and loading, unloading and downloading them.

use super::control::Models;
use super::sign_in::{Answer, Choice, Event, Interaction, Prompt};
use crate::base::cancel::CancelToken;
use crate::llm::secret::Secret;
use crate::models::local;
use crate::models::local::router::{Listed, Router, State};
use crate::tools::truncate::size;

/// The answer that asks for a download; no model has such a name.
const DOWNLOAD: &str = "\0download";

/// A talk with the user.
pub struct Talk<'a> {
    router: Router,
    interaction: &'a dyn Interaction,
    cancel: &'a CancelToken,
}

/// The talk was ended by the user, who is to know this.
struct Left(String);

impl Models<'_> {
    fn llama_router(&self) -> Option<Router> {
        let env = self.control.config().services.credentials.local_env();
        let key = env.get(local::LLAMA_KEY).map(Secret::new);
        Some(Router::new(&env.get(local::LLAMA_URL)?, key))
    }

    /// Manages the models of the configured router until the user leaves. Gives what the user is to know then. An error
    /// if no router is configured.
    pub fn manage_llama(
        &self,
        interaction: &dyn Interaction,
        cancel: &CancelToken,
    ) -> Result<String, String> {
        let router = self.llama_router().ok_or("No llama.cpp server is configured: /login llama.cpp")?;
        let talk = Talk { router, interaction, cancel };
        // The user leaves when it is enough.
        let Err(Left(told)) = talk.run();
        Ok(told)
    }
}

impl Talk<'_> {
    fn run(&self) -> Result<std::convert::Infallible, Left> {
        loop {
            let models = self.models()?;
            let chosen = self.choose(&format!("Models of {}", self.router.url()), &rows(&models))?;
            let model = models.iter().find(|model| model.id == chosen);
            let done = match model.map(|model| (model, &model.state)) {
                None => self.download()?,
                Some((model, State::Loaded)) => self.unload(model)?,
                Some((model, State::Unloaded)) => self.load(model, &models)?,
                Some((model, _)) if model.failure.is_some() => self.load(model, &models)?,
                Some((model, _)) => Ok(format!("{} is {}", model.id, word(model))),
            };
            self.tell(done.unwrap_or_else(|problem| problem));
        }
    }

    /// The models. Asks whether to try again while the server does not answer.
    fn models(&self) -> Result<Vec<Listed>, Left> {
        loop {
            match self.router.list(self.cancel) {
                Ok(models) => return Ok(models),
                Err(_) if self.cancel.is_cancelled() => return Err(Left(String::new())),
                Err(problem) => {
                    self.choose(&problem, &[("again".to_owned(), "Try again".to_owned())])?;
                }
            }
        }
    }

    fn load(&self, model: &Listed, models: &[Listed]) -> Result<Result<String, String>, Left> {
        let loaded: Vec<&Listed> = models.iter().filter(|model| model.state == State::Loaded).collect();
        let is_alone = match loaded.as_slice() {
            [] => false,
            loaded => {
                let count = loaded.len();
                let are = if count == 1 { "model is" } else { "models are" };
                let options =
                    [("alone", "Unload all, then load"), ("beside", "Load beside"), ("no", "Do not load")];
                let options = options.map(|(id, label)| (id.to_owned(), label.to_owned()));
                match self.choose(&format!("{count} {are} loaded"), &options)?.as_str() {
                    "alone" => true,
                    "beside" => false,
                    _ => return Ok(Ok(String::new())),
                }
            }
        };
        let (router, id) = (&self.router, &model.id);
        let mut gone = Vec::new();
        let replaced = if is_alone { loaded } else { Vec::new() };
        let unloaded = replaced.into_iter().try_for_each(|other| {
            self.tell(format!("Unloading {}...", other.id));
            // Not cut short: what is half unloaded could not be loaded again.
            router.unload(&other.id, &CancelToken::new())?;
            gone.push(other);
            if self.cancel.is_cancelled() { Err("cancelled".to_owned()) } else { Ok(()) }
        });
        let done = unloaded.and_then(|()| {
            self.tell(format!("Loading {id}..."));
            router.load(id, self.cancel)
        });
        // What was there comes back.
        let done = self.or_stop(id, done).map_err(|_| Left(self.begin_again(&gone)))?;
        for other in gone.iter().filter(|_| done.is_err()) {
            self.tell(format!("Loading {} again...", other.id));
            // A new failure would say nothing more.
            let _ = router.load(&other.id, self.cancel);
        }
        Ok(done.map(|()| format!("Loaded {id}")))
    }

    /// Begins to load models that had to give way. Says so, for a user who has left.
    fn begin_again(&self, models: &[&Listed]) -> String {
        let begin = |model: &&Listed| match self.router.begin_load(&model.id, &CancelToken::new()) {
            Ok(()) => format!("Loading {} again", model.id),
            Err(problem) => format!("{} could not be loaded again: {problem}", model.id),
        };
        models.iter().map(begin).collect::<Vec<_>>().join("\n")
    }

    fn unload(&self, model: &Listed) -> Result<Result<String, String>, Left> {
        let id = &model.id;
        let options = [("yes", "Yes"), ("no", "No")].map(|(id, label)| (id.to_owned(), label.to_owned()));
        if self.choose(&format!("Unload {id}?"), &options)? != "yes" {
            return Ok(Ok(String::new()));
        }
        self.tell(format!("Unloading {id}..."));
        Ok(self.router.unload(id, self.cancel).map(|()| format!("Unloaded {id}")))
    }

    fn download(&self) -> Result<Result<String, String>, Left> {
        let message = "A repository of Hugging Face with GGUF files; the server downloads it";
        let prompt =
            Prompt::Text { message: message.to_owned(), placeholder: "owner/repository:Q4_K_M".to_owned() };
        let id = match self.interaction.ask(&prompt, self.cancel) {
            Answer::Text(text) if text.trim().is_empty() => return Ok(Ok(String::new())),
            Answer::Text(text) => text.trim().to_owned(),
            Answer::Nobody | Answer::Cancelled => return Err(Left(String::new())),
        };
        self.tell(format!("Downloading {id}..."));
        let progress = |done, all| self.tell(format!("{id}: {} of {}", size(done), size(all)));
        let done = self.router.download(&id, &progress, self.cancel);
        Ok(self.or_stop(&id, done)?.map(|()| format!("Downloaded {id}")))
    }

    /// Ends what the server does with a model if the user left meanwhile.
    fn or_stop(&self, id: &str, done: Result<(), String>) -> Result<Result<(), String>, Left> {
        if done.is_err() && self.cancel.is_cancelled() {
            let _ = self.router.stop(id);
            return Err(Left(String::new()));
        }
        Ok(done)
    }

    fn tell(&self, text: String) {
        if !text.is_empty() {
            self.interaction.tell(&Event::Progress(text));
        }
    }

    fn choose(&self, message: &str, options: &[(String, String)]) -> Result<String, Left> {
        let options = options.iter().map(|(id, label)| Choice { id: id.clone(), label: label.clone() });
        let prompt = Prompt::Select { message: message.to_owned(), options: options.collect() };
        match self.interaction.ask(&prompt, self.cancel) {
            Answer::Text(id) => Ok(id),
            Answer::Nobody | Answer::Cancelled => Err(Left(String::new())),
        }
    }
}

/// Ids and labels of models, and a last row for a download.
fn rows(models: &[Listed]) -> Vec<(String, String)> {
    let row = |model: &Listed| {
        let window = model.window.map(|window| format!(", {window} tokens")).unwrap_or_default();
        (model.id.clone(), format!("{} ({}{window})", model.id, word(model)))
    };
    let download = (DOWNLOAD.to_owned(), "Download a model...".to_owned());
    models.iter().map(row).chain([download]).collect()
}

fn word(model: &Listed) -> &str {
    match &model.state {
        State::Loaded => "loaded",
        State::Unloaded => "not loaded",
        State::Downloading => "downloading",
        State::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::llm::testing::Server;
    use serde_json::Value;
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A router whose models change with each look: `loading` and `downloading` end with the next.
    fn router() -> Server {
        let states: [(&str, &str); 3] = [("a", "loaded"), ("b", "unloaded"), ("broken", "unloaded")];
        let states = states.map(|(id, state)| (id.to_owned(), state.to_owned()));
        let states = Mutex::new(states.into_iter().collect::<BTreeMap<_, _>>());
        // The first look after a load fails.
        let is_busy = AtomicBool::new(false);
        Server::start(move |connection| {
            let Some(request) = connection.request() else { return };
            let mut states = states.lock().unwrap();
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let id = body["model"].as_str().unwrap_or_default().to_owned();
            let path = request.line.split(' ').nth(1).unwrap_or_default();
            if is_busy.swap(path == "/models/load", Ordering::Relaxed) {
                connection.answer("500 Internal Server Error", "connection: close\r\n", "busy");
                return;
            }
            let answer = match (path, body.is_null()) {
                ("/v1/models", true) => {
                    let row = |(id, state): (&String, &String)| {
                        json!({"id": id, "meta": {"n_ctx": 4096}, "status": {"value": state, "failed": state == "failed",
                            "exit_code": 1, "progress": {"f.gguf": {"done": 512, "total": 2048}}}})
                    };
                    let list = json!({"data": states.iter().map(row).collect::<Vec<_>>()});
                    for (id, state) in states.iter_mut() {
                        *state = match (id.as_str(), state.as_str()) {
                            ("broken", "loading") => "failed",
                            (_, "loading") => "loaded",
                            (_, "downloading") => "unloaded",
                            (_, state) => state,
                        }
                        .to_owned();
                    }
                    list
                }
                ("/models/load", _) => {
                    states.insert(id, "loading".to_owned());
                    json!({"success": true})
                }
                ("/models/unload", _) => {
                    states.insert(id, "unloaded".to_owned());
                    json!({"success": true})
                }
                ("/models", _) => {
                    states.insert(id, "downloading".to_owned());
                    json!({"success": true})
                }
                _ => Value::Null,
            };
            let text = answer.to_string();
            connection.answer("200 OK", "connection: close\r\n", text);
        })
    }

    /// A user whose answers are known before.
    #[derive(Default)]
    struct Scripted {
        answers: Mutex<Vec<&'static str>>,
        said: Mutex<Vec<String>>,
        /// What is said when the user leaves.
        last: &'static str,
        cancel: CancelToken,
    }

    impl Interaction for Scripted {
        fn tell(&self, event: &Event) {
            if let Event::Progress(text) = event {
                self.said.lock().unwrap().push(text.clone());
                if text == self.last {
                    self.cancel.cancel();
                }
            }
        }

        fn ask(&self, prompt: &Prompt, _: &CancelToken) -> Answer {
            let mut answers = self.answers.lock().unwrap();
            if answers.is_empty() {
                let mut said = self.said.lock().unwrap();
                match prompt {
                    Prompt::Select { message, options } => {
                        said.push(message.split(" of http").next().unwrap_or_default().to_owned());
                        said.extend(options.iter().map(|option| option.label.clone()));
                    }
                    other => said.push(format!("{other:?}")),
                }
                return Answer::Cancelled;
            }
            Answer::Text(answers.remove(0).to_owned())
        }
    }

    #[test]
    fn models_are_loaded_unloaded_and_downloaded() {
        let rows = |a: &str, b: &str, broken: &str| {
            let row = |id: &str, state: &str| format!("{id} ({state}, 4096 tokens)");
            let mut rows = vec![("a", a), ("b", b), ("broken", broken)];
            rows.sort_by_key(|(_, state)| *state != "loaded");
            let rows = rows.into_iter().map(|(id, state)| row(id, state));
            ["Models".to_owned()]
                .into_iter()
                .chain(rows)
                .chain(["Download a model...".to_owned()])
                .collect::<Vec<_>>()
        };
        let not = "not loaded";
        for (answers, said, end) in [
            (vec![], vec![], rows("loaded", not, not)),
            (vec!["a", "no"], vec![], rows("loaded", not, not)),
            (vec!["a", "yes"], vec!["Unloading a...", "Unloaded a"], rows(not, not, not)),
            (vec!["b", "no"], vec![], rows("loaded", not, not)),
            (vec!["b", "beside"], vec!["Loading b...", "Loaded b"], rows("loaded", "loaded", not)),
            (
                vec!["b", "alone"],
                vec!["Unloading a...", "Loading b...", "Loaded b"],
                rows(not, "loaded", not),
            ),
            // What was there comes back.
            (
                vec!["broken", "alone"],
                vec![
                    "Unloading a...",
                    "Loading broken...",
                    "Loading a again...",
                    "broken was not loaded: it ended with code 1",
                ],
                rows("loaded", not, "failed"),
            ),
            (vec![DOWNLOAD, " "], vec![], rows("loaded", not, not)),
            (
                vec![DOWNLOAD, "b"],
                vec!["Downloading b...", "b: 512B of 2.0KB", "Downloaded b"],
                rows("loaded", not, not),
            ),
        ] {
            let server = router();
            let user = Scripted { answers: Mutex::new(answers.clone()), ..Scripted::default() };
            let router = Router::new(&server.url("/v1"), None);
            let talk = Talk { router, interaction: &user, cancel: &user.cancel };
            assert!(talk.run().is_err());
            let expected: Vec<String> = said.into_iter().map(str::to_owned).chain(end).collect();
            assert_eq!(*user.said.lock().unwrap(), expected, "{answers:?}");
        }
    }

    #[test]
    fn models_that_gave_way_come_back_when_the_user_leaves() {
        for (last, told) in [("Loading b...", "Loading a again"), ("Unloading a...", "Loading a again")] {
            let server = router();
            let user = Scripted { answers: Mutex::new(vec!["b", "alone"]), last, ..Scripted::default() };
            let router = || Router::new(&server.url("/v1"), None);
            let talk = Talk { router: router(), interaction: &user, cancel: &user.cancel };
            let Err(Left(left)) = talk.run();
            assert_eq!(left, told);
            let looks = [(); 3].map(|()| router().list(&CancelToken::new()));
            let models = looks.into_iter().last().unwrap().unwrap();
            assert_eq!(
                models.iter().map(|model| (&*model.id, word(model))).collect::<Vec<_>>(),
                [("a", "loaded"), ("b", "not loaded"), ("broken", "not loaded")]
            );
        }
    }

    #[test]
    fn a_server_that_is_no_router_is_told() {
        for (answer, expected) in [
            (r#"{"data": [{"id": "a"}]}"#, "is no router of llama.cpp: start it without a model"),
            ("[]", "is no router of llama.cpp"),
            ("no", "did not answer in JSON"),
        ] {
            let server = Server::start(move |connection| {
                if connection.request().is_some() {
                    connection.answer("200 OK", "connection: close\r\n", answer);
                }
            });
            let user = Scripted { answers: Mutex::new(vec!["again"]), ..Scripted::default() };
            let router = Router::new(&server.url("/"), None);
            let talk = Talk { router, interaction: &user, cancel: &user.cancel };
            assert!(talk.run().is_err());
            let said = user.said.lock().unwrap();
            assert!(said[0].contains(expected), "{said:?}");
            assert_eq!(said[1..], ["Try again"]);
        }
    }
}
