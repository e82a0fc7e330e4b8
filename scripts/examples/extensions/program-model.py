#!/usr/bin/env python3
"""A model that is a program: it gets the conversation as text on stdin, and what it prints is the answer, as it comes.

    PI_PROGRAM_MODEL='llama-cli -m model.gguf --simple-io -f /dev/stdin' \\
        pi -e scripts/examples/extensions/program-model.py --model program/run
"""

import codecs
import json
import os
import signal
import subprocess
import sys
import threading

MODEL = {
    "id": "run",
    "name": "A program",
    "reasoning": False,
    "input": ["text"],
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    "contextWindow": 32768,
    "maxTokens": 8192,
}
# Nothing is sent to the address: this program answers.
PROVIDER = {
    "name": "program",
    "displayName": "A program of this machine",
    "streams": True,
    "api": "program",
    "baseUrl": "http://127.0.0.1:9",
    "apiKey": "none",
    "models": [MODEL],
}

writing = threading.Lock()
running = {}


def send(message):
    with writing:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if block.get("type") == "text")


def conversation(messages):
    """The conversation as text, ending where the model goes on."""
    parts = []
    for message in messages:
        text = text_of(message.get("content") or "")
        if message["role"] == "system":
            text = "\n\n".join([text, *message.get("sections", {}).values()]).strip()
        if text:
            parts.append(f"{message['role']}: {text}")
    return "\n\n".join([*parts, "assistant:"])


def stream(request, params, child):
    """Passes on what the program prints. Ends when it does, or when it was killed."""

    def event(kind, **fields):
        event = {"type": kind, "contentIndex": 0, **fields}
        send({"method": "provider.event", "params": {"stream": params["stream"], "event": event}})

    def feed():
        try:
            child.stdin.write(conversation(params["messages"]).encode())
            child.stdin.close()
        except OSError:
            pass  # A program need not read to the end.

    threading.Thread(target=feed, daemon=True).start()
    event("text_start")
    answer = ""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while piece := child.stdout.read1(4096):
        delta = decoder.decode(piece)
        answer += delta
        if delta:
            event("text_delta", delta=delta)
    event("text_end", content=answer)
    code = child.wait()
    running.pop(request, None)
    result = {"stopReason": "stop"}
    if code != 0:
        result = {"stopReason": "error", "errorMessage": f"The program ended with status {code}"}
    send({"id": request, "result": result})


def start(request, params):
    command = os.environ.get("PI_PROGRAM_MODEL")
    if not command:
        error = {"code": 1, "message": "PI_PROGRAM_MODEL does not say which program to run"}
        return send({"id": request, "error": error})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen(["/bin/sh", "-c", command], start_new_session=True, **pipes)
    running[request] = child
    threading.Thread(target=stream, args=(request, params, child), daemon=True).start()


def stop(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # It has ended by itself.


def main():
    for line in sys.stdin:
        message = json.loads(line)
        request, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method == "initialize":
            send({"id": request, "result": {"protocolVersion": 1, "providers": [PROVIDER]}})
        elif method == "provider.stream":
            start(request, params)
        elif method == "$/cancelRequest" and params.get("id") in running:
            stop(running.pop(params["id"]))
        elif method == "shutdown":
            send({"id": request, "result": None})
            break
        elif request is not None and method:
            send({"id": request, "result": None})
    for child in list(running.values()):
        stop(child)


main()
