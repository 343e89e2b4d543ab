"""One file compacted: from its path to its outputs."""

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from compactor import clients, files, formats, pipeline, summary
from compactor.asking import Ask, asking
from compactor.errors import InputError, OutputError, UsageError
from compactor.exchange import Request, Usage
from compactor.formats import lines as stored
from compactor.formats import sample, spans
from compactor.ledger import extract
from compactor.pipeline import Compacted, Options, Outcome, Plan
from compactor.redact import lines as redact_lines
from compactor.redact import redacted
from compactor.render import markdown
from compactor.snapshot import Snapshot
from compactor.transcript import Source, Transcript

if TYPE_CHECKING:  # what only a model needs is loaded when one is named
    from compactor.summarize import Asking, Outline

Status = Literal["compacted", "unchanged", "refused", "planned"]


@dataclass(frozen=True)
class Job:
    """What to compact, how, and where to put it."""

    path: str
    options: Options = Options()
    ask: Ask = Ask()
    out: str = ""
    summary: str = ""
    format: str = ""
    select: tuple[int, ...] = ()
    task: str = ""
    in_place: bool = False
    resumable: bool = False
    summary_only: bool = False
    dry_run: bool = False
    force: bool = False


@dataclass(frozen=True)
class Paths:
    """Where a job's results go; empty for nowhere, `-` for standard output."""

    transcript: str = ""
    summary: str = ""
    backup: str = ""
    resume: str = ""
    """The command that resumes the result in its client."""


@dataclass(frozen=True)
class Report:
    """What came of a job."""

    status: Status
    lines: tuple[str, ...]
    """For people, on standard error."""
    notes: tuple[str, ...] = ()
    """About the input and what was changed in kept entries, for people who ask."""
    stdout: bytes = b""
    json: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return 1 if self.status == "refused" else 0


def run(job: Job, tell: Callable[[str], None] = lambda _: None) -> Report:
    """Do the job; raises CompactError where it can't be done, with every input as it was.

    `tell` is told what is being waited for.
    """
    started = time.perf_counter()
    _check(job)
    if job.in_place and files.is_packed(job.path):
        message = f"{job.path}: it is compressed, and its client reads a plain file beside it first; give -o for one"
        raise UsageError(message)
    raw, stamp = files.read_input(job.path)
    source = _read(job, raw)
    _check_read_only(job, source)
    found = summary.find(source, _candidates(job))
    asked = asking(_with_tools(job.ask, raw), job.options.focus, tell)
    paths = _paths(job, source)
    options = _with_places(job, source, paths)
    if job.dry_run:
        plans = [pipeline.plan(source, position, options, _finder(found)) for position in _positions(job, source)]
        return _planned(job, source, plans, [outline(plan, asked) for plan in plans] if asked else [], started)
    if not job.force:
        _refuse_existing(job, paths, found)
    compacted = pipeline.compact(source, options, _positions(job, source), _finder(found), asked)
    if not compacted.changed:
        return _unchanged(job, compacted, paths, started)
    document = _document(job, compacted, options, found, started)
    if not files.unchanged(job.path, stamp):
        message = f"{job.path}: it changed while it was being compacted; run again when the agent is idle"
        raise OutputError(message)
    paths = _write(job, raw, compacted, document, paths, found)
    return _done(job, compacted, paths, document, started)


def _with_tools(ask: Ask, raw: bytes) -> Ask:
    """With the tools that stand beside the messages in the file: a reused prefix begins with them."""
    if not ask.reuse_prefix or not raw.lstrip().startswith(b"{"):
        return ask
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:  # rows: each may have tools of its own
        return ask
    tools = value.get("tools") if isinstance(value, dict) else None
    return replace(ask, tools=tuple(tools)) if isinstance(tools, list) else ask


def outline(plan: Plan, asked: "Asking") -> "Outline | None":
    """What asking a model about a conversation would take; None where nothing is to be done."""
    if plan.reason or not plan.cut:
        return None
    from compactor import summarize

    return summarize.outline(pipeline.task(plan, extract(plan.source.short, plan.head)), asked)


