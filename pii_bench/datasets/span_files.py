"""Other people's datasets of texts with labelled spans, read row by row.

A row that does not fit its format is left out, counted by reason and named by its line. So is a
value that is empty or nowhere in the text, and only that value. Of a million rows no more is held
than is in use.

- AI4Privacy: `source_text` and `privacy_mask` (or `span_labels`), also as JSON or Python notation.
- Nemotron-PII: `text` and `spans`. Gretel: `generated_text` and `pii_spans`; or `text` and
  `entities` without offsets, which are looked for as words of their own.
- presidio-research: `full_text` and `spans`.
- SPIA: `text` and what can be inferred of its subjects; of that what the text says in these words.
- BIO: lines of columns, first the token and last the tag, a blank line after each sentence; or
  rows of `tokens` and `tags`. The tokens of a text are joined by spaces.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl

from pii_bench.datasets.foreign import SUBJECT
from pii_bench.datasets.rows import ROWS, read_rows
from pii_bench.datasets.sample import Entity, Sample, Subject
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import BadLines, RecordError, decode, get, get_objects, open_binary
from pii_bench.taxonomy import Meaning, any_taxonomy, name_in, taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Row: TypeAlias = dict[str, Any]
LabelledSpan: TypeAlias = tuple[int, int, str]
"""Start and end in code points, end exclusive, and the dataset's own label."""

Parse: TypeAlias = "Callable[[Row, list[str]], tuple[str, list[LabelledSpan]]]"
"""Gives text and spans of a row, adds why a value is left out, and raises RecordError."""

_LABEL: Final = re.compile(r"[A-Za-z][\w .&/'-]{0,60}")
_TAG: Final = re.compile(r"([BIESLU])-(.+)")
_DETAILS: Final = re.compile(r" \(.*|\[\d+\]")
_BETWEEN_OBJECTS: Final = re.compile(r"}\s*{")
_FIRST_PLACES: Final = 5
_LANGUAGES: Final = (
    *("en-english", "fr-french", "de-german", "it-italian", "es-spanish", "nl-dutch"),
    *("sv-swedish", "pt-portuguese", "hi-hindi", "te-telugu"),
)
_CODES: Final = {name: code for code, _, name in (each.partition("-") for each in _LANGUAGES)}

BIO: Final = "bio"
_COLUMNS: Final = frozenset({*ROWS, ".bio", ".conll", ".iob", ".iob2", ".tsv", ".txt"} - {".csv"})


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its spans, in order; `id` is the format's name and the number of the row."""

    id: str
    text: str
    spans: tuple[LabelledSpan, ...]


@dataclass(frozen=True, slots=True)
class SpanFormat:
    """How rows of a dataset are read; `language` is that of rows that do not say theirs."""

    labels: Callable[[], Mapping[str, Meaning]]
    parse: Parse
    language: str | None = None


@dataclass(frozen=True, slots=True)
class SpanSource:
    """What `format:PATH` names: `format:PATH#language=fr&split=test`.

    Attributes:
        format: a name of `SPAN_FORMATS`.
        path: a file, or a folder of files.
        language: only the rows of one, as a code or an English name.
        split: only the rows of one; where they do not say theirs, the files that are named
            after it or are in a folder of its name.
    """

    format: str
    path: Path
    language: str | None = None
    split: str | None = None

    @property
    def name(self) -> str:
        """Names results, with the filters."""
        parts = (self.format, self.path.stem, self.language, self.split)
        return "-".join(part for part in parts if part)


class Misfits(BadLines):
    """Counts what was left out, by reason, and remembers where it came first."""

    def __init__(self) -> None:
        self.path = Path()
        self._counts: Counter[str] = Counter()
        self._places: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, line: int, what: str) -> None:
        """Note what is left out; a line of 0 is none. Details in brackets are no reason."""
        reason = _DETAILS.sub("", what)
        self._counts[reason] += 1
        places, place = self._places[reason], f"{self.path.name}:{line}"
        if line and len(places) < _FIRST_PLACES and place not in places:
            places.append(place)

    def messages(self) -> tuple[str, ...]:
        """One for each reason, the most frequent first."""
        return tuple(
            f"{count} left out: {reason}" + (f" (first at {', '.join(places)})" if places else "")
            for reason, count in self._counts.most_common()
            for places in [self._places[reason]]
        )


