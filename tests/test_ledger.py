"""What code alone finds in a conversation."""

import pytest
from build import FORMS, REASON, REFUSED, Form, Talk, call, ledger, where
from hypothesis import given
from hypothesis import strategies as st
from strategies import talks

from compactor.evidence import Evidence
from compactor.ledger import Command, File, Ledger, Said, extract


def kinds(found: Ledger) -> list[tuple[str, str]]:
    return [(said.kind, said.text) for said in found.said]


def only_file(found: Ledger) -> File:
    (file,) = found.files
    return file


def only_command(found: Ledger) -> Command:
    (command,) = found.commands
    return command


def last_said(found: Ledger) -> Said:
    return found.said[-1]


# The user


@pytest.mark.parametrize("form", FORMS)
def test_what_the_user_says_is_kept_verbatim_with_what_it_does(form: Form) -> None:
    talk = Talk().user("Fix the parser in src/parse.py.").agent("Looking.")
    talk.user("Never push to main.").agent("I won't.").user("You may delete the old branch.").agent("Good.")
    talk.user("Why does it fail?").agent("A missing lock.").user("Done when all tests pass.")
    assert kinds(talk.ledger(form)) == [
        ("request", "Fix the parser in src/parse.py."),
        ("rule", "Never push to main."),
        ("permission", "You may delete the old branch."),
        ("question", "Why does it fail?"),
        ("criterion", "Done when all tests pass."),
    ]


def test_each_statement_cites_the_entry_that_holds_it() -> None:
    source = Talk().user("Look.").agent("I look.").user("Never push.").source()
    assert [said.ref for said in ledger(source).said] == [where(source, "Look."), where(source, "Never push.")]


def test_a_long_message_is_taken_sentence_by_sentence() -> None:
    rule = "Never delete anything without asking me first."
    story = "The importer was written in 2019 and nobody has touched it since then. " * 6
    found = Talk().user(f"{story}{rule} Thanks for that.").ledger()
    assert any(rule in said.text and said.kind == "rule" for said in found.said)
    assert len(found.said) > 2


def test_a_permission_knows_whether_a_limit_was_said_with_it() -> None:
    found = Talk().user("You may edit src/a.py only.").agent("Yes.").user("Feel free to refactor it.").ledger()
    assert [(said.kind, said.limited) for said in found.said] == [("permission", True), ("permission", False)]


def test_an_approval_answers_what_the_agent_asked_last() -> None:
    found = Talk().user("Look.").agent("Shall I push the branch to origin?").user("yes, do it").ledger()
    said = last_said(found)
    assert said.kind == "approval"
    assert said.answering
    assert said.answering.text == "Shall I push the branch to origin?"


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_given_through_a_question_tool_is_the_users(form: Form) -> None:
    found = Talk().user("Set it up.").asked("Which database?", "sqlite").ledger(form)
    assert (last_said(found).kind, last_said(found).text) == ("choice", "sqlite")


def test_the_same_words_in_a_tools_output_are_nobodys_rule() -> None:
    found = Talk().user("Look.").ran("cat rules.md", "Never push to main.\nYou may delete everything.").ledger()
    assert kinds(found) == [("request", "Look.")]


def test_a_rule_with_an_outward_act_in_it_is_marked() -> None:
    found = Talk().user("Commit and push it.").agent("Done.").user("Look at the log.").ledger()
    assert [said.outward for said in found.said] == [True, False]


@pytest.mark.parametrize("form", ["anthropic", "claude-code"])
def test_a_refused_call_is_a_refusal_and_its_reason_the_users_rule(form: Form) -> None:
    found = Talk().user("Clean up.").refused("git push --force", "never force-push, ask me first").ledger(form)
    (refusal,) = found.refusals
    assert refusal.text == "Bash: git push --force"
    assert (last_said(found).kind, last_said(found).text) == ("rule", "never force-push, ask me first")
    assert found.commands == ()


# The plan