def requests(job: Job) -> list[Request]:
    """What a model would be sent, of every conversation that has something to be done."""
    from compactor.prompt import Wish
    from compactor.summarize import Asking

    raw, _ = files.read_input(job.path)
    source = _read(job, raw)
    found = summary.find(source, _candidates(job))
    wish = Wish(job.ask.instruction, job.options.focus, job.ask.thinking)
    ask = job.ask if job.ask.model else replace(job.ask, thinking=False)  # nobody is asked: it's in the wish
    named = asking(_with_tools(ask, raw), job.options.focus)
    asked = named or Asking((), wish=wish, window=job.ask.window)
    plans = [pipeline.plan(source, position, job.options, _finder(found)) for position in _positions(job, source)]
    outlines = [outline(plan, asked) for plan in plans]
    return [request for told in outlines if told for request in told.requests]


def _check(job: Job) -> None:
    if job.in_place and (job.out or job.resumable or job.path == files.STDIN):
        message = "--in-place goes with a file, and with neither -o nor --resumable"
        raise UsageError(message)
    if job.summary_only and (job.in_place or job.resumable):
        message = f"--summary-only writes no transcript; leave out {'--in-place' if job.in_place else '--resumable'}"
        raise UsageError(message)
    if job.resumable and job.out:
        message = "--resumable puts the result where its client looks for it; leave out -o"
        raise UsageError(message)
    if job.summary == files.STDIN and not job.summary_only and _to_stdout(job):
        message = "--summary -: the transcript goes to standard output; give a file, or --summary-only"
        raise UsageError(message)
    if job.out and job.out != files.STDIN and job.path != files.STDIN and _same_file(job.out, job.path):
        message = f"{job.out}: that's the input; --in-place replaces it and keeps a copy"
        raise UsageError(message)
    for other, what in ((job.path, "the input"), (job.out, "where the transcript goes")):
        if job.summary not in ("", files.STDIN) and other not in ("", files.STDIN) and _same_file(job.summary, other):
            message = f"{job.summary}: that's {what}; give --summary another name"
            raise UsageError(message)


def _check_read_only(job: Job, source: Source) -> None:
    """A source whose format is never written goes into a file of its own, and not under its own kind of name."""
    if not source.original:
        return
    if job.in_place:
        message = f"{job.path}: {source.format} is only read, so --in-place can't replace it; leave it out"
        raise UsageError(message)
    if Path(job.out).suffix == ".eval":
        message = f"{job.out}: the result is a list of messages, no log; name it .jsonl"
        raise UsageError(message)


def _warned(job: Job, source: Source) -> Iterator[str]:
    """What the result is where it can't be in the format of the source, and what its client keeps beside it."""
    if source.original:
        kind = "OpenAI chat messages" if source.format == "inspect" else "the messages in it"
        told = f"is only read, never written: the result is {kind}, one conversation a line"
        yield f"{source.name}: {source.format} {told}"
    if other := clients.beside(job.path, source):
        yield f"{source.name}: {other}"


def _to_stdout(job: Job) -> bool:
    """Whether the transcript goes to standard output."""
    return job.out == files.STDIN or (job.path == files.STDIN and not (job.out or job.resumable))


