"""Statements and figures of the README and the documentation are correct."""

from __future__ import annotations

import json
import re
import shutil
from statistics import mean
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.cli import main
from pii_bench.construction.perturb import KINDS
from pii_bench.datasets.catalog import load_dataset
from pii_bench.models.catalog import (
    CUSTOM_ENDPOINT_KEY,
    LOCAL,
    PROVIDERS,
    ModelStatus,
    find_card,
    resolve,
)
from pii_bench.prompting.strategies import STRATEGIES
from pii_bench.ranking.stored import score_runs
from pii_bench.systems.catalog import check_name
from pii_bench.systems.prompted import DEFAULT_VOTES, VOTE_TEMPERATURE
from tests.builders import read_csv
from tests.cli.command import run_python
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def read(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


README: Final = read("README.md")
RUNNING: Final = read("docs/running.md")
ROBUSTNESS: Final = read("docs/robustness.md")
SYSTEMS: Final = read("docs/systems.md")
PAGES: Final = "\n".join(
    [README, *(p.read_text(encoding="utf-8") for p in sorted((REPOSITORY / "docs").glob("*.md")))]
)
MAKEFILE: Final = read("Makefile")
TUNING: Final = REPOSITORY / "results" / "fine-tuning"


def row(option: str) -> str:
    """Return the row of an option in the table of docs/running.md."""
    found = re.search(rf"^\| `{option}` .*$", RUNNING, re.MULTILINE)
    assert found is not None
    return found[0]


def test_every_strategy_is_listed() -> None:
    assert re.findall(r"`([a-z][a-z-]+)`", row("STRATEGY"))[: len(STRATEGIES)] == list(STRATEGIES)


def test_every_provider_and_its_key_is_listed() -> None:
    named = set(re.findall(r"`([a-z]+)/NAME`", row("MODEL")))
    assert named == set(PROVIDERS)
    assert f"`{LOCAL}/PATH.gguf`" in row("MODEL")
    keys = {provider.key_variable for provider in PROVIDERS.values()} | {CUSTOM_ENDPOINT_KEY}
    assert set(re.findall(r"`([A-Z_]+_API_KEY)`", RUNNING)) == keys


def test_every_mentioned_option_exists(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [
        *("run", "score", "models", "convert capid-outputs", "leaderboard", "mask", "utility"),
        *("report", "export every-eval-ever", "data build", "data stats", "gate", "train"),
        *("spans", "cost", "compare", "serve", "export fine-tuning", "data perturb"),
    ]

    # Other harnesses, mypy, pytest and Ray have options of their own.
    ours = re.sub(r"(?m)^(?:inspect|lm_eval)(?:.*\\\n)*.*$", "", PAGES)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", ours))
    named -= {"--strict", "--update-golden", "--address", "--temp-dir"}
    for command in commands:
        with pytest.raises(SystemExit):
            main([*command.split(), "--help"])
    assert named - set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out)) == set()


def test_every_model_of_a_command_exists_and_is_not_deprecated() -> None:
    # Of our own commands: those of other harnesses have other names.
    commands = re.findall(r"^pii-bench .*$", PAGES, re.MULTILINE)
    options = r"--(?:model|judge|answerer)((?: [a-z][^ ]*)+)"
    names = {
        name for line in commands for taken in re.findall(options, line) for name in taken.split()
    }
    named = {name for name in names if not name.startswith("local/")}

    assert {"encoder", "gpt-6-luna", "claude-sonnet-5.5", "presidio"} <= named
    for name in named:
        check_name(name)
        provider, _, model = resolve(name).partition("/")
        card = find_card(provider, model)
        assert card is None or card.status is ModelStatus.CURRENT, name


def test_every_variable_of_make_bench_is_listed() -> None:
    (shown,) = re.findall(r"^bench: .*## (.*)$", MAKEFILE, re.MULTILINE)

    assert re.findall(r"^\| `([A-Z_]+)` ", RUNNING, re.MULTILINE) == re.findall(
        r"\[([A-Z_]+)=\]", shown
    )


