"""The snapshot as text: the block that the agent reads, and Markdown for people.

A block is made to be read by a model and parsed again by code: `parse(render(s)).snapshot == shown(s)`. One line holds
one item: `- D2 text | name: value | ... [refs]`. In the text a line break is written `\\n`, a bar `\\|`, and a
backslash is doubled only where it would otherwise be read as one of these. Refs into the newest source are bare line
numbers, those into older ones have the letter that the line `Sources:` gives; `!` marks the proof of a completed step.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compactor.snapshot import (
    FIELDS,
    TYPES,
    Approval,
    Artifact,
    Completed,
    Decision,
    Fact,
    Item,
    Rejection,
    Snapshot,
)
from compactor.transcript import BLOCK_END, BLOCK_PREAMBLE, BLOCK_START, Ref

HEADINGS = {
    "objective": "Objective", "done_criteria": "Done when", "decisions": "Decisions (where no scope is given, narrow)",
    "constraints": "Constraints (the user's words)", "authority": "Authority", "facts": "Established",
    "rejected": "Already rejected", "completed": "Done", "in_progress": "In progress", "artifacts": "Files",
    "open_loops": "Open", "risks": "Risks", "next_action": "Next",
}  # fmt: skip
"""In the order of the block."""
USUAL_BASIS = {
    "objective": "stated", "done_criteria": "stated", "constraints": "stated", "authority": "stated",
    "decisions": "reported", "rejected": "observed", "facts": "observed", "artifacts": "observed",
    "completed": "observed", "in_progress": "reported", "open_loops": "reported", "risks": "reported",
    "next_action": "reported",
}  # fmt: skip
"""What isn't written on an item's line."""
NAMES = {
    "said_by": "said by", "granted_by": "granted by", "scope": "scope", "excludes": "not", "why": "why",
    "holds_while": "while", "value": "value", "role": "for", "owner": "owner", "next": "next", "quote": "quote",
}  # fmt: skip
USUAL = {"said_by": "user", "granted_by": "user", "owner": "agent"}
OWN_CHOICE, PROPOSED = "agent's own choice", "proposed, not approved"
OUTPUT, SAID, SHOWN_BY = "output `", 'said "', "from "


@dataclass(frozen=True)
class Parsed:
    """What a block says."""

    snapshot: Snapshot
    hidden: Mapping[str, int] = field(default_factory=dict)
    """How many items of a field the block doesn't show."""
    sources: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Lines that are no item, heading or frame: somebody edited the block."""


def shown(snapshot: Snapshot, short: bool = False) -> Snapshot:
    """What a block of the snapshot holds: its active, shown items; rejections without their reason when `short`."""

    def keep(_: str, item: Item) -> Item | None:
        if item.status != "active" or not item.shown:
            return None
        return item.model_copy(update={"why": ""}) if short and isinstance(item, Rejection) else item

    return snapshot.map(keep)


def hidden(snapshot: Snapshot) -> dict[str, int]:
    """How many active items of each field a block of the snapshot doesn't show, where there are any."""
    counts = {name: sum(i.status == "active" and not i.shown for i in snapshot.of(name)) for name in FIELDS}
    return {name: count for name, count in counts.items() if count}


def render(snapshot: Snapshot, newest: str, *, record: str = "", recall: str = "", short: bool = False) -> str:
    """The block. `newest` is the short name of the newest source, `record` where the full record is.

    `recall` is the command that shows what the block doesn't; without one the hidden items are only counted.
    """
    letters = letters_of(snapshot, newest)
    lines = [BLOCK_PREAMBLE, "Sources: " + ", ".join(f"{letter or 'A'} = {name}" for name, letter in letters.items())]
    missing, showing = hidden(snapshot), shown(snapshot, short)
    for name, heading in HEADINGS.items():
        items = showing.of(name)
        if not items and not missing.get(name):
            lines.append(f"## {heading}: none recorded")
            continue
        lines.append(f"## {heading}")
        lines += [line_of(name, item, letters) for item in items]
        if missing.get(name):
            lines.append(f"({missing[name]} more not shown{': ' + recall if recall else ''})")
    lines.append(f"Full record: {record or 'A'}. [41] is line 41 of it.")
    return "\n".join([*lines, BLOCK_END])


