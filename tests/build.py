"""Small conversations, written in a few words and stored as any of the formats."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from talks import Turn

from compactor import formats
from compactor.formats.lines import dump
from compactor.ledger import Ledger, extract
from compactor.transcript import Entry, Part, Source, Transcript, ref

REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file)."
)
REASON = " To tell you how to proceed, the user said:\n"
Form = Literal[
    "openai", "anthropic", "claude-code", "codex", "pi", "gemini", "gemini-json", "opencode", "responses", "langchain",
    "vercel", "otel", "swe-agent", "atif", "sharegpt", "copilot", "kimi", "openhands", "openhands-sdk",
    "goose", "roo", "cline", "mini-swe-agent",
]  # fmt: skip
FORMS: tuple[Form, ...] = ("openai", "anthropic", "claude-code", "codex", "pi")
"""The forms in which a conversation keeps all that is told of it."""
LISTED: tuple[Form, ...] = (
    "gemini", "gemini-json", "opencode", "responses", "langchain", "vercel", "otel", "swe-agent", "atif", "sharegpt",
    "copilot", "kimi", "openhands", "openhands-sdk", "goose", "roo", "cline", "mini-swe-agent",
)  # fmt: skip
"""Further forms; some know no failures, some no ids."""


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A message, or one tool result."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    failed: bool = False


class Talk:
    """A conversation in the making; each method adds to it and gives it back."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.made = 0

    def __repr__(self) -> str:
        return "".join(f"\n    {step}" for step in self.steps)

    def _add(self, step: Step) -> "Talk":
        self.steps.append(step)
        return self

    def system(self, text: str) -> "Talk":
        return self._add(Step("system", text))

    def user(self, text: str) -> "Talk":
        return self._add(Step("user", text))

    def agent(self, text: str = "", *calls: Call) -> "Talk":
        return self._add(Step("assistant", text, calls))

    def result(self, call_id: str, text: str = "", failed: bool = False) -> "Talk":
        return self._add(Step("tool", text, (), call_id, failed))

    def tool(self, name: str, output: str = "", failed: bool = False, **arguments: Any) -> "Talk":
        """One call with its result."""
        self.made += 1
        call = Call(f"call{self.made}", name, arguments)
        return self.agent("", call).result(call.id, output, failed)

    def ran(self, command: str, output: str = "", failed: bool = False) -> "Talk":
        return self.tool("Bash", output, failed, command=command)

    def read(self, path: str, text: str = "nothing much in here") -> "Talk":
        return self.tool("Read", text, file_path=path)

    def wrote(self, path: str, content: str = "x = 1\n", failed: bool = False) -> "Talk":
        return self.tool("Write", "written", failed, file_path=path, content=content)

    def edited(self, path: str, old: str, new: str, failed: bool = False) -> "Talk":
        return self.tool("Edit", "edited", failed, file_path=path, old_string=old, new_string=new)

    def planned(self, **todos: str) -> "Talk":
        """A plan: each step (its spaces written `_`) with its status."""
        plan = [{"content": text.replace("_", " "), "status": status} for text, status in todos.items()]
        return self.tool("TodoWrite", "Todos have been modified", todos=plan)

    def asked(self, question: str, answer: str) -> "Talk":
        """A question that the agent puts to the user by a tool, and the answer."""
        told = f'User has answered your questions: "{question}"="{answer}". You can now continue with these answers.'
        return self.tool("AskUserQuestion", told, questions=[{"question": question}])

    def refused(self, command: str, reason: str = "") -> "Talk":
        """A command that the user doesn't let the agent run; not in OpenAI lists, which record no such thing."""
        return self.tool("Bash", REFUSED + (REASON + reason if reason else ""), True, command=command)

    def told(self, turns: Iterable[Turn]) -> "Talk":
        """What happens in some turns."""
        for turn in turns:
            self.user(turn.asks)
            for round in turn.rounds:
                self.agent(round.says, *(Call(c.id, c.name, c.arguments) for c in round.calls))
                for made in round.calls:
                    self.result(made.id, made.result, made.failed)
            self.agent(turn.closes)
        return self

    def raw(self, form: Form = "claude-code") -> bytes:
        held = records(form, self)
        value = whole(form, held)
        return b"".join(map(line, held)) if value is None else json.dumps(value, indent=1).encode()

    def source(self, form: Form = "claude-code") -> Source:
        return formats.read(self.raw(form), "talk", form)

    def transcript(self, form: Form = "claude-code") -> Transcript:
        return self.source(form).transcripts[0]

    def ledger(self, form: Form = "claude-code") -> Ledger:
        return ledger(self.source(form))


