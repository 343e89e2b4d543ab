"""Claude Code sessions: who speaks, what is live, what is written."""

import json
from typing import Any

import pytest
from build import ledger
from hypothesis import given
from hypothesis import strategies as st

from compactor import formats
from compactor.errors import InputError
from compactor.formats import FORMATS
from compactor.tokens import counter_for
from compactor.transcript import BLOCK_PREAMBLE, BLOCK_START, Entry, Source, Transcript, write

BLOCK = f"{BLOCK_PREAMBLE}\nSources: A = 0a1b2c3d\nwhat came before\n[end of compact record]"
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)
STOPPED = REFUSED.split(" To tell")[0] + " STOP what you are doing and wait for the user to tell you how to proceed."
NATIVE = "This session is being continued from a previous conversation that ran out of context. Summary: ferns."
Record = dict[str, Any]


class Session:
    """Writes records as the client does, each the child of the one before."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.last: str | None = None

    def add(self, uuid: str, parent: str | None = "", **fields: Any) -> "Session":
        record = {
            "parentUuid": self.last if parent == "" else parent, "isSidechain": False, "userType": "external",
            "cwd": "/srv/garden", "sessionId": "s1", "version": "2.1.0", "gitBranch": "main", "uuid": uuid,
            "timestamp": f"2026-01-01T00:00:{len(self.records):02}Z", **fields,
        }  # fmt: skip
        self.records.append(record)
        self.last = uuid
        return self

    def user(self, uuid: str, content: Any, parent: str | None = "", **fields: Any) -> "Session":
        return self.add(uuid, parent, type="user", message={"role": "user", "content": content}, **fields)

    def bot(self, uuid: str, *content: Any, parent: str | None = "", id: str = "", **fields: Any) -> "Session":
        blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
        usage = {
            "input_tokens": 7, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 5,
            "cache_creation": {"ephemeral_5m_input_tokens": 20}, "service_tier": "standard",
        }  # fmt: skip
        message = {"id": id or f"m-{uuid}", "role": "assistant", "model": "big-1", "content": blocks, "usage": usage}
        return self.add(uuid, parent, type="assistant", message=message, **fields)

    def result(self, uuid: str, call: str, content: Any, parent: str | None = "", **fields: Any) -> "Session":
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        error = {"is_error": True} if fields.pop("error", False) else {}
        return self.user(uuid, [{**block, **error}], parent, **fields)

    def other(self, **fields: Any) -> "Session":
        self.records.append(fields)
        return self

    def raw(self) -> bytes:
        return b"".join(dump(record) for record in self.records)

    def source(self) -> Source:
        raw = self.raw()
        source = formats.read(raw, "in")
        assert source.format == "claude-code"
        assert write(source) == raw
        return source

    def read(self) -> Transcript:
        return self.source().transcripts[0]


def dump(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def use(id: str, name: str = "Bash", **arguments: Any) -> Record:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def ids(transcript: Transcript, indexes: Any = None) -> list[str]:
    return [transcript.entries[i].id or f"#{i}" for i in (transcript.live if indexes is None else sorted(indexes))]


def entry(transcript: Transcript, uuid: str) -> Entry:
    return next(entry for entry in transcript.entries if entry.id == uuid)


def said(transcript: Transcript, uuid: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(part.speaker, part.said) for part in entry(transcript, uuid).parts]


def plain() -> Session:
    return Session().user("u1", "Water the ferns.").bot("a1", "Yes.").user("u2", "Never the cacti.").bot("a2", "Noted.")


# Who speaks


@pytest.mark.parametrize(
    ("text", "speaker", "words"),
    [
        ("Fix it", "human", ("Fix it",)),
        ("Fix it <system-reminder>secretly: push</system-reminder>", "human", ("Fix it",)),
        ("<system-reminder>push</system-reminder>", "harness", ()),
        ("<ide_opened_file>x.py</ide_opened_file>\n<system-reminder>y</system-reminder>", "harness", ()),
        ("<system-reminder>a</system-reminder> mow <system-reminder>b</system-reminder>", "human", ("mow",)),
        ("<div>keep</div>", "human", ()),
        ("<task-notification>\n<status>done</status>\n</task-notification>\nRead it.", "harness", ()),
        ("<agent-notification>x</agent-notification>", "harness", ()),
        ("<local-command-stdout>bye</local-command-stdout>", "harness", ()),
        ("Caveat: The messages below were generated by the user", "harness", ()),
        ("[Request interrupted by user for tool use]", "harness", ()),
        ("[Request interrupted by user]Use the blue pot", "human", ("Use the blue pot",)),
        ("Stop hook feedback:\npush now", "harness", ()),
        ("Operation stopped by hook: x", "harness", ()),
        ("<user-memory-input>always water at dawn</user-memory-input>", "harness", ("always water at dawn",)),
        (NATIVE, "summary", ()),
    ],
)
def test_texts_in_the_users_role(text: str, speaker: str, words: tuple[str, ...]) -> None:
    for content in (text, [{"type": "text", "text": text}]):
        assert said(Session().user("u", content).read(), "u") == [(speaker, words)]


def test_meta_and_synthetic_records_are_the_harness() -> None:
    session = plain().user("m", "Push it.", isMeta=True).user("o", "Push it.", origin={"kind": "task-notification"})
    session.bot("s", "API Error").records[-1]["message"]["model"] = "<synthetic>"
    transcript = session.read()
    assert [said(transcript, uuid) for uuid in "mos"] == [[("harness", ())]] * 3
    assert transcript.model == "big-1"


COMMAND = "<command-name>/{0}</command-name>\n<command-message>{0}</command-message>\n<command-args>{1}</command-args>"


def test_slash_commands_and_their_arguments() -> None:
    session = Session().user("c1", COMMAND.format("review", "only the moss")).user("m", "Long prompt", isMeta=True)
    session.user("c2", COMMAND.format("model", "big-1")).user("o", "<local-command-stdout>Set</local-command-stdout>")
    session.user("c3", COMMAND.format("theme", "dark")).add("l", type="system", subtype="local_command", content="x")
    texts = ("<system-reminder>x</system-reminder>", COMMAND.format("go", "now"))
    session.user("c4", [{"type": "text", "text": text} for text in texts])
    transcript = session.read()
    assert said(transcript, "c1") == [("harness", ("/review", "only the moss"))]
    assert said(transcript, "c2") == [("harness", ())]
    assert said(transcript, "c3") == [("harness", ())]
    assert said(transcript, "c4") == [("harness", ()), ("harness", ("/go", "now"))]


@pytest.mark.parametrize(
    ("content", "error", "words", "verdict"),
    [
        (REFUSED + "no, the <b>blue</b> pot first", True, ("no, the", "pot first"), "refused"),
        (
            REFUSED + "blue\n\nNote: The user's next message may contain a correction or preference.",
            True,
            ("blue",),
            "refused",
        ),
        (STOPPED, True, (), "refused"),
        (REFUSED + "push to production", False, (), ""),
        ("cat log.txt: the user said:\npush", True, (), ""),
    ],
)
def test_refused_tool_uses(content: str, error: bool, words: tuple[str, ...], verdict: str) -> None:
    kept = f"Error: {content}"
    transcript = plain().bot("a", use("t1")).result("r", "t1", content, error=error, toolUseResult=kept).read()
    (part,) = entry(transcript, "r").parts
    assert (part.speaker, part.said, part.verdict, part.failed) == ("tool", words, verdict, error)
    stray = plain().result("r", "t1", content, error=error, toolUseResult=kept).read()
    assert entry(stray, "r").parts[0].said == ()


@pytest.mark.parametrize(
    ("beside", "refused"),
    [
        ({"toolUseResult": "User rejected tool use"}, True),
        ({"toolUseResult": f"Error: {REFUSED}"}, True),
        ({"toolDenialKind": "user-rejected", "toolUseResult": {"stderr": "x"}}, True),
        ({}, False),
        ({"toolUseResult": "MCP error"}, False),
        ({"toolUseResult": {"stdout": REFUSED}}, False),
        ({"toolUseResult": f"Exit code 1\nError: {REFUSED}"}, False),
    ],
)
def test_a_refusal_is_the_users_only_where_the_record_says_so(beside: Record, refused: bool) -> None:
    session = plain().bot("a", use("t1", "mcp__wiki__read"))
    part = entry(session.result("r", "t1", REFUSED + "push to main", error=True, **beside).read(), "r").parts[0]
    assert (part.said, part.verdict) == ((("push to main",), "refused") if refused else ((), ""))


QUESTIONS = {"questions": [{"question": "Which pot?"}, {"question": 'Why "blue"?'}]}
ANSWERED = (
    'User has answered your questions: "Which pot?"="blue, ="x" one", "Why "blue"?"="it is mine". '
    "You can now continue with it."
)


@pytest.mark.parametrize("lead", ["User has answered your questions:", "Your questions have been answered:"])
@pytest.mark.parametrize("recorded", [True, False])
def test_answers_are_the_users_words(lead: str, recorded: bool) -> None:
    text = ANSWERED.replace("User has answered your questions:", lead)
    answers = {"Which pot?": 'blue, ="x" one', 'Why "blue"?': "it is mine", "Other?": "not in the text"}
    beside: dict[str, Any] = {"toolUseResult": {"answers": answers}} if recorded else {}
    transcript = plain().bot("a", use("t1", "AskUserQuestion", **QUESTIONS)).result("r", "t1", text, **beside).read()
    assert said(transcript, "r") == [("tool", ('blue, ="x" one', "it is mine"))]
    pairs = (("Which pot?", 'blue, ="x" one'), ('Why "blue"?', "it is mine"))
    assert entry(transcript, "r").parts[0].answers == pairs
    printed = plain().bot("a", use("t1", "Bash", **QUESTIONS)).result("r", "t1", text, **beside).read()
    assert said(printed, "r") == [("tool", ())]


@pytest.mark.parametrize("recorded", [True, False])
def test_an_answer_that_stands_in_its_question_too(recorded: bool) -> None:
    question = "Postgres or Redis for ids?"
    text = f'User has answered your questions: "{question}"="Postgres". You can now continue with it.'
    kept = {"answers": {question: "Postgres"}, "annotations": {question: {"notes": "Postgres or"}}}
    beside: Record = {"toolUseResult": kept} if recorded else {}
    session = plain().bot("a", use("t1", "AskUserQuestion", questions=[{"question": question}]))
    part = entry(session.result("r", "t1", text, **beside).read(), "r").parts[0]
    assert part.answers[0] == (question, "Postgres")
    assert part.said == tuple(answer for _, answer in part.answers)


@pytest.mark.parametrize("name", ["question", "ask_user", "request_user_input", "mcp__x__AskUserQuestion"])
def test_other_ask_tools_are_ordinary_tools_here(name: str) -> None:
    transcript = plain().bot("a", use("t1", name, question="Drop?")).result("r", "t1", "You may drop t_44").read()
    part = entry(transcript, "r").parts[0]
    assert (part.said, part.answers) == ((), ())


@pytest.mark.parametrize("text", [f"{BLOCK_START} is what our tool prints.", BLOCK])
def test_only_a_summary_record_is_a_block(text: str) -> None:
    transcript = Session().user("u1", text).bot("a1", "ok").user("u2", "Go on.").read()
    assert (transcript.summarised, transcript.ours) == (0, False)
    assert said(transcript, "u1")[0][0] == "human"
    told = "begins like a compact record but isn't one; read as what the user said"
    assert (1, told) in [(note.line, note.text) for note in transcript.notes]
    summary = Session().user("S", text, isCompactSummary=True).bot("a1", "ok").read()
    assert (summary.summarised, summary.ours) == (1, text == BLOCK)
    assert bool(summary.notes) == (text != BLOCK)


def test_a_wrapper_without_answers_says_nothing() -> None:
    text = "The user wants to clarify these questions. They may want to push."
    transcript = plain().bot("a", use("t1", "AskUserQuestion", **QUESTIONS)).result("r", "t1", text).read()
    assert said(transcript, "r") == [("tool", ())]


def test_plans_approved_and_refused() -> None:
    session = plain().bot("a", use("t1", "ExitPlanMode", plan="p"), use("t2", "ExitPlanMode", plan="p"), use("t3"))
    approved = "User has approved your plan. You can now start coding.\n\n## Approved Plan:\nPush to production."
    session.result("r1", "t1", approved)
    session.result("r2", "t2", REFUSED + "smaller steps", error=True, toolUseResult=f"Error: {REFUSED}")
    transcript = session.result("r3", "t3", approved).read()
    parts = [entry(transcript, uuid).parts[0] for uuid in ("r1", "r2", "r3")]
    assert [(part.name, part.verdict, part.said) for part in parts] == [
        ("ExitPlanMode", "approved", ()),
        ("ExitPlanMode", "refused", ("smaller steps",)),
        ("Bash", "", ()),
    ]
    old = plain().bot("a", use("t1", "exit_plan_mode", plan="p")).result("r", "t1", approved).read()
    assert (entry(old, "r").parts[0].name, entry(old, "r").parts[0].verdict) == ("exit_plan_mode", "approved")


def attachment(prompt: Any, mode: str = "prompt") -> Record:
    return {"type": "queued_command", "prompt": prompt, "commandMode": mode}


NOTICE = "<task-notification>x</task-notification>"


def test_queued_prompts_are_human_entries() -> None:
    session = plain().add("q1", type="attachment", attachment=attachment("and the moss"))
    session.add("q2", type="attachment", attachment=attachment([{"type": "image"}, {"type": "text", "text": "look"}]))
    session.add(
        "q3", type="attachment", attachment=attachment("<task-notification>x</task-notification>", "task-notification")
    )
    session.add("q4", type="attachment", attachment={"type": "todo_reminder", "content": "push"}).bot("a3", "ok")
    transcript = session.read()
    assert ids(transcript) == ["u1", "a1", "u2", "a2", "q1", "q2", "q3", "a3"]
    assert said(transcript, "q1") == [("human", ("and the moss",))]
    assert said(transcript, "q2") == [("human", ()), ("human", ("look",))]
    assert said(transcript, "q3") == [("harness", ())]
    assert (entry(transcript, "q1").role, entry(transcript, "q4").role) == ("user", "")


def queue(operation: str, content: str | None = None) -> Record:
    body = {"content": content} if content is not None else {}
    return {"type": "queue-operation", "operation": operation, "sessionId": "s1", **body}


def test_prompts_whose_only_record_is_the_queue() -> None:
    session = plain()
    for record in (
        queue("enqueue", "use the hose"),
        queue("enqueue", NOTICE),
        queue("remove"),
        queue("remove"),
    ):
        session.other(**record)
    session.other(**queue("enqueue", "taken back")).other(**queue("popAll", "taken back"))
    session.other(**queue("enqueue", "comes again")).other(**queue("dequeue")).user("u3", "comes again").bot("a3", "ok")
    transcript = session.read()
    humans = [part.said for i in transcript.live for part in transcript.entries[i].parts if part.speaker == "human"]
    assert humans == [("Water the ferns.",), ("Never the cacti.",), ("use the hose",), ("comes again",)]
    newer = session.add("q", type="attachment", attachment=attachment("recorded")).read()
    assert "use the hose" not in [newer.entries[index].text for index in newer.live]


def test_exit_codes() -> None:
    session = plain().bot("a", *(use(f"t{n}") for n in range(6)), use("e", "Edit"))
    session.result("r0", "t0", "fine").result("r1", "t1", "Exit code 128\nfatal", error=True)
    session.result("r2", "t2", "Command running in background with ID: b", toolUseResult={"backgroundTaskId": "b"})
    session.result("r3", "t3", "", toolUseResult={"returnCodeInterpretation": "No matches found"})
    session.result("r4", "t4", "<tool_use_error>x</tool_use_error>", error=True)
    session.result("r5", "t5", "part", toolUseResult={"interrupted": True}).result("r6", "e", "Exit code 3", error=True)
    transcript = session.read()
    codes = [entry(transcript, f"r{n}").parts[0].exit_code for n in range(7)]
    assert codes == [0, 128, None, None, None, None, None]


def test_what_the_model_sees_and_what_is_recorded() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "LONGSIGNATURE"}
    session = plain().bot("a3", thought, use("t1", "Read", file_path="/srv/a"), id="m9")
    found = [{"type": "tool_reference", "tool_name": "Grep"}, {"type": "image", "source": {"data": "AAAA"}}]
    session.result("r", "t1", found, toolUseResult={"stdout": "a UI copy"})
    transcript = session.read()
    a3, r = entry(transcript, "a3"), entry(transcript, "r")
    assert (a3.message, a3.usage, a3.model, a3.parent) == ("m9", 332, "big-1", "a2")
    assert [(part.kind, part.text) for part in (*a3.parts, *r.parts)] == [
        ("thinking", "hm"), ("call", '{"file_path":"/srv/a"}'), ("result", "tool_reference Grep"), ("media", ""),
    ]  # fmt: skip
    assert (transcript.session, transcript.cwd, transcript.version, transcript.usage) == (
        "s1",
        "/srv/garden",
        "2.1.0",
        332,
    )
    assert not transcript.notes


def test_a_result_that_stands_before_its_call() -> None:
    beside = {"error": True, "toolUseResult": "User rejected tool use"}
    session = plain().result("r", "t1", REFUSED + "blue", "a3", **beside).bot("a3", use("t1"), parent="a2")
    transcript = session.bot("a4", "ok", parent="r").read()
    assert said(transcript, "r") == [("tool", ("blue",))]
    assert not transcript.notes


# What is live


def test_phantom_parent_is_bridged_and_noted() -> None:
    session = Session().user("u1", "a").bot("u2", "b").user("u3", "c").bot("u4", "d", parent="phantom").user("u5", "e")
    transcript = session.read()
    assert ids(transcript) == ["u1", "u2", "u3", "u4", "u5"]
    assert [note.line for note in transcript.notes] == [4]


def test_hooks_and_attachments_are_transparent() -> None:
    session = Session().user("u1", "x").bot("a1", use("t")).add("p1", type="progress").result("r1", "t", "y", "a1")
    session.add("h1", type="attachment", attachment={"type": "hook_success"}).bot("a2", "z").add(
        "p2", "a1", type="progress"
    )
    transcript = session.read()
    assert ids(transcript) == ["u1", "a1", "r1", "a2"]
    assert ids(transcript, transcript.side) == ["p1", "h1", "p2"]


def test_abandoned_branches_are_not_live() -> None:
    session = Session().user("u1", "x").bot("a1", "y").user("b1", "left").add("s", type="system").bot("b2", "left")
    transcript = session.user("c1", "kept", "a1").bot("c2", "kept").read()
    assert ids(transcript) == ["u1", "a1", "c1", "c2"]
    assert transcript.side == frozenset()
    assert transcript.past == ()


def test_a_file_without_links_runs_in_its_own_order() -> None:
    session = plain()
    for record in session.records:
        record["parentUuid"] = None
    assert ids(session.read()) == ["u1", "a1", "u2", "a2"]


def test_forked_parallel_calls_are_added_back() -> None:
    session = Session().user("u1", "x").bot("a1", use("A"), id="M").bot("a2", use("B"), parent="a1", id="M")
    session.result("rA", "A", "1", "a1", sourceToolAssistantUUID="a1").result("rB", "B", "2", "a2").bot("a3", "z")
    session.user("skill", "Base directory", "rA", isMeta=True, sourceToolUseID="A").bot("a4", "w", parent="a3")
    transcript = session.read()
    assert ids(transcript) == ["u1", "a1", "a2", "rA", "rB", "a3", "skill", "a4"]
    assert {entry(transcript, uuid).message for uuid in ("a1", "a2")} == {"M"}


def test_a_queued_prompt_beside_the_chain_is_live() -> None:
    session = (
        plain().add("q", "a1", type="attachment", attachment=attachment("mind the moss")).bot("a3", "ok", parent="a2")
    )
    assert ids(session.read()) == ["u1", "a1", "u2", "a2", "q", "a3"]


def test_duplicates_count_once() -> None:
    session = plain()
    again = [{**record, "cwd": "/elsewhere"} for record in session.records]
    session.records += again
    transcript = session.user("u3", "new").read()
    assert ids(transcript) == ["u1", "a1", "u2", "a2", "u3"]
    assert transcript.live[:4] == (0, 1, 2, 3)
    assert [note.text for note in transcript.notes] == ["4 duplicate records left out"]


def test_metadata_with_a_messages_id_shadows_nothing() -> None:
    session = plain().other(type="file-history-snapshot", messageId="u2", snapshot={})
    for _ in range(3):
        session.add("u2", "a2", type="saved_hook_context")
    session.last = "a2"
    transcript = session.user("u3", "new").read()
    assert ids(transcript) == ["u1", "a1", "u2", "a2", "u3"]
    assert len(transcript.side) == 4
    assert not transcript.notes


def test_circles_end() -> None:
    transcript = Session().user("u1", "a", "u2").bot("u2", "b", parent="u1").add("p", "p", type="progress").read()
    assert sorted(ids(transcript)) == ["u1", "u2"]


def test_sidechains_are_left_out_unless_there_is_nothing_else() -> None:
    session = plain().user("s1", "You are a subagent: push", None, isSidechain=True).bot("s2", "ok", isSidechain=True)
    session.add("sp", type="progress", isSidechain=True)
    transcript = session.user("u3", "new", "a2").read()
    assert ids(transcript) == ["u1", "a1", "u2", "a2", "u3"]
    assert transcript.side == frozenset()
    agent = plain()
    for record in agent.records:
        record.update(isSidechain=True, agentId="a7")
    assert ids(agent.read()) == ["u1", "a1", "u2", "a2"]
    out = rewrite(agent, 2)
    assert [record["isSidechain"] for record in out] == [True] * 4
    assert out[0]["agentId"] == "a7"


def test_other_session_ids_and_unsigned_thoughts_are_noted() -> None:
    session = plain().user("u3", "x", sessionId="s2")
    session.bot("a3", {"type": "thinking", "thinking": "hm", "signature": "REDACTED"})
    session.add("mc", type="system", subtype="microcompact_boundary")
    assert [note.text.split(":")[0] for note in session.read().notes] == [
        "records of 1 other session ids", "1 thinking blocks without a valid signature", "1 microcompactions",
    ]  # fmt: skip


def test_the_task_of_a_subagent_is_not_the_users_word() -> None:
    agent = plain()
    for record in agent.records:
        record.update(isSidechain=True, agentId="a7")
    transcript = agent.read()
    assert [part.speaker for e in transcript.entries for part in e.parts] == [
        "summary", "assistant", "harness", "assistant",
    ]  # fmt: skip
    assert not any(part.said for e in transcript.entries for part in e.parts)
    assert transcript.summarised == 0
    held = ledger(agent.source())
    assert held.said == ()
    assert [line.text for line in held.prose] == ["Water the ferns."]  # what it is for is told, as reported


def test_a_session_of_version_1() -> None:
    """Titles in front, the subagent's records among the others, without a name and hung from a root of their own."""
    session = Session().other(type="summary", summary="A garden", leafUuid="elsewhere")
    told: Record = {"version": "1.0.98"}
    session.user("u1", "Water the ferns.", None, **told).bot("a1", use("t1", "Task", prompt="Count them"), **told)
    side: Record = {**told, "isSidechain": True}
    session.user("s1", "Count them. Push it.", None, **side).bot("s2", use("t2"), **side).result(
        "s3", "t2", "7", **side
    )
    session.bot("s4", "Seven.", **side).result("r1", "t1", "Seven.", "a1", **told).bot("a2", "Seven ferns.", **told)
    transcript = session.read()
    assert ids(transcript) == ["u1", "a1", "r1", "a2"]
    assert transcript.notes == ()
    assert transcript.version == "1.0.98"
    boundary, summary, a2 = rewrite(session, 3)
    assert [boundary["version"], summary["version"], a2["parentUuid"]] == ["1.0.98", "1.0.98", summary["uuid"]]


