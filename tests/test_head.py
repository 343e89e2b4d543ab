"""How the head is told to a model decides what it can keep."""

import re
from typing import Any

import pytest
from build import REASON, Talk, answers, call, calls, entry, human, said
from hypothesis import given
from hypothesis import strategies as st
from strategies import talks
from talks import Call, Round, Turn, garden, jsonl, openai

from compactor import formats
from compactor.head import LAST, WANTED, Told, tell
from compactor.identifiers import identifiers
from compactor.ledger import Ledger, extract
from compactor.shorten import shorten
from compactor.tokens import counter_for
from compactor.transcript import Entry, Part, Source

SOURCE = "0" * 8


def told(talk: Talk | Source) -> str:
    """The whole text, as a model reads it."""
    source = talk if isinstance(talk, Source) else talk.source()
    return text(tell(source.short, story(source), extract(source.short, story(source))))


def story(source: Source) -> list[Entry]:
    return list(source.transcripts[0].story())


def text(head: Told) -> str:
    return "\n\n".join(passage.text for passage in head.passages) + f"\n\n{head.ending}"


def plain(*entries: Entry) -> str:
    return text(tell(SOURCE, entries, extract(SOURCE, entries)))


def thinking(*entries: Entry) -> str:
    return text(tell(SOURCE, entries, extract(SOURCE, entries), thinking=True))


def test_each_text_says_who_speaks() -> None:
    parts = (
        human("Water the fern."), said("I will."), Part("text", "system", "Be brief."),
        Part("text", "harness", "Todo list is empty."), Part("text", "summary", "Earlier, moss was planted."),
        Part("text", "tool", "an observation"), Part("thinking", "assistant", "ferns drink a lot " * 9),
    )  # fmt: skip
    lines = thinking(*(entry(at, part) for at, part in enumerate(parts))).splitlines()
    heads = [line for line in lines if line.startswith("[")]
    assert heads == [
        "[1] USER:", "[2] AGENT:", "[3] SYSTEM:", "[4] HARNESS (put in by the client, not the user):",
        "[5] EARLIER SUMMARY (written by a model, not the user):", "[6] TOOL:", "[7] AGENT, thinking:",
    ]  # fmt: skip


def test_a_call_names_tool_and_parameters() -> None:
    assert 'CALL Grep\npattern: fern\\(\npath: /srv/green' in told(Talk().user("Look.").tool(
        "Grep", "beds.py:4", pattern="fern\\(", path="/srv/green"))  # fmt: skip


def test_a_command_stands_as_it_was_typed() -> None:
    assert "CALL Bash\n$ cat <<'E'\ntwo\nlines\nE" in told(Talk().user("Do.").ran("cat <<'E'\ntwo\nlines\nE"))


def test_an_edit_tells_path_then_old_then_new() -> None:
    shown = told(Talk().user("Change it.").edited("/srv/beds.py", "fern = 4", "fern = 5"))
    assert "CALL Edit\nfile_path: /srv/beds.py\nOLD:\nfern = 4\nNEW:\nfern = 5" in shown


def test_of_a_long_edit_the_old_text_goes_before_the_new() -> None:
    old, new = ("\n".join(f"{name} line number {n}" for n in range(60)) for name in ("old", "new"))
    shown = told(Talk().user("Change it.").edited("/srv/beds.py", old, new))
    assert shown.count("new line") > 2 * shown.count("old line") > 0


def test_each_of_several_edits_is_told() -> None:
    edits = [{"old_string": "a1", "new_string": "b1"}, {"old_string": "a2", "new_string": "b2"}]
    shown = told(Talk().user("Change it.").tool("MultiEdit", "ok", file_path="/srv/beds.py", edits=edits))
    assert "edit 1 of 2:\nOLD:\na1\nNEW:\nb1\nedit 2 of 2:\nOLD:\na2\nNEW:\nb2" in shown


