"""What a summary could say beyond what binds, and what it would be worth.

A candidate is an item with the identifiers that it brings. Lines of code and output are offered one by one and share
an item with others of the same file or result, so that what they have in common is said once.
"""

import heapq
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from compactor import words
from compactor.identifiers import identifiers, plain_words
from compactor.ledger import BROKEN, LOOKS, Command, File, Ledger, Line, Turn
from compactor.render import shown_text
from compactor.snapshot import Artifact, Completed, Decision, Fact, Item, OpenLoop, Rejection, Risk

UNBOUND = 0.4
"""What a candidate keeps of its worth when no plain words tie its identifiers to what they mean."""
LINE_OVERHEAD = 9
"""Tokens of an item's line beside its text: id, refs, line break."""
LINES_PER_FACT, LINES_PER_FILE, REFS = 4, 6, 3
LINES_BESIDE, REFS_BESIDE = 24, 10
"""Lines of one item, and refs that it cites at most; where somebody else tells what binds, more."""
DEFINES = 1.5
"""How much more a line is worth there that defines something: a signature tells most in the fewest words."""
REFUSED, FINISHED, CHANGED, TOLD = 12.0, 9.0, 9.0, 3.0
"""What a refusal, a finished step, a changed file and a statement are worth beside their identifiers."""
WRITTEN = "written"
"""What is said of a changed file whose purpose the agent didn't tell."""
POOL = 3_000
"""How many lines of output compete."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item that may stand in the summary."""

    field: str
    item: Item
    found: frozenset[str]
    """The identifiers it brings."""
    factor: float
    position: int
    base: float = 0.0
    """What it is worth beside its identifiers: a finished step or a refusal counts though it names nothing."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A line that may stand in an item together with others of its group."""

    group: str
    """The key of its group."""
    line: Line
    text: str
    found: frozenset[str]
    factor: float
    bound: bool
    """Whether it has plain words that tie its identifiers to what they mean."""


@dataclass
class Group:
    """Lines of one file or one result."""

    base: Candidate | None
    """The file's own item, which the lines complete."""
    about: str
    position: int
    path: str = ""
    lines: list[Offer] = field(default_factory=list)

    most: int = LINES_PER_FACT
    refs: int = REFS

    @property
    def full(self) -> bool:
        return len(self.lines) >= (LINES_PER_FILE if self.base else self.most)

    def takes(self, offer: Offer) -> bool:
        """Whether another line fits, and what shows it can be cited too."""
        return not self.full and len({line.line.ref for line in self.lines} | {offer.line.ref}) <= self.refs


WORD_FIELDS = frozenset({"text", "quote", "value", "path", "why", "scope", "excludes", "role", "holds_while", "next"})


def words_of(item: Item) -> str:
    """All the words of an item, refs apart."""
    return " ".join(v for k, v in item.__dict__.items() if isinstance(v, str) and k in WORD_FIELDS)


def _candidate(name: str, item: Item, factor: float, position: int, base: float = 0.0) -> Candidate:
    return Candidate(name, item, frozenset(identifiers(words_of(item))), factor, position, base)


def telling(ledger: Ledger) -> Iterator[Candidate]:
    """Outcomes of turns and commands, finished steps, decisions, rejections, risks."""
    for turn in ledger.turns[:-1] if ledger.ahead else ledger.turns:
        yield from _outcome(turn)
    for command in ledger.commands:
        yield from _milestone(command)
    for act in ledger.acts:
        deed = Completed(text=act.text, proof=act.result, evidence=(act.ref, act.result), basis="observed")
        yield _candidate("completed", deed, 2.0, act.position, FINISHED)
    for refusal in ledger.refusals:
        refused = Rejection(text=words.clip(refusal.text, 160), why="the user refused this tool use",
                            evidence=(refusal.call, refusal.ref), basis="observed")  # fmt: skip
        yield _candidate("rejected", refused, 3.0, 0, REFUSED)
    for todo in ledger.plan:
        if todo.status == "completed" and todo.proof:
            step = Completed(
                text=todo.text, proof=todo.proof, evidence=_unique(todo.origin, todo.proof), basis="observed"
            )
            yield _candidate("completed", step, 1.5, 0, FINISHED)
    for name, lines, factor in _statements(ledger):
        for line in lines:
            if not words.looks_ahead(line.text) and not line.text.endswith(":"):
                yield _candidate(name, _statement(name, line), factor, line.position, TOLD)


