"""The items of OpenAI's Responses API, as Codex records them and as the API takes them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from compactor.formats.blocks import ALONE, compact, is_media, leaves, media, string
from compactor.formats.openai import arguments
from compactor.formats.pairs import Calls
from compactor.formats.voice import Beside, answered, prompt
from compactor.tools import ASKS, action
from compactor.transcript import Part, Speaker, speech

Item = Mapping[str, Any]
KINDS = frozenset((
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "local_shell_call", "local_shell_call_output", "web_search_call", "tool_search_call", "tool_search_output",
    "image_generation_call", "file_search_call", "computer_call", "computer_call_output", "code_interpreter_call",
    "apply_patch_call_output",
    "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "item_reference", "agent_message",
    "compaction", "compaction_summary", "context_compaction", "shell_call", "shell_call_output", "apply_patch_call",
    "apply_patch_call_output",
))  # fmt: skip
"""What an item's `type` may be."""
OPAQUE = frozenset(("compaction", "compaction_summary", "context_compaction"))
"""Summaries that only the provider can read."""
_CALLS = frozenset((
    "function_call", "custom_tool_call", "local_shell_call", "shell_call", "computer_call", "tool_search_call",
    "apply_patch_call",
))  # fmt: skip
_OUTPUTS = frozenset((
    "function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output",
    "computer_call_output", "tool_search_output", "apply_patch_call_output",
))  # fmt: skip
_BESIDE = {who: Beside(tools) for who, tools in ASKS.items()}
_REFUSALS = ("exec command rejected by user", "patch rejected by user", "rejected by user")
_EXITED = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_OUTPUT = re.compile(r"^Output:$", re.MULTILINE)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_CONTEXT = re.compile(
    r"# AGENTS\.md instructions for [^\n]*\n+<INSTRUCTIONS>.*</INSTRUCTIONS>"
    r"|<(environment_context|user_instructions|recommended_plugins|turn_aborted|user_action|subagent_notification"
    r"|user_shell_command|skill|permissions instructions|[a-z]+_instructions)>.*</\1>",
    re.DOTALL,
)
"""What Codex puts into the user's role: one block in a tag of its own, or the project's instructions."""
_IDE = re.compile(r"# Context from my IDE setup:.*?^## My request for Codex:\s*", re.DOTALL | re.MULTILINE)
"""What its editors put before the user's words."""
HEADER = 400
"""Characters at the beginning of an output where the client writes what became of the command."""


def role_of(item: Item) -> str:
    """The role in which the model is sent an item; empty where it is none."""
    kind = string(item.get("type")) or ("message" if "role" in item else "")
    if kind == "message":
        return string(item.get("role"))
    if kind not in KINDS:
        return ""
    return "tool" if kind in _OUTPUTS else "assistant"


def parts(item: Item, calls: Calls, asks: str = "messages") -> tuple[Part, ...]:
    """What the model reads in an item; `asks` names whose tools put questions to the user (a key of `ASKS`)."""
    kind = string(item.get("type")) or "message"
    if kind == "message":
        return tuple(_message(item))
    if kind == "reasoning":
        told = leaves([item.get("summary"), item.get("content")])
        return (Part("thinking" if told else "opaque", "assistant", told),)
    if kind in _CALLS:
        return (_call(item, kind, calls),)
    if kind in _OUTPUTS:
        return tuple(_output(item, calls, asks))
    if kind == "agent_message":
        return (Part("text", "harness", leaves(item.get("content"))),)
    if kind in OPAQUE:
        return (Part("opaque", "summary"),)
    known = {key: value for key, value in item.items() if key in ("action", "arguments", "output", "tools", "name")}
    return (Part("opaque", "assistant", leaves(known)),)


def _message(item: Item) -> Iterator[Part]:
    role, content = string(item.get("role")), item.get("content")
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str) and block:
            yield _text(block, role)
        elif isinstance(block, dict) and is_media(block):
            yield media(block, "human" if role == "user" else "assistant")
        elif isinstance(block, dict):
            text = next((t for key in ("text", "refusal") if isinstance(t := block.get(key), str)), "")
            yield _text(text, role) if text else Part("opaque", "harness", leaves(block))


def _text(text: str, role: str) -> Part:
    if role == "assistant":
        return Part("text", "assistant", text)
    if role != "user":
        speaker: Speaker = "system" if role in ("system", "developer") else "tool" if role == "tool" else "harness"
        return Part("text", speaker, text)
    if _CONTEXT.fullmatch(text.strip()):
        return Part("text", "harness", text)
    match = _IDE.match(text)
    return Part("text", "human", text, speech(text[match.end() :])) if match else prompt(text)


def _call(item: Item, kind: str, calls: Calls) -> Part:
    call_id, name = string(item.get("call_id")) or string(item.get("id")), string(item.get("name"))
    if kind in ("local_shell_call", "shell_call", "computer_call", "apply_patch_call"):
        name, given = kind, item.get("action", item.get("operation"))
    elif kind == "tool_search_call":
        name, given = kind, item.get("arguments", item.get("action"))
    elif kind == "custom_tool_call":
        given = _patch(string(item.get("input")))
    else:
        given = arguments(item.get("arguments"))
    text = next((t for key in ("arguments", "input") if isinstance(t := item.get(key), str)), "") or compact(given)
    told = given if isinstance(given, dict) else {}
    return Part("call", "assistant", text, (), calls.add(call_id, name, told), name, told)


def _patch(text: str) -> dict[str, Any]:
    """A tool's raw input, with the file that a patch in it names first."""
    match = _PATCHED.search(text) if "*** " in text else None
    return {"input": text, **({"path": match[1].strip()} if match else {})}


def _output(item: Item, calls: Calls, asks: str) -> Iterator[Part]:
    call_id = calls.answer(string(item.get("call_id")) or string(item.get("id")))
    name, given = calls.of(call_id)
    output = item.get("output", item.get("tools"))
    text, code = _told(output)
    refused = text.strip() in _REFUSALS and action(name) in ("run", "edit")
    failed = refused or (isinstance(output, dict) and output.get("success") is False)
    failed = failed or bool(code) or item.get("status") == "failed"
    heard = answered(name, given, text, failed, _BESIDE.get(asks, ALONE))
    verdict = "refused" if refused else heard.verdict
    yield Part("result", "tool", text, heard.said, call_id, name, {}, failed, code, verdict, heard.answers)
    if isinstance(output, list):
        yield from (media(block, "tool") for block in output if is_media(block))


def _told(output: Any) -> tuple[str, int | None]:
    """What the model reads of an output, and the exit code that the client put at its head."""
    if isinstance(output, dict):
        output = output.get("content", output)
    pieces = output if isinstance(output, list) else [] if output is None else [output]
    text = output if isinstance(output, str) else "\n".join(filter(None, map(_piece, pieces)))
    if text.startswith('{"') and '"metadata"' in text:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, dict) and isinstance(value.get("output"), str):
            about = value.get("metadata")
            code = about.get("exit_code") if isinstance(about, dict) else None
            return text, code if isinstance(code, int) else None
    match = _EXITED.search(_OUTPUT.split(text[:HEADER], 1)[0])
    return text, int(match[1]) if match else None


def _piece(block: Any) -> str:
    return (
        ""
        if is_media(block)
        else string(block.get("text"))
        if isinstance(block, dict) and "text" in block
        else leaves(block)
    )
