//! What is stored of a conversation: entries, the log file, the tree.
