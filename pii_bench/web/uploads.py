"""The text of an uploaded file: PDF, DOCX, EML or TXT; where OCR is installed PNG and JPEG too.

A file is what somebody sent: it is read in a process of its own that has limits of memory and of
time, and that is killed when it takes longer.
"""

from __future__ import annotations

import io
import os
import resource
import signal
import warnings
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from email import policy
from email.parser import BytesParser
from html.parser import HTMLParser
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import PiiBenchError
from pii_bench.web import ocr

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from email.message import MIMEPart
    from multiprocessing.connection import Connection

    from pypdf import PageObject

MEGABYTE: Final = 1_000_000

# Bytes of drawing: a frame or a rule takes fewer.
_LINES_OF_A_BLANK_PAGE: Final = 2000


class UploadError(PiiBenchError):
    """A file whose text cannot be had; the message says why, and quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading one file may take.

    Attributes:
        seconds: of wall-clock time, and of the processor's.
        memory: bytes of address space beyond what the process begins with.
        pages: of a PDF.
        characters: of the text.
        unpacked: bytes of all that a DOCX holds.
        scans: pages of a PDF, and pictures, that are read by OCR.
        scan_seconds: of wall-clock time for these, besides `seconds`.
    """

    seconds: int = 20
    memory: int = 600 * MEGABYTE
    pages: int = 200
    characters: int = 50_000
    unpacked: int = 100 * MEGABYTE
    scans: int = 20
    scan_seconds: int = 60


@dataclass(frozen=True, slots=True)
class Upload:
    """The text of a file, and notes on what of the file was not read."""

    text: str
    notes: tuple[str, ...] = ()


def read_upload(ending: str, data: bytes, limits: Limits) -> Upload:
    """The text of a file; blocks until its process has ended.

    Args:
        ending: of the file's name, with the dot. The name itself may say who it is about.
        data: its bytes.
        limits: what reading may take.

    Raises:
        UploadError: another ending, no text, a scan, broken, or more than the limits allow.
    """
    ending = ending.lower()
    if ending not in _READERS:
        allowed = ", ".join(endings())
        raise UploadError(f"this kind of file cannot be read; allowed: {allowed}")
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, ending, data, limits), daemon=True)
    try:
        process.start()
        theirs.close()
        answer = _receive(ours, limits)
    finally:
        if process.pid is not None:
            # With tesseract, which its process may have begun; else it has no group yet.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join()
        process.close()
        ours.close()
    if isinstance(answer, UploadError):
        raise answer
    return answer


def _receive(connection: Connection, limits: Limits) -> Upload | UploadError:
    # Starting Python takes time too.
    seconds = limits.seconds + (limits.scan_seconds if ocr.is_installed() else 0)
    if not connection.poll(seconds + 10):
        return UploadError(f"reading the file took longer than {seconds} s")
    try:
        answer: Upload | str = connection.recv()
    except EOFError:
        return UploadError("reading the file took more time or memory than a file may")
    return UploadError(answer) if isinstance(answer, str) else answer


def _work(answers: Connection, ending: str, data: bytes, limits: Limits) -> None:
    """In the process of one file."""
    warnings.simplefilter("ignore")
    os.setpgid(0, 0)
    _restrict(limits)
    try:
        answers.send(_upload(ending, data, limits))
    except (UploadError, ocr.OcrError) as error:
        answers.send(str(error))
    except (MemoryError, RecursionError):
        answers.send("reading the file took more memory than a file may")
    except Exception as error:  # noqa: BLE001 -- the parsers document none of what they raise
        what = type(error).__name__
        answers.send(f"the file is broken, or is no {ending} file ({what})")


def _restrict(limits: Limits) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 -- no path of a user
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + limits.memory,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds,) * 2)
    # It writes nothing.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _upload(ending: str, data: bytes, limits: Limits) -> Upload:
    read = _READERS[ending](data, limits)
    text = read.text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()
    if not text:
        raise UploadError("there is no text in the file")
    if len(text) > limits.characters:
        raise UploadError(
            f"the file has {len(text)} characters; at most {limits.characters} are read"
        )
    return Upload(text, read.notes)


def _read_txt(data: bytes, _: Limits) -> Upload:
    for encoding in ("utf-8-sig", "utf-16") if data[:2] in _UTF16_MARKS else ("utf-8-sig",):
        try:
            return Upload(data.decode(encoding))
        except UnicodeDecodeError:
            continue
    raise UploadError("the text is not UTF-8: save it as such")


_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def _read_pdf(data: bytes, limits: Limits) -> Upload:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise UploadError("the PDF is protected by a password")
    count = len(reader.pages)
    if count > limits.pages:
        raise UploadError(f"the PDF has {count} pages; at most {limits.pages} are read")
    texts: list[str] = []
    scanned: list[int] = []
    length = 0
    for number, page in enumerate(reader.pages, start=1):
        text = page.extract_text().strip()
        if not text and _shows_something(page):
            scanned.append(number)
        length += len(text)
        if length > limits.characters:
            raise UploadError(
                f"the PDF has more than {limits.characters} characters, by page {number}"
            )
        texts.append(text)
    notes = _recognise(data, texts, scanned, limits) if scanned else ()
    return Upload("\n\n".join(texts), notes)


