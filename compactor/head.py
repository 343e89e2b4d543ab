"""The head as a model is told it.

Who really speaks is said of each part; a call is told with its parameters, an edit's old and new text apart; a result
names its call and how it ended. What the user says is never cut. Everything else is shortened from the middle by value:
what the ledger expects to be used again stays. What was told before is told once. Nothing has the shape of a tool's
message, and what carries no words leaves a numbered placeholder.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from compactor import words
from compactor.identifiers import identifiers
from compactor.ledger import GUTTERS, REMINDER, Ledger
from compactor.shorten import shorten
from compactor.tools import action, command_of
from compactor.transcript import SPEECH_LIMIT, Entry, Part, ref

SHARE = 0.5
"""What is told of calls and results takes at most this share of their characters, if the tightest scale reaches it."""
SCALES = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0, 22.0, 32.0)
"""By which the limits below are multiplied; the most generous that keeps to the share is taken."""
RESULT, LOOK, NEW, OLD, VALUE = 1_600, 1_000, 1_600, 400, 800
"""Characters of a result, of one that reads or searches, of an edit's two texts, of another argument."""
THINKING, HARNESS, DOCUMENT, AGENT, SUMMARY = 900, 400, 4_000, 6_000, 60_000
"""Characters of texts, by who speaks; of a user's only the documents that they show have a limit."""
RECENT, LONG_AGO = 2.0, 0.6
"""By how much the limits grow towards the end: what was done last is what goes on."""
SAYS_NOTHING = 120
"""A thought shorter than this only announces the call that follows."""
LAST, JUST_NOW = 8, 3.0
"""So many of the last entries are told at so much more length, and nothing of them by where it stood before: they say
how things are."""
ECHO = 160
"""Characters of what a tool says of a change that it made: it shows again what the call said."""
BEGINNING = 60
"""Characters by which a message is known again in an index."""
WANTED = 400
"""How many identifiers, by weight, keep their line."""
PAUSE = timedelta(minutes=30)
LONG_LINE = 24
"""Characters from which a line that was told before is known again."""
FEWEST_KNOWN = 3
"""So many known lines in a row are told as a reference to where they stand."""

