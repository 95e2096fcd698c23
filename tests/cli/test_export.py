from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main, terminal
from tests.builders import read_lines, sample_record, write_lines
from tests.cli.conftest import run_chat
from tests.integrations.schemas import valid_run, valid_samples
from tests.protocol_server import completion
from tests.ranking.stored_runs import FAILED, store_run, tiny_dataset

if TYPE_CHECKING:
    from pii_bench.datasets.catalog import Dataset
    from tests.cli.conftest import Capsys
    from tests.protocol_server import ProtocolServer

ANSWERS = {"s1": '### Answer: ["32"]', "s2": '### Answer: ["40"]'}


@pytest.fixture
def tiny() -> Dataset:
    return tiny_dataset(Path("mine.jsonl"))


def export_runs(*options: str) -> int:
    return main(["export", "every-eval-ever", "--out", "out", *options])


def test_runs_are_written_and_counted(tiny: Dataset, capsys: Capsys) -> None:
    store_run(Path("results/runs"), tiny, "naive", ANSWERS)

    assert export_runs("--organization", "Example") == 0

    assert capsys.readouterr() == ("1 runs in out\n", "")
    (run,) = Path("out").rglob("*.json")
    assert valid_run(run)["model_info"]["id"] == "fake/one"
    assert "Example" in run.read_text()
    assert len(valid_samples(run)) == 8


def test_incomplete_runs_are_named(tiny: Dataset, capsys: Capsys) -> None:
    (Path("results")).mkdir()
    assert export_runs() == 2
    assert capsys.readouterr().err == "pii-bench: results: there is no run to export\n"

    store_run(Path("results/runs"), tiny, "naive", ANSWERS | {"s2": FAILED})
    assert export_runs() == 1
    (run,) = Path("out").rglob("*.json")
    assert capsys.readouterr().err == f"incomplete: {run}\n"

    Path(tiny.source).unlink()
    assert export_runs() == 1
    assert capsys.readouterr().err.startswith(f"left out: runs on {tiny.source}: ")


def test_compressed_samples_are_those_of_a_plain_export(tiny: Dataset) -> None:
    store_run(Path("results/runs"), tiny, "naive", ANSWERS)
    assert export_runs() == 0
    (samples,) = Path("out").rglob("*_samples.jsonl")
    lines, run = samples.read_bytes(), valid_run(samples.with_name(f"{samples.stem[:-8]}.json"))

    assert export_runs("--gzip") == 0

    archive = samples.with_name(f"{samples.name}.gz")
    assert gzip.decompress(archive.read_bytes()) == lines
    assert not samples.exists()
    again = valid_run(samples.with_name(f"{samples.stem[:-8]}.json"))
    assert again["detailed_evaluation_results"] == run["detailed_evaluation_results"]

    assert export_runs() == 0
    assert samples.read_bytes() == lines
    assert not archive.exists()


