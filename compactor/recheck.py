"""A summary checked again, against transcripts at hand."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compactor import files, foreign, formats, split, summary, verify
from compactor.errors import InputError, UsageError
from compactor.evidence import Evidence
from compactor.ledger import Ledger, extract
from compactor.pipeline import block_of
from compactor.redact import redacted
from compactor.render import parse, shown
from compactor.transcript import Source, Transcript


@dataclass(frozen=True)
class Row:
    """A finding, and what it is about."""

    finding: verify.Finding
    text: str = ""
    """What the item says."""
    where: str = ""
    """Which summary it is about, where there are several."""


@dataclass(frozen=True)
class Recheck:
    """What came of checking a summary again."""

    verdicts: tuple[verify.Verdict, ...]
    rows: tuple[Row, ...]
    """All that was found, in order."""
    lines: tuple[str, ...]
    """What it comes to, for people."""
    strangers: tuple[str, ...] = ()
    """Given transcripts that are neither a source nor the output."""

    @property
    def ok(self) -> bool:
        return not self.strangers and all(verdict.ok for verdict in self.verdicts)

    def as_dict(self) -> dict[str, Any]:
        verdicts = [verdict.as_dict() for verdict in self.verdicts]
        return {"ok": self.ok, "verdicts": verdicts, "strangers": list(self.strangers)}


def recheck(path: str, transcripts: Sequence[str], workspace: str = "") -> Recheck:
    """Check the summary at `path`: one of ours against the given transcripts, matched by hash, else prose.

    `workspace` is a folder where the files that the summary tells of are looked up. Raises InputError and UsageError.
    """
    raw, _ = files.read_input(path)
    if session := foreign.session(raw, path):
        return _foreign(foreign.native(session), workspace)
    if not summary.means_to_be_one(raw):
        return _foreign(foreign.of_text(raw, path, transcripts), workspace)
    if workspace and not Path(workspace).is_dir():
        message = f"--workspace {workspace}: no such folder"
        raise InputError(message)
    summaries = summary.load(raw, path)
    read = [(name, files.read_input(name)[0]) for name in transcripts]
    verdicts, rows, lines, used = [], list[Row](), [], set[str]()
    for one in summaries:
        sources = _sources(one, read)
        others = [(name, data) for name, data in read if name not in {source.name for source in sources}]
        outputs = [found for name, data in others for found in _outputs(one, name, data)]
        used |= {source.name for source in sources} | {name for name, _ in outputs}
        verdict = _verdict(one, sources, [found for _, found in outputs], workspace)
        verdicts.append(verdict)
        where = f" #{one.select}" if len(summaries) > 1 else ""
        texts = {item.id: item.text for _, item in one.snapshot.items()}
        rows += [Row(found, texts.get(found.item, ""), where.strip()) for found in _everything(verdict)]
        cited = len(one.provenance.get("sources", []))
        lines.append(f"{path}{where}: {_state(verdict)} against {len(sources)} of {cited} sources{_carried(verdict)}")
    strangers = tuple(name for name, _ in read if name not in used)
    lines += [
        f"{files.shown(name)}: neither a source nor the output of this summary, or changed since; leave it out"
        for name in strangers
    ]
    return Recheck(tuple(verdicts), tuple(rows), tuple(lines), strangers)


def _foreign(summaries: Iterable[tuple[str, verify.Prose]], workspace: str) -> Recheck:
    """A summary in prose, checked as far as prose can be."""
    if workspace:
        message = "--workspace: prose doesn't say what became of which file; it goes with a summary of compact's"
        raise UsageError(message)
    verdicts, rows, lines = [], list[Row](), []
    for where, prose in summaries:
        verdict = verify.Verdict(tuple(verify.prose_findings(prose)))
        verdicts.append(verdict)
        rows += [Row(finding, "", where) for finding in verdict.findings]
        warnings = len(verdict.findings) - len(verdict.errors)
        state = f"{len(verdict.errors)} errors" if verdict.errors else "nothing is wrong that can be told of prose"
        lines.append(f"{where}: {state}" + (f", {warnings} warnings" if warnings else ""))
    return Recheck(tuple(verdicts), tuple(rows), tuple(lines))


def _everything(verdict: verify.Verdict) -> tuple[verify.Finding, ...]:
    return (*verdict.errors, *(f for f in verdict.findings if f.severity != "error"), *verdict.missing)


def _state(verdict: verify.Verdict) -> str:
    state = "stands" if verdict.ok else f"{len(verdict.errors)} errors"
    return f"{state}; {verdict.items} items"


def _carried(verdict: verify.Verdict) -> str:
    return f", {verdict.carried} not checked: their sources weren't given" if verdict.carried else ""


def _sources(one: summary.Summary, read: Sequence[tuple[str, bytes]]) -> list[Source]:
    """The sources of a summary that are at hand, in its order: later ones may take back what earlier ones say."""
    order = [str(source.get("sha256")) for source in one.provenance.get("sources", [])]
    cited = {str(source.get("sha256")): source.get("format") for source in one.provenance.get("sources", [])}
    found = {sha: formats.read(data, name, cited[sha]) for name, data, sha in _matching(read, cited)}
    sources = [found[sha] for sha in order if sha in found]
    return [redacted(source) for source in sources] if _masks(one) else sources


def _verdict(
    one: summary.Summary, sources: Sequence[Source], outputs: Sequence[Transcript | None], workspace: str
) -> verify.Verdict:
    """What the checks say of a summary, its output and the files it tells of."""
    known = _known(one, sources)
    verdict = _check(one, sources, known)
    more = [finding for found in outputs for finding in _output_findings(one, found, sources)]
    there = _on_disk(one, sources, workspace) if workspace else ()
    missing = verify.coverage(one.snapshot, known) if known else ()
    findings = (*verdict.findings, *_unnamed(one), *more, *there)
    return replace(verdict, findings=findings, missing=tuple(missing))


def _on_disk(one: summary.Summary, sources: Sequence[Source], workspace: str) -> Iterator[verify.Finding]:
    root = Path(workspace).absolute()
    folders = [str(root), *dict.fromkeys(transcript.cwd for source in sources for transcript in source.transcripts)]
    return verify.files_are_there(one.snapshot, folders, lambda below: (root / below).exists())


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


def _known(one: summary.Summary, sources: Sequence[Source]) -> Ledger | None:
    """What code knows of the newest source up to the cut; None where that isn't at hand."""
    named, cut = one.provenance.get("sources", []), one.provenance.get("cut")
    newest = next((source for source in sources if named and source.sha256 == named[-1].get("sha256")), None)
    if not newest or not 0 < one.select <= len(newest.transcripts):
        return None
    at = cut.get("at_line", 0) if isinstance(cut, Mapping) else 0
    transcript = newest.transcripts[one.select - 1]
    fixed = {transcript.entries[index].line for index in transcript.live[: transcript.fixed]}
    head = [entry for entry in transcript.story() if (not at or entry.line < at) and entry.line not in fixed]
    return extract(newest.short, head)


def _check(one: summary.Summary, sources: Sequence[Source], known: Ledger | None) -> verify.Verdict:
    evidence = Evidence(sources)
    away = frozenset(
        item.id
        for _, item in one.snapshot.items()
        if not all(map(evidence.knows, (*verify.refs_of(item), *item.change)))
    )
    return verify.verify(verify.Case(one.snapshot, evidence, None, away, known))