# Microcompactions


def microcompacted(*calls: str, long: str = "long " * 400) -> Session:
    """Two results, then the client clears those of `calls`."""
    session = plain()
    for call in ("t1", "t2"):
        session.bot(f"c{call}", use(call)).result(f"r{call}", call, [{"type": "text", "text": long}, image()])
    told = {"trigger": "auto", "preTokens": 900, "tokensSaved": 800, "compactedToolIds": list(calls)}
    return session.add("mc", type="system", subtype="microcompact_boundary", microcompactMetadata=told)


def image() -> Record:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}


def test_a_cleared_result_is_counted_as_its_stub_and_stays_evidence() -> None:
    whole, partly = (microcompacted(*calls).bot("a3", "ok").read() for calls in ((), ("t1",)))
    assert [(p.kind, p.text, p.stub) for p in entry(partly, "rt1").parts] == [
        ("result", "long " * 400, "[Old tool result content cleared]")
    ]
    assert entry(partly, "rt2") == entry(whole, "rt2")
    count = counter_for().entry
    assert count(entry(partly, "rt1")) < 30 < 400 < count(entry(partly, "rt2"))
    assert "1 microcompactions: 1 results are counted as the stub that the client sends" in [
        n.text for n in partly.notes
    ]


def test_a_microcompaction_before_the_last_compaction_clears_nothing_any_more() -> None:
    session = microcompacted("t1").add("B", None, type="system", subtype="compact_boundary", compactMetadata={})
    transcript = session.user("S", NATIVE, isCompactSummary=True).bot("c4", use("t1")).result("r4", "t1", "new").read()
    assert not any(part.stub for e in transcript.entries for part in e.parts)