def test_make_train_encoder_continues_as_the_shipped_weights_were() -> None:
    record = json.loads((REPOSITORY / "data/models/encoder/training.json").read_text("utf-8"))
    earlier = [log for log in record["earlier"].values() if log["start"]]
    # Trainings of no epoch are means.
    continued = [log["settings"] for log in earlier if log["settings"]["epochs"]]

    assert re.findall(r"\(call CONTINUE,[\w-]+,(\d+),(\d+),([\d.]+),", MAKEFILE) == [
        (str(each["seed"]), str(each["epochs"]), str(each["learning_rate"])) for each in continued
    ]


def test_the_page_gives_the_number_and_temperature_of_votes() -> None:
    sentence = f"{DEFAULT_VOTES} calls per sample (`--votes`) at temperature {VOTE_TEMPERATURE}"

    assert sentence in RUNNING


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_every_linked_page_exists() -> None:
    linked = set(re.findall(r"\]\(((?:docs|data)/[^)#]+)\)", README))

    assert len(linked) > 5
    assert [page for page in sorted(linked) if not (REPOSITORY / page).exists()] == []


Figures = dict[tuple[str, str, str, str], dict[str, str]]
"""Rows by model, strategy, dataset and task."""


@pytest.fixture(scope="module")
def reference() -> Figures:
    """The figures of the systems that the tables name, from their stored answers."""
    stored, runs = REPOSITORY / "results/reference", []
    # Scoring takes seconds, and no table has the other runs.
    told = ["*/detection", "*/encoder", "*/embedding"]
    told += [f"bilstm-crf/{relevance}" for relevance in ("keyword", "none", "gold")]
    for name, systems in {"single": told, "multi": told, "distract": ["encoder/*"]}.items():
        dataset = load_dataset(name)
        for system in systems:
            runs += [(path, dataset) for path in stored.glob(f"{system}/{name}.run.json")]
    # Not from a CSV, whose figures are rounded already.
    return {
        (row.model, row.strategy, row.dataset, row.task.value): {
            name: repr(figure) for name, figure in row.metrics.items()
        }
        for row in score_runs(runs, None)
    }


def foreign() -> Figures:
    """The figures on test sets of other projects."""
    return {
        (row["model"], row["strategy"], row["dataset"].partition("-")[0], row["task"]): row
        for row in read_csv(REPOSITORY / "results/foreign.csv")
        if row["source"] in {"run", "reference"}
    }


def cells(rows: Figures, system: str, datasets: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Each column over the datasets, as a table shows it: "0.877 / 0.875"."""
    model, _, relevance = system.partition("+")
    relevance = relevance or model.partition(":")[0]
    shown = []
    for column in columns:
        if model == "gold" and column in {"strict_f1", "ent_f1"}:
            shown.append("-" if column == "strict_f1" else " / ".join(["1.000"] * len(datasets)))
            continue
        strategy, task = {
            "strict_f1": ("detection", "detection"),
            "ent_f1": ("detection", "detection"),
            "f1": (relevance, "query-related"),
        }.get(column, (relevance, "masking"))
        name = column.removeprefix("masking_")
        figures = [rows[model, strategy, dataset, task].get(name) for dataset in datasets]
        texts = [f"{float(figure):.3f}" for figure in figures if figure]
        shown.append(" / ".join(texts) or "-")
    return shown


def table(page: str, heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading: the system's name and the figures."""
    body = page.partition(heading)[2].partition("\n\n")[0]
    rows = re.findall(r"^\| .*?`([a-z:+-]+)`\)? \| (.*) \|$", body, re.MULTILINE)
    return {system: line.split(" | ") for system, line in rows}


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        (README, "| system | Strict-F1 single / multi |"),
        (SYSTEMS, "| head | Strict-F1 single / multi |"),
    ],
    ids=["README", "systems"],
)
def test_the_figures_of_systems_are_those_of_the_reference_runs(
    page: str, heading: str, reference: Figures
) -> None:
    told = table(page, heading)

    assert told
    for system, line in told.items():
        columns = ("strict_f1", "ent_f1", "f1", "h")
        found = cells(reference, system, ("single", "multi"), columns)
        assert [system, *line] == [system, *found]


