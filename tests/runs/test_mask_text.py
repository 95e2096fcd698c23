from __future__ import annotations

import asyncio
import re
import traceback
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.masking import mask
from pii_bench.models.base import CallError, Completion, Finish, Sampling
from pii_bench.prompting.strategies import DETECTION, get_strategy, load_prompt
from pii_bench.runs.mask_text import (
    Answers,
    MaskingCounts,
    MaskingError,
    ask,
    find_in_query,
    mask_for_query,
    masking_systems,
)
from pii_bench.scorer.locate import Locator
from pii_bench.systems.base import THIS_MACHINE
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.composed import DetectedEntities, PredictedRelevance, compose_systems
from pii_bench.systems.plug_ins import PlugIn
from pii_bench.systems.prompted import DrawnSystem, PromptedSystem
from pii_bench.taxonomy import PiiType
from tests.fakes import FakeModel
from tests.systems.fakes import NumbersNeeded, WordDetector

if TYPE_CHECKING:
    from pii_bench.masking import Masked
    from pii_bench.models.base import Request
    from pii_bench.systems.base import System

TEXT = "Ann Lee is 32."
QUERY = "Am I old?"
FOUND = Completion('Subject1{"Ann Lee": "PER", "32": "DEM"}', Finish.STOP)
NEEDED = Completion('### Answer: ["32"]', Finish.STOP)


def chat(
    detection: Completion | Exception, related: Completion | Exception = NEEDED
) -> tuple[FakeModel, tuple[System, System]]:
    """Return a chat model that answers the two prompts, or raises, and its two systems."""

    def answer(request: Request) -> Completion:
        outcome = detection if request.prompt == "detection" else related
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    model = FakeModel(answer)
    return model, (
        PromptedSystem(model, load_prompt(DETECTION), Sampling()),
        PromptedSystem(model, load_prompt(get_strategy("naive")), Sampling()),
    )


def masked(systems: tuple[System, ...], query: str = QUERY) -> Masked:
    return asyncio.run(mask_for_query(TEXT, query, systems))


def test_entities_that_the_query_does_not_need_are_masked() -> None:
    words = WordDetector({"Ann Lee": PiiType.PER, "32": PiiType.DEM})
    systems = compose_systems(DetectedEntities(words), PredictedRelevance(NumbersNeeded()))

    assert masked(systems).text == "<Full Name> is 32."
    assert masked(systems[::-1]).text == "<Full Name> is 32."


def test_a_chat_model_is_asked_once_per_task() -> None:
    model, systems = chat(
        Completion('Subject1{"Ann Lee": "PER", "32": "DEM", "Bo Ek": "PER"}', Finish.STOP)
    )

    result = masked(systems)

    assert (result.text, result.mapping) == ("<Full Name> is 32.", {"<Full Name>": ("Ann Lee",)})
    # An invented text.
    assert result.not_found == ("Bo Ek",)
    assert model.asked == ["text", "text"]


def test_relevance_may_be_decided_by_votes() -> None:
    _, (detection, related) = chat(FOUND)
    assert isinstance(related, PromptedSystem)

    assert masked((detection, DrawnSystem(related, "votes", 5))).text == "<Full Name> is 32."


@pytest.mark.parametrize(
    ("detection", "reason"),
    [
        (Completion("I see people.", Finish.STOP), "its answer is malformed"),
        (Completion("", Finish.STOP), "its answer is empty"),
        (Completion("I'm sorry, but I can't help with that.", Finish.STOP), "is refused"),
        (Completion(FOUND.text, Finish.FILTER), "its answer is filtered"),
        (Completion('Subject1{"Ann', Finish.LENGTH), "its answer is truncated"),
        # The lines are complete, but more may have followed.
        (Completion(FOUND.text, Finish.LENGTH), "its answer was cut off"),
        (Completion('Subject1{"Ann Lee": "PER", "32', Finish.STOP), "its answer was cut off"),
        (CallError("server_error", "HTTP 503"), r"the call failed \(server_error: HTTP 503\)"),
    ],
)
@pytest.mark.parametrize("on_failure", ["refuse", "mask-all"])
def test_a_failed_detection_is_an_error_for_every_setting(
    detection: Completion | Exception, reason: str, on_failure: str
) -> None:
    model, systems = chat(detection)

    with pytest.raises(MaskingError, match=rf"'fake/one' \(detection\): .*{reason}; nothing is"):
        asyncio.run(ask(TEXT, QUERY, systems, on_failure=on_failure))  # type: ignore[arg-type]
    assert len(model.asked) == 1


def test_the_error_names_the_exception_of_a_plug_in_without_its_message() -> None:
    detection, related = chat(ValueError(TEXT))[1]

    with pytest.raises(MaskingError) as caught:
        masked((PlugIn(detection, source=""), related))

    place = r"test_mask_text\.py:\d+"
    what = rf"system 'fake/one' \(detection\): the plug-in raised ValueError at {place}; nothing is"
    assert re.match(what, str(caught.value))


def test_an_answer_of_a_chat_model_is_not_quoted_as_the_fault_of_a_plug_in() -> None:
    with pytest.raises(MaskingError, match=r": its answer is malformed; nothing is masked$"):
        masked(chat(Completion(f"error: the plug-in {TEXT}", Finish.STOP))[1])