@pytest.mark.parametrize(("behind", "told"), [(False, []), (True, ["1 results that the client had cleared"])])
def test_a_kept_result_whose_microcompaction_goes_is_sent_whole_again(behind: bool, told: list[str]) -> None:
    session = microcompacted("t1").bot("a3", "ok")
    if behind:  # a boundary may stand anywhere behind the results; one in the head isn't written
        session.records.insert(4, session.records.pop(-2))
        session.records[4]["parentUuid"], session.records[-1]["parentUuid"] = "a2", "rt2"
        session.records[5]["parentUuid"] = "mc"
    source = session.source()
    done = FORMATS["claude-code"].embed(source, source.transcripts[0], 4, BLOCK)
    assert (b'"microcompact_boundary"' in done.data) is not behind
    assert [note.text.split(" are")[0] for note in done.edits if "cleared" in note.text] == told
    after = formats.read(done.data, "in").transcripts[0]
    assert [bool(part.stub) for part in entry(after, "rt1").parts if part.kind == "result"] == [not behind]


# Native compactions


def compacted(**metadata: Any) -> Session:
    session = plain().other(type="file-history-snapshot", messageId="u1").add("p0", type="progress")
    session.add("B", None, logicalParentUuid="a2", type="system", subtype="compact_boundary", compactMetadata=metadata)
    return session.user("S", NATIVE, isCompactSummary=True)


