"""Which results answer which calls."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from compactor.transcript import Entry, Note, Part

PAIRED = ("call", "result")


class Calls:
    """The calls of a conversation, as they come up while it is read."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._open: OrderedDict[str, str] = OrderedDict()
        self._named: dict[str, OrderedDict[str, int]] = {}
        """The open calls, and those of each name with their places among all."""
        self._places = count()
        self._also: dict[str, str] = {}
        self._made = 0
        self._met = set[str]()

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._known

    def add(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> str:
        """Remember a call; returns its id, made up where the record has none."""
        if not call_id:
            self._made += 1
            call_id = f"call {self._made}"
        self._known[call_id] = (name, arguments)
        if self._open.get(call_id) != name:
            self._unname(call_id)
            self._open[call_id] = name
            self._named.setdefault(name, OrderedDict())[call_id] = next(self._places)
        return call_id

    def _unname(self, call_id: str) -> None:
        if (name := self._open.get(call_id)) is not None:
            del self._named[name][call_id]

    def also(self, name: str, call_id: str) -> None:
        """Remember a further name of a call."""
        self._also[name] = call_id

    def by(self, name: str) -> str:
        """The id of the call that has this further name; empty where none has."""
        return self._also.get(name, "")

    def nearest(self, names: tuple[str, ...]) -> str:
        """The id of the latest open call, of one of those names where there are any; empty where there is none."""
        if not names:
            return next(reversed(self._open), "")
        latest = [next(reversed(held.items())) for name in names if (held := self._named.get(name))]
        return max(latest, key=lambda one: one[1], default=("", 0))[0]

    def answer(self, call_id: str, name: str = "") -> str:
        """The id of the call that a result answers: the one it names, else the oldest open call (of that name)."""
        if not call_id:
            call_id = next(iter(self._named.get(name, ()) if name else self._open), "")
        self._unname(call_id)
        self._open.pop(call_id, None)
        return call_id

    def first(self, what: str) -> bool:
        """Whether this is the first of its kind that the reader meets in the conversation."""
        new = what not in self._met
        self._met.add(what)
        return new

    def met(self, what: str) -> bool:
        """Whether the reader met one of its kind."""
        return what in self._met

    def answered(self, call_id: str) -> bool:
        """Whether a call is known and has its result."""
        return call_id in self._known and call_id not in self._open

    def of(self, call_id: str) -> tuple[str, Mapping[str, Any]]:
        """The name and the arguments of a call; empty where it isn't known."""
        return self._known.get(call_id, ("", {}))


def orphans(entries: Iterable[Entry]) -> Iterator[tuple[Entry, str]]:
    """Each result that answers no call, wherever it stands, by entry and call id."""
    entries = tuple(entries)
    lone = strays(entries)
    for entry in entries:
        yield from ((entry, part.call_id) for part in entry.parts if part.kind == "result" and part.call_id in lone)


def strays(entries: Iterable[Entry]) -> frozenset[str]:
    """The ids that results name and no call has, wherever it stands."""
    named: set[str] = set()
    called: set[str] = set()
    for entry in entries:
        for part in entry.parts:
            if part.kind in ("call", "result"):
                (called if part.kind == "call" else named).add(part.call_id)
    return frozenset(named - called)


def notes(entries: Iterable[Entry]) -> Iterator[Note]:
    """What is wrong with the pairs: results without a call, and calls that something else followed than a result."""
    made: list[tuple[int, Entry, Part]] = []
    called, answered, last = set[str](), set[str](), -1
    for at, entry in enumerate(entries):
        for part in entry.parts:
            if part.kind not in PAIRED:
                last = at
                continue
            made.append((at, entry, part))
            (called if part.kind == "call" else answered).add(part.call_id)
    for at, entry, part in made if called != answered else ():
        if part.kind == "result" and part.call_id not in called:
            yield Note(entry.line, f"result {part.call_id or '(without id)'} answers no call")
        elif part.kind == "call" and part.call_id not in answered and at < last:
            yield Note(entry.line, f"call {part.call_id} ({part.name}) was never answered")
