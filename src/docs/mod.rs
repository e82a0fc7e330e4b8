//! The manual: Markdown pages inside the program, so that `pi docs` needs no network.

/// Topic, what it is about, and the page.
pub const PAGES: &[(&str, &str, &str)] = &[
    ("start", "The first run, step by step", include_str!("start.md")),
    ("cli", "Flags, exit codes, what goes where", include_str!("cli.md")),
    ("models", "Choosing a model; models.json", include_str!("models.md")),
    ("providers", "Keys for every provider", include_str!("providers.md")),
    ("add-provider", "What a provider or a protocol of your own needs", include_str!("add-provider.md")),
    ("auth", "Signing in with a subscription, and pi auth", include_str!("auth.md")),
    ("local", "Servers on this machine", include_str!("local.md")),
    ("tools", "What the agent can do, and the limits", include_str!("tools.md")),
    ("helpers", "Tasks for agents beside each other; agents of your own", include_str!("helpers.md")),
    ("permissions", "Which tool calls are asked about or refused", include_str!("permissions.md")),
    ("jobs", "Commands in the background", include_str!("jobs.md")),
    ("plan", "Plan mode; questions beside the conversation", include_str!("plan.md")),
    ("undo", "Taking back what was done to files", include_str!("undo.md")),
    ("sandbox", "Limits on what tools write and reach", include_str!("sandbox.md")),
    ("sessions", "Where conversations are stored, and how", include_str!("sessions.md")),
    ("export", "Sessions as a page, Markdown or JSON lines", include_str!("export.md")),
    ("compaction", "Long conversations: summaries, small windows", include_str!("compaction.md")),
    ("settings", "settings.json", include_str!("settings.md")),
    ("interactive", "The terminal: conversation, viewer, fullscreen mode", include_str!("interactive.md")),
    ("slash-commands", "What a line with a slash does in the terminal", include_str!("slash-commands.md")),
    ("keybindings", "Which key does what in the terminal; keybindings.json", include_str!("keybindings.md")),
    ("themes", "Colours of the terminal", include_str!("themes.md")),
    ("prompt", "System prompt, AGENTS.md, SYSTEM.md", include_str!("prompt.md")),
    ("trust", "What a project may bring along", include_str!("trust.md")),
    ("skills", "Instructions read on demand", include_str!("skills.md")),
    ("templates", "Prompts behind a /name", include_str!("templates.md")),
    ("mcp", "Servers of the Model Context Protocol; mcp.json", include_str!("mcp.md")),
    ("mcp-server", "pi as a server for programs that speak MCP", include_str!("mcp-server.md")),
    ("codemode", "Scripts of the model that call tools", include_str!("codemode.md")),
    (
        "extensions",
        "Programs that add tools, commands and more; their protocol",
        include_str!("extensions.md"),
    ),
    (
        "extensions-typescript",
        "Extensions of the TypeScript pi: what runs, and what does not",
        include_str!("extensions-typescript.md"),
    ),
    (
        "packages",
        "Extensions, skills, prompts and themes from npm, git or a folder",
        include_str!("packages.md"),
    ),
    ("hooks", "Commands of your own at events, without an extension", include_str!("hooks.md")),
    ("json", "The event stream of --mode json", include_str!("json.md")),
    ("rpc", "The agent as a component: commands, answers, clients", include_str!("rpc.md")),
    ("sdk", "The library: sessions inside your own program", include_str!("sdk.md")),
    ("acp", "The agent inside an editor that speaks ACP", include_str!("acp.md")),
    ("faux", "A scripted model for tests and demos", include_str!("faux.md")),
    ("security", "What is promised, against whom, and what is not", include_str!("security.md")),
    ("network", "Proxies, certificates, what is sent where", include_str!("network.md")),
    ("architecture", "Rooms, one prompt's walk, threads, words", include_str!("architecture.md")),
    ("contributing", "How code reads here; recipes", include_str!("contributing.md")),
];

/// The page on `topic`.
pub fn page(topic: &str) -> Option<&'static str> {
    PAGES.iter().find(|(name, ..)| *name == topic).map(|(.., page)| *page)
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