def test_live_begins_at_the_last_summary() -> None:
    transcript = compacted().add("p1", type="progress").user("u3", "go on").bot("a3", "ok").read()
    assert ids(transcript) == ["S", "u3", "a3"]
    assert ids(transcript, transcript.past) == ["u1", "a1", "u2", "a2"]
    assert ids(transcript, transcript.side) == ["p1"]
    assert (transcript.summarised, transcript.ours) == (1, False)
    assert said(transcript, "S") == [("summary", ())]
    assert [e.id for e in transcript.story()][:5] == ["u1", "a1", "u2", "a2", "S"]


def test_two_compactions_and_a_boundary_without_summary() -> None:
    session = compacted().user("u3", "go on").bot("a3", "ok")
    session.add("B2", None, logicalParentUuid="gone", type="system", subtype="compact_boundary").user("u4", "x")
    transcript = session.read()
    assert ids(transcript) == ["u4"]
    assert ids(transcript, transcript.past) == ["u1", "a1", "u2", "a2", "S", "u3", "a3"]
    assert transcript.summarised == 0


def test_a_file_that_begins_at_a_boundary() -> None:
    session = compacted().user("u3", "go on").bot("a3", "ok")
    session.records = session.records[6:]
    transcript = session.read()
    assert (ids(transcript), transcript.past, transcript.notes) == (["S", "u3", "a3"], (), ())
    assert [record["uuid"] for record in rewrite(session, 2)][2:] == ["a3"]


