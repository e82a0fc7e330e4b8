//! What every line on stdin and stdout looks like, in a notation from which the JSON Schema is made.
//!
//! ```text
//! {name: type, name?: type, *: type}    an object; `?` may be absent, `*` is every other name
//! type[]    a|b    "word"               a list, a choice, this word
//! string integer number boolean null object any
//! Name    Family.member                 a shape of the tables below
//! ```
//! Tests hold the tables against the reader of commands, against the source of every event and against
//! recorded streams, in both directions: nothing is said that is not here, and all that is here is said.

/// Command, its fields, and the data of its answer.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "prompt",
        r#"message: string, images?: Image[], attachments?: Attachment[], streamingBehavior?: "steer"|"followUp""#,
        "",
    ),
    ("message", "content: string, images?: Image[], attachments?: Attachment[]", ""),
    ("steer", "message: string, images?: Image[], attachments?: Attachment[]", ""),
    ("follow_up", "message: string, images?: Image[], attachments?: Attachment[]", ""),
    ("abort", "", ""),
    ("interrupt", "", ""),
    ("abort_and_prompt", "message: string, images?: Image[], attachments?: Attachment[]", ""),
    ("clear_queue", "", "{steering: string[], followUp: string[]}"),
    ("new_session", "parentSession?: string", CANCELLED),
    ("get_state", "", "State"),
    (
        "get_messages",
        "offset?: integer, limit?: integer",
        "{messages: Message[], total?: integer, nextOffset?: integer|null}",
    ),
    ("get_entries", "since?: string", "{entries: Entry[], leafId: string|null}"),
    ("get_tree", "", "{tree: Node[], leafId: string|null}"),
    (
        "navigate_tree",
        "targetId: string, summarize?: boolean, customInstructions?: string, replaceInstructions?: boolean, label?: string",
        "{cancelled: boolean, aborted?: boolean, editorText?: string, summaryEntry?: Entry}",
    ),
    ("set_model", "provider: string, modelId: string", "Model"),
    ("cycle_model", "", "{model: Model, thinkingLevel: Thinking, isScoped: boolean}|null"),
    ("get_available_models", "", "{models: Model[]}"),
    ("set_thinking_level", "level: Thinking", ""),
    ("cycle_thinking_level", "", "{level: Thinking}|null"),
    ("get_available_thinking_levels", "", "{levels: Thinking[]}"),
    ("set_steering_mode", "mode: Queue", ""),
    ("set_follow_up_mode", "mode: Queue", ""),
    ("set_interrupt_mode", "mode: Interrupt", ""),
    ("compact", "customInstructions?: string", "Compacted"),
    ("set_auto_compaction", "enabled: boolean", ""),
    ("set_auto_retry", "enabled: boolean", ""),
    ("abort_retry", "", ""),
    (
        "bash",
        "command: string, excludeFromContext?: boolean",
        "{output: string, exitCode?: integer, cancelled: boolean, truncated: boolean, fullOutputPath?: string}",
    ),
    ("abort_bash", "", ""),
    (
        "get_session_stats",
        "",
        "{sessionFile?: string, sessionId: string, userMessages: integer, assistantMessages: integer, toolCalls: integer, toolResults: integer, totalMessages: integer, tokens: {input: integer, output: integer, cacheRead: integer, cacheWrite: integer, total: integer}, cost: number, contextUsage?: {tokens: integer|null, contextWindow: integer, percent: number|null}}",
    ),
    ("export_html", "outputPath?: string", "{path: string}"),
    ("switch_session", "sessionPath: string", CANCELLED),
    ("fork", "entryId: string", FORKED),
    ("branch", "entryId: string", FORKED),
    ("clone", "", CANCELLED),
    ("get_fork_messages", "", FORK_POINTS),
    ("get_branch_messages", "", FORK_POINTS),
    ("get_last_assistant_text", "", "{text: string|null}"),
    ("set_session_name", "name: string", ""),
    (
        "get_commands",
        "",
        r#"{commands: {name: string, description?: string|null, source: "prompt"|"skill", sourceInfo: {path: string, source: "local"|"auto", scope: "project"|"user"|"temporary", origin: string, baseDir?: string}}[]}"#,
    ),
    (
        "get_tools",
        "",
        "{tools: {name: string, label: string, description: string, parameters: object, active: boolean, readOnly: boolean}[]}",
    ),
    ("set_active_tools", "toolNames: string[]", ACTIVE),
    ("register_tools", "tools: HostTool[]", ACTIVE),
    ("unregister_tools", "toolNames: string[]", ACTIVE),
    ("reload", "", ""),
    ("ping", "", ""),
    ("set_cumulative_events", "enabled: boolean", ""),
];

const CANCELLED: &str = "{cancelled: boolean}";
const FORKED: &str = "{text: string, cancelled: boolean}";
const FORK_POINTS: &str = "{messages: {entryId: string, text: string}[]}";
const ACTIVE: &str = "{toolNames: string[]}";

/// The answer to a command that is refused, among the others.
pub const FAILURE: &str = "failure";

/// The names of all commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, ..)| *name)
}

/// What the client says that is no command: answers to the program, which have no answer themselves.
pub const ANSWERS: &[(&str, &str)] = &[
    (
        "extension_ui_response",
        "id: string, value?: string, cancelled?: boolean, reason?: string, arguments?: object",
    ),
    ("tool_call_update", RESULT),
    ("tool_call_response", RESULT),
];

const RESULT: &str =
    "id: string, content?: string|(Block.text|Block.image)[], details?: any, isError?: boolean";

/// Shapes that are told apart by the word in one of their fields.
pub struct Family {
    pub name: &'static str,
    /// The field with the word.
    pub tag: &'static str,
    /// Fields that all have.
    pub head: &'static str,
    /// The word, and fields besides.
    pub members: &'static [(&'static str, &'static str)],
}

