from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.files import sha256_of
from pii_bench.integrations.every_eval_ever import Evaluator, export_runs, identify
from pii_bench.models.local import WEIGHTS
from pii_bench.prompting.targets import detection_answer, related_answer
from pii_bench.ranking.external import keep_submission
from pii_bench.ranking.stored import collect
from pii_bench.systems.base import THIS_MACHINE, SystemCard
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import read_folder
from tests.integrations.schemas import valid_run, valid_samples
from tests.ranking.stored_runs import ANN, BO, FAILED, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.integrations.every_eval_ever import Exported

NAIVE = {"s1": '### Answer: ["32"]', "s2": '### Answer: ["Bo Ray"]'}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def tiny(tmp_path: Path) -> Dataset:
    """A user's file: Ann Lee, 32, and Bo Ray, 40, who ask about their ages."""
    return tiny_dataset(tmp_path / "mine.jsonl")


def export(results: Path, **evaluator: Any) -> Exported:
    return export_runs(results, results.parent / "out", Evaluator(**evaluator), created=1700000000)


def export_one(results: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    (path,) = export(results).files
    return valid_run(path), valid_samples(path)


def scores_by_metric(run: dict[str, Any]) -> dict[str, float]:
    return {
        result["evaluation_result_id"].rpartition("#")[2]: result["score_details"]["score"]
        for result in run["evaluation_results"]
    }


def test_a_run_has_the_scores_of_its_rows_and_samples(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "naive", NAIVE)

    run, samples = export_one(results)

    assert scores_by_metric(run) == {
        "query-related.f1": 0.5,
        "query-related.rouge_l_f": 0.5,
        "query-related.precision": 0.5,
        "query-related.recall": 0.5,
        "query-related.micro_f1": 0.5,
        "query-related.hallucination_rate": 0.0,
    }
    of_f1 = [s for s in samples if s["evaluation_result_id"].endswith("#query-related.f1")]
    assert [(s["sample_id"], s["evaluation"]) for s in of_f1] == [
        ("s1", {"score": 1.0, "is_correct": True}),
        ("s2", {"score": 0.0, "is_correct": False}),
    ]


def test_the_size_is_announced_before_anything_is_written(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "detection", {"s1": ANN, "s2": BO})
    store_run(results / "runs", tiny, "naive", NAIVE)
    announced: list[int] = []
    out = results.parent / "out"

    def announce(size: int) -> None:
        assert not out.exists()
        announced.append(size)

    export_runs(results, out, Evaluator(), created=1, announce=announce)

    # The estimate does not include the ids of run and model.
    written = [line for path in out.rglob("*.jsonl") for line in path.read_bytes().splitlines()]
    size = sum(map(len, written))
    assert [round(estimate / size, 1) for estimate in announced] == [0.9]


def test_masking_is_in_the_run_of_the_related_spans(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "detection", {"s1": ANN, "s2": BO})
    store_run(results / "runs", tiny, "naive", NAIVE)

    documents = [valid_run(path) for path in export(results).files]
    scores = [scores_by_metric(document) for document in documents]

    assert [{name.partition(".")[0] for name in each} for each in scores] == [
        {"detection"},
        {"query-related", "masking"},
    ]
    assert scores[1]["masking.f1"] == 0.5
    rows = {(row.task, row.strategy): dict(row.metrics) for row in collect(results).rows}
    assert {
        f"{task}.{metric}": value
        for (task, strategy), metrics in rows.items()
        for metric, value in metrics.items()
        if strategy == "naive"
    } == scores[1]


def test_every_mean_is_the_mean_of_its_lines(results: Path) -> None:
    demo = load_dataset("demo")
    detected = {sample.id: detection_answer(sample) for sample in demo.samples}
    related = {sample.id: related_answer(sample) for sample in demo.samples}
    first, second, *_ = detected
    store_run(results / "runs", demo, "detection", detected | {first: detected[second]})
    store_run(results / "runs", demo, "naive", related | {second: related[first]})
    drawn = {name: [answer, related[first], answer] for name, answer in related.items()}
    store_run(results / "runs", demo, "self-consistency-vote", drawn, settings={"votes": 3})

    for path in export(results).files:
        run, samples = valid_run(path), valid_samples(path)
        for result in run["evaluation_results"]:
            name = result["evaluation_result_id"]
            lines = [s for s in samples if s["evaluation_result_id"] == name]
            summed = name.rpartition(".")[2].startswith(
                ("micro", "hallucination", "collateral", "h")
            )
            assert len(lines) == (0 if summed else 12)
            if lines:
                score = result["score_details"]["score"]
                assert mean(s["evaluation"]["score"] for s in lines) == pytest.approx(score)


def test_the_headline_has_its_interval(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "naive", NAIVE)

    run, _ = export_one(results)

    headline, *others = (result["score_details"] for result in run["evaluation_results"])
    assert headline["uncertainty"] == {
        "confidence_interval": {
            "lower": 0.0,
            "upper": 1.0,
            "confidence_level": 0.95,
            "method": "percentile bootstrap, clustered on the description",
        },
        "num_samples": 2,
        "num_bootstrap_samples": 4_000,
    }
    assert not any("uncertainty" in other for other in others)


def test_texts_and_answers_of_a_file_are_not_exported(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "detection", {"s1": ANN, "s2": BO})
    store_run(results / "runs", tiny, "naive", NAIVE | {"s2": "I cannot tell Bo's age."})

    for path in export(results).files:
        for line in valid_samples(path):
            assert line["input"] == {"raw": "[withheld]", "reference": []}
            assert line["output"] == {"raw": []}
            assert line["sample_hash"] is None
            assert line["answer_attribution"] == []
    for content in read_folder(results.parent / "out").values():
        assert b"Ann Lee" not in content
        assert b"Bo" not in content


def test_our_datasets_are_exported_with_their_texts(results: Path) -> None:
    demo = load_dataset("demo")
    first, second, *_ = demo.samples
    answers = {first.id: "### Answer: ['Halifax']", second.id: "no answer here"}
    store_run(results / "runs", demo, "naive", answers)

    _, samples = export_one(results)

    by_id = {line["sample_id"]: line for line in samples}
    line, malformed = by_id[first.id], by_id[second.id]
    assert line["input"]["raw"] == f"{first.description}\n\n{first.query}"
    assert line["input"]["reference"] == [related.text for related in first.related]
    assert line["output"]["raw"] == ["### Answer: ['Halifax']"]
    (attribution,) = line["answer_attribution"]
    assert attribution["extracted_value"] == '["Halifax"]'
    assert line["metadata"] == {"task": "query-related", "status": "repaired"}
    assert malformed["evaluation"] == {"score": 0.0, "is_correct": False}
    assert malformed["error"] == "malformed"
    assert malformed["answer_attribution"] == []


def test_answers_of_a_replay_are_not_exported(results: Path) -> None:
    demo = load_dataset("demo")
    answers = {"demo-0001": '### Answer: ["somebody"]'}
    store_run(results / "runs", demo, "naive", answers, model="replay/answers")

    _, samples = export_one(results)

    assert samples[0]["input"]["raw"].startswith(demo.samples[0].description)
    assert samples[0]["output"] == {"raw": []}
    assert all(b"somebody" not in file for file in read_folder(results.parent / "out").values())


def test_a_line_of_masking_has_the_masked_spans_and_both_answers(results: Path) -> None:
    demo = load_dataset("demo")
    sample = demo.samples[0]
    store_run(results / "runs", demo, "detection", {sample.id: detection_answer(sample)})
    store_run(results / "runs", demo, "naive", {sample.id: related_answer(sample)})

    *_, path = export(results).files
    line = next(line for line in valid_samples(path) if line["metadata"]["task"] == "masking")

    needed = {related.text for related in sample.related}
    masked = [entity.text for entity in sample.entities if entity.text not in needed]
    assert line["input"]["reference"] == masked
    assert line["output"]["raw"] == [detection_answer(sample), related_answer(sample)]


def test_a_failed_call_has_no_line_and_the_run_is_incomplete(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "naive", {"s1": NAIVE["s1"], "s2": FAILED})

    exported = export(results)

    assert exported.incomplete == exported.files
    (path,) = exported.files
    details = valid_run(path)["evaluation_results"][0]["score_details"]["details"]
    assert [details[name] for name in ("samples_scored", "samples", "complete")] == [
        *("1", "2", "false")
    ]
    assert {line["sample_id"] for line in valid_samples(path)} == {"s1"}


def test_a_run_without_scores_is_left_out(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "naive", {"s1": FAILED, "s2": FAILED})

    exported = export(results)

    assert exported.files == ()
    (reason,) = exported.left_out
    assert reason.startswith("fake/one, naive on ")
    assert reason.endswith(": no sample is scored")


def test_a_run_refers_to_its_samples(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "naive", NAIVE)

    (path,) = export(results).files
    run, samples = valid_run(path), valid_samples(path)

    lines = path.with_name(f"{path.stem}_samples.jsonl")
    assert run["detailed_evaluation_results"] == {
        "format": "jsonl",
        "file_path": lines.relative_to(results.parent / "out").as_posix(),
        "hash_algorithm": "sha256",
        "checksum": sha256_of(lines),
        "total_rows": len(samples),
    }
    assert path.parent == results.parent / "out" / "data" / "pii_bench" / "fake" / "one"
    assert {s["evaluation_id"] for s in samples} == {run["evaluation_id"]}
    assert {s["model_id"] for s in samples} == {run["model_info"]["id"]} == {"fake/one"}


@pytest.mark.parametrize(
    ("model", "folders"),
    [
        ("acme/llama:8b", ("acme", "llama_8b")),
        ("acme/a/b", ("acme", "a_b")),
        ("acme/..", ("acme", "unknown")),
        ("spacy", ("unknown", "spacy")),
    ],
)
def test_the_folders_of_a_model_are_portable_names(
    results: Path, tiny: Dataset, model: str, folders: tuple[str, str]
) -> None:
    store_run(results / "runs", tiny, "naive", NAIVE, model=model)

    (path,) = export(results).files

    assert path.parts[-3:-1] == folders


def test_a_later_export_replaces_an_earlier_one(results: Path, tiny: Dataset) -> None:
    def store(related: str, *, force: bool) -> None:
        answers = NAIVE | {"s2": f'### Answer: ["{related}"]'}
        store_run(results / "runs", tiny, "naive", answers)
        predictions = {
            "s1": Prediction(Status.OK, related=("32",)),
            "s2": Prediction(Status.OK, related=(related,)),
        }
        keep_submission(results, "acme", tiny, predictions, force=force)

    store("Bo Ray", force=False)
    files = export(results).files
    before = read_folder(results.parent / "out")
    export(results)
    assert read_folder(results.parent / "out") == before

    store("40", force=True)
    assert export(results).files == files
    assert read_folder(results.parent / "out").keys() == before.keys()
    assert [scores_by_metric(valid_run(path))["query-related.f1"] for path in files] == [1.0, 1.0]


def test_runs_with_different_settings_have_different_files(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "naive", NAIVE)
    (cold,) = export(results).files
    store_run(results / "runs", tiny, "naive", NAIVE, settings={"temperature": 0.7})
    (warm,) = export(results).files

    assert cold != warm
    assert valid_run(cold)["evaluation_id"] != valid_run(warm)["evaluation_id"]


@pytest.mark.parametrize(
    ("settings", "arguments", "others"),
    [
        (
            {"temperature": None, "max_tokens": 2048, "endpoint": "http://127.0.0.1:1"},
            {"temperature": None, "max_tokens": 2048},
            {"endpoint": "http://127.0.0.1:1"},
        ),
        # Those of a plug-in may not be valid.
        (
            {"temperature": "warm", "max_tokens": 0},
            {},
            {"temperature": "warm", "max_tokens": "0"},
        ),
    ],
)
def test_valid_settings_have_their_fields_and_the_others_become_text(
    results: Path,
    tiny: Dataset,
    settings: dict[str, Any],
    arguments: dict[str, Any],
    others: dict[str, str],
) -> None:
    store_run(results / "runs", tiny, "self-cot", NAIVE, settings=settings)

    run, _ = export_one(results)

    assert run["evaluation_results"][0]["generation_config"] == {
        "generation_args": arguments,
        "additional_details": {"strategy": "self-cot", "prompt_sha256": "s" * 64, **others},
    }


def test_the_evaluator_is_unknown_by_default(results: Path, tiny: Dataset) -> None:
    store_run(results / "runs", tiny, "naive", NAIVE)

    def source(**evaluator: Any) -> tuple[str, str]:
        (path,) = export(results, **evaluator).files
        metadata = valid_run(path)["source_metadata"]
        return metadata["source_organization_name"], metadata["evaluator_relationship"]

    assert source() == ("unknown", "other")
    assert source(organization="A Lab", relationship="first_party") == ("A Lab", "first_party")


def test_the_project_is_the_evaluator_of_reference_runs(results: Path, tiny: Dataset) -> None:
    for model in ("bilstm-crf", "presidio"):
        store_run(results / "reference", tiny, "naive", NAIVE, model=model)

    files = export(results, organization="A Lab").files

    sources = [valid_run(path)["source_metadata"] for path in files]
    assert [
        (source["source_organization_name"], source["evaluator_relationship"]) for source in sources
    ] == [("pii_bench authors", "first_party"), ("pii_bench authors", "third_party")]


SMOLLM2 = "smollm2-135m-instruct"
SHA256 = f"sha256:{WEIGHTS[SMOLLM2].sha256}"


def make_card(model: str, to: str = THIS_MACHINE, **settings: Any) -> SystemCard:
    return SystemCard(model, "naive", "", Task.QUERY_RELATED, False, settings, unmasked_text_to=to)


def model_info(
    model_id: str, deployment: str = "unknown", availability: str = "unknown", **known: Any
) -> dict[str, Any]:
    developer = model_id.partition("/")[0]
    details = {"deployment_type": deployment, "model_availability": availability}
    named = {} if developer == "unknown" else {"developer": developer}
    return {"id": model_id, **named, **known, "additional_details": details}


ENGINE = {"name": "xllamacpp", "version": "1.2"}
IDENTITIES = {
    "a provider's own endpoint": (
        make_card("openai/gpt-5", "openai", endpoint="https://api.openai.com/v1"),
        model_info("openai/gpt-5", "externally_managed", inference_platform="openai"),
    ),
    "the protocol of a server on this machine": (
        make_card("openai/tiny@127.0.0.1:8000", endpoint="http://127.0.0.1:8000/v1"),
        model_info("unknown/tiny", "self_deployed"),
    ),
    "a name of Hugging Face on another server": (
        make_card("openai/acme/tiny@gpu.example", "openai (x)", endpoint="https://gpu.example/v1"),
        model_info("acme/tiny"),
    ),
    "open weights in the table of models": (
        make_card("openai/deepseek-ai/DeepSeek-V3@gpu", "openai (x)", endpoint="http://gpu"),
        model_info("deepseek-ai/DeepSeek-V3", availability="open_weights"),
    ),
    "the packaged model": (
        make_card(f"local/{SMOLLM2}", weights=SHA256, runtime="xllamacpp 1.2"),
        model_info(f"unknown/{SMOLLM2}", "self_deployed", "open_weights", inference_engine=ENGINE),
    ),
    "another file with the name of the packaged model": (
        make_card(f"local/{SMOLLM2}", weights="sha256:0"),
        model_info(f"unknown/{SMOLLM2}", "self_deployed"),
    ),
    "our tagger": (
        make_card("bilstm-crf"),
        model_info("pii_bench/bilstm-crf", "self_deployed", "open_weights"),
    ),
    "a detector of another project": (
        make_card("presidio"),
        model_info("unknown/presidio", "self_deployed"),
    ),
    "a replay": (make_card("replay/answers"), model_info("unknown/answers")),
    "a plug-in": (make_card("acme/masker", "unknown"), model_info("acme/masker")),
}


@pytest.mark.parametrize(("card", "expected"), IDENTITIES.values(), ids=IDENTITIES)
def test_the_identity_of_a_model_comes_from_its_card(
    card: SystemCard, expected: dict[str, Any]
) -> None:
    assert identify(card) == {"name": card.model, **expected}
