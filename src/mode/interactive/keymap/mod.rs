//! Keys of the application: actions besides those of editor and lists, and the contexts that use them.
//!
//! Names and defaults are those of the reference's `keybindings.json`; `app.permissions.cycle` is pi's own.

use crate::tui::keymap::{Action, Application, EDITOR, Keymap, Platform, SELECT, actions};

/// Actions of the application.
pub struct AppAction;

/// Actions while the editor has the focus.
pub const MAIN: &[Action] = &[
    AppAction::INTERRUPT,
    AppAction::CLEAR,
    AppAction::EXIT,
    AppAction::SUSPEND,
    AppAction::EXTERNAL_EDITOR,
    AppAction::PASTE_IMAGE,
    AppAction::SESSION_NEW,
    AppAction::SESSION_TREE,
    AppAction::SESSION_FORK,
    AppAction::SESSION_RESUME,
    AppAction::MODEL_SELECT,
    AppAction::MODEL_CYCLE_FORWARD,
    AppAction::MODEL_CYCLE_BACKWARD,
    AppAction::THINKING_CYCLE,
    AppAction::THINKING_TOGGLE,
    AppAction::PERMISSIONS_CYCLE,
    AppAction::TOOLS_EXPAND,
    AppAction::MESSAGE_COPY,
    AppAction::MESSAGE_FOLLOW_UP,
    AppAction::MESSAGE_DEQUEUE,
];

/// Actions in the list of sessions.
pub const SESSIONS: &[Action] = &[
    AppAction::SESSION_TOGGLE_PATH,
    AppAction::SESSION_TOGGLE_SORT,
    AppAction::SESSION_TOGGLE_NAMED_FILTER,
    AppAction::SESSION_RENAME,
    AppAction::SESSION_DELETE,
    AppAction::SESSION_DELETE_NONINVASIVE,
];

/// Actions in the list of models to cycle through.
pub const MODELS: &[Action] = &[
    AppAction::MODELS_SAVE,
    AppAction::MODELS_ENABLE_ALL,
    AppAction::MODELS_CLEAR_ALL,
    AppAction::MODELS_TOGGLE_PROVIDER,
    AppAction::MODELS_REORDER_UP,
    AppAction::MODELS_REORDER_DOWN,
];

/// Actions in the list of thinking levels.
pub const THINKING: &[Action] = &[AppAction::THINKING_SAVE];

/// Actions in the tree of a session.
pub const TREE: &[Action] = &[
    AppAction::MESSAGE_COPY,
    AppAction::TREE_FOLD_OR_UP,
    AppAction::TREE_UNFOLD_OR_DOWN,
    AppAction::TREE_EDIT_LABEL,
    AppAction::TREE_TOGGLE_LABEL_TIMESTAMP,
    AppAction::TREE_FILTER_DEFAULT,
    AppAction::TREE_FILTER_NO_TOOLS,
    AppAction::TREE_FILTER_USER_ONLY,
    AppAction::TREE_FILTER_LABELED_ONLY,
    AppAction::TREE_FILTER_ALL,
    AppAction::TREE_FILTER_CYCLE_FORWARD,
    AppAction::TREE_FILTER_CYCLE_BACKWARD,
];

/// Actions in the viewer, and in the conversation in fullscreen mode, looked up before the editor's.
pub const VIEWER: &[Action] = &[
    AppAction::VIEW_PAGE_UP,
    AppAction::VIEW_PAGE_DOWN,
    AppAction::VIEW_HALF_PAGE_UP,
    AppAction::VIEW_HALF_PAGE_DOWN,
    AppAction::VIEW_LINE_UP,
    AppAction::VIEW_LINE_DOWN,
    AppAction::VIEW_PREVIOUS_PROMPT,
    AppAction::VIEW_NEXT_PROMPT,
    AppAction::VIEW_SEARCH,
    AppAction::VIEW_TOP,
    AppAction::VIEW_BOTTOM,
];

/// Actions during a search in the viewer.
pub const VIEWER_SEARCH: &[Action] =
    &[AppAction::VIEW_SEARCH_NEXT, AppAction::VIEW_SEARCH_PREVIOUS, AppAction::VIEW_SEARCH_CLOSE];

/// Contexts that are active together: no key should have two meanings in one.
const TOGETHER: &[&[&[Action]]] = &[
    &[EDITOR, MAIN],
    &[SELECT, SESSIONS],
    &[SELECT, MODELS],
    &[SELECT, THINKING],
    &[SELECT, TREE],
    &[VIEWER],
    &[VIEWER_SEARCH],
];

