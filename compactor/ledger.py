"""What code alone knows of a conversation.

The ledger is the offline summary's material, the hint list for a model, and the yardstick of the checks. It is read off
the entries in one pass: what the human said, what each turn came to, plans, files, commands and their outcomes, jobs,
what the agent decided and found, and how likely each identifier is to be used again.
"""

import json
import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from compactor import words
from compactor.identifiers import identifiers
from compactor.tools import action, command_of, path_of, strings
from compactor.transcript import Entry, Part, Ref, ref

OWN_WORDS, FOREIGN_WORDS = 3.0, 0.2
"""How much an identifier gains when the agent writes it, and when a tool or user shows it."""
MOST_WEIGHT = 12.0
"""What one identifier can weigh at most."""
HALF_LIFE = 0.25
"""After this share of the conversation a mention has lost 1/e of what fades."""
APPROVAL_LIMIT = 80
"""A longer statement that begins with a yes says more than yes."""
INTRO_DISTANCE = 4
"""A sentence introduces a change when at most so many entries lie between."""
LINES_KEPT = 600
"""Of one file's changes at most so many of the latest new lines are remembered."""
HEAD_OF_OUTPUT, END_OF_OUTPUT = 3_000, 6_000
"""Characters of a long output among which the telling line is looked for."""
PIECE_LIMIT = 260
"""Characters up to which a user's message is one statement; a longer one is taken sentence by sentence."""


SHOWN_DOCUMENT = "the document the user showed"
"""What a line is from that stands in a user's message beside what they say."""

SaidKind = Literal[
    "rule", "permission", "approval", "choice", "request", "question", "correction", "criterion", "word"
]  # fmt: skip


SaidIn = Literal["turn", "answer", "refusal"]
"""Where the human speaks: in a turn of their own, answering the agent's question, refusing a tool use."""


@dataclass(frozen=True, slots=True)
class Said:
    """Something the human said, verbatim."""

    ref: str
    text: str
    turn: int
    kind: SaidKind
    first: bool = False
    """Whether it opens its message."""
    outward: bool = False
    limited: bool = False
    """Whether a limit is said with it."""
    shows: str = ""
    """The first line of the document that follows, where the statement announces one."""
    answering: "Line | None" = None
    """The agent's question or proposal that an approval or answer answers."""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence or line of somebody else than the human, verbatim."""

    ref: str
    text: str
    position: int
    """Which entry of the story holds it, from 0."""
    about: str = ""
    """For a line of output: the file or command it is from, with the ref of the call behind it."""
    about_ref: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one request came to."""

    number: int
    position: int
    asked: tuple[Said, ...]
    answer: Line | None
    """The agent's closing words."""
    proof: str
    """The ref of the last result that succeeded in it, of a tool that changes or runs something; else empty."""
    failed: str
    """The ref of a last run that failed, else empty."""
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Todo:
    text: str
    status: str
    """As the plan has it: pending, in_progress, completed, deleted."""
    ref: str
    """The call that gave it this status."""
    origin: str
    """The call that named it."""
    proof: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A file the agent's tools touched."""

    path: str
    state: Literal["created", "modified", "read", "deleted"]
    refs: tuple[str, ...]
    """The first call that touched it and the last that changed it."""
    intro: Line | None
    """The agent's sentence that introduced the last change, or the first look."""
    lines: tuple[Line, ...] = ()
    """The lines that the agent's changes brought and no later change took away, verbatim from the calls."""
    change_ref: str = ""
    """The last call that changed it."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line and its outcome."""

    text: str
    purpose: str
    ref: str
    result: str
    position: int
    ok: bool
    exit_code: int | None
    told: str
    """The most telling line of its output, verbatim."""
    is_test: bool
    background: bool = False
    fixed_by: str = ""
    """The ref of the first later run of the same command that succeeded, where this one failed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A tool use that the user refused."""

    ref: str
    call: str
    text: str
    """The tool and its main argument."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something a tool of one's own did: a booking, a message, a change of a record."""

    text: str
    ref: str
    result: str
    position: int


