//! The table of actions: name, default keys, what it does.

/// Declares the actions and their rows, in one order.
macro_rules! actions {
    ($($group:ident {$(
        $action:ident $id:literal [$($key:literal)*] $(wsl [$($wsl:literal)*])? $about:literal;
    )*})*) => {
        /// What a key can be for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Action {
            $($($action,)*)*
        }

        pub(super) const TABLE: &[Row] = &[$($(
            Row {
                group: Group::$group,
                id: $id,
                keys: &[$($key),*],
                wsl: actions!(@wsl $([$($wsl)*])?),
                about: $about,
            },
        )*)*];
    };
    (@wsl) => { None };
    (@wsl [$($key:literal)*]) => { Some(&[$($key),*]) };
}

pub(super) struct Row {
    pub(super) group: Group,
    pub(super) id: &'static str,
    pub(super) keys: &'static [&'static str],
    /// Other defaults on Linux inside of Windows.
    pub(super) wsl: Option<&'static [&'static str]>,
    pub(super) about: &'static str,
}

/// Actions that are listed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Cursor,
    Editing,
    Input,
    Lists,
    Viewer,
    Application,
    Sessions,
    Models,
    Messages,
    Tree,
    Scoped,
}

impl Group {
    pub fn title(self) -> &'static str {
        match self {
            Self::Cursor => "Cursor",
            Self::Editing => "Editing",
            Self::Input => "Input",
            Self::Lists => "Lists",
            Self::Viewer => "Fullscreen and viewer",
            Self::Application => "Application",
            Self::Sessions => "Sessions",
            Self::Models => "Models and thinking",
            Self::Messages => "Messages and display",
            Self::Tree => "Session tree",
            Self::Scoped => "Models to switch between",
        }
    }
}

