"""Parsing of responses into predictions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pii_bench.models.base import Draws
from pii_bench.scorer import normalise
from pii_bench.systems.base import fault_of
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.models.base import Completion
    from pii_bench.prompting.strategies import Output
    from pii_bench.systems.base import Response


def read_response(
    task: Task,
    response: Response,
    output: Output = "text",
    labels_of: str | None = None,
    text: str | None = None,
) -> Prediction:
    """Parse a response into a prediction; no content of a response raises an error.

    A prediction without the part that the task needs is malformed. So is a fault of a plug-in, and
    a response of a kind that the task does not allow: completions for masking, and draws, which
    only query-related and detection with the labels of a taxonomy have.

    Several draws are parsed one by one and combined by majority vote; if detection uses the labels
    of a taxonomy, the draws are answers about consecutive pieces of one text, and their entities
    are merged.

    Args:
        task: the task.
        response: the response of the system.
        output: the form that the model was asked for.
        labels_of: the taxonomy whose labels detection uses; None for the seven types. Labels are
            mapped to types; entities whose label has no type are dropped.
        text: the description, in which parts of one value (given name, surname) are joined; None
            to keep them apart.
    """
    if fault_of(response):
        # The parser of rewritten texts would take it for an answer.
        return Prediction(Status.MALFORMED)
    if isinstance(response, Prediction):
        fits = response.answers(task) or not response.status.answered
        return response if fits else Prediction(Status.MALFORMED)
    draws = response.completions if isinstance(response, Draws) else (response,)
    if task is Task.DETECTION and labels_of is not None:
        return _read_labelled(draws, output, labels_of, text)
    if not isinstance(response, Draws):
        return _read_completion(task, response, output)
    if task is Task.QUERY_RELATED:
        return vote([_read_completion(task, each, output) for each in draws])
    return Prediction(Status.MALFORMED)


def _read_completion(task: Task, response: Completion, output: Output) -> Prediction:
    # Only answers of chat models need the parsers.
    from pii_bench.prompting.parsing.answers import (
        parse_structured_detection,
        parse_structured_related,
    )
    from pii_bench.prompting.parsing.detection import parse_detection
    from pii_bench.prompting.parsing.texts import parse_related, parse_rewriting

    text, finish = response.text, response.finish
    match task:
        case Task.DETECTION:
            parse = parse_detection if output == "text" else parse_structured_detection
            found = parse(text, finish)
            return Prediction(found.status, subjects=found.payload, cut=found.cut)
        case Task.QUERY_RELATED:
            parse_list = parse_related if output == "text" else parse_structured_related
            needed = parse_list(text, finish)
            return Prediction(needed.status, related=needed.payload)
        case Task.REWRITE:
            written = parse_rewriting(text, finish)
            return Prediction(written.status, rewritten=written.payload)
        case Task.MASKING:
            # It is composed of the answers of the other two tasks.
            return Prediction(Status.MALFORMED)


def vote(draws: Sequence[Prediction]) -> Prediction:
    """Return the majority vote of several answers to one query-related question.

    A text is kept if more than half of the draws with an answer name it; texts are compared after
    the scorer's normalisation, and keep the order and spelling of their first mention. Draws
    without an answer do not vote; if no draw has one, the status is that of the first. The result
    is `repaired` if any of the draws is.

    Args:
        draws: at least one, in the order of their requests.
    """
    answers = [draw for draw in draws if draw.status.answered]
    if not answers:
        return Prediction(draws[0].status)
    written: dict[str, str] = {}
    named: Counter[str] = Counter()
    for answer in answers:
        texts = answer.related or ()
        for text in texts:
            written.setdefault(normalise(text), text)
        named.update({normalise(text) for text in texts})
    return Prediction(
        _combined([answer.status for answer in answers]),
        related=tuple(text for key, text in written.items() if 2 * named[key] > len(answers)),
    )


def _combined(statuses: list[Status]) -> Status:
    return Status.REPAIRED if Status.REPAIRED in statuses else Status.OK


def compose(detection: Prediction, related: Prediction) -> Prediction:
    """Combine a detection and a query-related prediction into a masking prediction.

    If a part is unscored (`infra_error`, `skipped_budget`), so is the result; otherwise a failed
    part makes it fail; otherwise it is `repaired` if either part is.
    """
    parts = (detection, related)
    failed = [part.status for part in parts if not part.status.answered]
    if failed:
        unscored = [status for status in failed if not status.scored]
        return Prediction((unscored or failed)[0])
    return Prediction(
        _combined([part.status for part in parts]),
        subjects=detection.subjects,
        related=related.related,
        cut=detection.cut,
    )


def _read_labelled(
    completions: Sequence[Completion], output: Output, labels_of: str, text: str | None
) -> Prediction:
    """Merge the entities of all pieces of a text; a piece without an answer fails the whole."""
    from pii_bench.prompting.parsing.answers import parse_structured_labelled
    from pii_bench.prompting.parsing.labelled import parse_labelled, whole_values

    labels = taxonomy(labels_of)
    parse = parse_labelled if output == "text" else parse_structured_labelled
    read = [parse(each.text, labels, each.finish) for each in completions]
    pairs: dict[tuple[str, str], None] = {}
    for each in read:
        if each.payload is None:
            return Prediction(each.status)
        pairs.update(dict.fromkeys(pair for subject in each.payload for pair in subject))
    typed: list[tuple[str, str]] = []
    for value, label in pairs if text is None else whole_values(pairs, labels, text):
        # An unknown label is kept: it counts as a wrong prediction.
        pii_type = labels[label].type if label in labels else label
        if pii_type is not None:
            typed.append((value, str(pii_type)))
    return Prediction(
        _combined([each.status for each in read]),
        subjects=(tuple(typed),) if typed else (),
        cut=any(each.cut for each in read),
    )
