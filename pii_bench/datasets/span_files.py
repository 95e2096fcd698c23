"""Readers of other people's datasets of texts with labelled spans.

Files are streamed row by row. A row that does not fit the format is skipped, counted by reason
and reported with its line. A value that is empty or not in its text is left out of its row.

- AI4Privacy: `source_text` and `privacy_mask` (or `span_labels`), also as JSON or Python strings.
- Nemotron-PII: `text` and `spans`.
- Gretel: `generated_text` and `pii_spans`; or `text` and `entities` without offsets, which are
  located as whole words.
- presidio-research: `full_text` and `spans`.
- SPIA: `text` and facts about its subjects, of which those that occur literally are used.
- BIO: lines of columns, the first a token and the last a tag, with a blank line after each
  sentence; or rows of `tokens` and `tags`. Tokens are joined by spaces.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl

from pii_bench.datasets.foreign import SUBJECT
from pii_bench.datasets.rows import ROWS
from pii_bench.datasets.sample import Entity, Sample, Subject
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import BadLines, RecordError, decode, get, get_objects, open_binary
from pii_bench.taxonomy import Meaning, any_taxonomy, name_in, taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Row: TypeAlias = dict[str, Any]
LabelledSpan: TypeAlias = tuple[int, int, str]
"""Start and end in code points, end exclusive, and the label of the dataset."""

Parse: TypeAlias = "Callable[[Row, list[str]], tuple[str, list[LabelledSpan]]]"
"""Returns text and spans of a row and appends reasons for skipped values; raises RecordError."""

_LABEL: Final = re.compile(r"[A-Za-z][\w .&/'-]{0,60}")
_TAG: Final = re.compile(r"([BIESLU])-(.+)")
_DETAILS: Final = re.compile(r" \(.*|\[\d+\]")
_BETWEEN_OBJECTS: Final = re.compile(r"}\s*{")
_PLACES_PER_REASON: Final = 5
_LANGUAGE_CODES: Final = {
    "dutch": "nl",
    "english": "en",
    "french": "fr",
    "german": "de",
    "hindi": "hi",
    "italian": "it",
    "portuguese": "pt",
    "spanish": "es",
    "swedish": "sv",
    "telugu": "te",
}

BIO: Final = "bio"
_BIO_SUFFIXES: Final = frozenset(
    {*ROWS, ".bio", ".conll", ".iob", ".iob2", ".tsv", ".txt"} - {".csv"}
)


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its spans in order; `id` is the format with the number of the row."""

    id: str
    text: str
    spans: tuple[LabelledSpan, ...]


@dataclass(frozen=True, slots=True)
class SpanFormat:
    """A parser of rows; `language` is that of rows which do not name theirs."""

    parse: Parse
    language: str | None = None


@dataclass(frozen=True, slots=True)
class SpanSource:
    """A parsed `--dataset` option, such as `format:PATH#language=fr&split=test`.

    Attributes:
        format: a name of `SPAN_FORMATS`.
        path: a file, or a folder of files.
        language: keep only rows of this language, a code or an English name.
        split: keep only rows of this split. Rows that do not name theirs have that of the folder
            or the first part of the file name.
    """

    format: str
    path: Path
    language: str | None = None
    split: str | None = None

    @property
    def name(self) -> str:
        """Name of the dataset in results, with the filters."""
        parts = (self.format, self.path.stem, self.language, self.split)
        return "-".join(part for part in parts if part)

    @property
    def labels(self) -> Mapping[str, Meaning]:
        """Meaning of each label of the format."""
        return any_taxonomy() if self.format == BIO else taxonomy(self.format)


class Misfits(BadLines):
    """Counts skipped rows and values by reason, with the lines where each reason came first."""

    def __init__(self) -> None:
        self.path = Path()
        self._counts: Counter[str] = Counter()
        self._places: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, line: int, what: str) -> None:
        """Count a misfit. Details in brackets do not belong to the reason; line 0 means none."""
        reason = _DETAILS.sub("", what)
        self._counts[reason] += 1
        places = self._places[reason]
        place = f"{self.path.name}:{line}"
        if line and len(places) < _PLACES_PER_REASON and place not in places:
            places.append(place)

    def messages(self) -> tuple[str, ...]:
        """Return one message for each reason, the most frequent first."""
        messages: list[str] = []
        for reason, number in self._counts.most_common():
            places = ", ".join(self._places[reason])
            messages.append(
                f"{number} left out: {reason}" + (f" (first at {places})" if places else "")
            )
        return tuple(messages)


