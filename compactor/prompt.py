"""Which messages do we send.

The transcript comes first and the instruction last: models that read the instruction first go on with the chat. The
texts are files in `prompts/`; each is filled in where a name stands after `$`, and a name without a value is an error.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from compactor.render import HEADINGS, letters_of, line_of
from compactor.snapshot import TYPES, Item, Snapshot

SHARE, FRAME = 0.75, 190
"""What of the block's budget the model may fill, with the tokens of headings and the like; the rest is for what code
adds."""
FOLLOWING = 12
"""Of the messages that follow, so many are named."""
WORDS_PER_TOKEN = 0.42
"""Words of items per token of their block, which holds ids, names and refs beside them: counted on blocks."""
CJK = " (two Chinese, Japanese or Korean characters count as one)"
PER_FIELD = 12
"""What the heading of a field takes, and saying how many of its items aren't told."""

FILES = ("system", "instruction", "first", "merge", "form", "again", "prefix")

Size = Callable[[str], int]


@dataclass(frozen=True)
class Place:
    """Where in the session a window lies."""

    number: int = 1
    count: int = 1
    ending: str = ""
    """What the last event was, for the last window."""
    following: Sequence[str] = ()
    """What comes after the head and stays with the agent: each message in a word or two."""


@dataclass(frozen=True)
class Wish:
    """What the user asks of the prompt."""

    instruction: str = ""
    """In place of our own; empty for that."""
    focus: str = ""
    thinking: bool = False
    """Whether the agent's thinking is told too."""

    @property
    def hash(self) -> str:
        """SHA-256 over all of the prompt that doesn't come from the transcript."""
        texts = (self.instruction, self.focus, *(_file(name) for name in FILES))
        return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def messages(
    text: str, place: Place, source: str, record: str, hints: str, limit: int, wish: Wish, *, merge: bool = False
) -> tuple[Mapping[str, str], ...]:
    """The messages that ask for an update about the told `text` of the source with that short name.

    `record` tells what stands already, `merge` says that something does; `limit` is the block's budget in tokens.
    """
    tag = f"transcript-{source}"
    pieces = [f"<{tag}>\n{text}\n</{tag}>", _told_end(place)]
    pieces += _asking(place, record, hints, limit, wish, merge=merge)
    return {"role": "system", "content": _file("system")}, {"role": "user", "content": "\n\n".join(pieces)}


def behind(
    index: str, place: Place, record: str, hints: str, limit: int, wish: Wish, *, merge: bool = False
) -> Mapping[str, str]:
    """The message that asks for an update when the original messages were sent before it.

    `index` names each of them by its label; the rest is as in `messages`.
    """
    pieces = [Template(_file("prefix")).substitute(index=index), _told_end(place)]
    pieces += _asking(place, record, hints, limit, wish, merge=merge)
    return {"role": "user", "content": "\n\n".join(pieces)}


def _asking(place: Place, record: str, hints: str, limit: int, wish: Wish, *, merge: bool) -> Iterator[str]:
    """What stands behind the material."""
    if merge:
        yield f"# The record so far\n\n{record}"
    if hints:
        yield f"# What code found in it\n\n{hints}"
    yield _instruction(wish, limit, place, merge=merge)
    yield _file("form")