def test_the_figures_on_other_peoples_data_are_those_of_results() -> None:
    rows = foreign()
    told = table(README, "| system | CAPID Ent-F1 |")

    assert told
    for system, line in told.items():
        capid = cells(rows, system, ["capid"], ("ent_f1", "f1", "masking_f1", "h"))
        assert [system, *line] == [system, *capid, *cells(rows, system, ["tab"], ["ent_f1"])]


def test_the_agreement_with_capid_is_that_of_its_file() -> None:
    rows = read_csv(REPOSITORY / "results/agreement.csv")
    rho = {(row["dataset_a"], row["task"], row["metric"]): float(row["rho"]) for row in rows}
    columns = (("query-related", "f1"), ("masking", "f1"), ("masking", "h"))

    assert {row["systems"] for row in rows} == {"21"}
    assert table(read("docs/results.md"), "| ours | query F1 |") == {
        name: [f"{rho[name, *column]:.2f}" for column in columns]
        for name in ("single", "multi", "hard", "distract")
    }


@pytest.mark.parametrize(
    ("line", "metric"),
    [
        ("unneeded values that stay readable", "protection"),
        ("needed values that are hidden", "retention"),
    ],
)
def test_the_shares_of_readable_and_hidden_values_are_the_measured_ones(
    line: str, metric: str, reference: Figures
) -> None:
    rows = {**foreign(), **reference}
    names = ("single", "multi", "distract", "capid")
    figures = [float(rows["encoder", "encoder", name, "masking"][metric]) for name in names]

    shares = " | ".join(f"{100 - 100 * figure:.0f} %" for figure in figures)
    assert f"| {line} | {shares} |" in README


@pytest.mark.parametrize("page", ["README.md", "docs/masking.md", "docs/extending.md"])
def test_examples_in_python_run_and_print_what_is_shown(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL)

    assert blocks
    for block in blocks:
        script = tmp_path / "example.py"
        script.write_text(block, encoding="utf-8")
        output = run_python(str(script), cwd=tmp_path)
        shown = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
        for told, printed in zip(shown, output.splitlines(), strict=True):
            assert re.fullmatch(re.escape(told).replace("…", r"\d+"), printed)


def test_the_figures_of_detectors_on_presidio_research_are_those_of_results() -> None:
    rows = {(row["model"], row["slice"]): row for row in read_csv(REPOSITORY / "results/spans.csv")}
    page = read("docs/spans.md")
    told = re.findall(r"^\| `([a-z-]+)` \| (\d+) \| (.*) \|$", page, re.MULTILINE)

    assert [model for model, *_ in told] == [model for model, part in rows if part == "all"]
    for model, gold, cells in told:
        whole = rows[model, "all"]
        figures = [whole[f"{name}f1"] for name in ("", "token_", "overlap_")]
        figures += [rows.get((model, f"tier {n}"), {}).get("recall", "") for n in range(1, 5)]
        shown = [cell.partition(" ")[0] for cell in cells.split(" | ")]
        assert gold == whole["gold"]
        assert shown == [f"{float(each):.3f}" if each else "-" for each in figures]
    f1 = {model: float(row["f1"]) for (model, part), row in rows.items() if part == "all"}
    assert f"exact F1 {f1['encoder']:.3f}, {f1['presidio']:.3f};" in README


def test_the_figures_of_ablations_are_those_of_results() -> None:
    table = SYSTEMS.partition("| weights | trained on |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| `([a-z0-9-]+)` \|.*?\| ([\d. |]+) \|$", table, re.MULTILINE)

    columns = ("strict_f1", "ent_f1", "f1", "h")
    assert dict(told) == {
        row["weights"]: " | ".join(f"{float(row[name]):.3f}" for name in columns)
        for row in read_csv(REPOSITORY / "results/ablations.csv")
        if row["epochs"] == "1"
    }


def test_every_perturbation_is_listed_with_its_rate() -> None:
    told = re.findall(r"^\| `([a-z-]+)` \| [a-z].* \| ([\d.]+) \|$", ROBUSTNESS, re.MULTILINE)

    assert told == [(name, f"{kind.rate:g}") for name, kind in KINDS.items()]


