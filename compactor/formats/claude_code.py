"""Claude Code sessions."""

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor.errors import InputError
from compactor.formats import blocks, claude_micro, claude_write, lines, pairs, signed
from compactor.formats.base import Embedded
from compactor.formats.blocks import string
from compactor.formats.claude_chain import Node, trace
from compactor.formats.strange import Strange
from compactor.formats.voice import Beside, arguments, prompt
from compactor.tools import ASKS, action
from compactor.transcript import BLOCK_START, Entry, Note, Part, Source, Speaker, Transcript, is_block

Value = Mapping[str, Any]
_SIDE_TYPES = frozenset((
    "summary", "file-history-snapshot", "queue-operation", "permission-mode", "last-prompt", "ai-title", "mode",
))  # fmt: skip
_KNOWN = _SIDE_TYPES | frozenset((
    "user", "assistant", "system", "attachment", "progress", "file-history-delta", "custom-title", "agent-name",
    "pr-link", "bridge-session", "worktree-state", "relocated", "content-replacement",
    "saved_hook_context",
))  # fmt: skip
_LOCAL_OUTPUT = ("<local-command-stdout>", "<local-command-stderr>")
_REFUSED = "Error: The user doesn't want"
_NOTIFICATION = ("<task-notification>", "<agent-notification>")
_NOTHING: Value = {}


class ClaudeCode:
    """The JSONL that Claude Code keeps of a session."""

    name = "claude-code"
    title = "Claude Code session (JSONL)"
    block_role = "user"

    def sniff(self, raw: bytes, records: list[Any]) -> bool:
        return any(_is_ours(record) for record in records) and not any(_is_clone(record) for record in records)

    def read(self, raw: bytes, name: str) -> Source:
        reading = _Reading()
        for record in lines.records(raw):
            reading.take(record, raw)
        if not reading.ours:
            message = f"{name}: holds no Claude Code records; leave --format out, or say another"
            raise InputError(message)
        return Source(name, raw, self.name, (reading.transcript(lines.begin(raw)),))

    def embed(
        self, source: Source, transcript: Transcript, cut: int, block: str, *, role: str = "", session: str = ""
    ) -> Embedded:
        return claude_write.embed(source, transcript, cut, block, role or self.block_role, session)

    def same(self, before: Entry, after: Entry) -> bool:
        return claude_write.same(before.raw, after.raw)