def records(form: Form, talk: Talk) -> list[dict[str, Any]]:
    """The records of a conversation in that form."""
    return list(_RECORDS[form](talk.steps))


def whole(form: Form, held: list[dict[str, Any]]) -> Any:
    """The one value in which that form keeps its records; None where each stands on a line."""
    return _WHOLE[form](held) if form in _WHOLE else None


def line(record: dict[str, Any]) -> bytes:
    return dump(record) + b"\n"


def ledger(source: Source) -> Ledger:
    return extract(source.short, list(source.transcripts[0].story()))


def where(source: Source, words: str, kind: str = "") -> str:
    """The ref of the first part (of that kind) that holds these words."""
    for entry in source.transcripts[0].entries:
        for number, part in enumerate(entry.parts, 1):
            if words in part.text and kind in ("", part.kind):
                return ref(source.short, entry, number if len(entry.parts) > 1 else 0)
    message = f"nobody says {words!r}"
    raise LookupError(message)


def call(id: str, name: str = "Bash", **arguments: Any) -> Call:
    return Call(id, name, arguments)


# The formats


def _openai(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        if step.role == "tool":
            text = f"Error:\n{step.text}" if step.failed else step.text
            yield {"role": "tool", "tool_call_id": step.call_id, "content": text}
        elif step.calls:
            calls = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
                for c in step.calls
            ]
            yield {"role": "assistant", "content": step.text or None, "tool_calls": calls}
        else:
            yield {"role": step.role, "content": step.text}