def _same_file(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _read(job: Job, raw: bytes) -> Source:
    """The source; one that holds no messages has no conversations, and of one broken value it's said what is wrong."""
    name = _name(job.path)
    if _is_hollow(raw):
        return Source(name, raw, job.format or "empty", ())
    try:
        source = formats.read(raw, name, job.format or None)
        return redacted(source) if job.options.redact else source
    except InputError as error:
        broken = _broken(raw)
        if not broken:
            raise
        message = f"{name}:{broken}"
        raise InputError(message) from error


def _is_hollow(raw: bytes) -> bool:
    """Whether it is a file of the right shape that holds nothing: only white space, empty lists, rows of such."""
    text = raw[stored.begin(raw) :].strip()
    if b'"role"' in text:
        return False
    if not text:
        return True
    try:
        return all(map(_holds_nothing, [orjson.loads(text)]))
    except orjson.JSONDecodeError:
        pass
    try:
        return all(_holds_nothing(orjson.loads(line)) for line in text.splitlines() if line.strip())
    except orjson.JSONDecodeError:
        return False


def _holds_nothing(value: Any) -> bool:
    if isinstance(value, dict):
        found = [value[key] for key in ("messages", "traj") if key in value]
        return bool(found) and all(inner == [] for inner in found)
    return isinstance(value, list) and all(isinstance(inner, dict) and _holds_nothing(inner) for inner in value)


def _broken(raw: bytes) -> str:
    """The line, the damage and the cure of a file that is one value which can't be read; empty for any other."""
    at = sample.start(raw)
    if sample.first_values(raw) or not re.match(rb'[\[{]\s*["\[{]', raw[at : at + 1_000]):
        return ""
    line = raw.count(b"\n", 0, at) + 1
    if spans.end_of(raw, at, len(raw)) < 0:
        return f"{line}: the JSON value that begins here is cut off; write it out again, or close its brackets"
    damage = next((record.damage for record in stored.records(raw)), "")
    return f"{line}: {damage}; take the nested value out, or give another file" if "nested" in damage else ""


def _name(path: str) -> str:
    return "standard input" if path == files.STDIN else files.shown(Path(path).name)


def _positions(job: Job, source: Source) -> tuple[int, ...]:
    return tuple(number - 1 for number in job.select) or tuple(range(len(source.transcripts)))


def _candidates(job: Job) -> Iterator[tuple[str, bytes]]:
    """The files that may be the summary behind a transcript's block: as named, beside it, in the current folder."""
    folders = dict.fromkeys([*([Path(job.path).parent] if job.path != files.STDIN else []), Path()])
    named = [Path(job.summary)] if job.summary.endswith(".json") else []
    for path in dict.fromkeys([*named, *(p for folder in folders for p in sorted(folder.glob("*.summary.json")))]):
        try:
            yield str(path), path.read_bytes()
        except OSError:
            continue


def _finder(found: Sequence[summary.Summary]) -> pipeline.FindPrevious:
    def find(source: Source, transcript: Transcript) -> Snapshot | None:
        position = source.transcripts.index(transcript) + 1
        return next((s.snapshot for s in found if s.select == position), None)

    return find


# -- where things go


def _paths(job: Job, source: Source) -> Paths:
    if job.in_place:
        resume = clients.resume_command(source, 0) if source.transcripts else ""
        return Paths(job.path, job.summary or _summary_name(job.path), "", resume)
    if job.resumable:
        place = clients.new_session(source)
        return Paths(str(place.path), job.summary or _here(job, ".summary.json"), "", place.command)
    if job.path == files.STDIN or job.out == files.STDIN or files.is_device(job.out):
        names_file = job.out not in ("", files.STDIN) and not files.is_device(job.out)
        beside = _summary_name(job.out) if names_file else ""
        out = job.out or files.STDIN
        return (
            Paths("", job.summary or beside or files.STDIN) if job.summary_only else Paths(out, job.summary or beside)
        )
    out = job.out or _here(job, f".compacted{'.jsonl' if source.original else _plain(job.path).suffix}")
    return Paths("" if job.summary_only else out, job.summary or _summary_name(out))


def _here(job: Job, ending: str) -> str:
    """Beside the input, or in the current folder when that is an agent's own."""
    path = _plain(job.path)
    folder = Path() if clients.is_session_folder(path.parent) else path.parent
    return str(folder / (path.stem + ending))


def _plain(path: str) -> Path:
    """What a compressed file is called once it is unpacked."""
    return Path(path.removesuffix(".zst"))


def _summary_name(out: str) -> str:
    path = Path(out)
    return str(path.with_name(path.stem.removesuffix(".compacted") + ".summary.json"))


def _with_places(job: Job, source: Source, paths: Paths) -> Options:
    name = source.name
    if job.in_place:
        backup = files.exclusive_name(files.backup_name(job.path, source.raw), source.raw)
        name = files.shown(Path(backup).name)
    record = f"{name} ({source.short}, {source.lines} lines)"
    if source.original:
        told = "" if job.path == files.STDIN else f"; `compact convert {shlex.quote(name)} --select 41` prints that one"
        record = f"{name} ({source.short}), unpacked to a line for each conversation{told}"
    elif job.path != files.STDIN and _is_by_line(source):
        packed, quoted = name.endswith(".zst"), shlex.quote(name)
        record += f"; {f'zstdcat {quoted} | sed -n 41p' if packed else f'sed -n 41p {quoted}'} recalls a line"
    recall = _shown_by(files.shown(Path(paths.summary).name)) if paths.summary not in ("", files.STDIN) else ""
    session = Path(paths.transcript).stem if job.resumable else ""
    return replace(job.options, record=record, recall=recall, session=session)


def _is_by_line(source: Source) -> bool:
    """Whether a line holds one whole message, damage apart: not so in an array on one line, or in a spread one."""
    messages = [entry for transcript in source.transcripts for entry in transcript.entries if entry.role]
    alone = sum(entry.nth == 1 and b"\n" not in entry.raw.strip() for entry in messages)
    return 2 * alone > len(messages)


def _shown_by(path: str) -> str:
    """The command that shows a summary file; of one for people only its name."""
    return path if path.endswith(".md") else f"compact show {shlex.quote(path)}"


def _refuse_existing(job: Job, paths: Paths, found: Sequence[summary.Summary]) -> None:
    """An output that stands already needs -f, but for the input of --in-place and the summary that is folded in."""
    taken = [] if job.in_place else [paths.transcript]
    if not _is_folded(paths.summary, found):
        taken.append(paths.summary)
    for path in taken:
        if path not in ("", files.STDIN) and Path(path).exists() and not files.is_device(path):
            message = f"{path}: exists; -f overwrites it"
            raise OutputError(message)


def _is_folded(path: str, found: Sequence[summary.Summary]) -> bool:
    """Whether all of the summary that stands there lives on in the new one."""
    if not (path and found and Path(path).is_file()):
        return False
    try:
        parts = summary.load(Path(path).read_bytes(), path)
    except (InputError, OSError):
        return False
    return bool(parts) and all(any(replace(part, select=one.select) == one for one in found) for part in parts)


def _document(
    job: Job, compacted: Compacted, options: Options, found: Sequence[summary.Summary], started: float
) -> dict[str, Any]:
    run = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "duration_s": round(time.perf_counter() - started, 3),
    }
    before = {s.select - 1: s for s in found}
    return summary.build(compacted, options, run, job.task, before)