actions! {
    Cursor {
        CursorUp "tui.editor.cursorUp" ["up"] "Up a row; at the top, an older prompt";
        CursorDown "tui.editor.cursorDown" ["down"] "Down a row; at the bottom, a newer prompt";
        HistoryPrevious "tui.editor.historyPrevious" [] "Older prompt";
        HistoryNext "tui.editor.historyNext" [] "Newer prompt";
        HistoryPrefixPrevious "tui.editor.historyPrefixPrevious" ["alt+p"] wsl [] "Older prompt that begins like this one";
        HistoryPrefixNext "tui.editor.historyPrefixNext" ["alt+n"] "Newer prompt that begins like this one";
        HistorySearch "tui.editor.historySearch" ["ctrl+r"] "Search the prompts";
        CursorLeft "tui.editor.cursorLeft" ["left" "ctrl+b"] "Left";
        CursorRight "tui.editor.cursorRight" ["right" "ctrl+f"] "Right";
        CursorWordLeft "tui.editor.cursorWordLeft" ["alt+left" "ctrl+left" "alt+b"] "Left by a word";
        CursorWordRight "tui.editor.cursorWordRight" ["alt+right" "ctrl+right" "alt+f"] "Right by a word";
        CursorLineStart "tui.editor.cursorLineStart" ["home" "ctrl+home" "ctrl+a"] "Beginning of the line";
        CursorLineEnd "tui.editor.cursorLineEnd" ["end" "ctrl+end" "ctrl+e"] "End of the line";
        JumpForward "tui.editor.jumpForward" ["ctrl+]"] "Forward to the character typed next";
        JumpBackward "tui.editor.jumpBackward" ["ctrl+alt+]"] "Back to the character typed next";
        PageUp "tui.editor.pageUp" ["pageUp" "ctrl+pageUp"] "Up a page";
        PageDown "tui.editor.pageDown" ["pageDown" "ctrl+pageDown"] "Down a page";
    }
    Editing {
        DeleteCharBackward "tui.editor.deleteCharBackward" ["backspace"] "Delete the character before";
        DeleteCharForward "tui.editor.deleteCharForward" ["delete" "ctrl+d"] "Delete the character behind";
        DeleteWordBackward "tui.editor.deleteWordBackward" ["ctrl+w" "alt+backspace"] "Delete the word before";
        DeleteWordForward "tui.editor.deleteWordForward" ["alt+d" "alt+delete"] "Delete the word behind";
        DeleteToLineStart "tui.editor.deleteToLineStart" ["ctrl+u"] "Delete to the beginning of the line";
        DeleteToLineEnd "tui.editor.deleteToLineEnd" ["ctrl+k"] "Delete to the end of the line";
        Yank "tui.editor.yank" ["ctrl+y"] "Put back what was deleted last";
        YankPop "tui.editor.yankPop" ["alt+y"] "Then: what was deleted before that";
        Undo "tui.editor.undo" ["ctrl+-"] wsl ["alt+z"] "Undo";
        Redo "tui.editor.redo" ["alt+-"] "Redo";
    }
    Input {
        NewLine "tui.input.newLine" ["shift+enter" "ctrl+j"] "New line";
        Submit "tui.input.submit" ["enter"] "Send";
        Tab "tui.input.tab" ["tab"] "Complete";
        Copy "tui.input.copy" ["ctrl+c"] "Copy what is selected";
    }
    Lists {
        SelectUp "tui.select.up" ["up"] "Up";
        SelectDown "tui.select.down" ["down"] "Down";
        SelectPageUp "tui.select.pageUp" ["pageUp"] "Up a page";
        SelectPageDown "tui.select.pageDown" ["pageDown"] "Down a page";
        SelectConfirm "tui.select.confirm" ["enter"] "Choose";
        SelectCancel "tui.select.cancel" ["escape" "ctrl+c"] "Leave";
    }
    Viewer {
        ViewPageUp "tui.altScreen.pageUp" ["pageUp"] "Transcript up a page";
        ViewPageDown "tui.altScreen.pageDown" ["pageDown"] "Transcript down a page";
        ViewHalfPageUp "tui.altScreen.halfPageUp" [] "Transcript up half a page";
        ViewHalfPageDown "tui.altScreen.halfPageDown" [] "Transcript down half a page";
        ViewLineUp "tui.altScreen.lineUp" [] "Transcript up a line";
        ViewLineDown "tui.altScreen.lineDown" [] "Transcript down a line";
        ViewPreviousPrompt "tui.altScreen.previousPrompt" ["ctrl+shift+up" "ctrl+up"] wsl ["ctrl+up"] "To the prompt before";
        ViewNextPrompt "tui.altScreen.nextPrompt" ["ctrl+shift+down" "ctrl+down"] wsl ["ctrl+down"] "To the next prompt";
        ViewSearch "tui.altScreen.search" ["ctrl+shift+f"] wsl ["ctrl+f"] "Search the transcript";
        ViewSearchNext "tui.altScreen.searchNext" ["enter" "ctrl+g"] "Next match";
        ViewSearchPrevious "tui.altScreen.searchPrevious" ["shift+enter" "ctrl+shift+g"] "Match before";
        ViewSearchClose "tui.altScreen.searchClose" ["escape"] "End the search";
        ViewTop "tui.altScreen.top" ["home"] "Beginning of the transcript";
        ViewBottom "tui.altScreen.bottom" ["end"] "End of the transcript, and stay there";
    }
    Application {
        Interrupt "app.interrupt" ["escape"] "Stop what runs";
        Clear "app.clear" ["ctrl+c"] "Empty the editor; twice: quit";
        Exit "app.exit" ["ctrl+d"] "Quit, if the editor is empty";
        Suspend "app.suspend" ["ctrl+z"] "Suspend; the shell's `fg` comes back";
        ExternalEditor "app.editor.external" ["ctrl+g"] "Write in an editor of your own";
        PasteImage "app.clipboard.pasteImage" ["ctrl+v"] wsl ["alt+v"] "Paste an image, or else text";
    }
    Sessions {
        SessionNew "app.session.new" [] "New session";
        SessionTree "app.session.tree" [] "Tree of this session";
        SessionFork "app.session.fork" [] "Fork this session";
        SessionResume "app.session.resume" [] "Resume a session";
        SessionTogglePath "app.session.togglePath" ["ctrl+p"] "Show the folders of sessions";
        SessionToggleSort "app.session.toggleSort" ["ctrl+s"] "Sort sessions otherwise";
        SessionToggleNamedFilter "app.session.toggleNamedFilter" ["ctrl+n"] "Only sessions with a name";
        SessionRename "app.session.rename" ["ctrl+r"] "Rename a session";
        SessionDelete "app.session.delete" ["ctrl+d"] "Delete a session";
        SessionDeleteNoninvasive "app.session.deleteNoninvasive" ["ctrl+backspace"] "Delete a session, if nothing is searched for";
    }
    Models {
        ModelSelect "app.model.select" ["ctrl+l"] "Choose a model";
        ModelCycleForward "app.model.cycleForward" ["ctrl+p"] "Next model";
        ModelCycleBackward "app.model.cycleBackward" ["shift+ctrl+p"] wsl ["alt+p"] "Model before";
        ModelsSave "app.models.save" ["ctrl+s"] "Make the choice of models the default";
        ThinkingCycle "app.thinking.cycle" ["shift+tab"] "Next thinking level";
        ThinkingSave "app.thinking.save" ["ctrl+s"] "Make the thinking level the default";
        ThinkingToggle "app.thinking.toggle" ["ctrl+t"] "Fold or open thinking";
    }
    Messages {
        ToolsExpand "app.tools.expand" ["ctrl+o"] "Fold or open the output of tools";
        MessageCopy "app.message.copy" ["ctrl+x"] "Copy the selection or the last answer";
        MessageFollowUp "app.message.followUp" ["alt+enter"] wsl ["ctrl+q"] "Send when all is done";
        MessageDequeue "app.message.dequeue" ["alt+up"] wsl ["alt+q"] "Take back what waits";
    }
    Tree {
        TreeFoldOrUp "app.tree.foldOrUp" ["ctrl+left" "alt+left"] "Fold, or up to the branch before";
        TreeUnfoldOrDown "app.tree.unfoldOrDown" ["ctrl+right" "alt+right"] "Unfold, or down to the next branch";
        TreeEditLabel "app.tree.editLabel" ["shift+l"] "Name an entry";
        TreeToggleLabelTimestamp "app.tree.toggleLabelTimestamp" ["shift+t"] "Show when entries were named";
        TreeFilterDefault "app.tree.filter.default" ["ctrl+d"] "The usual entries";
        TreeFilterNoTools "app.tree.filter.noTools" ["ctrl+t"] "Without results of tools";
        TreeFilterUserOnly "app.tree.filter.userOnly" ["ctrl+u"] "Only prompts";
        TreeFilterLabeledOnly "app.tree.filter.labeledOnly" ["ctrl+l"] "Only entries with a name";
        TreeFilterAll "app.tree.filter.all" ["ctrl+a"] "All entries";
        TreeFilterCycleForward "app.tree.filter.cycleForward" ["ctrl+o"] "Next filter";
        TreeFilterCycleBackward "app.tree.filter.cycleBackward" ["shift+ctrl+o"] "Filter before";
    }
    Scoped {
        ModelsEnableAll "app.models.enableAll" ["ctrl+a"] "Take in all models";
        ModelsClearAll "app.models.clearAll" ["ctrl+x"] "Take out all models";
        ModelsToggleProvider "app.models.toggleProvider" ["ctrl+p"] "All models of a provider";
        ModelsReorderUp "app.models.reorderUp" ["alt+up"] "Model up";
        ModelsReorderDown "app.models.reorderDown" ["alt+down"] "Model down";
    }
}

/// What actions were called before their names had parts.
pub(super) const OLD_IDS: &[(&str, &str)] = &[
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