SPEAKERS = {
    "human": "USER", "assistant": "AGENT", "tool": "TOOL", "harness": "HARNESS (put in by the client, not the user)",
    "system": "SYSTEM", "summary": "EARLIER SUMMARY (written by a model, not the user)",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Passage:
    """One entry, told."""

    position: int
    """Its place in the story, from 0."""
    label: str
    """How it is cited: its line, as in a ref."""
    text: str


@dataclass(frozen=True)
class Told:
    """The whole head, told."""

    passages: tuple[Passage, ...]
    ending: str
    """What the last event was, and whether its result was seen."""


def tell(source: str, story: Sequence[Entry], ledger: Ledger, *, fold: bool = True, thinking: bool = False) -> Told:
    """Tell the entries of the source with that short name; with `fold` what was told before is told by its place.

    The agent's thinking is told only where it's asked for: some models take its words for an attempt to get at theirs,
    and refuse (can1357/oh-my-pi#6093).
    """
    raw = sum(len(part.text) for entry in story for part in entry.parts if part.kind in ("call", "result"))
    if raw < RESULT:
        return _Teller(source, ledger, 1.0, fold, thinking).told(story)
    tellers = [_Teller(source, ledger, scale, fold, thinking) for scale in SCALES]
    told: dict[int, Told] = {}

    def over(k: int) -> bool:
        told[k] = tellers[k].told(story)
        return tellers[k].tools > SHARE * raw

    best = max(bisect_left(range(len(SCALES)), True, key=over) - 1, 0)
    return told.get(best) or tellers[best].told(story)


class _Teller:
    """What was told so far."""

    def __init__(self, source: str, ledger: Ledger, scale: float, fold: bool, thinking: bool) -> None:
        self.thinks = thinking
        self.source, self.scale, self.age, self.last, self.folds = source, scale, 1.0, False, fold
        best = sorted(ledger.weight.items(), key=lambda pair: (-pair[1], pair[0]))[:WANTED]
        self.wanted = dict(best)
        """Those not told yet."""
        self.known: dict[str, str] = {}
        """Where each long line was told."""
        self.calls: dict[str, tuple[str, Part]] = {}
        self.open: dict[str, str] = {}
        """The calls whose result hasn't come, by label."""
        self.later: set[str] = set()
        """The ids of all calls there are."""
        self.media = 0
        self.tools = 0
        """Characters told of calls and results."""
        self.time: datetime | None = None

    def told(self, story: Sequence[Entry]) -> Told:
        passages = []
        self.later = {part.call_id for entry in story for part in entry.parts if part.kind == "call"}
        for at, entry in enumerate(story):
            self.age = LONG_AGO + (RECENT - LONG_AGO) * ((at + 1) / len(story)) ** 2
            self.last = len(story) - at <= LAST
            if text := "\n".join(self._entry(entry)):
                passages.append(Passage(at, _label(self.source, entry), text))
        return Told(tuple(passages), self._ending(story))

    def _entry(self, entry: Entry) -> Iterator[str]:
        told = [text for number, part in enumerate(entry.parts, 1) if (text := self._part(entry, number, part))]
        if told:
            yield from self._pause(entry)
            yield from told

    def _pause(self, entry: Entry) -> Iterator[str]:
        now = _time(entry.time)
        if now and (not self.time or now - self.time >= PAUSE):
            later = f", {_span(now - self.time)} later" if self.time else ""
            yield f"--- {now:%Y-%m-%d %H:%M}{later} ---"
        self.time = now or self.time

    def _part(self, entry: Entry, number: int, part: Part) -> str:
        label = _label(self.source, entry, number if len(entry.parts) > 1 else 0)
        match part.kind:
            case "call":
                told = self._call(label, part)
            case "result":
                told = self._result(label, part)
            case "media" | "opaque":
                self.media += 1
                what = part.name or ("media" if part.kind == "media" else "redacted content")
                told = f"[{label}] {SPEAKERS[part.speaker]}: [{what}, no. {self.media}]"
                if part.kind == "opaque" and part.text:
                    told = self._text(label, part)
            case _:
                told = self._text(label, part)
        if part.kind in ("call", "result"):
            self.tools += len(told)
        self._remember(told, label)
        first, _, rest = told.partition("\n")
        return f"{first}\n{_LOOKS_TOLD.sub(_INDENTED, rest)}" if rest else told

    def _remember(self, told: str, label: str) -> None:
        for identifier in identifiers(told):
            self.wanted.pop(identifier, None)
        for line in told.split("\n")[1:]:
            if len(key := line.strip()) >= LONG_LINE:
                self.known.setdefault(key, label)

    # -- texts

    def _text(self, label: str, part: Part) -> str:
        if not part.text.strip():
            return ""
        name = SPEAKERS[part.speaker]
        if part.kind == "thinking":
            if not self.thinks or len(part.text.strip()) < SAYS_NOTHING:
                return ""
            return f"[{label}] AGENT, thinking:\n{self._short(part.text, THINKING)}"
        if part.speaker == "human":
            return f"[{label}] {name}:\n{self._speech(part)}"
        if part.speaker == "harness":
            text = self._fresh(part.text)
            return "" if text.startswith("…") else f"[{label}] {name}:\n{shorten(text, HARNESS, {})}"
        return f"[{label}] {name}:\n{self._short(part.text, SUMMARY if part.speaker == 'summary' else AGENT)}"

    def _speech(self, part: Part) -> str:
        """What the user says, whole; a document they show is shortened like an output."""
        if len(part.text) <= SPEECH_LIMIT:
            return part.text.strip("\n")
        first, *rest = part.said or ("",)
        start = part.text.find(first) + len(first)
        end = part.text.rfind(rest[-1]) if rest else len(part.text)
        shown = self._short(part.text[start:end], DOCUMENT)
        return f"{part.text[:start]}\n({_SHOWS}:){shown}\n{part.text[end:]}"

    def _short(self, text: str, limit: int, *, fold: bool = True) -> str:
        fresh = self._fresh(text) if fold and self.folds and not self.last else text
        most = limit * self.scale * self.age * (JUST_NOW if self.last else 1)
        return shorten(fresh.strip("\n"), int(most), self.wanted)

    def _fresh(self, text: str) -> str:
        """The text with what was told before replaced by where it stands."""
        lines, told, at = text.split("\n"), list[str](), 0
        while at < len(lines):
            end, place = self._run(lines, at)
            known = [line for line in lines[at:end] if len(line.strip()) >= LONG_LINE]
            if len(known) >= FEWEST_KNOWN or (known and len(text) == len(known[0])):
                first = words.clip(lines[at].strip(), 50)
                told.append(f"… {end - at} line{'s' * (end - at > 1)} as in [{place}], from: {first} …")
                at = end
            else:
                told.append(lines[at])
                at += 1
        return "\n".join(told)

    def _run(self, lines: Sequence[str], at: int) -> tuple[int, str]:
        """Where a run of lines known from one place that begins there ends, and that place; short lines go with it."""
        place = self.known.get(lines[at].strip(), "")
        end = at
        while place and end < len(lines):
            key = lines[end].strip()
            if len(key) >= LONG_LINE and self.known.get(key) != place:
                break
            end += 1
        return end, place

    # -- tools

    def _call(self, label: str, part: Part) -> str:
        self.calls[part.call_id] = (label, part)
        self.open[part.call_id] = label
        return f"[{label}] CALL {part.name}\n" + "\n".join(self._arguments(part))

    def _arguments(self, part: Part) -> Iterator[str]:
        if not part.input:
            yield self._short(part.text, VALUE)
            return
        todos = part.input.get("todos") or part.input.get("plan") if action(part.name) == "plan" else None
        if isinstance(todos, list):
            yield "; ".join(_step(todo) for todo in todos if isinstance(todo, Mapping)) or "an empty plan"
            return
        command = command_of(part.input) if action(part.name) == "run" else ""
        if command:
            yield f"$ {self._short(command, NEW)}"
        for key, value in part.input.items():
            if command and value == part.input.get("command", part.input.get("cmd")):
                continue
            yield from self._argument(key, value)

    def _argument(self, key: str, value: Any) -> Iterator[str]:
        if key == "edits" and isinstance(value, list):
            for number, edit in enumerate(value, 1):
                yield f"edit {number} of {len(value)}:"
                for inner, text in edit.items() if isinstance(edit, Mapping) else ():
                    yield from self._argument(inner, text)
            return
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if key in _OLD:
            yield f"OLD:\n{self._short(text, OLD, fold=False)}"
        elif key in _NEW:
            yield f"NEW:\n{self._short(text, NEW, fold=False)}"
        elif text:
            yield f"{key}: {self._short(text, VALUE)}"

    def _result(self, label: str, part: Part) -> str:
        call, made = self.calls.get(part.call_id, ("", part))
        self.open.pop(part.call_id, None)
        does = action(made.name)
        limit = LOOK if does in ("read", "search") and not part.failed else RESULT
        shown = REMINDER.sub("", GUTTERS.sub("", part.text) if does == "read" else part.text)
        if does in ("write", "edit", "plan") and not (part.failed or part.said):
            shown = words.clip(shown.strip().split("\n")[0], ECHO)
        text = self._short(shown, limit) if shown.strip() else "(empty)"
        heard = "".join(f'\nThe user\'s own words in it: "{said}"' for said in part.said)
        missing = "of a call further on" if part.call_id in self.later else "of a call that isn't told"
        of = f"of [{call}] {made.name}" if call else missing
        return f"[{label}] RESULT {of}: {_outcome(part)}\n{text}{heard}"

    # -- the end

    def _ending(self, story: Sequence[Entry]) -> str:
        last = next((entry for entry in reversed(story) if entry.parts), None)
        if not last:
            return "Nothing happened."
        if self.open and last.parts[-1].kind == "call":
            return f"The last event is the call [{list(self.open.values())[-1]}]; its result isn't part of this."
        part, label = last.parts[-1], _label(self.source, last)
        if part.kind == "result":
            return f"The last event is the result [{label}], which is told above: {_outcome(part)}."
        return f"The last event is [{label}], where {SPEAKERS[part.speaker]} speaks."


_LOOKS_TOLD = re.compile(r"^(?=\[\d[\d./]*\] [A-Z]|</?transcript-|--- \d)", re.MULTILINE)
_INDENTED = "  "
"""What stands before a line that would otherwise pass for the beginning of another entry."""
_SHOWS = "a document that the user shows, not the user speaking"
_OLD = ("old_string", "old_str", "oldText", "old_text")
_NEW = ("new_string", "new_str", "newText", "new_text", "content", "file_text", "patch")


def index(source: str, story: Sequence[Entry]) -> str:
    """The entries by their labels: who speaks in each, and how it begins."""
    return "\n".join(f"[{_label(source, entry)}] {_opening(entry.parts[0])}" for entry in story if entry.parts)


def _opening(part: Part) -> str:
    what = {"call": f"CALL {part.name}", "result": f"RESULT {part.name}"}.get(part.kind, SPEAKERS[part.speaker])
    return f"{what.strip()}: {words.clip(' '.join(part.text.split()), BEGINNING)}"


def _label(source: str, entry: Entry, part: int = 0) -> str:
    return ref(source, entry, part).partition(":")[2]


def _step(todo: Mapping[str, Any]) -> str:
    """A step of a plan: its status, and what it says."""
    text = next((str(todo[key]) for key in ("content", "step", "title", "text") if todo.get(key)), "")
    return f"({todo.get('status') or 'pending'}) {text}"


def _outcome(part: Part) -> str:
    ended = {"refused": "rejected by the user", "approved": "approved by the user"}.get(part.verdict, "")
    code = f", exit code {part.exit_code}" if part.exit_code is not None else ""
    return (ended or ("error" if part.failed or part.exit_code else "ok")) + code


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found.astimezone(UTC) if found.tzinfo else found).replace(tzinfo=None)


def _span(gap: timedelta) -> str:
    minutes = int(gap.total_seconds()) // 60
    days, hours = minutes // 1440, minutes // 60 % 24
    return f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min"