def _write(
    job: Job, raw: bytes, compacted: Compacted, document: Mapping[str, Any], paths: Paths,
    found: Sequence[summary.Summary],
) -> Paths:  # fmt: skip
    """Bring both files to the disk, then put the transcript in its place, then the summary.

    So whatever fails, what stood there stands there again, the previous summary above all.
    """
    mode = files.mode_of(job.path)
    if job.in_place:
        backup = files.write_exclusive(files.backup_name(job.path, raw), raw, mode=mode)
        paths = replace(paths, backup=backup)
    if job.resumable:
        files.make_folder(paths.transcript)
    data = _summary_bytes(paths.summary, document, compacted)
    with ExitStack() as stack:
        replaces = job.force or _is_folded(paths.summary, found)
        put_summary = stack.enter_context(_prepared(paths.summary, data, mode, overwrite=replaces))
        replaces = job.force or job.in_place
        put_transcript = stack.enter_context(_prepared(paths.transcript, compacted.data, mode, overwrite=replaces))
        put_transcript()
        try:
            put_summary()
        except OutputError:
            _take_back(job, paths.transcript, raw)
            raise
    return paths


def _prepared(
    path: str, data: bytes, mode: int | None, *, overwrite: bool
) -> AbstractContextManager[Callable[[], None]]:
    """The bytes ready to be put there; nothing to put where the place is no file."""
    if path in ("", files.STDIN):
        return nullcontext(lambda: None)
    return files.prepared(path, data, mode=mode, overwrite=overwrite)


def _take_back(job: Job, path: str, raw: bytes) -> None:
    """Undo the writing of a transcript that is new, or stands in its original's place."""
    with suppress(OutputError, OSError):
        if job.in_place:
            files.write_atomic(path, raw)
        elif path not in ("", files.STDIN) and not job.force and not files.is_device(path):
            Path(path).unlink(missing_ok=True)


def _summary_bytes(path: str, document: Mapping[str, Any], compacted: Compacted) -> bytes:
    if not path.endswith(".md"):
        return summary.dump(document)
    snapshots = [(o.plan.position, o.snapshot) for o in compacted.outcomes if o.changed and o.snapshot]
    titles = (
        f"{compacted.source.name}" + (f" #{position + 1}" if len(snapshots) > 1 else "") for position, _ in snapshots
    )
    return "\n".join(markdown(s, title) for title, (_, s) in zip(titles, snapshots, strict=True)).encode()


# -- what is told


def _tokens(plans: Sequence[Plan]) -> dict[str, int]:
    names = ("total", "fixed", "earlier", "head", "tail")
    return {name: sum(getattr(plan.sizes, name) for plan in plans) for name in names}