def letters_of(snapshot: Snapshot, newest: str) -> dict[str, str]:
    """The letter of each source, in order; the newest has none in refs."""
    names = dict.fromkeys([newest, *(Ref.parse(ref).source for _, item in snapshot.items() for ref in _refs(item))])
    return {name: "" if position == 0 else _letter(position) for position, name in enumerate(names)}


def _letter(position: int) -> str:
    return chr(ord("A") + position) if position < 26 else f"{_letter(position // 26 - 1)}{_letter(position % 26)}"


def _refs(item: Item) -> list[str]:
    extra = [item.approved_by.ref] if isinstance(item, Decision) and item.approved_by else []
    proof = [item.proof] if isinstance(item, Completed) and item.proof else []
    return [*item.evidence, *extra, *proof]


class _Newest(dict[str, str]):
    """Letters with which every source is the newest."""

    def __missing__(self, key: str) -> str:
        return ""


def line_of(name: str, item: Item, letters: Mapping[str, str] | None = None) -> str:
    """One item's line; with no letters given all its refs are written as those into the newest source."""
    letters = _Newest() if letters is None else letters
    segments = [*_head(item), *_extras(item, letters)]
    usual = "stated" if isinstance(item, Decision) and item.approved_by else USUAL_BASIS[name]
    if item.basis != usual and not (isinstance(item, Fact) and segments[0].startswith(SAID)):
        segments.append(f"basis: {item.basis}")
    return f"- {item.id} {' | '.join(segments)} [{_cite(item, letters)}]"


def _head(item: Item) -> list[str]:
    if isinstance(item, Artifact):
        return [f"{item.state} {_escape(item.path)}", _escape(item.text)]
    if item.text and getattr(item, "quote", "") == item.text:
        return [f'"{_escape(item.text)}"']
    if isinstance(item, Fact) and item.value and item.value == item.text:
        text = _escape(item.text)
        return [f'{SAID}{text}"' if item.basis == "stated" else f"{OUTPUT}{text}`"]
    if _is_shown(item):
        return [_escape(item.text)]
    marks = (
        "\\ ",
        *(('"',) if hasattr(item, "quote") else ()),
        *((OUTPUT, SAID, SHOWN_BY) if isinstance(item, Fact) else ()),
    )
    return [("\\ " if item.text.startswith(marks) else "") + _escape(item.text)]


def shown_text(about: str, value: str) -> str:
    """The text of a fact whose value was shown by something: from ABOUT `line`; `line`."""
    return f"{SHOWN_BY}{about} " + "; ".join(f"`{line}`" for line in value.split("\n"))


def _is_shown(item: Item) -> bool:
    """Whether a fact's text is `shown_text` of its value, and the value can be told from it."""
    if not (isinstance(item, Fact) and item.value and item.text.startswith(SHOWN_BY)):
        return False
    about, value = _shown_parts(item.text)
    return value == item.value and item.text == shown_text(about, value)


def _shown_parts(text: str) -> tuple[str, str]:
    about, _, rest = text.removeprefix(SHOWN_BY).partition(" `")
    return about, rest.removesuffix("`").replace("`; `", "\n")


def _extras(item: Item, letters: Mapping[str, str]) -> list[str]:
    segments = []
    for name, label in NAMES.items():
        value = getattr(item, name, None)
        unwritten = _usual(type(item), name)
        if (
            value is None
            or value == unwritten
            or (name in ("quote", "value") and value == item.text)
            or (name == "value" and _is_shown(item))
        ):
            continue
        segments.append(f"{label}: {_escape(value)}")
    if isinstance(item, Decision):
        segments.append(_approval(item, letters))
    if isinstance(item, Completed) and item.proof and item.proof not in item.evidence:
        segments.append(f"proof: {_short(item.proof, letters)}")
    return segments