def single(ledger: Ledger) -> Iterator[Candidate]:
    """Files, commands that worked, what the user mentioned, findings, sentences of an earlier prose summary."""
    for file in ledger.files:
        yield artifact(file)
    for command in ledger.commands:
        if command.ok and not command.is_test and not LOOKS.match(command.text):
            yield _worked(command)
    for said in ledger.said:
        if said.kind == "word" and _PROSE.match(said.text) and len(plain_words(said.text)) >= 4:
            item = Fact(text=said.text, value=said.text, evidence=(said.ref,), basis="stated")
            yield _candidate("facts", item, 3.0, 0)
    told = {line.text for _, lines, _ in _statements(ledger) for line in lines}
    for line in dict.fromkeys(ledger.sentences):
        if line.text not in told and not line.text.endswith(":") and (found := frozenset(identifiers(line.text))):
            told.add(line.text)
            yield from _finding(line, found, ledger.seen)
    for line in ledger.prose:
        if line.position > 0:
            continue  # the user's own words before it are at hand
        loop = OpenLoop(
            text=f"verify: {words.clip(line.text, 240)}", owner="agent", evidence=(line.ref,), basis="reported"
        )
        yield _candidate("open_loops", loop, 1.0, line.position)


def _unique(*refs: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(refs))


_PROSE = re.compile(r"[^\W\d_](?!.*(?:[{}]|:=|==|\)\s*$))|\(?[A-Z]", re.DOTALL)
"""What the user says, as opposed to what they paste."""


def _outcome(turn: Turn) -> Iterator[Candidate]:
    asked = [said for said in turn.asked if said.kind not in ("approval", "word")]
    asked.sort(key=lambda said: said.kind not in ("request", "question", "choice"))
    if not (asked and turn.answer) or words.looks_ahead(turn.answer.text):
        return
    if not turn.proof or turn.failed or turn.interrupted:
        wanted = [said for said in asked if said.kind == "request"]
        if wanted and not turn.interrupted:
            text = f'verify: "{words.clip(wanted[0].text, 140)}": {words.clip(turn.answer.text, 160)}'
            loop = OpenLoop(text=text, owner="agent", evidence=(wanted[0].ref, turn.answer.ref), basis="reported")
            yield _candidate("open_loops", loop, 1.5, turn.position)
        return
    text = f'"{words.clip(asked[0].text, 140)}": {words.clip(turn.answer.text, 200)}'
    refs = tuple(dict.fromkeys((asked[0].ref, turn.answer.ref, turn.proof)))
    item = Completed(text=text, proof=turn.proof, evidence=refs, basis="observed")
    yield _candidate("completed", item, 2.0, turn.position, FINISHED)


_COMMIT = re.compile(r"^\[\S+ [0-9a-f]{7,}\]|https?://\S+/(?:pull|issues|merge_requests)/\d+")


def _milestone(command: Command) -> Iterator[Candidate]:
    """A commit, a pull request, a passing or mended test; a command that failed for good."""
    text, refs = one_line(command.text, 160), (command.ref, command.result)
    if command.ok and (_COMMIT.search(command.told) or command.is_test):
        item: Item = Completed(text=f"`{text}`: {command.told}", proof=command.result, evidence=refs, basis="observed")
        yield _candidate("completed", item, 1.6, command.position)
    elif not command.ok and command.fixed_by:
        told = f"`{text}` failed with: {command.told}; it works since"
        item = Fact(text=told, evidence=(*refs, command.fixed_by), basis="observed")
        yield _candidate("facts", item, 1.0, command.position)
    elif not command.ok and not LOOKS.match(command.text) and "tool_use_error" not in command.told:
        item = Rejection(text=f"`{text}` failed: {command.told}", evidence=refs, basis="observed")
        yield _candidate("rejected", item, 1.0, command.position)


