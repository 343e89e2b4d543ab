"""What the ledger has a model keep: the words that bind, what was changed, what is open, what will be used again."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice

from compactor import words
from compactor.ledger import Ledger, Said
from compactor.transcript import Ref

Size = Callable[[str], int]

BINDING = ("rule", "permission", "approval", "choice", "criterion", "correction")
CLIPPED = 90
"""Characters of each line where the list is too long."""
LAST = 8
"""How many of the user's last statements are listed."""
LEAST_WEIGHT = 0.9
"""What an identifier weighs that the agent wrote once, long ago; what only a tool showed weighs less."""
SAID_LIMIT = 300
"""Characters of a statement in the list; it stands whole in the transcript."""
NAMES = 60
"""How many names and values are listed at most."""


def hints(ledger: Ledger, labels: Collection[str], room: int, size: Size) -> str:
    """The list for a model, of what stands in the entries with these labels; empty where there is nothing.

    At most about `room` tokens: the words that bind come first, clipped where there are too many, the last of them left
    out where even that is too much; they stand whole in the transcript. Names and values follow as far as they fit.
    """
    told = [line for heading, lines in _sections(ledger, labels) if lines for line in (heading, *lines)]
    if size("\n".join(told)) > room:
        told = _clipped(told, room, size)
    names = list(islice(_names(ledger, labels), NAMES))
    left = room - size("\n".join([*told, _AGAIN])) - 1
    if names and left > 0:
        told.append(_AGAIN)
        kept = list[str]()
        for name in names:
            left -= size(name) + 1
            if left < 0:
                break
            kept.append(name)
        told.append("; ".join(kept))
    return "\n".join(told)


_AGAIN = (
    "Names and values that are likely to be used again, most likely first, with an entry that shows each. "
    "Work in as many as still matter, each in a sentence that says what it is or does, in the words beside it there:"
)


def _sections(ledger: Ledger, labels: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    here = _Here(labels)
    said = [f"- {here.of(s.ref)} {_said(s)}" for s in ledger.said if s.kind in BINDING and here.has(s.ref)]
    yield "What the user said that may bind (leave out what they took back later, and what binds nothing):", said
    last = [s for s in ledger.said[-LAST:] if s.kind not in BINDING and here.has(s.ref)]
    yield "What else the user said last:", [f"- {here.of(s.ref)} {_said(s)}" for s in last if s.first]
    heard = {s.ref: f": {_said(s)}" for s in ledger.said}
    refused = [f"- {here.of(r.ref)} {r.text}{heard.get(r.ref, '')}" for r in ledger.refusals if here.has(r.ref)]
    yield "What the user refused to let the agent do:", refused
    touched = [file for file in ledger.files if file.state != "read" and any(map(here.has, file.refs))]
    changed = [f"- {file.state} {file.path} {''.join(map(here.of, file.refs))}" for file in touched]
    yield "Files that were made, changed or deleted (first touched, last changed):", changed
    saved = max((_line(c.result) for c in ledger.commands if c.ok and "git commit" in c.text), default=0)
    loose = [f"- {file.path}" for file in touched if saved and file.change_ref and _line(file.change_ref) > saved]
    yield "Of these, changed after the last `git commit`:", loose
    broken = [c for c in ledger.commands if c.is_test and not c.ok and not c.fixed_by and here.has(c.result)]
    failing = [f"- {here.of(c.result)} `{words.clip(c.text, 100)}`: {words.clip(c.told, 100)}" for c in broken[-3:]]
    yield "Tests that failed and weren't seen to pass afterwards:", failing
    jobs = [f"- {here.of(job.ref)} {job.text}" for job in ledger.jobs if here.has(job.ref)]
    yield "Jobs that were started and not seen finished:", jobs


def _said(said: Said) -> str:
    """What was said, with the question it answers where it doesn't say that itself."""
    asked = f' (to: "{words.clip(said.answering.text, SAID_LIMIT // 2)}")' if said.answering else ""
    return f'"{words.clip(said.text, SAID_LIMIT)}"{asked}'


def _line(ref: str) -> int:
    return Ref.parse(ref).line


def _clipped(told: Sequence[str], room: int, size: Size) -> list[str]:
    kept = list[str]()
    for line in told:
        short = words.clip(line, CLIPPED)
        room -= size(short) + 1
        if room < 0:
            break
        kept.append(short)
    return kept


def _names(ledger: Ledger, labels: Collection[str]) -> Iterator[str]:
    here = _Here(labels)
    worth = {name: weight for name, weight in ledger.weight.items() if weight >= LEAST_WEIGHT}
    for name in sorted(worth, key=lambda name: (-worth[name], name)):
        ref = next((ref for ref in reversed(ledger.seen.get(name, ())) if here.has(ref)), "")
        if ref and not _SAYS_NOTHING.fullmatch(name):
            yield f"{name} {here.of(ref)}"


_SAYS_NOTHING = re.compile(r"[\d.,]{1,4}|/dev/.*|//.*|\w{1,3}|in_progress")
"""A small number, a device, a linter's mark, a few letters, a state of a plan."""


class _Here:
    """Which refs lie in some entries, and how they are written."""

    def __init__(self, labels: Collection[str]) -> None:
        self.labels = labels

    def has(self, ref: str) -> bool:
        return str(Ref.parse(ref).entry).partition(":")[2] in self.labels

    def of(self, ref: str) -> str:
        return f"[{ref.partition(':')[2]}]"
