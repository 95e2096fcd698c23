"""Runs in batches, and runs that share requests."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main
from tests.batch_protocols import AnthropicBatches, MistralBatches, OpenAIBatches
from tests.batch_server import EXPIRED, Item
from tests.builders import read_folder, read_lines, sample_record, write_lines
from tests.cli.conftest import right_items, run_chat
from tests.protocol_server import completion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.batch_server import BatchServer, StoredJob
    from tests.cli.conftest import Capsys
    from tests.protocol_server import ProtocolServer


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIBatches]:
    with OpenAIBatches() as server:
        answer_rightly(server, monkeypatch)
        yield server


def answer_rightly(server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.clock = time.time()
    monkeypatch.setattr(server, "outcomes", right_items)


def detect(server: BatchServer | ProtocolServer, *options: str) -> int:
    return run_chat(server, "--all", "--task", "detection", *options)


@pytest.mark.parametrize(
    ("protocol", "model"),
    [
        (OpenAIBatches, "openai/m"),
        (AnthropicBatches, "anthropic/m"),
        (MistralBatches, "mistral/m"),
    ],
)
def test_right_answers_of_batches_score_1(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, protocol: Callable[[], BatchServer], model: str
) -> None:
    with protocol() as server:
        answer_rightly(server, monkeypatch)
        server.looks = 1

        assert run_chat(server, "--all", "--batch", "--price", "2,10", "--model", model) == 0

        assert len(server.jobs) == 2
    output = capsys.readouterr()
    assert output.out.count("| 1.000") == 3 + 4 + 5
    assert output.out.count("| 12/12") == 3
    assert {
        line["batched"] for path in Path().rglob("demo.jsonl") for line in read_lines(path)
    } == {True}
    assert not list(Path().rglob("*.batch.json"))
    # 12 times 11 tokens at 2 USD and 7 at 10 USD per million, at half the price in a batch.
    manifests = Path("results").glob("runs/*/*/demo.run.json")
    spent = [json.loads(path.read_text())["totals"]["usd"] for path in manifests]
    assert spent == [0.000552, 0.000552]


def test_a_batch_run_prints_little(batches: OpenAIBatches, capsys: Capsys) -> None:
    batches.looks = 1

    detect(batches, "--batch", "--price", "2,10")

    first, *others = capsys.readouterr().err.splitlines()
    assert first == "detection on demo: 12 to answer"
    assert len(others) == 1
    # What a batch costs is not known while it runs.
    assert others[0].startswith("detection on demo: 12 of 12 done, 0 failed, ")
    assert "USD" not in others[0]


def test_submitted_or_interrupted_requests_are_not_paid_again_as_single_calls(
    batches: OpenAIBatches, capsys: Capsys
) -> None:
    batches.looks = 9
    detect(batches, "--batch", "submit", "--limit", "2")
    before, calls = read_folder(Path()), len(batches.requests)
    capsys.readouterr()

    assert detect(batches) == 2

    (path,) = Path().rglob("*.batch.json")
    assert capsys.readouterr().err == (
        "pii-bench: detection on demo: 2 samples are in batches that were submitted before: run "
        f"with --batch to collect them; without {path} they are asked again\n"
    )
    assert (read_folder(Path()), len(batches.requests)) == (before, calls)

    # The submission was interrupted: whether the batch exists is unknown.
    path.write_text(re.sub(r'"id": ".*?"', '"id": null', path.read_text()))
    assert detect(batches) == 2
    message = "detection on demo: 2 samples may be in batches that were submitted before: "
    assert message in capsys.readouterr().err


def test_batches_of_a_file_of_runs_share_its_cap(batches: OpenAIBatches) -> None:
    # Three requests of the first may cost 0.0015 USD: two of the second fit.
    config = Path("bench.toml")
    config.write_text(
        'models = ["openai/a", "openai/b", "gold"]\ndatasets = ["demo"]\ntask = "detection"\n'
        "limit = 3\nmax_usd = 0.00275\n"
    )
    asked = ("--config", str(config), "--base-url", f"{batches.url}/v1", "--batch")
    batches.looks = 1

    assert main(["run", *asked, "--price", "0,10", "--max-tokens", "100"]) == 1

    assert [len(job.requests) for job in batches.jobs.values()] == [3, 2]


def test_equal_requests_of_another_dataset_are_reused(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    for name in ("one", "two"):
        write_lines(Path(f"{name}.jsonl"), [sample_record(f"{name}-1")])
    protocol_server.script(lambda _: completion('Subject1{"Ann Lee": "PER"}'))

    assert detect(protocol_server, "--dataset", "one.jsonl") == 0
    capsys.readouterr()
    assert detect(protocol_server, "--dataset", "two.jsonl", "--dry-run") == 0
    assert re.search(r"\| *0 \|", capsys.readouterr().out)
    assert detect(protocol_server, "--dataset", "two.jsonl") == 0

    assert len(protocol_server.requests) == 1
    assert "1 answers to the same requests are used again, from other" in capsys.readouterr().err
    first, second = sorted(Path().glob("results/runs/*/detection/*-????????.jsonl"))
    (one,), (two,) = read_lines(first), read_lines(second)
    assert (one | {"id": ""}, two["id"]) == (two | {"id": ""}, "two-1")


@pytest.fixture
def overlapping(batches: OpenAIBatches, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A run of three datasets; the last contains the samples of the others, and one more."""
    monkeypatch.setattr(batches, "outcomes", lambda job: {name: Item() for name in job.requests})
    texts = {"one": "Ann Lee.", "two": "Bob Ray.", "three": "Cy Fox."}
    hard = [
        sample_record(f"hard-{name}", description=text, subjects=[], related=[])
        for name, text in texts.items()
    ]
    for name, record in zip(("one", "two"), hard, strict=False):
        write_lines(Path(f"{name}.jsonl"), [record | {"id": f"{name}-1"}])
    write_lines(Path("hard.jsonl"), hard)
    config = Path("bench.toml")
    config.write_text(
        'models = ["openai/m"]\ndatasets = ["one.jsonl", "two.jsonl", "hard.jsonl"]\n'
        'task = "detection"\n'
    )
    return ("run", "--config", str(config), "--base-url", f"{batches.url}/v1", "--batch")


