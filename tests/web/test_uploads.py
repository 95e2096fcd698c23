"""Reading of uploaded files, also of malicious ones."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING

import pytest

from pii_bench.web.uploads import Limits, UploadError, endings, has_ocr, read_upload
from tests.web.letters import LETTER, docx, docx_with, eml, pdf, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

HEAD = """\
From: Ann Lee <a.lee@mail.example.org>
To: clinic@mail.example.org
Subject: Über mich"""
WRITTEN = "Ann Lee lives in Leeds."


@pytest.mark.parametrize(
    ("ending", "data", "text"),
    [
        (".txt", LETTER.encode(), LETTER),
        (".TXT", b"\xef\xbb\xbf" + LETTER.encode() + b"\r\nBye\r\n", f"{LETTER}\nBye"),
        (".txt", LETTER.encode("utf-16"), LETTER),
        (".pdf", pdf(shown(LETTER), shown("Page two")), f"{LETTER}\n\nPage two"),
        (".pdf", pdf(shown(LETTER), b"q Q"), LETTER),
        (".docx", docx(), f"{LETTER}\nPhone\t+44 113 496 0123\nClinic of Leeds"),
        (".eml", eml(), f"{HEAD}\n\n{LETTER}"),
    ],
)
def test_the_text_of_a_letter_is_read(ending: str, data: bytes, text: str) -> None:
    upload = read_upload(ending, data, Limits())

    assert (upload.text, upload.notes) == (text, ())


def test_only_the_visible_text_of_html_is_read() -> None:
    text = read_upload(".eml", eml(html=True), Limits()).text

    assert text.split("Subject: ")[1].split() == ["Über", "mich", "Hello,", *LETTER.split()]


def test_attachments_are_reported_as_not_read() -> None:
    upload = read_upload(".eml", eml(attached=True), Limits())

    assert upload.notes == ("1 attached files were not read.",)
    assert "secret" not in upload.text


@pytest.mark.parametrize(
    ("ending", "data", "what"),
    [
        (".pdf", pdf(b""), "there is no text"),
        (".pdf", b"%PDF-1.4 nothing", "is broken, or is no .pdf file"),
        (".docx", b"PK\3\4 nothing", "is broken, or is no .docx file"),
        (".docx", pdf(shown(LETTER)), "is broken, or is no .docx file"),
        (".txt", b"\xff\x00\x81 secret", "not UTF-8"),
        (".txt", b" \n ", "there is no text"),
        (".eml", b"just a line", "is no e-mail"),
        (".exe", b"MZ", "cannot be read; allowed: .txt, .pdf, .docx, .eml"),
        (".png", b"\x89PNG nothing", "which this server does not have|is no .png file"),
        ("", b"x", "cannot be read"),
        ("../../x", b"x", "cannot be read"),
    ],
)
def test_a_file_without_readable_text_is_refused_with_the_reason(
    ending: str, data: bytes, what: str
) -> None:
    with pytest.raises(UploadError, match=what) as caught:
        read_upload(ending, data, Limits())

    assert "secret" not in str(caught.value)


def billion_laughs() -> bytes:
    """Return XML with entities that expand to gigabytes."""
    lines = ['<!ENTITY a0 "ha">']
    lines += [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 11)]
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return (
        f"<!DOCTYPE d [{''.join(lines)}]><w:document xmlns:w='{space}'><w:body><w:p><w:r>"
        "<w:t>&a10;</w:t></w:r></w:p></w:body></w:document>"
    ).encode()


def deep() -> bytes:
    """Return a PDF with deeply nested arrays."""
    nested = b"[" * 100_000 + b"]" * 100_000
    return pdf(shown(LETTER)).replace(b"/Count 1", b"/Count 1 /X " + nested)


@pytest.mark.parametrize(
    ("ending", "make"),
    [
        pytest.param(".docx", lambda: docx_with(b"<a>" + b" " * 120_000_000 + b"</a>"), id="zip"),
        pytest.param(".docx", lambda: docx_with(billion_laughs()), id="entities"),
        pytest.param(".pdf", lambda: pdf(*[shown("x")] * 500), id="pages"),
        pytest.param(".pdf", lambda: pdf(b" " * 150_000_000, flate=True), id="flate"),
        pytest.param(".pdf", deep, id="deep"),
        pytest.param(".txt", lambda: b"x" * 10_000_000, id="long"),
    ],
)
def test_a_malicious_file_exceeds_no_limit(ending: str, make: Callable[[], bytes]) -> None:
    data = make()
    assert len(data) <= 10_000_000
    begun = time.monotonic()

    with pytest.raises(UploadError):
        read_upload(ending, data, Limits(seconds=2))

    # Not a timing: two seconds of work, ten to start, and the machine may be busy.
    assert time.monotonic() - begun < 60


def test_reading_that_takes_too_long_is_stopped() -> None:
    drawing = pdf(b"BT /F1 9 Tf (x) Tj ET\n" * 2_000_000, flate=True)

    with pytest.raises(UploadError, match="took"):
        read_upload(".pdf", drawing, Limits(seconds=1, memory=10**10))


# Scans and pictures: read where tesseract is installed, refused with the reason elsewhere.

needs_ocr = pytest.mark.skipif(
    not has_ocr(), reason="tesseract or the extra `ocr` is not installed"
)


def scan(*lines: str, side: int = 0) -> Image:
    """Return a picture of lines of text, or a white square with this side."""
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
        (pdf(shown(WRITTEN), b"/Im1 Do", picture=True), "page 2 of 2 is a picture"),
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
    upload = read_upload(ending, saved(scan(WRITTEN, "She pays 90 dollars."), kind), Limits())

    assert upload.text.splitlines() == [WRITTEN, "She pays 90 dollars."]
    assert upload.notes == ("Read by OCR: compare it with the original.",)


@needs_ocr
def test_scanned_pages_of_a_pdf_are_read_and_named() -> None:
    data = saved(scan(WRITTEN), "PDF", scan("Page two is of Bonn."))

    upload = read_upload(".pdf", data, Limits())

    assert upload.text == f"{WRITTEN}\n\nPage two is of Bonn."
    assert upload.notes == ("Read by OCR, page 1, 2: compare it with the original.",)


@needs_ocr
def test_an_empty_scan_has_no_text() -> None:
    with pytest.raises(UploadError, match="there is no text"):
        read_upload(".png", saved(scan(), "PNG"), Limits())


@needs_ocr
def test_scans_have_limits_of_pages_pixels_time_and_memory() -> None:
    two = saved(scan(WRITTEN), "PDF", scan(WRITTEN))
    with pytest.raises(UploadError, match=r"2 pages are pictures, .* at most 1"):
        read_upload(".pdf", two, Limits(scans=1))

    # 0.2 MB that would be 192 MB of pixels.
    with pytest.raises(UploadError, match="8000 x 8000 pixels; at most 50000000"):
        read_upload(".png", saved(scan(side=8000), "PNG"), Limits())

    full = saved(scan(*[WRITTEN * 2] * 40, side=3000), "PNG")
    begun = time.monotonic()
    with pytest.raises(UploadError, match="took too long"):
        read_upload(".png", full, Limits(scan_seconds=1))
    # Not a timing: a second of work, ten to start, and the machine may be busy.
    assert time.monotonic() - begun < 60

    with pytest.raises(UploadError, match=r"took more|tesseract failed|broken"):
        read_upload(".png", full, Limits(memory=40_000_000))