@dataclass(frozen=True)
class Ledger:
    said: tuple[Said, ...] = ()
    turns: tuple[Turn, ...] = ()
    plan: tuple[Todo, ...] = ()
    files: tuple[File, ...] = ()
    commands: tuple[Command, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    approved: tuple[Line, ...] = ()
    """Plans the user approved: their titles, at the approval, about the call."""
    acts: tuple[Act, ...] = ()
    jobs: tuple[Line, ...] = ()
    """Jobs started and not seen finished."""
    decided: tuple[Line, ...] = ()
    rejected: tuple[Line, ...] = ()
    risks: tuple[Line, ...] = ()
    sentences: tuple[Line, ...] = ()
    """Every sentence of the agent's own text."""
    outputs: tuple[Line, ...] = ()
    """Lines of tool output that hold identifiers worth keeping."""
    prose: tuple[Line, ...] = ()
    """Sentences of an earlier summary that a client's model wrote."""
    weight: Mapping[str, float] = field(default_factory=dict)
    """How likely an identifier is to be used again; only its order means something."""
    seen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Where tools, users or calls show an identifier: the first and the last such ref."""

    @property
    def ahead(self) -> Line | None:
        """The agent's last sentence, where it says what comes next and not what came out: the last turn goes on."""
        last = self.sentences[-1] if self.sentences else None
        return last if last and (words.looks_ahead(last.text) or last.text.endswith((":", "："))) else None


def extract(source: str, story: Sequence[Entry]) -> Ledger:
    """The ledger of some entries of the source with that short name, in order."""
    reader = _Reader(source, story)
    for position, entry in enumerate(story):
        reader.take(position, entry)
    return reader.ledger()


FAILS = re.compile(
    r"^[^\w\n]{0,9}(?:FAILED|FAIL\b|--- FAIL|exit code [1-9])|\b[1-9]\d* failed\b", re.IGNORECASE | re.MULTILINE
)
"""What a test run or a shell says in its output when it failed, whatever the record says."""
_TEST = re.compile(
    r"\b(?:pytest|unittest|jest|vitest|mocha|rspec|phpunit|ctest|tox|nox|(?:go|cargo|npm|yarn|pnpm|bun|deno|mix|dotnet"
    r"|swift|make|mise run|gradle|mvn|rake|rails)\s+(?:run\s+)?test\S*)"
)
_NOISE = re.compile(r"^(?:\W*|(?:total|drwx|-rw|Exit code)\b.*|\s*\d+\s*|\s*</?[\w-]+>.*)$")
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
"""What a client puts behind a result for the agent."""
_PLUMBING = re.compile(r"(?<!\s)\s*+(?:2?>(?:&1|\S+)|\||;|&&\s*echo\b).*$", re.DOTALL)
"""What follows the command proper: where its output goes."""
GUTTERS = re.compile(r"^[ \t]*\d+(?:→|\t|\|)", re.MULTILINE)
"""Line numbers that a read tool puts before each line."""
_GUTTER = re.compile(r"^\s*\d+(?:→|\t|\|)\s?")
_MATCHED = re.compile(r"(?:(?P<path>[^\s:]*[\w)]\.\w{1,8})[:-])?\d+(?::(?!\d)|-(?=\s))\s*(?P<text>.+)")
"""A line as a search shows it: of which file, where, what."""
_BACKGROUND = re.compile(
    r"agentId: (?P<agent>\w+)|(?:running|moved) (?:in|to) (?:the )?background (?:with ID: |\(ID: )(?P<shell>[\w-]+)"
    r"|moved to the background|agent launched",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(r"moved to the background|did not complete within|timed out after", re.IGNORECASE)
BROKEN = re.compile(r"\b(?:fatal|error|exception|panic|denied|not found|failed)\b(?! 0|: 0)", re.IGNORECASE)
"""What a line says when something went wrong."""
_ACTS = re.compile(
    r"(?:^|_|\b)(?:update|book|cancel|create|send|delete|modify|set|add|submit|transfer|pay|refund|post|return|exchange)",
    re.IGNORECASE,
)
"""Tools of one's own that do something, by their verb."""
_FINISHED = re.compile(
    r"(?:task|agent|bash|shell)-id>\s*([\w-]+)|status.{0,3}(?:completed|failed|killed)", re.IGNORECASE
)
_TELLING = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|fatal|panic|exception|traceback|passed|ok\b|PASS|FAIL|warning|created|committed"
    r"|\d+ (?:tests?|files?|insertions?))",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"^(?:FAILED|FAIL:|--- FAIL|E   |error|fatal|panic)\W.{8,}|\b\w*(?:Error|Exception)\b:? .{4,}", re.IGNORECASE
)
"""A line that names what failed."""
_SAYS_NOTHING = re.compile(r"Exit code|\W*(?:FAILURES|ERRORS)\W*$|(?:--- )?PASS\b|ok\b")
_MOVED = re.compile(r"(?:^|[;&|]\s*|\b)(?:git\s+)?(rm|mv)\s+(?:-\w+\s+)*(.+?)(?=[;&|]|$)")


LOOKS = re.compile(
    r"\s*(?:cd \S+ *&& *)?(?:git (?:-C \S+ )?(?:diff|log|show|status|branch|blame|ls-files|rev-parse|cat-file)"
    r"|ls|cat|head|tail|grep|rg|find|wc|sed -n|echo|pwd|which|tree|stat|file|jq|awk|sort|date|ps|env|type)\b"
)
"""Commands that only look: their output counts, that they worked proves nothing."""


class _Reader:
    """The state of the one pass."""

    def __init__(self, source: str, story: Sequence[Entry]) -> None:
        self.source, self.story = source, story
        self.turn = 0
        self.said: list[Said] = []
        self.starts: list[tuple[int, bool]] = []
        self.sentences: list[Line] = []
        self.prose: list[Line] = []
        self.outputs: list[Line] = []
        self.commands: list[Command] = []
        self.refusals: list[Refusal] = []
        self.approved: list[Line] = []
        self.acts: list[Act] = []
        self.todos: dict[str, Todo] = {}
        self.files: dict[str, File] = {}
        self.before: dict[str, File | None] = {}
        """What was known of a file before each change, by the ref of the call."""
        self.undone: set[str] = set()
        """The calls that were refused or failed."""
        self.calls: dict[str, tuple[int, int, Part]] = {}
        self.jobs: dict[str, Line] = {}
        self.results: list[tuple[int, str, bool, str]] = []
        self.gains: dict[str, float] = defaultdict(float)
        self.seen: dict[str, tuple[str, ...]] = {}
        self.last_line: Line | None = None
        self.options: dict[str, Line] = {}
        """The numbered lines of the agent's last list, by number."""
        self.task_ids: dict[str, str] = {}

    def take(self, position: int, entry: Entry) -> None:
        for number, part in enumerate(entry.parts, 1):
            here = ref(self.source, entry, number if len(entry.parts) > 1 else 0)
            self._weigh(position, part, here)
            if part.kind == "call":
                self._call(position, part, here)
            elif part.kind == "result":
                self._result(position, part, here)
            if part.said:
                self._human(position, part, here)
            elif part.kind == "text" and part.speaker == "assistant":
                self._agent(position, part.text, here)
            elif part.speaker == "summary" and part.text:
                self.prose += [Line(here, text, position) for text in words.sentences(part.text)]
            elif part.speaker == "harness":
                self._harness(part.text)

    def _weigh(self, position: int, part: Part, here: str) -> None:
        if part.kind == "thinking" or part.speaker == "harness" or not part.text:
            return
        own = part.speaker == "assistant"
        age = (len(self.story) - position) / (len(self.story) * HALF_LIFE)
        gain = (OWN_WORDS if own else FOREIGN_WORDS) * (0.3 + math.exp(-age))
        for identifier in set(identifiers(_material(part))):
            self.gains[identifier] += gain
            if part.kind == "call" or not (own or part.speaker == "summary"):
                known = self.seen.get(identifier)
                self.seen[identifier] = (known[0], here) if known else (here,)

    # -- the human

    def _human(self, position: int, part: Part, here: str) -> None:
        own_turn = part.kind == "text" and part.speaker in ("human", "harness")
        role: SaidIn = "turn" if own_turn else "refusal" if part.verdict == "refused" else "answer"
        if own_turn:
            self.turn += 1
            self.starts.append((position, False))
        for piece in part.said:
            heading, first = "", True
            for text in [piece] if len(piece) <= PIECE_LIMIT else _grouped(piece):
                heading = _heading(heading, text)
                said = self._classify(text, here, first, heading, role)
                asked = next((question for question, answer in part.answers if answer == piece), "")
                if asked:
                    said = replace(said, answering=Line(here, asked, position))
                if text.endswith((":", "：")):
                    said = replace(said, shows=_following(part.text, text))
                self.said.append(said)
                first = False
        if own_turn:
            self._document(position, part, here)

    def _document(self, position: int, part: Part, here: str) -> None:
        """What the user showed beside speaking: its lines are material like a tool's output."""
        spoken = "\n".join(part.said)
        for line in part.text.split("\n"):
            text = _MARKUP.sub("", line.strip())
            if 12 <= len(text) <= 400 and not _NOISE.match(text) and text not in spoken:
                self.outputs.append(Line(here, text, position, SHOWN_DOCUMENT, here))

    def _classify(self, text: str, here: str, first: bool, heading: str, role: SaidIn) -> Said:
        kind = _kind_under(heading, text) or _kind(text, first, role)
        line = self.last_line if kind in ("approval", "choice", "permission") or _ANSWERS.match(text) else None
        if match := re.fullmatch(r"(?:.*\boption |#)?(\d{1,2})\W*", text, re.IGNORECASE):
            line = self.options.get(match[1], line)
        return Said(
            here, text, self.turn, kind, first, words.is_outward(words.own(text)), words.has_limit(text), answering=line
        )

    def _harness(self, text: str) -> None:
        if text.startswith("[Request interrupted") and self.starts:
            self.starts[-1] = (self.starts[-1][0], True)
        for job in list(self.jobs):
            if job and job in text:
                del self.jobs[job]

    # -- the agent

    def _agent(self, position: int, text: str, here: str) -> None:
        numbered = {m[1]: Line(here, m[2].strip(), position) for m in _OPTION.finditer(text)}
        self.options = numbered or self.options
        for sentence in _plain_sentences(text):
            line = Line(here, sentence, position)
            self.sentences.append(line)
            if words.length(sentence) > 12:
                self.last_line = line

    def _call(self, position: int, part: Part, here: str) -> None:
        self.calls[part.call_id] = (position, self.turn, replace(part, text=here))
        does, path = action(part.name), path_of(part.input)
        if does in ("read", "write", "edit") and path:
            self._touch(does, path, part, here, position)
        elif does == "plan":
            self._plan(part, here)

    def _touch(self, does: str, path: str, part: Part, here: str, position: int) -> None:
        known = self.files.get(path)
        near = self.last_line and position - self.last_line.position <= INTRO_DISTANCE
        intro = self.last_line if near else None
        if does == "read":
            if not known:
                self.files[path] = File(path, "read", (here,), intro)
            return
        self.before[here] = known
        state: Any = "created" if does == "write" and (not known or known.state == "created") else "modified"
        refs = (known.refs[0], here) if known and known.refs[0] != here else (here,)
        gone, new = _replaced(part.input)
        kept = () if does == "write" or not known else tuple(line for line in known.lines if line.text not in gone)
        brought = tuple(Line(here, text, position) for text in new)
        lines = (*kept, *brought)[-LINES_KEPT:]
        self.files[path] = File(path, state, refs, intro or (known.intro if known else None), lines, here)

    def _plan(self, part: Part, here: str) -> None:
        todos = part.input.get("todos") or part.input.get("plan") or part.input.get("items")
        if isinstance(todos, list):
            self.todos = {}
            for todo in todos:
                if isinstance(todo, Mapping):
                    text = str(todo.get("content") or todo.get("step") or todo.get("title") or todo.get("text") or "")
                    if text:
                        self.todos[text] = Todo(text, str(todo.get("status") or "pending"), here, here)
        elif isinstance(subject := part.input.get("subject"), str) and "taskId" not in part.input:
            self.todos[part.call_id] = Todo(subject, "pending", here, here)
        elif task := str(part.input.get("taskId") or part.input.get("task_id") or ""):
            key = self.task_ids.get(task, "")
            if key in self.todos:
                old = self.todos[key]
                status = str(part.input.get("status") or old.status)
                subject = part.input.get("subject")
                named = here if isinstance(subject, str) else old.origin
                self.todos[key] = Todo(subject if isinstance(subject, str) else old.text, status, here, named)

    # -- the tools

    def _result(self, position: int, part: Part, here: str) -> None:
        made = self.calls.get(part.call_id)
        if not made:
            return
        call_position, turn, call = made
        does, call_ref = action(call.name), call.text
        if part.verdict == "refused":
            what = command_of(call.input) or path_of(call.input) or _argument(call.input)
            what = what.strip().split("\n")[0]
            self.refusals.append(Refusal(here, call_ref, f"{call.name}: {what}" if what else call.name))
            self._untouch(call, call_ref)
            return
        if part.failed and does in ("read", "write", "edit"):
            self._untouch(call, call_ref)
        if does == "other" and _ACTS.search(call.name) and not part.failed and not BROKEN.search(part.text[:200]):
            self.acts.append(Act(_told_act(call), call_ref, here, position))
            does = "write"
        if does == "approve" and part.verdict == "approved":
            self._approved(position, call, call_ref, here)
        self.results.append((turn, here, part.failed, does))
        if does == "plan" and "subject" in call.input and (match := re.search(r"#(\d+)", part.text)):
            self.task_ids[match[1]] = part.call_id
        if does in ("run", "delegate") and (match := _BACKGROUND.search(part.text[:2000])):
            found = _BACKGROUND.finditer(part.text[:2000])
            job = next((m["agent"] or m["shell"] for m in found if m["agent"] or m["shell"]), part.call_id)
            what = command_of(call.input) or str(call.input.get("description") or call.name)
            self.jobs[job.strip(".,")] = Line(here, words.clip(what, 160), position, "", call_ref)
        elif does == "run":
            self._ran(call_position, call, call_ref, part, here)
        if does == "poll" and _FINISHED.search(part.text[:4000]):
            wanted = json.dumps(dict(call.input), default=str)
            for job in [job for job in self.jobs if job in wanted]:
                del self.jobs[job]
        if part.text and does not in ("plan", "ask", "approve"):
            self._lines(position, call, call_ref, part, here)

    def _approved(self, position: int, call: Part, call_ref: str, here: str) -> None:
        """A plan the user approved: a decision of theirs, and a document whose lines are material."""
        plan = call.input.get("plan")
        lines = [line.strip() for line in plan.split("\n") if line.strip()] if isinstance(plan, str) else []
        title = lines[0].lstrip("# ") if lines else "the plan"
        self.approved.append(Line(here, words.clip(title, 200), position, "", call_ref))
        kept = (_MARKUP.sub("", line) for line in lines if 12 <= len(line) <= 400 and not _NOISE.match(line))
        self.outputs += [Line(call_ref, line, position, "the approved plan", call_ref) for line in kept]

    def _untouch(self, call: Part, call_ref: str) -> None:
        """Take back what a call that came to nothing was to do to its file."""
        path = path_of(call.input)
        known = self.files.get(path)
        self.undone.add(call_ref)
        while known and known.change_ref in self.undone:
            known = self.before[known.change_ref]
        if known and (refs := tuple(ref for ref in known.refs if ref not in self.undone)):
            lines = tuple(line for line in known.lines if line.ref not in self.undone)
            self.files[path] = replace(known, refs=refs, lines=lines)
        else:
            self.files.pop(path, None)

    def _ran(self, position: int, call: Part, call_ref: str, part: Part, here: str) -> None:
        text = command_of(call.input)
        ok = not part.failed and part.exit_code in (None, 0) and not _UNDECIDED.search(part.text[:1000])
        if ok and part.exit_code is None:
            ok = not BROKEN.search(_telling_line(part.text, ok))
        is_test = bool(_TEST.search(text))
        ok = ok and not FAILS.search(part.text)
        purpose = str(call.input.get("description") or "")
        told = _telling_line(part.text, ok)
        self.commands.append(Command(text, purpose, call_ref, here, position, ok, part.exit_code, told, is_test))
        if ok:
            self._gone(text, call_ref)

    def _gone(self, command: str, call_ref: str) -> None:
        for match in _MOVED.finditer(command):
            operands = match[2].split()
            moved = match[1] == "mv" and len(operands) == 2 and not operands[1].endswith(("/", "."))
            gone = operands if match[1] == "rm" else operands[:1]
            for path in list(self.files):
                if any(path == name or path.endswith("/" + name.removeprefix("./")) for name in gone):
                    known = self.files[path]
                    self.files[path] = replace(known, state="deleted", refs=(known.refs[0], call_ref), lines=())
                    if moved:
                        self.files[operands[1]] = replace(known, path=operands[1], state="created", refs=(call_ref,))

    def _lines(self, position: int, call: Part, call_ref: str, part: Part, here: str) -> None:
        about = path_of(call.input) or words.clip(command_of(call.input).split("\n")[0], 80) or _argument(call.input)
        for line in REMINDER.sub("", part.text).split("\n"):
            if 12 <= len(line) <= 400 and not _NOISE.match(line):
                found = _MATCHED.match(line)
                text = (found["text"] if found else _GUTTER.sub("", line)).strip()
                if len(text) >= 12:
                    where = (found and found["path"]) or about
                    self.outputs.append(Line(here, text, position, where, call_ref))

    # -- the end

    def ledger(self) -> Ledger:
        own = [line for line in self.sentences if len(line.text) > 16]
        return Ledger(
            said=tuple(self.said),
            turns=tuple(self._turns()),
            plan=tuple(self._finished_plan()),
            files=tuple(self.files.values()),
            commands=tuple(_with_fixes(self.commands)),
            refusals=tuple(self.refusals),
            approved=tuple(self.approved),
            acts=tuple(self.acts),
            jobs=tuple(self.jobs.values()),
            decided=tuple(line for line in own if words.decides(line.text)),
            rejected=tuple(line for line in own if words.rejects(line.text)),
            risks=tuple(line for line in own if words.warns(line.text)),
            sentences=tuple(self.sentences),
            outputs=tuple(self.outputs),
            prose=tuple(self.prose),
            weight={identifier: min(gain, MOST_WEIGHT) for identifier, gain in self.gains.items()},
            seen=self.seen,
        )

    def _turns(self) -> Iterator[Turn]:
        asked: dict[int, list[Said]] = defaultdict(list)
        for said in self.said:
            asked[said.turn].append(said)
        results: dict[int, list[tuple[str, bool, str]]] = defaultdict(list)
        for turn, here, bad, does in self.results:
            results[turn].append((here, bad, does))
        failed_runs = {command.result for command in self.commands if not command.ok}
        proving = self._proving()
        ends = [*(position for position, _ in self.starts[1:]), len(self.story)]
        places = [line.position for line in self.sentences]
        for number, ((position, interrupted), end) in enumerate(zip(self.starts, ends, strict=False), 1):
            own = self.sentences[bisect_left(places, position) : bisect_left(places, end)]
            runs = [r for r in results[number] if r[2] == "run"]
            failed = runs[-1][0] if runs and runs[-1][0] in failed_runs else ""
            proof = next((here for here, _, _ in reversed(results[number]) if here in proving), "")
            yield Turn(number, position, tuple(asked[number]), _closing(own), proof, failed, interrupted)

    def _proving(self) -> dict[str, None]:
        """The results that prove a step: of tools that change or run something, and neither failed nor only looked."""
        weak = {c.result for c in self.commands if not c.ok or LOOKS.match(c.text)}
        changed = (here for _, here, failed, does in self.results if not failed and does in ("write", "edit", "run"))
        return {here: None for here in changed if here not in weak}

    def _finished_plan(self) -> Iterator[Todo]:
        """The plan's last state, each finished step with the last success before it was ticked off."""
        proving = list(self._proving())
        lines = [Ref.parse(here).line for here in proving]
        for todo in self.todos.values():
            before = bisect_right(lines, Ref.parse(todo.ref).line)
            yield replace(todo, proof=proving[before - 1] if todo.status == "completed" and before else "")


def _material(part: Part) -> str:
    """What a part says in identifiers: a call's values without the names and escapes of its JSON, a file's lines alone.

    Line numbers before them and a client's reminders behind them are nothing that anybody would use again.
    """
    if part.kind == "call" and part.input:
        return "\n".join(strings(part.input))
    if part.kind == "result" and action(part.name) == "read":
        return GUTTERS.sub("", REMINDER.sub("", part.text))
    return part.text


def _told_act(call: Part) -> str:
    """What a tool of one's own was told to do, in words."""
    given = [f"{key} {value}" for key, value in call.input.items() if isinstance(value, str | int | float)]
    return words.clip(f"{call.name} with {', '.join(given)}" if given else call.name, 200)


def _grouped(piece: str) -> Iterator[str]:
    """The sentences of a long statement, short neighbours of one line together, verbatim."""
    held = ""
    for sentence in words.sentences(piece):
        joined = f"{held} {sentence}" if held else sentence
        if held and (len(joined) > PIECE_LIMIT or joined not in piece):
            yield held
            held = sentence
        else:
            held = joined
    if held:
        yield held


_ANSWERS = re.compile(r"(?:no|yes|yeah|don'?t|do not)\b", re.IGNORECASE)
_TELLS = re.compile(r"(?:context|background|problem|motivation|overview|summary|why)\b", re.IGNORECASE)
_TESTS = re.compile(r"\b(?:verif|accept|tests?\b|done when|success)", re.IGNORECASE)
_LISTED = re.compile(r"[-*•`]|\d+[.)]")
_ANNOUNCES = re.compile(r"[:：]\s*$")


def _heading(heading: str, text: str) -> str:
    """What stands above the next line: a heading until the next one, an announcement only over its own list."""
    if text.startswith("#") or _ANNOUNCES.search(text):
        return text.lstrip("# ")
    return heading if _LISTED.match(text) or not _ANNOUNCES.search(heading) else ""


def _kind_under(heading: str, text: str) -> SaidKind | Literal[""]:
    """What a line of a plan the user pasted is, by what stands above it; empty where the line itself must tell.

    A list under a line that announces one has its force: under "Tests should cover:" it is what must be met.
    """
    if _LISTED.match(text) and heading and not _TELLS.match(heading):
        if _TESTS.search(heading):
            return "criterion"
        if _ANNOUNCES.search(heading) and (words.is_request(heading) or words.is_rule(heading)):
            return "rule"
    return "word" if words.is_pasted(text) or text.startswith("#") or _TELLS.match(heading) else ""


def _kind(whole: str, first: bool, role: SaidIn) -> SaidKind:
    text, asks = words.own(whole), words.is_question(whole)
    if not text:
        return "question" if asks else "word"
    if words.is_criterion(text) and not asks:
        return "criterion"
    opening = next(words.sentences(text), "")
    if first and words.is_approval(text) and len(opening) <= APPROVAL_LIMIT and not (asks or words.is_outward(text)):
        return "permission" if words.is_permission(text) else "rule" if words.is_rule(text) else "approval"
    if words.is_denial(text) or (words.is_revocation(text) and not asks):
        return "rule"
    if words.is_permission(text) or (first and words.is_approval(text) and words.is_outward(text) and not asks):
        return "permission"
    if words.is_rule(text):
        return "rule"
    if role == "refusal" and not asks and words.refuses(text):
        return "rule"
    chosen = role == "answer" or words.is_choice(text) or re.fullmatch(r"(?:option |#)?\d{1,2}\W*", text, re.IGNORECASE)
    if chosen and not asks:
        return "choice"
    if first and words.is_correction(text):
        return "correction"
    if words.is_request(text):
        return "request"
    if asks:
        return "question"
    return "correction" if role == "refusal" else "word"


def _following(whole: str, text: str) -> str:
    after = whole[whole.find(text) + len(text) :].strip()
    return words.clip(_MARKUP.sub("", after.split("\n")[0]).strip(), 160)


_OPTION = re.compile(
    r"^[^\w\n]{0,8}(?:option )?(\d{1,2})[^\w\n]{0,8}[.):][^\w\n]{0,8}(.{4,200})", re.IGNORECASE | re.MULTILINE
)
_MARKUP = re.compile(r"^(?:[-*•]|\d+[.)]|#{1,6}|>)\s+")
_EMPHASIS = re.compile(r"(?<![\w(*`\\])\*\*(?=[^\s*])(.+?)(?<=[^\s*])\*\*(?![\w*])")
"""Bold text; two underscores are more often a name than emphasis."""


def _plain_sentences(text: str) -> Iterator[str]:
    """The sentences of an agent's text without list marks and emphasis; code blocks and tables are passed over."""
    outside = re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL)
    for sentence in words.sentences(_EMPHASIS.sub(r"\1", outside)):
        plain = _MARKUP.sub("", sentence).strip()
        if plain and not plain.startswith("|"):
            yield plain


