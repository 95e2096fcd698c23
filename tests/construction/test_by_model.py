from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.check import check_files
from pii_bench.construction.brief import load_briefs
from pii_bench.construction.build import Plan
from pii_bench.construction.by_model import TRIES, build_with_writer
from pii_bench.datasets.native import read_native
from pii_bench.errors import ProviderRefusedError
from pii_bench.models.openai_compatible import OpenAICompatibleModel
from pii_bench.taxonomy import PiiType
from tests.fakes import RecordingObserver
from tests.protocol_server import ProtocolServer, Reply, api_error, completion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pii_bench.construction.by_model import WriterReport
    from tests.protocol_server import ReceivedRequest

    Messages = list[dict[str, str]]
    Writer = Callable[[Messages], str]

TYPES = {
    PiiType.PER: 3,
    PiiType.DEM: 4,
    PiiType.CODE: 3,
    PiiType.ORG: 3,
    PiiType.LOC: 2,
    PiiType.DATETIME: 3,
    PiiType.QUANTITY: 3,
}
SINGLE = Plan("single", "test", 1, 3, TYPES, 500, {1: 0.5, 2: 0.5})
MULTI = Plan("multi", "test", 2, 3, {t: 2 * n for t, n in TYPES.items()}, 700, {1: 0.5, 3: 0.5})

WORDS = ("amber", "brisk", "cedar", "delta", "ember", "frost", "grove", "heron", "kelp", "lumen")
QUERY = "Please draft a courteous reply to the office about it, not too long."


def is_description(messages: Messages) -> bool:
    return "<description>" in messages[0]["content"]


def names(messages: Messages) -> list[str]:
    return re.findall(r"^[AB]: called (.+) \(\w+/\w+\)$", messages[0]["content"], re.MULTILINE)


def values(messages: Messages) -> list[str]:
    facts = messages[0]["content"].split("\nAbout:\n")[1].split("\nRules\n")[0]
    return list(dict.fromkeys(re.findall(r"^- [^:]+: (.+)$", facts, re.MULTILINE)))


def describe(said: list[str], chars: int) -> str:
    """A text that nobody would write, but with everything in it, and unlike any other."""
    random = Random(said[0])
    text = "".join(f"{random.choice(WORDS)} {random.choice(WORDS)} {value}. " for value in said)
    while len(text) < chars:
        text += f"{random.choice(WORDS)} "
    return f"<description>\n{text}\n</description>"


def chars(messages: Messages) -> int:
    found = re.search(r"about (\d+) characters", messages[0]["content"])
    assert found
    return int(found[1])


def good_writer(messages: Messages) -> str:
    if is_description(messages):
        return describe([*names(messages), *values(messages)], chars(messages))
    return f"<scenario>An office waits.</scenario>\n<query>{QUERY}</query>"


def forgetful_writer(messages: Messages) -> str:
    """Leaves the last value out."""
    if is_description(messages):
        return describe([*names(messages), *values(messages)[:-1]], chars(messages))
    return good_writer(messages)


def indiscreet_writer(messages: Messages) -> str:
    """Names a person in the query."""
    if is_description(messages):
        return good_writer(messages)
    return f"<query>{QUERY} It is about {names(messages)[0]}.</query>"


def learning(writer: Writer) -> Writer:
    """Makes its mistake once, and mends it when told."""
    return lambda messages: good_writer(messages) if len(messages) > 1 else writer(messages)


def step(writer: Writer) -> Callable[[ReceivedRequest], Reply]:
    return lambda request: completion(writer(request.body["messages"]))


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


def build(
    server: ProtocolServer,
    folder: Path,
    plan: Plan = SINGLE,
    *,
    concurrency: int = 2,
    observer: RecordingObserver | None = None,
) -> WriterReport:
    model = OpenAICompatibleModel(
        "openai",
        "writer-1",
        api_key="sk-planted",
        base_url=f"{server.url}/v1",
        timeout=5.0,
    )
    observer = observer or RecordingObserver()
    return build_with_writer(
        model, plan, "seed", folder, concurrency=concurrency, observer=observer
    )


def repairs(server: ProtocolServer) -> list[str]:
    """What the model was told after an answer that could not be used."""
    asked: list[Messages] = [request.body["messages"] for request in server.requests]
    return [messages[2]["content"] for messages in asked if len(messages) == 3]


def rules(report: WriterReport) -> list[set[str]]:
    return [{problem.rule for problem in rejection.problems} for rejection in report.rejected]


@pytest.mark.parametrize("plan", [SINGLE, MULTI], ids=["single", "multi"])
def test_what_a_good_writer_writes_is_kept_and_passes_the_check(
    server: ProtocolServer, tmp_path: Path, plan: Plan
) -> None:
    server.script(step(good_writer))
    observer = RecordingObserver()

    report = build(server, tmp_path, plan, observer=observer)

    assert report.path == tmp_path / f"openai--writer-1-{plan.name}.jsonl"
    assert report.rejected == ()
    assert read_native(report.path) == report.accepted
    assert [sample.id for sample in report.accepted] == [
        f"openai--writer-1-{plan.name}-000{number}" for number in (1, 2, 3)
    ]
    assert not check_files([report.path]).problems[report.path]
    assert len(server.requests) == 2 * plan.size
    assert (observer.start, observer.failed) == ((0, 3), [False, False, False])


