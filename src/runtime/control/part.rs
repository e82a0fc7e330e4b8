//! Groups of commands and queries of a session, each behind a method of [`Control`].

use super::Control;

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident, $method:ident;)*) => {
        $(
            $(#[$doc])*
            pub struct $name<'a> {
                pub(crate) control: &'a Control,
            }
        )*

        impl Control {
            $(
                $(#[$doc])*
                pub fn $method(&self) -> $name<'_> {
                    $name { control: self }
                }
            )*
        }
    };
}

parts! {
    /// Models and thinking levels: the choices, and the current ones.
    Models, models;
    /// The mode of approval and the rules about tool calls.
    Permissions, permissions;
    /// Preferences of the user, for the session or also in the settings.
    Preferences, preferences;
    /// Queued messages for the model: steering and follow-up.
    Queue, queue;
    /// The model's tools.
    Tools, tools;
    /// The tree of the session's entries, and its current branch.
    Tree, tree;
    /// Credentials of providers, and signing in to providers.
    SignIns, sign_ins;
}