def _closing(own: Sequence[Line]) -> Line | None:
    """The sentence in which the agent says what came of a turn: the first of its last text that reports."""
    if not own:
        return None
    last = [line for line in own if line.ref == own[-1].ref]
    telling = [
        line for line in last if not words.looks_ahead(line.text) and len(line.text) > 20 and line.text[-1] != ":"
    ]
    return (telling or last)[0]


def _replaced(arguments: Mapping[str, Any]) -> tuple[set[str], list[str]]:
    """The lines that a change takes away, and those that it brings."""
    edits = arguments.get("edits")
    pairs = [edit for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, list) else [arguments]
    gone, brought = set[str](), list[str]()
    for edit in pairs:
        old = _first(edit, "old_string", "old_str", "oldText").split("\n")
        new = _first(edit, "new_string", "new_str", "newText", "content", "file_text").split("\n")
        gone |= {line.strip() for line in old} - {line.strip() for line in new}
        known = {line.strip() for line in old}
        brought += [line.strip() for line in new if line.strip() not in known and 8 < len(line.strip()) <= 400]
    return gone, brought[:LINES_KEPT]


def _first(arguments: Mapping[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), "")


def _argument(arguments: Mapping[str, Any]) -> str:
    return next((words.clip(v.split("\n")[0], 80) for v in arguments.values() if isinstance(v, str) and v), "")


