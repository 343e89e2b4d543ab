"""A summary file checked again, against transcripts at hand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from compactor import files, formats, summary, verify
from compactor.evidence import Evidence
from compactor.transcript import Source


@dataclass(frozen=True)
class Recheck:
    """What came of checking a summary file again."""

    verdicts: tuple[verify.Verdict, ...]
    lines: tuple[str, ...]
    """For people."""

    @property
    def ok(self) -> bool:
        return all(verdict.ok for verdict in self.verdicts)

    def as_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, "verdicts": [verdict.as_dict() for verdict in self.verdicts]}


def recheck(path: str, transcripts: Sequence[str]) -> Recheck:
    """Check the summary file at `path` against the given transcripts, matched by hash; raises InputError."""
    raw, _ = files.read_input(path)
    summaries = summary.load(raw, path)
    read = [(name, files.read_input(name)[0]) for name in transcripts]
    verdicts, lines = [], []
    for one in summaries:
        cited = {str(source.get("sha256")) for source in one.provenance.get("sources", [])}
        sources = [formats.read(data, name, None) for name, data in _matching(read, cited)]
        verdict = _check(one, sources)
        verdicts.append(verdict)
        lines += [str(finding) for finding in verdict.findings]
        where = f" #{one.select}" if len(summaries) > 1 else ""
        state = "stands" if verdict.ok else f"{len(verdict.errors)} errors"
        carried = f", {verdict.carried} not checked: their sources weren't given" if verdict.carried else ""
        lines.append(
            f"{path}{where}: {state}; {verdict.items} items against {len(sources)} of {len(cited)} sources{carried}"
        )
    used = {source.name for one in summaries for source in _used(one, read)}
    lines += [f"{name}: neither a source nor the output of this summary" for name, _ in read if name not in used]
    return Recheck(tuple(verdicts), tuple(lines))


def _matching(read: Iterable[tuple[str, bytes]], cited: set[str]) -> list[tuple[str, bytes]]:
    return [(name, data) for name, data in read if Source(name, data, "", ()).sha256 in cited]


def _used(one: summary.Summary, read: Sequence[tuple[str, bytes]]) -> list[Source]:
    cited = {str(source.get("sha256")) for source in one.provenance.get("sources", [])}
    sources = [Source(name, data, "", ()) for name, data in read]
    return [s for s in sources if s.sha256 in cited or summary.belongs(one, s.raw)]


def _check(one: summary.Summary, sources: Sequence[Source]) -> verify.Verdict:
    evidence = Evidence(sources)
    away = frozenset(
        item.id
        for _, item in one.snapshot.items()
        if not all(map(evidence.knows, (*verify.refs_of(item), *item.change)))
    )
    return verify.verify(verify.Case(one.snapshot, evidence, None, away))
