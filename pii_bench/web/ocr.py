"""Reads pictures of texts with tesseract, where it and the extra `ocr` are installed.

It runs in the process of one file (`uploads`), whose limits of memory hold for tesseract too.
Pictures go through a pipe: nothing is written to a disk.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdfium2 import PdfDocument

NEEDS: Final = ("PIL", "pypdfium2")
MOST_PIXELS: Final = 50_000_000
"""Of a picture that is sent."""

_READ_PIXELS: Final = 9_000_000
"""An A4 page at 300 dots an inch; what has more is made smaller."""

_DOTS: Final = 300
_POINTS: Final = 72


class OcrError(PiiBenchError):
    """A picture that could not be read; the message quotes nothing of it."""


def is_installed() -> bool:
    """Whether pictures can be read here."""
    return shutil.which("tesseract") is not None and all(map(find_spec, NEEDS))


class Ocr:
    """Reads pictures until its time is up.

    Args:
        seconds: of wall-clock time for all of them together.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        found = self._tesseract(b"", "--list-langs").decode().splitlines()[1:]
        languages = sorted({*found} - {"osd", "equ"}, key=lambda name: (name != "eng", name))
        if not languages:
            raise OcrError("tesseract has no language: install one, such as tesseract-ocr-eng")
        self._languages = "+".join(languages)

    def of_picture(self, data: bytes) -> str:
        """The text of a PNG or JPEG file.

        Raises:
            OcrError: too large, or reading took too long.
        """
        from PIL import Image, ImageOps

        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            if image.width * image.height > MOST_PIXELS:
                raise OcrError(
                    f"the picture has {image.width} x {image.height} pixels; at most "
                    f"{MOST_PIXELS} are read"
                )
            return self._read(ImageOps.exif_transpose(image))

    def of_page(self, document: PdfDocument, number: int) -> str:
        """The text of a page of a PDF; the first is 0.

        Raises:
            OcrError: reading took too long.
        """
        page = document[number]
        width, height = page.get_size()
        fit = (_READ_PIXELS / max(width * height, 1)) ** 0.5
        bitmap = page.render(scale=min(_DOTS / _POINTS, fit), grayscale=True)
        return self._read(bitmap.to_pil())

    def _read(self, image: Image) -> str:
        shrink = (_READ_PIXELS / (image.width * image.height)) ** 0.5
        image = image.convert("L")
        if shrink < 1:
            image.thumbnail((int(image.width * shrink), int(image.height * shrink)))
        out = io.BytesIO()
        image.save(out, "PPM")
        told = self._tesseract(out.getvalue(), "stdin", "stdout", "-l", self._languages)
        return told.decode("utf-8", "replace").replace("\f", "").strip()

    def _tesseract(self, given: bytes, *arguments: str) -> bytes:
        left = self._end - time.monotonic()
        try:
            done = subprocess.run(  # noqa: S603 -- the words are ours
                ("tesseract", *arguments),  # noqa: S607 -- where the server's PATH has it
                input=given,
                capture_output=True,
                timeout=max(left, 0.01),
                # More threads take more of the processor in all, and two files may be read.
                env={**os.environ, "OMP_THREAD_LIMIT": "1"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise OcrError("recognising the text took too long: send fewer pages") from None
        if done.returncode:
            raise OcrError(f"tesseract failed (exit code {done.returncode}); it tells no more")
        return done.stdout
