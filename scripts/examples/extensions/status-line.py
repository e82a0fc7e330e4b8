#!/usr/bin/env python3
"""Shows in the footer how many turns the session has had, how full the context is, and what is not committed.

    pi -e scripts/examples/extensions/status-line.py
"""

import json
import subprocess
import sys

turns = 0


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def changed_files():
    """The number of files with changes; none outside of a repository."""
    try:
        ran = subprocess.run(["git", "status", "--porcelain"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return len(ran.stdout.splitlines()) if ran.returncode == 0 else None


def show(state):
    parts = [f"turn {turns}"]
    percent = (state.get("contextUsage") or {}).get("percent")
    if percent is not None:
        parts.append(f"context {percent:.0f}%")
    changed = changed_files()
    if changed is not None:
        parts.append(f"{changed} changed" if changed else "clean")
    send({"id": "status", "method": "ui.setStatus", "params": {"key": "status-line", "text": " · ".join(parts)}})


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method is None:
        # The state that was asked for below.
        if message.get("id") == "state":
            show(message.get("result") or {})
        continue
    if "id" not in message:
        continue
    result = None
    if method == "initialize":
        result = {"protocolVersion": 1, "events": ["session_start", "turn_end"]}
    elif method == "event":
        turns = turns + 1 if message["params"]["event"]["type"] == "turn_end" else 0
        send({"id": "state", "method": "session.state", "params": {}})
    send({"id": message["id"], "result": result})
    if method == "shutdown":
        break
