"""Which records of a Claude Code session are the live conversation.

The client writes a tree: each record names its parent. The branch of the last record is live; records that share a
message or a tool call with it belong to it although the tree forks there; a compaction starts it anew.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from compactor.transcript import Note


@dataclass(slots=True)
class Node:
    """What places a record in the tree."""

    line: int
    message: bool = False
    """Whether it carries a message: all others are bookkeeping, transparent for linking."""
    uuid: str = ""
    parent: str = ""
    logical: str = ""
    sidechain: bool = False
    boundary: bool = False
    summary: bool = False
    queued: bool = False
    """Whether it is a prompt queued while the agent worked: it may hang off the chain without continuing it."""
    message_id: str = ""
    tools: tuple[str, ...] = ()
    """The calls it makes or answers."""
    source: str = ""
    """The uuid of the assistant record whose call it answers."""
    preserved: tuple[str, ...] = ()
    """Of a boundary: the uuids of the messages that stay live, in order."""
    segment: tuple[str, str] = ("", "")
    """Of a boundary: the first and the last of them, where it names no others."""


@dataclass(frozen=True, slots=True)
class Course:
    """Where the conversation runs through the records."""

    live: tuple[int, ...]
    past: tuple[int, ...]
    side: frozenset[int]
    summary: int
    """The index of the earlier summary that `live` begins with; -1 if there is none."""
    notes: tuple[Note, ...]


def trace(nodes: Sequence[Node]) -> Course:
    """Choose the live branch, and find what came before the last compaction."""
    return _Tree(nodes).course()


def _shared(node: Node) -> Iterator[tuple[str, str]]:
    """The keys that records of one message or one call have in common."""
    if node.message_id:
        yield "message", node.message_id
    yield from (("tool", tool) for tool in node.tools)


class _Tree:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.all_side = all(node.sidechain for node in nodes if node.message)
        self.lost: set[int] = set()
        self.by_uuid: dict[str, int] = {}
        self.written_first: dict[str, int] = {}
        """Where each uuid stands first: a record that a compaction re-emitted names the summary as its parent."""
        self.torn: list[int] = []
        self.bridged: list[int] = []
        self.passed: dict[int, int] = {}
        """How far back what a climb has seen reaches: looked up, so that bridging stays linear."""
        self._index()
        self.main = [self._is_main(index) for index in range(len(nodes))]
        self.before = self._previous()
        self.above = self._messages_above()
        self.parents = {node.parent for node in nodes if node.parent in self.by_uuid}

    def course(self) -> Course:
        chain, root = self._chain()
        start, summary, boundary = self._start(chain, root)
        floor = max(summary, boundary)
        preserved = self._preserved(boundary)
        placed = {summary, *preserved}
        live = {index for index in chain[start:] if self.main[index]}
        self._gather(live, lambda index: index > floor)
        ordered = (*((summary,) if summary >= 0 else ()), *preserved, *sorted(live - placed))
        past = self._past(chain[:start], root, set(ordered), floor)
        side = self._side(set(ordered), min(b for b in (boundary, summary) if b >= 0) if floor >= 0 else -1)
        return Course(ordered, past, frozenset(side), summary, tuple(self._notes()))

    # The tree

    def _index(self) -> None:
        """Give each uuid one record: a message before bookkeeping; the first of equal ones, unless a compaction
        re-emitted it."""
        boundaries = 0
        seen_at: dict[str, int] = {}
        for index, node in enumerate(self.nodes):
            boundaries += node.boundary
            if not node.uuid:
                continue
            self.written_first.setdefault(node.uuid, index)
            earlier = self.by_uuid.get(node.uuid)
            if earlier is None or (node.message and not self.nodes[earlier].message):
                self.by_uuid[node.uuid], seen_at[node.uuid] = index, boundaries
            elif node.message:
                again = boundaries > seen_at[node.uuid]
                self.lost.add(earlier if again else index)
                if again:
                    self.by_uuid[node.uuid], seen_at[node.uuid] = index, boundaries

    def _is_main(self, index: int) -> bool:
        node = self.nodes[index]
        return node.message and index not in self.lost and (self.all_side or not node.sidechain)

    def _previous(self) -> list[int]:
        """For each record the main-line message before it in the file, or -1."""
        found, last = [], -1
        for index in range(len(self.nodes)):
            found.append(last)
            last = index if self.main[index] and self.nodes[index].uuid else last
        return found

    def _messages_above(self) -> list[int]:
        """For each record the nearest message at or above it in the tree, or -1."""
        unknown, none = -2, -1
        above = [index if node.message else unknown for index, node in enumerate(self.nodes)]
        for index in range(len(above)):
            path, at = [], index
            while at >= 0 and above[at] == unknown:
                above[at] = none  # where a circle closes
                path.append(at)
                at = self.by_uuid.get(self.nodes[at].parent, -1) if self.nodes[at].parent else -1
            for step in path:
                above[step] = above[at] if at >= 0 else none
        return above

    # The live branch

    def _chain(self) -> tuple[list[int], int]:
        """The main line from its root to the last record, and the boundary it starts from (or -1).

        Where no record names a parent that is there, the order of the file is the chain.
        """
        if not self.parents:
            return [i for i, node in enumerate(self.nodes) if self.main[i] or node.boundary], -1
        leaf = self._leaf()
        if leaf < 0:
            return [], max((i for i, node in enumerate(self.nodes) if node.boundary), default=-1)
        return self._climb(leaf, set())

    def _leaf(self) -> int:
        """The last message, in file order, that nothing on the main line goes on from."""
        ends = (self.above[i] for i, node in enumerate(self.nodes) if node.uuid and self._ends(i))
        last = max((end for end in ends if end >= 0 and self.main[end]), default=-1)
        return last if last >= 0 else max((i for i, main in enumerate(self.main) if main), default=-1)

    def _ends(self, index: int) -> bool:
        return index not in self.lost and self.nodes[index].uuid not in self.parents

    def _climb(self, at: int, seen: set[int]) -> tuple[list[int], int]:
        """From a record up to its root, root first; and the boundary met there, or -1."""
        path: list[int] = []
        boundary = -1
        while at >= 0 and at not in seen:
            seen.add(at)
            path.append(at)
            node = self.nodes[at]
            if node.boundary:
                boundary = at
                break
            at = self._parent(at, seen)
        path.reverse()
        return path, boundary

    def _parent(self, index: int, seen: set[int]) -> int:
        """Where to climb from a record; a missing or circular parent is bridged by file order."""
        node = self.nodes[index]
        if not node.parent:
            return -1
        parent = self.by_uuid.get(node.parent, -1)
        if parent >= 0 and parent not in seen:
            return parent
        self.bridged.append(index)
        return self._unseen(self.before[index], seen)

    def _unseen(self, at: int, seen: set[int]) -> int:
        """The first message from there on towards the beginning of the file that isn't seen, or -1."""
        passed = []
        while at >= 0 and at in seen:
            passed.append(at)
            at = self.passed.get(at, self.before[at])
        self.passed.update(dict.fromkeys(passed, at))
        return at

    def _start(self, chain: list[int], root: int) -> tuple[int, int, int]:
        """Where in the chain the live part starts, its summary and its boundary (or -1)."""
        nodes = self.nodes
        at = next((k for k in range(len(chain) - 1, -1, -1) if nodes[chain[k]].summary or nodes[chain[k]].boundary), -1)
        if at < 0:
            return 0, -1, root
        found = chain[at]
        if nodes[found].boundary:
            return at + 1, -1, found
        boundary = chain[at - 1] if at and nodes[chain[at - 1]].boundary else -1
        return at, found, boundary

    def _preserved(self, boundary: int) -> list[int]:
        """The messages before a boundary that the client goes on sending, behind the summary."""
        node = self.nodes[boundary] if boundary >= 0 else Node(0)
        uuids = node.preserved or (self._segment(boundary) if all(node.segment) else ())
        found = (self.by_uuid.get(uuid, -1) for uuid in dict.fromkeys(uuids))
        return [index for index in found if index >= 0 and self.main[index] and not self.nodes[index].summary]

    def _segment(self, boundary: int) -> list[str]:
        """The uuids from the first to the last of a segment, and what shares a message or a call with them."""
        head, tail = self.nodes[boundary].segment
        at, chosen = self.written_first.get(tail, -1), set[int]()
        while at >= 0 and at not in chosen and self.nodes[at].uuid != head:
            chosen.add(at)
            at = self.written_first.get(self.nodes[at].parent, -1)
        if at < 0 or at in chosen:
            self.torn.append(boundary)
            return []
        chosen.add(at)
        first = min(chosen)
        self._gather(chosen, lambda index: first < index < boundary)
        return [self.nodes[index].uuid for index in sorted(chosen)]

    def _gather(self, chosen: set[int], allowed: Callable[[int], bool], taken: Iterable[int] = ()) -> None:
        """Add what shares a message or a call with chosen records, and prompts queued under them, to a fixed point."""
        nodes = self.nodes
        links: dict[tuple[str, str], list[int]] = {}
        barred = set(taken)
        for index in range(len(nodes)):
            if self.main[index] and index not in chosen and index not in barred and allowed(index):
                for key in self._wants(index):
                    links.setdefault(key, []).append(index)
        waiting = list(chosen)
        while waiting:
            for key in self._offers(nodes[waiting.pop()]):
                for index in links.pop(key, ()):
                    if index not in chosen:
                        chosen.add(index)
                        waiting.append(index)

    def _wants(self, index: int) -> Iterator[tuple[str, str]]:
        """The keys by which a record lets itself be found."""
        node = self.nodes[index]
        yield from _shared(node)
        if node.source:
            yield "made by", node.source
        if node.uuid:
            yield "is", node.uuid
        if node.queued and (not node.uuid or self._ends(index)):
            yield "under", self._carrier(index)

    def _carrier(self, index: int) -> str:
        """The uuid of the message that a queued prompt hangs under, or stands behind."""
        node = self.nodes[index]
        at = self.by_uuid.get(node.parent, -1) if node.parent else -1
        at = self.above[at] if at >= 0 else self.before[index]
        return self.nodes[at].uuid if at >= 0 else ""

    @staticmethod
    def _offers(node: Node) -> Iterator[tuple[str, str]]:
        """The keys by which a record finds others."""
        yield from _shared(node)
        if node.source:
            yield "is", node.source
        if node.uuid:
            yield "made by", node.uuid
            yield "under", node.uuid

    # What isn't live

    def _past(self, rest: list[int], boundary: int, live: set[int], floor: int) -> tuple[int, ...]:
        """The main line before the last compaction, earlier compactions included."""
        if floor < 0:
            return ()
        self.passed.clear()
        past = {index for index in rest if self.main[index]}
        seen = set(rest) | {boundary}
        while boundary >= 0:
            at = self.by_uuid.get(self.nodes[boundary].logical, -1) if self.nodes[boundary].logical else -1
            if not 0 <= at < boundary or at in seen:
                at = self.before[boundary]
            path, boundary = self._climb(at, seen)
            past.update(index for index in path if self.main[index])
        past -= live
        self._gather(past, lambda index: index < floor, live)
        return tuple(sorted(past - live))

    def _side(self, live: set[int], floor: int) -> Iterator[int]:
        """The bookkeeping after the last compaction that hangs on no abandoned branch and no sidechain."""
        above = self.above
        for index in range(floor + 1, len(self.nodes)):
            node = self.nodes[index]
            aside = node.sidechain and not self.all_side
            if not node.message and not node.boundary and not aside and (above[index] < 0 or above[index] in live):
                yield index

    def _notes(self) -> Iterator[Note]:
        for index in sorted(set(self.bridged)):
            yield Note(self.nodes[index].line, "its parent isn't in the file; bridged by file order")
        for index in self.torn:
            yield Note(self.nodes[index].line, "the segment that this compaction preserved isn't in the file: left out")
        if self.lost:
            yield Note(self.nodes[min(self.lost)].line, f"{len(self.lost)} duplicate records left out")
