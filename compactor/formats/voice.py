"""Which words in a recorded message are the user's own."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import orjson

from compactor.tools import action
from compactor.transcript import Part, Speaker, speech

Verdict = Literal["", "approved", "refused"]

_HARNESS_TAGS = frozenset((
    "system-reminder", "environment_context", "user_instructions", "command-name", "command-message", "command-args",
    "command-contents", "local-command-stdout", "local-command-stderr", "local-command-caveat", "task-notification",
    "agent-notification", "bash-input", "bash-stdout", "bash-stderr", "user-memory-input", "ide_opened_file",
    "ide_selection", "ide_diagnostics", "new-diagnostics", "session-start-hook", "user-prompt-submit-hook",
    "post-tool-use-hook", "teammate-message", "tick",
))  # fmt: skip
_HARNESS_STARTS = (
    "<local-command-", "Caveat: The messages below were generated", "<task-notification>", "<agent-notification>",
    "Operation stopped by hook", "Stop hook feedback:", "Stop hook blocking error",
)  # fmt: skip
_HOOK = re.compile(r"(?:Pre|Post)ToolUse:\S+ |(?:SessionStart|UserPromptSubmit|SubagentStop)(?::\S+)? hook ")
_TAG = re.compile(r"\s*<([A-Za-z][\w-]*)(?:\s[^<>]*)?>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_MEMORY = re.compile(r"\s*<user-memory-input>(.*?)</user-memory-input>\s*", re.DOTALL)
_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user[^\]\n]*\]")
_NATIVE_SUMMARY = "This session is being continued from a previous conversation"

_REFUSED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
)
_REASON = re.compile(r"\bthe user said:\n", re.IGNORECASE)
_REFUSAL_NOTE = "\n\nNote: The user's next message may contain a correction"
_APPROVED = ("User has approved your plan", "User has approved exiting plan mode", "User has approved the plan")
_ANSWERED = ("User has answered your questions:", "Your questions have been answered:")
_WRAPS_ANSWERS = "AskUserQuestion"
"""The ask tool whose results are always the client's sentence, with the user's words in it or without."""
_ANSWERS_END = re.compile(r'"?\. You can now continue|"?\s*\Z')
_ANSWER_KEYS = ("answer", "answers", "response", "selected", "choice")


def prompt(text: str) -> Part:
    """A text in the user's role: the user's own, or what a client puts there."""
    speaker, said = _judge(text)
    return Part("text", speaker, text, said)


def _judge(text: str) -> tuple[Speaker, tuple[str, ...]]:
    if text.startswith(_NATIVE_SUMMARY):
        return "summary", ()
    if text.startswith(_HARNESS_STARTS) or _HOOK.match(text):
        return "harness", ()
    if match := _INTERRUPTED.match(text):
        rest = text[match.end() :]
        return ("human", speech(rest)) if rest.strip() else ("harness", ())
    if memory := _MEMORY.fullmatch(text):
        return "harness", speech(memory[1])
    if _wrapped(text):
        return "harness", ()
    return "human", speech(text)


def _wrapped(text: str) -> bool:
    """Whether a text is nothing but blocks in a client's tags."""
    at, size = 0, len(text.rstrip())
    while at < size:
        tag = _TAG.match(text, at)
        if not tag or tag[1] not in _HARNESS_TAGS:
            return False
        close = text.find(f"</{tag[1]}>", tag.end())
        if close < 0:
            return False
        at = close + len(tag[1]) + 3
    return size > 0


def arguments(text: str) -> tuple[str, ...]:
    """What the user typed behind a slash command; to be taken as speech only if the model was sent it."""
    match = _ARGUMENTS.search(text) if text.lstrip().startswith("<command-") else None
    return speech(match[1]) if match else ()


def answered(
    name: str, call: Mapping[str, Any], text: str, failed: bool, recorded: Mapping[str, Any]
) -> tuple[tuple[str, ...], Verdict]:
    """The user's words in the result of a known call, and what they decided.

    `recorded` is what the client keeps of the answers beside the result; empty where it keeps nothing.
    """
    if failed:
        return (_reason(text), "refused") if text.startswith(_REFUSED) else ((), "")
    does = action(name)
    if does == "approve" and text.startswith(_APPROVED):
        return (), "approved"
    if does == "ask":
        return tuple(_answers(name, call, text, recorded)), ""
    return (), ""


def _reason(text: str) -> tuple[str, ...]:
    match = _REASON.search(text)
    return speech(text[match.end() :].split(_REFUSAL_NOTE)[0]) if match else ()


def _answers(name: str, call: Mapping[str, Any], text: str, recorded: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(recorded.get("answers"), dict):
        notes = recorded.get("annotations")
        kept = [*_strings(recorded["answers"]), *(_notes(notes) if isinstance(notes, dict) else ())]
        yield from (answer for answer in kept if answer.strip() and answer in text)
    elif text.startswith(_ANSWERED):
        yield from _quoted_answers(call, text)
    elif name != _WRAPS_ANSWERS:
        yield from _free_answers(text)


def _notes(annotations: Mapping[str, Any]) -> Iterator[str]:
    return (n["notes"] for n in annotations.values() if isinstance(n, dict) and isinstance(n.get("notes"), str))


def _quoted_answers(call: Mapping[str, Any], text: str) -> Iterator[str]:
    """The answers in `"question"="answer", ...`, told apart by the questions that the call asked."""
    asked = call.get("questions")
    questions = [q.get("question") for q in asked if isinstance(q, dict)] if isinstance(asked, list) else []
    marks = [(at, len(mark)) for q in questions if (at := text.find(mark := f'"{q}"="')) >= 0]
    marks.sort()
    for position, (at, size) in enumerate(marks):
        rest = text[at + size : marks[position + 1][0]] if position + 1 < len(marks) else text[at + size :]
        answer = rest.rstrip(", ").removesuffix('"') if position + 1 < len(marks) else _last_answer(rest)
        if answer.strip():
            yield answer


def _last_answer(rest: str) -> str:
    end = rest.rfind('". You can now continue')
    match = _ANSWERS_END.search(rest)
    return rest[:end] if end >= 0 else rest[: match.start()] if match else rest


def _free_answers(text: str) -> Iterator[str]:
    """The answers in the result of an ask tool of one's own: JSON with a telling key, or the text itself."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        if not text.lstrip().lower().startswith("error"):
            yield from speech(text)
        return
    if isinstance(value, dict):
        found = [answer for key in _ANSWER_KEYS for answer in _strings(value.get(key))]
    else:
        found = list(_strings(value))
    for answer in found:
        escaped = orjson.dumps(answer).decode()[1:-1]
        if answer.strip() and (answer in text or escaped in text):
            yield answer if answer in text else escaped


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting.extend(reversed(item.values()))
        elif isinstance(item, list):
            waiting.extend(reversed(item))


_TEXT_CALL = re.compile(r"<function=|<invoke |^```\w*\n", re.MULTILINE)
_OBSERVATION = re.compile(r"\s*(?:OBSERVATION:|EXECUTION RESULT of \[|<returncode>|<observation>)")


def observation(text: str, before: str) -> bool:
    """Whether a text in the user's role is the output of a tool that the assistant called in its text."""
    return bool(_OBSERVATION.match(text) and _TEXT_CALL.search(before))
