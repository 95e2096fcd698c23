"""Published figures, submissions, people and blind readers as rows."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from importlib.metadata import EntryPoint, EntryPoints
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.analysis.diagnosis.tables import query_runs
from pii_bench.analysis.report.data import collect_report
from pii_bench.analysis.runs import read_evaluated
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.readings import Reading
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import sha256_of
from pii_bench.integrations.every_eval_ever import Evaluator, export_runs
from pii_bench.ranking.external import (
    HumanAnswer,
    check_name,
    human_rows,
    keep_submission,
    published_rows,
    read_human,
    reading_rows,
    to_lines,
)
from pii_bench.ranking.rows import Source, find_rows, rank
from pii_bench.ranking.stored import collect, read_runs, update
from pii_bench.systems import catalog
from pii_bench.systems.plug_ins import ENTRY_POINTS
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import sample_record, write_lines
from tests.ranking.stored_runs import ANN, BO, changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.ranking.rows import Row


HEADER = "table,task,dataset,model,strategy,metric,value,note\n"


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return published_rows()


def test_figures_of_one_table_and_model_share_a_row_with_their_notes(rows: list[Row]) -> None:
    found = {(row.model, row.strategy, row.dataset, row.task): row for row in rows}

    masking = found["gpt-4o-2024-08-06", "naive", "single+multi", Task.MASKING]
    assert masking.metrics == {"f1": 0.72, "rouge_l_f": 0.72}
    assert masking.note == "paper, table 4"
    people = found["human", "detection", "single", Task.DETECTION]
    assert people.note == "paper, table 2; strict_f1: std 0.011"


def test_published_rows_are_never_ranked_and_say_what_they_are(rows: list[Row]) -> None:
    assert {row.source for row in rows} == {Source.PUBLISHED}
    assert {(row.scored, row.gold, row.rates, row.signature) for row in rows} == {
        (None, None, None, "")
    }
    assert not any(row.complete for row in rows)
    assert {row.strategy for row in rows if row.task is Task.DETECTION} == {"detection"}
    assert {row.strategy for row in rows if row.oracle} == {"naive-choice"}


@pytest.mark.parametrize(
    "table",
    [
        f"{HEADER}4,masking,single,m,naive,f1,high,\n",
        f"{HEADER}4,masking,single,m,naive,f1,72.0,\n",
        f"{HEADER}4,masking,single,m,naive,f1,-0.1,\n",
        f"{HEADER}4,masking,single,m,naive,f1,nan,\n",
        f"{HEADER}4,masking,single,m,naive,accuracy,0.72,\n",
        "task,value\nmasking,0.5\n",
    ],
)
def test_a_figure_that_is_none_and_a_table_without_its_columns_are_refused(
    tmp_path: Path, table: str
) -> None:
    path = tmp_path / "figures.csv"
    path.write_text(table)

    with pytest.raises(InputFileError, match=r"figures\.csv: no table of published figures: "):
        published_rows(path)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="No such file"):
        published_rows(tmp_path / "figures.csv")


def reading(sample_id: str, *needed: str, reader: str = "a", number: int = 1) -> Reading:
    """A reading of a sample of which "32" is needed."""
    return Reading(
        id=sample_id,
        version=f"v{number}",
        reader=reader,
        round=number,
        options=("32", "Leeds"),
        gold=("32",),
        needed=needed,
        unlisted=(),
        ambiguous=False,
        text=4,
        query=5,
    )


def write_readings(folder: Path, *readings: Reading) -> None:
    lines = [json.dumps(asdict(each)) + "\n" for each in readings]
    (folder / "single.jsonl").write_text("".join(lines), encoding="utf-8")


def test_the_f1_of_first_readings_is_a_row_that_is_not_ranked(tmp_path: Path) -> None:
    write_readings(
        tmp_path,
        reading("single-0001", "32"),
        # Precision 1/2 and recall 1.
        reading("single-0001", "32", "Leeds", reader="b"),
        reading("single-0002", "Leeds"),
        # The text was mended and read again.
        reading("single-0002", "32", number=2),
    )

    (row,) = rank(reading_rows({"single", "multi"}, tmp_path))

    assert (row.source, row.model, row.dataset) == (Source.READING, "readers", "single")
    assert row.metrics["f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert row.by_sample["f1"].values == pytest.approx(((1 + 2 / 3) / 2, 0))
    assert row.rank is None
    assert (row.scored, row.gold) == (2, 2)
    assert row.note == "a large language model, blind to gold: 3 first readings"
    sha256 = sha256_of(tmp_path / "single.jsonl")
    assert row.signature.startswith(f"data:readings/single@{sha256[:12]}|task:query-related|")


def test_a_dataset_of_somebody_else_has_no_row_whatever_its_name(tmp_path: Path) -> None:
    write_readings(tmp_path, reading("single-0001", "32"))
    (tmp_path / "single.jsonl").rename(tmp_path / "theirs.jsonl")

    assert reading_rows({"theirs", f"../{tmp_path.name}/theirs", "x" * 100_000}, tmp_path) == []


# Ann Lee (32) and Bo Ray (40); both ages are needed.
RIGHT = {
    "s1": Prediction(Status.OK, ((("Ann Lee", "PER"), ("32", "DEM")),), ("32",)),
    "s2": Prediction(Status.OK, ((("Bo Ray", "PER"), ("40", "DEM")),), ("40",)),
}
FAILED = RIGHT | {"s2": Prediction(Status.REFUSED)}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return tiny_dataset(tmp_path / "tiny.jsonl")


def test_predictions_are_kept_with_what_they_are(tmp_path: Path, dataset: Dataset) -> None:
    path = keep_submission(tmp_path, "acme", dataset, FAILED)

    assert path == tmp_path / "submitted" / "acme" / f"{dataset.name}.jsonl"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {
            "id": "s1",
            "subjects": [[{"text": "Ann Lee", "type": "PER"}, {"text": "32", "type": "DEM"}]],
            "related": ["32"],
            "status": "ok",
        },
        {"id": "s2", "status": "refused"},
    ]
    told = json.loads(path.with_suffix(".json").read_text())
    assert (told["format"], told["name"]) == ("pii-bench-submission-1", "acme")
    assert told["dataset"] == {
        "name": dataset.name,
        "source": dataset.source,
        "sha256": dataset.sha256,
        "samples": 2,
    }


def test_they_have_rows_of_their_own_with_the_hash_of_what_was_scored(
    tmp_path: Path, dataset: Dataset
) -> None:
    keep_submission(tmp_path, "acme", dataset, FAILED)

    rows = collect(tmp_path).rows

    assert [(row.task, row.headline, row.complete) for row in rows] == [
        (Task.DETECTION, 0.5, True),
        (Task.QUERY_RELATED, 0.5, True),
        # Protection and retention are 1 and, of the failure, 0.
        (Task.MASKING, 0.5, True),
    ]
    for row in rows:
        assert (row.source, row.model, row.strategy) == (Source.SUBMITTED, "acme", "")
        assert "|model:acme|predictions:" in row.signature
        assert row.rates is not None
        assert row.rates[Status.REFUSED] == 0.5


def test_they_are_ranked_among_runs(tmp_path: Path, dataset: Dataset) -> None:
    keep_submission(tmp_path, "acme", dataset, RIGHT)
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": BO})

    ranked = [row for row in rank(collect(tmp_path).rows) if row.task is Task.DETECTION]

    assert [(row.source, row.model, row.rank) for row in ranked] == [
        (Source.SUBMITTED, "acme", 1),
        (Source.RUN, "fake/one", 1),
    ]


def test_where_no_types_are_named_no_figure_depends_on_them(
    tmp_path: Path, dataset: Dataset
) -> None:
    untyped = Prediction(Status.OK, subjects=((("Ann", ""),),))
    keep_submission(tmp_path, "acme", dataset, dict.fromkeys(RIGHT, untyped))

    (row,) = collect(tmp_path).rows

    assert "strict_f1" not in row.metrics
    assert row.rank is None


def test_a_dataset_without_queries_has_detection_alone(tmp_path: Path) -> None:
    record = sample_record("s1", query=None, related=[])
    plain = load_dataset(str(write_lines(tmp_path / "plain.jsonl", [record])))
    keep_submission(tmp_path, "acme", plain, {"s1": Prediction(Status.OK, (), ())})

    assert [row.task for row in collect(tmp_path).rows] == [Task.DETECTION]


def test_their_name_is_all_that_names_them(tmp_path: Path, dataset: Dataset) -> None:
    keep_submission(tmp_path, "acme", dataset, RIGHT)
    rows = collect(tmp_path).rows

    for name in ("acme", "submitted:acme"):
        assert {task for _, task in find_rows(rows, name)} == (set(Task) - {Task.REWRITE})
    with pytest.raises(PiiBenchError, match="did you mean 'acme'"):
        find_rows(rows, "acmee")


def test_they_enter_analysis_diagnosis_report_and_export(tmp_path: Path, dataset: Dataset) -> None:
    keep_submission(tmp_path, "acme", dataset, FAILED)

    analysed, _ = read_evaluated(tmp_path)
    (diagnosed,) = query_runs(read_runs(tmp_path).runs)
    report = collect_report(tmp_path)
    exported = export_runs(tmp_path, tmp_path / "out", Evaluator(), created=0)

    assert {(run.name.source, run.name.model) for run in analysed} == {(Source.SUBMITTED, "acme")}
    assert diagnosed.masking is not None
    assert [run["name"] for run in report.record["runs"]] == ["submitted:acme"]
    assert [len(run["answers"]) for run in report.record["runs"]] == [2]
    assert len(exported.files) == 2
    assert exported.left_out == ()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "-a", "<b>", "a" * 81, "é", "a+b"])
def test_a_name_that_is_none_for_a_folder_is_refused(
    tmp_path: Path, dataset: Dataset, name: str
) -> None:
    with pytest.raises(PiiBenchError, match="a submission came with the name"):
        keep_submission(tmp_path, name, dataset, RIGHT)
    assert not (tmp_path / "submitted").exists()


def test_the_name_of_a_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints([EntryPoint("plug-in", "module:factory", ENTRY_POINTS)])
    monkeypatch.setattr(catalog, "entry_points", lambda *, group: points.select(group=group))

    for name in ("gold", "bilstm-crf", "gpt4o", "encoder", "plug-in"):
        with pytest.raises(PiiBenchError, match=f"'{name}' is a system of the suite"):
            check_name(name)


def test_what_is_kept_is_replaced_by_force_alone(tmp_path: Path, dataset: Dataset) -> None:
    path = keep_submission(tmp_path, "acme", dataset, RIGHT)
    before = path.read_bytes()

    assert keep_submission(tmp_path, "acme", dataset, RIGHT) == path
    with pytest.raises(PiiBenchError, match="other predictions are kept there; --force replaces"):
        keep_submission(tmp_path, "acme", dataset, FAILED)
    assert path.read_bytes() == before
    keep_submission(tmp_path, "acme", dataset, FAILED, force=True)
    assert path.read_bytes() != before


def test_submissions_that_cannot_be_used_are_left_out_and_the_rest_is_shown(
    tmp_path: Path, dataset: Dataset
) -> None:
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": BO})
    gone = tiny_dataset(tmp_path / "gone.jsonl")
    broken = keep_submission(tmp_path, "broken", dataset, RIGHT)
    broken.write_text(broken.read_text().splitlines()[0] + "\n")
    keep_submission(tmp_path, "changed", changed(dataset), RIGHT)
    keep_submission(tmp_path, "gone", gone, RIGHT)
    (tmp_path / "gone.jsonl").unlink()

    found = collect(tmp_path)

    assert [row.model for row in found.rows] == ["fake/one"]
    of_broken, of_changed, of_gone = found.left_out
    assert of_broken.startswith(f"{broken}: no prediction for sample 's2'; ")
    assert of_broken.endswith("; score the predictions again")
    assert of_changed == (
        f"changed on {dataset.source}: its file has changed since; score the predictions again"
    )
    assert of_gone.startswith(f"runs on {gone.source}: ")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "2"}, "no submission: 'format' must be 'pii-bench-submission-1'"),
        ({"name": "other"}, "'name' must be that of its folder, 'acme'"),
        ({"dataset": None}, "no submission: record: 'dataset' must be an object, not null"),
    ],
)
def test_a_submission_that_does_not_say_what_it_is_is_left_out(
    tmp_path: Path, dataset: Dataset, change: dict[str, Any], reason: str
) -> None:
    path = keep_submission(tmp_path, "acme", dataset, RIGHT).with_suffix(".json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))

    assert collect(tmp_path).left_out == (f"{path}: {reason}; score the predictions again",)


def answer(sample: str, annotator: int, *texts: str, suggestions: str | None = None) -> HumanAnswer:
    return HumanAnswer(
        "demo", Task.QUERY_RELATED, sample, sample, annotator, texts, ("32",), suggestions
    )


def write_answers(results: Path, *answers: HumanAnswer) -> Path:
    path = results / "human" / "study.jsonl"
    path.parent.mkdir()
    path.write_text(to_lines(answers), encoding="utf-8")
    return path


def test_people_are_a_row_with_an_interval_and_no_rank(tmp_path: Path) -> None:
    write_answers(
        tmp_path,
        answer("s1", 1, "32"),
        # Precision 1/2 and recall 1.
        answer("s1", 2, "32", "Leeds"),
        answer("s2", 1, "Leeds"),
    )

    rows, broken = human_rows(tmp_path)
    (row,) = rank(rows)

    assert broken == []
    assert (row.source, row.model, row.dataset, row.rank) == (Source.HUMAN, "people", "demo", None)
    assert row.metrics["f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert row.by_sample["f1"].values == pytest.approx((5 / 6, 0))
    assert row.interval is not None
    assert row.note == "2 people: 3 answers, 2 samples"
    assert row.signature.startswith("data:human/demo@")
    # The demo dataset has 12 samples.
    assert (row.scored, row.gold) == (2, 12)


def test_the_size_of_a_file_is_unknown_and_suggestions_are_said(tmp_path: Path) -> None:
    suggested = answer("s1", 1, "32", suggestions="encoder")
    write_answers(tmp_path, replace(suggested, dataset="notes-0a1b2c3d"))

    (row,), _ = human_rows(tmp_path)

    assert (row.scored, row.gold) == (1, None)
    assert row.note == "1 person, who saw suggestions of encoder: 1 answers, 1 samples"


def test_detection_is_scored_by_subject(tmp_path: Path) -> None:
    gold = [[("Ann", "PER"), ("32", "DEM")], [("Bo", "PER")]]
    # The age is given to Bo: strict F1 of Ann 2/3, of Bo 2/3.
    said = [[("Ann", "PER")], [("Bo", "PER"), ("32", "DEM")]]
    write_answers(tmp_path, HumanAnswer("demo", Task.DETECTION, "s1", "s1", 1, said, gold))

    (row,), _ = human_rows(tmp_path)

    assert row.metrics["strict_f1"] == pytest.approx(2 / 3)
    assert row.metrics["ent_f1"] == 1


def test_the_leaderboard_has_people_and_says_what_it_cannot_read(tmp_path: Path) -> None:
    write_answers(tmp_path, answer("s1", 1, "32"))
    (tmp_path / "human" / "other.jsonl").write_text("{}\n", encoding="utf-8")

    board = update(tmp_path)

    assert [row.source for row in board.rows if row.dataset == "demo"] == [Source.HUMAN]
    assert "other.jsonl:1" in board.left_out[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task": "masking"}, "detection or query-related"),
        ({"task": "x"}, "detection or query-related"),
        ({"answer": [5]}, "list texts"),
        ({"task": "detection"}, "list subjects"),
        ({"task": "detection", "answer": [["x"]]}, "pairs of text and type"),
        ({"annotator": "eva"}, "a whole number"),
    ],
)
def test_a_line_that_is_not_of_its_form_is_named(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    path = write_answers(tmp_path, answer("s1", 1, "32"))
    record = json.loads(path.read_text(encoding="utf-8")) | change
    path.write_text(json.dumps(record), encoding="utf-8")

    with pytest.raises(InputFileError, match=reason):
        read_human(path)
