//! Signing in and out: `/login`, `/logout`.
//!
//! A sign-in runs on a separate thread. Its messages and questions appear in a dialog, and Escape cancels it.

use super::models;
use crate::base::order::Order;
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::dialog::login::{KeyEntry, providers};
use crate::mode::interactive::dialog::question::question;
use crate::mode::interactive::dialog::sign_in::SignIn;
use crate::mode::interactive::effect::{Effect, SignInNews, Update};
use crate::mode::interactive::feed::Feed;
use crate::mode::interactive::program;
use crate::runtime::control::Control;
use crate::runtime::control::Streaming;
use crate::runtime::sign_in::{Answer, Event, Failure, Interaction, Prompt, SignInMethod, Way};
use crate::runtime::{CancelToken, Fatal};
use crate::tui::select::{Item, List};
use crossbeam_channel::{bounded, select};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WITH_ACCOUNT: &str = "Sign in with an account";
const WITH_KEY: &str = "Sign in with an API key";

/// Time limit of a program that opens a browser.
const BROWSER_LIMIT: Duration = Duration::from_secs(10);

/// `/login`: asks for method and provider, unless given.
pub fn run(app: &mut App, provider: &str) {
    if provider.is_empty() {
        let then = |chosen| match chosen {
            Some(0) => vec![Effect::ChooseProvider(Some(Way::SignIn))],
            Some(_) => vec![Effect::ChooseProvider(Some(Way::Key))],
            None => Vec::new(),
        };
        return app.open(question("Select authentication method:", "", &[WITH_ACCOUNT, WITH_KEY], then));
    }
    let wanted = provider.to_lowercase();
    let is_meant = |method: &SignInMethod| {
        method.provider.to_lowercase() == wanted || method.name.to_lowercase() == wanted
    };
    let mut methods = app.control.sign_ins().methods();
    methods.retain(is_meant);
    match methods.as_slice() {
        [method] => begin(app, method.clone()),
        [first, rest @ ..] if rest.iter().all(|method| method.provider == first.provider) => {
            let labels: Vec<&str> = methods.iter().map(way_label).collect();
            let title = format!("Select authentication method for {}:", first.name);
            let offered = methods.clone();
            let then = move |chosen: Option<usize>| {
                let method = chosen.and_then(|index| offered.get(index));
                method.map(|method| Effect::SignIn(method.clone())).into_iter().collect()
            };
            app.open(question(&title, "", &labels, then));
        }
        _ => choose(app, None, provider),
    }
}

/// Completions for the argument of `/login`.
pub fn arguments(control: &Control, text: &str) -> Vec<Item> {
    let mut methods = control.sign_ins().methods();
    methods.dedup_by(|a, b| a.provider == b.provider);
    let items =
        methods.iter().map(|method| Item::new(&method.provider, &method.provider).about(&method.name));
    List::found(items.collect(), text)
}

fn way_label(method: &SignInMethod) -> &str {
    match method.way {
        Way::SignIn if !method.label.is_empty() => &method.label,
        Way::SignIn => WITH_ACCOUNT,
        Way::Key => WITH_KEY,
    }
}

/// Lists the providers, limited to one way to sign in if given.
pub fn choose(app: &mut App, way: Option<Way>, search: &str) {
    let mut methods = app.control.sign_ins().methods();
    methods.retain(|method| way.is_none_or(|way| method.way == way));
    app.open(providers(methods, search, way.is_some()));
}

/// Asks for an API key, or starts a sign-in.
pub fn begin(app: &mut App, method: SignInMethod) {
    if method.way == Way::Key {
        return app.open(KeyEntry::new(method));
    }
    let control = app.control.clone();
    talk(app, format!("Login to {}", method.name), move |interaction, cancel| {
        match control.sign_ins().sign_in(&method.provider, interaction, cancel) {
            Ok(()) => Effect::SignedIn { provider: method.provider, name: method.name, way: Way::SignIn },
            Err(Failure::Cancelled) => Effect::Draw,
            Err(Failure::Because(reason)) => {
                Effect::Say(Weight::Error, format!("Failed to login to {}: {reason}", method.name))
            }
        }
    });
}

