//! `/agents`: the helpers of the session.

use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::dialog::agents::agents;
use crate::mode::interactive::dialog::compose::Compose;
use crate::mode::interactive::dialog::helper::HelperView;
use crate::mode::interactive::effect::Effect;
use crate::runtime::helpers::Member;
use std::sync::Arc;

/// `/agents`, `/agents NAME`.
pub fn run(app: &mut App, name: &str) {
    let helpers = app.control.helpers().clone();
    match name {
        "" if helpers.all().is_empty() => {
            app.note("This session has no helpers. The model starts them with the tool task (/tools)");
        }
        "" => app.open(agents(helpers)),
        name => match helpers.find(name) {
            Ok(member) => open(app, member),
            Err(reason) => app.error(&reason),
        },
    }
}

/// Shows what a helper does.
pub fn open(app: &mut App, member: Arc<Member>) {
    app.open(HelperView::new(member, app.threads.feed.clone()));
}

/// Asks for a message to a helper.
pub fn write(app: &mut App, member: Arc<Member>) {
    let title = format!("Message to {}", member.name);
    let then = move |text: Option<String>| match text.filter(|text| !text.trim().is_empty()) {
        None => Effect::Draw,
        Some(text) => match member.steer(&text) {
            Ok(()) => Effect::Note(format!("Sent to {}", member.name)),
            Err(reason) => Effect::Say(Weight::Error, reason),
        },
    };
    app.open(Compose::new(&title, then));
}
