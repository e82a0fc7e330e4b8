//! The shapes of values in lines on stdin and stdout, in a notation from which the JSON Schema is generated.
//!
//! ```text
//! {name: type, name?: type, *: type}    an object; `?` may be absent, `*` is every other name
//! type[]    a|b    "word"               a list, a choice, this word
//! string integer number boolean null object any
//! Name    Family.member                 a shape of the tables below
//! ```
//! Commands (`command`) and events (`event_json`) declare their fields in this notation where they are read and
//! written. Tests compare the declarations with recorded streams in both directions: every field written is
//! declared, and every declared field is written.

use crate::runtime::event_json::{AGENT_EVENTS, OTHER_LINES, SESSION_EVENTS, STEPS, UPDATES};

/// Names with their shapes or fields.
type Table = &'static [(&'static str, &'static str)];

/// Shapes that are distinguished by the value of one field.
pub struct Family {
    pub name: &'static str,
    /// The distinguishing field.
    pub tag: &'static str,
    /// Fields common to all members.
    pub head: &'static str,
    /// The values of the tag, each with the member's other fields.
    pub members: &'static [Table],
}

pub const FAMILIES: &[Family] = &[
    Family {
        name: "Event",
        tag: "type",
        head: "",
        members: &[
            SESSION_EVENTS,
            AGENT_EVENTS,
            UPDATES,
            OTHER_LINES,
            &[(
                "session",
                "version: integer, id: string, timestamp: string, cwd: string, parentSession?: string",
            )],
        ],
    },
    Family { name: "Step", tag: "type", head: "partial?: Message.assistant", members: &[STEPS] },
    Family {
        name: "Message",
        tag: "role",
        head: "timestamp: integer",
        members: &[&[
            (
                "system",
                "content: Content, sections?: {*: string|null}, toolsAdded?: {name: string, description: string, parameters: object, constrainedSampling?: any}[], toolsRemoved?: {name: string}[], replace?: boolean",
            ),
            ("user", "content: Content"),
            (
                "assistant",
                r#"content: Block[], api: string, provider: string, model: string, usage: Usage, stopReason: "pending"|"stop"|"length"|"toolUse"|"error"|"aborted"|"deferred", responseId?: string, responseModel?: string, providerThinkingLevel?: string, rawStopReason?: string, errorMessage?: string, endTurn?: boolean, diagnostics?: any, deferred?: any, durationMs?: integer, thinkingLevel?: Thinking"#,
            ),
            (
                "toolResult",
                "toolCallId: string, toolName: string, content: Block[], details?: any, usage?: Usage, isError: boolean, durationMs?: integer, nestedCalls?: any",
            ),
            (
                "bashExecution",
                "command: string, output: string, exitCode?: integer, cancelled: boolean, truncated: boolean, fullOutputPath?: string, excludeFromContext?: boolean",
            ),
            ("custom", "customType: string, content: Content, display: boolean, details?: any"),
            ("branchSummary", "summary: string, fromId: string|null"),
            ("compactionSummary", "summary: string, tokensBefore: integer"),
        ]],
    },
    Family {
        name: "Block",
        tag: "type",
        head: "",
        members: &[&[
            ("text", "text: string, textSignature?: string"),
            ("thinking", "thinking: string, thinkingSignature?: string, redacted?: boolean"),
            ("image", "data: string, mimeType: string"),
            (
                "toolCall",
                "id: string, name: string, arguments: object, argumentsError?: string, thoughtSignature?: string, namespace?: string",
            ),
        ]],
    },
    Family {
        name: "Entry",
        tag: "type",
        head: "id: string, parentId: string|null, timestamp: string",
        members: &[&[
            ("message", "message: Message"),
            ("model_change", "provider: string, modelId: string"),
            ("thinking_level_change", "thinkingLevel: string"),
            ("usage", "kind: string, provider: string, model: string, usage: Usage"),
            (
                "compaction",
                "summary: string, firstKeptEntryId?: string, tokensBefore: integer, details?: any, usage?: Usage, fromHook?: boolean, systemMessage?: Message.system",
            ),
            ("context_edit", "targetId: string, replacement: {content: Content}|null"),
            (
                "branch_summary",
                "fromId: string|null, summary: string, details?: any, usage?: Usage, fromHook?: boolean",
            ),
            ("custom", "customType: string, data?: any"),
            ("custom_message", "customType: string, content: Content|null, display: boolean, details?: any"),
            ("label", "targetId: string, label?: string"),
            ("session_info", "name: string"),
            ("damaged", ""),
        ]],
    },
];

/// Shapes that others refer to, or that are long.
pub const SHAPES: Table = &[
    (
        "State",
        "{model: Model, thinkingLevel: Thinking, isStreaming: boolean, isCompacting: boolean, steeringMode: Queue, followUpMode: Queue, sessionFile?: string, sessionId: string, sessionName?: string, autoCompactionEnabled: boolean, messageCount: integer, pendingMessageCount: integer, interruptMode: Interrupt, autoRetryEnabled: boolean, activeTools: string[], cwd: string, protocolVersion: integer, capabilities: string[], version: string, referenceVersion: string}",
    ),
    (
        "Model",
        "{id: string, name: string, api: string, provider: string, baseUrl: string, reasoning: boolean, thinkingLevelMap?: object, input: string[], inputLimits?: object, cost: {input: number, output: number, cacheRead: number, cacheWrite: number, tiers?: {input: number, output: number, cacheRead: number, cacheWrite: number, inputTokensAbove: integer}[]}, promptCache?: any, contextWindow: integer, maxTokens: integer, samplingParams?: object, headers?: object, compat?: object}",
    ),
    (
        "Usage",
        "{input: integer, output: integer, cacheRead: integer, cacheWrite: integer, cacheWrite1h?: integer, reasoning?: integer, totalTokens: integer, cost: {input: number, output: number, cacheRead: number, cacheWrite: number, total: number, totalFromProvider?: boolean}}",
    ),
    (
        "Output",
        "{content: Block[], details?: any, structuredContent?: any, isError?: boolean, usage?: Usage, terminate?: boolean}",
    ),
    (
        "Compacted",
        "{summary: string, firstKeptEntryId: string, tokensBefore: integer, estimatedTokensAfter: integer, usage?: Usage, details?: any}",
    ),
    ("Node", "{entry: Entry, children: Node[], label?: string, labelTimestamp?: string}"),
    ("Content", "string|Block[]"),
    ("Image", r#"{type?: "image", data: string, mimeType: string}"#),
    (
        "Attachment",
        r#"{type: "image", content: string, mimeType: string, id?: string, fileName?: string, size?: integer}|{type: "document", extractedText: string, id?: string, fileName?: string, mimeType?: string, size?: integer, content?: string}"#,
    ),
    (
        "HostTool",
        r#"{name: string, label?: string, description?: string, snippet?: string, parameters?: {type: "object", *: any}, sequential?: boolean, readOnly?: boolean, timeoutMs?: integer}"#,
    ),
    ("Thinking", r#""off"|"minimal"|"low"|"medium"|"high"|"xhigh"|"max""#),
    ("Queue", r#""all"|"one-at-a-time""#),
    ("Interrupt", r#""wait"|"immediate""#),
    ("Reason", r#""manual"|"threshold"|"overflow""#),
];