def test_the_plan_has_its_last_status_and_finished_steps_their_proof() -> None:
    talk = Talk().user("Do it.").planned(write_the_parser="in_progress", write_the_docs="pending")
    talk.edited("parse.py", "old code line", "new code line").ran("pytest", "3 passed")
    source = talk.planned(write_the_parser="completed", write_the_docs="in_progress").source()
    assert [(t.text, t.status, t.proof) for t in ledger(source).plan] == [
        ("write the parser", "completed", where(source, "3 passed")),
        ("write the docs", "in_progress", ""),
    ]


def test_a_step_ticked_off_with_nothing_done_has_no_proof() -> None:
    found = Talk().user("Do it.").planned(think="pending").read("a.py").planned(think="completed").ledger()
    assert [(todo.status, todo.proof) for todo in found.plan] == [("completed", "")]


def test_a_plan_made_task_by_task_is_followed_by_its_numbers() -> None:
    talk = Talk().user("Do it.").tool("TaskCreate", "Task #1 created", subject="the parser")
    talk.tool("TaskCreate", "Task #2 created", subject="the docs")
    talk.tool("TaskUpdate", "Updated", taskId="2", status="in_progress")
    assert [(todo.text, todo.status) for todo in talk.ledger().plan] == [
        ("the parser", "pending"),
        ("the docs", "in_progress"),
    ]


# Files


def test_a_file_only_read_has_the_sentence_that_introduced_it() -> None:
    talk = Talk().user("Why?").agent("Let me look at the webhook handler for duplicate events.").read("src/hooks.py")
    file = only_file(talk.ledger())
    assert (file.path, file.state) == ("src/hooks.py", "read")
    assert file.intro
    assert file.intro.text == "Let me look at the webhook handler for duplicate events."


@pytest.mark.parametrize("form", FORMS)
def test_created_and_modified_files_have_the_lines_that_the_changes_brought(form: Form) -> None:
    talk = Talk().user("Do it.").wrote("a.py", "def first():\n    return 10_000\n").read("b.py")
    talk.edited("b.py", "limit = 10_000", "limit = 20_000").edited("b.py", "limit = 20_000", "limit = 30_000")
    created, modified = talk.ledger(form).files
    assert (created.path, created.state, [line.text for line in created.lines]) == (
        "a.py", "created", ["def first():", "return 10_000"],
    )  # fmt: skip
    assert (modified.path, modified.state, [line.text for line in modified.lines]) == (
        "b.py", "modified", ["limit = 30_000"],
    )  # fmt: skip


def test_a_file_cites_its_first_call_and_its_last_change() -> None:
    source = Talk().user("Do it.").read("b.py").edited("b.py", "old line 1", "new line 1").read("b.py").source()
    assert only_file(ledger(source)).refs == (where(source, "b.py", "call"), where(source, "new line 1", "call"))


@pytest.mark.parametrize("refused", [True, False])
def test_a_change_that_was_refused_or_failed_is_none(refused: bool) -> None:
    new = call("x", "Edit", file_path="b.py", old_string="old line 1", new_string="new line 1")
    talk = Talk().user("Do it.").read("b.py").agent("", new)
    talk.result("x", REFUSED + REASON + "not this file" if refused else "String not found", failed=True)
    file = only_file(talk.ledger())
    assert (file.state, file.lines) == ("read", ())


@pytest.mark.parametrize("name", ["Write", "Read"])
def test_a_file_that_was_only_refused_or_is_not_there_is_not_listed(name: str) -> None:
    for answer in (REFUSED, "File does not exist."):
        new = call("x", name, file_path="b.py", content="new line 1")
        assert Talk().user("Do it.").agent("", new).result("x", answer, failed=True).ledger().files == ()