def test_the_figures_on_perturbed_versions_are_those_of_results() -> None:
    columns = ("model", "strategy", "task", "metric", "kind")
    results = read_csv(REPOSITORY / "results/robustness.csv")
    rows = {tuple(row[name] for name in columns): row for row in results}
    tables = re.findall(
        r"^### [^\n]*`(\w+)`$.*?^\| kind \| (.*?) \|$(.*?)^$", ROBUSTNESS, re.MULTILINE | re.DOTALL
    )

    assert [metric for metric, *_ in tables] == ["ent_f1", "f1", "h"]
    for metric, header, body in tables:
        systems = re.findall("`(.*?)`", header)
        lines = re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", body, re.MULTILINE)
        assert [kind for kind, _ in lines] == list(KINDS)
        for kind, told in lines:
            for system, cell in zip(systems, told.split(" | "), strict=True):
                row = rows[*_run_of(system, metric), metric, kind]
                drop, low, high, same = (
                    float(row[name]) for name in ("drop", "drop_low", "drop_high", "consistency")
                )
                assert cell == f"{drop:+.3f} ({low:+.2f} to {high:+.2f}), {same:.2f}"


def _run_of(system: str, metric: str) -> tuple[str, str, str]:
    model, _, strategy = system.partition("+")
    if metric == "ent_f1":
        return model, "detection", "detection"
    return model, strategy or model, "query-related" if metric == "f1" else "masking"


def test_the_page_on_frontier_quotes_the_set() -> None:
    samples = {sample.id: sample for sample in load_dataset("frontier").samples}
    quoted = re.findall(
        r"^## (\S+)\n.*?^`(frontier-\d+)`\n\n```text\n(.*?)\n```\n\n> (.*?)\n\nNeeded: (.*?)\.\n",
        read("docs/frontier.md"),
        re.MULTILINE | re.DOTALL,
    )

    assert len(quoted) == 9
    for reason, sample_id, text, query, needed in quoted:
        sample = samples[sample_id]
        texts = [" ".join(related.text.split()) for related in sample.related]
        assert reason in sample.meta["reasons"]
        assert (text, query) == (sample.description, sample.query)
        assert needed == (", ".join(f"`{each}`" for each in texts) or "nothing")


def test_the_page_on_fine_tuning_quotes_its_run() -> None:
    page = read("docs/fine-tuning.md")
    told = re.findall(r"^\| `(local/[^`]+)` \| (.*) \|$", page, re.MULTILINE)
    losses = [float(row["loss"]) for row in read_csv(TUNING / "loss.csv")]
    seconds = json.loads((TUNING / "training.json").read_text(encoding="utf-8"))["seconds"]

    assert told == [
        (row["model"], " | ".join([row["dataset"], row["scored"], *rounded(row)]))
        for row in read_csv(TUNING / "rows.csv")
    ]
    assert re.findall(r"^\| (\d+) to (\d+) \| ([\d.]+) \|$", page, re.MULTILINE) == [
        (str(first + 1), str(first + 20), f"{mean(losses[first : first + 20]):.3f}")
        for first in range(0, len(losses), 20)
    ]
    assert f"{len(losses)} steps took {seconds / 60:.0f} minutes" in page


def test_the_rows_before_and_after_fine_tuning_follow_from_the_stored_answers(
    tmp_path: Path,
) -> None:
    shutil.copytree(TUNING / "runs", tmp_path / "runs")

    assert main(["leaderboard", "--results", str(tmp_path)]) == 0

    found = [row for row in read_csv(tmp_path / "leaderboard.csv") if row["source"] == "run"]
    assert [(row["model"], row["dataset"], rounded(row)) for row in found] == [
        (row["model"], row["dataset"], rounded(row)) for row in read_csv(TUNING / "rows.csv")
    ]


def rounded(row: dict[str, str]) -> list[str]:
    valid = float(row["rate_ok"]) + float(row["rate_repaired"])
    figures = (valid, *(float(row[name]) for name in ("f1", "precision", "recall")))
    return [f"{figure:.3f}" for figure in figures]
