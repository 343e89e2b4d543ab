"""A long text made short from the middle: what is worth most stays, and what was left out is said."""

from collections.abc import Iterable, Mapping, Sequence

from compactor.identifiers import identifiers, plain_words

OPENING, ENDING = 0.35, 0.25
"""The shares of the limit that beginning and end of a text get; what is worth most of the middle gets the rest."""
WIDEST = 480
"""Characters of a line that is left as it is."""
AROUND = 48
"""Characters left on each side of what stays in the middle of a wider line."""
NEIGHBOURS = 1
"""Lines that stay on each side of one that stays: alone it says little."""
STAYING = 6
"""How many things stay in the middle of one wide line at most."""


def shorten(text: str, limit: int, wanted: Mapping[str, float]) -> str:
    """The text in about `limit` characters; lines with `wanted` identifiers stay, most wanted first.

    `wanted` gives the worth of each identifier, or plain word in lower case, such as the ledger's weights of those not
    told yet. Beyond the limit stay at most as many characters again, of lines that are worth something.
    """
    lines = [_narrow(line, wanted) for line in text.split("\n")]
    if sum(map(len, lines)) + len(lines) <= limit:
        return "\n".join(lines)
    first = _fitting(lines, int(limit * OPENING))
    last = len(lines) - _fitting(lines[first:][::-1], int(limit * ENDING))
    kept = {*range(first), *range(last, len(lines)), *_worthy(lines, range(first, last), limit, wanted)}
    return "\n".join(_with_gaps(lines, sorted(kept)))


def _fitting(lines: Sequence[str], limit: int) -> int:
    """How many lines fit, from the first."""
    for count, line in enumerate(lines):
        limit -= len(line) + 1
        if limit < 0:
            return count
    return len(lines)


def _worthy(lines: Sequence[str], middle: range, limit: int, wanted: Mapping[str, float]) -> set[int]:
    """The lines of the middle that stay, with those beside them: each worth what it is the first to bring."""
    by_word = any(word.isalpha() and word.islower() for word in wanted)
    found = {at: {i for i in _things(lines[at], by_word) if i in wanted} for at in middle}
    order = sorted((at for at in middle if found[at]), key=lambda at: -sum(wanted[i] for i in found[at]))
    told, kept = set[str](), set[int]()
    for at in order:
        if limit > 0 and not found[at] <= told:
            beside = {*range(at - NEIGHBOURS, at + NEIGHBOURS + 1)} & {*middle} - kept
            told = told.union(*(found[other] for other in beside))
            limit -= sum(len(lines[other]) + 1 for other in beside)
            kept |= beside
    return kept


def _things(line: str, by_word: bool) -> Iterable[str]:
    return {*identifiers(line), *plain_words(line)} if by_word else identifiers(line)


def _with_gaps(lines: Sequence[str], kept: Sequence[int]) -> list[str]:
    told, at = list[str](), 0
    for place in (*kept, len(lines)):
        gap = lines[at:place]
        said = f"… {len(gap)} line{'s' * (len(gap) > 1)} …"
        told += gap if sum(map(len, gap)) + len(gap) <= len(said) else [said]
        told += lines[place : place + 1]
        at = place + 1
    return told


def _narrow(line: str, wanted: Mapping[str, float]) -> str:
    """A line of at most about `WIDEST` characters and a little around each thing that stays in its middle."""
    if len(line) <= WIDEST:
        return line
    spans = [(0, WIDEST // 2), *_staying(line, wanted), (len(line) - WIDEST // 4, len(line))]
    told, end = "", 0
    for start, stop in spans:
        gap = start - end
        told += f" … {gap:,} characters … " if gap > 0 else ""
        told += line[max(start, end) : stop]
        end = max(end, stop)
    return told


def _staying(line: str, wanted: Mapping[str, float]) -> list[tuple[int, int]]:
    found = {i for i in identifiers(line) if i in wanted}
    best = sorted(found, key=lambda i: (-wanted[i], i))[:STAYING]
    places = (line.find(identifier) for identifier in best)
    return sorted((max(at - AROUND, 0), at + len(i) + AROUND) for at, i in zip(places, best, strict=True) if at >= 0)