/// Opens a dialog, and runs `work` beside it, which says and asks things in it.
pub fn talk(
    app: &mut App,
    title: String,
    work: impl FnOnce(&dyn Interaction, &CancelToken) -> Effect + Send + 'static,
) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let cancel = app.threads.cancel.child();
    let by_screen = ByScreen { feed: app.threads.feed.clone(), number };
    app.open(SignIn::new(title, number, cancel.clone()));
    app.find_out("talk", move || {
        let done = work(&by_screen, &cancel);
        by_screen.post(SignInNews::Over);
        done
    });
}

/// Forwards messages and questions of a sign-in to its dialog.
struct ByScreen {
    feed: Arc<Feed>,
    number: u64,
}

impl ByScreen {
    fn post(&self, news: SignInNews) {
        self.feed.effect(Effect::Update(Update::SignIn { number: self.number, news }));
    }
}

impl Interaction for ByScreen {
    fn tell(&self, event: &Event) {
        self.post(SignInNews::Tell(event.clone()));
    }

    fn ask(&self, prompt: &Prompt, cancel: &CancelToken) -> Answer {
        let (reply, answers) = bounded(1);
        self.post(SignInNews::Ask(prompt.clone(), reply));
        select! {
            // Without the dialog there is nobody to ask.
            recv(answers) -> answer => answer.unwrap_or(Answer::Cancelled),
            recv(cancel.receiver()) -> _ => {
                self.post(SignInNews::AskNoMore);
                Answer::Cancelled
            }
        }
    }
}

pub fn store_key(app: &mut App, method: SignInMethod, key: String) {
    let (control, cancel) = (app.control.clone(), app.threads.cancel.child());
    app.find_out("login", move || match control.sign_ins().store_key(&method.provider, &key, &cancel) {
        Ok(()) => Effect::SignedIn { provider: method.provider, name: method.name, way: Way::Key },
        Err(Failure::Cancelled) => Effect::Draw,
        Err(Failure::Because(reason)) => {
            Effect::Say(Weight::Error, format!("Failed to save API key for {}: {reason}", method.name))
        }
    });
}

/// Reloads the provider's models after a sign-in, and selects one if there was none.
pub fn complete(app: &mut App, provider: &str, name: &str, way: Way) {
    let done = match way {
        Way::SignIn => format!("Logged in to {name}"),
        Way::Key => format!("Saved API key for {name}"),
    };
    let file = app.config.look().path(&app.dirs.agent().join("auth.json"));
    let saved = format!("Credentials saved to {file}");
    app.status.footer.count_providers(&app.control);
    if !app.control.models().current().is_none() {
        app.info(&format!("{done}. {saved}"));
        models::warn_of_extra_usage(app);
        return app.refresh();
    }
    let Some(model) = app.control.sign_ins().default_model(provider) else {
        app.info(&format!("{done}. {saved}"));
        let text = "There is no model of that provider to begin with. Use /model to select one.";
        return app.warn(text);
    };
    let feed = app.threads.feed.clone();
    let set = app.control.models().set(&model.provider, &model.id, &mut |event| feed.event(event));
    match set {
        Ok(Some(model)) => {
            app.set("defaultProvider", model.provider.as_str().into());
            app.set("defaultModel", model.id.as_str().into());
            let text = format!("{done}. Selected {}. {saved}", model.id);
            app.info(&text);
            models::warn_of_extra_usage(app);
            if std::mem::take(&mut app.composer.waits_for_model) && !app.composer.editor.is_empty() {
                let prompt = app.composer.take_text();
                app.prompt(prompt, Vec::new(), Streaming::Steer);
            }
        }
        Ok(None) => {
            let text = format!("{done}. {saved}. Use /model to select a model.");
            app.info(&text);
        }
        Err(Fatal(reason)) => app.error(&reason),
    }
    app.refresh();
}

