"""What verifying takes of an offline run: `python -m bench.checks SESSION...` prints both in seconds, and the share.

The checks are run once more on what the run wrote, with what the ledger knows, as the run itself does.
"""

import json
import statistics
import sys
import time
from pathlib import Path

from compactor import formats, pipeline, verify
from compactor.evidence import Evidence
from compactor.ledger import extract
from compactor.pipeline import Options
from compactor.snapshot import Snapshot

ROUNDS = 3


def shares(path: Path) -> dict[str, float | str]:
    """The seconds of an offline run in one process and of the checks on its outcomes, medians of a few."""
    source = formats.read(path.read_bytes(), str(path))
    runs, checks = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        done = pipeline.compact(source, Options())
        runs.append(time.perf_counter() - began)
        known = [(o, extract(o.plan.source.short, o.plan.head)) for o in done.outcomes if o.snapshot]
        began = time.perf_counter()
        for outcome, ledger in known:
            snapshot = outcome.snapshot or Snapshot()
            verify.verify(verify.case(snapshot, Evidence([done.source]), outcome.plan.previous, ledger))
            tuple(verify.coverage(snapshot, ledger))
        checks.append(time.perf_counter() - began)
    run, check = statistics.median(runs), statistics.median(checks)
    return {"session": path.name, "run_s": run, "checks_s": check, "share": check / run}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(shares(Path(name))))
