// What `@earendil-works/pi-tui` answers with.

export { Box, CancellableLoader, Container, Image, Input, isFocusable, Loader, Spacer, Text, TruncatedText, VStack } from "./components.mjs";
export { Editor, wordWrapLine } from "./editor.mjs";
export {
	decodeKittyPrintable, getKeybindings, isKeyRelease, isKeyRepeat, isKittyProtocolActive, Key, KeybindingsManager, matchesKey, parseKey,
	setKeybindings, setKittyProtocolActive, TUI_KEYBINDINGS,
} from "./keys.mjs";
export { fuzzyFilter, fuzzyMatch, SelectList, SettingsList } from "./lists.mjs";
export { Markdown } from "./markdown.mjs";
export { CURSOR_MARKER, renderFakeCursor, sliceByColumn, stripTerminalSequences, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "./text.mjs";

/** A link that terminals with OSC 8 follow. */
export const hyperlink = (text, url) => `\x1b]8;;${url}\x1b\\${text}\x1b]8;;\x1b\\`;
/** Pictures do not cross to pi as lines. */
export const getCapabilities = () => ({ images: null, trueColor: true, hyperlinks: false });
export const isViewportTUI = () => false;
