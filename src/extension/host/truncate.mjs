// Limits of what a tool tells the model.

export const DEFAULT_MAX_LINES = 2000;
export const DEFAULT_MAX_BYTES = 50 * 1024;
export const GREP_MAX_LINE_LENGTH = 500;

const size = (text) => Buffer.byteLength(text, "utf8");

/** A number of bytes for people. */
export function formatSize(bytes) {
	if (bytes < 1024) return `${bytes}B`;
	return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)}KB` : `${(bytes / 1024 / 1024).toFixed(1)}MB`;
}

function linesOf(content) {
	const lines = content.split("\n");
	if (lines.length > 1 && lines.at(-1) === "") lines.pop();
	return content === "" ? [] : lines;
}

function outcome(content, lines, kept, by, limits, marks = {}) {
	const text = kept.join("\n");
	return {
		content: by ? text : content,
		truncated: by !== null,
		truncatedBy: by,
		totalLines: lines.length,
		totalBytes: size(content),
		outputLines: by ? kept.length : lines.length,
		outputBytes: size(by ? text : content),
		lastLinePartial: false,
		firstLineExceedsLimit: false,
		...limits,
		...marks,
	};
}

/** As many whole lines as fit into both limits, in the order of `lines`. */
function fit(lines, { maxLines, maxBytes }) {
	let bytes = 0;
	let count = 0;
	while (count < lines.length) {
		if (count === maxLines) return { count, by: "lines" };
		bytes += size(lines[count]) + (count > 0 ? 1 : 0);
		if (bytes > maxBytes) return { count, by: "bytes" };
		count++;
	}
	return { count, by: null };
}

const limitsOf = ({ maxLines = DEFAULT_MAX_LINES, maxBytes = DEFAULT_MAX_BYTES } = {}) => ({ maxLines, maxBytes });

/** The first lines, for texts that are read from the beginning. */
export function truncateHead(content, options) {
	const limits = limitsOf(options);
	const lines = linesOf(content);
	const { count, by } = fit(lines, limits);
	return outcome(content, lines, lines.slice(0, count), by, limits, { firstLineExceedsLimit: by === "bytes" && count === 0 });
}

/** The last lines, for output whose end matters; of one line that is too long, its end. */
export function truncateTail(content, options) {
	const limits = limitsOf(options);
	const lines = linesOf(content);
	const { count, by } = fit([...lines].reverse(), limits);
	if (by === "bytes" && count === 0) {
		const bytes = Buffer.from(lines.at(-1)).subarray(-limits.maxBytes);
		let start = 0;
		while (start < bytes.length && (bytes[start] & 0xc0) === 0x80) start++;
		return outcome(content, lines, [bytes.subarray(start).toString("utf8")], by, limits, { lastLinePartial: true });
	}
	return outcome(content, lines, lines.slice(lines.length - count), by, limits);
}

export function truncateLine(line, maxChars = GREP_MAX_LINE_LENGTH) {
	if (line.length <= maxChars) return { text: line, wasTruncated: false };
	return { text: `${line.slice(0, maxChars)}... [truncated]`, wasTruncated: true };
}