def _is_ours(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    if string(record.get("sessionId")) and {"parentUuid", "leafUuid", "isSidechain"} & set(record):
        return True
    if record.get("type") in ("user", "assistant") and isinstance(record.get("message"), dict):
        return "uuid" in record or "parentUuid" in record
    return string(record.get("type")) in _SIDE_TYPES and bool({"sessionId", "leafUuid", "messageId"} & set(record))


def _is_clone(record: Any) -> bool:
    """Whether it is a record of Qwen Code, whose envelope is the same."""
    message = record.get("message") if isinstance(record, dict) else None
    return isinstance(message, dict) and "parts" in message and "content" not in message


class _Reading:
    """What one pass over the records gathers; a record's parsed value is let go with it."""

    def __init__(self) -> None:
        self.ours = False
        self.entries: list[Entry] = []
        self.nodes: list[Node] = []
        self.calls = pairs.Calls()
        self.sessions: dict[str, int] = {}
        self.microcompacted: list[int] = []
        self.unsigned: list[int] = []
        self.early: list[int] = []
        self.queue = _Queue()
        self.strange = Strange(_KNOWN)
        self.command: tuple[int, dict[int, tuple[str, ...]]] = (-1, {})
        self.end = 0

    def take(self, record: lines.Record, raw: bytes) -> None:
        """Add a record to the entries and to the tree."""
        lead = raw[self.end or lines.begin(raw) : record.start]
        self.end = record.end
        index, value = len(self.entries), record.value
        self.ours = self.ours or _is_ours(value)
        kind = string(value.get("type"))
        node = _node(record.line, kind, value)
        role, parts = self._message(kind, value) if node.message else ("", ())
        self.entries.append(_entry(index, record, lead, role, parts, node, value))
        self.nodes.append(node)
        self._watch(index, record, kind, value)

    def _message(self, kind: str, value: Value) -> tuple[str, tuple[Part, ...]]:
        if kind == "attachment":
            return "user", tuple(_queued(value["attachment"]))
        role = string(value["message"].get("role")) or kind
        return role, tuple(_parts(kind, role, value, self.calls))

    def _watch(self, index: int, record: lines.Record, kind: str, value: Value) -> None:
        """Keep what only later records can settle, and what is to be noted."""
        entry = self.entries[index]
        self.strange.take(record.line, kind)
        if session := value.get("sessionId"):
            self.sessions.setdefault(string(session), record.line)
        if entry.role or value.get("subtype") == "local_command":
            self._slash_command(index, entry, value)
        if kind == "queue-operation":
            self.queue.take(index, value)
        self.queue.recorded |= kind == "attachment" and any(part.speaker == "human" for part in entry.parts)
        if value.get("subtype") == claude_micro.SUBTYPE:
            self.microcompacted.append(index)
        if any(part.kind == "result" and part.call_id not in self.calls for part in entry.parts):
            self.early.append(index)
        if any(part.kind == "thinking" for part in entry.parts) and _unsigned(value):
            self.unsigned.append(index)

    def _slash_command(self, index: int, entry: Entry, value: Value) -> None:
        """A slash command's arguments are speech unless the next record shows that the client kept it to itself."""
        if not _is_local_output(entry, value):
            self._say_arguments()
        typed = {} if entry.role != "user" or value.get("isMeta") else _typed(entry.parts)
        self.command = (index, typed)

    def _say_arguments(self) -> None:
        index, typed = self.command
        if typed:
            entry = self.entries[index]
            parts = (replace(part, said=typed.get(k, part.said)) for k, part in enumerate(entry.parts))
            self.entries[index] = replace(entry, parts=tuple(parts))
        self.command = (-1, {})

    def transcript(self, start: int) -> Transcript:
        self._finish()
        course = trace(self.nodes)
        live = course.live
        self._clear(course.side, live)
        entries = tuple(self.entries)
        summary = course.summary
        about = lines.loads(entries[live[-1]].raw) or _NOTHING if live else _NOTHING
        notes = (
            *self._notes(set(live)),
            *_mistakable([entries[index] for index in live[:1]], summary >= 0),
            *course.notes,
            *pairs.notes(entries[index] for index in live),
        )
        return Transcript(
            entries,
            live,
            summarised=1 if summary >= 0 else 0,
            ours=summary >= 0 and is_block(entries[summary].text),
            past=course.past,
            side=course.side,
            session=string(about.get("sessionId")),
            cwd=string(about.get("cwd")),
            version=string(about.get("version")),
            start=start,
            end=self.end or start,
            notes=tuple(sorted(notes, key=lambda note: note.line)),
        )

    def _finish(self) -> None:
        self._say_arguments()
        for index in self.early:
            self._read_again(index)
        for index in self.queue.sent():
            text = _value(self.entries[index])["content"]
            self.entries[index] = replace(self.entries[index], role="user", parts=(prompt(text),))
            self.nodes[index].message = self.nodes[index].queued = True

        if self.nodes and all(node.sidechain for node in self.nodes if node.message):
            self._delegate()

    def _delegate(self) -> None:
        """In a subagent's file the user speaks nowhere: its task is another agent's account, the rest the client's."""
        first = next((index for index, node in enumerate(self.nodes) if node.message), -1)
        for index, entry in enumerate(self.entries):
            if entry.role == "user" and any(part.speaker == "human" for part in entry.parts):
                who: Speaker = "summary" if index == first else "harness"
                parts = (replace(p, speaker=who, said=()) if p.speaker == "human" else p for p in entry.parts)
                self.entries[index] = replace(entry, parts=tuple(parts))

    def _clear(self, side: frozenset[int], live: tuple[int, ...]) -> None:
        """Mark the live results that the client sends as a stub."""
        boundaries = [self.entries[index] for index in self.microcompacted if index in side]
        calls = claude_micro.cleared(boundaries)
        for index in live if calls else ():
            self.entries[index] = claude_micro.as_sent(self.entries[index], calls)

    def _read_again(self, index: int) -> None:
        """A result that stands before its call in the file."""
        value = _value(self.entries[index])
        if any(part.call_id in self.calls for part in self.entries[index].parts):
            _, parts = self._message(string(value.get("type")), value)
            self.entries[index] = replace(self.entries[index], parts=parts)

    def _notes(self, live: set[int]) -> Iterator[Note]:
        for entry in self.entries:
            if entry.damage:
                yield Note(entry.line, f"damaged: {entry.damage}")
        _, *others = self.sessions.items() or [("", 0)]
        if others:
            yield Note(others[0][1], f"records of {len(others)} other session ids")
        yield from self.strange.notes()
        if self.microcompacted:
            count, line = len(self.microcompacted), self.entries[self.microcompacted[0]].line
            stubs = sum(bool(part.stub) for index in live for part in self.entries[index].parts)
            yield Note(line, f"{count} microcompactions: {stubs} results are counted as the stub that the client sends")
        if unsigned := [index for index in self.unsigned if index in live]:
            yield Note(self.entries[unsigned[0]].line, f"{len(unsigned)} thinking blocks without a valid signature")


class _Queue:
    """The prompts that the user queued while the agent worked.

    A prompt that is dequeued comes again as a user record, one that is popped went back to the user's editor. One that
    is removed was put into the running turn; newer clients record it as an attachment, for older ones this is all
    that is left of it.
    """

    def __init__(self) -> None:
        self.waiting: OrderedDict[int, str] = OrderedDict()
        self.by_text: dict[str, deque[int]] = {}
        """Where each text was queued; some of these wait no more."""
        self.removed: list[int] = []
        self.recorded = False

    def take(self, index: int, value: Value) -> None:
        operation, content = value.get("operation"), string(value.get("content"))
        if operation == "enqueue":
            self.waiting[index] = content
            self.by_text.setdefault(content, deque()).append(index)
        elif operation == "popAll":
            self.waiting.clear()
        elif operation in ("dequeue", "remove") and self.waiting:
            taken = self._queued(content) if content else -1
            taken = taken if taken >= 0 else next(iter(self.waiting))
            text = self.waiting.pop(taken)
            if operation == "remove" and text.strip() and not text.startswith((*_NOTIFICATION, "/")):
                self.removed.append(taken)

    def _queued(self, text: str) -> int:
        """Where the oldest prompt of that text that waits was queued, or -1."""
        places = self.by_text.get(text, deque())
        while places and places[0] not in self.waiting:
            places.popleft()
        return places[0] if places else -1

    def sent(self) -> list[int]:
        """The prompts whose only record is that they were queued."""
        return [] if self.recorded else self.removed


def _value(entry: Entry) -> dict[str, Any]:
    return next(lines.records(entry.raw)).value


def _node(line: int, kind: str, value: Value) -> Node:
    uuid, parent = string(value.get("uuid")), string(value.get("parentUuid"))
    node = Node(line, False, uuid, parent, sidechain=value.get("isSidechain") is True)
    message = value.get("message")
    if kind in ("user", "assistant") and isinstance(message, dict):
        node.message = True
        node.summary = value.get("isCompactSummary") is True
        node.source = string(value.get("sourceToolAssistantUUID"))
        node.message_id = string(message.get("id")) if kind == "assistant" else ""
        node.tools = tuple(_tools(message.get("content"), value))
    elif kind == "attachment":
        node.message = node.queued = _is_queued(value.get("attachment"))
    elif value.get("subtype") == "compact_boundary" and uuid:
        node.boundary = True
        node.logical = string(value.get("logicalParentUuid"))
        node.preserved = tuple(_preserved(value.get("compactMetadata")))
        node.segment = _segment(value.get("compactMetadata"))
    return node


def _tools(content: Any, value: Value) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(string(block.get("type")))
            if key and (tool := string(block.get(key))):
                yield tool
    if tool := string(value.get("sourceToolUseID")):
        yield tool


def _preserved(metadata: Any) -> Iterator[str]:
    kept = metadata.get("preservedMessages") if isinstance(metadata, dict) else None
    uuids = kept.get("uuids") if isinstance(kept, dict) else None
    return (uuid for uuid in (uuids if isinstance(uuids, list) else ()) if isinstance(uuid, str))


def _segment(metadata: Any) -> tuple[str, str]:
    """The ends of what a compaction kept: clients that list no messages name only these."""
    kept = metadata.get("preservedSegment") if isinstance(metadata, dict) else None
    return (string(kept.get("headUuid")), string(kept.get("tailUuid"))) if isinstance(kept, dict) else ("", "")


def _is_queued(attachment: Any) -> bool:
    return isinstance(attachment, dict) and attachment.get("type") == "queued_command"


def _queued(attachment: Value) -> Iterator[Part]:
    theirs = attachment.get("commandMode") not in (None, "prompt") or _is_notice(attachment)
    for part in blocks.parts(attachment.get("prompt"), "user", pairs.Calls(), prompt):
        yield replace(part, speaker="harness", said=()) if theirs else part


def _is_notice(value: Value) -> bool:
    """Whether a client says of a text in the user's role that it comes from elsewhere."""
    origin = value.get("origin")
    return isinstance(origin, dict) and origin.get("kind") in ("task-notification", "agent", "teammate", "hook")


def _parts(kind: str, role: str, value: Value, calls: pairs.Calls) -> Iterator[Part]:
    message = value["message"]
    beside = _beside(value)
    for part in blocks.parts(message.get("content"), role, calls, prompt, beside):
        if value.get("isCompactSummary") is True and part.kind == "text":
            yield replace(part, speaker="summary", said=())
        elif part.kind == "result":
            code = _exit_code(part, beside.recorded)
            yield part if code is None else replace(part, exit_code=code)
        elif part.kind != "text":
            yield part
        elif kind == "user" and (value.get("isMeta") or _is_notice(value)):
            yield replace(part, speaker="harness", said=())
        elif kind == "assistant" and (message.get("model") == "<synthetic>" or value.get("isApiErrorMessage")):
            yield replace(part, speaker="harness")
        else:
            yield part


_UNTOLD = Beside(ASKS["claude-code"], _NOTHING, False)


def _beside(value: Value) -> Beside:
    """What a record keeps of the result in it: only by this is a refusal the user's, and no tool's text."""
    kept = value.get("toolUseResult")
    if kept is None and "toolDenialKind" not in value:
        return _UNTOLD
    refused = isinstance(kept, str) and (kept.startswith(_REFUSED) or kept == "User rejected tool use")
    refused = refused or bool(value.get("toolDenialKind"))
    return Beside(ASKS["claude-code"], kept if isinstance(kept, dict) else _NOTHING, refused)


def _mistakable(first: list[Entry], summary: bool) -> Iterator[Note]:
    """A note where the first message begins like a block of ours and is none."""
    for entry in first:
        ours = summary and is_block(entry.text)
        if entry.role == "user" and entry.text.startswith(BLOCK_START) and not ours:
            as_what = "the client's own summary" if summary else "what the user said"
            yield Note(entry.line, f"begins like a compact record but isn't one; read as {as_what}")


def _exit_code(part: Part, recorded: Value) -> int | None:
    if action(part.name) != "run":
        return None
    if part.failed:
        head = part.text[:64].removeprefix("Error: ").removeprefix("Exit code ")
        number = head.split("\n", 1)[0].strip()
        return int(number) if "Exit code " in part.text[:64] and number.lstrip("-").isdecimal() else None
    open_ended = ("backgroundTaskId", "returnCodeInterpretation")
    return None if recorded.get("interrupted") or any(recorded.get(key) for key in open_ended) else 0


def _entry(
    index: int, record: lines.Record, lead: bytes, role: str, parts: tuple[Part, ...], node: Node, value: Value
) -> Entry:
    model, usage = "", 0
    if role == "assistant":
        message = value["message"]
        model = string(message.get("model"))
        usage = _usage(message.get("usage"))
    return Entry(
        index, record.line, record.nth, record.raw, lead, role, parts, node.message_id, node.uuid, node.parent,
        string(value.get("timestamp")), "" if model == "<synthetic>" else model, usage, record.damage,
    )  # fmt: skip


def _usage(usage: Any) -> int:
    if not isinstance(usage, dict):
        return 0
    counts = (usage.get(key) for key in (*claude_write.CONTEXT_COUNTS, "output_tokens"))
    return sum(count for count in counts if isinstance(count, int))


def _typed(parts: tuple[Part, ...]) -> dict[int, tuple[str, ...]]:
    """What was typed behind a slash command, by the part that holds it."""
    return {k: said for k, part in enumerate(parts) if part.kind == "text" and (said := arguments(part.text))}


def _is_local_output(entry: Entry, value: Value) -> bool:
    if value.get("type") == "system":
        return value.get("subtype") == "local_command"
    return entry.role == "user" and bool(entry.parts) and entry.parts[0].text.lstrip().startswith(_LOCAL_OUTPUT)


def _unsigned(value: Value) -> bool:
    content = value["message"].get("content")
    thoughts = [block for block in content if isinstance(block, dict) and block.get("type") == "thinking"]
    return any(string(block.get("signature")) in signed.INVALID for block in thoughts)


FORMAT = ClaudeCode()