def _usual(kind: type[Item], name: str) -> str:
    """The value of a field that isn't written."""
    if name == "scope":
        return "not stated" if kind is Decision else "as quoted"
    return "" if kind is Artifact else USUAL.get(name, "")


def _approval(item: Decision, letters: Mapping[str, str]) -> str:
    if item.approved_by:
        state = "" if item.state == "accepted" else "proposed, "
        return f"{state}approved by {_escape(item.approved_by.who)} at {_short(item.approved_by.ref, letters)}"
    return OWN_CHOICE if item.state == "accepted" else PROPOSED


def _cite(item: Item, letters: Mapping[str, str]) -> str:
    proof = getattr(item, "proof", "")
    return ",".join(_short(ref, letters) + ("!" if ref == proof else "") for ref in item.evidence)


def _short(text: str, letters: Mapping[str, str]) -> str:
    source, _, place = text.partition(":")
    return letters[source] + place


def _escape(text: str) -> str:
    text = re.sub(r"\\(?=[\\n|\n]|\Z)", r"\\\\", text)
    return text.replace("\n", "\\n").replace("|", "\\|")


def _unescape(text: str) -> str:
    return re.sub(r"\\([\\n|])", lambda match: "\n" if match[1] == "n" else match[1], text)


_LINE = re.compile(r"- ([A-Z]\d+) (.*) \[([^\[\]]*)\]", re.DOTALL)
_HIDDEN = re.compile(r"\((\d+) more not shown.*\)")
_SEPARATOR = re.compile(r" \| ")


def parse(block: str) -> Parsed:
    """Read a block again; whatever isn't understood is left out and named, nothing raises."""
    by_heading = {heading: name for name, heading in HEADINGS.items()}
    items: dict[str, list[Item]] = {name: [] for name in FIELDS}
    counts: dict[str, int] = {}
    sources: dict[str, str] = {}
    unread: list[str] = []
    name = ""
    for line in block.split("\n"):
        if line.startswith("## "):
            name = by_heading.get(line[3:].removesuffix(": none recorded"), "")
        elif line.startswith("Sources: "):
            sources = _sources(line)
        elif name and (match := _LINE.fullmatch(line)):
            item = _item(name, match, sources)
            if item:
                items[name].append(item)
            else:
                unread.append(line)
        elif name and (match := _HIDDEN.fullmatch(line)):
            counts[name] = int(match[1])
        elif not line.startswith((BLOCK_START, BLOCK_END, "Full record: ")) and line.strip():
            unread.append(line)
    snapshot = Snapshot.of_fields(items)
    return Parsed(snapshot, counts, tuple(sources.values()), tuple(unread))


def _sources(line: str) -> dict[str, str]:
    pairs = re.findall(r"([A-Z]+) = ([0-9a-f]{8,64})", line)
    return {"" if letter == "A" else letter: name for letter, name in pairs}


def _item(name: str, match: re.Match[str], sources: Mapping[str, str]) -> Item | None:
    segments = _SEPARATOR.split(match[2])
    try:
        cited = [(_long(ref.removesuffix("!"), sources), ref.endswith("!")) for ref in match[3].split(",") if ref]
        values: dict[str, Any] = {"id": match[1], "evidence": [ref for ref, _ in cited], "basis": USUAL_BASIS[name]}
        values |= {key: _usual(TYPES[name], key) for key in (*USUAL, "scope") if key in TYPES[name].model_fields}
        values |= dict([("proof", ref) for ref, is_proof in cited if is_proof][:1])
        values |= _read_head(name, segments)
        for segment in segments[2 if name == "artifacts" else 1 :]:
            values |= _read_extra(name, segment, sources)
        return TYPES[name](**values)
    except (IndexError, KeyError, StopIteration, ValueError):
        return None


