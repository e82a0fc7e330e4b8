#!/usr/bin/env python3
"""Asks before commands that delete or overwrite much. Where nobody can answer, they do not run.

    pi -e scripts/examples/extensions/permission-gate.py
"""

import json
import re
import sys

DANGEROUS = [
    (r"\brm\s+(-\w*\s+)*-\w*[rRf]", "it deletes files for good"),
    (r"\bgit\s+(reset\s+--hard|clean\s+-\w*f|push\s+.*(--force|-f\b))", "it throws work away"),
    (r"\b(mkfs|dd\s+.*of=/dev/)", "it overwrites a disk"),
    (r"\bsudo\b", "it runs as root"),
    (r"\bchmod\s+(-\w+\s+)*777\b", "it lets everybody write"),
]

waiting = []
has_ui = False


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def messages():
    """Messages of pi: those that came while we waited for an answer, then new ones."""
    while True:
        if waiting:
            yield waiting.pop(0)
            continue
        line = sys.stdin.readline()
        if not line:
            return
        yield json.loads(line)


def call(method, params):
    """Calls pi and waits for the answer."""
    send({"id": "ours", "method": method, "params": params})
    while line := sys.stdin.readline():
        message = json.loads(line)
        if message.get("id") == "ours" and "method" not in message:
            return message.get("result") or {}
        waiting.append(message)
    return {}


def decide(event):
    command = event["input"].get("command") or ""
    reason = next((why for pattern, why in DANGEROUS if re.search(pattern, command)), None)
    if event["toolName"] != "bash" or reason is None:
        return None
    if not has_ui:
        return {"block": True, "reason": f"Not without a person who agrees: {reason}"}
    answer = call("ui.confirm", {"title": "Run this command?", "message": f"{command}\n\n{reason}"})
    return None if answer.get("confirmed") else {"block": True, "reason": f"The user said no: {reason}"}


for message in messages():
    method, params = message.get("method"), message.get("params") or {}
    if method is None or "id" not in message:
        continue
    result = None
    if method == "initialize":
        has_ui = params["hasUI"]
        result = {"protocolVersion": 1, "events": ["tool_call"],
                  "commands": [{"name": "permission-gate", "description": "Shows what it asks about"}]}
    elif method == "event":
        result = decide(params["event"])
    elif method == "command.run":
        text = "\n".join(f"{pattern}  ({why})" for pattern, why in DANGEROUS)
        send({"id": "note", "method": "ui.notify", "params": {"message": text, "type": "info"}})
    send({"id": message["id"], "result": result})
    if method == "shutdown":
        break
