"""A summary file checked again, against transcripts at hand."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compactor import files, formats, split, summary, verify
from compactor.errors import InputError
from compactor.evidence import Evidence
from compactor.ledger import extract
from compactor.pipeline import block_of
from compactor.redact import redacted
from compactor.render import parse, shown
from compactor.transcript import Source, Transcript


@dataclass(frozen=True)
class Recheck:
    """What came of checking a summary file again."""

    verdicts: tuple[verify.Verdict, ...]
    lines: tuple[str, ...]
    """For people."""
    strangers: tuple[str, ...] = ()
    """Given transcripts that are neither a source nor the output."""

    @property
    def ok(self) -> bool:
        return not self.strangers and all(verdict.ok for verdict in self.verdicts)

    def as_dict(self) -> dict[str, Any]:
        verdicts = [verdict.as_dict() for verdict in self.verdicts]
        return {"ok": self.ok, "verdicts": verdicts, "strangers": list(self.strangers)}


def recheck(path: str, transcripts: Sequence[str]) -> Recheck:
    """Check the summary file at `path` against the given transcripts, matched by hash; raises InputError."""
    raw, _ = files.read_input(path)
    summaries = summary.load(raw, path)
    read = [(name, files.read_input(name)[0]) for name in transcripts]
    verdicts, lines, used = [], [], set()
    for one in summaries:
        cited = {str(source.get("sha256")): source.get("format") for source in one.provenance.get("sources", [])}
        sources = [formats.read(data, name, cited[sha]) for name, data, sha in _matching(read, cited)]
        sources = [redacted(source) for source in sources] if _masks(one) else sources
        outputs = [found for name, data in read for found in _outputs(one, name, data)]
        used |= {source.name for source in sources} | {name for name, _ in outputs}
        more = [finding for _, found in outputs for finding in _output_findings(one, found, sources)]
        verdict = _check(one, sources)
        missing = tuple(_missed(one, sources))
        verdict = replace(verdict, findings=(*verdict.findings, *_unnamed(one), *more), missing=missing)
        verdicts.append(verdict)
        lines += [str(finding) for finding in (*verdict.findings, *verdict.missing)]
        where = f" #{one.select}" if len(summaries) > 1 else ""
        state = "stands" if verdict.ok else f"{len(verdict.errors)} errors"
        carried = f", {verdict.carried} not checked: their sources weren't given" if verdict.carried else ""
        lines.append(
            f"{path}{where}: {state}; {verdict.items} items against {len(sources)} of {len(cited)} sources{carried}"
        )
    strangers = tuple(name for name, _ in read if name not in used)
    lines += [
        f"{files.shown(name)}: neither a source nor the output of this summary, or changed since; leave it out"
        for name in strangers
    ]
    return Recheck(tuple(verdicts), tuple(lines), strangers)


def _masks(one: summary.Summary) -> bool:
    """Whether secrets were masked when the summary was written: then its words are those of the masked sources."""
    settings = one.provenance.get("settings")
    return not isinstance(settings, Mapping) or settings.get("redact") is not False


def _matching(read: Iterable[tuple[str, bytes]], cited: Mapping[str, Any]) -> Iterator[tuple[str, bytes, str]]:
    for name, data in read:
        sha = hashlib.sha256(data).hexdigest()
        if sha in cited:
            yield name, data, sha


def _outputs(one: summary.Summary, name: str, data: bytes) -> Iterator[tuple[str, Transcript | None]]:
    """The conversation of a given transcript that the summary was written for, where the transcript is its output.

    It is None where the output's bytes can't be read any more, or hold no such conversation.
    """
    whole = summary.belongs(one, data)
    format = one.provenance.get("format")
    try:
        source = formats.read(data, name, format if isinstance(format, str) else None)
    except InputError:
        source = Source(name, data, "", ())
    found = [transcript for transcript in source.transcripts if summary.has_block_of(transcript, one)]
    if found:
        yield name, found[0]
    elif whole:
        within = 0 < one.select <= len(source.transcripts)
        yield name, source.transcripts[one.select - 1] if within else None


def _output_findings(
    one: summary.Summary, found: Transcript | None, sources: Sequence[Source]
) -> Iterator[verify.Finding]:
    """What is wrong with the output: its block is the one that the snapshot renders, its pairs are whole."""
    parsed = parse(block_of(found)) if found else None
    if not found or not parsed or not found.ours:
        yield verify.Finding("block", "error", "the output holds no block where it belongs", "run `compact run` again")
        return
    if parsed.unread or parsed.snapshot not in (shown(one.snapshot), shown(one.snapshot, short=True)):
        message = "the output's block isn't the one that this summary renders"
        yield verify.Finding("block", "error", message, "one of them was edited: run `compact run` again")
    live = [found.entries[index] for index in found.live]
    lone = {live[position].parts[part - 1].call_id for position, part in split.pair(live).orphans}
    stories = [entry for source in sources for transcript in source.transcripts for entry in transcript.story()]
    called = {part.call_id for entry in stories for part in entry.parts if part.kind == "call"}
    if lost := sorted(lone & called):
        message = f"results of {', '.join(lost)} lost their calls in the output"
        yield verify.Finding("pairs", "error", message, "run `compact run` again")


def _unnamed(one: summary.Summary) -> Iterator[verify.Finding]:
    """Refs into sources that the summary doesn't name can be looked up nowhere."""
    sources, unnamed = one.provenance.get("sources", []), one.provenance.get("unnamed_sources", [])
    known = {str(name) for name in unnamed} if isinstance(unnamed, list) else set()
    strange = {name for name in summary.cited(one.snapshot) if not summary.is_named(name, sources)} - known
    for name, item in one.snapshot.items() if strange else ():
        refs = tuple(ref for ref in (*verify.refs_of(item), *item.change) if ref.partition(":")[0] in strange)
        if refs:
            message = "the source isn't among those that the summary names"
            yield verify.Finding("refs", "error", message, "cite a source of it, or drop it", name, item.id, refs)


def _missed(one: summary.Summary, sources: Sequence[Source]) -> Iterator[verify.Finding]:
    """What the summary leaves out of the newest source, where that is at hand: of all that stood before its cut."""
    named, cut = one.provenance.get("sources", []), one.provenance.get("cut")
    newest = next((source for source in sources if named and source.sha256 == named[-1].get("sha256")), None)
    if not newest or not 0 < one.select <= len(newest.transcripts):
        return
    at = cut.get("at_line", 0) if isinstance(cut, Mapping) else 0
    transcript = newest.transcripts[one.select - 1]
    fixed = {transcript.entries[index].line for index in transcript.live[: transcript.fixed]}
    head = [entry for entry in transcript.story() if (not at or entry.line < at) and entry.line not in fixed]
    yield from verify.coverage(one.snapshot, extract(newest.short, head))


def _check(one: summary.Summary, sources: Sequence[Source]) -> verify.Verdict:
    evidence = Evidence(sources)
    away = frozenset(
        item.id
        for _, item in one.snapshot.items()
        if not all(map(evidence.knows, (*verify.refs_of(item), *item.change)))
    )
    return verify.verify(verify.Case(one.snapshot, evidence, None, away))
