"""What survives: sentences planted in transcripts, looked for in the block after one fold and after ten.

`python -m bench.needles [--half even|odd] [--seed N] [--count N] [--folds N] [--max-summary N] [--json] [--misses]`.
A needle survives where each of its sentences stands verbatim in the block. Every transcript is compacted as often as
asked, each time with new turns appended: once with the snapshot before at hand, once with only the block left of it.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.planted import Needle, Negative, Planted, load, transcripts
from compactor import formats, pipeline
from compactor.evidence import Evidence
from compactor.pipeline import Options
from compactor.snapshot import Completed, Decision, Item, Snapshot
from compactor.tokens import counter_for
from compactor.transcript import Source, Transcript

FOLDS = (1, 3, 5, 10)
COUNT = 12
BINDING = (
    "prohibition", "scoped_permission", "approval_gate", "cap", "format_preference", "decision", "rejected_option",
    "expiring_rule", "revocation",
)  # fmt: skip
"""Constraints, grants and decisions."""
WITH, WITHOUT = "summary file", "block only"


@dataclass
class Tally:
    """What was seen after some fold, over all transcripts."""

    planted: int = 0
    kept: int = 0

    @property
    def share(self) -> float:
        return self.kept / self.planted if self.planted else 1.0


@dataclass
class Report:
    """All that was counted."""

    transcripts: int = 0
    needles: int = 0
    negatives: int = 0
    survived: dict[str, dict[int, Tally]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Tally)))
    """By mode, kind, style, language and fold."""
    refs: Tally = field(default_factory=Tally)
    identifiers: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    """Of those that stand in the block after the first fold, those that still do after the last, by mode."""
    growth: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    widened: list[str] = field(default_factory=list)
    promoted: list[str] = field(default_factory=list)
    as_rules: list[str] = field(default_factory=list)
    """Values and open loops that stand among the rules: more binding than they need to be."""
    wrong: list[str] = field(default_factory=list)
    """Negatives that became a rule, a permission or an accepted decision."""
    missed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    over: int = 0
    """Compactions whose block is over its budget, because of what is never hidden."""
    compactions: int = 0


def measure(planted: Iterator[Planted], folds: Sequence[int], max_summary: int | None = None) -> Report:
    """What survives so many folds of each transcript."""
    report = Report()
    for one in planted:
        report.transcripts += 1
        report.needles += len(one.needles)
        report.negatives += len(one.negatives)
        for mode in (WITH, WITHOUT):
            _run(report, one, mode, folds, max_summary)
    return report


def _run(report: Report, planted: Planted, mode: str, folds: Sequence[int], max_summary: int | None) -> None:
    data, held, sources = b"", None, list[Source]()
    first: tuple[int, set[str]] = (1, set())
    for number, part in enumerate(planted.parts, 1):

        def known(source: Source, transcript: Transcript, snapshot: Snapshot | None = held) -> Snapshot | None:
            return snapshot

        source = formats.read(data + part, planted.name, planted.form)
        sources.append(source)
        done = pipeline.compact(source, Options(max_summary=max_summary), find=known if mode == WITH else None)
        (outcome,) = done.outcomes
        report.compactions += 1
        if not done.changed or not outcome.snapshot:
            report.refused.append(f"{planted.name} fold {number}, {mode}: {outcome.reason}")
            return
        data, held = done.data, outcome.snapshot
        report.over += any(finding.check == "budget" for finding in outcome.verdict.findings)
        if number in folds:
            _look(report, planted, mode, number, held, outcome.block)
            _resolve(report, held, sources)
        exact = {v for needle in planted.needles for v in needle.values if _stands(v, outcome.block)}
        tokens = counter_for("").text(outcome.block)
        if number == 1:
            first = (tokens, exact)
    report.growth[mode].append(tokens / first[0])
    report.identifiers[mode].planted += len(first[1])
    report.identifiers[mode].kept += len(first[1] & exact)


def _look(report: Report, planted: Planted, mode: str, fold: int, snapshot: Snapshot, block: str) -> None:
    where = f"{planted.name} fold {fold}, {mode}"
    for needle in planted.needles:
        lost = [must for must in needle.must if must.replace("|", "\\|") not in block]
        for group in ("all", needle.kind, needle.style, needle.lang, "binding" if needle.kind in BINDING else "other"):
            tally = report.survived[f"{mode}/{group}"][fold]
            tally.planted += 1
            tally.kept += not lost
        if lost:
            report.missed.append(f"{where}: {needle.kind}, {needle.style}: {lost} of {list(needle.text)}")
    active = [(name, item) for name, item in snapshot.items() if item.status == "active"]
    for name, item in active:
        for needle in planted.needles:
            _judge(report, where, name, item, needle, block)
        for negative in planted.negatives:
            if _is_wrong(name, item, negative):
                report.wrong.append(f"{where}: {name} {item.text!r} ({negative.who}: {negative.text})")
        if name == "authority" and not any(getattr(item, "quote", "") in said for said in planted.said):
            report.widened.append(f"{where}: nobody said {item.text!r}")


def _judge(report: Report, where: str, name: str, item: Item, needle: Needle, block: str) -> None:
    """Whether an item gives a needle more force than it has."""
    told = f"{where}: {name} {item.text!r} ({needle.kind})"
    permits = name == "authority" or (isinstance(item, Decision) and item.state == "accepted")
    if permits and any(grant in item.text for grant in needle.of("revoked")):
        report.widened.append(f"{told}: was taken back")
    if not any(must in item.text for must in needle.must):
        return
    allowed = needle.kind == "scoped_permission"
    if name == "authority" and allowed and any(scope not in block for scope in needle.of("scope")):
        report.widened.append(f"{told}: its limit is lost")
    if name == "authority" and not allowed:
        report.promoted.append(told)
    if needle.kind in ("identifier", "open_loop"):
        if name == "decisions":
            report.promoted.append(told)
        if name == "constraints":
            report.as_rules.append(told)


def _is_wrong(name: str, item: Item, negative: Negative) -> bool:
    binds = name in ("constraints", "authority") or (
        isinstance(item, Decision) and item.state == "accepted" and item.approved_by is not None
    )
    return binds and any(_stands(words, item.text) for words in negative.forbidden)


def _stands(words: str, text: str) -> bool:
    """Whether words stand in a text, cut at neither end inside a word; Chinese has no such ends."""
    ends = (r"(?<![A-Za-z0-9_])" if words[:1].isascii() else "", r"(?![A-Za-z0-9_])" if words[-1:].isascii() else "")
    return re.search(f"{ends[0]}{re.escape(words)}{ends[1]}", text) is not None


def _resolve(report: Report, snapshot: Snapshot, sources: Sequence[Source]) -> None:
    evidence = Evidence(sources)
    for _, item in snapshot.items():
        proof = [item.proof] if isinstance(item, Completed) and item.proof else []
        approval = [item.approved_by.ref] if isinstance(item, Decision) and item.approved_by else []
        for ref in (*item.evidence, *item.change, *proof, *approval):
            report.refs.planted += 1
            report.refs.kept += evidence.stands(ref)


# Telling it


def table(report: Report, folds: Sequence[int]) -> Iterator[str]:
    yield (
        f"{report.transcripts} transcripts, {report.needles} needles, {report.negatives} negatives, "
        f"{report.compactions} compactions, {report.over} over budget, {len(report.refused)} not done"
    )
    yield f"{'survives':34}" + "".join(f"{f'fold {fold}':>9}" for fold in folds) + f"{'n':>7}"
    for group, by_fold in report.survived.items():
        shares = "".join(f"{by_fold[fold].share:9.3f}" for fold in folds)
        yield f"{group:34}{shares}{by_fold[folds[0]].planted:>7}"
    yield f"evidence resolves: {report.refs.share:.3f} of {report.refs.planted}"
    for mode, kept in report.identifiers.items():
        mean, most = sum(report.growth[mode]) / len(report.growth[mode]), max(report.growth[mode])
        yield f"{mode}: identifiers kept {kept.share:.3f} of {kept.planted}; block grows {mean:.2f}x, most {most:.2f}x"
    for name in ("widened", "promoted", "as_rules", "wrong"):
        yield f"{name}: {len(getattr(report, name))}"


def as_json(report: Report) -> dict[str, Any]:
    told = asdict(report)
    told["survived"] = {
        group: {fold: [tally.kept, tally.planted] for fold, tally in folds.items()}
        for group, folds in report.survived.items()
    }
    return told


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.needles", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--half", choices=("even", "odd", "all"), default="all", help="every other phrasing only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=COUNT, help="needles in a transcript")
    parser.add_argument("--folds", type=int, default=max(FOLDS))
    parser.add_argument("--max-summary", type=int, default=None, help="tokens of the block; by default as a run has it")
    parser.add_argument("--take", type=int, default=None, help="only so many transcripts")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--misses", action="store_true", help="each sentence that is lost or has too much force")
    given = parser.parse_args(arguments)
    planted = list(transcripts(load(given.half), given.seed, given.count, given.folds))[: given.take]
    folds = [fold for fold in FOLDS if fold <= given.folds]
    report = measure(iter(planted), folds, given.max_summary)
    if given.json:
        print(json.dumps(as_json(report), ensure_ascii=False, indent=1))
        return
    print("\n".join(table(report, folds)))
    if given.misses:
        for name in ("missed", "widened", "promoted", "as_rules", "wrong", "refused"):
            print(f"\n{name}:", *dict.fromkeys(getattr(report, name)), sep="\n  ")


if __name__ == "__main__":
    main()