def _telling_line(output: str, ok: bool) -> str:
    """The line of an output that says how it went: of a failure the first that names it, else the last that tells."""
    lines = output.split("\n")
    if len(output) > HEAD_OF_OUTPUT + END_OF_OUTPUT:  # whole lines only: a piece of one would name what isn't there
        lines = output[:HEAD_OF_OUTPUT].split("\n")[:-1] + output[-END_OF_OUTPUT:].split("\n")[1:]
    full = [line.strip() for line in lines if len(line.strip()) > 3]
    telling = [line for line in full if _TELLING.search(line)]
    if not ok:
        named = [line for line in telling if _NAMED.search(line)]
        plain = [line for line in telling if len(line) > 14 and not _SAYS_NOTHING.match(line)]
        return words.clip((named or plain or telling or full or [""])[0], 200)
    return words.clip((telling or full or [""])[-1], 200)


def proper(command: str) -> str:
    """A command line without its redirections and pipes: what makes two runs the same."""
    return _PLUMBING.sub("", command).strip()


def _with_fixes(commands: Sequence[Command]) -> Iterator[Command]:
    """With the later run that shows a failed command mended: the same command, or for a test any of its runner."""
    later: dict[str, str] = {}
    fixed: list[Command] = []
    for command in reversed(commands):
        names = [proper(command.text), *(match[0] for match in _TEST.finditer(command.text))]
        if command.ok:
            later |= dict.fromkeys(names, command.result)
            fixed.append(command)
        else:
            mended = next((later[name] for name in names if name in later), "")
            fixed.append(replace(command, fixed_by=mended))
    return reversed(fixed)