/// `/logout`: removes stored credentials.
pub fn leave(app: &mut App, _: &str) {
    let stored = match app.control.sign_ins().stored() {
        Ok(stored) => stored,
        Err(reason) => {
            let text = format!("Could not read stored credentials: {reason}");
            return app.error(&text);
        }
    };
    if stored.is_empty() {
        return app.info("No stored credentials to remove. Keys in the environment and in models.json are not taken away by \
             /logout.",
        );
    }
    let mut places: Vec<(String, String, Way)> = stored
        .into_iter()
        .map(|(provider, way)| (app.control.sign_ins().provider_name(&provider), provider, way))
        .collect();
    places.order();
    let labels: Vec<String> = places
        .iter()
        .map(|(name, _, way)| match way {
            Way::SignIn => format!("{name} [subscription]"),
            Way::Key => format!("{name} [API key]"),
        })
        .collect();
    let then = move |chosen: Option<usize>| {
        let place = chosen.and_then(|index| places.get(index)).cloned();
        place.map(|(name, provider, way)| Effect::SignOut { provider, name, way }).into_iter().collect()
    };
    app.open(question("Select provider to logout:", "", &labels, then));
}

pub fn sign_out(app: &mut App, provider: String, name: String, way: Way) {
    let (control, cancel) = (app.control.clone(), app.threads.cancel.child());
    app.find_out("logout", move || {
        Effect::SignedOut(match (control.sign_ins().sign_out(&provider, &cancel), way) {
            (Ok(_), Way::SignIn) => Some((Weight::Info, format!("Logged out of {name}"))),
            (Ok(_), Way::Key) => Some((
                Weight::Info,
                format!(
                    "Removed stored API key for {name}. Environment variables and models.json config are unchanged."
                ),
            )),
            (Err(Failure::Cancelled), _) => None,
            (Err(Failure::Because(reason)), _) => Some((Weight::Error, format!("Logout failed: {reason}"))),
        })
    });
}