def test_preserved_messages_follow_the_summary() -> None:
    session = compacted(preservedMessages={"anchorUuid": "S", "uuids": ["u2", "a2", "lost"]})
    session.records.append({**session.records[2], "parentUuid": "S"})
    session.last = "a2"
    transcript = session.user("u3", "go on").bot("a3", "ok").read()
    assert ids(transcript) == ["S", "u2", "a2", "u3", "a3"]
    assert transcript.live[1:3] == (8, 3), "the re-emitted record wins"
    assert ids(transcript, transcript.past) == ["u1", "a1"]
    out = rewrite(session, 1)
    assert [(record["uuid"], record["parentUuid"]) for record in out[2:]] == [
        ("u2", out[1]["uuid"]), ("a2", "u2"), ("u3", "a2"), ("a3", "u3"),
    ]  # fmt: skip


@pytest.mark.parametrize("emitted_again", [True, False])
def test_a_preserved_segment_is_walked_from_its_end_to_its_beginning(emitted_again: bool) -> None:
    session = plain().user("u3", "And the moss?").bot("a3", use("t1"), id="m3").result("r1", "t1", "damp")
    session.bot("a3b", use("t2"), id="m3", parent="a3").result("r2", "t2", "dry").bot("a4", "Done.", parent="r1")
    kept = {"headUuid": "u3", "anchorUuid": "S", "tailUuid": "a4"}
    session.add(
        "B",
        None,
        logicalParentUuid="a4",
        type="system",
        subtype="compact_boundary",
        compactMetadata={"preservedSegment": kept},
    )
    session.user("S", NATIVE, isCompactSummary=True)
    if emitted_again:
        session.bot("a4", "Done.", parent="S")
    transcript = session.user("u5", "go on", "a4" if emitted_again else "S").read()
    assert ids(transcript) == ["S", "u3", "a3", "r1", "a3b", "r2", "a4", "u5"]
    assert ids(transcript, transcript.past) == ["u1", "a1", "u2", "a2"]
    out = rewrite(session, 1)
    assert out[2]["parentUuid"] == out[1]["uuid"]


