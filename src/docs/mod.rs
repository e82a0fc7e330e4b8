//! The manual: Markdown pages inside the program, so that `pi docs` needs no network.

use crate::base::packed::{Packed, packed};

/// Topic, what it is about, and the page.
pub const PAGES: &[(&str, &str, Packed)] = &[
    ("start", "The first run, step by step", packed!("src/docs/start.md")),
    ("cli", "Flags, exit codes, what goes where", packed!("src/docs/cli.md")),
    ("models", "Choosing a model; models.json", packed!("src/docs/models.md")),
    ("providers", "Keys for every provider", packed!("src/docs/providers.md")),
    ("add-provider", "What a provider or a protocol of your own needs", packed!("src/docs/add-provider.md")),
    ("auth", "Signing in with a subscription, and pi auth", packed!("src/docs/auth.md")),
    ("local", "Servers on this machine", packed!("src/docs/local.md")),
    ("tools", "What the agent can do, and the limits", packed!("src/docs/tools.md")),
    ("helpers", "Tasks for agents beside each other; agents of your own", packed!("src/docs/helpers.md")),
    ("permissions", "Which tool calls are asked about or refused", packed!("src/docs/permissions.md")),
    ("jobs", "Commands in the background", packed!("src/docs/jobs.md")),
    ("plan", "Plan mode; questions beside the conversation", packed!("src/docs/plan.md")),
    ("undo", "Taking back what was done to files", packed!("src/docs/undo.md")),
    ("sandbox", "Limits on what tools write and reach", packed!("src/docs/sandbox.md")),
    ("sessions", "Where conversations are stored, and how", packed!("src/docs/sessions.md")),
    ("export", "Sessions as a page, Markdown or JSON lines", packed!("src/docs/export.md")),
    ("compaction", "Long conversations: summaries, small windows", packed!("src/docs/compaction.md")),
    ("settings", "settings.json", packed!("src/docs/settings.md")),
    (
        "interactive",
        "The terminal: conversation, viewer, fullscreen mode",
        packed!("src/docs/interactive.md"),
    ),
    (
        "slash-commands",
        "What a line with a slash does in the terminal",
        packed!("src/docs/slash-commands.md"),
    ),
    (
        "keybindings",
        "Which key does what in the terminal; keybindings.json",
        packed!("src/docs/keybindings.md"),
    ),
    ("themes", "Colours of the terminal", packed!("src/docs/themes.md")),
    ("prompt", "System prompt, AGENTS.md, SYSTEM.md", packed!("src/docs/prompt.md")),
    ("trust", "What a project may bring along", packed!("src/docs/trust.md")),
    ("skills", "Instructions read on demand", packed!("src/docs/skills.md")),
    ("templates", "Prompts behind a /name", packed!("src/docs/templates.md")),
    ("mcp", "Servers of the Model Context Protocol; mcp.json", packed!("src/docs/mcp.md")),
    ("mcp-server", "pi as a server for programs that speak MCP", packed!("src/docs/mcp-server.md")),
    ("codemode", "Scripts of the model that call tools", packed!("src/docs/codemode.md")),
    (
        "extensions",
        "Programs that add tools, commands and more; their protocol",
        packed!("src/docs/extensions.md"),
    ),
    (
        "extensions-typescript",
        "Extensions of the TypeScript pi: what runs, and what does not",
        packed!("src/docs/extensions-typescript.md"),
    ),
    (
        "packages",
        "Extensions, skills, prompts and themes from npm, git or a folder",
        packed!("src/docs/packages.md"),
    ),
    ("hooks", "Commands of your own at events, without an extension", packed!("src/docs/hooks.md")),
    ("json", "The event stream of --mode json", packed!("src/docs/json.md")),
    ("rpc", "The agent as a component: commands, answers, clients", packed!("src/docs/rpc.md")),
    ("sdk", "The library: sessions inside your own program", packed!("src/docs/sdk.md")),
    ("acp", "The agent inside an editor that speaks ACP", packed!("src/docs/acp.md")),
    ("faux", "A scripted model for tests and demos", packed!("src/docs/faux.md")),
    ("security", "What is promised, against whom, and what is not", packed!("src/docs/security.md")),
    ("network", "Proxies, certificates, what is sent where", packed!("src/docs/network.md")),
    ("architecture", "Rooms, one prompt's walk, threads, words", packed!("src/docs/architecture.md")),
    ("contributing", "How code reads here; recipes", packed!("src/docs/contributing.md")),
];

/// The page on `topic`.
pub fn page(topic: &str) -> Option<String> {
    PAGES.iter().find(|(name, ..)| *name == topic).map(|(.., page)| page.text())
}

/// All topics, a line each.
pub fn contents() -> String {
    let mut text = String::from("# Manual\n\nShow a page with `pi docs TOPIC`.\n\n");
    for (name, about, _) in PAGES {
        text.push_str(&format!("- {name}: {about}\n"));
    }
    text.push_str(
        "\n`pi docs schema NAME` prints a JSON Schema: settings, models, keybindings, theme, mcp or rpc.\n",
    );
    text
}