def span_source(source: str) -> SpanSource | None:
    """What a dataset's name says; None where it names no format of spans.

    Raises:
        PiiBenchError: a filter is neither language nor split.
    """
    name, _, rest = source.partition(":")
    if name not in SPAN_FORMATS:
        return None
    path, _, given = rest.partition("#")
    filters = dict(parse_qsl(given))
    if (given and not filters) or not filters.keys() <= {"language", "split"}:
        raise PiiBenchError(f"{name}:{path}: behind '#' only language= and split= are allowed")
    return SpanSource(name, Path(path), **filters)


def read_documents(source: SpanSource, misfits: Misfits) -> Iterator[Document]:
    """Read a dataset one document at a time; `misfits` is told what does not fit.

    Raises:
        InputFileError: a file cannot be read, or no row fits.
        MissingExtraError: pyarrow is not installed.
    """
    kind = SPAN_FORMATS[source.format]
    labels = kind.labels()

    @cache
    def written(label: str) -> str:
        if not _LABEL.fullmatch(label):
            raise RecordError("a label that is no name")
        return name_in(labels, label) or label

    numbers, fitting = count(1), 0
    for path in _files(source):
        misfits.path = path
        rows = read_rows if path.suffix.lower() in ROWS else _columns
        for line, row in rows(path, misfits):
            number = next(numbers)
            left_out: list[str] = []
            try:
                if not _is_asked_for(row, path, source, kind):
                    continue
                text, spans = kind.parse(row, left_out)
                named = sorted({(start, end, written(label)) for start, end, label in spans})
            except RecordError as error:
                misfits.add(line, str(error))
                continue
            for reason in left_out:
                misfits.add(line, reason)
            fitting += 1
            yield Document(f"{source.format}-{number:06d}", text, tuple(named))
    if not fitting:
        asked = [
            f"{key} {value!r}" for key in ("language", "split") if (value := getattr(source, key))
        ]
        what = f"no row fits {source.format} {' '.join(asked)}".rstrip()
        raise InputFileError(source.path, "; ".join([what, *misfits.messages()]))


def read_samples(source: SpanSource, misfits: Misfits) -> Iterator[Sample]:
    """Read a dataset as samples without query, all entities those of one subject.

    A span whose label has no type of ours is left out and counted. Else as `read_documents`.
    """
    labels = SPAN_FORMATS[source.format].labels()
    for document in read_documents(source, misfits):
        entities: dict[tuple[str, str, str | None], list[tuple[int, int]]] = {}
        for start, end, label in joined(document, labels):
            meaning = labels.get(label)
            if meaning is None or meaning.type is None:
                misfits.add(0, f"a span, as label {label} has none of the seven types")
                continue
            key = document.text[start:end], meaning.type, meaning.category
            entities.setdefault(key, []).append((start, end))
        found = tuple(
            Entity(text, pii_type, category, tuple(spans))
            for (text, pii_type, category), spans in entities.items()
        )
        subjects = (Subject(SUBJECT, found),) if found else ()
        yield Sample(document.id, document.text, None, subjects, ())


def joined(document: Document, labels: Mapping[str, Meaning]) -> list[LabelledSpan]:
    """The spans, with neighbours that are different parts of one value made one.

    The whole has the label of its first part. Only white space is between parts.
    """
    spans: list[LabelledSpan] = []
    before: str | None = None
    for start, end, label in document.spans:
        part = labels[label].part if label in labels else None
        if (
            part is not None
            and before not in {None, label}
            and before in labels
            and labels[before].part == part
            and spans[-1][1] <= start
            and not document.text[spans[-1][1] : start].strip()
        ):
            spans[-1] = (spans[-1][0], end, spans[-1][2])
        else:
            spans.append((start, end, label))
        before = label
    return spans