def answered() -> dict[str, str]:
    """Return sample id to request hash for every stored answer."""
    paths = Path().glob("results/runs/*/detection/*.jsonl")
    lines = (line for path in paths for line in read_lines(path))
    return {line["id"]: line["request"] for line in lines if "error" not in line}


def test_equal_requests_of_two_datasets_are_submitted_once(
    batches: OpenAIBatches, overlapping: tuple[str, ...], capsys: Capsys
) -> None:
    batches.looks = 2

    assert main(overlapping) == 0

    assert [len(job.requests) for job in batches.jobs.values()] == [1, 1, 1]
    requests = answered()
    assert sorted(requests) == ["hard-one", "hard-three", "hard-two", "one-1", "two-1"]
    assert requests["hard-one"] == requests["one-1"] != requests["two-1"]
    errors = capsys.readouterr().err
    assert "2 requests are in batches of other datasets: asked once" in errors
    assert "2 answers to the same requests are used again, from other datasets" in errors


def test_a_shared_batch_is_collected_for_both_datasets(
    batches: OpenAIBatches, overlapping: tuple[str, ...], capsys: Capsys
) -> None:
    batches.looks = 1

    assert main([*overlapping, "submit", "--dry-run", "--json"]) == 0
    assert [row["calls"] for row in json.loads(capsys.readouterr().out)] == [1, 1, 1]
    assert main([*overlapping, "submit"]) == 1
    assert re.search(
        r"hard-\w+: 3 of 3 samples have no answer, in batches 3; run again to collect them",
        capsys.readouterr().err,
    )
    assert main([*overlapping, "submit", "--dry-run", "--json"]) == 0
    assert [row["calls"] for row in json.loads(capsys.readouterr().out)] == [0, 0, 0]
    assert main([*overlapping, "submit"]) == 0

    assert [len(job.requests) for job in batches.jobs.values()] == [1, 1, 1]
    assert len(answered()) == 5


def test_a_failure_for_one_dataset_is_retried_for_the_other(
    batches: OpenAIBatches, overlapping: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_fails(job: StoredJob) -> dict[str, Item]:
        return {name: EXPIRED if job.id == min(batches.jobs) else Item() for name in job.requests}

    monkeypatch.setattr(batches, "outcomes", first_fails)
    batches.looks = 1

    assert main(overlapping) == 1
    assert sorted(answered()) == ["hard-one", "hard-three", "hard-two", "two-1"]

    # The answer that `hard` got is that of the first dataset too.
    jobs = len(batches.jobs)
    assert main(overlapping) == 0
    assert len(batches.jobs) == jobs
    assert "one-1" in answered()


def test_a_replay_answers_by_sample() -> None:
    for name in ("one", "two"):
        write_lines(Path(f"{name}.jsonl"), [sample_record(f"{name}-1")])
    answers = [{"id": f"{name}-1", "text": f'### Answer: ["{name}"]'} for name in ("one", "two")]
    write_lines(Path("answers.jsonl"), answers)
    for name in ("one", "two"):
        asked = ("--dataset", f"{name}.jsonl", "--task", "query-related")
        assert main(["run", "--model", "replay:answers.jsonl", *asked]) == 0

    stored = [read_lines(path) for path in Path().glob("results/runs/*/naive/*-????????.jsonl")]
    assert sorted(line["text"] for (line,) in stored) == [each["text"] for each in answers]