def span_source(source: str) -> SpanSource | None:
    """Parse a `--dataset` option; None if it names no format of spans.

    Raises:
        PiiBenchError: a filter is neither language nor split.
    """
    name, _, rest = source.partition(":")
    if name not in SPAN_FORMATS:
        return None
    path, _, query = rest.partition("#")
    filters = dict(parse_qsl(query))
    if (query and not filters) or not filters.keys() <= {"language", "split"}:
        raise PiiBenchError(f"{name}:{path}: after '#' only language= and split= are allowed")
    return SpanSource(name, Path(path), **filters)


def read_documents(source: SpanSource, misfits: Misfits) -> Iterator[Document]:
    """Yield the documents of a dataset; what does not fit is added to `misfits`.

    Raises:
        InputFileError: a file cannot be read, or no row fits.
        MissingExtraError: pyarrow is not installed.
    """
    span_format = SPAN_FORMATS[source.format]
    labels = source.labels
    rows = documents = 0
    for path in _files(source):
        misfits.path = path
        read_rows = ROWS.get(path.suffix.lower(), _read_columns)
        for line, row in read_rows(path, misfits):
            rows += 1
            reasons: list[str] = []
            try:
                if not _passes_filters(row, path, source, span_format.language):
                    continue
                text, spans = span_format.parse(row, reasons)
                labelled = sorted(
                    {(start, end, _canonical(label, labels)) for start, end, label in spans}
                )
            except RecordError as error:
                misfits.add(line, str(error))
                continue
            for reason in reasons:
                misfits.add(line, reason)
            documents += 1
            yield Document(f"{source.format}-{rows:06d}", text, tuple(labelled))
    if not documents:
        raise InputFileError(source.path, _nothing_fits(source, misfits))


def _canonical(label: str, labels: Mapping[str, Meaning]) -> str:
    """Return the taxonomy's spelling of a label, or an unknown label as it is."""
    if not _LABEL.fullmatch(label):
        raise RecordError("a label that is no name")
    return name_in(labels, label) or label


def _nothing_fits(source: SpanSource, misfits: Misfits) -> str:
    message = f"no row fits {source.format}"
    if source.language:
        message += f" language {source.language!r}"
    if source.split:
        message += f" split {source.split!r}"
    return "; ".join([message, *misfits.messages()])


def read_samples(source: SpanSource, misfits: Misfits) -> Iterator[Sample]:
    """Yield the rows as samples without query, with all entities in one subject.

    Spans whose label has none of our types are left out and counted. Raises as `read_documents`.
    """
    labels = source.labels
    for document in read_documents(source, misfits):
        entities: dict[tuple[str, str, str | None], list[tuple[int, int]]] = {}
        for start, end, label in joined(document, labels):
            meaning = labels.get(label)
            if meaning is None or meaning.type is None:
                misfits.add(0, f"a span, as label {label} has none of the seven types")
                continue
            key = document.text[start:end], meaning.type, meaning.category
            entities.setdefault(key, []).append((start, end))
        unique = tuple(Entity(*key, tuple(spans)) for key, spans in entities.items())
        subjects = (Subject(SUBJECT, unique),) if unique else ()
        yield Sample(document.id, document.text, None, subjects, ())


def joined(document: Document, labels: Mapping[str, Meaning]) -> list[LabelledSpan]:
    """Join adjacent spans that are different parts of one value, such as first and last name.

    Only white space is between parts. The whole has the label of its first part.
    """

    def part_of(label: str) -> str | None:
        return labels[label].part if label in labels else None

    spans: list[LabelledSpan] = []
    previous = ""
    for start, end, label in document.spans:
        if spans and part_of(label) and label != previous and part_of(previous) == part_of(label):
            first_start, first_end, first_label = spans[-1]
            if first_end <= start and not document.text[first_end:start].strip():
                spans[-1] = (first_start, end, first_label)
                previous = label
                continue
        spans.append((start, end, label))
        previous = label
    return spans