def _conversation(plan: Plan) -> dict[str, Any]:
    cut, transcript = plan.cut, plan.transcript
    where = transcript.entries[transcript.live[cut.at]].line if cut and cut.at < len(transcript.live) else None
    return {
        "select": plan.position + 1,
        "messages": len(transcript.live),
        "tokens": _tokens([plan]),
        "recorded_usage": transcript.usage,
        "reason": plan.reason,
        "cut": {**asdict(cut), "line": where} if cut else None,
        "block_limit": plan.limit,
        "counter": plan.counter.name,
    }  # fmt: skip


def _planned(
    job: Job, source: Source, plans: Sequence[Plan], outlines: "Sequence[Outline | None]", started: float
) -> Report:
    busy = [plan for plan in plans if not plan.reason and plan.cut]
    asked = [told for told in outlines if told]
    lines = [line for plan in plans for line in _plan_lines(source, plan, len(plans) > 1)] or [
        f"{source.name}: it holds no messages"
    ]
    lines += [f"  {told}" for told in _secrets(job, source, plans)]
    lines += [*_outline_lines(asked), *_too_dear(job, asked), *_warned(job, source)]
    body = {
        "status": "planned" if busy else "unchanged",
        "reason": "" if busy else "; ".join(dict.fromkeys(plan.reason for plan in plans)) or "it holds no messages",
        "format": source.format,
        "tokens": _tokens(plans),
        "conversations": [_conversation(plan) for plan in plans],
        "model": asked[0].model if asked else None,
        "calls": sum(told.calls for told in asked),
        "tokens_in": sum(told.tokens_in for told in asked),
        "tokens_out": sum(told.tokens_out for told in asked),
        "cost": _cost(asked),
        "duration": round(time.perf_counter() - started, 3),
    }
    return Report("planned", tuple(lines), _notes(source), json=body)


def _cost(asked: "Sequence[Outline]") -> float | None:
    """What the calls would cost in US dollars; None where the price is unknown."""
    costs = [told.cost for told in asked]
    return None if None in costs else sum(cost or 0.0 for cost in costs)


def _outline_lines(asked: "Sequence[Outline]") -> Iterator[str]:
    if not asked:
        return
    calls, cost = sum(told.calls for told in asked), _cost(asked)
    took = sum(told.tokens_in for told in asked), sum(told.tokens_out for told in asked)
    price = "price unknown" if cost is None else f"about ${cost:.4f}"
    window = f"{asked[0].window:,} tokens" + ("" if asked[0].known else ", assumed: --window")
    yield f"  asks {asked[0].model} (window {window}): {_count(calls, 'call')}, about {took[0]:,} tokens in, " \
          f"{took[1]:,} out, {price}"  # fmt: skip


def _too_dear(job: Job, asked: "Sequence[Outline]") -> Iterator[str]:
    """What a plan says of the most that may be spent, where its calls may take more."""
    cost = _cost(asked)
    if job.ask.max_cost is not None and cost is not None and cost > job.ask.max_cost:
        yield f"  that may pass --max-cost {job.ask.max_cost:g}: it would stop before the call that could"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _plan_lines(source: Source, plan: Plan, many: bool) -> Iterator[str]:
    name = f"{source.name}" + (f" #{plan.position + 1}" if many else "")
    if plan.reason or not plan.cut:
        yield f"{name}: nothing to do: {plan.reason}"
        return
    sizes, tail = plan.sizes, plan.cut.tail
    first = _conversation(plan)["cut"]["line"]
    yield f"{name}: {source.format}, {len(plan.transcript.live)} messages, {sizes.total:,} tokens ({plan.counter.name})"
    if plan.transcript.usage:
        yield f"  the provider last counted {plan.transcript.usage:,} tokens, system prompt and tools included"
    if sizes.fixed:
        yield f"  stays: {sizes.fixed:,} tokens of leading system messages"
    earlier = f", with {sizes.earlier:,} tokens of the earlier summary" if sizes.earlier else ""
    yield f"  summarised: {sizes.head:,} tokens{earlier}, into a block of at most {plan.limit:,}"
    where = f" from line {first}" if first else ""
    yield f"  kept verbatim{where}: {tail.messages} messages, {tail.turns} turns, {tail.tokens:,} tokens"
    if plan.cut.note:
        yield f"  {plan.cut.note}"
    yield from (f"  {finding}" for finding in plan.findings)


