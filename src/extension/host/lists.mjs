// The lists of pi-tui, and the fuzzy search that they filter by.

import { Input } from "./components.mjs";
import { getKeybindings } from "./keys.mjs";
import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from "./text.mjs";

/** Whether the letters of `query` come in order in `text`; a lower score is a better match. */
export function fuzzyMatch(query, text) {
	const wanted = query.toLowerCase();
	const given = text.toLowerCase();
	let score = 0;
	let last = -1;
	for (const letter of wanted) {
		const at = given.indexOf(letter, last + 1);
		if (at < 0) return { matches: false, score: 0 };
		const boundary = at === 0 || /[\s\-_./:]/.test(given[at - 1]);
		score += (last >= 0 ? (at - last - 1) * 2 : at * 0.1) - (boundary ? 10 : 0) - (at === last + 1 ? 5 : 0);
		last = at;
	}
	return { matches: true, score: wanted === given ? score - 100 : score };
}

/** The items whose text matches every word of `query`, the best first. */
export function fuzzyFilter(items, query, getText) {
	const words = query.trim().split(/[\s/]+/).filter(Boolean);
	if (words.length === 0) return items;
	const found = [];
	for (const item of items) {
		const matches = words.map((word) => fuzzyMatch(word, getText(item)));
		if (matches.every((match) => match.matches)) {
			found.push({ item, score: matches.reduce((sum, match) => sum + match.score, 0) });
		}
	}
	return found.sort((a, b) => a.score - b.score).map(({ item }) => item);
}

/** A window of `size` rows over `count` rows that shows row `selected`. */
function windowOf(selected, count, size) {
	const start = Math.max(0, Math.min(selected - Math.floor(size / 2), count - size));
	return { start, end: Math.min(start + size, count) };
}

/** The row that `data` moves to, or undefined if it does not move. */
function move(data, selected, count, page) {
	const keys = getKeybindings();
	if (count === 0) return undefined;
	if (keys.matches(data, "tui.select.up")) return (selected + count - 1) % count;
	if (keys.matches(data, "tui.select.down")) return (selected + 1) % count;
	if (keys.matches(data, "tui.select.pageUp")) return Math.max(0, selected - page);
	if (keys.matches(data, "tui.select.pageDown")) return Math.min(count - 1, selected + page);
	return undefined;
}

export class SelectList {
	capturesViewportInput = true;
	selected = 0;

	constructor(items, maxVisible, theme, layout = {}) {
		Object.assign(this, { items, shown: items, maxVisible, theme, layout });
	}

	setFilter(filter) {
		const wanted = filter.toLowerCase();
		this.shown = this.items.filter((item) => item.value.toLowerCase().startsWith(wanted));
		this.selected = 0;
	}

	setSelectedIndex(index) {
		this.selected = Math.max(0, Math.min(index, this.shown.length - 1));
	}

	getSelectedItem() {
		return this.shown[this.selected] ?? null;
	}

	invalidate() {}

	handleMouse() {
		return undefined;
	}

	handleInput(data) {
		const keys = getKeybindings();
		const next = move(data, this.selected, this.shown.length, this.maxVisible);
		if (next !== undefined) {
			this.selected = next;
			this.onSelectionChange?.(this.shown[next]);
		} else if (keys.matches(data, "tui.select.confirm")) {
			const item = this.getSelectedItem();
			if (item) this.onSelect?.(item);
		} else if (keys.matches(data, "tui.select.cancel")) {
			this.onCancel?.();
		}
	}

