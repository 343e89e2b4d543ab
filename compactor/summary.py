"""The summary file: what it holds, and which one belongs to a transcript."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson
from pydantic import ValidationError

from compactor import __version__, files
from compactor.errors import InputError
from compactor.pipeline import Compacted, Options, Outcome, block_of
from compactor.snapshot import SCHEMA_VERSION, Snapshot
from compactor.transcript import Ref, Source, Transcript
from compactor.verify import refs_of


@dataclass(frozen=True)
class Summary:
    """One conversation's part of a summary file."""

    snapshot: Snapshot
    provenance: Mapping[str, Any]
    verdict: Mapping[str, Any]
    select: int = 1

    @property
    def output(self) -> Mapping[str, Any]:
        """What it was written for."""
        found = self.provenance.get("output")
        return found if isinstance(found, Mapping) else {}


def build(compacted: Compacted, options: Options, run: Mapping[str, Any], task: str = "",
          before: Mapping[int, Summary] | None = None) -> dict[str, Any]:  # fmt: skip
    """The summary file of a compaction; `before` holds the earlier summaries, by position.

    Those of conversations that changed were folded in; those of the others are in it as they were.
    """
    parts: list[dict[str, Any]] = [
        {"select": o.plan.position + 1, **_one(compacted, o, options, run, task, (before or {}).get(o.plan.position))}
        for o in compacted.outcomes
        if o.snapshot and o.changed
    ]
    changed = {o.plan.position for o in compacted.outcomes if o.snapshot and o.changed}
    parts += [_as_before(one) for position, one in sorted((before or {}).items()) if position not in changed]
    if len(compacted.source.transcripts) == 1 and parts:
        del parts[0]["select"]
        return {"schema_version": SCHEMA_VERSION, **parts[0]}
    return {"schema_version": SCHEMA_VERSION, "conversations": parts}


def _as_before(one: Summary) -> dict[str, Any]:
    snapshot = one.snapshot.model_dump(mode="json")
    return {"select": one.select, "snapshot": snapshot, "provenance": one.provenance, "verdict": one.verdict}


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
        "unnamed_sources": _unnamed(outcome.snapshot, [*older, _source(source)]),
        "format": source.format,
        "output": {
            "sha256": _sha256(compacted.data), "lines": _lines(compacted.data),
            "block_sha256": _text_sha256(outcome.block),
        },
        "previous": before.output.get("sha256", "") if before else "",
        "cut": {"at_line": _line_of(outcome), "tail": _plain(planned.cut.tail)},
        "model": outcome.asked.model if outcome.asked else None,
        "prompt": outcome.asked.prompt_hash if outcome.asked else None,
        "settings": _settings(options),
        "counter": planned.counter.name,
        "tokens": _tokens(outcome),
        "usage": usage_of(outcome),
        "cost": (outcome.asked.usage if outcome.asked else outcome.wasted).cost,
        "edits": [{"line": note.line, "text": note.text} for note in outcome.edits],
        "run": dict(run),
    }  # fmt: skip
    return {
        "snapshot": outcome.snapshot.model_dump(mode="json"),
        "provenance": provenance,
        "verdict": outcome.verdict.as_dict(),
    }


def usage_of(outcome: Outcome) -> dict[str, Any] | None:
    """What asking a model took; None where none was asked."""
    if not outcome.asked:
        return None
    usage, asked = asdict(outcome.asked.usage), outcome.asked
    usage["seconds"] = round(asked.usage.seconds, 3)
    return {**usage, "windows": asked.windows, "asked_again": asked.asked_again, "added_by_code": outcome.added}


def _unnamed(snapshot: Snapshot, sources: Sequence[Mapping[str, Any]]) -> list[str]:
    """The short names of cited sources that aren't known otherwise: they come from a block without a summary file."""
    return sorted(name for name in cited(snapshot) if not is_named(name, sources))


def cited(snapshot: Snapshot) -> set[str]:
    """The short names of all sources that a snapshot cites."""
    return {Ref.parse(ref).source for _, item in snapshot.items() for ref in (*refs_of(item), *item.change)}


