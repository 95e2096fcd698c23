"""`pii-bench run --config`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main, run_matrix
from tests.builders import read_folder, write_lines
from tests.cli.conftest import right, table_lines
from tests.protocol_server import api_error, completion

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys
    from tests.protocol_server import ProtocolServer, ReceivedRequest, Reply


def write(*lines: str, datasets: str = '["demo"]') -> Path:
    path = Path("bench.toml")
    path.write_text("\n".join([*lines, f"datasets = {datasets}"]), encoding="utf-8")
    return path


def run(config: Path, *options: str) -> int:
    return main(["run", "--config", str(config), *options])


def at(server: ProtocolServer) -> tuple[str, ...]:
    return ("--base-url", f"{server.url}/v1")


def headings(errors: str) -> list[str]:
    return re.findall(r"^(\d+ of \d+: .*)$", errors, re.MULTILINE)


@pytest.mark.usefixtures("gold_answers")
def test_every_cell_runs_and_one_summary_is_printed(capsys: Capsys) -> None:
    models = 'models = ["replay:gold.jsonl", "gold+keyword", "gold+none"]'

    assert run(write(models, 'strategies = ["naive", "self-cot"]')) == 0

    output = capsys.readouterr()
    assert headings(output.err) == [
        "1 of 4: replay:gold.jsonl+naive",
        "2 of 4: replay:gold.jsonl+self-cot",
        "3 of 4: gold+keyword",
        "4 of 4: gold+none",
    ]
    runs = Path("results/runs").glob("*/*/*.run.json")
    assert sorted(str(path.parent.relative_to(Path("results/runs"))) for path in runs) == [
        "gold/detection",
        "gold/keyword",
        "gold/none",
        "replay--gold/detection",
        "replay--gold/naive",
        "replay--gold/self-cot",
    ]
    assert output.out.count("leaderboard: ") == 1
    assert re.findall(r"^(\S.*?), oracle|^(\S.*?)  +1\.000$", output.out, re.MULTILINE) == [
        *[("", "replay/gold"), ("gold", "")],
        *[("", "replay/gold+naive"), ("", "replay/gold+self-cot")],
        *[("gold+keyword", ""), ("gold+none", "")],
        *[("", "replay/gold+naive"), ("", "replay/gold+self-cot")],
        *[("gold+keyword", ""), ("gold+none", "")],
    ]
    # That would be a mean over different systems.
    assert "can still be read" not in output.out


def test_a_cell_has_the_same_results_as_a_single_run() -> None:
    assert run(write('models = ["gold+keyword"]', "limit = 3")) == 0

    alone = ["run", "--model", "gold+keyword", "--dataset", "demo", "--limit", "3"]
    assert main([*alone, "--results", "alone"]) == 0

    assert read_folder(Path("alone")) == read_folder(Path("results"))


def test_a_cell_that_cannot_run_is_logged_and_the_next_one_runs(capsys: Capsys) -> None:
    config = write('models = ["openai/m", "replay:gone.jsonl", "gold+none"]')

    assert run(config) == 1

    output = capsys.readouterr()
    lines = output.err.splitlines()
    assert lines[:4] == [
        "1 of 3: openai/m+naive",
        ("openai/m+naive: provider 'openai' needs a key: set OPENAI_API_KEY in the environment"),
        "2 of 3: replay:gone.jsonl+naive",
        "replay:gone.jsonl+naive: gone.jsonl: No such file or directory",
    ]
    assert lines[-1] == (
        "2 of 3 are incomplete: openai/m+naive, replay:gone.jsonl+naive; run again to continue"
    )
    assert "gold+none, oracle" in output.out

    assert run(config, "--dry-run") == 1
    output = capsys.readouterr()
    assert "replay:gone.jsonl+naive: gone.jsonl: No such file" in output.err
    assert "| gold " in output.out


def test_without_a_runnable_cell_there_is_no_leaderboard(capsys: Capsys) -> None:
    assert run(write('models = ["openai/m"]')) == 1

    assert capsys.readouterr().out == ""
    assert not Path("results").exists()


def test_a_provider_that_refuses_one_model_answers_the_next(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        refused = request.body["model"] == "a"
        return api_error(404, "model_not_found") if refused else right(completion)(request)

    protocol_server.script(answer)
    # What is set for chat models does not reach the last.
    config = write('models = ["openai/a", "openai/b", "gold+none"]', "limit = 2")

    options = ("--max-tokens", "100", "--timeout", "60")
    assert run(config, *at(protocol_server), *options) == 1

    output = capsys.readouterr()
    assert "\nopenai/a+naive: provider 'openai' refuses model 'a': HTTP 404" in output.err
    assert output.err.splitlines()[-1] == (
        "1 of 3 are incomplete: openai/a+naive; run again to continue"
    )
    assert [request.body["model"] for request in protocol_server.requests].count("b") == 4
    assert re.search(r"^openai/b@\S+\+naive +1\.000 2/12$", output.out, re.MULTILINE)
    assert "gold+none, oracle" in output.out


def test_all_cells_share_the_cap(protocol_server: ProtocolServer, capsys: Capsys) -> None:
    # 100 tokens may cost 0.001 USD; an answer takes 50. After the first model 0.0017 are left:
    # two calls of the second bring it to 0.001, and a third might bring it to 0.002.
    protocol_server.script(right(lambda text: completion(text, usage=(900, 50))))
    config = write(
        'models = ["openai/a", "openai/b", "gold"]',
        *('task = "detection"', "limit = 3", "concurrency = 1", "max_usd = 0.0032"),
    )

    assert run(config, *at(protocol_server), "--price", "0,10", "--max-tokens", "100") == 1

    asked = [request.body["model"] for request in protocol_server.requests]
    assert asked == ["a", "a", "a", "b", "b"]
    errors = capsys.readouterr().err
    assert "1 of 3 samples have no answer, skipped_budget 1;" in errors
    assert errors.splitlines()[-1] == "1 of 3 are incomplete: openai/b; run again to continue"


def test_a_dry_run_estimates_shared_calls_once(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    config = write(
        'models = ["openai/m", "gold+none"]',
        'strategies = ["naive", "self-cot"]',
        "limit = 3",
    )

    assert run(config, *at(protocol_server), "--dry-run") == 0

    _, *cells = table_lines(capsys.readouterr().out)
    model = "openai/m@" + protocol_server.url.removeprefix("http://")
    assert [row[:4] for row in cells] == [
        [model, "detection", "demo", "3"],
        [model, "naive", "demo", "3"],
        [model, "self-cot", "demo", "3"],
        ["gold", "detection", "demo", "0"],
        ["gold", "none", "demo", "0"],
        ["total", "", "", "9"],
    ]
    assert protocol_server.requests == []
    assert not Path("results").exists()


def test_the_command_line_overrides_the_file() -> None:
    config = write('models = ["gold+none"]', 'results = "there"', 'task = "detection"')

    assert run(config, "--results", "here", "--task", "all") == 0

    runs = Path("here/runs").glob("*/*/*.run.json")
    assert {path.parent.name for path in runs} == {"detection", "none"}
    assert not Path("there").exists()


def test_a_dataset_with_two_names_runs_once(capsys: Capsys) -> None:
    label = {"type": "health", "relevance": "1"}
    line = {"context": "Mo has gout.", "question": "Why?", "piis": {"gout": label, "flu": label}}
    write_lines(Path("test.jsonl"), [line])
    names = '["capid:test.jsonl", "demo", "capid:./test.jsonl", "demo"]'

    assert run(write('models = ["gold"]', datasets=names)) == 0

    # Otherwise its faults would be logged twice.
    assert len(re.findall("annotation faults left out", capsys.readouterr().err)) == 1


@pytest.mark.parametrize(
    ("lines", "datasets", "what"),
    [
        (['models = ["gold", "goldd"]'], '["demo"]', "bench.toml: unknown model 'goldd'"),
        (['models = ["gold"]'], '["demo", "hrd"]', "bench.toml: unknown dataset 'hrd'; did you "),
        (['models = ["gold"]'], '["demo", "gone.jsonl"]', "gone.jsonl: No such file"),
    ],
)
def test_a_wrong_file_is_refused_before_any_call(
    capsys: Capsys, lines: list[str], datasets: str, what: str
) -> None:
    write(*lines, datasets=datasets)

    assert main(["run", "--config", "bench.toml"]) == 2

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"pii-bench: {what}")
    assert not Path("results").exists()


def test_a_cap_with_a_model_of_unknown_price_is_refused_before_any_call(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    models = 'models = ["gold", "openai/a", "gpt4o", "openai/b"]'
    config = write(models, 'strategies = ["naive", "self-cot"]', "max_usd = 20")

    # The price of gpt4o is that of its provider, not of the server.
    assert run(config) == run(config, *at(protocol_server)) == 2

    start = "pii-bench: a cap of 20 USD needs the price of every model; unknown: "
    end = "; give it with --price IN,OUT (USD per million tokens)"
    assert capsys.readouterr().err.splitlines() == [
        f"{start}openai/a, openai/b{end}",
        f"{start}openai/a, gpt4o, openai/b{end}",
    ]
    assert protocol_server.requests == []
    assert not Path("results").exists()


def test_a_given_price_is_that_of_the_models_of_unknown_price(capsys: Capsys) -> None:
    def usd(models: list[str], *options: str) -> dict[str, float]:
        """Return the expected cost of each run of an estimate."""
        config = write(f"models = {models}", "limit = 3")
        assert run(config, "--task", "query-related", "--dry-run", "--json", *options) == 0
        records = json.loads(capsys.readouterr().out)
        return {record["model"]: record["usd"]["expected"] for record in records}

    alone = usd(["gpt-6-astra"])
    both = usd(["gpt-6-astra", "openai/new"], "--price", "0.1,0.5")

    assert both["openai/gpt-6-astra"] == alone["openai/gpt-6-astra"] > both["openai/new"] > 0


@pytest.mark.parametrize("models", ['["gpt-6-astra", "gold", "gpt-6-luna"]', '["gold"]'])
def test_a_price_that_no_model_needs_is_refused(models: str, capsys: Capsys) -> None:
    assert run(write(f"models = {models}"), "--price", "1,2") == 2

    assert capsys.readouterr().err == (
        "pii-bench: --price is for models of unknown price: the file names none "
        "(see `pii-bench models`)\n"
    )


def test_an_interrupt_ends_all(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_matrix, "get_responses", interrupted)

    assert run(write('models = ["gold+all", "gold+none"]')) == 1

    output = capsys.readouterr()
    assert headings(output.err) == ["1 of 2: gold+all"]
    assert output.out == ""
