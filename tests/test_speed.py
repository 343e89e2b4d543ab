"""That reading takes time in proportion to the file, whatever shape it has."""

import gc
import time

import pytest

from bench import shapes
from compactor import formats
from compactor.transcript import write

RECORDS = 8_000
ROUNDS = 3
TWICE = 3
"""How much longer twice as many records may take, where 2 is the aim and 4 is quadratic."""


def _seconds(raw: bytes, form: str) -> float:
    gc.collect()
    begun = time.process_time()
    formats.read(raw, "shape", form)
    return time.process_time() - begun


@pytest.mark.long
@pytest.mark.parametrize("name", shapes.SHAPES)
def test_twice_as_many_records_take_twice_as_long(name: str) -> None:
    """Sizes double until the ratio is small once: a quadratic step never gets there, a busy machine does."""
    form, ratios = shapes.form_of(name), list[float]()
    for records in (RECORDS, 2 * RECORDS, 4 * RECORDS):
        once, twice = shapes.made(name, records), shapes.made(name, 2 * records)
        taken = [(_seconds(once, form), _seconds(twice, form)) for _ in range(ROUNDS)]
        ratios.append(min(two for _, two in taken) / min(one for one, _ in taken))
        if ratios[-1] < TWICE:
            return
    pytest.fail(f"twice as many records took {ratios} times as long")


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_every_shape_is_read_and_written_back(name: str) -> None:
    raw = shapes.made(name, 200)
    source = formats.read(raw, "shape", shapes.form_of(name))
    assert any(transcript.live for transcript in source.transcripts)
    assert write(source) == raw
