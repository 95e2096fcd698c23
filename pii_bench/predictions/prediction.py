"""What a system said of a sample, once its raw response is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.outcome import Status
from pii_bench.parsing import parse_detection, parse_related
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from pii_bench.models.base import Completion

Subjects = tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one sample; what a task does not ask for is None.

    Attributes:
        status: `subjects` and `related` are None unless it is `ok` or `repaired`.
        subjects: per predicted subject its (text, type) pairs.
        related: the texts predicted for E_q.
        repairs: stages of the parser that changed the response, in order.
    """

    status: Status
    subjects: Subjects | None = None
    related: tuple[str, ...] | None = None
    repairs: tuple[str, ...] = ()


def read_response(task: Task, response: Completion) -> Prediction:
    """Read the raw response to a detection or query-related prompt; pure, never raises."""
    match task:
        case Task.DETECTION:
            detection = parse_detection(response.text, response.finish)
            return Prediction(
                detection.status, subjects=detection.subjects, repairs=detection.repairs
            )
        case Task.QUERY_RELATED:
            related = parse_related(response.text, response.finish)
            return Prediction(related.status, related=related.texts, repairs=related.repairs)
        case Task.MASKING:
            raise ValueError("masking has no response of its own: compose it from the other two")


def compose(detection: Prediction, related: Prediction) -> Prediction:
    """The masking prediction of a detection and a query-related one.

    A part that was never answered (`infra_error`, `skipped_budget`) leaves the sample
    unscored; else a part that failed fails it; else it is as repaired as its parts are.
    """
    parts = (detection, related)
    failed = [part.status for part in parts if not part.status.answered]
    if failed:
        unscored = [status for status in failed if not status.scored]
        return Prediction((unscored or failed)[0])
    return Prediction(
        Status.REPAIRED if Status.REPAIRED in {part.status for part in parts} else Status.OK,
        subjects=detection.subjects,
        related=related.related,
        repairs=detection.repairs + related.repairs,
    )