/// The application's actions, for [`Keymap`].
pub static APPLICATION: Application = Application {
    rows: ROWS,
    old_ids: OLD_IDS,
    beside_editor: MAIN,
    interrupt: Some(AppAction::INTERRUPT),
    together: TOGETHER,
};

/// The keymap without changes by the user.
pub fn defaults() -> Keymap {
    Keymap::new(Platform::Unix, &APPLICATION)
}

actions! {
    AppAction ROWS
    "Fullscreen and viewer" {
        VIEW_PAGE_UP "tui.altScreen.pageUp" ["pageUp"] "Transcript up a page";
        VIEW_PAGE_DOWN "tui.altScreen.pageDown" ["pageDown"] "Transcript down a page";
        VIEW_HALF_PAGE_UP "tui.altScreen.halfPageUp" [] "Transcript up half a page";
        VIEW_HALF_PAGE_DOWN "tui.altScreen.halfPageDown" [] "Transcript down half a page";
        VIEW_LINE_UP "tui.altScreen.lineUp" [] "Transcript up a line";
        VIEW_LINE_DOWN "tui.altScreen.lineDown" [] "Transcript down a line";
        VIEW_PREVIOUS_PROMPT "tui.altScreen.previousPrompt" ["ctrl+shift+up" "ctrl+up"] wsl ["ctrl+up"] "To the prompt before";
        VIEW_NEXT_PROMPT "tui.altScreen.nextPrompt" ["ctrl+shift+down" "ctrl+down"] wsl ["ctrl+down"] "To the next prompt";
        VIEW_SEARCH "tui.altScreen.search" ["ctrl+shift+f"] wsl ["ctrl+f"] "Search the transcript";
        VIEW_SEARCH_NEXT "tui.altScreen.searchNext" ["enter" "ctrl+g"] "Next match";
        VIEW_SEARCH_PREVIOUS "tui.altScreen.searchPrevious" ["shift+enter" "ctrl+shift+g"] "Match before";
        VIEW_SEARCH_CLOSE "tui.altScreen.searchClose" ["escape"] "End the search";
        VIEW_TOP "tui.altScreen.top" ["ctrl+home"] "Beginning of the transcript";
        VIEW_BOTTOM "tui.altScreen.bottom" ["ctrl+end"] "End of the transcript, and stay there";
    }
    "Application" {
        INTERRUPT "app.interrupt" ["escape"] "Stop what runs";
        CLEAR "app.clear" ["ctrl+c"] "Empty the editor; twice: quit";
        EXIT "app.exit" ["ctrl+d"] "Quit, if the editor is empty";
        SUSPEND "app.suspend" ["ctrl+z"] "Suspend; the shell's `fg` comes back";
        EXTERNAL_EDITOR "app.editor.external" ["ctrl+g"] "Write in an editor of your own";
        PERMISSIONS_CYCLE "app.permissions.cycle" ["alt+m"] "Next mode of approval: ask before changes, before all, never, read only";
        PASTE_IMAGE "app.clipboard.pasteImage" ["ctrl+v"] wsl ["alt+v" "ctrl+v"] "Paste an image, or else text";
    }
    "Sessions" {
        SESSION_NEW "app.session.new" [] "New session";
        SESSION_TREE "app.session.tree" [] "Tree of this session";
        SESSION_FORK "app.session.fork" [] "Fork this session";
        SESSION_RESUME "app.session.resume" [] "Resume a session";
        SESSION_TOGGLE_PATH "app.session.togglePath" ["ctrl+p"] "Show the folders of sessions";
        SESSION_TOGGLE_SORT "app.session.toggleSort" ["ctrl+s"] "Sort sessions otherwise";
        SESSION_TOGGLE_NAMED_FILTER "app.session.toggleNamedFilter" ["ctrl+n"] "Only sessions with a name";
        SESSION_RENAME "app.session.rename" ["ctrl+r"] "Rename a session";
        SESSION_DELETE "app.session.delete" ["ctrl+d"] "Delete a session";
        SESSION_DELETE_NONINVASIVE "app.session.deleteNoninvasive" ["ctrl+backspace"] "Delete a session, if nothing is searched for";
    }
    "Models and thinking" {
        MODEL_SELECT "app.model.select" ["ctrl+l"] "Choose a model";
        MODEL_CYCLE_FORWARD "app.model.cycleForward" ["ctrl+p"] "Next model";
        MODEL_CYCLE_BACKWARD "app.model.cycleBackward" ["shift+ctrl+p"] wsl ["alt+p"] "Model before";
        MODELS_SAVE "app.models.save" ["ctrl+s"] "Make the choice of models the default";
        THINKING_CYCLE "app.thinking.cycle" ["shift+tab"] "Next thinking level";
        THINKING_SAVE "app.thinking.save" ["ctrl+s"] "Make the thinking level the default";
        THINKING_TOGGLE "app.thinking.toggle" ["ctrl+t"] "Fold or open thinking";
    }
    "Messages and display" {
        TOOLS_EXPAND "app.tools.expand" ["ctrl+o"] "Fold or open the output of tools";
        MESSAGE_COPY "app.message.copy" ["ctrl+x"] "Copy the selection or the last answer";
        MESSAGE_FOLLOW_UP "app.message.followUp" ["alt+enter"] wsl ["ctrl+q"] "Send when all is done";
        MESSAGE_DEQUEUE "app.message.dequeue" ["alt+up"] wsl ["alt+q"] "Take back what waits";
    }
    "Session tree" {
        TREE_FOLD_OR_UP "app.tree.foldOrUp" ["ctrl+left" "alt+left"] "Fold, or up to the branch before";
        TREE_UNFOLD_OR_DOWN "app.tree.unfoldOrDown" ["ctrl+right" "alt+right"] "Unfold, or down to the next branch";
        TREE_EDIT_LABEL "app.tree.editLabel" ["shift+l"] "Name an entry";
        TREE_TOGGLE_LABEL_TIMESTAMP "app.tree.toggleLabelTimestamp" ["shift+t"] "Show when entries were named";
        TREE_FILTER_DEFAULT "app.tree.filter.default" ["ctrl+d"] "The usual entries";
        TREE_FILTER_NO_TOOLS "app.tree.filter.noTools" ["ctrl+t"] "Without results of tools";
        TREE_FILTER_USER_ONLY "app.tree.filter.userOnly" ["ctrl+u"] "Only prompts";
        TREE_FILTER_LABELED_ONLY "app.tree.filter.labeledOnly" ["ctrl+l"] "Only entries with a name";
        TREE_FILTER_ALL "app.tree.filter.all" ["ctrl+a"] "All entries";
        TREE_FILTER_CYCLE_FORWARD "app.tree.filter.cycleForward" ["ctrl+o"] "Next filter";
        TREE_FILTER_CYCLE_BACKWARD "app.tree.filter.cycleBackward" ["shift+ctrl+o"] "Filter before";
    }
    "Models to switch between" {
        MODELS_ENABLE_ALL "app.models.enableAll" ["ctrl+a"] "Take in all models";
        MODELS_CLEAR_ALL "app.models.clearAll" ["ctrl+x"] "Take out all models";
        MODELS_TOGGLE_PROVIDER "app.models.toggleProvider" ["ctrl+p"] "All models of a provider";
        MODELS_REORDER_UP "app.models.reorderUp" ["alt+up"] "Model up";
        MODELS_REORDER_DOWN "app.models.reorderDown" ["alt+down"] "Model down";
    }
}