def _blocks(step: Step) -> list[dict[str, Any]]:
    if step.role == "tool":
        block = {"type": "tool_result", "tool_use_id": step.call_id, "content": step.text}
        return [{**block, "is_error": True} if step.failed else block]
    text = [{"type": "text", "text": step.text}] if step.text else []
    return [*text, *({"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in step.calls)]


def _anthropic(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for role, group in groupby(steps, lambda step: step.role):
        if role == "tool":
            yield {"role": "user", "content": [block for step in group for block in _blocks(step)]}
        else:
            yield from ({"role": role, "content": _blocks(step) or step.text} for step in group)


def _claude_code(steps: list[Step]) -> Iterator[dict[str, Any]]:
    """One record per block, as the client writes them; it keeps no system prompt."""
    last = None
    for number, step in enumerate(steps):
        role = "user" if step.role in ("user", "tool") else step.role
        blocks = [[block] for block in _blocks(step)] if role == "assistant" else [_blocks(step)]
        for part, content in enumerate(blocks):
            uuid = f"{number}-{part}"
            message: dict[str, Any] = {"role": role, "content": step.text if step.role == "user" else content}
            if role == "assistant":
                message |= {"id": f"msg{number}", "model": "claude-sonnet-4-5"}
            error = {"toolUseResult": f"Error: {step.text}"} if step.failed else {}
            yield {"parentUuid": last, "sessionId": "s", "uuid": uuid, "type": role, "message": message, **error}
            last = uuid


def _codex(steps: list[Step]) -> Iterator[dict[str, Any]]:
    """A rollout: its header, the client's context, then one item a line."""
    yield _rolled("session_meta", {"id": "s", "cwd": "/srv", "cli_version": "0.150.0"})
    told = "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>"
    for step in (*(s for s in steps if s.role == "system"), Step("user", told)):
        yield _rolled("response_item", _item(step))
    yield _rolled("turn_context", {"cwd": "/srv", "model": "gpt-5.2-codex"})
    for step in (step for step in steps if step.role != "system"):
        if step.text or not step.calls:
            yield _rolled("response_item", _item(step))
        for made in step.calls:
            given, name = json.dumps(made.arguments), made.name.replace("AskUserQuestion", "request_user_input")
            call = {"type": "function_call", "name": name, "arguments": given, "call_id": made.id}
            yield _rolled("response_item", call)
    yield _rolled("event_msg", {"type": "task_complete"})


def _item(step: Step) -> dict[str, Any]:
    if step.role == "tool":
        code = f"Process exited with code 1\nOutput:\n{step.text}" if step.failed else step.text
        return {"type": "function_call_output", "call_id": step.call_id, "output": code}
    role = "developer" if step.role == "system" else step.role
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": step.text}]}


def _rolled(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def _pi(steps: list[Step]) -> Iterator[dict[str, Any]]:
    """A session of version 3; it keeps no system prompt."""
    yield {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/srv"}
    names = {call.id: call.name for step in steps for call in step.calls}
    last = None
    for number, step in enumerate(step for step in steps if step.role != "system"):
        text = [{"type": "text", "text": step.text}] if step.text or not step.calls else []
        message: dict[str, Any] = {"role": step.role, "content": text}
        if step.role == "tool":
            message |= {"role": "toolResult", "toolCallId": step.call_id, "toolName": names.get(step.call_id, ""),
                        "isError": step.failed}  # fmt: skip
        elif step.role == "assistant":
            made = [{"type": "toolCall", "id": c.id, "name": c.name, "arguments": c.arguments} for c in step.calls]
            message |= {"content": [*text, *made], "model": "big-1", "usage": {"input": 9, "totalTokens": 12}}
        yield {"type": "message", "id": f"{number:08x}", "parentId": last, "timestamp": "t", "message": message}
        last = f"{number:08x}"


def _rounds(steps: list[Step]) -> Iterator[tuple[Step, list[Step]]]:
    """Each step with the results of the calls that it makes; results stand nowhere else."""
    results = {step.call_id: step for step in steps if step.role == "tool"}
    for step in steps:
        if step.role != "tool":
            yield step, [results[call.id] for call in step.calls if call.id in results]


def _gemini_messages(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for number, (step, results) in enumerate(_rounds(steps)):
        if step.role == "system":
            continue
        told = {result.call_id: result for result in results}
        message: dict[str, Any] = {"id": f"m{number}", "timestamp": "2026-01-01T00:00:00Z", "content": step.text,
                                   "type": "gemini" if step.role == "assistant" else "user"}  # fmt: skip
        if step.calls:
            message["toolCalls"] = [_gemini_call(call, told.get(call.id)) for call in step.calls]
        yield message


def _gemini_call(call: Call, result: Step | None) -> dict[str, Any]:
    made: dict[str, Any] = {"id": call.id, "name": call.name, "args": call.arguments, "status": "success"}
    if result:
        response = {"error" if result.failed else "output": result.text}
        told = {"id": call.id, "name": call.name, "response": response}
        made |= {"status": "error" if result.failed else "success", "result": [{"functionResponse": told}]}
    return made


def _gemini(steps: list[Step]) -> Iterator[dict[str, Any]]:
    yield {"sessionId": "s", "projectHash": "h", "startTime": "t", "lastUpdated": "t"}
    yield from _gemini_messages(steps)


def _opencode(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for number, (step, results) in enumerate(_rounds(steps)):
        if step.role == "system":
            continue
        told = {result.call_id: result for result in results}
        name = f"msg_{number:012x}"
        parts: list[dict[str, Any]] = [{"type": "text", "text": step.text, "id": f"prt_{number}"}] if step.text else []
        for made in step.calls:
            result = told.get(made.id)
            state: dict[str, Any] = {"status": "running", "input": made.arguments}
            if result:
                failed = {"status": "error", "error": result.text}
                state |= failed if result.failed else {"status": "completed", "output": result.text}
            parts.append({"type": "tool", "tool": made.name, "callID": made.id, "state": state})
        yield {
            "info": {"role": step.role, "id": name, "sessionID": "ses_1", "time": {"created": number}},
            "parts": parts,
        }


def _responses(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        if step.text or not step.calls:
            yield _item(step)
        for made in step.calls:
            yield {"type": "reasoning", "id": f"rs_{made.id}", "summary": [], "encrypted_content": "c2VjcmV0"}
            given = json.dumps(made.arguments)
            yield {"type": "function_call", "name": made.name, "arguments": given, "call_id": made.id}


def _langchain(steps: list[Step]) -> Iterator[dict[str, Any]]:
    kinds = {"user": "human", "assistant": "ai"}
    for step in steps:
        kind = kinds.get(step.role, step.role)
        data: dict[str, Any] = {"content": step.text, "type": kind}
        if step.role == "tool":
            data |= {"tool_call_id": step.call_id, "status": "error" if step.failed else "success"}
        if step.calls:
            data["tool_calls"] = [
                {"name": c.name, "args": c.arguments, "id": c.id, "type": "tool_call"} for c in step.calls
            ]
        yield {"type": kind, "data": data}


def _vercel(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for number, (step, results) in enumerate(_rounds(steps)):
        told = {result.call_id: result for result in results}
        parts: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text or not step.calls else []
        for made in step.calls:
            part: dict[str, Any] = {"type": f"tool-{made.name}", "toolCallId": made.id, "input": made.arguments,
                                    "state": "input-available"}  # fmt: skip
            if result := told.get(made.id):
                failed = {"state": "output-error", "errorText": result.text}
                part |= failed if result.failed else {"state": "output-available", "output": result.text}
            parts.append(part)
        yield {"id": f"m{number}", "role": step.role, "parts": parts}


def _otel(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        if step.role == "tool":
            parts: list[dict[str, Any]] = [{"type": "tool_call_response", "id": step.call_id, "response": step.text}]
        else:
            parts = [{"type": "text", "content": step.text}] if step.text or not step.calls else []
            parts += [{"type": "tool_call", "id": c.id, "name": c.name, "arguments": c.arguments} for c in step.calls]
        yield {"role": step.role, "parts": parts}


def _swe_agent(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for message in _openai(steps):
        if message["role"] == "tool":
            message = {**message, "tool_call_ids": [message.pop("tool_call_id")], "message_type": "observation"}
        yield {**message, "agent": "main"}


def _atif(steps: list[Step]) -> Iterator[dict[str, Any]]:
    sources = {"assistant": "agent"}
    for number, (step, results) in enumerate(_rounds(steps), 1):
        made: dict[str, Any] = {"step_id": number, "source": sources.get(step.role, step.role), "message": step.text}
        if step.calls:
            made["tool_calls"] = [
                {"tool_call_id": c.id, "function_name": c.name, "arguments": c.arguments} for c in step.calls
            ]
        if results:
            made["observation"] = {"results": [{"source_call_id": r.call_id, "content": r.text} for r in results]}
        yield made


def _sharegpt(steps: list[Step]) -> Iterator[dict[str, Any]]:
    names = {"user": "human", "assistant": "gpt", "tool": "observation"}
    turns = list[dict[str, Any]]()
    for step in steps:
        if step.text or not step.calls:
            turns.append({"from": names.get(step.role, step.role), "value": step.text})
        turns += [
            {"from": "function_call", "value": json.dumps({"name": c.name, "arguments": c.arguments})}
            for c in step.calls
        ]
    yield {"id": 1, "conversations": turns, "tools": "[]"}


def _copilot(steps: list[Step]) -> Iterator[dict[str, Any]]:
    told = [("session.start", {"sessionId": "s", "version": 1}), *map(_copilot_event, steps)]
    for number, (kind, data) in enumerate(told, 1):
        parent = f"e{number - 1}" if number > 1 else None
        yield {"type": kind, "data": data, "id": f"e{number}", "timestamp": "2026-01-01T00:00:00Z", "parentId": parent}


def _copilot_event(step: Step) -> tuple[str, dict[str, Any]]:
    if step.role == "tool":
        told = {"error": {"message": step.text}} if step.failed else {"result": {"content": step.text}}
        return "tool.execution_complete", {"toolCallId": step.call_id, "success": not step.failed, **told}
    if step.role == "assistant":
        made = [{"toolCallId": c.id, "name": c.name, "arguments": json.dumps(c.arguments)} for c in step.calls]
        return "assistant.message", {"content": step.text, "toolRequests": made, "model": "big-1"}
    return f"{step.role}.message", {"content": step.text}


def _kimi(steps: list[Step]) -> Iterator[dict[str, Any]]:
    yield {"type": "metadata", "protocol_version": "1.4", "created_at": 1}
    for step in steps:
        if step.role == "user":
            message = {"role": "user", "content": [{"type": "text", "text": step.text}], "origin": {"kind": "user"}}
            yield {"type": "context.append_message", "message": message, "time": 1}
            continue
        loop = {"type": "context.append_loop_event", "time": 1}
        if step.role == "tool":
            result = {"output": step.text, **({"isError": True} if step.failed else {})}
            yield {**loop, "event": {"type": "tool.result", "toolCallId": step.call_id, "result": result}}
        elif step.role == "assistant":
            if step.text or not step.calls:
                yield {**loop, "event": {"type": "content.part", "part": {"type": "text", "text": step.text}}}
            for made in step.calls:
                told = {"toolCallId": made.id, "name": made.name, "args": made.arguments}
                yield {**loop, "event": {"type": "tool.call", **told}}


def _openhands(steps: list[Step]) -> Iterator[dict[str, Any]]:
    actions: dict[str, int] = {}
    number = 0
    for step in steps:
        if step.role == "tool":
            about = {"metadata": {"exit_code": 1 if step.failed else 0}}
            yield {"id": number, "source": "agent", "observation": "run", "content": step.text, "extras": about,
                   "cause": actions.get(step.call_id)}  # fmt: skip
            number += 1
            continue
        if step.text or not step.calls:
            source = "user" if step.role == "user" else "agent"
            kind = "system" if step.role == "system" else "message"
            yield {"id": number, "source": source, "action": kind, "args": {"content": step.text}}
            number += 1
        for made in step.calls:
            actions[made.id] = number
            yield {"id": number, "source": "agent", "action": made.name, "args": made.arguments}
            number += 1


def _openhands_sdk(steps: list[Step]) -> Iterator[dict[str, Any]]:
    names = {call.id: call.name for step in steps for call in step.calls}
    made_by = dict[str, str]()
    for number, step in enumerate(steps):
        base: dict[str, Any] = {"id": f"e{number}", "timestamp": "2026-01-01T00:00:00", "source": "agent"}
        if step.role == "system":
            told = {"type": "text", "text": step.text}
            yield {**base, "kind": "SystemPromptEvent", "system_prompt": told, "tools": []}
        elif step.role == "tool":
            seen = {
                "content": [{"type": "text", "text": step.text}],
                "is_error": step.failed,
                "kind": "ThinkObservation",
            }
            told = dict[str, Any](tool_name=names.get(step.call_id, ""), tool_call_id=step.call_id, observation=seen,
                                  action_id=made_by.get(step.call_id, "unknown"))  # fmt: skip
            yield {**base, "source": "environment", "kind": "ObservationEvent", **told}
        elif step.role == "user" or not step.calls:
            message = {"role": step.role, "content": [{"type": "text", "text": step.text}]}
            source = "user" if step.role == "user" else "agent"
            yield {**base, "source": source, "kind": "MessageEvent", "llm_message": message}
        for k, made in enumerate(step.calls):
            thought = [{"type": "text", "text": step.text}] if step.text and not k else []
            made_by[made.id] = f"e{number}.{k}"
            asked = {"id": made.id, "name": made.name, "arguments": json.dumps(made.arguments), "origin": "completion"}
            yield {**base, "id": made_by[made.id], "kind": "ActionEvent", "thought": thought, "action": None,
                   "tool_name": made.name, "tool_call_id": made.id, "tool_call": asked,
                   "llm_response_id": f"r{number}"}  # fmt: skip


def _goose(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        content: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text or not step.calls else []
        for made in step.calls:
            call = {"name": made.name, "arguments": made.arguments}
            content.append({"type": "toolRequest", "id": made.id, "toolCall": {"status": "success", "value": call}})
        if step.role == "tool":
            told = {"content": [{"type": "text", "text": step.text}], "isError": step.failed}
            content = [{"type": "toolResponse", "id": step.call_id, "toolResult": {"status": "success", "value": told}}]
        role = "user" if step.role == "tool" else step.role
        yield {"role": role, "created": 1, "content": content, "metadata": {"userVisible": True, "agentVisible": True}}


def _roo(steps: list[Step]) -> Iterator[dict[str, Any]]:
    """Marked as condensed by a summary that was taken back since."""
    for number, message in enumerate(_anthropic(steps)):
        yield {**message, "ts": number, **({} if number else {"condenseParent": "taken-back"})}


def _cline(steps: list[Step]) -> Iterator[dict[str, Any]]:
    for number, message in enumerate(_anthropic(steps)):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield {"id": f"msg_{number}", "role": message["role"], "content": blocks, "ts": number}


_RECORDS = {
    "roo": _roo, "cline": _cline, "mini-swe-agent": _openai,
    "goose": _goose,
    "copilot": _copilot, "kimi": _kimi, "openhands": _openhands, "openhands-sdk": _openhands_sdk,
    "openai": _openai, "anthropic": _anthropic, "claude-code": _claude_code, "codex": _codex, "pi": _pi,
    "gemini": _gemini, "gemini-json": _gemini_messages, "opencode": _opencode, "responses": _responses,
    "langchain": _langchain, "vercel": _vercel, "otel": _otel, "swe-agent": _swe_agent, "atif": _atif,
    "sharegpt": _sharegpt,
}  # fmt: skip
_WHOLE: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "gemini-json": lambda told: {"sessionId": "s", "projectHash": "h", "messages": told, "kind": "main"},
    "opencode": lambda told: {"info": {"id": "ses_1"}, "messages": told},
    "swe-agent": lambda told: {"environment": "main", "history": told, "info": {}},
    "roo": lambda told: told,
    "mini-swe-agent": lambda told: {"info": {}, "messages": told, "trajectory_format": "mini-swe-agent-1.1"},
    "cline": lambda told: {"version": 1, "updated_at": "t", "agent": "lead", "sessionId": "s", "messages": told},
    "atif": lambda told: {
        "schema_version": "ATIF-v1.5",
        "session_id": "s",
        "agent": {"name": "gardener", "version": "1"},
        "steps": told,
    },
}
"""The forms that are one JSON value."""


# Entries without any format


def entry(index: int, *parts: Part, message: str = "") -> Entry:
    """An entry on a line of its own; without parts it is bookkeeping."""
    role = "" if not parts else "user" if parts[0].speaker in ("human", "tool") else parts[0].speaker
    return Entry(index, index + 1, 1, b"{}\n", role=role, parts=parts, message=message)


def human(text: str = "Go on.") -> Part:
    return Part("text", "human", text, (text,))


def said(text: str = "I see.") -> Part:
    return Part("text", "assistant", text)


def calls(id: str, name: str = "Bash") -> Part:
    return Part("call", "assistant", "{}", call_id=id, name=name)


def answers(id: str, text: str = "done") -> Part:
    return Part("result", "tool", text, call_id=id)


def conversation(entries: list[Entry], fixed: int = 0, block: bool = False) -> Transcript:
    """A conversation of these entries, of which the first are fixed and the next, on request, is a block of ours."""
    live = tuple(entry.index for entry in entries)
    return Transcript(tuple(entries), live, fixed=fixed, summarised=int(block), ours=block)
