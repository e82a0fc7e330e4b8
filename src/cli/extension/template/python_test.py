"""Talks to the extension as pi does. Run it: python3 test.py"""

import json
import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).with_name("@NAME@")


def ask(*requests):
    """The results of requests, by their position."""
    lines = [json.dumps({"jsonrpc": "2.0", "id": at, "method": method, "params": params})
             for at, (method, params) in enumerate(requests)]
    ran = subprocess.run([sys.executable, PROGRAM], input="\n".join(lines) + "\n", capture_output=True, text=True,
                         timeout=30, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    return {answer["id"]: answer.get("result") for answer in answers if "method" not in answer}


answers = ask(("initialize", {}), ("tool.call", {"name": "@NAME@", "arguments": {"who": "Ada"}}), ("shutdown", {}))
assert answers[0]["protocolVersion"] == 1, answers
assert answers[1]["content"] == "Hello, Ada.", answers
print("ok")
