//! Handles news, and applies effects.
//!
//! `carry_out` is the one place that applies an [`Effect`]; its rows name the functions that do it.

use super::added;
use super::app::App;
use super::card;
use super::command::{
    self, agents, aside, clipboard, login, models, permissions, resume, session, settings, shell, thinking,
    tree, trust, undo,
};
use super::complete;
use super::config::is_dumb;
use super::dialog::{self, approve::Approve};
use super::effect::{Effect, Update};
use super::feed::News;
use super::footer::tokens;
use super::keys;
use super::surface;
use crate::base::thread::Thread;
use crate::runtime::cache_miss::{LIFETIME, Latest, Miss};
use crate::runtime::{AgentMessage, AssistantMessage, Fatal, StopReason, is_local, now_ms, preview_edit};
use std::time::Instant;

/// Handles news.
pub fn take(app: &mut App, mut news: News, now: Instant) {
    app.view.take(&mut news, &app.config.look(), now);
    let ended = app.status.activity.ended(now);
    app.status.activity.take(&news, now);
    if matches!(news, News::RunStarted) {
        app.status.line.changed();
    }
    if let News::MessageEnded(message) = &news {
        app.status.program.take(message);
    }
    match news {
        News::Effect(effect) => carry_out(app, *effect, now),
        // There is no border to say it in.
        News::RunStarted if is_dumb() => app.info("Working"),
        News::Queues { steering, follow_up } => app.composer.queues = (steering, follow_up),
        News::BlockEnded { .. } => preview(app),
        News::MessageEnded(AgentMessage::Assistant(answer)) => {
            let has_failed = matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
            app.status.footer.spend(&answer.usage, has_failed);
            app.status.title.has_failed = answer.stop_reason == StopReason::Error;
            // Elsewhere it is the network's speed as much as the model's.
            app.status.footer.speed = match is_local(&answer.provider) {
                true => app.status.activity.speed(answer.usage.output, now),
                false => None,
            };
            tell_cache_miss(app, &answer);
            app.refresh();
        }
        News::Helpers => added::update(app, Update::Helpers),
        News::Renamed | News::ThinkingChanged => app.refresh(),
        News::Settled => {
            app.refresh();
            if let Some((took, spent)) = ended.filter(|(_, spent)| spent.output > 0) {
                let text = app.status.footer.sum_up(took, &spent, app.config.is_plain);
                app.info(&text);
            }
            app.send_held();
        }
        News::ShellPrinted(text) => {
            if let Some(shell) = app.view.shell() {
                shell.print(&text);
            }
        }
        News::RetrySucceeded { attempts } => {
            let error = app.status.activity.failure();
            let text = format!("retried {attempts} time{} ({error})", if attempts == 1 { "" } else { "s" });
            app.info(&text);
        }
        News::RetriesFailed { attempts, is_cancelled } => {
            let tries = if attempts == 1 { "1 try".to_owned() } else { format!("{attempts} tries") };
            match is_cancelled {
                true => app.warn(&format!("Stopped after {tries}")),
                false => app.error(&format!("Gave up after {tries}")),
            }
        }
        News::CacheWarmed(usage) => {
            app.status.footer.warm(&usage);
            app.status.latest.1.warm(&usage, now_ms());
            if tells_cache(app) {
                app.info(&format!("Cache warmed: ${:.3}", usage.cost.total));
            }
        }
        News::LimitReached(reason) => app.warn(&format!("The run was ended: {reason}")),
        News::CompactionEnded { summary, usage, aborted, error } => {
            if let Some((summary, tokens)) = summary {
                let lines = card::compaction(&summary, tokens, &app.config.look());
                app.view.show(lines);
                app.status.latest.1.forget();
                app.status.footer.sum(&app.control, &app.threads.feed);
            } else if aborted {
                app.warn("Compaction cancelled");
            } else if let Some(error) = error {
                app.error(&error);
            }
            if let Some(usage) = usage.filter(|_| tells_cache(app)) {
                let billed = usage.input + usage.output + usage.cache_read + usage.cache_write;
                let cost = dollars(usage.cost.total);
                app.warn(&format!("Compaction: {} tokens billed{cost}", tokens(billed)));
            }
            app.refresh();
            app.send_held();
        }
        _ => {}
    }
}

/// True if the user wants to know what the prompt cache saves and costs.
fn tells_cache(app: &App) -> bool {
    app.control.config().settings.flag("showCacheMissNotices")
}

/// Tells that an answer paid again for what the provider had in its cache.
fn tell_cache_miss(app: &mut App, answer: &AssistantMessage) {
    let now = app.control.snapshot();
    let (session, latest) = &mut app.status.latest;
    if *session != now.session_id {
        *session = now.session_id;
        *latest = Latest::of(&app.control.messages(), answer.timestamp);
    }
    let price = if now.model.id == answer.model { now.model.cost.cache_read } else { 0.0 };
    let miss = latest.answer(answer, price).filter(Miss::is_worth_a_line);
    let Some(miss) = miss.filter(|_| tells_cache(app)) else { return };
    let why = match miss.idle.as_secs() {
        _ if miss.model_changed => " after model switch".to_owned(),
        idle if miss.idle >= LIFETIME => format!(" after {}m idle", (idle + 30) / 60),
        _ => String::new(),
    };
    app.warn(&format!("Cache miss{why}: {} tokens billed again{}", tokens(miss.tokens), dollars(miss.cost)));
}

