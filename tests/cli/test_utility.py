from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from pii_bench.cli import main, run
from pii_bench.cli import utility as command
from pii_bench.systems.relevance.embedding import WordLlamaEncoder
from tests.builders import read_csv, read_folder, read_lines, sample_record, write_lines
from tests.protocol_server import api_error, completion

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys
    from tests.protocol_server import ProtocolServer, ReceivedRequest, Reply

CONDITIONS = ["no-mask", "mask-all", "mask-query-unrelated", "gold+gold"]
ANSWERS = {"Ann Lee is 32.": "You are young at 32.", "<Full Name> is <Age>.": "Who knows?"}
"""Answers by masked text; the ideal text keeps the age."""


LOADED = cache(WordLlamaEncoder)


@pytest.fixture(autouse=True)
def embedders_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "EMBEDDERS", {"wordllama": LOADED})


@pytest.fixture(autouse=True)
def small_set() -> Path:
    """Two samples in which Ann Lee, 32, asks about her age."""
    return write_lines(Path("set.jsonl"), [sample_record("s1"), sample_record("s2")])


def utility(server: ProtocolServer | None = None, *options: object) -> bool:
    """Run the command, with an answerer behind a server; True if it is complete."""
    given: list[object] = ["--dataset", "set.jsonl", "--concurrency", 1, *options]
    if server is not None:
        given += ["--answerer", "openai/answerer", "--answerer-base-url", f"{server.url}/v1"]
    return main(["utility", *map(str, given)]) == 0


def judge(server: ProtocolServer) -> list[str]:
    """Return the options of a judge behind the same server."""
    return ["--judge", "openai/judge", "--judge-base-url", f"{server.url}/v1"]


def reply(request: ReceivedRequest) -> Reply:
    """Return an answer, or ratings: 3 for the answer "Who knows?", 9 for the other."""
    prompt = request.body["messages"][0]["content"]
    if "### Ratings" not in prompt:
        (text,) = re.findall(r"^Text:\n(.*)$", prompt, re.MULTILINE)
        return completion(ANSWERS.get(text, "You are 32."))
    one, other = re.findall(r"^Answer [AB]:\n(.*)$", prompt, re.MULTILINE)
    ratings = [3 if answer == "Who knows?" else 9 for answer in (one, other)]
    return completion("### Ratings: A={}, B={}".format(*ratings))


def rows(measure: str = "cosine") -> dict[str, dict[str, str]]:
    """Return our rows by condition."""
    return {
        row["condition"]: row
        for row in read_csv(Path("results/utility/utility.csv"))
        if row["source"] == "run" and row["measure"].startswith(measure)
    }


def figures(row: dict[str, str]) -> tuple[str, str, str]:
    return row["privacy"], row["utility"], row["balanced"]