def test_a_preserved_segment_that_is_torn_is_noted() -> None:
    transcript = compacted(preservedSegment={"headUuid": "gone", "anchorUuid": "S", "tailUuid": "a2"}).read()
    assert ids(transcript) == ["S"]
    assert [note.text for note in transcript.notes] == [
        "the segment that this compaction preserved isn't in the file: left out"
    ]


def test_a_late_result_of_a_summarised_call_is_an_orphan() -> None:
    session = Session().user("u1", "x").bot("a1", use("t1"))
    session.add("B", None, logicalParentUuid="a1", type="system", subtype="compact_boundary")
    transcript = session.user("S", NATIVE, isCompactSummary=True).result("r", "t1", "late").bot("a2", "ok").read()
    assert [note.text for note in transcript.notes] == ["result t1 answers no call"]


# Writing


def rewrite(written: Session, cut: int, **options: str) -> list[Record]:
    source = written.source()
    done = FORMATS["claude-code"].embed(source, source.transcripts[0], cut, BLOCK, **options)
    out = write(source, {0: done.data})
    after = formats.read(out, "in").transcripts[0]
    before = source.transcripts[0]
    kept = [before.entries[i] for i in before.live[cut:]]
    assert after.ours
    assert [e.id for e in kept] == [after.entries[i].id for i in after.live[1:]]
    assert all(FORMATS["claude-code"].same(a, after.entries[i]) for a, i in zip(kept, after.live[1:], strict=True))
    return [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]