def _recognise(
    data: bytes, texts: list[str], scanned: list[int], limits: Limits
) -> tuple[str, ...]:
    """Fill in the texts of scanned pages, numbers from 1; a note about them.

    Raises:
        UploadError: OCR is not installed, or there are too many.
    """
    shown = ", ".join(map(str, scanned[:10])) + (" ..." if len(scanned) > 10 else "")
    if not ocr.is_installed():
        raise UploadError(
            f"page {shown} of {len(texts)} is a picture without text, such as a scan: what stands "
            "in it would stay unmasked. Have its text recognised (OCR) first"
        )
    if len(scanned) > limits.scans:
        raise UploadError(
            f"{len(scanned)} pages are pictures, such as scans; of at most {limits.scans} the text "
            "is recognised"
        )
    from pypdfium2 import PdfDocument

    reader = ocr.Ocr(limits.scan_seconds)
    document = PdfDocument(data)
    for number in scanned:
        texts[number - 1] = reader.of_page(document, number - 1)
    return (f"Read by OCR, page {shown}: compare it with the original.",)


def _read_picture(data: bytes, limits: Limits) -> Upload:
    if not ocr.is_installed():
        raise UploadError("a picture is read by OCR, which this server does not have")
    text = ocr.Ocr(limits.scan_seconds).of_picture(data)
    return Upload(text, ("Read by OCR: compare it with the original.",))


def _shows_something(page: PageObject) -> bool:
    """Whether a page without text has a picture, or so many lines that they may be letters."""
    contents = page.get_contents()
    drawn = len(contents.get_data()) if contents is not None else 0
    return "/XObject" in (page.get("/Resources") or {}) or drawn > _LINES_OF_A_BLANK_PAGE


def _read_docx(data: bytes, limits: Limits) -> Upload:
    from docx import Document

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(each.file_size for each in archive.infolist())
    if size > limits.unpacked:
        raise UploadError(
            f"unpacked the DOCX has {size // MEGABYTE} MB; at most "
            f"{limits.unpacked // MEGABYTE} are read"
        )
    document = Document(io.BytesIO(data))
    parts = [*_blocks(document)]
    for section in document.sections:
        for around in (section.header, section.footer):
            if not around.is_linked_to_previous:
                parts += _blocks(around)
    return Upload("\n".join(parts))


def _blocks(container: Any) -> list[str]:
    """The paragraphs, and the tables row by row, as they follow each other."""
    lines: list[str] = []
    for block in container.iter_inner_content():
        if hasattr(block, "rows"):
            for row in block.rows:
                cells = dict.fromkeys(row.cells)  # a merged cell comes once for each it covers
                lines.append("\t".join(" ".join(_blocks(cell)) for cell in cells))
        else:
            lines.append(block.text)
    return lines


def _read_eml(data: bytes, _: Limits) -> Upload:
    message = BytesParser(policy=policy.default).parsebytes(data)
    names = ("From", "To", "Cc", "Date", "Subject")
    heads = [f"{name}: {message[name]}" for name in names if message[name]]
    body = message.get_body(("plain", "html"))
    if not heads:
        raise UploadError("the file is no e-mail: it names no sender, receiver, date or subject")
    attached = sum(1 for _ in message.iter_attachments()) if message.is_multipart() else 0
    notes = (f"{attached} attached files were not read.",) if attached else ()
    return Upload("\n".join([*heads, "", _body_text(body) if body is not None else ""]), notes)


def _body_text(body: MIMEPart) -> str:
    content: str = body.get_content()
    if body.get_content_subtype() != "html":
        return content
    parser = _Paragraphs()
    parser.feed(content)
    parser.close()
    return "".join(parser.parts)


class _Paragraphs(HTMLParser):
    """The text of HTML, with a line for each block."""

    _HIDDEN: Final = frozenset({"script", "style", "head", "title"})
    _BLOCKS: Final = frozenset({"p", "br", "div", "tr", "li", "h1", "h2", "h3", "table"})

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line, or something that is not shown."""
        del attrs
        self._hidden += tag in self._HIDDEN
        if tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End what is not shown."""
        if tag in self._HIDDEN and self._hidden:
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        """Keep what is shown."""
        if not self._hidden:
            self.parts.append(data)


_READERS: Final[Mapping[str, Callable[[bytes, Limits], Upload]]] = {
    ".txt": _read_txt,
    ".pdf": _read_pdf,
    ".docx": _read_docx,
    ".eml": _read_eml,
    ".png": _read_picture,
    ".jpg": _read_picture,
    ".jpeg": _read_picture,
}


def endings() -> list[str]:
    """Of files that can be read here."""
    return [
        each for each, read in _READERS.items() if read is not _read_picture or ocr.is_installed()
    ]