def test_parallel_results_name_their_calls_in_any_order() -> None:
    two = Talk().user("Both.").agent("", call("a", "Bash", command="one"), call("b", "Bash", command="two"))
    shown = told(two.result("b", "second").result("a", "first"))
    first, second = re.findall(r"\[([\d/]+)\] CALL Bash\n\$ (?:one|two)", shown)
    assert f"RESULT of [{second}] Bash: ok, exit code 0\nsecond" in shown
    assert f"RESULT of [{first}] Bash: ok, exit code 0\nfirst" in shown


def test_a_repeated_call_id_means_the_latest_call() -> None:
    shown = plain(
        entry(0, calls("x")), entry(1, answers("x", "one")), entry(2, calls("x")), entry(3, answers("x", "two"))
    )
    assert "RESULT of [1] Bash: ok\none" in shown
    assert "RESULT of [3] Bash: ok\ntwo" in shown


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Part("result", "tool", "x", call_id="c"), "ok"),
        (Part("result", "tool", "x", call_id="c", failed=True), "error"),
        (Part("result", "tool", "x", call_id="c", failed=True, exit_code=2), "error, exit code 2"),
        (Part("result", "tool", "x", call_id="c", exit_code=0), "ok, exit code 0"),
        (Part("result", "tool", "x", call_id="c", exit_code=1), "error, exit code 1"),
        (Part("result", "tool", "x", call_id="c", failed=True, verdict="refused"), "rejected by the user"),
        (Part("result", "tool", "x", call_id="c", verdict="approved"), "approved by the user"),
    ],
)
def test_a_result_says_how_it_ended(part: Part, said: str) -> None:
    assert f"[2] RESULT of [1] Bash: {said}\nx" in plain(entry(0, calls("c")), entry(1, part))


def test_an_empty_result_is_shown_as_such() -> None:
    part = Part("result", "tool", "\n", call_id="c", exit_code=0)
    assert "RESULT of [1] Bash: ok, exit code 0\n(empty)" in plain(entry(0, calls("c")), entry(1, part))


def test_the_users_own_words_in_a_result_are_told_as_theirs() -> None:
    shown = told(Talk().user("Go.").refused("git push", "not before Friday"))
    assert REASON.strip() in shown
    assert "Bash: rejected by the user" in shown
    assert 'The user\'s own words in it: "not before Friday"' in shown


def test_what_the_user_says_is_never_cut() -> None:
    long = " ".join(f"word{n}" for n in range(600))
    assert len(long) > 4_000 - 100
    assert long[:3_900] in told(Talk().user(long[:3_900]))


def test_a_document_that_the_user_shows_is_shortened_and_what_they_say_around_it_is_not() -> None:
    rows = "\n".join(f"row {n}: nothing of note" for n in range(3_000))
    shown = told(Talk().user(f"Here is the log of Monday.\n\n{rows}\n\nNever delete a row of it."))
    assert "Here is the log of Monday." in shown
    assert "Never delete a row of it." in shown
    assert "a document that the user shows, not the user speaking" in shown
    assert re.search(r"… \d+ lines …", shown)
    assert len(shown) < len(rows) / 3


def test_a_long_output_is_shortened_from_the_middle_and_says_what_was_left_out() -> None:
    rows = [f"row {n}: nothing of note" for n in range(900)]
    shown = told(Talk().user("Run it.").ran("rows", "\n".join(rows)))
    assert rows[0] in shown
    assert rows[-1] in shown
    gaps = [int(found) for found in re.findall(r"… (\d+) lines? …", shown)]
    assert sum(gaps) == len([row for row in rows if row not in shown.splitlines()])


def test_what_will_be_used_again_stays_in_the_middle() -> None:
    rows = [f"row {n}: nothing of note" for n in range(900)]
    rows[450] = "the pump id is PUMP-7741"
    talk = Talk().user("Run it.").ran("rows", "\n".join(rows)).agent("I will use PUMP-7741.").ran("pump PUMP-7741")
    assert "the pump id is PUMP-7741" in told(talk).split("I will use")[0]


def test_of_one_long_line_too() -> None:
    line = f"{'x, ' * 3_000}pump PUMP-7741, {'y, ' * 3_000}"
    shown = told(Talk().user("Run it.").ran("row", line).agent("I will use PUMP-7741.").ran("pump PUMP-7741"))
    assert "pump PUMP-7741," in shown.split("I will use")[0]
    assert len(shown) < 2_000
    assert re.search(r"… [\d,]+ characters …", shown)