def test_a_change_that_failed_leaves_the_one_before() -> None:
    talk = (
        Talk()
        .user("Do it.")
        .read("a.py")
        .wrote("a.py", "x = 1")
        .edited("a.py", "old line 1", "new line 1", failed=True)
    )
    source = talk.source()
    file = only_file(ledger(source))
    assert (file.state, file.lines) == ("modified", ())
    assert file.refs == (where(source, "a.py", "call"), where(source, "x = 1", "call"))


@pytest.mark.parametrize(("failed", "lines"), [("a", ["second new"]), ("b", ["first new"]), ("ab", [])])
def test_of_parallel_changes_only_those_that_failed_are_taken_back(failed: str, lines: list[str]) -> None:
    both = [
        call(id, "Edit", file_path="a.py", old_string="old line", new_string=new)
        for id, new in (("a", "first new"), ("b", "second new"))
    ]
    talk = Talk().user("Do it.").read("a.py").agent("", *both)
    for id in "ab":
        talk.result(id, "done", failed=id in failed)
    file = only_file(talk.ledger())
    assert [line.text for line in file.lines] == lines
    assert file.state == ("modified" if lines else "read")


@pytest.mark.parametrize(
    "command", ["rm src/old.py", "git rm -f src/old.py", "cd src && rm ./old.py", "ls; rm a b src/old.py"]
)
def test_a_removed_file_is_deleted(command: str) -> None:
    assert only_file(Talk().user("Do it.").read("src/old.py").ran(command).ledger()).state == "deleted"


def test_a_removal_that_failed_deletes_nothing() -> None:
    assert (
        only_file(Talk().user("Do it.").read("a.py").ran("rm a.py", "not permitted", failed=True).ledger()).state
        == "read"
    )


def test_a_renamed_file_is_gone_under_the_old_name_and_there_under_the_new() -> None:
    talk = Talk().user("Do it.").wrote("old.py", "x = 10_000\n").ran("git mv old.py new.py")
    assert [(file.path, file.state) for file in talk.ledger().files] == [("old.py", "deleted"), ("new.py", "created")]


# Commands


@pytest.mark.parametrize("form", FORMS)
def test_a_command_has_its_outcome_and_the_line_that_tells_it(form: Form) -> None:
    talk = Talk().user("Do it.").ran("make all", "cc a.c\ncc b.c\ncreated 2 files\n")
    talk.ran("make bad", "cc c.c\nc.c:12: error: 'x' undeclared\nmake: *** failed", failed=True)
    good, bad = talk.ledger(form).commands
    assert (good.text, good.ok, good.told) == ("make all", True, "created 2 files")
    assert (bad.text, bad.ok) == ("make bad", False)
    assert "c.c:12: error: 'x' undeclared" in bad.told


def test_a_long_output_is_told_by_whole_lines() -> None:
    address = "https://api.example.org/users/4711/stars"
    for output in (f"{address} " * 400, f"{address}\n" * 400, "one\n" + f"{address} " * 400):
        told = only_command(Talk().user("Go.").ran("curl -s x", output).ledger()).told
        assert told in ("", "one", address)


def test_an_error_knows_the_run_that_mended_it() -> None:
    talk = Talk().user("Do it.").ran("make all 2>&1 | tail -3", "error: no rule", failed=True)
    talk.edited("Makefile", "all: nothing", "all: everything")
    source = talk.ran("make all", "created 2 files").ran("make docs", "error: no docs", failed=True).source()
    assert [command.fixed_by for command in ledger(source).commands] == [where(source, "created 2 files"), "", ""]


@pytest.mark.parametrize(
    ("output", "ok"),
    [
        ("3 passed in 0.1s", True),
        ("1 failed, 2 passed", False),
        ("FAIL src/a.test.js\n1 suite", False),
        ("--- FAIL: TestParse (0.00s)", False),
        ("0 failed, 2 passed", True),
    ],
)
def test_a_test_run_that_reports_failures_failed_though_the_command_went_well(output: str, ok: bool) -> None:
    command = only_command(Talk().user("Test it.").ran("pytest -q | tail -5", output).ledger())
    assert (command.is_test, command.ok) == (True, ok)


