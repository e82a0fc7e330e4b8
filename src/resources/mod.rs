//! What a user and a project bring along: settings, context files, the system prompt.