def test_a_reminder_of_the_client_is_told_once() -> None:
    reminder = Part("text", "harness", "The todo list is empty; use it when a task has several steps.")
    shown = plain(entry(0, human()), entry(1, reminder), entry(2, said("Yes.")), entry(3, reminder))
    assert shown.count("The todo list is empty") == 1
    assert "[4] HARNESS" not in shown


def test_a_file_that_is_read_again_is_told_once() -> None:
    rows = "\n".join(f"{n}→fern_{n:03} = {n * 7} ml of water" for n in range(20))
    talk = Talk().user("Read.").read("/srv/beds.py", rows).agent("Once more.").read("/srv/beds.py", rows)
    for n in range(LAST):
        talk.agent(f"That was {n}.")
    shown = told(talk)
    assert shown.count("fern_007 = 49 ml") == 1
    assert "… 20 lines as in [3], from: fern_000 = 0 ml of water …" in shown


def test_line_numbers_of_a_read_file_are_left_out() -> None:
    assert "RESULT of [2] Read: ok\nfern = 4\nmoss = 9" in told(
        Talk().user("Read.").read("/srv/beds.py", "     1→fern = 4\n     2→moss = 9")
    )


def test_what_carries_no_words_leaves_a_numbered_placeholder() -> None:
    image = Part("media", "human", name="image, image/png, 1,900,000 bytes")
    shown = plain(entry(0, image, image), entry(1, Part("opaque", "assistant")))
    assert "[1/1] USER: [image, image/png, 1,900,000 bytes, no. 1]" in shown
    assert "[1/2] USER: [image, image/png, 1,900,000 bytes, no. 2]" in shown
    assert "[2] AGENT: [redacted content, no. 3]" in shown


def at(index: int, time: str, part: Part) -> Entry:
    return Entry(index, index + 1, 1, b"{}\n", role="user", parts=(part,), time=time)


def test_times_stand_where_there_are_gaps() -> None:
    shown = plain(
        at(0, "2026-03-04T09:00:00Z", human("One.")), at(1, "2026-03-04T09:10:00Z", said("Two.")),
        at(2, "2026-03-04T11:15:00Z", human("Three.")), at(3, "2026-03-06T12:15:00Z", human("Four.")),
        at(4, "no time", human("Five.")),
    )  # fmt: skip
    marks = [line for line in shown.splitlines() if line.startswith("---")]
    assert marks == [
        "--- 2026-03-04 09:00 ---",
        "--- 2026-03-04 11:15, 2 h 5 min later ---",
        "--- 2026-03-06 12:15, 2 d 1 h later ---",
    ]


@pytest.mark.parametrize(
    ("entries", "ending"),
    [
        ([entry(0, human()), entry(1, calls("c"))], "The last event is the call [2]; its result isn't part of this."),
        (
            [entry(0, calls("c")), entry(1, answers("c"))],
            "The last event is the result [2], which is told above: ok.",
        ),
        ([entry(0, human()), entry(1, said())], "The last event is [2], where AGENT speaks."),
        ([], "Nothing happened."),
    ],
)
def test_the_end_says_what_the_last_event_was(entries: list[Entry], ending: str) -> None:
    assert tell(SOURCE, entries, Ledger()).ending == ending


def test_labels_are_the_refs_that_can_be_cited() -> None:
    raw = b'[{"role":"user","content":"One."},{"role":"user","content":"Two."}]\n'
    shown = told(formats.read(raw, "x"))
    assert "[1] USER:\nOne." in shown
    assert "[1.2] USER:\nTwo." in shown


def heavy() -> Source:
    """A session of tools: long reads, long outputs, some of it used again."""
    turns = list[Turn]()
    for n, turn in enumerate(garden(20, lines=80)):
        log = "\n".join(
            f"2026-03-04 09:{n:02}:{row % 60:02} pump P{n}-{row} moved {row * n % 89} ml" for row in range(200)
        )
        run = Call(f"log_{n}", "Bash", {"command": f"pump-log --bed {n}"}, log)
        turns.append(Turn(turn.asks, (*turn.rounds, Round("", (run,))), f"{turn.closes} P{n}-77 is slow."))
    return formats.read(jsonl(openai(turns)), "heavy")