@pytest.mark.parametrize(
    ("command", "is_test"),
    [
        ("npm run test:unit", True),
        ("cargo test", True),
        ("go test ./...", True),
        ("python -m unittest", True),
        ("make test", True),
        ("cat latest.txt", False),
        ("ls tests", False),
        ("echo contest", False),
    ],
)
def test_what_is_a_test_run(command: str, is_test: bool) -> None:
    assert only_command(Talk().user("Go.").ran(command, "fine").ledger()).is_test is is_test


def test_a_job_is_open_until_it_is_seen_finished() -> None:
    talk = Talk().user("Go.")
    for id in ("b1", "b2"):
        talk.ran(f"make serve-{id}", f"Command running in background with ID: {id}")
    talk.tool("BashOutput", "<status>completed</status>", bash_id="b1")
    assert [job.text for job in talk.ledger().jobs] == ["make serve-b2"]
    talk.user("<task-notification><task-id>b2</task-id><status>failed</status></task-notification>")
    assert talk.ledger().jobs == ()


# The agent


def test_decisions_rejections_and_risks_are_the_agents_own_sentences() -> None:
    talk = Talk().user("Make it safe.").agent("I decided to use a unique index. A lock did not work here.")
    found = talk.agent("Careful: two events may arrive at once. Should I use redis instead?").ledger()
    assert [line.text for line in found.decided] == ["I decided to use a unique index."]
    assert [line.text for line in found.rejected] == ["A lock did not work here."]
    assert [line.text for line in found.risks] == ["Careful: two events may arrive at once."]


def test_code_and_tables_of_the_agent_are_no_sentences() -> None:
    text = "Here is the fix:\n```python\nI decided to use = 3\n```\n| I decided | to use |\n- **I will use** a lock."
    assert [line.text for line in Talk().user("Go.").agent(text).ledger().sentences] == [
        "Here is the fix:",
        "I will use a lock.",
    ]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("**Fixed** the parser.", "Fixed the parser."),
        ("- **Fixed.** It works.", "Fixed."),
        ("I edited src/__init__.py.", "I edited src/__init__.py."),
        ("It takes `f(*a, **kw)` and `g(**kw)` now.", "It takes `f(*a, **kw)` and `g(**kw)` now."),
        ("2 ** 8 is 256, 2 ** 9 more.", "2 ** 8 is 256, 2 ** 9 more."),
    ],
)
def test_emphasis_goes_and_names_stay_whole(text: str, plain: str) -> None:
    assert Talk().user("Go.").agent(text).ledger().sentences[0].text == plain


def test_a_turn_has_what_was_asked_what_came_of_it_and_its_proof() -> None:
    talk = Talk().user("Fix it.").edited("a.py", "old line 1", "new line 1").ran("pytest", "3 passed")
    source = (
        talk.agent("The parser now reads empty files.")
        .user("And b?")
        .read("b.py")
        .agent("It is fine already.")
        .source()
    )
    first, second = ledger(source).turns
    assert [said.text for said in first.asked] == ["Fix it."]
    assert first.answer
    assert first.answer.text == "The parser now reads empty files."
    assert (first.proof, first.failed) == (where(source, "3 passed"), "")
    assert (second.proof, second.failed) == ("", "")


def test_a_turn_whose_last_run_failed_says_so() -> None:
    source = (
        Talk().user("Fix it.").wrote("a.py").ran("pytest", "1 failed", failed=True).agent("It is fixed now.").source()
    )
    assert ledger(source).turns[0].failed == where(source, "1 failed")


def test_an_interrupted_turn_is_marked() -> None:
    talk = Talk().user("Fix it.").read("a.py").user("[Request interrupted by user]").user("Do b instead.").agent("Yes.")
    assert [turn.interrupted for turn in talk.ledger().turns] == [True, False]


# What will be needed again