def _long(short: str, sources: Mapping[str, str]) -> str:
    letters = re.match(r"[A-Z]*", short)
    prefix = letters[0] if letters else ""
    return f"{sources[prefix]}:{short[len(prefix) :]}"


def _read_head(name: str, segments: Sequence[str]) -> dict[str, Any]:
    head = segments[0]
    if name == "artifacts":
        state, _, path = head.partition(" ")
        return {"state": state, "path": _unescape(path), "text": _unescape(segments[1])}
    if "quote" in TYPES[name].model_fields and len(head) > 2 and head[0] == head[-1] == '"':
        return {"text": _unescape(head[1:-1]), "quote": _unescape(head[1:-1])}
    if name == "facts" and head.startswith(OUTPUT) and head.endswith("`") and len(head) > len(OUTPUT) + 1:
        return {"text": _unescape(head[len(OUTPUT) : -1]), "value": _unescape(head[len(OUTPUT) : -1])}
    if name == "facts" and head.startswith(SAID) and head.endswith('"') and len(head) > len(SAID) + 1:
        text = _unescape(head[len(SAID) : -1])
        return {"text": text, "value": text, "basis": "stated"}
    if name == "facts" and head.startswith(SHOWN_BY) and head.endswith("`"):
        text = _unescape(head)
        return {"text": text, "value": _shown_parts(text)[1]}
    return {"text": _unescape(head.removeprefix("\\ "))}


def _read_extra(name: str, segment: str, sources: Mapping[str, str]) -> dict[str, Any]:
    if segment == OWN_CHOICE:
        return {"state": "accepted"}
    if segment == PROPOSED:
        return {"state": "proposed"}
    if name == "decisions" and (match := re.fullmatch(r"(proposed, )?approved by (.*) at (\S+)", segment, re.DOTALL)):
        approval = Approval(who=_unescape(match[2]), ref=_long(match[3], sources))
        return {"approved_by": approval, "state": "proposed" if match[1] else "accepted", "basis": "stated"}
    label, _, value = segment.partition(": ")
    if label == "basis":
        return {"basis": value}
    if label == "proof":
        return {"proof": _long(value, sources)}
    field_name = next(key for key, text in NAMES.items() if text == label and key in TYPES[name].model_fields)
    return {field_name: _unescape(value)}


def three_answers(snapshot: Snapshot) -> dict[str, str]:
    """What a fresh reader must know at once: what we try to finish, what is proven, what is safe next."""
    active = {name: [i for i in snapshot.of(name) if i.status == "active"] for name in FIELDS}
    proven = [item.text for item in active["completed"] if isinstance(item, Completed) and item.proof]
    goal, after = active["objective"], active["next_action"]
    return {
        "What are we trying to finish?": goal[0].text if goal else "none, because no request was found",
        "What has been proven?": "; ".join(proven[-3:]) or "none, because no step has a result that proves it",
        "What action is safe next?": after[0].text if after else "none, because nothing is asked",
    }


def markdown(snapshot: Snapshot, title: str) -> str:
    """The whole snapshot for people: the three answers, then every item with full refs, closed ones struck out."""
    lines = [f"# {title}", ""]
    lines += [f"**{question}** {answer}  " for question, answer in three_answers(snapshot).items()]
    for name, heading in HEADINGS.items():
        lines += ["", f"## {heading}", ""]
        lines += [_markdown_line(item) for item in snapshot.of(name)] or ["None recorded."]
    return "\n".join(lines) + "\n"


def _markdown_line(item: Item) -> str:
    names = dict.fromkeys(Ref.parse(ref).source for ref in _refs(item))
    segments = [*_head(item), *_extras(item, {name: f"{name}:" for name in names})]
    body = " · ".join(segment for segment in segments if segment).replace("\\n", " ")
    refs = ", ".join(f"`{ref}`" for ref in item.evidence)
    body = body if item.status == "active" else f"~~{body}~~ ({item.status}{' by ' + item.by if item.by else ''})"
    return f"- **{item.id}** {body} ({item.basis}; {refs or 'no evidence'})"
