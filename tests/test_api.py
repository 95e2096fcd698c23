from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

import pii_bench
from pii_bench.errors import PiiBenchError
from pii_bench.models.catalog import ModelOptions
from pii_bench.ranking.rows import Source
from pii_bench.runs.mask_text import MaskingError
from pii_bench.systems.base import SystemCard
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import sample_record, write_lines
from tests.fakes import FakeModel, RecordingProgress, fake_system
from tests.protocol_server import completion

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from tests.protocol_server import ProtocolServer

ALL_OK = {status: float(status is Status.OK) for status in Status}


def test_a_run_of_a_named_system_has_a_row_for_each_task(tmp_path: Path) -> None:
    rows = pii_bench.run("gold+none", "demo", limit=3, results=tmp_path)

    assert [(row.task, row.dataset, row.model) for row in rows] == [
        (Task.DETECTION, "demo", "gold"),
        (Task.QUERY_RELATED, "demo", "gold"),
        (Task.MASKING, "demo", "gold"),
    ]
    assert all(row.source is Source.RUN for row in rows)
    assert {(row.scored, row.gold) for row in rows} == {(3, 3)}
    assert (tmp_path / "runs" / "gold" / "none" / "demo.jsonl").exists()

    ranked = pii_bench.leaderboard(tmp_path)
    assert {row.source for row in ranked} == {Source.RUN, Source.PUBLISHED}
    assert (tmp_path / "leaderboard.csv").exists()


def test_systems_and_datasets_can_be_passed_as_objects(tmp_path: Path) -> None:
    model = FakeModel()
    demo = pii_bench.load_dataset("demo")

    (row,) = pii_bench.run([fake_system(model)], demo, results=tmp_path)
    again = pii_bench.run([fake_system(model)], [demo], results=tmp_path)

    assert row.task is Task.QUERY_RELATED
    assert len(model.asked) == len(demo.samples) == 12
    assert [each.signature for each in again] == [row.signature]


def test_a_dataset_can_be_a_path(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "mine.jsonl", [sample_record("s1")])
    answers = write_lines(tmp_path / "answers.jsonl", [{"id": "s1", "related": []}])

    ran = pii_bench.run("gold+none", path, results=tmp_path)
    scored = pii_bench.score(answers, path)

    assert {row.dataset for row in (*ran, *scored)} == {pii_bench.load_dataset(path).name}
    assert pii_bench.load_dataset(path) == pii_bench.load_dataset(str(path))


def test_a_part_of_a_dataset_is_refused(tmp_path: Path) -> None:
    demo = pii_bench.load_dataset("demo")
    part = replace(demo, samples=demo.samples[:2])
    path = write_lines(
        tmp_path / "mine.jsonl", [{"id": each.id, "related": []} for each in part.samples]
    )

    with pytest.raises(PiiBenchError, match="dataset 'demo' came with changed samples; allowed: "):
        pii_bench.run("gold+none", part, results=tmp_path)
    with pytest.raises(PiiBenchError, match="dataset 'demo' came with changed samples; allowed: "):
        pii_bench.score(path, part)

    assert not (tmp_path / "runs").exists()


@dataclass(frozen=True)
class Mine:
    """A user's system without a prompt, which finds one text that does not occur."""

    task: Task
    fault: Exception | None = None

    @property
    def card(self) -> SystemCard:
        return SystemCard("mine", "", "", self.task, oracle=False, settings={})

    def request_hash(self, sample: Sample) -> str:
        return sample.id

    async def respond(self, sample: Sample) -> Prediction:
        assert sample.description
        if self.fault is not None:
            raise self.fault
        if self.task is Task.DETECTION:
            return Prediction(Status.OK, subjects=((("Nemo", "PER"),),))
        return Prediction(Status.OK, related=("Nemo",))

    async def close(self) -> None:
        pass


def test_a_system_without_a_prompt_is_named_by_its_task(tmp_path: Path) -> None:
    mine = [Mine(Task.QUERY_RELATED), Mine(Task.DETECTION)]

    rows = pii_bench.run(mine, "demo", results=tmp_path)
    ranked = pii_bench.leaderboard(tmp_path)

    assert [(row.task, row.strategy, row.rates) for row in rows] == [
        (Task.QUERY_RELATED, "query-related", ALL_OK),
        (Task.MASKING, "query-related", ALL_OK),
        (Task.DETECTION, "detection", ALL_OK),
    ]
    assert {row.task for row in ranked if row.model == "mine"} == {row.task for row in rows}


