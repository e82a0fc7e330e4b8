//! Parts of what a session can be asked and told, each behind a method of [`Control`].

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
    /// Models and thinking levels: which there are, and which one is asked.
    Models, models;
    /// What the user prefers: for this session, or written into the settings too.
    Preferences, preferences;
    /// Messages that wait to be sent to the model.
    Queue, queue;
    /// Tools of the model.
    Tools, tools;
    /// Entries of the session: the tree, and the branch that the conversation continues.
    Tree, tree;
    /// Credentials of providers, and signing in to them.
    SignIns, sign_ins;
}