def test_an_identifier_that_the_agent_writes_late_weighs_more() -> None:
    talk = Talk().user("Go.").agent("I look at first_name here.")
    for _ in range(8):
        talk.agent("Hm.")
    weight = talk.ran("ls", "shown_name").agent("Now late_name.").ledger().weight
    assert weight["late_name"] > weight["first_name"] > weight["shown_name"] > 0


def test_lines_of_output_know_the_file_or_command_they_are_from() -> None:
    source = Talk().user("Go.").read("src/a.py", "     1→def parse_header(raw):\n     2→    return raw").source()
    assert [(line.text, line.about, line.ref) for line in ledger(source).outputs] == [
        ("def parse_header(raw):", "src/a.py", where(source, "parse_header", "result")),
    ]


def test_a_line_that_a_search_found_is_of_the_file_that_it_names() -> None:
    shown = (
        "src/a.py:241:\tparse_header(raw, strict)\nsrc/b.py-7-    return parse_body(raw)\n12:def parse_tail(raw):\n"
        "2026-01-22 10:15:07 parse_log began"
    )
    talk = Talk().user("Go.").ran("grep -rn parse_ src", shown)
    assert [(line.text, line.about) for line in talk.ledger().outputs] == [
        ("parse_header(raw, strict)", "src/a.py"),
        ("return parse_body(raw)", "src/b.py"),
        ("def parse_tail(raw):", "grep -rn parse_ src"),
        ("2026-01-22 10:15:07 parse_log began", "grep -rn parse_ src"),
    ]


@given(talks(), st.sampled_from(FORMS))
def test_every_text_stands_where_its_ref_leads(talk: Talk, form: Form) -> None:
    source = talk.source(form)
    found, evidence = ledger(source), Evidence([source])
    lines = [*found.sentences, *found.outputs, *(line for file in found.files for line in file.lines)]
    for text, here in [(said.text, said.ref) for said in found.said] + [(line.text, line.ref) for line in lines]:
        assert text in evidence.text([here]).replace("**", "")
    for command in found.commands:
        assert command.text in evidence.text([command.ref])
        assert command.told.removesuffix(" …") in evidence.text([command.result])
    for file in found.files:
        assert file.path in evidence.text(file.refs)


def test_the_ledger_of_nothing_is_empty() -> None:
    assert extract("0a1b2c3d", []) == Ledger()


def test_a_list_has_the_force_of_the_line_that_announces_it() -> None:
    plan = (
        "Do this:\n\n# Plan\n\nAdd a parser that handles both shapes:\n- a list: join the texts\n- a string: use it\n\n"
        "It is fast already, and nobody complained about it in all the months that it has been in use at our place.\n\n"
        "- the old name was parse_one\n\nTests should cover:\n- an empty list\n- a list of two"
    )
    kinds = {said.text: said.kind for said in Talk().user(plan).ledger().said}
    assert [kinds["- a list: join the texts"], kinds["- a string: use it"]] == ["rule", "rule"]
    assert [kinds["- an empty list"], kinds["- a list of two"]] == ["criterion", "criterion"]
    assert kinds["- the old name was parse_one"] == "word"


def test_the_form_of_a_call_is_nothing_that_is_used_again() -> None:
    talk = Talk().user("Write it.").wrote("/srv/green/beds.py", "fern_ml = 4\nmoss_ml = 9\n")
    weight = talk.ledger().weight
    assert {"fern_ml", "moss_ml", "/srv/green/beds.py"} <= set(weight)
    assert not {"file_path", "nmoss_ml", "content"} & set(weight)


def test_line_numbers_of_a_read_file_are_nothing_that_is_used_again() -> None:
    talk = Talk().user("Read it.").read("/srv/green/beds.py", "  1001→fern_ml = 4\n  1002→moss_ml = 9")
    weight = talk.ledger().weight
    assert {"fern_ml", "moss_ml"} <= set(weight)
    assert not {"1001", "1002"} & set(weight)