def test_entities_are_those_of_the_profiles(server: ProtocolServer, tmp_path: Path) -> None:
    server.script(step(good_writer))

    samples = build(server, tmp_path, MULTI).accepted

    found = Counter(entity.type for sample in samples for entity in sample.entities)
    assert found == {pii_type.value: count for pii_type, count in MULTI.types.items()}
    assert all(sample.query == QUERY for sample in samples)
    assert all(len(sample.related) in {1, 3} for sample in samples)


def test_a_sample_says_who_wrote_it_from_which_prompts(
    server: ProtocolServer, tmp_path: Path
) -> None:
    server.script(step(good_writer))

    meta: Any = build(server, tmp_path, MULTI).accepted[0].meta

    assert meta["writer"] == {"model": "openai/writer-1", "prompts": load_briefs().sha256}
    assert meta.keys() == {"register", "relation", "scenario", "asker", "writer"}


@pytest.mark.parametrize(
    ("writer", "told"),
    [
        (forgetful_writer, "does not stand in the text"),
        (indiscreet_writer, "the query holds"),
        (lambda _: "I would rather not.", "the answer has no <"),
    ],
    ids=["a value dropped", "a name in the query", "no answer"],
)
def test_a_fault_is_told_and_mended(
    server: ProtocolServer, tmp_path: Path, writer: Writer, told: str
) -> None:
    server.script(step(learning(writer)))

    report = build(server, tmp_path)

    assert (len(report.accepted), report.rejected) == (3, ())
    assert repairs(server)
    assert all(told in repair for repair in repairs(server))


@pytest.mark.parametrize(
    ("writer", "stage", "rule", "asked"),
    [
        (forgetful_writer, "description", "value-missing", TRIES),
        (indiscreet_writer, "query", "query-value", 1 + TRIES),
        (lambda _: "", "description", "no-answer", TRIES),
    ],
    ids=["a value dropped", "a name in the query", "silence"],
)
def test_a_fault_that_is_never_mended_rejects_the_sample(
    server: ProtocolServer, tmp_path: Path, writer: Writer, stage: str, rule: str, asked: int
) -> None:
    server.script(step(writer))
    observer = RecordingObserver()

    report = build(server, tmp_path, observer=observer)

    assert (report.accepted, report.path.exists()) == ((), False)
    assert [rejection.stage for rejection in report.rejected] == [stage] * 3
    assert all(rule in found for found in rules(report))
    assert len(server.requests) == 3 * asked
    assert observer.failed == [True, True, True]


def test_an_empty_answer_is_not_shown_to_the_model(server: ProtocolServer, tmp_path: Path) -> None:
    server.script(completion(""))

    build(server, tmp_path)

    assert {len(request.body["messages"]) for request in server.requests} == {1}


@pytest.mark.parametrize(("finish", "rule"), [("length", "cut-off"), ("content_filter", "refused")])
def test_an_answer_that_did_not_end_well_is_not_used(
    server: ProtocolServer, tmp_path: Path, finish: str, rule: str
) -> None:
    server.script(
        lambda request: completion(good_writer(request.body["messages"]), finish_reason=finish)
    )

    assert rules(build(server, tmp_path)) == [{rule}] * 3


def test_a_call_that_fails_rejects_its_sample_only(server: ProtocolServer, tmp_path: Path) -> None:
    server.script(api_error(503), step(good_writer))

    report = build(server, tmp_path, concurrency=1)

    assert rules(report) == [{"call-failed"}]
    assert len(report.accepted) == 2


def test_of_texts_that_are_alike_the_first_is_kept(server: ProtocolServer, tmp_path: Path) -> None:
    refrain = (
        "and the kettle sang while everybody waited for the ferry in the rain, until the clerk "
        "came out with a lamp and said that nothing would sail before the tide had turned, which "
        "nobody believed, since the boats across the water had left their moorings long ago and "
        "were on the way home with nets over the side and gulls behind them"
    )

    def dull_writer(messages: Messages) -> str:
        if is_description(messages):
            said = ", ".join([*names(messages), *values(messages)])
            return f"<description>{said} {refrain}.</description>"
        return good_writer(messages)

    server.script(step(dull_writer))

    report = build(server, tmp_path)

    assert [sample.id[-4:] for sample in report.accepted] == ["0001"]
    assert [(r.id[-4:], r.stage) for r in report.rejected] == [("0002", "set"), ("0003", "set")]
    assert rules(report) == [{"near-duplicate"}] * 2


def test_a_refusal_of_the_provider_stops_and_keeps_what_was_accepted(
    server: ProtocolServer, tmp_path: Path
) -> None:
    server.script(step(good_writer), step(good_writer), api_error(401, "invalid_api_key"))

    with pytest.raises(ProviderRefusedError):
        build(server, tmp_path, concurrency=1)

    (path,) = tmp_path.iterdir()
    assert [sample.id for sample in read_native(path)] == ["openai--writer-1-single-0001"]


def test_no_more_commissions_are_in_work_than_allowed(
    server: ProtocolServer, tmp_path: Path
) -> None:
    server.script(lambda request: completion(good_writer(request.body["messages"]), delay=0.02))

    build(server, tmp_path, concurrency=2)

    assert server.peak <= 2
