"""Scenarios of scripts/acp-clients with the official Python SDK, which reads every message into its models."""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

import acp
from acp.contrib.session_state import SessionAccumulator
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    ResourceContentBlock,
    SessionNotification,
    TextContentBlock,
    WriteTextFileResponse,
)

PATIENCE = 60


class Editor(acp.Client):
    def __init__(self, buffers):
        self.buffers = buffers
        self.session = SessionAccumulator()
        self.asked = []

    def on_connect(self, conn):
        pass

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="allow"))

    async def session_update(self, session_id, update, **_):
        self.session.apply(SessionNotification(session_id=session_id, update=update))

    async def read_text_file(self, path, session_id, **_):
        return ReadTextFileResponse(content=self.buffers[path])

    async def write_text_file(self, content, path, session_id, **_):
        self.buffers[path] = content
        return WriteTextFileResponse()


async def with_editor(args, script, use, buffers=None):
    root = Path(tempfile.mkdtemp(prefix="py-"))
    (root / "home").mkdir()
    (root / "project").mkdir()
    (root / "script.json").write_text(json.dumps(script))
    env = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "PI_FAUX_SCRIPT": str(root / "script.json")}
    pipe = asyncio.subprocess.PIPE
    command = [os.environ["PI_BIN"], "--mode", "acp", "--model", "faux/script", *args]
    child = await asyncio.create_subprocess_exec(
        *command, cwd=root / "project", env=env, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=1 << 26
    )
    wrong = []
    editor = Editor(buffers(root / "project") if buffers else {})

    def observe(event):
        if "error" in event.message:
            wrong.append(event.message["error"])

    conn = acp.connect_to_agent(editor, child.stdin, child.stdout, observers=[observe])
    files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
    await conn.initialize(
        protocol_version=acp.PROTOCOL_VERSION, client_capabilities=ClientCapabilities(fs=files if buffers else None)
    )
    await use(conn, editor, str(root / "project"))
    child.stdin.close()
    assert await child.wait() == 0
    assert wrong == [], wrong


async def conversation():
    async def use(conn, editor, cwd):
        session = await conn.new_session(cwd=cwd, mcp_servers=[])
        prompt = [
            TextContentBlock(type="text", text="Look at"),
            ResourceContentBlock(type="resource_link", uri="file:///p/a.rs", name="a.rs"),
        ]
        answer = await conn.prompt(session_id=session.session_id, prompt=prompt)
        assert answer.stop_reason == "end_turn", answer
        listed = await conn.list_sessions(cwd=cwd)
        assert listed.sessions[0].title == "Look at /p/a.rs", listed
        seen = editor.session.snapshot()
        assert [call.status for call in seen.tool_calls.values()] == ["completed"], seen
        await conn.load_session(cwd=cwd, session_id=session.session_id, mcp_servers=[])
        await conn.close_session(session_id=session.session_id)

    call = {"content": [{"type": "toolCall", "name": "ls", "arguments": {}}]}
    await with_editor(["--tools", "ls"], [{"expect": "Look at /p/a.rs", **call}, "Done."], use)


async def files_of_the_editor():
    def buffers(project):
        (project / "a.txt").write_text("saved\n")
        return {str(project / "a.txt"): "typed\n"}

    async def use(conn, editor, cwd):
        session = await conn.new_session(cwd=cwd, mcp_servers=[])
        text = [TextContentBlock(type="text", text="go")]
        await conn.prompt(session_id=session.session_id, prompt=text)
        diff = editor.asked[0].content[0]
        assert (diff.old_text, diff.new_text) == ("typed\n", "edited\n"), diff
        assert editor.buffers == {f"{cwd}/a.txt": "edited\n"}, editor.buffers

    fields = {"path": "a.txt", "edits": [{"oldText": "typed", "newText": "edited"}]}
    call = {"content": [{"type": "toolCall", "name": "edit", "arguments": fields}]}
    await with_editor(["--ask-tools", "writes"], [call, "Done."], use, buffers)


async def signed_in():
    async def use(conn, editor, cwd):
        await conn.authenticate(method_id="pi-auth-login")

    await with_editor([], [], use)


def main():
    failed = 0
    for name, scenario in [
        ("a conversation", conversation),
        ("files of the editor", files_of_the_editor),
        ("sign-in, with a key", signed_in),
    ]:
        try:
            asyncio.run(asyncio.wait_for(scenario(), PATIENCE))
            problem = None
        except Exception as error:  # the row says what it was
            problem = f"{type(error).__name__}: {error}"
        print(f"{'FAILED' if problem else 'ok':7} {'Python SDK':22} {name}", flush=True)
        if problem:
            failed = 1
            print(f"        {problem}")
    return failed


sys.exit(main())
