"""Read the text of an uploaded file: PDF, DOCX, EML or TXT; with OCR also PNG and JPEG.

A file is untrusted, so it is read in a separate process with limits of memory and time, which
also hold for tesseract. Pictures go to tesseract through a pipe: nothing is written to disk.
"""

from __future__ import annotations

import io
import os
import resource
import shutil
import signal
import subprocess
import time
import warnings
import zipfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from contextlib import suppress
from dataclasses import dataclass
from email import policy
from email.parser import BytesParser
from html.parser import HTMLParser
from importlib.util import find_spec
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import PiiBenchError
from pii_bench.web.settings import MOST_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from email.message import MIMEPart
    from multiprocessing.connection import Connection

    from PIL.Image import Image
    from pypdf import PageObject
    from pypdfium2 import PdfDocument

MEGABYTE: Final = 1_000_000

# Bytes of a page's drawing commands; a frame or a rule takes fewer.
_MOST_BLANK_BYTES: Final = 2000

_MOST_PAGES: Final = 200
_MOST_UNPACKED: Final = 100 * MEGABYTE
"""Size limit of an unpacked DOCX, in bytes."""

MOST_PIXELS: Final = 50_000_000
"""Size limit of an uploaded picture."""

_READ_PIXELS: Final = 9_000_000
"""An A4 page at 300 dots an inch; larger pictures are made smaller."""


class UploadError(PiiBenchError):
    """A file that cannot be read; the message never quotes the file."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the process that reads one file.

    Attributes:
        seconds: wall-clock time, and processor time.
        memory: bytes of address space beyond those of the process at its start.
        scans: pages of a PDF that are read by OCR.
        scan_seconds: wall-clock time for OCR, besides `seconds`.
    """

    seconds: int = 20
    memory: int = 600 * MEGABYTE
    scans: int = 20
    scan_seconds: int = 60


@dataclass(frozen=True, slots=True)
class Upload:
    """The text of a file, and notes on how it was read or what was not read."""

    text: str
    notes: tuple[str, ...] = ()