def _files(source: SpanSource) -> list[Path]:
    if not source.path.is_dir():
        if source.path.suffix.lower() not in ROWS and source.format != BIO:
            raise InputFileError(source.path, f"must end in one of {', '.join(ROWS)}")
        return [source.path]
    found = sorted(
        path
        for path in source.path.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(source.path).parts)
        and path.suffix.lower() in (_COLUMNS if source.format == BIO else ROWS)
    )
    if not found:
        raise InputFileError(source.path, f"no file in it ends in one of {', '.join(ROWS)}")
    return found


def _is_asked_for(row: Row, path: Path, source: SpanSource, kind: SpanFormat) -> bool:
    if source.language is not None:
        language = row.get("language") or kind.language
        if not isinstance(language, str):
            raise RecordError("record: 'language' is missing")
        if _code(language) != _code(source.language):
            return False
    if source.split is None:
        return True
    split = row.get("split") or row.get("set")
    where = (
        {split} if isinstance(split, str) else {re.split("[-_.]", path.stem)[0], path.parent.name}
    )
    return source.split.casefold() in {each.casefold() for each in where}


def _code(language: str) -> str:
    name = language.strip().casefold()
    return _CODES.get(name, name.partition("-")[0])


def _ai4privacy(row: Row, left_out: list[str]) -> tuple[str, list[LabelledSpan]]:
    if row.get("privacy_mask") is not None or "span_labels" not in row:
        return _marked(row, left_out, text="source_text", spans="privacy_mask", value="value")
    triples = [each for each in _listed(row, "span_labels") if each[2:] != ["O"]]
    try:
        marks = [{"start": start, "end": end, "label": label} for start, end, label in triples]
    except ValueError:
        raise RecordError("record: 'span_labels' must hold [start, end, label]") from None
    return _marked({**row, "spans": marks}, left_out, text="source_text")


def _gretel(row: Row, left_out: list[str]) -> tuple[str, list[LabelledSpan]]:
    if "entities" not in row:
        return _marked(row, left_out, text="generated_text", spans="pii_spans")
    text = get(row, "text", str)
    values = []
    for each in _objects(row, "entities"):
        types = get(each, "types", list, "entity")
        if not types:
            raise RecordError("entity: 'types' is empty")
        values.append((get(each, "entity", str, "entity"), types[0]))
    return text, _placed(text, values, left_out)


def _spia(row: Row, left_out: list[str]) -> tuple[str, list[LabelledSpan]]:
    text = get(row, "text", str)
    facts = [
        (get(fact, "keyword", str, "PII"), get(fact, "tag", str, "PII"))
        for subject in _objects(row, "subjects")
        for fact in _objects(subject, "PIIs")
    ]
    # An empty keyword says that a subject has no such fact.
    return text, _placed(text, [fact for fact in facts if fact[0].strip()], left_out)


def _bio(row: Row, _: list[str]) -> tuple[str, list[LabelledSpan]]:
    tokens, tags = get(row, "tokens", list), get(row, "tags", list)
    if len(tokens) != len(tags) or not all(isinstance(each, str) for each in (*tokens, *tags)):
        raise RecordError("record: 'tokens' and 'tags' must be as many strings")
    spans: list[LabelledSpan] = []
    place, inside = 0, None
    for token, tag in zip(tokens, tags, strict=True):
        match = _TAG.fullmatch(tag)
        if match is None and tag != "O":
            raise RecordError("a tag that is neither O nor B-, I-, E-, S-, L- or U- and a label")
        if match is not None and token:
            kind, label = match.groups()
            goes_on = kind in "IEL" and inside == label
            start = spans.pop()[0] if goes_on else place
            spans.append((start, place + len(token), label))
        inside = None if match is None or match[1] in "ESLU" else match[2]
        place += len(token) + 1
    return " ".join(tokens), spans