	render(width) {
		if (this.shown.length === 0) return [this.theme.noMatch("  No matching commands")];
		const { minPrimaryColumnWidth = 1, maxPrimaryColumnWidth = 32 } = this.layout;
		const widest = Math.max(...this.shown.map((item) => visibleWidth(item.label || item.value)));
		const column = Math.min(Math.max(widest + 2, minPrimaryColumnWidth), maxPrimaryColumnWidth, Math.max(4, width - 4));
		const { start, end } = windowOf(this.selected, this.shown.length, this.maxVisible);
		const lines = [];
		for (let index = start; index < end; index++) {
			const item = this.shown[index];
			const selected = index === this.selected;
			const label = item.label || item.value;
			const description = item.description?.replace(/[\r\n]+/g, " ").trim();
			const room = description && width > 40 ? column - 2 : width - 4;
			const primary = this.layout.truncatePrimary?.({ text: label, maxWidth: room, columnWidth: column, item, isSelected: selected })
				?? truncateToWidth(label, room, "");
			const gap = " ".repeat(Math.max(1, column - visibleWidth(primary)));
			const detail = description && width > 40 ? truncateToWidth(description, Math.max(0, width - 4 - column), "") : "";
			if (selected) lines.push(this.theme.selectedText(`${this.theme.selectedPrefix("→ ")}${primary}${detail ? gap + detail : ""}`));
			else lines.push(`  ${primary}${detail ? this.theme.description(gap + detail) : ""}`);
		}
		if (start > 0 || end < this.shown.length) {
			lines.push(this.theme.scrollInfo(truncateToWidth(`  (${this.selected + 1}/${this.shown.length})`, width - 2, "")));
		}
		return lines;
	}
}

export class SettingsList {
	capturesViewportInput = true;
	selected = 0;

	constructor(items, maxVisible, theme, onChange, onCancel, options = {}) {
		Object.assign(this, { items, maxVisible, theme, onChange, onCancel });
		if (options.enableSearch) this.search = new Input();
	}

	get shown() {
		const query = this.search?.getValue() ?? "";
		return query ? fuzzyFilter(this.items, query, (item) => item.label) : this.items;
	}

	updateValue(id, value) {
		const item = this.items.find((candidate) => candidate.id === id);
		if (item) item.currentValue = value;
	}

	selectItem(id) {
		const index = this.shown.findIndex((item) => item.id === id);
		if (index >= 0) this.selected = index;
	}

	invalidate() {
		this.submenu?.invalidate?.();
	}

	handleMouse() {
		return undefined;
	}

	change(item, value) {
		item.currentValue = value;
		this.onChange(item.id, value);
	}

	handleInput(data) {
		if (this.submenu) {
			this.submenu.handleInput?.(data);
			return;
		}
		const keys = getKeybindings();
		const shown = this.shown;
		const next = move(data, this.selected, shown.length, this.maxVisible);
		if (next !== undefined) this.selected = next;
		else if (keys.matches(data, "tui.select.confirm") || (data === " " && !this.search?.getValue())) this.activate(shown[this.selected]);
		else if (keys.matches(data, "tui.select.cancel")) this.onCancel();
		else if (this.search) {
			this.search.handleInput(data);
			this.selected = 0;
		}
	}

	activate(item) {
		if (!item) return;
		if (item.submenu) {
			this.submenu = item.submenu(item.currentValue, (value, options) => {
				this.submenu = undefined;
				if (value !== undefined) this.change(item, value);
				if (options?.navigateTo) this.selectItem(options.navigateTo);
			});
		} else if (item.values?.length) {
			this.change(item, item.values[(item.values.indexOf(item.currentValue) + 1) % item.values.length]);
		}
	}

	render(width) {
		if (this.submenu) return this.submenu.render(width);
		const shown = this.shown;
		const lines = this.search ? [...this.search.render(width), ""] : [];
		if (shown.length === 0) {
			lines.push(this.theme.hint("  No settings available"));
		}
		const labels = Math.min(30, Math.max(0, ...this.items.map((item) => visibleWidth(item.label))));
		const { start, end } = windowOf(this.selected, shown.length, this.maxVisible);
		for (let index = start; index < end; index++) {
			const item = shown[index];
			const selected = index === this.selected;
			const label = item.label + " ".repeat(Math.max(0, labels - visibleWidth(item.label)));
			const room = Math.max(0, width - labels - 6);
			const value = this.theme.value(truncateToWidth(item.currentValue, room, ""), selected);
			lines.push(truncateToWidth(`${selected ? this.theme.cursor : "  "}${this.theme.label(label, selected)}  ${value}`, width));
		}
		if (start > 0 || end < shown.length) lines.push(this.theme.hint(`  (${this.selected + 1}/${shown.length})`));
		const description = shown[this.selected]?.description;
		if (description) {
			lines.push("", ...wrapTextWithAnsi(description, Math.max(1, width - 4)).map((line) => this.theme.description(`  ${line}`)));
		}
		lines.push("", truncateToWidth(this.theme.hint("  Enter/Space to change · Esc to cancel"), width));
		return lines;
	}
}