def _worked(command: Command) -> Candidate:
    purpose = f" ({words.clip(command.purpose, 80)})" if command.purpose else ""
    told = f": {command.told}" if command.told else ""
    how = "ran" if BROKEN.search(command.told) else "worked"
    text = f"`{one_line(command.text, 200)}`{purpose} {how}{told}"
    return _candidate("facts", Fact(text=text, evidence=(command.result,), basis="observed"), 1.0, command.position)


def one_line(text: str, limit: int) -> str:
    return words.clip(text.strip().split("\n")[0], limit)


def _statements(ledger: Ledger) -> list[tuple[str, Sequence[Line], float]]:
    taken: set[str] = set()
    groups: list[tuple[str, Sequence[Line], float]] = []
    for name, lines, factor in (
        ("rejected", ledger.rejected, 1.2),
        ("decisions", ledger.decided, 1.3),
        ("risks", ledger.risks[-6:], 0.8),
    ):
        fresh = [line for line in lines if line.text not in taken]
        taken |= {line.text for line in fresh}
        groups.append((name, fresh, factor))
    return groups


def _statement(name: str, line: Line) -> Item:
    text, refs = words.clip(line.text, 240), (line.ref,)
    if name == "decisions":
        state: Literal["proposed", "accepted"] = "proposed" if words.proposes(line.text) else "accepted"
        return Decision(text=text, evidence=refs, basis="reported", state=state)
    if name == "rejected":
        return Rejection(text=text, evidence=refs, basis="reported")
    return Risk(text=text, evidence=refs, basis="reported")


def _finding(line: Line, found: frozenset[str], seen: Mapping[str, tuple[str, ...]]) -> Iterator[Candidate]:
    """A fact where tools or the user showed all that the sentence names, else a loop to verify it."""
    if len(plain_words(line.text, found)) < 3:
        return
    text = words.clip(line.text, 240)
    named = {identifier for identifier in found if identifier in text}
    proofs, unproven = _proofs(named, seen)
    factor = (1.3 if words.finds(line.text) else 1.0) * (0.5 if words.looks_ahead(line.text) else 1.0)
    if not unproven:
        item: Item = Fact(text=text, evidence=(line.ref, *proofs), basis="observed")
        yield Candidate("facts", item, frozenset(named), factor, line.position)
    else:
        item = OpenLoop(text=f"verify: {text}", owner="agent", evidence=(line.ref,), basis="reported")
        yield Candidate("open_loops", item, frozenset(named), 0.8 * factor, line.position)


def _proofs(named: set[str], seen: Mapping[str, tuple[str, ...]]) -> tuple[list[str], set[str]]:
    """Up to two refs that together show the identifiers, and those that they don't show."""
    proofs: list[str] = []
    missing = set(named)
    while missing and len(proofs) < 2:
        counts: dict[str, int] = {}
        for identifier in missing:
            for here in seen.get(identifier, ()):
                counts[here] = counts.get(here, 0) + 1
        if not counts:
            break
        best = max(sorted(counts), key=lambda here: counts[here])
        proofs.append(best)
        missing = {i for i in missing if best not in seen.get(i, ())}
    return proofs, missing


_LEAD_IN = re.compile(
    r"^(?:(?:now|next|then|first|good|great|perfect|ok(?:ay)?|alright|also|finally|and|so)[,.!:]?\s+)*"
    r"(?:(?:let me|i'll|i will|i need to|let's|i should|we need to)\s+)?(?:also\s+)?",
    re.IGNORECASE,
)


def _purpose(intro: str) -> str:
    """What the agent said it was doing, without the lead-in; empty when that says nothing."""
    text = _LEAD_IN.sub("", intro).rstrip(":.! ")
    return words.clip(text, 140) if len(plain_words(text)) >= 3 else ""


def artifact(file: File) -> Candidate:
    """A file with its state and what the agent said it was doing there."""
    purpose = _purpose(file.intro.text) if file.intro else ""
    refs = dict.fromkeys((*file.refs, *((file.intro.ref,) if file.intro and purpose else ())))
    item = Artifact(
        text=purpose or ("looked at" if file.state == "read" else WRITTEN),
        path=file.path,
        state=file.state,
        evidence=tuple(refs),
        basis="observed",
    )
    if file.state == "read":
        return _candidate("artifacts", item, 1.0, 0)
    return _candidate("artifacts", item, 2.0, 0, CHANGED)