pub const FAMILIES: &[Family] = &[
    Family {
        name: "Event",
        tag: "type",
        head: "",
        members: &[
            ("ready", "protocolVersion: integer, capabilities: string[], commands: string[]"),
            (
                "session",
                "version: integer, id: string, timestamp: string, cwd: string, parentSession?: string",
            ),
            ("agent_start", ""),
            ("agent_end", "messages: Message[], willRetry: boolean"),
            ("agent_settled", ""),
            ("turn_start", ""),
            ("turn_end", "message: Message.assistant, toolResults: Message.toolResult[]"),
            ("message_start", "message: Message"),
            ("message_update", "usage: Usage, assistantMessageEvent: Step, message?: Message.assistant"),
            ("message_end", "message: Message"),
            ("tool_execution_start", "toolCallId: string, toolName: string, args: object"),
            (
                "tool_execution_update",
                "toolCallId: string, toolName: string, args: object, partialResult: Output",
            ),
            ("tool_execution_end", "toolCallId: string, toolName: string, result: Output, isError: boolean"),
            ("limit_reached", "reason: string"),
            ("prompt_progress", "processed: integer, total: integer"),
            ("output", "value?: any, error?: string"),
            ("auto_retry_start", RETRY),
            ("auto_retry_end", "success: boolean, attempt: integer, finalError?: string"),
            ("compaction_start", "reason: Reason"),
            (
                "compaction_end",
                "reason: Reason, result?: Compacted, aborted: boolean, willRetry: boolean, errorMessage?: string",
            ),
            ("summarization_retry_scheduled", RETRY),
            ("summarization_retry_attempt_start", r#"source: "compaction"|"branchSummary", reason?: Reason"#),
            ("summarization_retry_finished", ""),
            ("entry_appended", "entry: Entry"),
            ("session_info_changed", "name?: string"),
            ("thinking_level_changed", "level: Thinking"),
            ("bash_execution_update", "id?: any, delta: string"),
            ("queue_update", "steering: string[], followUp: string[]"),
            (
                "extension_ui_request",
                r#"id: string, method: "select"|"input"|"editor", title: string, options?: string[], prefill?: string, toolCallId?: string, toolName?: string, arguments?: object"#,
            ),
            ("tool_call_request", "id: string, toolCallId: string, toolName: string, arguments: object"),
            ("tool_call_cancel", r#"id: string, reason: "aborted"|"timeout""#),
            ("bash_end", "message: Message.bashExecution"),
            ("compaction", "summary: string, tokensBefore: integer, auto?: boolean"),
            ("error", "error: string"),
        ],
    },
    Family {
        name: "Step",
        tag: "type",
        head: "contentIndex: integer, partial?: Message.assistant",
        members: &[
            ("text_start", ""),
            ("text_delta", "delta: string"),
            ("text_end", "content: string"),
            ("thinking_start", ""),
            ("thinking_delta", "delta: string"),
            ("thinking_end", "content: string"),
            ("toolcall_start", "id: string, toolName: string"),
            ("toolcall_delta", "delta: string"),
            ("toolcall_end", "toolCall: Block.toolCall"),
        ],
    },
    Family {
        name: "Message",
        tag: "role",
        head: "timestamp: integer",
        members: &[
            (
                "system",
                "content: Content, sections?: {*: string|null}, toolsAdded?: {name: string, description: string, parameters: object, constrainedSampling?: any}[], toolsRemoved?: {name: string}[], replace?: boolean",
            ),
            ("user", "content: Content"),
            (
                "assistant",
                r#"content: Block[], api: string, provider: string, model: string, usage: Usage, stopReason: "pending"|"stop"|"length"|"toolUse"|"error"|"aborted"|"deferred", responseId?: string, responseModel?: string, providerThinkingLevel?: string, rawStopReason?: string, errorMessage?: string, endTurn?: boolean, diagnostics?: any, deferred?: any"#,
            ),
            (
                "toolResult",
                "toolCallId: string, toolName: string, content: Block[], details?: any, usage?: Usage, isError: boolean",
            ),
            (
                "bashExecution",
                "command: string, output: string, exitCode?: integer, cancelled: boolean, truncated: boolean, fullOutputPath?: string, excludeFromContext?: boolean",
            ),
            ("custom", "customType: string, content: Content, display: boolean, details?: any"),
            ("branchSummary", "summary: string, fromId: string|null"),
            ("compactionSummary", "summary: string, tokensBefore: integer"),
        ],
    },
    Family {
        name: "Block",
        tag: "type",
        head: "",
        members: &[
            ("text", "text: string, textSignature?: string"),
            ("thinking", "thinking: string, thinkingSignature?: string, redacted?: boolean"),
            ("image", "data: string, mimeType: string"),
            (
                "toolCall",
                "id: string, name: string, arguments: object, thoughtSignature?: string, namespace?: string",
            ),
        ],
    },
    Family {
        name: "Entry",
        tag: "type",
        head: "id: string, parentId: string|null, timestamp: string",
        members: &[
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
        ],
    },
];

const RETRY: &str = "attempt: integer, maxAttempts: integer, delayMs: integer, errorMessage: string";

/// All other shapes.
pub const SHAPES: &[(&str, &str)] = &[
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
        "{input: integer, output: integer, cacheRead: integer, cacheWrite: integer, cacheWrite1h?: integer, reasoning?: integer, totalTokens: integer, cost: {input: number, output: number, cacheRead: number, cacheWrite: number, total: number}}",
    ),
    ("Output", "{content: Block[], details?: any, usage?: Usage, terminate?: boolean}"),
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