def test_an_exception_of_a_system_is_a_wrong_answer_that_is_reported(tmp_path: Path) -> None:
    fails, progress = Mine(Task.DETECTION, RuntimeError("boom")), RecordingProgress()

    (row,) = pii_bench.run([fails], "demo", results=tmp_path, progress=progress)

    assert (row.scored, row.gold, row.metrics["ent_f1"]) == (12, 12, 0)
    *faults, rest = progress.notes
    for number, fault in enumerate(faults, start=1):
        what = rf"sample 'demo-000{number}': the plug-in raised RuntimeError at test_api\.py:\d+"
        assert re.fullmatch(what, fault)
    assert (len(faults), rest) == (5, "and 7 more")


def test_a_text_is_not_masked_if_a_system_raises() -> None:
    systems = [Mine(Task.DETECTION, RuntimeError("boom")), Mine(Task.QUERY_RELATED)]

    with pytest.raises(MaskingError, match="plug-in raised RuntimeError"):
        pii_bench.mask("I am Ann Lee. Write to me.", "Where?", systems)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("limit", 0, "from 1, not 0"),
        ("limit", -1, "from 1, not -1"),
        ("concurrency", 0, "from 1 to 1000, not 0"),
        ("concurrency", 1001, "from 1 to 1000, not 1001"),
    ],
)
def test_a_number_out_of_range_is_refused(tmp_path: Path, name: str, value: int, what: str) -> None:
    numbers: dict[str, Any] = {name: value}

    with pytest.raises(PiiBenchError, match=f"^{name} must be a whole number {what}$"):
        pii_bench.run("gold+none", "demo", results=tmp_path, **numbers)


@pytest.mark.parametrize(
    ("systems", "datasets", "what"),
    [
        (
            [Mine(Task.DETECTION), Mine(Task.DETECTION)],
            "demo",
            "systems came for detection, detection; allowed: at most one",
        ),
        ([FakeModel()], "demo", "systems came with FakeModel, which lacks card, "),
        ("gold+none", ["demo"], "datasets came with str; allowed: a name"),
    ],
)
def test_wrong_systems_and_datasets_are_refused(
    tmp_path: Path, systems: Any, datasets: Any, what: str
) -> None:
    with pytest.raises(PiiBenchError, match=f"^{what}"):
        pii_bench.run(systems, datasets, results=tmp_path)


def test_options_apply_only_to_named_systems(tmp_path: Path) -> None:
    systems = build_systems("gold+none", SystemOptions())

    with pytest.raises(PiiBenchError, match="options apply only to a system given by name"):
        pii_bench.run(systems, "demo", results=tmp_path, options=SystemOptions())
    with pytest.raises(PiiBenchError, match="options apply only to a system given by name"):
        pii_bench.mask("I am Ann Lee.", "Who?", systems, options=SystemOptions())


def test_systems_of_a_chat_model_mask_one_text_after_another(
    protocol_server: ProtocolServer,
) -> None:
    protocol_server.script(completion('Subject1{"Ann": "PER"}\n### Answer: []'))
    options = SystemOptions(model=ModelOptions(base_url=f"{protocol_server.url}/v1"))
    systems = build_systems("openai/m", options)

    masked = [pii_bench.mask("I am Ann.", "Who?", systems).text for _ in range(2)]

    assert masked == ["I am <Person>."] * 2


def test_a_text_is_masked_in_one_call_also_in_the_event_loop_of_a_notebook() -> None:
    def masked() -> str:
        return pii_bench.mask("I am Ann Lee. Write to me.", "Where?", "bilstm-crf+none").text

    async def cell() -> str:
        return masked()

    assert masked() == asyncio.run(cell()) == "I am <Full Name>. Write to me."


def test_predictions_without_types_have_no_typed_metrics(tmp_path: Path) -> None:
    demo = pii_bench.load_dataset("demo")
    untyped = [[{"text": "Ann", "type": None}]]
    answers = [{"id": sample.id, "subjects": untyped} for sample in demo.samples]

    (row,) = pii_bench.score(write_lines(tmp_path / "mine.jsonl", answers), demo)

    assert (row.task, row.model) == (Task.DETECTION, "mine")
    assert "strict_f1" not in row.metrics
    assert row.rank is None


def test_an_unknown_attribute_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'ruin'"):
        _ = pii_bench.ruin