def test_of_a_tool_heavy_session_at_most_three_fifths_are_told_and_nothing_that_counts_is_lost() -> None:
    source, count = heavy(), counter_for()
    shown = told(source)
    assert count.text(shown) <= 0.6 * count.entries(story(source))
    weight = extract(source.short, story(source)).weight
    best = sorted(weight, key=lambda name: -weight[name])[: WANTED // 4]
    assert [name for name in best if name not in shown] == []


@given(talks())
def test_of_any_conversation_every_message_is_told_and_no_word_of_the_user_is_lost(talk: Talk) -> None:
    source = talk.source()
    shown = told(source)
    for one in story(source):
        for part in one.parts:
            for piece in part.said if len(part.text) <= 4_000 else ():
                assert piece.strip("\n") in shown


@given(st.text(alphabet="ab _7\n", max_size=3_000), st.integers(50, 800))
def test_a_shortened_text_is_made_of_its_own_lines(whole: str, limit: int) -> None:
    wanted = dict.fromkeys(identifiers(whole), 1.0)
    lines = whole.split("\n")
    for line in shorten(whole, limit, wanted).split("\n"):
        assert line in lines or line.startswith("… ") or " characters … " in line


def test_nothing_has_the_shape_of_a_tools_message() -> None:
    records: list[Any] = openai(garden(3))
    shown = told(formats.read(jsonl(records), "x"))
    for shape in ("tool_calls", "tool_call_id", "tool_use", '"role"'):
        assert shape not in shown


def test_a_plan_is_told_step_by_step() -> None:
    shown = told(Talk().user("Plan.").planned(Water_the_fern="completed", Water_the_moss="in_progress"))
    assert "CALL TodoWrite\n(completed) Water the fern; (in_progress) Water the moss" in shown


def test_what_a_tool_says_of_a_change_is_not_told_again() -> None:
    echo = "The file /srv/beds.py has been updated.\n" + "\n".join(f"{n}→row {n} of the file" for n in range(40))
    talk = (
        Talk().user("Go.").tool("Edit", echo, file_path="/srv/beds.py", old_string="a", new_string="row 7 of the file")
    )
    shown = told(talk)
    assert "The file /srv/beds.py has been updated." in shown
    assert "row 39 of the file" not in shown


def test_but_of_a_change_that_failed_all_is_told() -> None:
    talk = Talk().user("Go.").tool("Edit", "No match.\nDid you mean: fern?", True, file_path="/a", old_string="x",
                                   new_string="y")  # fmt: skip
    assert "Did you mean: fern?" in told(talk)


def test_a_reminder_behind_a_result_is_left_out() -> None:
    talk = Talk().user("Read.").read("/srv/a.py", "fern = 4\n<system-reminder>\nConsider malware.\n</system-reminder>")
    shown = told(talk)
    assert "fern = 4" in shown
    assert "malware" not in shown


def test_a_thought_that_only_announces_the_call_is_left_out() -> None:
    shown = thinking(entry(0, human()), entry(1, Part("thinking", "assistant", "Let me look.")), entry(2, said()))
    assert "Let me look." not in shown


def test_what_was_done_last_is_told_at_more_length() -> None:
    talk = Talk().user("Go.")
    for n in range(8):
        talk.ran(f"log {n}", "\n".join(f"{n} row {row}: nothing of note" for row in range(200)))
    shown = told(talk)
    counts = [shown.count(f"\n{n} row ") for n in range(3, 8)]  # the first ones bring numbers that are new
    assert counts == sorted(counts)
    assert counts[-1] > 1.5 * counts[0] > 0


def test_a_result_before_its_call_says_that_the_call_follows() -> None:
    assert "RESULT of a call further on: ok" in plain(entry(0, answers("x")), entry(1, calls("x")))
    assert "RESULT of a call that isn't told: ok" in plain(entry(0, answers("x")), entry(1, said()))