/// Opens an address with the desktop's own program.
pub fn open_address(app: &mut App, url: String) {
    // Nothing else is for a browser, and no option of the program.
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return;
    }
    let opener = match cfg!(target_os = "macos") {
        true => "open",
        false => "xdg-open",
    };
    let cancel = app.threads.cancel.clone();
    app.find_out("browser", move || {
        let job = program::Job {
            arguments: &[&url],
            input: Vec::new(),
            is_read: false,
            limit: BROWSER_LIMIT,
            cancel: &cancel,
        };
        match program::run(opener, job).is_ok_and(|ran| ran.is_success) {
            true => Effect::Draw,
            false => {
                let text = format!("{opener} cannot open the address; copy it instead");
                Effect::Say(Weight::Warning, text)
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::oauth::Choice;
    use crate::base::json::json;
    use crate::mode::interactive::testing::Bench;
    use serde_json::Value;

    fn stored(bench: &Bench) -> Value {
        serde_json::from_slice(&bench.dir.read("auth.json")).unwrap()
    }

    #[test]
    fn a_key_is_stored_and_never_shown() {
        let mut bench = Bench::new();
        bench.send("/login");
        let screen = bench.screen(80);
        assert!(screen.contains("Select authentication method:"), "{screen}");
        bench.press("down enter");
        let screen = bench.screen(80);
        assert!(screen.contains("Select provider to configure:"), "{screen}");
        bench.press("escape");
        assert!(bench.screen(80).contains("Select authentication method:"));
        bench.press("down enter");
        bench.type_text("groq");
        let screen = bench.screen(80);
        assert!(screen.contains("→ Groq • unconfigured"), "{screen}");
        bench.press("enter");
        let screen = bench.screen(80);
        assert!(screen.contains("Login to Groq"), "{screen}");
        bench.press("enter");
        assert!(bench.screen(80).contains("nothing was entered"));
        bench.type_text("secret-1");
        bench.paste("23\n");
        let screen = bench.screen(80);
        assert!(!screen.contains("secret") && screen.contains("••••"), "{screen}");
        for columns in [1, 20] {
            bench.screen(columns);
        }
        bench.app.config.size.columns = 200;
        bench.press("enter");
        bench.wait();
        assert!(!bench.app.has_dialog());
        let printed = bench.printed();
        assert_eq!(printed, "Saved API key for Groq. Credentials saved to ~/auth.json");
        let entry = json!({"groq": {"type": "api_key", "key": "secret-123"}});
        assert_eq!(stored(&bench), entry);
        assert!(bench.app.control.models().usable_providers().contains(&"groq".to_owned()));
    }

    #[test]
    fn a_provider_that_is_named_is_asked_about_at_once() {
        let mut bench = Bench::new();
        bench.send("/login groq");
        assert!(bench.screen(80).contains("Login to Groq"));
        bench.press("escape");
        assert!(!bench.app.has_dialog());
        bench.send("/login anthropic");
        let screen = bench.screen(80);
        assert!(screen.contains("Select authentication method for Anthropic:"), "{screen}");
        assert!(screen.contains("Claude Pro or Max"), "{screen}");
        bench.press("escape");
        bench.send("/login goog");
        let screen = bench.screen(80);
        assert!(screen.contains("Google Gemini [API key]") || screen.contains("Google Gemini"), "{screen}");
        bench.press("escape");
        assert_eq!(bench.printed(), "");
    }

    #[test]
    fn what_is_stored_is_taken_away() {
        let auth = r#"{"groq": {"type": "api_key", "key": "k"}}"#;
        let mut bench = Bench::with(&[("auth.json", auth)]);
        bench.app.config.size.columns = 200;
        bench.send("/logout");
        let screen = bench.screen(200);
        assert!(screen.contains("Select provider to logout:"), "{screen}");
        assert!(screen.contains("→ Groq [API key]"), "{screen}");
        bench.press("enter");
        bench.wait();
        let printed = bench.printed();
        assert!(printed.starts_with("Removed stored API key for Groq."), "{printed}");
        assert_eq!(stored(&bench), json!({}));
        bench.send("/logout");
        let printed = bench.printed();
        assert!(printed.starts_with("No stored credentials to remove."), "{printed}");
    }

    fn open(bench: &mut Bench) -> (CancelToken, ByScreen) {
        let cancel = CancelToken::new();
        bench.app.open(SignIn::new("Login to Mock".to_owned(), 7, cancel.clone()));
        let by_screen = ByScreen { feed: bench.app.threads.feed.clone(), number: 7 };
        (cancel, by_screen)
    }

    #[test]
    fn what_a_sign_in_tells_is_shown() {
        let mut bench = Bench::new();
        let (_, by_screen) = open(&mut bench);
        by_screen.tell(&Event::DeviceCode {
            user_code: "ABCD-1234".into(),
            url: "https://example.com/\u{1b}]0;x".into(),
            expires_in_seconds: 600,
        });
        by_screen.tell(&Event::Progress("Asking...".into()));
        bench.run_all();
        let screen = bench.screen(80);
        for part in
            ["Login to Mock", "https://example.com/", "Enter code: ABCD-1234", "10 minutes", "Asking..."]
        {
            assert!(screen.contains(part), "{part} in {screen}");
        }
        assert!(!screen.contains('\u{1b}'));
        bench.app.config.size.rows = 12;
        for columns in [1, 9, 40] {
            bench.screen(columns);
        }
    }

    #[test]
    fn questions_are_answered_or_the_sign_in_ends() {
        let mut bench = Bench::new();
        let (cancel, by_screen) = open(&mut bench);
        let choice = |id: &str, label: &str| Choice { id: id.into(), label: label.into() };
        let asker = std::thread::spawn(move || {
            let cancel = CancelToken::new();
            let which = by_screen.ask(
                &Prompt::Select {
                    message: "How?".into(),
                    options: vec![choice("b", "Browser"), choice("d", "Device")],
                },
                &cancel,
            );
            let code = by_screen
                .ask(&Prompt::Code { message: "Paste it:".into(), placeholder: String::new() }, &cancel);
            let last = by_screen
                .ask(&Prompt::Text { message: "Domain:".into(), placeholder: "x.com".into() }, &cancel);
            (which, code, last)
        });
        bench.wait();
        assert!(bench.screen(80).contains("How?"));
        bench.press("down enter");
        bench.wait();
        let screen = bench.screen(80);
        assert!(screen.contains("Paste it:"), "{screen}");
        bench.type_text("http://x/?code=1");
        bench.press("enter");
        bench.wait();
        assert!(bench.screen(80).contains("Domain:"));
        bench.press("escape");
        assert!(cancel.is_cancelled());
        assert!(!bench.app.has_dialog());
        let text = |text: &str| Answer::Text(text.to_owned());
        let (which, code, last) = asker.join().unwrap();
        assert_eq!((which, code), (text("d"), text("http://x/?code=1")));
        assert_eq!(last, Answer::Cancelled);
    }
}
