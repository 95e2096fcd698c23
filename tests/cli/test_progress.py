from __future__ import annotations

from io import StringIO

from rich.console import Console

from pii_bench.cli.progress import RunProgress


def shown(*, terminal: bool, label: str = "naive on demo", done: int = 1, total: int = 3) -> str:
    """What a run shows in which all samples are asked about and the first call fails."""
    file = StringIO()
    with RunProgress(Console(file=file, force_terminal=terminal, width=60)) as progress:
        progress.label(label)
        progress.started(done, total)
        for number in range(total - done):
            progress.advanced(failed=number == 0)
    return file.getvalue()


def test_without_a_terminal_there_are_plain_lines() -> None:
    lines = shown(terminal=False).splitlines()

    assert lines[:2] == ["naive on demo: 1 of 3 answered before", "naive on demo: asking about 2"]
    assert lines[2].startswith("naive on demo: 3 of 3 done, 1 failed, ")
    assert len(lines) == 3


def test_a_long_line_stays_one_line() -> None:
    label = f"detection on {'a-long-name-' * 5}[v1]"

    lines = shown(terminal=False, label=label).splitlines()

    assert len(lines) == 3
    assert all(line.startswith(f"{label}: ") for line in lines)


def test_where_all_is_done_there_is_one_line() -> None:
    assert shown(terminal=False, done=3) == "naive on demo: 3 of 3 answered before\n"


def test_a_run_without_samples_shows_nothing() -> None:
    assert shown(terminal=False, done=0, total=0) == ""


def test_on_a_terminal_there_is_a_bar() -> None:
    bar = shown(terminal=True)

    assert "asking about" not in bar
    assert "3/3" in bar
    assert "1 failed" in bar