fn dollars(cost: f64) -> String {
    if cost >= 0.01 { format!(" (~${cost:.2})") } else { String::new() }
}

/// Computes the diff of an edit, once its arguments are complete.
fn preview(app: &App) {
    let Some((id, arguments)) = app.view.edit_to_preview(&app.config.describer) else {
        return;
    };
    let (config, feed) = (app.control.config(), app.threads.feed.clone());
    let look = move || {
        if let Some(diff) = preview_edit(&config.workspace, &arguments) {
            feed.effect(Effect::Preview { id, diff });
        }
    };
    // Without the thread the texts of the edit are shown, no diff.
    let _ = Thread::named("preview").start(look);
}

/// Removes all dialogs.
pub fn dismiss(app: &mut App, now: Instant) {
    app.added.overlays.dismiss();
    for effect in app.dialogs.dismiss() {
        carry_out(app, effect, now);
    }
}

/// Applies an effect.
pub fn carry_out(app: &mut App, effect: Effect, now: Instant) {
    match effect {
        // Closing is done where the dialog is; the others are for nobody here.
        Effect::Close | Effect::Answer(_) | Effect::Draw => {}
        Effect::Dismiss => dismiss(app, now),
        Effect::Say(weight, text) => app.say(weight, &text),
        Effect::Note(text) => app.note(&text),
        Effect::Copy(text, done) => clipboard::copy(app, text, done),
        Effect::Call(line) => {
            command::run(app, line);
        }
        Effect::Write(sequences) => app.requests.sequences.push_str(&sequences),
        Effect::Paste(text) if text.is_empty() => {}
        Effect::Paste(text) => {
            app.composer.editor.paste(&text);
            complete::offer(app, false);
        }
        Effect::Refuse { reason, typed } => {
            app.error(&format!("Error: {reason}"));
            if app.composer.editor.is_empty() {
                app.composer.editor.set_text(&typed);
            }
            // The prompt waits in the editor until there is a model.
            if app.control.models().usable_providers().is_empty() && app.dialogs.is_empty() {
                app.composer.waits_for_model = true;
                command::run(app, "/login");
            }
        }
        Effect::GiveBack(typed) => {
            app.composer.take_back(std::iter::once(typed));
        }
        Effect::ListFiles { listing, found, is_first, is_whole } => {
            if app.composer.files.take(listing, found, is_first, is_whole) {
                complete::offer_files(app);
            }
        }
        Effect::Update(update) => added::update(app, update),

        Effect::UseModel { model, saves } => models::choose(app, &model, saves),
        Effect::UseThinking { level, saves } => thinking::choose(app, level, saves),
        Effect::UseScope(scope) => {
            app.control.models().set_scope(scope);
            app.refresh();
        }
        Effect::SaveScope(patterns) => models::save_scope(app, patterns),
        Effect::FoundModels { has_found, strangers } => models::found(app, has_found, &strangers),
        Effect::UseTools(names) => models::use_tools(app, &names),
        Effect::SaveTools(names) => models::save_tools(app, names),

        Effect::WriteSetting { path, value } => {
            let result = settings::write(app, path, value);
            settings::refresh(app, Some(result));
        }
        Effect::ShowChangelog(text) => command::session::print_changelog(app, &text),
        Effect::ChooseTheme(which) => settings::choose_theme(app, which),
        Effect::PreviewTheme(name) => settings::preview_theme(app, name.as_deref()),
        Effect::UseTheme(setting) => settings::use_theme(app, setting),
        Effect::ListModelLevels => settings::list_model_levels(app),
        Effect::ChooseModelLevel(model) => settings::choose_model_level(app, model),
        Effect::SetModelLevel { model, level } => settings::set_model_level(app, &model, level),

        Effect::Begin(done) => {
            app.begin_conversation();
            app.info(&done);
        }
        Effect::Reloaded { was_trusted } => command::reloaded(app, was_trusted),
        Effect::ShowStats { stats, name, warming } => {
            session::show_stats(app, &stats, name.as_deref(), &warming);
        }
        Effect::ShowContext(filling) => app.open(dialog::context::context(*filling)),
        Effect::Summed { changes, stats } => {
            app.status.footer.summed(changes, &stats, &app.control, &app.threads.feed);
        }
        Effect::Shared(address) => session::shared(app, address),
        Effect::Import { path, word } => session::import_from(app, path, word),
        Effect::Rename(name) => {
            let feed = app.threads.feed.clone();
            if let Err(Fatal(reason)) = app.control.set_name(&name, &mut |event| feed.event(event)) {
                app.error(&reason);
            }
        }
        Effect::Open(session) => resume::open(app, session),
        Effect::Visited { session, done } => resume::visited(app, session, done),
        Effect::Trust(decision) => trust::decide(app, *decision),
        Effect::ShellEnded(done) => shell::ended(app, done),
        Effect::Preview { id, diff } => {
            if let Some(call) = app.view.open_call(&id) {
                call.preview = Some(diff);
            }
        }

        Effect::OpenTree(begin) => tree::open(app, begin),
        Effect::GoTo(id) => tree::go_to(app, id),
        Effect::AskSummary(id) => tree::ask_summary(app, id),
        Effect::AskInstructions(id) => tree::ask_instructions(app, id),
        Effect::Navigate { id, summary } => tree::navigate(app, id, summary),
        Effect::Navigated { id, moved } => tree::arrive(app, id, *moved),
        Effect::Busy(what) => app.status.activity.other = what.map(|what| (what, now)),
        Effect::CopyEntry(id) => tree::copy_entry(app, &id),
        Effect::Label { id, label } => {
            if let Err(reason) = app.control.tree().set_label(&id, label.as_deref()) {
                app.error(&reason);
            }
        }
        Effect::ListForks(points) => tree::list_forks(app, &points),
        Effect::Fork(id) => tree::fork_at(app, id),
        Effect::Forked(text) => tree::forked(app, &text),

        Effect::PlanUndo(plan) => undo::ask(app, *plan),
        Effect::Undo { session, plans, forces, goes_to } => {
            undo::carry_out(app, session, plans, forces, goes_to);
        }
        Effect::Undone { done, problem, goes_to } => undo::undone(app, &done, problem.as_deref(), goes_to),
        Effect::OpenHelper(member) => agents::open(app, member),
        Effect::WriteToHelper(member) => agents::write(app, member),
        Effect::AnswerAside(answer) => aside::answered(app, answer),
        Effect::HandOff(message) => aside::hand_off(app, message),
        Effect::HandedOff(text) => aside::handed_off(app, &text),
        Effect::ListRewinds(points) => undo::list_prompts(app, &points),
        Effect::AskRewind(id) => undo::ask_rewind(app, id),
        Effect::Rewind { id, files, conversation } => undo::rewind_to(app, id, files, conversation),

        Effect::ChooseProvider(way) => login::choose(app, way, ""),
        Effect::SignIn(method) => login::begin(app, method),
        Effect::StoreKey { method, key } => login::store_key(app, method, key),
        Effect::SignedIn { provider, name, way } => login::complete(app, &provider, &name, way),
        Effect::SignOut { provider, name, way } => login::sign_out(app, provider, name, way),
        Effect::SignedOut(said) => {
            if let Some((weight, text)) = said {
                app.say(weight, &text);
            }
            app.status.footer.count_providers(&app.control);
            app.refresh();
        }
        Effect::OpenAddress(url) => login::open_address(app, url),

        Effect::SendHeld => app.send_held(),
        Effect::Send { text, images, streaming } => app.send(text, images, streaming),
        Effect::StatusLine(result) => {
            if let Some(problem) = app.status.line.take(result) {
                app.warn(&format!("Warning: {problem}"));
            }
        }
        Effect::Ask(asked) => added::ask(app, *asked),
        Effect::Show(change) => added::show(app, *change),
        Effect::ShowComponent { number, component, place } => added::open(app, number, component, place),
        Effect::Arrange(number, arrange) => app.added.overlays.arrange(number, arrange),
        Effect::Read(query, reply) => {
            let _ = reply.try_send(surface::read(app, query));
        }
        Effect::Typed(data) => {
            surface::decoded(&data).into_iter().for_each(|input| keys::handle(app, input, now));
        }
        Effect::TypeIn(data) => keys::type_in(app, &data, now),
        Effect::Offer { before, wanted, items, is_asked } => {
            complete::offered(app, &before, wanted, items, is_asked);
        }
        Effect::Approve(mut asked) => {
            // The question shows the call.
            if let Some(call) = app.view.open_call(&asked.call.id) {
                call.state = card::State::Asked;
                asked.call.preview.clone_from(&call.preview);
            }
            let is_typing = !app.composer.editor.is_empty();
            app.open(Approve::new(*asked, app.control.config().consent.is_some(), is_typing));
        }
        Effect::UseMode { mode, saves } => permissions::use_mode(app, mode, saves),
        Effect::AddRule { effect, scope, rule } => permissions::add(app, effect, scope, &rule),
        Effect::RemoveRule(entry) => permissions::remove(app, &entry),
        // The time that the user takes is not the call's.
        Effect::Waits(id) => {
            if let Some(call) = app.view.open_call(&id) {
                call.state = card::State::Waiting;
            }
        }
        Effect::Decide(reply, decision) => {
            // There is room for the one answer; an asker that has gone needs none.
            let _ = reply.try_send(decision);
        }
        Effect::Approved(id) => {
            if let Some(call) = app.view.open_call(&id) {
                call.state = card::State::Running { since: now };
            }
        }
    }
}