def _columns(path: Path, bad: BadLines) -> Iterator[tuple[int, Row]]:
    """Sentences, each with the number of its first line."""
    first, sentence = 1, list[list[str]]()
    with open_binary(path) as file:
        for number, raw in enumerate(chain(file, [b""]), start=1):
            line = decode(raw, path, number).rstrip("\r\n")
            cells = line.split("\t") if "\t" in line else line.split()
            if line.strip() and cells[0] != "-DOCSTART-":
                first = first if sentence else number
                sentence.append(cells)
                continue
            if any(len(each) < 2 for each in sentence):
                bad.add(first, "a sentence with a line that has no token and tag")
            elif sentence:
                yield first, {"tokens": [c[0] for c in sentence], "tags": [c[-1] for c in sentence]}
            sentence = []


def _marked(
    row: Row,
    left_out: list[str],
    *,
    text: str = "text",
    spans: str = "spans",
    value: str = "text",
    ends: tuple[str, str] = ("start", "end"),
    label: str = "label",
) -> tuple[str, list[LabelledSpan]]:
    """Text and spans of a row whose spans are objects with offsets, by the keys of all these.

    A span need not have a `value`.
    """
    whole = get(row, text, str)
    found: list[LabelledSpan] = []
    for mark in _objects(row, spans):
        start, end = (get(mark, key, int, "span") for key in ends)
        if not 0 <= start <= end <= len(whole):
            raise RecordError("offsets outside of the text")
        marked = whole[start:end]
        if mark.get(value, marked) not in {marked, None}:
            raise RecordError("offsets that do not hold their value")
        if marked.strip():
            found.append((start, end, get(mark, label, str, "span")))
        else:
            left_out.append("an empty value")
    return whole, found


def _placed(
    text: str, values: Iterable[tuple[str, str]], left_out: list[str]
) -> list[LabelledSpan]:
    """Every place of (value, label) pairs."""
    # Every command imports this module, and few need the locator.
    from pii_bench.scorer.locate import Strictness, locator_of

    found: list[LabelledSpan] = []
    for value, label in values:
        spans = locator_of(text).spans(value, Strictness.PLACED)
        if not spans:
            left_out.append(
                "a value that is not in the text" if value.strip() else "an empty value"
            )
        found += [(start, end, label) for start, end in spans]
    return found


def _objects(row: Row, key: str) -> list[Row]:
    return get_objects({key: _listed(row, key)}, key)


def _listed(row: Row, key: str) -> list[Any]:
    """A list, or a string that holds one in JSON or in Python's notation."""
    value = row.get(key)
    if not isinstance(value, str):
        return get(row, key, list)
    for read in (json.loads, _literal, lambda text: _literal(_BETWEEN_OBJECTS.sub("}, {", text))):
        try:
            found = read(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, list):
            return found
    # Outside of the handler: what is chained holds the text.
    raise RecordError(f"record: {key!r} is a string that holds no list")


def _literal(text: str) -> object:
    with warnings.catch_warnings():
        # Of escapes that Python does not know, it would quote the line.
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)


SPAN_FORMATS: Final[Mapping[str, SpanFormat]] = MappingProxyType(
    {
        "ai4privacy": SpanFormat(partial(taxonomy, "ai4privacy"), _ai4privacy),
        "nemotron": SpanFormat(partial(taxonomy, "nemotron"), _marked, "en"),
        "gretel": SpanFormat(partial(taxonomy, "gretel"), _gretel, "en"),
        "presidio-research": SpanFormat(
            partial(taxonomy, "presidio-research"),
            partial(
                _marked,
                text="full_text",
                value="entity_value",
                ends=("start_position", "end_position"),
                label="entity_type",
            ),
            "en",
        ),
        "spia": SpanFormat(partial(taxonomy, "spia"), _spia, "en"),
        BIO: SpanFormat(any_taxonomy, _bio),
    }
)
"""The formats by the name that `--dataset` writes before the colon."""
