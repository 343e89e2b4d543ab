"""The evidence that code can find for what a model said.

A model cites the entry that it had in mind, not always every entry that an item's names stand in; it writes a quote's
apostrophe its own way; it names a call where the result is the proof. What the transcript bears is made good here, by
adding refs and copying the original's letters, never by changing what is said. What it doesn't bear stays for the
checks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from compactor.evidence import Evidence, normal
from compactor.identifiers import exact
from compactor.ledger import File, Ledger
from compactor.snapshot import (
    FIELDS,
    Artifact,
    Authority,
    Completed,
    Constraint,
    Decision,
    Fact,
    InProgress,
    Item,
    OpenLoop,
    Update,
)
from compactor.transcript import Entry, Part, Ref, ref
from compactor.verify import CHECKED_FIELDS, failed, refs_of, stands

FEW_WORDS = 4
"""A permission of fewer words is looked for only where it is cited."""
MOST_CITED = 3
"""Refs that an item keeps, unless its names take more."""
MOST_ADDED = 4
"""Refs that code adds to an item at most."""


class Ground:
    """The entries that an update is about, and where things stand in them."""

    def __init__(self, source: str, story: Sequence[Entry], ledger: Ledger, evidence: Evidence) -> None:
        self.source, self.story, self.ledger, self.evidence = source, story, ledger, evidence

    def update(self, update: Update) -> Update:
        """The update with its items grounded."""
        fields = {name: tuple(map(self.item, getattr(update.add, name))) for name in FIELDS}
        return update.model_copy(update={"add": update.add.model_copy(update=fields)})

    def item(self, item: Item) -> Item:
        """The item with the evidence that it lacks, as far as there is any."""
        if isinstance(item, Constraint | Authority):
            item = self._quoted(item)
        elif isinstance(item, Completed):
            item = self._proven(item)
        elif isinstance(item, Artifact):
            item = self._touched(item)
        elif isinstance(item, OpenLoop | InProgress) and not (item.owner or item.next):
            item = item.model_copy(update={"owner": "agent"})
        elif isinstance(item, Decision) and item.approved_by:
            retold = any(part.speaker == "summary" for part in self.evidence.parts(item.approved_by.ref))
            item = item.model_copy(update={"basis": "reported" if retold else "stated"})
        if isinstance(item, Authority | Decision):
            item = item.model_copy(update={"scope": item.scope.strip(_MARKS) or "not stated"})
        item = self._named(item)
        return self._fewer(self._observed(item) if isinstance(item, Fact) else item)

    def _fewer(self, item: Item) -> Item:
        """The item with no more refs than bear it: those that its names stand in, then the first of the others."""
        if len(item.evidence) <= MOST_CITED:
            return item
        cited = self.evidence.text(refs_of(item))
        missing = _names(item)
        if not all(stands(name, cited) for name in missing):
            return item  # whoever mends it needs all that it cites
        approved = item.approved_by.ref if isinstance(item, Decision) and item.approved_by else ""
        calls = item.evidence if isinstance(item, Artifact) else ()
        changed = [ref for ref in calls if any(part.kind == "call" for part in self.evidence.parts(ref))]
        bearing = (getattr(item, "proof", ""), approved, *changed)
        kept = [ref for ref in item.evidence if ref in bearing or ref == item.evidence[0]]
        while missing := {name for name in missing if not stands(name, self.evidence.text(kept))}:
            counts = {ref: sum(stands(name, self.evidence.text((ref,))) for name in missing) for ref in item.evidence}
            best = max(item.evidence, key=lambda ref: counts[ref])
            if not counts[best]:
                break
            kept.append(best)
        rest = [ref for ref in item.evidence if ref not in kept][: max(MOST_CITED - len(kept), 0)]
        return item.model_copy(update={"evidence": tuple(ref for ref in item.evidence if ref in (*kept, *rest))})

    # -- quotes

    def _quoted(self, item: Constraint | Authority) -> Item:
        """The quote in the letters of the one who said it, citing where, if anybody at hand did."""
        speaker = item.said_by if isinstance(item, Constraint) else item.granted_by
        speaker = "user" if speaker == "summary" and isinstance(item, Constraint) else speaker
        pattern = _loosely(item.quote or item.text)
        if not pattern or self._is_quoted(item, speaker):
            return item
        cited = {str(Ref.parse(ref).entry) for ref in item.evidence}
        short = isinstance(item, Authority) and len(item.quote.split()) < FEW_WORDS
        spoken = sorted(self._spoken(speaker), key=lambda one: str(Ref.parse(one[0]).entry) not in cited)
        for here, said in spoken:
            if short and str(Ref.parse(here).entry) not in cited:
                break  # a bare yes stands in many places, and permits something else in each
            if match := pattern.search(said):
                evidence = tuple(dict.fromkeys((here, *item.evidence)))
                said_by = {} if isinstance(item, Authority) else {"said_by": speaker, "basis": "stated"}
                return item.model_copy(update={"quote": match[0], "text": match[0], "evidence": evidence, **said_by})
        return self._from_summary(item, pattern) if isinstance(item, Constraint) else item

    def _is_quoted(self, item: Constraint | Authority, speaker: str) -> bool:
        """Whether the quote stands where it is cited, letter by letter."""
        spoken = [part.text for ref in item.evidence for part in self.evidence.parts(ref) if part.speaker == "system"]
        spoken = spoken if speaker == "system" else self.evidence.said(item.evidence)
        return bool(item.quote.strip()) and any(normal(item.quote) in normal(said) for said in spoken)

    def _from_summary(self, item: Constraint, pattern: re.Pattern[str]) -> Item:
        """A rule in the words of an earlier summary, where nothing earlier is at hand: marked as what it is."""
        for here, part in self._parts:
            if part.speaker == "summary" and (match := pattern.search(part.text)):
                told = {"quote": "", "text": match[0], "said_by": "summary", "basis": "reported", "evidence": (here,)}
                return item.model_copy(update=told)
        return item

    def _spoken(self, speaker: str) -> Iterator[tuple[str, str]]:
        for here, part in self._parts:
            if speaker == "system" and part.speaker == "system":
                yield here, part.text
            elif speaker in ("user", "human"):
                yield from ((here, said) for said in part.said)

    # -- proofs

    def _proven(self, item: Completed) -> Item:
        """The proof as the ref of a result, where the item names its call or only cites it.

        Nothing is found in place of a result that is named and failed, or beside one that is cited and failed.
        """
        refs = (item.proof,) if item.proof else item.evidence
        results = [
            proof for here in refs for proof in (here, *self._results.get(here, ())[-1:]) if self._is_result(proof)
        ]
        if results and not any(failed(part) for proof in results for part in self.evidence.parts(proof)):
            return item.model_copy(update={"proof": results[0], "evidence": _with(item.evidence, results[:1])})
        return item

    def _is_result(self, here: str) -> bool:
        return any(part.kind == "result" for part in self.evidence.parts(here))

    @cached_property
    def _results(self) -> Mapping[str, tuple[str, ...]]:
        """The results of each call, by the call's ref."""
        latest: dict[str, str] = {}
        found: dict[str, tuple[str, ...]] = {}
        for here, part in self._parts:
            if part.kind == "call":
                latest[part.call_id] = here
            elif part.kind == "result" and part.call_id in latest:
                call = latest[part.call_id]
                found[call] = (*found.get(call, ()), here)
        return found

    @cached_property
    def _caller(self) -> Mapping[str, str]:
        """The call of each result, by the result's ref."""
        return {result: call for call, results in self._results.items() for result in results}

    # -- files

    def _touched(self, item: Artifact) -> Item:
        """The artifact with the calls that touched its file, as the ledger knows them."""
        file = self._file(item.path)
        if not file:  # changed by a command: a result that is cited speaks for its call
            calls = [self._caller[here] for here in item.evidence if here in self._caller]
            return item.model_copy(update={"evidence": _with(item.evidence, calls)})
        path = item.path if item.path in self.evidence.text(file.refs) else file.path
        return item.model_copy(update={"path": path, "evidence": _with(file.refs, item.evidence)})

    def _file(self, path: str) -> File | None:
        """The file of the ledger with that path, or the only one whose path ends with it."""
        alike = [file for file in self.ledger.files if file.path == path]
        alike = alike or [file for file in self.ledger.files if file.path.endswith(f"/{path.removeprefix('./')}")]
        return alike[0] if len(alike) == 1 else None

    # -- names and values

    def _named(self, item: Item) -> Item:
        """The item with refs to entries that hold the names and numbers which those it cites don't."""
        cited = self.evidence.text(refs_of(item))
        missing = {name for name in _names(item) if not stands(name, cited)}
        added: list[str] = []
        while missing and len(added) < MOST_ADDED:
            here = self._showing(missing, item.evidence)
            if not here:
                break
            shown = self.evidence.text((here,))
            missing = {name for name in missing if not stands(name, shown)}
            added.append(here)
        return item.model_copy(update={"evidence": _with(item.evidence, added)}) if added else item

    def _showing(self, names: Iterable[str], near: Sequence[str]) -> str:
        """The ref that shows most of the names; of equals the one nearest to what the item cites."""
        lines = [Ref.parse(ref).line for ref in near if Ref.parse(ref).source == self.source]
        counts: dict[str, int] = {}
        for name in names:
            for here in self._places(name):
                counts[here] = counts.get(here, 0) + 1

        def rank(here: str) -> tuple[int, int, int]:
            line = Ref.parse(here).line
            return -counts[here], min((abs(line - other) for other in lines), default=0), line

        return min(counts, key=rank, default="")

    def _places(self, name: str) -> Sequence[str]:
        if name not in self._found:
            self._found[name] = [here for here, part in self._parts if name in part.text and stands(name, part.text)]
        return self._found[name]

    @cached_property
    def _found(self) -> dict[str, Sequence[str]]:
        return {}

    def _observed(self, item: Fact) -> Item:
        """A fact that was only told by the agent, with an entry that shows all it names: a tool's, or the user's."""
        if item.basis == "inferred" or (item.basis != "reported" and self._bears(item)):
            return item
        names = [name for name in exact(f"{item.text} {item.value}") if name in self.ledger.seen]
        places = dict.fromkeys(here for name in sorted(names) for here in self.ledger.seen[name])
        whole = [here for here in places if all(stands(name, self.evidence.text((here,))) for name in names)]
        if not whole:
            return item
        return item.model_copy(update={"basis": "observed", "evidence": _with(item.evidence, whole[-1:])})

    def _bears(self, item: Fact) -> bool:
        parts = [part for here in item.evidence for part in self.evidence.parts(here)]
        return any(part.speaker in ("tool", "human", "system") or part.kind == "call" or part.said for part in parts)

    @cached_property
    def _parts(self) -> Sequence[tuple[str, Part]]:
        """Every part of the story with its ref."""
        return [
            (ref(self.source, entry, number if len(entry.parts) > 1 else 0), part)
            for entry in self.story
            for number, part in enumerate(entry.parts, 1)
            if part.speaker != "harness"
        ]


_MARKS = " \"'“”‘’«»「」『』"


def _names(item: Item) -> set[str]:
    """The identifiers in every field of the item that the checks read."""
    said = " ".join(str(getattr(item, field, "") or "") for field in CHECKED_FIELDS)
    return exact(said.replace("…", " "))


def _with(refs: Sequence[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*refs, *more)))


def _loosely(quote: str) -> re.Pattern[str] | None:
    """The quote's words in order, whatever stands between them but words; None where it has none."""
    found = re.findall(r"\w+", quote)
    if not found or len(found) > 400:
        return None
    return re.compile(r"(?<!\w)" + r"\W+".join(map(re.escape, found)) + r"(?!\w)[.!?…]*", re.IGNORECASE)
