//! The table of actions: name, default keys, description.

use super::Action;

/// Declares actions as constants of a type, and their rows in the same order.
macro_rules! actions {
    ($owner:ident $table:ident $($group:literal {$(
        $action:ident $id:literal [$($key:literal)*] $(wsl [$($wsl:literal)*])? $about:literal;
    )*})*) => {
        impl $owner {
            $($(pub const $action: $crate::tui::keymap::Action = $crate::tui::keymap::Action::named($id);)*)*
        }

        pub const $table: &[$crate::tui::keymap::Row] = &[$($(
            $crate::tui::keymap::Row {
                group: $group,
                id: $id,
                keys: &[$($key),*],
                wsl: $crate::tui::keymap::actions!(@wsl $([$($wsl)*])?),
                about: $about,
            },
        )*)*];
    };
    (@wsl) => { None };
    (@wsl [$($key:literal)*]) => { Some(&[$($key),*]) };
}
pub(crate) use actions;

actions! {
    Action ROWS
    "Cursor" {
        CURSOR_UP "tui.editor.cursorUp" ["up"] "Up a row; at the top, an older prompt";
        CURSOR_DOWN "tui.editor.cursorDown" ["down"] "Down a row; at the bottom, a newer prompt";
        HISTORY_PREVIOUS "tui.editor.historyPrevious" [] "Older prompt";
        HISTORY_NEXT "tui.editor.historyNext" [] "Newer prompt";
        HISTORY_PREFIX_PREVIOUS "tui.editor.historyPrefixPrevious" ["alt+p"] wsl [] "Older prompt that begins like this one";
        HISTORY_PREFIX_NEXT "tui.editor.historyPrefixNext" ["alt+n"] "Newer prompt that begins like this one";
        HISTORY_SEARCH "tui.editor.historySearch" ["ctrl+r"] "Search the prompts";
        CURSOR_LEFT "tui.editor.cursorLeft" ["left" "ctrl+b"] "Left";
        CURSOR_RIGHT "tui.editor.cursorRight" ["right" "ctrl+f"] "Right";
        CURSOR_WORD_LEFT "tui.editor.cursorWordLeft" ["alt+left" "ctrl+left" "alt+b"] "Left by a word";
        CURSOR_WORD_RIGHT "tui.editor.cursorWordRight" ["alt+right" "ctrl+right" "alt+f"] "Right by a word";
        CURSOR_LINE_START "tui.editor.cursorLineStart" ["home" "ctrl+a"] "Beginning of the line";
        CURSOR_LINE_END "tui.editor.cursorLineEnd" ["end" "ctrl+e"] "End of the line";
        JUMP_FORWARD "tui.editor.jumpForward" ["ctrl+]"] "Forward to the character typed next";
        JUMP_BACKWARD "tui.editor.jumpBackward" ["ctrl+alt+]"] "Back to the character typed next";
        PAGE_UP "tui.editor.pageUp" ["pageUp" "ctrl+pageUp"] "Up a page";
        PAGE_DOWN "tui.editor.pageDown" ["pageDown" "ctrl+pageDown"] "Down a page";
    }
    "Editing" {
        DELETE_CHAR_BACKWARD "tui.editor.deleteCharBackward" ["backspace"] "Delete the character before";
        DELETE_CHAR_FORWARD "tui.editor.deleteCharForward" ["delete" "ctrl+d"] "Delete the character behind";
        DELETE_WORD_BACKWARD "tui.editor.deleteWordBackward" ["ctrl+w" "alt+backspace"] "Delete the word before";
        DELETE_WORD_FORWARD "tui.editor.deleteWordForward" ["alt+d" "alt+delete"] "Delete the word behind";
        DELETE_TO_LINE_START "tui.editor.deleteToLineStart" ["ctrl+u"] "Delete to the beginning of the line";
        DELETE_TO_LINE_END "tui.editor.deleteToLineEnd" ["ctrl+k"] "Delete to the end of the line";
        YANK "tui.editor.yank" ["ctrl+y"] "Put back what was deleted last";
        YANK_POP "tui.editor.yankPop" ["alt+y"] "Then: what was deleted before that";
        UNDO "tui.editor.undo" ["ctrl+-"] wsl ["alt+z"] "Undo";
        REDO "tui.editor.redo" ["alt+-"] "Redo";
    }
    "Input" {
        NEW_LINE "tui.input.newLine" ["shift+enter" "ctrl+j"] "New line";
        SUBMIT "tui.input.submit" ["enter"] "Send";
        TAB "tui.input.tab" ["tab"] "Complete";
        COPY "tui.input.copy" ["ctrl+c"] "Copy what is selected";
    }
    "Lists" {
        SELECT_UP "tui.select.up" ["up"] "Up";
        SELECT_DOWN "tui.select.down" ["down"] "Down";
        SELECT_PAGE_UP "tui.select.pageUp" ["pageUp"] "Up a page";
        SELECT_PAGE_DOWN "tui.select.pageDown" ["pageDown"] "Down a page";
        SELECT_CONFIRM "tui.select.confirm" ["enter"] "Choose";
        SELECT_CANCEL "tui.select.cancel" ["escape" "ctrl+c"] "Leave";
    }
}

/// Old names of actions, with the current names.
pub const OLD_IDS: &[(&str, &str)] = &[
    ("cursorUp", "tui.editor.cursorUp"),
    ("cursorDown", "tui.editor.cursorDown"),
    ("cursorLeft", "tui.editor.cursorLeft"),
    ("cursorRight", "tui.editor.cursorRight"),
    ("cursorWordLeft", "tui.editor.cursorWordLeft"),
    ("cursorWordRight", "tui.editor.cursorWordRight"),
    ("cursorLineStart", "tui.editor.cursorLineStart"),
    ("cursorLineEnd", "tui.editor.cursorLineEnd"),
    ("jumpForward", "tui.editor.jumpForward"),
    ("jumpBackward", "tui.editor.jumpBackward"),
    ("pageUp", "tui.editor.pageUp"),
    ("pageDown", "tui.editor.pageDown"),
    ("deleteCharBackward", "tui.editor.deleteCharBackward"),
    ("deleteCharForward", "tui.editor.deleteCharForward"),
    ("deleteWordBackward", "tui.editor.deleteWordBackward"),
    ("deleteWordForward", "tui.editor.deleteWordForward"),
    ("deleteToLineStart", "tui.editor.deleteToLineStart"),
    ("deleteToLineEnd", "tui.editor.deleteToLineEnd"),
    ("yank", "tui.editor.yank"),
    ("yankPop", "tui.editor.yankPop"),
    ("undo", "tui.editor.undo"),
    ("newLine", "tui.input.newLine"),
    ("submit", "tui.input.submit"),
    ("tab", "tui.input.tab"),
    ("copy", "tui.input.copy"),
    ("selectUp", "tui.select.up"),
    ("selectDown", "tui.select.down"),
    ("selectPageUp", "tui.select.pageUp"),
    ("selectPageDown", "tui.select.pageDown"),
    ("selectConfirm", "tui.select.confirm"),
    ("selectCancel", "tui.select.cancel"),
];
