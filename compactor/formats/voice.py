"""Which words in a recorded message are the user's own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from compactor.tools import ASKS, action
from compactor.transcript import Part, Speaker, speech

Verdict = Literal["", "approved", "refused"]

_HARNESS_TAGS = frozenset((
    "system-reminder", "environment_context", "user_instructions", "command-name", "command-message", "command-args",
    "command-contents", "local-command-stdout", "local-command-stderr", "local-command-caveat", "task-notification",
    "agent-notification", "bash-input", "bash-stdout", "bash-stderr", "user-memory-input", "ide_opened_file",
    "ide_selection", "ide_diagnostics", "new-diagnostics", "session-start-hook", "user-prompt-submit-hook",
    "post-tool-use-hook", "teammate-message", "tick", "environment_details",
))  # fmt: skip
_HARNESS_STARTS = (
    "<local-command-", "Caveat: The messages below were generated", "<task-notification>", "<agent-notification>",
    "Operation stopped by hook", "Stop hook feedback:", "Stop hook blocking error",
)  # fmt: skip
_HOOK = re.compile(r"(?:Pre|Post)ToolUse:\S+ |(?:SessionStart|UserPromptSubmit|SubagentStop)(?::\S+)? hook ")
_TAG = re.compile(r"\s*<([A-Za-z][\w-]*)(?:\s[^<>]*)?>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_COMMAND = re.compile(r"<command-name>\s*(/[^\s<]+)\s*</command-name>")
_MEMORY = re.compile(r"\s*<user-memory-input>(.*?)</user-memory-input>\s*", re.DOTALL)
_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user[^\]\n]*\]")
_NATIVE_SUMMARY = "This session is being continued from a previous conversation"

_REFUSED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
)
_WRAPPER = re.compile(
    r"The user doesn't want to (?:take this action right now\.|proceed with this tool use\. The tool use was rejected "
    r"\(eg\. if it was a file edit, the new_string was NOT written to the file\)\."
    r"(?P<reason> To tell you how to proceed, the user said:\n)?)"
)
"""How a result begins that a client writes for a refusal: all there is to know it by where no record tells."""
_REASON = re.compile(r"\bthe user said:\n", re.IGNORECASE)
_REFUSAL_NOTE = "\n\nNote: The user's next message may contain a correction"
_APPROVED = ("User has approved your plan", "User has approved exiting plan mode", "User has approved the plan")
_ANSWERED = ("User has answered your questions:", "Your questions have been answered:")
_WRAPS_ANSWERS = "AskUserQuestion"
"""The ask tool whose results are always the client's sentence, with the user's words in it or without."""
_ANSWERS_END = re.compile(r'"?\. You can now continue|"?\s*\Z')
_ANSWER = re.compile(r"\s*<(answer|user_message)>(.*)</\1>\s*", re.DOTALL)
"""How Cline and Roo Code wrap it."""
_QUESTION_KEYS = ("question", "q", "prompt", "text")
_ANSWER_KEYS = ("answer", "answers", "response", "selected", "choice")


@dataclass(frozen=True, slots=True)
class Beside:
    """What the record of a result tells beside its text."""

    asks: frozenset[str] = ASKS["messages"]
    """The tools that put questions to the user in records of its kind."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """What the client keeps of the answers; empty where it keeps nothing."""
    refused: bool | None = None
    """Whether it says that the user refused the call; None where such records never tell."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user said and decided in a result."""

    said: tuple[str, ...] = ()
    verdict: Verdict = ""
    answers: tuple[tuple[str, str], ...] = ()
    """(question, answer) for the pieces of `said` whose question is known."""


NOTHING_HEARD = Heard()


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
    """The slash command that the user typed and what stood behind it; speech only if the model was sent it."""
    if not text.lstrip().startswith("<command-"):
        return ()
    name, match = _COMMAND.search(text), _ARGUMENTS.search(text)
    return (*((name[1],) if name else ()), *(speech(match[1]) if match else ()))


def answered(name: str, call: Mapping[str, Any], text: str, failed: bool, beside: Beside) -> Heard:
    """The user's words in the result of a call, and what they decided; nothing where the call isn't known."""
    if not name:
        return NOTHING_HEARD
    if failed:
        return _refusal(name, text, beside)
    if action(name) == "approve" and text.startswith(_APPROVED):
        return Heard((), "approved")
    if name not in beside.asks:
        return NOTHING_HEARD
    pairs = tuple(_answers(name, call, text, beside.recorded))
    return Heard(tuple(answer for _, answer in pairs), "", tuple(pair for pair in pairs if pair[0]))


def _refusal(name: str, text: str, beside: Beside) -> Heard:
    if beside.refused is None:
        wrapper = None if name.startswith("mcp__") else _WRAPPER.match(text)
        if not wrapper:
            return NOTHING_HEARD
        return Heard(_reason(text[wrapper.end() :]) if wrapper["reason"] else (), "refused")
    if not beside.refused or not text.startswith(_REFUSED):
        return NOTHING_HEARD
    match = _REASON.search(text)
    return Heard(_reason(text[match.end() :]) if match else (), "refused")


