"""A model's reply read as an update: foreign input, parsed leniently, never completed.

What is put up with: a fence or chatter around the object, a closed `<think>` block before it, `add` left out around
the fields, another published name of a field, `null` or nothing for a list, one item or text for a list of them, an
item that is only its text, another case in an enumeration, keys that aren't known. A text that breaks off is a failure.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, get_args

from pydantic import ValidationError

from compactor.errors import CutOffError, ModelError
from compactor.exchange import Reply
from compactor.render import USUAL_BASIS
from compactor.snapshot import TYPES, Added, Approval, Basis, Close, Item, Supersede, Update
from compactor.transcript import Ref

ALSO = {
    "objectives": "objective", "goal": "objective", "goals": "objective", "doneCriteria": "done_criteria",
    "constraint": "constraints", "authorities": "authority", "decision": "decisions",
    "established_facts": "facts", "establishedFacts": "facts", "fact": "facts",
    "open_threads": "open_loops", "openLoops": "open_loops", "open": "open_loops", "OPEN": "open_loops",
    "DISCARDED": "rejected", "rejectedOptions": "rejected", "rejections": "rejected",
    "currentRisk": "risks", "risk": "risks", "files": "artifacts", "done": "completed", "inProgress": "in_progress",
    "next": "next_action", "nextAction": "next_action", "next_actions": "next_action",
}  # fmt: skip
"""Other published names of the fields."""
PARTS = ("add", "close", "supersede")
MOST_BRACES = 2_000
"""At so many braces of a reply an object is looked for at most."""
PROBLEM = 600
"""Characters of an item that couldn't be taken, as far as it is told again."""


@dataclass(frozen=True)
class Read:
    """What a reply says."""

    update: Update
    problems: tuple[str, ...] = ()
    """Items that couldn't be taken, each with the reason."""


def read(reply: Reply, source: str, letters: Mapping[str, str] | None = None, *, part: bool = False) -> Read:
    """The update in a reply about the source with that short name.

    Labels become refs into it; `letters` gives the letters of older sources by their short names. An item keeps the id
    that the reply gives it: an answer to a second asking says so which item it mends. Raises ModelError, with the
    reason and the cure, where the reply is no update: cut off, a refusal, a continued chat; empty, unless it is about a
    `part` of what is to be recorded.
    """
    _complete(reply)
    value = _object(_answer(reply.text))
    reader = _Reader(source, letters or {})
    update = reader.update(value)
    if update == Update() and not (part or reader.problems):
        nothing()
    return Read(update, tuple(reader.problems))


def nothing() -> NoReturn:
    """Fail because a model found nothing to record."""
    _fail("it returned an update with nothing in it", "try another model")


def _fail(what: str, cure: str) -> NoReturn:
    message = f"the model's reply can't be used: {what}; {cure}"
    raise ModelError(message)


def _complete(reply: Reply) -> None:
    """Whether the reply is a whole one."""
    if reply.finish == "length":
        spent = ", its reasoning took the room" if reply.reasoning and not reply.text.strip() else ""
        message = (
            f"the model's reply can't be used: it was cut off at the output limit (finish reason length{spent}); "
            "give a smaller --window or --max-summary, or a model that may write more"
        )
        raise CutOffError(message)
    if reply.refusal or reply.finish in ("content_filter", "refusal"):
        why = f": {_quoted(reply.refusal)}" if reply.refusal else f" (finish reason {reply.finish})"
        _fail(f"the model refused{why}", "try another model")
    if reply.finish in ("tool_calls", "function_call"):
        _fail("it called a tool instead of answering", "try another model")
    if not reply.text.strip():
        only = f"it holds only reasoning and no answer (finish reason {reply.finish})"
        _fail(only if reply.reasoning else "it is empty", "try another model")


