"""The commands: arguments in, exit code out."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Annotated, Any

import typer

from compactor import __version__
from compactor.errors import CompactError, OutputError, UsageError
from compactor.terminal import harmless, width

app = typer.Typer(
    name="compact",
    help="Turn a long agent transcript into a short one that an agent can go on from.\n\n"
    "Example: compact run session.jsonl",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Path = Annotated[str, typer.Argument(metavar="TRANSCRIPT", help="A transcript file, or - for standard input.")]

ASKING = "Asking a model"
ModelOption = Annotated[
    str,
    typer.Option("-m", "--model", envvar="COMPACT_MODEL", metavar="MODEL",
                 help="Whom to ask, as LiteLLM names it; cmd:COMMAND; scripted:FILE. With none, code alone.",
                 rich_help_panel=ASKING),
]  # fmt: skip
WindowOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Tokens of the model's window.", rich_help_panel=ASKING)
]
NoRedactOption = Annotated[
    bool,
    typer.Option("--no-redact", help="Show the model and the summary passwords, keys and tokens as they are."),
]
ThinkingOption = Annotated[
    bool,
    typer.Option("--thinking", help="Tell the model the agent's thinking too; some refuse then.",
                 rich_help_panel=ASKING),
]  # fmt: skip
PromptOption = Annotated[
    str, typer.Option("--prompt", metavar="FILE", help="The instruction, in place of our own.", rich_help_panel=ASKING)
]


def _version(value: bool) -> None:
    if value:
        print(f"compact {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    transcript: Path,
    out: Annotated[
        str, typer.Option("-o", "--out", help="Where the compacted transcript goes; - for standard output.")
    ] = "",
    summary: Annotated[str, typer.Option(help="Where the summary goes; .md writes Markdown.")] = "",
    keep: Annotated[int | None, typer.Option(min=0, help="Messages to keep verbatim at least (8).")] = None,
    keep_turns: Annotated[int | None, typer.Option(min=0, help="Turns to keep verbatim at least.")] = None,
    keep_tokens: Annotated[int | None, typer.Option(min=0, help="Tokens to keep verbatim at least.")] = None,
    budget: Annotated[
        str, typer.Option(metavar="N|window", help="Compact only when --at of so many tokens is reached.")
    ] = "",
    at: Annotated[str, typer.Option(help="Share of the budget, 0.65 or 65%; alone it implies --budget window.")] = "",
    max_summary: Annotated[
        int | None, typer.Option(min=1, help="Tokens the block may take (a tenth of the head, 600 to 8000).")
    ] = None,
    focus: Annotated[str, typer.Option(help="What the summary should look at most.")] = "",
    model: ModelOption = "",
    window: WindowOption = None,
    prompt_file: PromptOption = "",
    thinking: ThinkingOption = False,
    fallback: Annotated[
        str,
        typer.Option(
            metavar="MODEL,...|offline",
            help="Whom to ask when the model fails; at the end offline: code alone.",
            rich_help_panel=ASKING,
        ),
    ] = "",
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="US dollars that asking may cost.", rich_help_panel=ASKING)
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for a reply.", rich_help_panel=ASKING)
    ] = 600.0,
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Ask about the parts of a long head at once.", rich_help_panel=ASKING)
    ] = False,
    reuse_prefix: Annotated[
        bool,
        typer.Option(
            "--reuse-prefix",
            help="Send the original messages, which the provider may still hold.",
            rich_help_panel=ASKING,
        ),
    ] = False,
    no_log: Annotated[
        bool, typer.Option("--no-log", help="Neither keep replies nor use kept ones.", rich_help_panel=ASKING)
    ] = False,
    no_redact: NoRedactOption = False,
    allow_findings: Annotated[
        bool, typer.Option("--allow-findings", help="Write a summary in spite of what the checks find wrong in it.")
    ] = False,
    pin: Annotated[
        list[str] | None, typer.Option(metavar="REF|REGEX", help="Entries whose words stay whole; repeatable.")
    ] = None,
    format_name: Annotated[str, typer.Option("--format", help="The input's format (see compact formats).")] = "",
    select: Annotated[str, typer.Option(metavar="N,...", help="Which conversations of the file, from 1.")] = "",
    task: Annotated[str, typer.Option(help="The task's id, inherited by later compactions.")] = "",
    block_role: Annotated[str, typer.Option(help="The role of the block in message lists: system or user.")] = "",
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Replace the input; the original stays beside it.")
    ] = False,
    resumable: Annotated[
        bool, typer.Option("--resumable", help="Put the result where its client resumes it, as a new session.")
    ] = False,
    summary_only: Annotated[bool, typer.Option("--summary-only", help="Write the summary, no transcript.")] = False,
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", help="Say what would be done; write nothing.")] = False,
    force: Annotated[bool, typer.Option("-f", "--force", help="Overwrite outputs that exist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Report as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Say what was found in the input and changed in what was kept.")
    ] = False,
) -> None:
    """Compact a transcript.

    Examples:

      compact run session.jsonl

      compact run session.jsonl -m openai/gpt-4o -n

      compact run - --keep 4 < in.jsonl > out.jsonl
    """
    from compactor import job as jobs
    from compactor.asking import Ask
    from compactor.pipeline import Options
    from compactor.split import Keep

    to_stdout = out == "-" or (transcript == "-" and not out)
    with _errors_as_json(as_json, to_stdout or summary == "-"), _waiting(quiet or as_json) as tell:
        tokens, share = _trigger(budget, at)
        ask = Ask(
            model, tuple(filter(None, fallback.split(","))), window or 0, timeout, max_cost, parallel, reuse_prefix,
            instruction=_instruction(prompt_file), thinking=thinking, log=not no_log,
        )  # fmt: skip
        options = Options(
            keep=Keep(keep, keep_turns, keep_tokens), budget=tokens, at=share, max_summary=max_summary,
            focus=_text(focus), pins=tuple(map(_text, pin or ())), block_role=block_role, redact=not no_redact,
            allow_findings=allow_findings,
        )  # fmt: skip
        report = jobs.run(
            jobs.Job(transcript, options, ask, out, summary, format_name, _numbers(select), _text(task), in_place,
                     resumable, summary_only, dry_run, force), tell
        )  # fmt: skip
    _tell(report, as_json, quiet, verbose, json_to_stderr=bool(report.stdout) or to_stdout)
    raise typer.Exit(report.exit_code)


def _instruction(path: str) -> str:
    from compactor import files

    if not path:
        return ""
    try:
        return files.read_input(path)[0].decode()
    except UnicodeDecodeError as error:
        message = f"{path}: no UTF-8 text ({error.reason} at byte {error.start}); save it as such"
        raise UsageError(message) from error


@contextmanager
def _waiting(silent: bool) -> Iterator[Callable[[str], None]]:
    """What to tell while something is waited for; it stands on a terminal only as long as it lasts."""
    if silent or not (sys.stderr and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("reading") as status:
        yield lambda text: status.update(escape(harmless(text)))


@contextmanager
def _errors_as_json(as_json: bool, to_stderr: bool = False) -> Iterator[None]:
    """Under --json an error is one object too, where the report would have been."""
    try:
        yield
    except CompactError as error:
        if not as_json:
            raise
        paid = getattr(error, "paid", None)
        usage = {"usage": asdict(paid), "cost": paid.cost} if paid else {}
        told = _json({"status": "error", "reason": str(error), "exit_code": error.exit_code, **usage})
        (_print if to_stderr else _write)(told)
        raise typer.Exit(error.exit_code) from error


def _text(argument: str) -> str:
    """An argument as it can be written: its bytes that are no UTF-8 as escapes."""
    return argument.encode("utf-8", "backslashreplace").decode()


def _tell(report: Any, as_json: bool, quiet: bool, verbose: bool, *, json_to_stderr: bool) -> None:
    if report.stdout:
        _put(report.stdout)
    if as_json and json_to_stderr:
        _print(_json(report.json))
    elif as_json:
        _write(_json(report.json))
    elif report.exit_code or not quiet:
        for line in (*report.lines, *(report.notes if verbose else _few(report.notes))):
            say(line)


def _few(notes: Sequence[str]) -> list[str]:
    return [*notes[:3], *([f"... and {len(notes) - 3} more notes; -v shows them"] if len(notes) > 3 else [])]


def _json(value: Any) -> str:
    import json

    return json.dumps(value) + "\n"


def _write(text: str) -> None:
    """Text on standard output, whatever its encoding."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    _put(text.encode(encoding, "backslashreplace"))