def read_upload(ending: str, data: bytes, limits: Limits) -> Upload:
    """Return the text of a file; blocks until its process has ended.

    It takes only the ending of the file's name, with the dot: the name may identify a person.

    Raises:
        UploadError: the ending is unknown, the file has no text or is broken, OCR is needed and
            not installed, or a limit is exceeded.
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
        return _receive(ours, limits)
    finally:
        if process.pid is not None:
            # The group has tesseract too; it does not exist if the process has just started.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join()
        process.close()
        ours.close()


def _receive(connection: Connection, limits: Limits) -> Upload:
    seconds = limits.seconds + (limits.scan_seconds if has_ocr() else 0)
    # 10 s more, because starting Python takes time.
    if not connection.poll(seconds + 10):
        raise UploadError(f"reading the file took longer than {seconds} s")
    try:
        answer: Upload | str = connection.recv()
    except EOFError:
        raise UploadError("reading the file took more time or memory than a file may") from None
    if isinstance(answer, str):
        raise UploadError(answer)
    return answer


def _work(answers: Connection, ending: str, data: bytes, limits: Limits) -> None:
    """Read a file and send its text or an error; runs in a separate process."""
    warnings.simplefilter("ignore")
    os.setpgid(0, 0)
    _restrict(limits)
    try:
        answers.send(_upload(ending, data, limits))
    except UploadError as error:
        answers.send(str(error))
    except (MemoryError, RecursionError):
        answers.send("reading the file took more memory than a file may")
    except Exception as error:  # noqa: BLE001 -- the parsers do not document what they raise
        answers.send(f"the file is broken, or is no {ending} file ({type(error).__name__})")


def _restrict(limits: Limits) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 -- no path of a user
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + limits.memory,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds,) * 2)
    # Writing files is not allowed.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _upload(ending: str, data: bytes, limits: Limits) -> Upload:
    upload = _READERS[ending](data, limits)
    text = upload.text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()
    if not text:
        raise UploadError("there is no text in the file")
    if len(text) > MOST_CHARACTERS:
        raise UploadError(
            f"the file has {len(text)} characters; at most {MOST_CHARACTERS} are read"
        )
    return Upload(text, upload.notes)


def _read_txt(data: bytes, _: Limits) -> Upload:
    encoding = "utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return Upload(data.decode(encoding))
    except UnicodeDecodeError:
        raise UploadError("the text is not UTF-8: save it as such") from None


def _read_pdf(data: bytes, limits: Limits) -> Upload:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise UploadError("the PDF is protected by a password")
    count = len(reader.pages)
    if count > _MOST_PAGES:
        raise UploadError(f"the PDF has {count} pages; at most {_MOST_PAGES} are read")
    texts: list[str] = []
    scanned: list[int] = []
    length = 0
    for number, page in enumerate(reader.pages, start=1):
        text = page.extract_text().strip()
        if not text and _shows_something(page):
            scanned.append(number)
        length += len(text)
        if length > MOST_CHARACTERS:
            raise UploadError(
                f"the PDF has more than {MOST_CHARACTERS} characters, by page {number}"
            )
        texts.append(text)
    notes = _recognise(data, texts, scanned, limits) if scanned else ()
    return Upload("\n\n".join(texts), notes)


def _recognise(
    data: bytes, texts: list[str], scanned: list[int], limits: Limits
) -> tuple[str, ...]:
    """Fill in the texts of scanned pages (numbered from 1) and return a note about them."""
    shown = ", ".join(map(str, scanned[:10])) + (" ..." if len(scanned) > 10 else "")
    if not has_ocr():
        raise UploadError(
            f"page {shown} of {len(texts)} is a picture without text, such as a scan: its content "
            "would stay unmasked. Have its text recognised (OCR) first"
        )
    if len(scanned) > limits.scans:
        raise UploadError(
            f"{len(scanned)} pages are pictures, such as scans; the text of at most {limits.scans} "
            "is recognised"
        )
    from pypdfium2 import PdfDocument

    reader = _Ocr(limits.scan_seconds)
    document = PdfDocument(data)
    for number in scanned:
        texts[number - 1] = reader.of_page(document, number - 1)
    return (f"Read by OCR, page {shown}: compare it with the original.",)


def _read_picture(data: bytes, limits: Limits) -> Upload:
    if not has_ocr():
        raise UploadError("a picture is read by OCR, which this server does not have")
    text = _Ocr(limits.scan_seconds).of_picture(data)
    return Upload(text, ("Read by OCR: compare it with the original.",))


class _Ocr:
    """Reads pictures with tesseract, in all its languages, all within some seconds."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        installed = self._tesseract(b"", "--list-langs").decode().splitlines()[1:]
        languages = sorted({*installed} - {"osd", "equ"}, key=lambda name: (name != "eng", name))
        if not languages:
            raise UploadError("tesseract has no language: install one, such as tesseract-ocr-eng")
        self._languages = "+".join(languages)

    def of_picture(self, data: bytes) -> str:
        """Return the text of a PNG or JPEG file."""
        from PIL import Image, ImageOps

        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            if image.width * image.height > MOST_PIXELS:
                raise UploadError(
                    f"the picture has {image.width} x {image.height} pixels; at most "
                    f"{MOST_PIXELS} are read"
                )
            return self._read(ImageOps.exif_transpose(image))

    def of_page(self, document: PdfDocument, number: int) -> str:
        """Return the text of a page of a PDF; the first page is 0."""
        page = document[number]
        width, height = page.get_size()
        fit = (_READ_PIXELS / max(width * height, 1)) ** 0.5
        # At most 300 dots an inch, which has 72 points.
        bitmap = page.render(scale=min(300 / 72, fit), grayscale=True)
        return self._read(bitmap.to_pil())

    def _read(self, image: Image) -> str:
        shrink = (_READ_PIXELS / (image.width * image.height)) ** 0.5
        image = image.convert("L")
        if shrink < 1:
            image.thumbnail((int(image.width * shrink), int(image.height * shrink)))
        out = io.BytesIO()
        image.save(out, "PPM")
        text = self._tesseract(out.getvalue(), "stdin", "stdout", "-l", self._languages)
        return text.decode("utf-8", "replace").replace("\f", "").strip()

    def _tesseract(self, data: bytes, *arguments: str) -> bytes:
        left = self._end - time.monotonic()
        try:
            done = subprocess.run(  # noqa: S603 -- the arguments are ours
                ("tesseract", *arguments),  # noqa: S607 -- found on the server's PATH
                input=data,
                capture_output=True,
                timeout=max(left, 0.01),
                # Threads cost more processor time in all, and two files may be read at once.
                env={**os.environ, "OMP_THREAD_LIMIT": "1"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UploadError("recognising the text took too long: send fewer pages") from None
        if done.returncode:
            raise UploadError(f"tesseract failed (exit code {done.returncode})")
        return done.stdout


def _shows_something(page: PageObject) -> bool:
    """Return True if a page without text has a picture, or so many lines that they may be text."""
    contents = page.get_contents()
    drawn = len(contents.get_data()) if contents is not None else 0
    return "/XObject" in (page.get("/Resources") or {}) or drawn > _MOST_BLANK_BYTES


def _read_docx(data: bytes, _: Limits) -> Upload:
    from docx import Document

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > _MOST_UNPACKED:
        raise UploadError(
            f"unpacked the DOCX has {size // MEGABYTE} MB; at most "
            f"{_MOST_UNPACKED // MEGABYTE} are read"
        )
    document = Document(io.BytesIO(data))
    lines = _lines(document)
    for section in document.sections:
        for part in (section.header, section.footer):
            if not part.is_linked_to_previous:
                lines += _lines(part)
    return Upload("\n".join(lines))


def _lines(container: Any) -> list[str]:
    """Return the paragraphs and the rows of tables in order."""
    lines: list[str] = []
    for block in container.iter_inner_content():
        if hasattr(block, "rows"):
            for row in block.rows:
                cells = dict.fromkeys(row.cells)  # a merged cell is listed several times
                lines.append("\t".join(" ".join(_lines(cell)) for cell in cells))
        else:
            lines.append(block.text)
    return lines


def _read_eml(data: bytes, _: Limits) -> Upload:
    message = BytesParser(policy=policy.default).parsebytes(data)
    names = ("From", "To", "Cc", "Date", "Subject")
    headers = [f"{name}: {message[name]}" for name in names if message[name]]
    body = message.get_body(("plain", "html"))
    if not headers:
        raise UploadError("the file is no e-mail: it names no sender, receiver, date or subject")
    attached = sum(1 for _ in message.iter_attachments()) if message.is_multipart() else 0
    notes = (f"{attached} attached files were not read.",) if attached else ()
    return Upload("\n".join([*headers, "", _body_text(body) if body is not None else ""]), notes)


def _body_text(body: MIMEPart) -> str:
    content: str = body.get_content()
    if body.get_content_subtype() != "html":
        return content
    parser = _Paragraphs()
    parser.feed(content)
    parser.close()
    return "".join(parser.parts)


class _Paragraphs(HTMLParser):
    """A parser that collects the text of HTML, with a line for each block."""

    _HIDDEN: Final = frozenset({"script", "style", "head", "title"})
    _BLOCKS: Final = frozenset({"p", "br", "div", "tr", "li", "h1", "h2", "h3", "table"})

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start a new line or a hidden element."""
        del attrs
        self._hidden += tag in self._HIDDEN
        if tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End a hidden element."""
        if tag in self._HIDDEN and self._hidden:
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        """Collect visible text."""
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


def has_ocr() -> bool:
    """Return True if tesseract and the extra `ocr` are installed."""
    return shutil.which("tesseract") is not None and all(map(find_spec, ("PIL", "pypdfium2")))


def endings() -> list[str]:
    """Return the endings of files that can be read on this machine."""
    return [ending for ending, read in _READERS.items() if read is not _read_picture or has_ocr()]