_UNWRITABLE = re.compile("[\ud800-\udfff\x00-\x08\x0b-\x1f\x7f]")
_THINK = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THINK = re.compile(r"\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)


def _answer(text: str) -> str:
    """The reply without the reasoning before it."""
    text = _UNWRITABLE.sub("\ufffd", text.removeprefix("\ufeff"))
    while match := _THINK.match(text):
        text = text[match.end() :]
    if _OPEN_THINK.match(text):
        _fail("its reasoning isn't closed and no answer follows", "try another model")
    return text.strip()


_REFUSES = re.compile(
    r"\b(?:i(?:['’]m| am)? (?:can(?:['’]|no)t|cannot|unable|won't|not able|sorry)|i can(?:'|’)t|as an ai)\b",
    re.IGNORECASE,
)
_DECODER = json.JSONDecoder()


def _object(text: str) -> Mapping[str, Any]:
    """The last JSON object in the text that is an update; a text that breaks off inside one is never completed."""
    at, found = text.find("{"), None
    for _ in range(MOST_BRACES):
        if at < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, nested too deep
            if _breaks_off(text, at):
                _fail("its JSON is broken or breaks off", "try again, or give a smaller --window")
            end = at + 1
        else:
            found = dict(value) if _is_update(value) else found
        at = text.find("{", end)
    if found is not None:
        return found
    if _REFUSES.search(text[:400]):
        _fail(f"the model refused: {_quoted(text)}", "try another model")
    goes_on = "; it may go on with the chat" if len(text.split()) > 4 else ""
    _fail(f"it is no JSON object of an update but says: {_quoted(text)}{goes_on}", "try another model")


_BEGINS = re.compile(r"\{\s*\"([^\"]*)\"\s*:")


def _breaks_off(text: str, at: int) -> bool:
    """Whether what begins there is an update, as far as it goes: what is inside it isn't taken for a whole one."""
    match = _BEGINS.match(text, at)
    return match is not None and match[1] in (*PARTS, *TYPES, *ALSO)


def _is_update(value: Any) -> bool:
    """Whether a value is an update, and no other object that has a field of one by chance."""
    if not isinstance(value, dict):
        return False
    if any(key in value for key in PARTS):
        return True
    return any(key in (*TYPES, *ALSO) and _holds_items(content) for key, content in value.items())


def _holds_items(content: Any) -> bool:
    return any(isinstance(item, dict) and "evidence" in item for item in _list(content))


def _quoted(text: str) -> str:
    flat = " ".join(text.split())
    return f'"{flat[:160]}{"…" if len(flat) > 160 else ""}"'


class _Reader:
    """One reply's items, with what was wrong with those that can't be taken."""

    def __init__(self, source: str, letters: Mapping[str, str]) -> None:
        self.source = source
        self.letters = {letter: name for name, letter in letters.items() if letter}
        self.problems: list[str] = []
        self.places: dict[str, str] = {}
        """Where an added item stands among those that were taken, by `<field>[<k>]` as the model counts."""

    def update(self, value: Mapping[str, Any]) -> Update:
        given = value.get("add")
        fields = given if isinstance(given, dict) else {k: v for k, v in value.items() if k not in PARTS}
        items: dict[str, list[Item]] = {name: [] for name in TYPES}
        for key, content in fields.items():
            name = ALSO.get(key, key)
            if name in TYPES:
                items[name] += self._items(name, content, len(items[name]))
        close = tuple(self._changes(Close, value.get("close")))
        supersede = tuple(self._changes(Supersede, value.get("supersede")))
        added: dict[str, Any] = {name: tuple(found) for name, found in items.items()}
        return Update(add=Added(**added), close=close, supersede=supersede)

    def _items(self, name: str, content: Any, taken: int) -> Iterator[Item]:
        for number, value in enumerate(_list(content)):
            given = {"text": value} if isinstance(value, str) else value
            if not isinstance(given, dict) or not any(given.values()):
                continue
            item = self._item(name, given)
            if item is not None:
                self.places[f"{name}[{number}]"] = f"{name}[{taken}]"
                taken += 1
                yield item

    def _item(self, name: str, given: Mapping[str, Any]) -> Item | None:
        kind = TYPES[name]
        values: dict[str, Any] = {
            key: _plain(value) for key, value in given.items() if key in kind.model_fields and key not in _OURS
        }
        values["id"] = _plain(given.get("id"))
        values["evidence"] = tuple(dict.fromkeys(self._refs(given.get("evidence"))))
        if values.get("quote"):
            values["text"] = values["quote"]
        values["text"] = values.get("text") or values.get("quote") or values.pop("role", "") or values.get("value", "")
        values["basis"] = _basis(given.get("basis")) or USUAL_BASIS[name]
        if "state" in values:
            values["state"] = values["state"].casefold() or kind.model_fields["state"].default
        for key in ("said_by", "granted_by"):
            if key in kind.model_fields:
                values[key] = values.get(key, "").casefold() or "user"
        if "proof" in values:
            values["proof"] = next(self._refs(given.get("proof")), "")
        if "approved_by" in kind.model_fields:
            values["approved_by"] = self._approval(given.get("approved_by"))
            values["scope"] = values.get("scope") or "not stated"
        try:
            return kind.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            shown = json.dumps(given, ensure_ascii=False)[:PROBLEM]
            self.problems.append(f"{name}: {where}: {first['msg'].lower()}: {shown}")
            return None

    def _approval(self, value: Any) -> Approval | None:
        if not isinstance(value, dict):
            return None
        ref = next(self._refs(value.get("ref")), "")
        who = _plain(value.get("who")).casefold()
        return Approval(who=who if who in ("user", "system") else "user", ref=ref) if ref else None

    def _changes(self, kind: type[Any], content: Any) -> Iterator[Any]:
        names = [key for key in kind.model_fields if key != "evidence"]
        for value in _list(content):
            if isinstance(value, dict) and all(isinstance(value.get(key), str) for key in names):
                known = {key: self.places.get(value[key], value[key]) for key in names}
                yield kind(**known, evidence=tuple(dict.fromkeys(self._refs(value.get("evidence")))))

    def _refs(self, value: Any) -> Iterator[str]:
        for text in _list(value):
            for label in re.split(r"[,;\s]+", str(text).strip("[]() ")) if isinstance(text, str | int) else ():
                yield from self._ref(label.strip("[]()"))

    def _ref(self, label: str) -> Iterator[str]:
        """The refs that a label means; what is none is passed over, and an item without any is found by the checks."""
        label = re.sub(r"^(?:line|L|#)(?=\d)", "", label)
        first, dash, last = label.partition("-")
        if dash and re.fullmatch(r"\d+", last):
            yield from self._ref(first)
            label = last
        match = re.fullmatch(r"(?:([A-Z]+)|([0-9a-f]{8,64}):)?(\d+(?:\.\d+)?(?:/\d+)?)!?", label)
        if match:
            source = match[2] or (self.letters.get(match[1], "") if match[1] else self.source)
            try:
                yield str(Ref.parse(f"{source}:{match[3]}"))
            except ValueError:
                return


_OURS = frozenset(("status", "by", "change", "shown", "evidence", "basis", "approved_by"))


def _list(value: Any) -> list[Any]:
    return [] if value is None or value == "" else value if isinstance(value, list) else [value]


def _plain(value: Any) -> str:
    """A text where one is wanted."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = "; ".join(value)
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return _UNWRITABLE.sub("\ufffd", text)


def _basis(value: Any) -> str:
    word = value.casefold().strip() if isinstance(value, str) else ""
    return word if word in get_args(Basis) else ""