def _unchanged(job: Job, compacted: Compacted, paths: Paths, started: float) -> Report:
    source, outcomes = compacted.source, compacted.outcomes
    refused = [outcome for outcome in outcomes if outcome.refused]
    reasons = dict.fromkeys(outcome.reason for outcome in refused or outcomes)
    reason = "; ".join(reasons) or "it holds no messages"
    status: Status = "refused" if refused else "unchanged"
    stdout = b""
    if not refused and not job.summary_only:
        if paths.transcript == files.STDIN:
            stdout = source.raw
        elif job.out and not job.in_place:
            with _prepared(job.out, source.raw, files.mode_of(job.path), overwrite=job.force) as put:
                put()
    spent = f" ({_total(compacted).told})" if _total(compacted).calls else ""
    line = f"{source.name}: {'refused' if refused else 'nothing to do'}: {reason}{spent}"
    body = _body(compacted, status, reason, Paths(), started)
    told = (line, *_warned(job, source)) if source.original and (stdout or job.out) else (line,)
    return Report(status, told, _notes(source), stdout, body)


def _body(compacted: Compacted, status: Status, reason: str, paths: Paths, started: float) -> dict[str, Any]:
    plans = [outcome.plan for outcome in compacted.outcomes]
    conversations = [
        _conversation(o.plan) | {"status": _status(o), "reason": o.reason, "tokens_after": o.tokens_after,
                                 "items": o.verdict.items, "findings": o.verdict.as_dict()["findings"],
                                 "repaired": len(o.verdict.repaired),
                                 "missing": o.verdict.as_dict()["missing"]}
        for o in compacted.outcomes
    ]  # fmt: skip
    models = [outcome.asked.model for outcome in compacted.outcomes if outcome.asked]
    return {
        "status": status,
        "reason": reason,
        "format": compacted.source.format,
        "tokens": _tokens(plans) | {"after": sum(o.tokens_after for o in compacted.outcomes)},
        "cut": conversations[0]["cut"] if len(conversations) == 1 else None,
        "paths": {name: getattr(paths, name) or None for name in ("transcript", "summary", "backup", "resume")},
        "findings": [finding for conversation in conversations for finding in conversation["findings"]],
        "conversations": conversations,
        "model": models[0] if models else None,
        "usage": _usage(compacted),
        "cost": _total(compacted).cost,
        "duration": round(time.perf_counter() - started, 3),
    }


def _total(compacted: Compacted) -> Usage:
    """What asking models took, over all conversations."""
    return sum((outcome.asked.usage if outcome.asked else outcome.wasted for outcome in compacted.outcomes), Usage())


def _usage(compacted: Compacted) -> dict[str, Any] | None:
    asked = [outcome.asked for outcome in compacted.outcomes if outcome.asked]
    added = sum(outcome.added for outcome in compacted.outcomes)
    again = sum(one.asked_again for one in asked)
    total = _total(compacted)
    return {**asdict(total), "asked_again": again, "added_by_code": added} if asked or total.calls else None


def _by(compacted: Compacted) -> str:
    """Who wrote the summary, and what that took."""
    asked = [outcome.asked for outcome in compacted.outcomes if outcome.asked]
    usage = _total(compacted)
    if not asked:
        return "offline summary, no model" + (f" (paid for nothing: {usage.told})" if usage.calls else "")
    by_code = [f"code added {sum(outcome.added for outcome in compacted.outcomes)}"]
    mended = sum(len(outcome.verdict.repaired) for outcome in compacted.outcomes)
    by_code += [f"mended {mended}"] * bool(mended)
    again = sum(one.asked_again for one in asked)
    by_code += [f"{again} asked for again"] * bool(again)
    return f"summary by {asked[0].model}: {usage.told}; {', '.join(by_code)}"


def _status(outcome: Outcome) -> Status:
    return "refused" if outcome.refused else "compacted" if outcome.changed else "unchanged"


