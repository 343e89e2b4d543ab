"""How fast and how small is it: each number beside its floor, measured in the same run.

`python -m bench.bench [--json] [--long]`. A measure and its floor are run in turn, five times each, and the medians are
compared. It needs a system with `os.wait4`. It always ends with 0; what is over its limit is marked.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

ROUNDS = 5
MEGABYTES = 4
LONG = (1, 4, 16, 64)
RSS_UNIT = 1 if sys.platform == "darwin" else 1024

TWO_COMMANDS = '''import typer

app = typer.Typer(no_args_is_help=True)


@app.command()
def one(path: str, loud: bool = False) -> None:
    """Do one thing."""


@app.command()
def two(path: str, count: int = 1) -> None:
    """Do another thing."""


app()
'''

COUNT_ONCE = """import os
import sys
from importlib.util import find_spec
from pathlib import Path

(place,) = find_spec("litellm").submodule_search_locations
os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(place, "litellm_core_utils", "tokenizers"))
import orjson
import tiktoken


def texts(content):
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        for key in ("text", "thinking"):
            if isinstance(block.get(key), str):
                yield block[key]
        if "input" in block:
            yield orjson.dumps(block["input"]).decode()
        yield from texts(block.get("content"))


encoding = tiktoken.get_encoding("o200k_base")
count = 0
with open(sys.argv[1], "rb") as file:
    for line in file:
        for text in texts((orjson.loads(line).get("message") or {}).get("content")):
            count += len(encoding.encode_ordinary(text))
print(count)
"""

ASKING_S = 0.5
REPLY = json.dumps({
    "objective": [{"text": "Go on with the work", "basis": "inferred", "evidence": ["1"]}],
    "next_action": [{"text": "Read on", "basis": "inferred", "evidence": ["1"]}],
})  # fmt: skip

LITTLE = (
    '{"parentUuid":null,"isSidechain":false,"cwd":"/home/dev/shop","sessionId":"s","version":"2.1.71","type":"user",'
    '"message":{"role":"user","content":"Hello"},"uuid":"u","timestamp":"2026-03-01T00:00:00.000Z"}\n'
)


@dataclass(frozen=True)
class Run:
    """What one process took."""

    seconds: float
    rss: int
    """Bytes at its peak."""


@dataclass(frozen=True)
class Measure:
    """A number, its floor, and how far apart they may be."""

    name: str
    unit: str
    value: float
    floor: float
    ratio: float
    limit: float | None = None

    @property
    def over(self) -> bool:
        return self.limit is not None and self.ratio > self.limit


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled already, so these are, too
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder, "compiled"))
        measures = list(measure(Path(folder), long="--long" in sys.argv))
    if "--json" in sys.argv:
        print(json.dumps([{**asdict(measure), "over": measure.over} for measure in measures], indent=2))
    else:
        print(table(measures))


def measure(folder: Path, *, long: bool) -> Iterator[Measure]:
    yield version()
    yield help_text(folder)
    yield from compaction(folder)
    yield from checking(folder)
    yield from asking(folder)
    if long:
        yield from growth(folder)


def version() -> Measure:
    floor = [sys.executable, "-c", "import typer, rich"]
    return slower("compact --version / import typer, rich", [*compact(), "--version"], floor, limit=2)


def help_text(folder: Path) -> Measure:
    bare = folder / "bare.py"
    bare.write_text(TWO_COMMANDS)
    floor = [sys.executable, str(bare), "--help"]
    return slower("compact --help / --help of a bare app", [*compact(), "--help"], floor, limit=1.5)


def compaction(folder: Path) -> Iterator[Measure]:
    big, little, counting = folder / "big.jsonl", folder / "little.jsonl", folder / "count.py"
    generate(MEGABYTES, big)
    little.write_text(LITTLE)
    counting.write_text(COUNT_ONCE)
    floor = [sys.executable, str(counting), str(big)]
    yield slower(f"compact run, {MEGABYTES} MB / count the text once", compact_run(big), floor, limit=3)
    peaks, bases = in_turn(compact_run(big), compact_run(little))
    peak, base, size = median_rss(peaks), median_rss(bases), big.stat().st_size
    name = "its memory above that on one line / file size"
    yield Measure(name, "MB", (peak - base) / 1e6, size / 1e6, (peak - base) / size, limit=6)


def checking(folder: Path) -> Iterator[Measure]:
    """What the checks take of an offline run, as they are run in it."""
    command = [sys.executable, "-m", "bench.checks", str(folder / "big.jsonl")]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    yield Measure(f"the checks, {MEGABYTES} MB / the offline run", "s", told["checks_s"], told["run_s"], told["share"],
                  limit=1 / 3)  # fmt: skip


def asking(folder: Path) -> Iterator[Measure]:
    """What asking a model adds to the same run without one, beside the import of litellm and the model's own time."""
    big = folder / "big.jsonl"
    importing = [sys.executable, "-c", "import os; os.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'; import litellm"]
    with answering() as (address, asked):
        os.environ |= {"OPENAI_API_BASE": address, "OPENAI_API_KEY": "none"}
        command = [*compact_run(big), "-m", "openai/gpt-4o", "--window", "4000000", "--no-log"]
        ours, offline = in_turn(command, compact_run(big))
        imports = [once(importing) for _ in range(ROUNDS)]
    own = median_seconds(ours) - median_seconds(imports)
    allowed = median_seconds(offline) + ASKING_S
    yield Measure(f"asking a model, {MEGABYTES} MB, without import litellm / offline + {ASKING_S} s", "s", own, allowed,
                  own / allowed, limit=1)  # fmt: skip
    calls = len(asked) / (ROUNDS + 1)
    yield Measure("its calls / one", "", calls, 1, calls, limit=1)