def _put(data: bytes) -> None:
    """The result on standard output; a reader that leaves early is nobody's fault, a full disk is said."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except (OSError, AttributeError) as error:  # None where it was closed
        raise _unwritten(error) from error


def _unwritten(error: OSError | AttributeError) -> OutputError:
    reason = os.strerror(error.errno or 0).lower() if isinstance(error, OSError) else "it is closed"
    with suppress(OSError, AttributeError):  # or it would be tried again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OutputError(f"standard output: {reason}; send it elsewhere")


def say(text: str) -> None:
    """One line for people, on standard error, with nothing that a terminal obeys; any encoding can take it."""
    _print(harmless(text) + "\n")


def _print(text: str) -> None:
    """Text on standard error, where there is one."""
    with suppress(OSError, AttributeError):
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _trigger(budget: str, at: str) -> tuple[int | None, float]:
    from compactor.trigger import DEFAULT_AT

    if not budget and not at:
        return None, DEFAULT_AT
    share = DEFAULT_AT
    if at:
        match = re.fullmatch(r"(\d*\.?\d+)(%?)", at)
        share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
        if not 0 < share <= 1:
            message = f"--at {at}: it takes a share such as 0.65 or 65%"
            raise UsageError(message)
    if budget in ("", "window"):
        return 0, share
    match = re.fullmatch(r"(\d[\d_,]*)([kKmM]?)", budget)
    tokens = int(re.sub(r"[_,]", "", match[1])) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2].lower()] if match else 0
    if not tokens:
        message = f"--budget {budget}: it takes a number of tokens, such as 128000 or 128k, or window"
        raise UsageError(message)
    return tokens, share


def _numbers(text: str) -> tuple[int, ...]:
    if text and not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text):
        message = f"--select {text}: it takes numbers from 1, such as 1,3"
        raise UsageError(message)
    return tuple(dict.fromkeys(int(number) for number in text.split(","))) if text else ()


@app.command()
def prompt(
    transcript: Path,
    model: ModelOption = "",
    window: WindowOption = None,
    prompt_file: PromptOption = "",
    thinking: ThinkingOption = False,
    focus: Annotated[str, typer.Option(help="What the summary should look at most.")] = "",
    keep: Annotated[int | None, typer.Option(min=0, help="Messages to keep verbatim at least (8).")] = None,
    keep_turns: Annotated[int | None, typer.Option(min=0, help="Turns to keep verbatim at least.")] = None,
    keep_tokens: Annotated[int | None, typer.Option(min=0, help="Tokens to keep verbatim at least.")] = None,
    max_summary: Annotated[int | None, typer.Option(min=1, help="Tokens the block may take.")] = None,
    summary: Annotated[str, typer.Option(help="The summary file behind an earlier block.")] = "",
    reuse_prefix: Annotated[
        bool, typer.Option("--reuse-prefix", help="As it would be sent behind the original messages.")
    ] = False,
    format_name: Annotated[str, typer.Option("--format", help="The input's format (see compact formats).")] = "",
    select: Annotated[str, typer.Option(metavar="N,...", help="Which conversations of the file, from 1.")] = "",
    no_redact: NoRedactOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="The requests, one JSON object on each line.")] = False,
) -> None:
    """Print what a model would be sent; nothing is asked.

    Example: compact prompt session.jsonl -m openai/gpt-4o
    """
    from compactor import job as jobs
    from compactor.asking import Ask
    from compactor.pipeline import Options
    from compactor.split import Keep

    with _errors_as_json(as_json):
        options = Options(keep=Keep(keep, keep_turns, keep_tokens), max_summary=max_summary, focus=_text(focus),
                          redact=not no_redact)  # fmt: skip
        ask = Ask(model, window=window or 0, reuse_prefix=reuse_prefix, instruction=_instruction(prompt_file),
                  thinking=thinking)  # fmt: skip
        job = jobs.Job(transcript, options, ask, summary=summary, format=format_name, select=_numbers(select))
        requests = jobs.requests(job)
    for number, request in enumerate(requests, 1):
        if as_json:
            told = {"messages": list(request.messages), "max_tokens": request.max_tokens, "schema": request.schema}
            _write(_json(told | {"tools": list(request.tools), "tokens": request.tokens}))
            continue
        say(f"request {number} of {len(requests)}: {request.tokens:,} tokens in, {request.max_tokens:,} out at most")
        for message in request.messages:
            content = message["content"]
            _write(f"# {message['role']}\n\n{content if isinstance(content, str) else _json(message)}\n\n")
    if not requests:
        say(f"{transcript}: nothing to do, so no model would be asked")
    elif not window and not model:
        say("a window of 128,000 tokens is assumed; -m MODEL or --window says otherwise")


@app.command()
def show(
    summary: Annotated[str, typer.Argument(metavar="SUMMARY", help="A .summary.json that compact run wrote, or -.")],
    as_json: Annotated[bool, typer.Option("--json", help="The file's content as one JSON line.")] = False,
) -> None:
    """Show a summary: the three answers first, then every item.

    Example: compact show session.summary.json
    """
    from compactor import files
    from compactor import summary as summaries
    from compactor.render import markdown

    with _errors_as_json(as_json):
        raw, _ = files.read_input(summary)
        loaded = summaries.load(raw, summary)
    if as_json:
        import json

        _write(_json(json.loads(raw)))
        return
    for one in loaded:
        sources = one.provenance.get("sources") or [{}]
        title = str(sources[-1].get("name", summary)) + (f" #{one.select}" if len(loaded) > 1 else "")
        _write(harmless(markdown(one.snapshot, title)))


@app.command()
def schema(
    which: Annotated[str, typer.Argument(metavar="[summary|update]", help="Which schema.")] = "summary",
) -> None:
    """Print the JSON Schema of the summary file, or of an update.

    Example: compact schema update
    """
    import json

    from compactor.schema import schemas

    if which not in schemas():
        message = f"no schema {which}: it takes {' or '.join(schemas())}"
        raise UsageError(message)
    _write(json.dumps(schemas()[which], indent=2, ensure_ascii=False) + "\n")


@app.command()
def verify(
    summary: Annotated[str, typer.Argument(metavar="SUMMARY", help="The summary file to check.")],
    transcripts: Annotated[
        list[str] | None, typer.Argument(metavar="[TRANSCRIPT...]", help="Its sources, and its output.")
    ] = None,
    workspace: Annotated[
        str, typer.Option(metavar="DIR", help="The agent's folder: the files that the summary tells of are looked up.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The verdicts as one JSON object.")] = False,
) -> None:
    """Check a summary against the transcripts it cites, matched by hash.

    A summary in prose too, as far as that goes: a text with its transcript, or a session that its client has compacted.

    Examples:

      compact verify session.summary.json session.jsonl

      compact verify handover.md session.jsonl

      compact verify compacted-by-its-client.jsonl
    """
    from compactor import table
    from compactor.recheck import recheck

    with _errors_as_json(as_json):
        result = recheck(summary, transcripts or [], workspace)
    if as_json:
        _write(_json(result.as_dict()))
    else:
        terminal = sys.stdout.isatty()
        _write(table.findings(result.rows, width(terminal), terminal))
        for line in result.lines:
            say(line)
    raise typer.Exit(0 if result.ok else 1)


@app.command()
def convert(
    transcript: Path,
    to: Annotated[str, typer.Option("--to", metavar="openai|anthropic", help="Whose messages.")] = "openai",
    out: Annotated[str, typer.Option("-o", "--out", help="Where they go; - for standard output.")] = "-",
    format_name: Annotated[str, typer.Option("--format", help="The input's format (see compact formats).")] = "",
    select: Annotated[int, typer.Option(min=1, metavar="N", help="Which conversation of the file, from 1.")] = 1,
    force: Annotated[bool, typer.Option("-f", "--force", help="Replace what is there.")] = False,
) -> None:
    """Write the live conversation as a plain list of messages, one on each line.

    Example: compact convert rollout.jsonl --to anthropic -o messages.jsonl
    """
    from compactor import files, formats
    from compactor.convert import DIALECTS
    from compactor.convert import convert as converted
    from compactor.formats.lines import dump

    dialect = next((name for name in DIALECTS if name == to), None)
    if dialect is None:
        message = f"--to {to}: it takes {' or '.join(DIALECTS)}; other directions would lose something"
        raise UsageError(message)
    raw, _ = files.read_input(transcript)
    source = formats.read(raw, transcript, format_name or None)
    if select > len(source.transcripts):
        message = f"--select {select}: {transcript} holds {len(source.transcripts)} conversations"
        raise UsageError(message)
    done = converted(source.transcripts[select - 1], dialect)
    data = b"".join(dump(message) + b"\n" for message in done.messages)
    if out == files.STDIN:
        _write(data.decode("utf-8", "surrogateescape"))
    elif force:
        files.write_atomic(out, data)
    else:
        files.write_new(out, data)
    lost = ", ".join(f"{number} {what}" for what, number in done.lost.items() if what and number)
    say(f"{transcript}: {len(done.messages)} messages" + (f"; left out: {lost}" if lost else ""))


@app.command()
def inspect(
    transcripts: Annotated[list[str], typer.Argument(metavar="TRANSCRIPT...", help="Transcript files, or -.")],
    format_name: Annotated[str, typer.Option("--format", help="The input's format (see compact formats).")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each file, a line each.")] = False,
) -> None:
    """Show what a transcript is: format, messages, tokens by speaker, calls, compactions, safe cuts, damage.

    Example: compact inspect session.jsonl
    """
    from compactor import files, formats, overview
    from compactor.tokens import counter_for

    for transcript in transcripts:
        with _errors_as_json(as_json):
            raw, _ = files.read_input(transcript)
            source = formats.read(raw, transcript, format_name or None)
        told = overview.overview(source, lambda model: counter_for(model).part)
        _write(_json(told) if as_json else "".join(harmless(line) + "\n" for line in overview.lines(told)))


@app.command("formats")
def list_formats() -> None:
    """List the transcript formats that are read and written.

    Example: compact formats
    """
    from compactor import formats

    for name, found in formats.formats().items():
        _write(f"{name:<14} {found.title}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code. The one place where errors become exit codes."""
    command = typer.main.get_command(app)
    try:
        command.main(args=None if arguments is None else list(arguments), prog_name="compact")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except CompactError as error:
        paid = getattr(error, "paid", None)
        say(f"compact: {error}" + (f" (paid for nothing: {paid.told})" if paid and paid.calls else ""))
        return error.exit_code
    except OSError as error:
        failed = _unwritten(error)
        say(f"compact: {failed}")
        return failed.exit_code
    except KeyboardInterrupt:
        return 130
    return 0
