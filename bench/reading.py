"""How long does reading take: beside orjson alone on the same lines or value, as files grow, and of odd shapes.

`python -m bench.reading [--megabytes N] [--json] [FORMAT...]`, with `tests` on the path. Floor and `formats.read` run
in turn in one process, five times each, and the least processor time of either counts: what else the machine does only
adds to it. It always ends with 0; what is over its limit is marked.
"""

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import orjson

from bench import sessions, shapes
from bench.bench import Measure, table
from compactor import formats

ROUNDS = 5
LIMIT = 6
SIZES = (4, 16, 64)
GROWN: tuple[sessions.Kind, ...] = ("claude-code", "gemini-json")
"""Which formats are read in several sizes: one by lines, one that is a single value."""
RECORDS = 5_000
LINEAR = 2.5
"""How much longer twice as many records of an odd shape may take."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("formats", nargs="*", metavar="FORMAT")
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measures = list(_measures(Path(folder), asked.megabytes, asked.formats))
    if asked.json:
        print(json.dumps([{**asdict(measure), "over": measure.over} for measure in measures], indent=2))
    else:
        print(table(measures))


def _measures(folder: Path, megabytes: float, chosen: list[sessions.Kind]) -> Iterator[Measure]:
    for one in chosen or sessions.FORMATS:
        yield beside_orjson(_session(folder, one, megabytes), one)
    if chosen:
        return
    for form in GROWN:
        yield from growth(folder, form)
    for name in shapes.SHAPES:
        yield doubled(name)


def beside_orjson(raw: bytes, form: sessions.Kind) -> Measure:
    """Reading beside parsing, both keeping what they find; of what isn't JSON beside splitting it into lines."""
    values = raw.splitlines(keepends=True)
    if form == "aider":
        floor: Callable[[], object] = raw.splitlines
    elif any(len(line) > 2 for line in values[:1]) and len(values) > 1:
        floor = lambda: [orjson.loads(line) for line in values]  # noqa: E731
    else:
        floor = lambda: orjson.loads(raw)  # noqa: E731
    ours, least = _in_turn(lambda: formats.read(raw, form), floor)
    name = f"read {form}, {len(raw) / 1e6:.0f} MB / {'its lines' if form == 'aider' else 'orjson'}"
    return Measure(name, "s", ours, least, ours / least, None if form == "aider" else LIMIT)


def growth(folder: Path, form: sessions.Kind) -> Iterator[Measure]:
    """A megabyte of a larger file beside one of the smallest."""
    least = 0.0
    for size in SIZES:
        raw = _session(folder, form, size)
        seconds = min(_seconds(lambda raw=raw: formats.read(raw, form)) for _ in range(2))  # type: ignore[misc]
        each = seconds / len(raw) * 1e6
        least = least or each
        yield Measure(f"read {form}, {size} MB, each / of {SIZES[0]} MB", "s", each, least, each / least, 1.5)


def doubled(name: str, records: int = RECORDS) -> Measure:
    """Twice as many records of an odd shape beside that many."""
    once, twice, form = shapes.made(name, records), shapes.made(name, 2 * records), shapes.form_of(name)
    ours, least = _in_turn(lambda: formats.read(twice, name, form), lambda: formats.read(once, name, form), rounds=2)
    return Measure(f"read {name}, {2 * records} records / {records}", "s", ours, least, ours / least, LINEAR)


def _session(folder: Path, form: sessions.Kind, megabytes: float) -> bytes:
    path = folder / "session"
    sessions.write(form, megabytes, path)
    return path.read_bytes()


def _in_turn(ours: Callable[[], object], floor: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float]:
    taken = [(_seconds(ours), _seconds(floor)) for _ in range(rounds)]
    return min(one for one, _ in taken), min(other for _, other in taken)


def _seconds(run: Callable[[], object]) -> float:
    gc.collect()  # what was made before isn't paid for here
    begun = time.process_time()
    run()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
