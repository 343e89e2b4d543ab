"""The summary file: what it holds, and which one belongs to a transcript."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from compactor import __version__
from compactor.errors import InputError
from compactor.pipeline import Compacted, Options, Outcome
from compactor.snapshot import SCHEMA_VERSION, Snapshot
from compactor.transcript import Source


@dataclass(frozen=True)
class Summary:
    """One conversation's part of a summary file."""

    snapshot: Snapshot
    provenance: Mapping[str, Any]
    verdict: Mapping[str, Any]
    select: int = 1


def build(compacted: Compacted, options: Options, run: Mapping[str, Any], task: str = "",
          before: Mapping[int, Summary] | None = None) -> dict[str, Any]:  # fmt: skip
    """The summary file of a compaction; `before` holds the summaries that were folded in, by position."""
    parts = [
        {"select": o.plan.position + 1, **_one(compacted, o, options, run, task, (before or {}).get(o.plan.position))}
        for o in compacted.outcomes
        if o.snapshot and o.changed
    ]
    if len(compacted.source.transcripts) == 1 and parts:
        del parts[0]["select"]
        return {"schema_version": SCHEMA_VERSION, **parts[0]}
    return {"schema_version": SCHEMA_VERSION, "conversations": parts}


def _one(compacted: Compacted, outcome: Outcome, options: Options, run: Mapping[str, Any], task: str,
         before: Summary | None) -> dict[str, Any]:  # fmt: skip
    planned, source = outcome.plan, compacted.source
    assert outcome.snapshot
    assert planned.cut
    older = list(before.provenance.get("sources", [])) if before else []
    inherited = str(before.provenance.get("task_id", "")) if before else ""
    first = older[0]["sha256"] if older else source.sha256
    provenance = {
        "tool": f"compact {__version__}",
        "task_id": task or inherited or planned.transcript.session or first,
        "sources": [*older, _source(source)],
        "format": source.format,
        "output": {"sha256": _sha256(compacted.data), "lines": _lines(compacted.data)},
        "previous": before.provenance.get("output", {}).get("sha256", "") if before else "",
        "cut": {"at_line": _line_of(outcome), "tail": _plain(planned.cut.tail)},
        "model": None,
        "prompt": None,
        "settings": _settings(options),
        "counter": planned.counter.name,
        "tokens": _tokens(outcome),
        "usage": None,
        "cost": 0.0,
        "edits": [{"line": note.line, "text": note.text} for note in outcome.edits],
        "run": dict(run),
    }  # fmt: skip
    return {
        "snapshot": outcome.snapshot.model_dump(mode="json"),
        "provenance": provenance,
        "verdict": outcome.verdict.as_dict(),
    }


def _source(source: Source) -> dict[str, Any]:
    return {"short": source.short, "sha256": source.sha256, "name": source.name, "lines": source.lines}


def _tokens(outcome: Outcome) -> dict[str, int]:
    planned = outcome.plan
    return {
        "before": planned.sizes.total,
        "after": outcome.tokens_after,
        "block": planned.counter.text(outcome.block),
        "limit": planned.limit,
        "recorded_usage": planned.transcript.usage,
    }


def _lines(data: bytes) -> int:
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))


def _line_of(outcome: Outcome) -> int:
    """The line of the first kept entry; 0 when nothing is kept."""
    transcript, cut = outcome.plan.transcript, outcome.plan.cut
    assert cut
    return transcript.entries[transcript.live[cut.at]].line if cut.at < len(transcript.live) else 0


def _plain(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _settings(options: Options) -> dict[str, Any]:
    settings = {name: value for name, value in _plain(options).items() if name not in ("record", "recall", "session")}
    return settings | {"keep": _plain(options.keep), "pins": list(options.pins)}


def dump(summary: Mapping[str, Any]) -> bytes:
    return orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n"


def load(raw: bytes, name: str) -> list[Summary]:
    """The conversations of a summary file; raises InputError where it's none."""
    try:
        data = orjson.loads(raw)
        parts = data.get("conversations", [data])
        return [_loaded(part) for part in parts]
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValidationError) as error:
        reason = str(error).split("\n")[0]
        message = f"{name}: no summary file of compact ({reason}); give the .summary.json that `compact run` wrote"
        raise InputError(message) from error


def _loaded(part: Mapping[str, Any]) -> Summary:
    provenance, verdict = part["provenance"], part["verdict"]
    if not all(isinstance(value, Mapping) for value in (provenance, verdict, *provenance.get("sources", ()))):
        message = "provenance, its sources and verdict must be objects"
        raise TypeError(message)
    return Summary(Snapshot.model_validate(part["snapshot"]), provenance, verdict, part.get("select", 1))


def belongs(summary: Summary, raw: bytes) -> bool:
    """Whether a transcript begins with the output that the summary was written for."""
    output = summary.provenance.get("output")
    if not isinstance(output, Mapping) or not isinstance(output.get("lines"), int):
        return False
    prefix = _first_lines(raw, output["lines"])
    # an output whose last line wasn't ended had its end written by whoever appended to it
    return output.get("sha256") in (_sha256(prefix), _sha256(prefix.removesuffix(b"\n")))


def _first_lines(raw: bytes, lines: int) -> bytes:
    at = 0
    for _ in range(lines):
        end = raw.find(b"\n", at)
        if end < 0:
            return raw
        at = end + 1
    return raw[:at]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def find(source: Source, candidates: Iterable[tuple[str, bytes]]) -> Sequence[Summary]:
    """The first candidate file whose output is what the source begins with; empty where there is none."""
    for name, raw in candidates:
        try:
            summaries = load(raw, name)
        except InputError:
            continue
        if summaries and belongs(summaries[0], source.raw):
            return summaries
    return ()
