"""What an agent's tool does, by its name."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

Action = Literal["read", "write", "edit", "run", "search", "plan", "ask", "approve", "delegate", "poll", "other"]

ACTIONS: dict[str, Action] = {
    # Claude Code
    "Read": "read", "NotebookRead": "read", "Write": "write", "Edit": "edit", "MultiEdit": "edit",
    "NotebookEdit": "edit", "Bash": "run", "Grep": "search", "Glob": "search", "LS": "search",
    "WebSearch": "search", "WebFetch": "read", "ToolSearch": "other", "TodoWrite": "plan", "TaskCreate": "plan",
    "TaskUpdate": "plan", "AskUserQuestion": "ask", "ExitPlanMode": "approve", "exit_plan_mode": "approve",
    "Task": "delegate", "Agent": "delegate", "TaskOutput": "poll", "BashOutput": "poll", "AgentOutputTool": "poll",
    "KillShell": "poll", "KillBash": "poll", "TaskStop": "poll",
    # Codex
    "shell": "run", "exec_command": "run", "local_shell_call": "run", "apply_patch": "edit", "update_plan": "plan",
    "write_stdin": "poll", "view_image": "read", "request_user_input": "ask",
    # Gemini CLI, Qwen Code
    "read_file": "read", "read_many_files": "read", "write_file": "write", "replace": "edit",
    "run_shell_command": "run", "search_file_content": "search", "glob": "search", "list_directory": "search",
    "google_web_search": "search", "web_fetch": "read", "write_todos": "plan", "save_memory": "other",
    # pi, opencode, Cline, Roo Code, OpenHands, SWE-agent, loops of one's own
    "read": "read", "write": "write", "edit": "edit", "multiedit": "edit", "patch": "edit", "bash": "run",
    "grep": "search", "find": "search", "ls": "search", "todowrite": "plan", "task": "delegate", "question": "ask",
    "write_to_file": "write", "replace_in_file": "edit", "execute_command": "run", "search_files": "search",
    "list_files": "search", "ask_followup_question": "ask", "str_replace_editor": "edit", "execute_bash": "run",
    "str_replace_based_edit_tool": "edit", "open": "read", "create": "write", "run": "run", "run_command": "run",
    "ask_user": "ask", "ask_human": "ask", "ask_user_question": "ask", "create_file": "write", "edit_file": "edit",
    "editor": "edit", "read_files": "read", "run_commands": "run", "apply_diff": "edit", "insert_content": "edit",
    "search_and_replace": "edit", "codebase_search": "search", "list_code_definition_names": "search",
    "delete_file": "edit", "search": "search", "sh": "run", "terminal": "run", "execute": "run",
}  # fmt: skip

ASKS: dict[str, frozenset[str]] = {
    "claude-code": frozenset(("AskUserQuestion",)),
    "codex": frozenset(("request_user_input",)),
    "messages": frozenset(name for name, does in ACTIONS.items() if does == "ask"),
}
"""The tools whose results carry the user's voice, by who wrote the record: elsewhere the name is anybody's."""

PATH_KEYS = ("file_path", "path", "notebook_path", "absolute_path", "filePath", "filename", "file", "target_file")
COMMAND_KEYS = ("command", "cmd", "script")


def action(name: str) -> Action:
    """What the tool of that name does; `other` when the table doesn't say."""
    return ACTIONS.get(name, "other")


def path_of(arguments: Mapping[str, Any]) -> str:
    """The one file that a call names, or an empty string."""
    several = arguments.get("files")
    first = several[0] if isinstance(several, list) and len(several) == 1 else None
    given = [arguments, first] if isinstance(first, dict) else [arguments]
    return next((v for one in given for key in PATH_KEYS if isinstance(v := one.get(key), str)), "")


def command_of(arguments: Mapping[str, Any]) -> str:
    """The command line that a call runs, or an empty string."""
    for key in COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return " ".join(value[2:] if value[:1] in (["bash"], ["sh"], ["zsh"]) and len(value) > 2 else value)
    several = arguments.get("commands")
    return "; ".join(one for one in several if isinstance(one, str)) if isinstance(several, list) else ""


def strings(value: Any) -> Iterator[str]:
    """The strings in a call's arguments, however deep."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, Mapping):
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)