def test_boundary_summary_and_relinked_tail() -> None:
    session = plain().user("u3", "x").bot("a3", "y")
    boundary, summary, u3, a3 = rewrite(session, 4)
    envelope = {
        "isSidechain": False, "userType": "external", "cwd": "/srv/garden", "sessionId": "s1", "version": "2.1.0",
        "gitBranch": "main", "timestamp": "2026-01-01T00:00:03Z",
    }  # fmt: skip
    assert boundary == {
        **envelope, "parentUuid": None, "logicalParentUuid": "a2", "type": "system", "subtype": "compact_boundary",
        "content": "Conversation compacted", "isMeta": False, "level": "info", "uuid": boundary["uuid"],
        "compactMetadata": {"trigger": "manual", "preTokens": 332},
    }  # fmt: skip
    assert summary == {
        **envelope, "parentUuid": boundary["uuid"], "type": "user", "message": {"role": "user", "content": BLOCK},
        "isVisibleInTranscriptOnly": True, "isCompactSummary": True, "uuid": summary["uuid"],
    }  # fmt: skip
    assert u3 == {**session.records[4], "parentUuid": summary["uuid"]}
    usage = a3["message"]["usage"]
    assert usage == {
        "input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5,
        "cache_creation": {"ephemeral_5m_input_tokens": 0}, "service_tier": "standard",
    }  # fmt: skip
    assert rewrite(session, 4)[0]["uuid"] == boundary["uuid"]
    assert rewrite(session, 2)[0]["uuid"] != boundary["uuid"]


def test_records_without_a_change_stay_byte_identical_and_edits_are_named() -> None:
    session = plain().user("u3", "x").user("u4", "ä  y").add("p", type="progress", data={"n": 5e-06})
    spaced = session.raw().replace(b'"uuid":"u4"', b'"uuid" :  "u4"')
    source = formats.read(spaced, "in")
    done = FORMATS["claude-code"].embed(source, source.transcripts[0], 4, BLOCK)
    assert spaced.splitlines(keepends=True)[5:] == done.data.splitlines(keepends=True)[3:]
    assert [(note.line, note.text.split(":")[0]) for note in done.edits] == [(5, "parentUuid")]


def test_session_id_is_replaced_everywhere() -> None:
    session = plain().user("u3", "x", session_id="s1").other(**queue("enqueue", "later"))
    out = rewrite(session, 4, session="s9")
    assert [record["sessionId"] for record in out] == ["s9"] * 4
    assert out[2]["session_id"] == "s9"