def _files(source: SpanSource) -> list[Path]:
    if not source.path.is_dir():
        if source.path.suffix.lower() not in ROWS and source.format != BIO:
            raise InputFileError(source.path, f"must end in one of {', '.join(ROWS)}")
        return [source.path]
    suffixes = _BIO_SUFFIXES if source.format == BIO else ROWS
    files = sorted(
        path
        for path in source.path.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(source.path).parts)
        and path.suffix.lower() in suffixes
    )
    if not files:
        raise InputFileError(source.path, f"no file in it ends in one of {', '.join(ROWS)}")
    return files


def _passes_filters(row: Row, path: Path, source: SpanSource, default_language: str | None) -> bool:
    if source.language is not None:
        language = row.get("language") or default_language
        if not isinstance(language, str):
            raise RecordError("record: 'language' is missing")
        if _language_code(language) != _language_code(source.language):
            return False
    if source.split is None:
        return True
    split = row.get("split") or row.get("set")
    if isinstance(split, str):
        return split.casefold() == source.split.casefold()
    names = (re.split("[-_.]", path.stem)[0], path.parent.name)
    return source.split.casefold() in {name.casefold() for name in names}


def _language_code(language: str) -> str:
    name = language.strip().casefold()
    return _LANGUAGE_CODES.get(name, name.partition("-")[0])


def _ai4privacy(row: Row, reasons: list[str]) -> tuple[str, list[LabelledSpan]]:
    if row.get("privacy_mask") is not None or "span_labels" not in row:
        return _parse_offsets(row, reasons, text="source_text", spans="privacy_mask", value="value")
    triples = _parse_list(row, "span_labels")
    try:
        marks = [
            {"start": start, "end": end, "label": label}
            for start, end, label in triples
            if label != "O"
        ]
    except (TypeError, ValueError):
        raise RecordError("record: 'span_labels' must hold [start, end, label]") from None
    return _parse_offsets({**row, "spans": marks}, reasons, text="source_text")


def _gretel(row: Row, reasons: list[str]) -> tuple[str, list[LabelledSpan]]:
    if "entities" not in row:
        return _parse_offsets(row, reasons, text="generated_text", spans="pii_spans")
    text = get(row, "text", str)
    values = []
    for entity in _objects(row, "entities"):
        types = get(entity, "types", list, "entity")
        if not types:
            raise RecordError("entity: 'types' is empty")
        values.append((get(entity, "entity", str, "entity"), types[0]))
    return text, _locate(text, values, reasons)


def _spia(row: Row, reasons: list[str]) -> tuple[str, list[LabelledSpan]]:
    text = get(row, "text", str)
    facts = [
        (get(fact, "keyword", str, "PII"), get(fact, "tag", str, "PII"))
        for subject in _objects(row, "subjects")
        for fact in _objects(subject, "PIIs")
    ]
    # An empty keyword means that the subject has no such fact.
    return text, _locate(text, [fact for fact in facts if fact[0].strip()], reasons)


def _bio(row: Row, _: list[str]) -> tuple[str, list[LabelledSpan]]:
    tokens, tags = get(row, "tokens", list), get(row, "tags", list)
    if len(tokens) != len(tags) or not all(isinstance(cell, str) for cell in (*tokens, *tags)):
        raise RecordError("record: 'tokens' and 'tags' must be as many strings")
    spans: list[LabelledSpan] = []
    offset = 0
    open_label = None
    for token, tag in zip(tokens, tags, strict=True):
        match = _TAG.fullmatch(tag)
        if match is None and tag != "O":
            raise RecordError("a tag that is neither O nor B-, I-, E-, S-, L- or U- and a label")
        if match is not None and token:
            prefix, label = match.groups()
            start = offset
            if prefix in "IEL" and open_label == label:
                start = spans.pop()[0]
            spans.append((start, offset + len(token), label))
        open_label = None if match is None or match[1] in "ESLU" else match[2]
        offset += len(token) + 1
    return " ".join(tokens), spans