@pytest.mark.parametrize("related", [Completion("Hm.", Finish.STOP), CallError("timeout")])
def test_a_failed_relevance_decision_is_an_error_unless_all_is_masked_then(
    related: Completion | Exception,
) -> None:
    _, systems = chat(FOUND, related)

    with pytest.raises(MaskingError, match=r"'fake/one' \(naive\): "):
        masked(systems)
    assert asyncio.run(ask(TEXT, QUERY, systems, on_failure="mask-all")).needed is None


@pytest.mark.parametrize(
    ("related", "needed", "text"),
    [
        (Completion("### Answer: []", Finish.STOP), (), "<Full Name> is <Age>."),
        # A truncated list is used.
        (Completion(NEEDED.text, Finish.LENGTH), ("32",), "<Full Name> is 32."),
    ],
)
def test_an_empty_or_truncated_list_of_needed_texts_is_a_valid_answer(
    related: Completion, needed: tuple[str, ...], text: str
) -> None:
    _, systems = chat(FOUND, related)

    assert asyncio.run(ask(TEXT, QUERY, systems)).needed == needed
    assert masked(systems).text == text


def test_a_refusal_of_the_provider_is_raised() -> None:
    with pytest.raises(ProviderRefusedError):
        masked(chat(ProviderRefusedError("HTTP 401"))[1])


def test_neither_an_error_nor_an_answer_shows_the_text() -> None:
    _, systems = chat(Completion(f"{TEXT} Ann", Finish.STOP))

    with pytest.raises(MaskingError) as caught:
        masked(systems)

    assert "Ann" not in "".join(traceback.format_exception(caught.value))
    assert repr(asyncio.run(ask(TEXT, QUERY, chat(FOUND)[1]))) == "Answers()"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gold+none", "system 'gold' (detection) uses the gold annotation of a dataset: it"),
        ("bilstm-crf", "system 'bilstm-crf' does not answer query-related; masking needs"),
        ("", "system 'none' does not answer detection; masking needs"),
    ],
)
def test_systems_that_cannot_mask_a_text_are_refused(name: str, message: str) -> None:
    systems = build_systems(name, SystemOptions()) if name else ()

    with pytest.raises(PiiBenchError, match=f"^{re.escape(message)}"):
        masking_systems(systems)


def test_a_blank_query_is_refused_before_any_call() -> None:
    model, systems = chat(FOUND)

    with pytest.raises(PiiBenchError, match=r"^the query is blank"):
        masked(systems, query=" ")
    assert model.asked == []


def test_counts_of_several_texts_are_summed() -> None:
    entities = (("Ann Lee", "PER"), ("Bo Ek", "PER"), ("32", "DEM"), ("Cy Orr", "PER"))
    counts = MaskingCounts()

    for text, needed in (
        ("Ann Lee, Bo Ek and Ann Lee are 32.", ("32",)),
        ("Bo Ek", ("32",)),
        ("Ann Lee is 32.", None),
    ):
        counts.add(Locator(text), Answers(entities, needed), mask(text, entities, needed or ()))
    counts.add_query([("ann lee", "PER")])

    assert counts == MaskingCounts(
        places=6,
        masked=Counter(PER=4, DEM=1),
        # The second text needs "32" too, but does not contain it.
        readable=Counter(DEM=1),
        not_found=1 + 2 + 2,
        in_query=Counter(PER=1),
        undecided=1,
    )


def test_values_are_counted_by_what_became_of_them() -> None:
    for text, entities, needed, expected in (
        # All writings of a value have one tag.
        (
            "Ann Lee\n\nANN LEE\nann lee, PX-0045-1277 or PX00451277",
            [("Ann Lee", "PER"), ("ANN LEE", "PER"), ("PX-0045-1277", "CODE")],
            (),
            MaskingCounts(places=5, masked=Counter(PER=1, CODE=1)),
        ),
        (
            "Ann Lee, ANN LEE",
            [("Ann Lee", "PER"), ("ANN LEE", "PER")],
            ("Ann Lee",),
            MaskingCounts(readable=Counter(PER=1)),
        ),
        # A value inside another one shares what becomes of that.
        (
            "Ann Lee lives at 14 Mill Lane, Leeds.",
            [("14 Mill Lane, Leeds", "LOC"), ("Leeds", "LOC"), ("Ann Lee", "PER"), ("Lee", "PER")],
            ("14 Mill Lane, Leeds",),
            MaskingCounts(
                places=1, masked=Counter(PER=1), readable=Counter(LOC=1), inside=Counter(LOC=1)
            ),
        ),
    ):
        counts = MaskingCounts()

        answers = Answers(tuple(entities), needed)
        counts.add(Locator(text), answers, mask(text, entities, needed))

        assert counts == expected


def test_values_in_a_query_are_those_of_the_text_and_of_a_local_detector() -> None:
    answers = Answers(
        (("Ann Lee", "PER"), ("Bo Ek", "PER"), ("32", "DEM"), ("Ulm", "ORG")), ("32",)
    )
    query = "Is ann lee of Leeds or Ulm 32?"
    words = WordDetector({"Leeds": PiiType.LOC, "Ulm": PiiType.LOC, "32": PiiType.DEM})
    detected = DetectedEntities(words, THIS_MACHINE)
    local = compose_systems(detected, PredictedRelevance(NumbersNeeded()))

    found = [
        asyncio.run(find_in_query(query, answers, systems)) for systems in (local, chat(FOUND)[1])
    ]

    of_text = {("ann lee", "PER"), ("ulm", "ORG")}
    assert found == [of_text | {("leeds", "LOC")}, of_text]