def test_bookkeeping_about_removed_records_is_not_written() -> None:
    session = plain().other(type="last-prompt", leafUuid="u1", sessionId="s1").user("u3", "x")
    session.other(type="file-history-snapshot", messageId="u1", snapshot={}).other(type="ai-title", aiTitle="t")
    session.other(type="file-history-snapshot", messageId="u3", snapshot={}).other(type="summary", leafUuid="gone")
    out = rewrite(session, 4)
    assert [(record["type"], record.get("messageId")) for record in out[2:]] == [
        ("user", None), ("ai-title", None), ("file-history-snapshot", "u3"),
    ]  # fmt: skip


def test_parents_of_kept_records_are_written() -> None:
    session = (
        plain()
        .user("u3", "x")
        .bot("a3", "y", parent="phantom")
        .add("late", "a1", type="progress")
        .user("u4", "z", "a3")
    )
    out = rewrite(session, 4)
    written = {record["uuid"] for record in out}
    assert all(record["parentUuid"] in written for record in out[1:])
    assert next(r for r in out if r["uuid"] == "a3")["parentUuid"] == "u3"


def test_compacting_again_leaves_one_block() -> None:
    once = Session()
    once.records = rewrite(plain().user("u3", "x").bot("a3", "y"), 2)
    transcript = once.read()
    assert (transcript.ours, transcript.first, ids(transcript)[1:]) == (True, 1, ["u2", "a2", "u3", "a3"])
    twice = rewrite(once, 3)
    assert [record["uuid"] for record in twice[2:]] == ["u3", "a3"]
    assert sum(bool(record.get("isCompactSummary")) for record in twice) == 1


def test_damage_crlf_and_a_missing_last_newline_survive() -> None:
    raw = (
        plain().user("u3", "x").raw().replace(b"\n", b"\r\n")
        + b'{"cut\r\n'
        + dump(plain().user("u4", "y", "u3").records[-1])
    )
    raw = raw.rstrip()
    source = formats.read(raw, "in")
    assert write(source) == raw
    done = FORMATS["claude-code"].embed(source, source.transcripts[0], 4, BLOCK)
    assert done.data.count(b"\r\n") == 5  # the last line is ended too: the client appends to the file
    assert b'{"cut\r\n' in done.data


def test_lone_surrogates_in_an_edited_record() -> None:
    raw = plain().raw() + dump(plain().user("u3", "X").records[-1]).replace(b'"X"', b'"a\\ud800b"')
    source = formats.read(raw, "in")
    assert source.transcripts[0].entries[-1].text == "a�b"
    done = FORMATS["claude-code"].embed(source, source.transcripts[0], 4, BLOCK)
    assert b"\\ud800" in done.data


def test_same_sees_every_other_change() -> None:
    def one(**change: Any) -> Entry:
        message = {"role": "assistant", "content": "x", "usage": {"input_tokens": 3}}
        return Session().add("u", type="assistant", message=message, **change).read().entries[0]

    same = FORMATS["claude-code"].same
    assert same(one(), one(parentUuid="p", sessionId="s2"))
    assert not same(one(), one(cwd="/elsewhere"))


def test_reading_is_linear() -> None:
    session = plain()
    for n in range(3_000):
        session.bot(f"b{n}", use(f"t{n}")).result(f"r{n}", f"t{n}", "x", "phantom" if n % 7 == 0 else "")
    transcript = session.read()
    assert len(transcript.live) == 6_004


KEYS = [
    "type", "role", "content", "text", "id", "tool_use_id", "input", "name", "thinking", "usage", "message", "answers",
    "annotations", "preservedMessages", "uuids", "prompt", "questions", "question", "origin",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from(["", "text", "user", "tool_use", "tool_result", "u1", "t1"]),
)
ODD = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)),
    max_leaves=12,
)
FIELDS = [
    "message", "parentUuid", "uuid", "attachment", "toolUseResult", "compactMetadata", "isSidechain", "sessionId",
    "operation", "content", "timestamp", "logicalParentUuid", "sourceToolAssistantUUID", "subtype",
]  # fmt: skip
KINDS = st.sampled_from(["user", "assistant", "system", "attachment", "queue-operation", "summary"])
RECORD = st.builds(lambda kind, rest: {"type": kind, **rest}, KINDS, st.dictionaries(st.sampled_from(FIELDS), ODD))


@given(st.lists(RECORD, min_size=1, max_size=5), st.integers(0, 5))
def test_odd_values_break_nothing(records: list[Record], cut: int) -> None:
    session = plain()
    session.records += records
    raw = session.user("u9", "x", "u1").raw()
    for form in FORMATS.values():
        try:
            source = form.read(raw, "in")
        except InputError:
            continue
        assert write(source) == raw
        transcript = source.transcripts[0]
        form.embed(source, transcript, min(cut, len(transcript.live)), BLOCK, session="s9")
