"""Scans and pictures: read where tesseract is installed, refused with the reason elsewhere."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING

import pytest

from pii_bench.web import ocr
from pii_bench.web.uploads import Limits, UploadError, endings, read_upload
from tests.web.letters import pdf, shown

if TYPE_CHECKING:
    from PIL.Image import Image

LETTER = "Ann Lee lives in Leeds."
PICTURE = b"/XObject << /Im1 3 0 R >>"
needs_ocr = pytest.mark.skipif(
    not ocr.is_installed(), reason="tesseract or the extra `ocr` is not installed"
)


def scan(*lines: str, side: int = 0) -> Image:
    """A picture of lines, or a white one with this side."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (side or 1240, side or 400), "white")
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((80, 80 + 70 * number), line, "black", ImageFont.load_default(42))
    return image


def saved(image: Image, kind: str, *more: Image) -> bytes:
    out = io.BytesIO()
    several = {"save_all": True, "append_images": more} if more else {}
    image.save(out, kind, resolution=150, **several)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (pdf(shown(LETTER), b"/Im1 Do", resources=PICTURE), "page 2 of 2 is a picture"),
        (pdf(b"0 0 m 9 9 l S\n" * 300), "page 1 of 1 is a picture"),
    ],
)
def test_without_tesseract_a_scan_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, data: bytes, what: str
) -> None:
    # The process that reads the file looks for tesseract in this variable too.
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(UploadError, match=what):
        read_upload(".pdf", data, Limits())
    assert endings() == [".txt", ".pdf", ".docx", ".eml"]


@needs_ocr
@pytest.mark.parametrize(("ending", "kind"), [(".png", "PNG"), (".JPG", "JPEG"), (".jpeg", "JPEG")])
def test_the_text_of_a_picture_is_read(ending: str, kind: str) -> None:
    upload = read_upload(ending, saved(scan(LETTER, "She pays 90 dollars."), kind), Limits())

    assert upload.text.splitlines() == [LETTER, "She pays 90 dollars."]
    assert upload.notes == ("Read by OCR: compare it with the original.",)


@needs_ocr
def test_scanned_pages_of_a_pdf_are_read_and_named() -> None:
    data = saved(scan(LETTER), "PDF", scan("Page two is of Bonn."))

    upload = read_upload(".pdf", data, Limits())

    assert upload.text == f"{LETTER}\n\nPage two is of Bonn."
    assert upload.notes == ("Read by OCR, page 1, 2: compare it with the original.",)


@needs_ocr
def test_a_scan_on_which_nothing_is_written_has_no_text() -> None:
    with pytest.raises(UploadError, match="there is no text"):
        read_upload(".png", saved(scan(), "PNG"), Limits())


@needs_ocr
def test_scans_are_bounded_in_pages_pixels_time_and_memory() -> None:
    two = saved(scan(LETTER), "PDF", scan(LETTER))
    with pytest.raises(UploadError, match=r"2 pages are pictures, .* at most 1"):
        read_upload(".pdf", two, Limits(scans=1))

    # 0.2 MB that would be 192 MB of pixels.
    with pytest.raises(UploadError, match="8000 x 8000 pixels; at most 50000000"):
        read_upload(".png", saved(scan(side=8000), "PNG"), Limits())

    full = saved(scan(*[LETTER * 2] * 40, side=3000), "PNG")
    begun = time.monotonic()
    with pytest.raises(UploadError, match="took too long"):
        read_upload(".png", full, Limits(scan_seconds=1))
    # Not a timing: a second of work, ten to start, and the machine may be busy.
    assert time.monotonic() - begun < 60

    with pytest.raises(UploadError, match=r"took more|tesseract failed|broken"):
        read_upload(".png", full, Limits(memory=40_000_000))