def _read_columns(path: Path, bad: BadLines) -> Iterator[tuple[int, Row]]:
    """Yield the sentences of a BIO file, each with its first line."""
    first_line, sentence = 1, list[list[str]]()
    with open_binary(path) as file:
        # The blank line at the end closes the last sentence.
        for number, raw in enumerate(chain(file, [b""]), start=1):
            line = decode(raw, path, number).rstrip("\r\n")
            cells = line.split("\t") if "\t" in line else line.split()
            if line.strip() and cells[0] != "-DOCSTART-":
                if not sentence:
                    first_line = number
                sentence.append(cells)
                continue
            if any(len(cells) < 2 for cells in sentence):
                bad.add(first_line, "a sentence with a line that has no token and tag")
            elif sentence:
                tokens, tags = [cells[0] for cells in sentence], [cells[-1] for cells in sentence]
                yield first_line, {"tokens": tokens, "tags": tags}
            sentence = []


def _parse_offsets(
    row: Row,
    reasons: list[str],
    *,
    text: str = "text",
    spans: str = "spans",
    value: str = "text",
    ends: tuple[str, str] = ("start", "end"),
    label: str = "label",
) -> tuple[str, list[LabelledSpan]]:
    """Parse a row whose spans are objects with offsets.

    The other arguments are the keys of the row and of a span, whose value may be missing.
    """
    whole = get(row, text, str)
    labelled: list[LabelledSpan] = []
    for span in _objects(row, spans):
        start, end = (get(span, key, int, "span") for key in ends)
        if not 0 <= start <= end <= len(whole):
            raise RecordError("offsets outside of the text")
        marked = whole[start:end]
        if span.get(value, marked) not in {marked, None}:
            raise RecordError("offsets that do not hold their value")
        if marked.strip():
            labelled.append((start, end, get(span, label, str, "span")))
        else:
            reasons.append("an empty value")
    return whole, labelled


def _locate(text: str, values: Iterable[tuple[str, str]], reasons: list[str]) -> list[LabelledSpan]:
    """Locate all occurrences of (value, label) pairs."""
    # Imported here because few commands need the locator.
    from pii_bench.scorer.locate import Strictness, locator_of

    labelled: list[LabelledSpan] = []
    for value, label in values:
        spans = locator_of(text).spans(value, Strictness.PLACED)
        if not spans:
            is_blank = not value.strip()
            reasons.append("an empty value" if is_blank else "a value that is not in the text")
        labelled += [(start, end, label) for start, end in spans]
    return labelled


def _objects(row: Row, key: str) -> list[Row]:
    return get_objects({key: _parse_list(row, key)}, key)


def _parse_list(row: Row, key: str) -> list[Any]:
    """Return a list, which may be a string in JSON or Python notation."""
    value = row.get(key)
    if not isinstance(value, str):
        return get(row, key, list)
    # NumPy writes lists of objects without commas.
    with_commas = _BETWEEN_OBJECTS.sub("}, {", value)
    for parse, text in ((json.loads, value), (_literal, value), (_literal, with_commas)):
        try:
            parsed = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(parsed, list):
            return parsed
    # Raised outside the handler, as a chained exception would contain the text.
    raise RecordError(f"record: {key!r} is a string that holds no list")


def _literal(text: str) -> object:
    with warnings.catch_warnings():
        # Warnings about unknown escapes would quote the line.
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)


SPAN_FORMATS: Final[Mapping[str, SpanFormat]] = {
    "ai4privacy": SpanFormat(_ai4privacy),
    "nemotron": SpanFormat(_parse_offsets, "en"),
    "gretel": SpanFormat(_gretel, "en"),
    "presidio-research": SpanFormat(
        partial(
            _parse_offsets,
            text="full_text",
            value="entity_value",
            ends=("start_position", "end_position"),
            label="entity_type",
        ),
        "en",
    ),
    "spia": SpanFormat(_spia, "en"),
    BIO: SpanFormat(_bio),
}
"""The formats by the prefix of `--dataset`. Except for BIO, each has a taxonomy of its name."""