def again(problems: Sequence[str], cited: str, source: str) -> tuple[Mapping[str, str], ...]:
    """The messages that ask for items anew which failed the checks; `cited` tells the entries that they cite."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    material = f"<transcript-{source}>\n{cited}\n</transcript-{source}>\n\n" if cited else ""
    text = material + Template(_file("again")).substitute(problems=listed) + "\n\n" + _file("form")
    return {"role": "system", "content": _file("system")}, {"role": "user", "content": text}


def _told_end(place: Place) -> str:
    part = f"This was part {place.number} of {place.count} of what is to be recorded. " if place.count > 1 else ""
    if place.number < place.count:
        return f"{part}It isn't the end: the next part follows in another request."
    if not place.following:
        return f"{part}The transcript ends here. {place.ending} No message follows it."
    more = ", ".join(place.following[:FOLLOWING]) + (", ..." if len(place.following) > FOLLOWING else "")
    return (
        f"{part}What is to be recorded ends here. {place.ending} The agent keeps the {len(place.following)} messages "
        f"that follow, which you don't see ({more}): say how things stand at this point, they tell the rest."
    )


def _instruction(wish: Wish, limit: int, place: Place, *, merge: bool) -> str:
    template = Template(wish.instruction or _file("instruction"))
    count = max(int((limit * SHARE - FRAME) * WORDS_PER_TOKEN), 150)
    size = f"What you write may take about {count} words in all{CJK}; fewer where there is less to say."
    if place.count > 1:
        share = max(count // place.count, 120)
        size = f"What you add from this part may take about {share} words{CJK}; fewer where there is less to say."
        size += " Leave `next_action` to the last part." * (place.number < place.count)
    focus = f"\nThe user wishes that you look most at this: {wish.focus}\n" if wish.focus else ""
    values = {"size": size, "kept": _kept(place), "merge": _file("merge") if merge else _file("first"), "focus": focus}
    # a user's own text may hold other names and lone dollars
    filled = template.safe_substitute(values) if wish.instruction else template.substitute(values)
    lacks_focus = bool(wish.instruction) and "$focus" not in wish.instruction
    return (filled + focus if lacks_focus else filled).strip()


def _kept(place: Place) -> str:
    if place.number < place.count:
        return ", with those of the parts that follow, and with nothing else"
    if place.following:
        return f" and the {len(place.following)} messages after it, which you don't see, and with nothing else"
    return " and with nothing else"


def told(record: Snapshot, source: str, room: int | None = None, size: Size = len) -> str:
    """A snapshot's active items with their ids, as the model is told them.

    Where that takes more than `room`, by `size`, the items that come first fit and the others are counted.
    """
    letters = letters_of(record, source)
    older = ", ".join(letter for letter in letters.values() if letter)
    first = [f"(Labels with a letter, {older}, lie in earlier transcripts.)"] if older else []
    active = {name: [i for i in record.of(name) if i.status == "active"] for name in HEADINGS}
    items = {name: [line_of(name, item, letters) for item in found] for name, found in active.items() if found}
    whole = "\n".join([*first, *(line for name, lines in items.items() for line in (f"## {name}", *lines))])
    if room is None or size(whole) <= room:
        return whole
    lines, left = first, room - sum(map(size, first)) - PER_FIELD * len(items)
    for name, found in items.items():
        kept = _fitting(found, left, size)
        left -= sum(size(line) + 1 for line in kept)
        more = [f"({len(found) - len(kept)} more)"] * (len(kept) < len(found))
        lines = [*lines, f"## {name}", *kept, *more]
    return "\n".join(lines)


def _fitting(lines: Sequence[str], room: int, size: Size) -> list[str]:
    kept = []
    for line in lines:
        room -= size(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def schema() -> dict[str, Any]:
    """The JSON Schema of a reply, strict: every key required, none else allowed, no patterns."""
    text = {"type": "string"}
    refs = {"type": "array", "items": text}
    fields = {name: {"type": "array", "items": _object(_item(kind))} for name, kind in TYPES.items()}
    close = _object({"id": text, "evidence": refs})
    supersede = _object({"id": text, "by": text, "evidence": refs})
    return _object({
        "add": _object(fields),
        "close": {"type": "array", "items": close},
        "supersede": {"type": "array", "items": supersede},
    })  # fmt: skip


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    names = list(properties)
    return {"type": "object", "properties": dict(properties), "required": names, "additionalProperties": False}


_LEFT_OUT = frozenset(("id", "status", "by", "change", "shown", "role", "value"))


def _item(kind: type[Item]) -> dict[str, Any]:
    text = {"type": "string"}
    found: dict[str, Any] = {}
    for name in kind.model_fields:
        if name in _LEFT_OUT or (name == "text" and "quote" in kind.model_fields):
            continue
        found[name] = text
    found["evidence"] = {"type": "array", "items": text}
    found["basis"] = {"type": "string", "enum": ["stated", "observed", "reported", "inferred"]}
    if "state" in found:
        states = ["created", "modified", "read", "deleted"] if "path" in found else ["proposed", "accepted"]
        found["state"] = {"type": "string", "enum": states}
    if "approved_by" in found:
        found["approved_by"] = {"anyOf": [_object({"who": text, "ref": text}), {"type": "null"}]}
    return found


@cache
def _file(name: str) -> str:
    return files("compactor").joinpath("prompts", f"{name}.md").read_text("utf-8").strip()
