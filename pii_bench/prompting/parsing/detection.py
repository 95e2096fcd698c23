"""The parser of answers to the detection prompt: `Subject1{"text": "TYPE", ...}` lines."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.completion import (
    DECORATION,
    mend_surrogates,
    read_completion,
    says_nothing,
    unreadable,
)
from pii_bench.prompting.parsing.entities import (
    LABEL_PATTERN,
    Labelled,
    Pairs,
    label_of,
    pairs_of_line,
    subjects_of,
)
from pii_bench.prompting.parsing.reader import OPENERS, read_literal
from pii_bench.prompting.parsing.result import TYPES, ParsedDetection, Stage, Subject
from pii_bench.tasks import Status

_EXPECTED_LINE = re.compile(r"Subject(?:\{(\d+)\}|(\d+))(\{.*\})")
_EXPECTED_LABEL = re.compile(r"Subject(?:\{\d+\}|\d+)")
_LINE_LABEL = re.compile(
    rf"^[ \t>#*_-]*+(?:\d{{1,3}}[.)][ \t]*+)?{LABEL_PATTERN}", re.IGNORECASE | re.MULTILINE
)
_LABEL_OR_OPENER = re.compile(f"{LABEL_PATTERN}|[{re.escape(OPENERS)}]", re.IGNORECASE)
_BETWEEN = DECORATION + ",;:，；：|-—=()[]{}［］｛｝\"'\\"


@dataclass(slots=True)
class _Piece:
    """A part of the answer: a label with what follows it, or brackets without a label.

    Attributes:
        label: the subject's number.
        start: index of the label or the bracket.
        end: index behind what was read.
        subjects: what was read; a labelled piece has one at most.
        closed: whether its end was seen.
        repairs: stages that were needed.
    """

    label: str | None
    start: int
    end: int
    subjects: list[Labelled] = field(default_factory=list)
    closed: bool = True
    repairs: set[Stage] = field(default_factory=set)


def parse_detection(completion_text: str, finish: Finish = Finish.UNKNOWN) -> ParsedDetection:
    """Read the subjects and their entities from the answer of a model.

    An answer in the expected form is never changed beyond JSON itself; any other goes
    through the stages of `Stage`. Where a draft and a later version both start at the
    first label, with text between them, the last complete one counts. No text raises,
    and the time is linear in its length.

    Args:
        completion_text: the completion, raw.
        finish: why the model stopped.

    Returns:
        The subjects with `ok` or `repaired`, or the status that says why there are none.
    """
    return ParsedDetection(
        *read_completion(completion_text, finish, _expected_form, _tolerant_form)
    )


def _tolerant_form(text: str, finish: Finish, repairs: set[Stage]) -> tuple[Subject, ...] | Status:
    pieces = _pieces(text)
    if finish is Finish.LENGTH and pieces and not pieces[-1].closed:
        return Status.TRUNCATED
    if any(piece.subjects for piece in pieces):
        return _chosen(text, pieces, repairs)
    if _is_empty(text, pieces):
        repairs.add(Stage.EXPLICIT_NONE)
        return ()
    # Where lines without brackets end, the cut cannot be told from the end.
    pairs = [] if finish is Finish.LENGTH else _lines(text, repairs)[0]
    if not pairs:
        return unreadable(text, finish)
    repairs.add(Stage.NO_LABEL)
    return (tuple(pairs),)


def _expected_form(text: str) -> tuple[Subject, ...] | None:
    """Read a text in which every line is a label and a JSON object of texts and types."""
    subjects: dict[str, Subject] = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        found = _EXPECTED_LINE.fullmatch(line.strip(" \t\r"))
        subject = _expected_object(found[3]) if found else None
        if found is None or subject is None or (found[1] or found[2]) in subjects:
            return None
        subjects[found[1] or found[2]] = subject
    return tuple(subjects.values())


def _expected_object(text: str) -> Subject | None:
    try:
        pairs = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    for key, value in pairs:
        known = isinstance(value, str) and value in TYPES
        if not (known and key.strip() and mend_surrogates(key) == key):
            return None
    return tuple(pairs)


def _pieces(text: str) -> list[_Piece]:
    """Cut the text at labels and brackets and read each piece once.

    A label at the start of a line ends whatever bracket was left open before it.
    """
    limits = [label.start() for label in _LINE_LABEL.finditer(text)] + [len(text)]
    pieces: list[_Piece] = []
    start = 0
    for limit in limits:
        pieces += _pieces_between(text, start, limit)
        start = limit
    return pieces


def _pieces_between(text: str, start: int, limit: int) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = start
    while found := _LABEL_OR_OPENER.search(text, at, limit):
        if found[0] in OPENERS:
            at = _read_brackets(text, found.start(), limit, pieces)
            continue
        at = found.end()
        piece = _Piece(label_of(found), found.start(), at)
        starts_line = found.start() == 0 or text[found.start() - 1] == "\n"
        expected = _EXPECTED_LABEL.fullmatch(found[0]) and text.startswith("{", at)
        if not (starts_line and expected):
            piece.repairs.add(Stage.LABEL_VARIANT)
        pieces.append(piece)
    ends = [piece.start for piece in pieces[1:]] + [limit]
    for piece, end in zip(pieces, ends, strict=False):
        if piece.label is not None and not piece.subjects and piece.closed:
            _read_lines(piece, text, end)
    return pieces


def _read_brackets(text: str, start: int, limit: int, pieces: list[_Piece]) -> int:
    """Read what opens at `start` into the label before it, or as a piece of its own.

    Returns:
        The index behind what was read.
    """
    literal = read_literal(text, start, limit)
    repairs = set(literal.repairs)
    subjects = subjects_of(literal.group, repairs)
    if not pieces or pieces[-1].label is None or any(label for label, _ in subjects):
        filled = [subject for subject in subjects if subject[0] or subject[1]]
        pieces.append(_Piece(None, start, literal.end, filled, literal.closed, repairs))
        return literal.end
    piece = pieces[-1]
    piece.closed = literal.closed
    pairs = [pair for _, pairs in subjects for pair in pairs]
    if pairs or (literal.closed and not literal.group.entries):
        piece.end = literal.end
        piece.repairs |= repairs
        if piece.subjects:
            piece.repairs.add(Stage.MERGED_LABEL)
        else:
            piece.subjects = [(piece.label, [])]
        piece.subjects[0][1].extend(pairs)
    return literal.end


def _read_lines(piece: _Piece, text: str, end: int) -> None:
    """Read the lines of a labelled piece in whose brackets there was no subject."""
    body = text[piece.end : end]
    if says_nothing(body.strip(_BETWEEN)):
        piece.subjects, piece.end = [(piece.label, [])], end
        piece.repairs.add(Stage.EXPLICIT_NONE)
        return
    pairs, length = _lines(body, piece.repairs)
    # Where such lines end, the cut cannot be told from the end; nor can a bare label's.
    piece.closed = bool(body.strip(_BETWEEN)) and not (pairs and end == len(text))
    if pairs:
        piece.subjects, piece.end = [(piece.label, pairs)], piece.end + length


def _lines(body: str, repairs: set[Stage]) -> tuple[Pairs, int]:
    """Read the pairs of each line, and how far into the body the last of them goes."""
    pairs: Pairs = []
    at = length = 0
    for line in body.splitlines(keepends=True):
        at += len(line)
        found = pairs_of_line(line.strip(), repairs)
        if found:
            pairs += found
            length = at
    return pairs, length


def _chosen(text: str, pieces: list[_Piece], repairs: set[Stage]) -> tuple[Subject, ...]:
    """Choose the pieces that are the answer, and merge what has one label."""
    filled = [piece for piece in pieces if piece.subjects]
    labelled = [piece for piece in filled if any(label for label, _ in piece.subjects)]
    groups = _groups(text, labelled or filled)
    complete = [group for group in groups if all(piece.closed for piece in group)]
    chosen = (complete or groups)[-1]
    if len(groups) > 1:
        repairs.add(Stage.LAST_GROUP)
    if not labelled:
        repairs.add(Stage.NO_LABEL)
    if _prose_around(text, chosen):
        repairs.add(Stage.PROSE_AROUND)
    merged: dict[str, Pairs] = {}
    for index, piece in enumerate(chosen):
        repairs |= piece.repairs
        for number, (label, pairs) in enumerate(piece.subjects):
            name = label or f"{index}.{number}"
            if name in merged:
                repairs.add(Stage.MERGED_LABEL)
            merged.setdefault(name, []).extend(pairs)
    return tuple(tuple(pairs) for pairs in merged.values())


def _is_empty(text: str, pieces: list[_Piece]) -> bool:
    """Whether an answer without subjects says that there are none: `[]`, None, no PII."""
    stripped = text.strip()
    if len(pieces) == 1 and pieces[0].label is None and pieces[0].closed:
        return not stripped.strip("[]{} \t\n")
    return "\n" not in stripped and says_nothing(stripped)


def _groups(text: str, pieces: list[_Piece]) -> list[list[_Piece]]:
    """Part the pieces where the first label comes again after some text."""
    groups = [[pieces[0]]]
    for piece in pieces[1:]:
        label, first = piece.subjects[0][0], groups[-1][0].subjects[0][0]
        between = text[groups[-1][-1].end : piece.start].strip(_BETWEEN)
        if label is not None and label == first and between:
            groups.append([piece])
        else:
            groups[-1].append(piece)
    return groups


def _prose_around(text: str, pieces: list[_Piece]) -> bool:
    after = 0
    for piece in pieces:
        if text[after : piece.start].strip():
            return True
        after = piece.end
    return bool(text[after:].strip())