def test_answers_and_verdicts_become_scores(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(reply)

    # The time limit is for the answerer and the judge.
    options = ("--model", "gold+gold", "--timeout", 60)
    assert utility(protocol_server, *options, *judge(protocol_server))

    # Two samples: four answers each, and two verdicts on each that is masked; gold's answers
    # under two names are judged once.
    assert len(protocol_server.requests) == 2 * (4 + 2 * 2)
    judged = rows("judge openai/judge")
    assert [*rows()] == [*judged] == CONDITIONS
    assert figures(judged["no-mask"]) == ("0.0000", "1.0000", "0.5000")
    # (3 - 1) / (9 - 1), and half of it with P = 1.
    assert figures(judged["mask-all"]) == ("1.0000", "0.2500", "0.6250")
    assert figures(judged["mask-query-unrelated"]) == ("0.5000", "1.0000", "0.7500")
    assert figures(judged["gold+gold"]) == figures(judged["mask-query-unrelated"])
    assert (judged["mask-all"]["rating_masked"], judged["mask-all"]["n_utility"]) == ("3.0000", "2")
    assert figures(rows()["no-mask"]) == ("0.0000", "1.0000", "0.5000")
    cosines = [float(rows()[condition]["utility"]) for condition in CONDITIONS]
    assert 1 == cosines[0] > cosines[2] == cosines[3] > cosines[1] >= 0
    assert {row["oracle"] for row in judged.values()} == {"False", "True"}
    shown = capsys.readouterr().out
    assert "| 0.750 (2)" in shown
    assert "| published" in shown
    # Stored raw, and no text is in a file of figures.
    assert len(list(Path("results").glob("utility/answers/*/utility.answer/*.jsonl"))) == 4
    (path,) = Path("results").glob("utility/verdicts/*/*/utility.judge/*@mask-all.jsonl")
    assert [
        (line["id"], [draw["text"] for draw in line["draws"]]) for line in read_lines(path)
    ] == [(sample, ["### Ratings: A=9, B=3", "### Ratings: A=3, B=9"]) for sample in ("s1", "s2")]
    for file in Path("results/utility").glob("[!.]*.*"):
        text = file.read_text(encoding="utf-8")
        assert "mask-all" in text
        assert not re.search("Ann|Am I old|young|Who knows|Ratings", text)


def test_a_second_run_makes_no_call_and_scores_need_no_model(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(reply)
    utility(protocol_server, "--model", "gold+gold", *judge(protocol_server))
    before, asked = read_folder(Path("results")), len(protocol_server.requests)
    first = capsys.readouterr().out

    assert utility(protocol_server, "--model", "gold+gold", *judge(protocol_server))
    assert read_folder(Path("results")) == before
    assert capsys.readouterr().out == first

    for file in Path("results/utility").glob("[!.]*.*"):
        file.unlink()
    assert utility()
    assert read_folder(Path("results")) == before
    assert utility(None, "--weight", 0.8)
    assert figures(rows()["no-mask"]) == ("0.0000", "1.0000", "0.2000")
    assert len(protocol_server.requests) == asked


def test_a_larger_limit_asks_only_the_new_samples(protocol_server: ProtocolServer) -> None:
    protocol_server.script(reply)

    assert utility(protocol_server, "--limit", 1)
    assert (rows()["mask-all"]["asked"], rows()["mask-all"]["samples"]) == ("1", "2")
    assert len(protocol_server.requests) == 3
    assert utility(protocol_server)

    assert rows()["mask-all"]["asked"] == "2"
    assert len(protocol_server.requests) == 6


@pytest.mark.usefixtures("no_jitter")
def test_a_failed_answer_is_missing_and_retried(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(reply, api_error(400), reply)

    assert not utility(protocol_server)

    assert rows()["no-mask"]["no_answer"] == rows()["mask-all"]["no_answer"] == "1"
    assert "1 of 2 samples have no answer" in capsys.readouterr().err
    assert utility(protocol_server)
    assert rows()["no-mask"]["no_answer"] == "0"


def test_a_cap_holds_for_models_of_unknown_price_too(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    # 100 tokens may cost 0.001 USD; an answer takes 7.
    protocol_server.script(reply)
    capped = ("--limit", 1, "--price", "0,10", "--answer-tokens", 100, "--max-usd")

    assert not utility(protocol_server, *capped, 0.0011)
    assert len(protocol_server.requests) == 2
    assert "skipped_budget 1" in capsys.readouterr().err
    assert utility(protocol_server, *capped, 0.002)


def test_answers_and_verdicts_have_the_temperature(protocol_server: ProtocolServer) -> None:
    protocol_server.script(reply)

    options = ("--temperature", "default", "--model", "gold+gold", "--limit", 1)
    assert utility(protocol_server, *options, *judge(protocol_server))

    assert {request.body["model"] for request in protocol_server.requests} == {"answerer", "judge"}
    assert not [request for request in protocol_server.requests if "temperature" in request.body]


def test_a_refusal_stops_the_run_and_keeps_the_answers(protocol_server: ProtocolServer) -> None:
    protocol_server.script(reply, reply, api_error(401))

    assert not utility(protocol_server)

    protocol_server.script(reply)
    asked = len(protocol_server.requests)
    assert utility(protocol_server)
    assert len(protocol_server.requests) == asked + 4


def test_an_interrupted_study_logs_what_is_missing(
    protocol_server: ProtocolServer, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    protocol_server.script(reply)
    utility(protocol_server)

    async def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_jobs", interrupt)
    capsys.readouterr()

    assert not utility(protocol_server, "--answer-tokens", 9)

    output = capsys.readouterr()
    assert output.err.count("2 of 2 samples have no answer; run again") == 3
    assert output.err.startswith("interrupted\n")
    assert output.out == ""


def test_a_complete_run_of_the_masker_is_reused(protocol_server: ProtocolServer) -> None:
    lines = [{"id": name, "text": '### Answer: ["32"]'} for name in ("s1", "s2")]
    lines += [
        {"id": name, "prompt": "detection", "text": 'Subject1{"Ann Lee": "PER"}'}
        for name in ("s1", "s2")
    ]
    replay = f"replay:{write_lines(Path('answers.jsonl'), lines)}"
    protocol_server.script(reply)
    utility(protocol_server, "--model", replay)
    before = read_folder(Path("results/runs"))

    Path("answers.jsonl").write_text("")
    # It would ask again now, and get no answer.
    assert utility(protocol_server, "--model", replay)

    assert read_folder(Path("results/runs")) == before
    assert figures(rows()["replay/answers+naive"])[0] == "0.5000"


HERE = ["--answerer", "openai/m", "--answerer-base-url", "http://127.0.0.1:1/v1"]
LOCAL = ["--local-only"]
PRICE = ["--price", "1,2"]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ([*HERE, "--judge", "gold"], "judge 'gold' is not a chat model"),
        ([*HERE, "--model", "gold"], "system 'gold' does not answer query-related"),
        ([*HERE, "--strategy", "naive"], "--strategy needs --model"),
        ([*HERE, "--model", "gold+gold", "--strategy", "naive"], "does not use --strategy"),
        ([*HERE, "--model", "gold+gold", "--base-url", "http://x"], "does not use --base-url"),
        ([*HERE, "--max-usd", "1"], "price"),
        ([*HERE, "--dataset", "demoo"], "did you mean 'demo'"),
        ([*HERE, "--rewrite"], "--rewrite needs a chat model"),
        ([*HERE, "--rewrite", "--model", "openai/m", "--strategy", "naive"], "not use --strategy"),
        (["--answerer", "bilstm-crf"], "answerer 'bilstm-crf' is not a chat model"),
        (["--model", "gold+gold"], "--judge need an --answerer"),
        (["--results", "nowhere"], "'nowhere' is not a folder; --answerer creates one"),
        (
            [*PRICE, "--answerer", "gpt-6-astra", "--judge", "gpt-6-luna", "--model", "gold+gold"],
            "for models of unknown price: none is named",
        ),
        # Remote models are refused before they need a key.
        ([*LOCAL, "--answerer", "openai/gpt-5"], "--local-only: system 'openai/gpt-5' "),
        (
            [*LOCAL, "--answerer", "openai/m", "--answerer-base-url", "http://models.example/v1"],
            "--local-only: system 'openai/m@models.example' ",
        ),
        ([*LOCAL, *HERE, "--model", "openai/gpt-5"], "--local-only: system 'openai/gpt-5' "),
        (
            [*LOCAL, *HERE, "--model", "openai/gpt-5", "--rewrite"],
            "--local-only: system 'openai/gpt-5' ",
        ),
        ([*LOCAL, *HERE, "--judge", "mistral/m"], "--local-only: system 'mistral/m' "),
        (
            [*HERE, "--model", "openai/gpt-5", "--strategy", "json"],
            "with strategy 'json' does not answer query-related",
        ),
    ],
)
def test_wrong_options_are_refused_before_any_call(
    capsys: Capsys, options: list[str], what: str
) -> None:
    assert main(["utility", "--dataset", "set.jsonl", *options]) == 2

    assert what in capsys.readouterr().err
    assert [path.name for path in Path().iterdir()] == ["set.jsonl"]


def test_local_only_allows_this_machine(protocol_server: ProtocolServer) -> None:
    protocol_server.script(reply)

    assert utility(protocol_server, "--local-only", *judge(protocol_server))


WRITTEN = "They are 32."


def rewriting_reply(request: ReceivedRequest) -> Reply:
    """Return a text that keeps the age, or the verdict of a judge that prefers the shorter text."""
    prompt = request.body["messages"][0]["content"]
    if "### Text:" in prompt:
        return completion(f"### Text:\n{WRITTEN}")
    if "### Better" not in prompt:
        return reply(request)
    one, other = re.findall(r"^Version [AB]:\n(.*)$", prompt, re.MULTILINE)
    return completion(f"### Better: {'A' if len(one) < len(other) else 'B'}")


def rewriter(server: ProtocolServer) -> list[str]:
    return ["--rewrite", "--model", "openai/writer", "--base-url", f"{server.url}/v1"]


def test_rewritten_texts_are_answered_and_compared_in_both_orders(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(rewriting_reply)
    options = [*rewriter(protocol_server), *judge(protocol_server)]

    assert utility(protocol_server, *options)

    # Two samples: a rewriting, four answers, two verdicts on each but one, two on the texts.
    # Equal answers are judged once, and two conditions have them.
    asked = len(protocol_server.requests)
    assert asked == 2 * (1 + 4 + 2 * 2 + 2)
    (condition,) = rows().keys() - {"no-mask", "mask-all", "mask-query-unrelated"}
    assert re.fullmatch(r"openai/writer@.*\+rewrite", condition)
    # The name is gone, and the age is still revealed.
    assert rows()[condition]["privacy"] == "0.5000"
    (row,) = read_csv(Path("results/utility/texts.csv"))
    assert (row["condition"], row["texts"], row["win"], row["preferred"]) == (
        *(condition, "2", "2"),
        "1.0000",
    )
    assert "asked in both orders" in capsys.readouterr().out

    # Nothing is asked again, and no figure changes.
    assert utility(protocol_server, *options)
    assert len(protocol_server.requests) == asked
    before = Path("results/utility/texts.csv").read_text()
    assert utility()
    assert Path("results/utility/texts.csv").read_text() == before
    # No text is in a table.
    assert WRITTEN not in before
