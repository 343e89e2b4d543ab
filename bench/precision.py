"""Identifier precision: of the identifiers that a summary tells, the share that the session holds, whole.

`python -m bench.precision PATH... [--json]`: each session under PATH is compacted offline, keeping two messages, and
the items of its snapshot are looked at; a summary file among PATH is looked at itself, beside the session that it
names. This is no part of the checks: an identifier is looked for anywhere in the session, with nothing but a regular
expression. Evidence that resolves is counted beside it.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from compactor import files, formats, pipeline, summary
from compactor.errors import CompactError
from compactor.evidence import Evidence
from compactor.identifiers import identifiers
from compactor.pipeline import Options
from compactor.redact import redacted
from compactor.snapshot import Snapshot
from compactor.split import Keep
from compactor.transcript import Source
from compactor.verify import CHECKED_FIELDS, refs_of


@dataclass(frozen=True)
class Count:
    """What was found in one summary."""

    name: str
    told: int = 0
    """Identifiers, each once."""
    strange: tuple[str, ...] = ()
    """Those that stand nowhere."""
    refs: int = 0
    lost: int = 0
    """Refs that lead nowhere."""


def measured(paths: Sequence[Path]) -> Iterator[Count]:
    """One count for each conversation that was compacted, and for each summary file."""
    sessions = {path: files.read_input(str(path))[0] for path in paths if not path.name.endswith(".summary.json")}
    for path, raw in sessions.items():
        try:
            done = pipeline.compact(formats.read(raw, str(path)), Options(keep=Keep(2)))
        except CompactError:
            continue  # what can't be read or has nothing to compact tells nothing
        for outcome in done.outcomes:
            if outcome.snapshot and outcome.changed:
                yield counted(f"{path.name} #{outcome.plan.position + 1}", outcome.snapshot, [done.source])
    for path in paths:
        if path.name.endswith(".summary.json"):
            yield from of_summary(path, sessions)


def of_summary(path: Path, sessions: Mapping[Path, bytes]) -> Iterator[Count]:
    for one in summary.load(path.read_bytes(), str(path)):
        wanted = {source["sha256"] for source in one.provenance["sources"]}
        sources = [formats.read(raw, str(name)) for name, raw in sessions.items()]
        found = [redacted(source) for source in sources if source.sha256 in wanted]
        if len(found) == len(wanted):
            yield counted(path.name, one.snapshot, found)


def counted(name: str, snapshot: Snapshot, sources: Sequence[Source]) -> Count:
    evidence = Evidence(sources)
    entries = [entry for source in sources for transcript in source.transcripts for entry in transcript.entries]
    text = "\n".join(piece for entry in entries for part in entry.parts for piece in evidence.pieces(part))
    items = [item for _, item in snapshot.items() if item.status == "active"]
    told = {found for item in items for key in CHECKED_FIELDS for found in identifiers(str(getattr(item, key, "")))}
    refs = [ref for item in items for ref in refs_of(item)]
    strange = tuple(sorted(found for found in told if not _stands(found, text)))
    return Count(name, len(told), strange, len(refs), sum(not evidence.stands(ref) for ref in refs))


def _stands(name: str, text: str) -> bool:
    joins = "" if re.fullmatch("[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+", name) else "_"  # of Test_LocalDev, LocalDev is one
    edge = f"[A-Za-z0-9{joins}]"
    plain = re.fullmatch("[A-Za-z]?[a-z]+(?:/[A-Za-z]?[a-z]+)+", name)  # confirms/denies is no path
    return bool(plain) or re.search(rf"(?<!{edge}){re.escape(name)}(?!{edge})", text) is not None


def main() -> None:
    given = [Path(name) for name in sys.argv[1:] if name != "--json"]
    paths = [path for one in given for path in (sorted(one.rglob("*")) if one.is_dir() else [one]) if path.is_file()]
    counts = list(measured(paths))
    told, strange = sum(count.told for count in counts), sum(len(count.strange) for count in counts)
    refs, lost = sum(count.refs for count in counts), sum(count.lost for count in counts)
    if "--json" in sys.argv:
        print(json.dumps([asdict(count) for count in counts], indent=1))
        return
    for count in counts:
        if count.strange or count.lost:
            print(f"{count.name}: {', '.join(count.strange)}; {count.lost} refs lead nowhere")
    print(f"{len(counts)} conversations: {told:,} identifiers, precision {1 - strange / max(told, 1):.4f}; "
          f"{refs:,} refs, {1 - lost / max(refs, 1):.4f} resolve")  # fmt: skip


if __name__ == "__main__":
    main()