def _reason(text: str) -> tuple[str, ...]:
    return speech(text.split(_REFUSAL_NOTE)[0])


Pair = tuple[str, str]
"""A question, empty where it isn't known, and the answer to it."""


def _answers(name: str, call: Mapping[str, Any], text: str, recorded: Mapping[str, Any]) -> Iterator[Pair]:
    questions = _questions(call)
    if isinstance(recorded.get("answers"), dict):
        notes = recorded.get("annotations")
        kept = [*_by_question(recorded["answers"]), *(_notes(notes) if isinstance(notes, dict) else ())]
        yield from ((question, answer) for question, answer in kept if answer.strip() and answer in text)
    elif text.startswith(_ANSWERED):
        yield from _quoted_answers([question for _, question in questions], text)
    elif name != _WRAPS_ANSWERS:
        yield from _free_answers(questions, text)


def _questions(call: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The questions that a call asks, in order, each with its id."""
    asked = call.get("questions")
    if isinstance(asked, list):
        several = [({"question": q} if isinstance(q, str) else q) for q in asked]
        return [
            (q["id"] if isinstance(q.get("id"), str) else "", q["question"])
            for q in several
            if isinstance(q, dict) and isinstance(q.get("question"), str)
        ]
    return [("", q) for key in _QUESTION_KEYS if isinstance(q := call.get(key), str) and q.strip()][:1]


def _by_question(answers: Mapping[str, Any]) -> Iterator[Pair]:
    return ((question, answer) for question, value in answers.items() for answer in _strings(value))


def _notes(annotations: Mapping[str, Any]) -> Iterator[Pair]:
    for question, noted in annotations.items():
        if isinstance(noted, dict) and isinstance(noted.get("notes"), str):
            yield question, noted["notes"]


def _quoted_answers(questions: Sequence[str], text: str) -> Iterator[Pair]:
    """The answers in `"question"="answer", ...`, told apart by the questions that the call asked."""
    marks = [(at, len(mark), q) for q in questions if (at := text.find(mark := f'"{q}"="')) >= 0]
    marks.sort()
    for position, (at, size, question) in enumerate(marks):
        rest = text[at + size : marks[position + 1][0]] if position + 1 < len(marks) else text[at + size :]
        answer = rest.rstrip(", ").removesuffix('"') if position + 1 < len(marks) else _last_answer(rest)
        if answer.strip():
            yield question, answer


def _last_answer(rest: str) -> str:
    end = rest.rfind('". You can now continue')
    match = _ANSWERS_END.search(rest)
    return rest[:end] if end >= 0 else rest[: match.start()] if match else rest


def _free_answers(questions: Sequence[tuple[str, str]], text: str) -> Iterator[Pair]:
    """The answers in the result of an ask tool of one's own: JSON with a telling key, or the text itself."""
    wrapped = _ANSWER.fullmatch(text)
    text = wrapped[2] if wrapped else text
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        if not text.lstrip().lower().startswith("error"):
            yield from _paired(questions, [("", piece) for piece in speech(text)], one_each=False)
        return
    values = [value.get(key) for key in _ANSWER_KEYS] if isinstance(value, dict) else [value]
    found = [pair for given in values for pair in _named(given)]
    asked = {question for _, question in questions}
    for question, answer in _paired(questions, [pair for pair in found if pair[1] not in asked]):
        escaped = orjson.dumps(answer).decode()[1:-1]
        if answer.strip() and (answer in text or escaped in text):
            yield question, answer if answer in text else escaped


def _named(value: Any) -> Iterator[Pair]:
    """The answers in a value, each with the key that it stands under."""
    return _by_question(value) if isinstance(value, dict) else (("", answer) for answer in _strings(value))


def _paired(questions: Sequence[tuple[str, str]], found: Sequence[Pair], one_each: bool = True) -> Iterator[Pair]:
    """Each answer with its question: the one whose text or id it stands under, the only one, or the one in its turn."""
    by_name = {name: question for names in questions for name in names if name for question in names[1:]}
    in_turn = one_each and len(found) == len(questions)
    for position, (name, answer) in enumerate(found):
        if len(questions) == 1:
            yield questions[0][1], answer
        elif name in by_name:
            yield by_name[name], answer
        else:
            yield questions[position][1] if in_turn and not name else "", answer


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


_TAG_CALL = re.compile(r"<function=\w+>|<invoke name=")
_TEXT_CALL = re.compile(r"<function=|<invoke |^```\w*\n", re.MULTILINE)
_OBSERVATION = re.compile(r"\s*(?:OBSERVATION:|Observation: |EXECUTION RESULT of \[|<returncode>|<observation>)")


def observation(text: str, before: str) -> bool:
    """Whether a text in the user's role is the output of a tool that the assistant called in its text."""
    return bool(_OBSERVATION.match(text) and _TEXT_CALL.search(before))


def called(text: str) -> bool:
    """Whether the assistant calls a tool in a text, in tags as SWE-smith and OpenHands have them."""
    return bool(_TAG_CALL.search(text))