@contextmanager
def answering() -> Iterator[tuple[str, list[int]]]:
    """A model on the loopback that answers at once: its address, and the size of each request."""
    asked: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(len(self.rfile.read(int(self.headers["content-length"]))))
            choice = {"index": 0, "message": {"role": "assistant", "content": REPLY}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            body = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o",
                               "choices": [choice], "usage": usage}).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def growth(folder: Path) -> Iterator[Measure]:
    """Time and memory per MB, beside those at the smallest size."""
    first_time = first_memory = 0.0
    for megabytes in LONG:
        path = folder / f"{megabytes}.jsonl"
        generate(megabytes, path)
        run = once(compact_run(path))
        seconds, memory = run.seconds / megabytes, run.rss / 1e6 / megabytes
        first_time, first_memory = first_time or seconds, first_memory or memory
        yield Measure(
            f"time per MB at {megabytes} MB / at {LONG[0]} MB", "s", seconds, first_time, seconds / first_time
        )
        name = f"memory per MB at {megabytes} MB / at {LONG[0]} MB"
        yield Measure(name, "MB", memory, first_memory, memory / first_memory)


def slower(name: str, command: Sequence[str], floor: Sequence[str], *, limit: float) -> Measure:
    """How many times as long as the floor a command takes."""
    ours, floors = in_turn(command, floor)
    value, least = median_seconds(ours), median_seconds(floors)
    return Measure(name, "s", value, least, value / least, limit)


def in_turn(command: Sequence[str], floor: Sequence[str]) -> tuple[list[Run], list[Run]]:
    once(command)  # what is read from the disk for the first time isn't measured
    once(floor)
    pairs = [(once(command), once(floor)) for _ in range(ROUNDS)]
    return [ours for ours, _ in pairs], [least for _, least in pairs]


def once(command: Sequence[str]) -> Run:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr
    told = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{told.decode(errors='replace')}")
    return Run(seconds, usage.ru_maxrss * RSS_UNIT)


def compact() -> list[str]:
    script = Path(sys.executable).with_name("compact")
    return [str(script)] if script.exists() else [sys.executable, "-m", "compactor"]


def compact_run(path: Path) -> list[str]:
    out, summary = path.with_suffix(".out.jsonl"), path.with_suffix(".summary.json")
    return [*compact(), "run", str(path), "-o", str(out), "--summary", str(summary), "--force"]


def generate(megabytes: float, path: Path) -> None:
    # in a process of its own: what this one holds would count as the peak of every process it starts
    subprocess.run([sys.executable, "-m", "bench.generate", str(megabytes), str(path)], check=True)


def median_seconds(runs: Sequence[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def median_rss(runs: Sequence[Run]) -> float:
    return statistics.median(run.rss for run in runs)


def table(measures: Sequence[Measure]) -> str:
    width = max(len(measure.name) for measure in measures)
    lines = [f"{'':{width}}  {'value':>10}  {'floor':>10}  {'ratio':>6}  {'limit':>5}"]
    for measure in measures:
        limit = "" if measure.limit is None else f"{measure.limit:g}"
        mark = "" if measure.limit is None else "  over" if measure.over else "  ok"
        numbers = f"{measure.value:7.3f} {measure.unit:2}  {measure.floor:7.3f} {measure.unit:2}  {measure.ratio:6.2f}"
        lines.append(f"{measure.name:{width}}  {numbers}  {limit:>5}{mark}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
