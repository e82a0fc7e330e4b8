#!/usr/bin/env python3
"""An extension of pi: a tool for the model and a command for you. pi docs extensions is the protocol."""

import json
import sys

REGISTRATION = {
    "protocolVersion": 1,
    "tools": [{
        "name": "@NAME@",
        "description": "Greets somebody",
        "parameters": {
            "type": "object",
            "properties": {"who": {"type": "string", "description": "Who is greeted"}},
            "required": ["who"],
        },
    }],
    "commands": [{"name": "@NAME@", "description": "Greets you"}],
}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def handle(method, params):
    """Answers a request of pi. What is raised here is told as an error."""
    if method == "initialize":
        return REGISTRATION
    if method == "tool.call":
        return {"content": f"Hello, {params['arguments']['who']}."}
    if method == "command.run":
        send({"id": "note", "method": "ui.notify", "params": {"message": "Hello.", "type": "info"}})
    return None


for line in sys.stdin:
    message = json.loads(line)
    # An answer to a call of ours, or a notification.
    if "method" not in message or "id" not in message:
        continue
    try:
        send({"id": message["id"], "result": handle(message["method"], message.get("params") or {})})
    except Exception as error:
        send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})
    if message["method"] == "shutdown":
        break
