// What `@earendil-works/pi-agent-core` answers with: its types are erased, and it has no value that extensions use.

export {};