def _done(job: Job, compacted: Compacted, paths: Paths, document: Mapping[str, Any], started: float) -> Report:
    done = [outcome for outcome in compacted.outcomes if outcome.changed]
    name = paths.transcript if paths.transcript not in ("", files.STDIN) else compacted.source.name
    before, after = sum(o.plan.sizes.total for o in done), sum(o.tokens_after for o in done)
    many = f" in {len(done)} of {len(compacted.outcomes)} conversations" if len(compacted.outcomes) > 1 else ""
    tails = [outcome.plan.cut.tail for outcome in done if outcome.plan.cut]
    kept = f"{sum(t.messages for t in tails)} messages ({sum(t.turns for t in tails)} turns) kept verbatim"
    items = sum(outcome.verdict.items for outcome in done)
    usage = done[0].plan.transcript.usage if len(done) == 1 else 0
    counted = f" (the provider last counted {usage:,})" if usage else ""
    line = f"{name}: {before:,} -> {after:,} tokens{counted}{many}, {items} items, {kept}; {_by(compacted)}"
    follow = [f"see it: {_shown_by(paths.summary)}" if paths.summary not in ("", files.STDIN) else ""]
    resumes = compacted.source.format == "claude-code" and not job.summary_only
    if resumes and (paths.resume or job.path != files.STDIN):
        follow.append(f"resume it: {paths.resume or _resumable(job)}")
    line = "; ".join([line, *filter(None, follow)])
    warnings = [*_warned(job, compacted.source)]
    if wrong := sum(len(o.verdict.errors) for o in done):
        warnings.append(f"{name}: written in spite of {wrong} finding{'s' * (wrong > 1)} that would refuse it")
    warnings += [f"{name}: {finding}" for o in done for finding in o.verdict.findings]
    warnings += [f"{name}: {told}" for told in _secrets(job, compacted.source, [o.plan for o in done])]
    warnings += [f"{name}: {note}" for o in done if o.asked for note in o.asked.notes]
    warnings += [f"{name}: {o.plan.cut.note}" for o in done if o.plan.cut and o.plan.cut.note]
    if paths.transcript == files.STDIN and job.path == files.STDIN and not paths.summary:
        warnings.append("standard input: the original is kept nowhere, and no summary file; --summary FILE writes one")
    pins = pipeline.unmatched_pins([outcome.plan for outcome in done], job.options.pins)
    warnings += [f"{compacted.source.name}: --pin {pin!r} matches nothing" for pin in pins]
    warnings += [f"{compacted.source.name}: {guess}" for guess in compacted.source.guesses]
    stdout = compacted.data if paths.transcript == files.STDIN else b""
    if paths.summary == files.STDIN:
        stdout += _summary_bytes("", document, compacted)
    edits = tuple(f"{name}:{note.line}: {note.text}" for o in done for note in o.edits)
    body = _body(compacted, "compacted", "", paths, started)
    return Report("compacted", (line, *warnings), (*_notes(compacted.source), *edits), stdout, body)


def _secrets(job: Job, source: Source, plans: Sequence[Plan]) -> Iterator[str]:
    """What becomes of the secrets that some conversations hold."""
    view = source if source.redacted else redacted(source)
    cut = [(view.transcripts[plan.position], plan.cut.at) for plan in plans if plan.cut and not plan.reason]
    gone, kept = (
        sorted({line for told, at in cut for line in redact_lines(told.entries[i] for i in part(told, at))})
        for part in (lambda told, at: (*told.past, *told.live[:at]), lambda told, at: told.live[at:])
    )
    if gone and source.redacted:
        yield f"secrets in {_lines(gone)} are masked in the summary and for any model"
    elif gone:
        yield f"secrets in {_lines(gone)} go to the model and into the summary as they are (--no-redact)"
    if kept:
        yield f"secrets in {_lines(kept)} stay in the part kept verbatim: that is your file"


def _lines(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
    return f"line{'s' * (len(numbers) != 1)} {shown}"


def _resumable(job: Job) -> str:
    """The command that gives the same result where its client looks for it; replies that were kept cost nothing."""
    keep, options, ask = job.options.keep, job.options, job.ask
    flags = {
        "--keep": keep.messages, "--keep-turns": keep.turns, "--keep-tokens": keep.tokens,
        "--max-summary": options.max_summary, "--focus": options.focus, "-m": ask.model, "--window": ask.window,
    }  # fmt: skip
    given = [f"{flag} {shlex.quote(str(value))}" for flag, value in flags.items() if value not in (None, "", 0)]
    given += ["--no-redact"] * (not options.redact) + ["--allow-findings"] * options.allow_findings
    return " ".join(["compact run", shlex.quote(job.path), "--resumable", *given])


def _notes(source: Source) -> tuple[str, ...]:
    return tuple(f"{source.name}:{note.line}: {note.text}" for t in source.transcripts for note in t.notes)