# -- lines that share an item


def offers(ledger: Ledger) -> tuple[list[Offer], dict[str, Group]]:
    """The lines worth looking at, and the groups they belong to."""
    groups: dict[str, Group] = {}
    found: list[Offer] = []
    for file in ledger.files:
        if file.lines:
            groups[f"file:{file.path}"] = Group(artifact(file), "", file.lines[-1].position, file.path)
            found += [_offer(f"file:{file.path}", line, 1.2) for line in file.lines]
    for line in _best(ledger.outputs, ledger.weight):
        key = f"out:{line.ref}:{line.about}"
        groups.setdefault(key, Group(None, short_about(line.about), line.position))
        found.append(_offer(key, line, 0.9))
    return [offer for offer in found if offer.found], groups


def _offer(group: str, line: Line, factor: float) -> Offer:
    text = words.clip(line.text, 180)
    named = frozenset(identifiers(text))
    return Offer(group, line, text, named, factor, len(plain_words(text, named)) >= 2)


def _best(lines: Iterable[Line], weight: Mapping[str, float]) -> Iterator[Line]:
    rated = []
    for number, line in enumerate(lines):
        worth = sum(weight.get(i, 0) for i in set(identifiers(line.text[:180])))
        if worth > 0.2:
            rated.append((worth / (len(line.text[:180]) / 4 + LINE_OVERHEAD), -number, line))
    return (line for _, _, line in heapq.nlargest(POOL, rated, key=lambda r: r[:2]))


def beside(ledger: Ledger, known: Container[str]) -> tuple[list[Candidate], list[Offer], dict[str, Group]]:
    """What stands beside an account that somebody else gave, of which it knows the files with those paths.

    Of these only lines are offered. All lines of one file share a fact, whatever showed them: its name is said once.
    Loops to verify are left to that account.
    """
    lines, groups = offers(ledger)
    together: dict[str, Group] = {}
    moved = []
    for offer in lines:
        group = groups[offer.group]
        if group.base and group.path not in known:
            together[offer.group] = group
            moved.append(offer)
            continue
        key = f"about:{group.path or offer.line.about}"
        about = group.about or short_about(group.path)
        together.setdefault(key, Group(None, about, group.position, most=LINES_BESIDE, refs=REFS_BESIDE))
        moved.append(replace(offer, group=key, factor=offer.factor * (DEFINES if _DEFINITION.match(offer.text) else 1)))
    pool = [c for c in single(ledger) if c.field != "open_loops" and getattr(c.item, "path", "") not in known]
    return pool, moved, together


_DEFINITION = re.compile(
    r"\W*(?:\d+[:-])?(?:(?:export|public|private|protected|static|async|abstract|final)\s+)*"
    r"(?:func|function|def|class|type|interface|struct|enum|const|fn|impl|trait|CREATE TABLE)\b"
)


def short_about(about: str) -> str:
    if "/" in about and " " not in about:
        return about.rstrip("/").rsplit("/", 1)[-1]
    return words.clip(about, 44).replace("`", "'")


def joined(group: Group) -> Candidate:
    """The one item that a group's chosen lines make."""
    lines = sorted(group.lines, key=lambda offer: (offer.line.position, offer.line.ref))
    refs = tuple(dict.fromkeys(offer.line.ref for offer in lines))
    texts = [offer.text for offer in lines]
    if group.base and isinstance(group.base.item, Artifact):
        old = group.base.item
        purpose = "" if old.text == WRITTEN else f"{old.text}; "
        text = f"{purpose}now has " + "; ".join(f"`{text}`" for text in texts)
        evidence = tuple(dict.fromkeys((*old.evidence, *refs)))
        item: Item = old.model_copy(update={"text": text, "evidence": evidence})
        return Candidate("artifacts", item, group.base.found, 1.0, group.position)
    value = "\n".join(texts)
    text = shown_text(group.about, value) if group.about else value
    fact = Fact(text=text, value=value, evidence=refs, basis="observed")
    return Candidate("facts", fact, frozenset(), 1.0, group.position)