def is_named(short: str, sources: Iterable[Mapping[str, Any]]) -> bool:
    return any(str(source.get("sha256", "")).startswith(short) for source in sources)


def _source(source: Source) -> dict[str, Any]:
    place = {"name": source.name, "lines": source.lines, "format": source.format}
    return {"short": source.short, "sha256": source.sha256, **place}


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


def means_to_be_one(raw: bytes) -> bool:
    """Whether bytes are some JSON that may be a summary file of ours, be it a broken one, and not a text in prose."""
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw.lstrip()[:1] in (b"{", b"[")
    return True


def load(raw: bytes, name: str) -> list[Summary]:
    """The conversations of a summary file; raises InputError where it's none."""
    try:
        data = orjson.loads(raw)
        parts = _list(_object(data, "it").get("conversations", [data]), "conversations")
        return [_loaded(_object(part, "each conversation")) for part in parts]
    except (ValueError, ValidationError) as error:  # also where it's no JSON
        cure = "give the .summary.json that `compact run` wrote"
        message = f"{files.shown(name)}: no summary file of compact ({_reason(error)}); {cure}"
        raise InputError(message) from error


def _reason(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, ('snapshot', *first['loc'])))}: {first['msg'].lower()}"
    return f"no JSON: {error}" if isinstance(error, orjson.JSONDecodeError) else str(error)


def _loaded(part: Mapping[str, Any]) -> Summary:
    missing = [name for name in ("snapshot", "provenance", "verdict") if name not in part]
    if missing:
        message = f"it has no {missing[0]}"
        raise ValueError(message)
    provenance = _object(part["provenance"], "provenance")
    for source in _list(provenance.get("sources", []), "provenance.sources"):
        if not isinstance(_object(source, "each source").get("sha256"), str):
            message = "each source must have a sha256"
            raise ValueError(message)
    select = part.get("select", 1)
    if not isinstance(select, int) or select < 1:
        message = "select must be a number from 1"
        raise ValueError(message)
    snapshot = Snapshot.model_validate(part["snapshot"])
    return Summary(snapshot, provenance, _object(part["verdict"], "verdict"), select)


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        message = f"{what} must be an object"
        raise ValueError(message)
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        message = f"{what} must be a list"
        raise ValueError(message)
    return value


def belongs(summary: Summary, raw: bytes) -> bool:
    """Whether a transcript begins with the output that the summary was written for."""
    output = summary.output
    if not isinstance(output.get("lines"), int):
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


def _text_sha256(text: str) -> str:
    return _sha256(text.encode("utf-8", "surrogatepass"))


def has_block_of(transcript: Transcript, summary: Summary) -> bool:
    """Whether a conversation's block is, word for word, the one that the summary was written for."""
    return transcript.ours and summary.output.get("block_sha256") == _text_sha256(block_of(transcript))


def find(source: Source, candidates: Iterable[tuple[str, bytes]]) -> Sequence[Summary]:
    """The summaries behind the source's blocks, at most one per conversation, from the first files that have them."""
    ours = {number for number, transcript in enumerate(source.transcripts, 1) if transcript.ours}
    found: dict[int, Summary] = {}
    for name, raw in candidates:
        if len(found) == len(ours):
            break
        try:
            summaries = load(raw, name)
        except InputError:
            continue
        for number, one in _placed(source, summaries):
            if number in ours:
                found.setdefault(number, replace(one, select=number))
    return [found[number] for number in sorted(found)]


def _placed(source: Source, summaries: Sequence[Summary]) -> Iterator[tuple[int, Summary]]:
    """The conversations that the parts of a summary file belong to: by their block, else by the whole output."""
    hashes = [_text_sha256(block_of(transcript)) if transcript.ours else "" for transcript in source.transcripts]
    whole = any(belongs(one, source.raw) for one in summaries)
    for one in summaries:
        block = one.output.get("block_sha256")
        numbers = [number for number, found in enumerate(hashes, 1) if found and found == block]
        yield from ((number, one) for number in numbers or ([one.select] if whole and not block else []))