/// Names of actions from old versions, with the current names.
const OLD_IDS: &[(&str, &str)] = &[
    ("interrupt", "app.interrupt"),
    ("clear", "app.clear"),
    ("exit", "app.exit"),
    ("suspend", "app.suspend"),
    ("cycleThinkingLevel", "app.thinking.cycle"),
    ("cycleModelForward", "app.model.cycleForward"),
    ("cycleModelBackward", "app.model.cycleBackward"),
    ("selectModel", "app.model.select"),
    ("expandTools", "app.tools.expand"),
    ("toggleThinking", "app.thinking.toggle"),
    ("toggleSessionNamedFilter", "app.session.toggleNamedFilter"),
    ("externalEditor", "app.editor.external"),
    ("followUp", "app.message.followUp"),
    ("dequeue", "app.message.dequeue"),
    ("pasteImage", "app.clipboard.pasteImage"),
    ("newSession", "app.session.new"),
    ("tree", "app.session.tree"),
    ("fork", "app.session.fork"),
    ("resume", "app.session.resume"),
    ("treeFoldOrUp", "app.tree.foldOrUp"),
    ("treeUnfoldOrDown", "app.tree.unfoldOrDown"),
    ("treeEditLabel", "app.tree.editLabel"),
    ("treeToggleLabelTimestamp", "app.tree.toggleLabelTimestamp"),
    ("toggleSessionPath", "app.session.togglePath"),
    ("toggleSessionSort", "app.session.toggleSort"),
    ("renameSession", "app.session.rename"),
    ("deleteSession", "app.session.delete"),
    ("deleteSessionNoninvasive", "app.session.deleteNoninvasive"),
];

#[cfg(test)]
mod tests;
