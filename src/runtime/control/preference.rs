//! Preferences of the user, for the session or also in the settings.

use super::state::InterruptMode;
use super::{Control, Preferences};
use crate::agent::queue::QueueMode;
use crate::resources::settings;
use crate::runtime::config::Config;
use serde_json::Value;
use std::sync::Arc;

impl Control {
    /// Changes the configuration of the next run.
    pub(crate) fn change_config(&self, change: impl FnOnce(&mut Config)) {
        let mut state = self.state();
        let mut config = Config::clone(&state.config);
        change(&mut config);
        self.0.approvals.follow(&config);
        state.config = Arc::new(config);
    }
}

impl Preferences<'_> {
    /// Sets the mode of the steering queue, and writes it to the user's settings. An error says why the
    /// settings could not be written.
    pub fn set_steering_mode(&self, mode: QueueMode) -> Result<(), String> {
        self.use_steering_mode(mode);
        self.remember("steeringMode", mode.name().into())
    }

    pub fn set_follow_up_mode(&self, mode: QueueMode) -> Result<(), String> {
        self.use_follow_up_mode(mode);
        self.remember("followUpMode", mode.name().into())
    }

    pub fn set_auto_compaction(&self, on: bool) -> Result<(), String> {
        self.use_auto_compaction(on);
        self.remember("compaction.enabled", on.into())
    }

    pub fn set_auto_retry(&self, on: bool) -> Result<(), String> {
        self.use_auto_retry(on);
        self.remember("retry.enabled", on.into())
    }

    /// Sets the mode of the steering queue for this session only.
    pub fn use_steering_mode(&self, mode: QueueMode) {
        self.control.queues().steering.mode = mode;
    }

    /// Sets the mode of the follow-up queue for this session only.
    pub fn use_follow_up_mode(&self, mode: QueueMode) {
        self.control.queues().follow_up.mode = mode;
    }

    /// Switches automatic compaction for this session only.
    pub fn use_auto_compaction(&self, on: bool) {
        self.control.state().switches.auto_compaction = on;
    }

    /// Switches automatic retries for this session only.
    pub fn use_auto_retry(&self, on: bool) {
        self.control.state().switches.auto_retry = on;
    }

    /// Sets when queued steering messages reach the model. The choice is not stored.
    pub fn set_interrupt_mode(&self, mode: InterruptMode) {
        self.control.state().switches.interrupt = mode;
    }

    /// Writes one of the user's settings. The change takes effect at the next run, or earlier.
    pub fn remember(&self, setting: &str, value: Value) -> Result<(), String> {
        self.change_settings(&[(setting, Some(value))])
    }

    /// Writes several of the user's settings in one step; `None` removes a setting.
    pub fn change_settings(&self, changes: &[(&str, Option<Value>)]) -> Result<(), String> {
        let config = self.control.config();
        settings::write(config.settings.path(), changes)?;
        let settings = config.settings.again();
        self.control.change_config(|config| {
            config.services.follow(&settings);
            config.settings = settings;
        });
        Ok(())
    }
}