def test_a_big_export_logs_its_size_first(
    tiny: Dataset, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    store_run(Path("results/runs"), tiny, "naive", ANSWERS)
    monkeypatch.setattr(terminal, "BIG", 1000)
    Path("out").touch()

    # A file where the folder should be: the size was logged before the failure.
    assert export_runs("--gzip") == 2

    size, failed = capsys.readouterr().err.splitlines()
    assert size == "about 0 MB of samples for out: before they are compressed"
    assert "cannot be written" in failed


TUNED = "ft:gpt-4.1-nano-2025-04-14:acme::abc123"


@pytest.fixture
def ten() -> Path:
    """Ten samples that differ only in a number."""
    numbered = [f"Ann Lee is 32. No {number}." for number in range(10)]
    records = [sample_record(f"s{n}", description=text) for n, text in enumerate(numbered)]
    return write_lines(Path("ten.jsonl"), records)


def export_examples(service: str, out: Path, *options: str) -> int:
    asked = ("--for", service, "--dataset", "ten.jsonl", "--out", str(out))
    return main(["export", "fine-tuning", *asked, *options])


@pytest.mark.usefixtures("ten")
def test_a_file_for_openai_with_tokens_and_prices(capsys: Capsys) -> None:
    out = Path("out/openai.jsonl")

    assert export_examples("openai", out, "--epochs", "2") == 0

    first = read_lines(out)[0]["messages"]
    assert [turn["role"] for turn in first] == ["user", "assistant"]
    assert "Description:\nAnn Lee is 32. No 0.\n\nQuery:\nAm I old?\n" in first[0]["content"]
    assert first[1]["content"] == '### Answer: ["32"]'
    output = capsys.readouterr()
    texts = [sum(len(turn["content"]) for turn in line["messages"]) for line in read_lines(out)]
    # A token a byte is the bound; all is ASCII.
    size, bound = out.stat().st_size, sum(texts)
    assert output.out.startswith(f"10 examples, {size:,} bytes, ")
    assert f" / {bound:,} tokens: {out}\n" in output.out
    assert "USD for 2 epochs" in output.out
    assert f" / {bound * 2 * 1.5 / 1e6:.2f} |\n| gpt-4o-2024-08-06" in output.out
    assert output.err == "OpenAI lets no new users fine-tune (guide of 2026-05-07)\n"


@pytest.mark.usefixtures("ten")
def test_all_three_tasks_for_transformers(capsys: Capsys) -> None:
    out = Path("trl.jsonl")
    tasks = ("--task", "detection", "query-related", "rewriting")

    assert export_examples("transformers", out, *tasks) == 0

    lines = read_lines(out)
    assert len(lines) == 30
    assert [line["completion"][0]["content"] for line in lines[::10]] == [
        'Subject1{"Ann Lee": "PER", "32": "DEM"}',
        '### Answer: ["32"]',
        "<Full Name> is 32. No 0.",
    ]
    assert "USD" not in capsys.readouterr().out


@pytest.mark.usefixtures("ten")
def test_a_file_can_be_compressed_and_a_big_one_logs_its_size_first(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.setattr(terminal, "BIG", 1)
    assert export_examples("mistral", Path("plain.jsonl")) == 0
    plain = Path("plain.jsonl").read_bytes()
    message = "about 0 MB of samples for plain.jsonl: --gzip compresses them\n"
    assert capsys.readouterr().err.startswith(message)

    for name, options in (("a.jsonl", ["--gzip"]), ("b.jsonl.gz", [])):
        assert export_examples("mistral", Path(name), *options) == 0
        assert f"{len(plain):,} bytes" in capsys.readouterr().out
    for written in ("a.jsonl.gz", "b.jsonl.gz"):
        assert gzip.decompress(Path(written).read_bytes()) == plain
    assert not Path("a.jsonl").exists()


def test_tokens_are_counted_by_a_tokenizer(ten: Path, capsys: Capsys) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))  # noqa: S106 -- no password
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.save("tokenizer.json")
    out = Path("mistral.jsonl")

    assert export_examples("mistral", out, "--tokenizer", "tokenizer.json") == 0

    count = sum(
        len(turn["content"].split()) for line in read_lines(out) for turn in line["messages"]
    )
    assert f" bytes, {count:,} tokens: " in capsys.readouterr().out

    assert export_examples("mistral", out, "--tokenizer", str(ten)) == 2
    assert f"{ten}: not a tokenizer" in capsys.readouterr().err


def test_a_tuned_model_of_a_provider_can_be_run(protocol_server: ProtocolServer) -> None:
    protocol_server.script(completion('### Answer: ["Halifax"]'))
    options = ("--model", f"openai/{TUNED}", "--task", "query-related", "--limit", "1")

    assert run_chat(protocol_server, *options) == 0

    (asked,) = protocol_server.requests
    assert asked.body["model"] == TUNED
    assert TUNED in Path("results/leaderboard.csv").read_text()
