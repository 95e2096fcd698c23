"""Builders of letters as PDF, DOCX and EML files."""

from __future__ import annotations

import io
import zipfile
import zlib
from email.message import EmailMessage

from docx import Document

LETTER = "I am Ann Lee of Leeds."


def pdf(*contents: bytes, resources: bytes = b"", flate: bool = False) -> bytes:
    """Return a PDF with a page for each content stream."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(contents)))
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(contents)),
        font,
    ]
    for number, content in enumerate(contents):
        own = b"<< /Font << /F1 3 0 R >> %s >>" % resources
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources %s "
            b"/Contents %d 0 R >>" % (own, 5 + 2 * number)
        )
        data = zlib.compress(content, 9) if flate else content
        how = b" /Filter /FlateDecode" if flate else b""
        objects.append(b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(data), how, data))
    return _assembled(objects)


def _assembled(objects: list[bytes]) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, each in enumerate(objects, start=1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, each))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for offset in offsets:
        out.write(b"%010d 00000 n \n" % offset)
    out.write(
        b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    )
    return out.getvalue()


def shown(text: str) -> bytes:
    """Return the content stream of a page with one line."""
    return b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % text.encode("latin-1")


def docx() -> bytes:
    """Return a letter with a header, a paragraph and a table."""
    document = Document()
    document.sections[0].header.paragraphs[0].text = "Clinic of Leeds"
    document.add_paragraph(LETTER)
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text = "Phone"
    table.cell(0, 1).text = "+44 113 496 0123"
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def docx_with(xml: bytes) -> bytes:
    """Return the same letter with another `word/document.xml`."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(docx())) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for each in old.infolist():
            new.writestr(each.filename, xml if "document.xml" in each.filename else old.read(each))
    return out.getvalue()


def eml(*, html: bool = False, attached: bool = False) -> bytes:
    """An e-mail."""
    message = EmailMessage()
    message["From"] = "Ann Lee <a.lee@mail.example.org>"
    message["To"] = "clinic@mail.example.org"
    message["Subject"] = "Über mich"
    if html:
        page = f"<html><style>p {{}}</style><p>Hello,</p><p>{LETTER}</p><script>x</script></html>"
        message.set_content(page, subtype="html")
    else:
        message.set_content(LETTER)
    if attached:
        message.add_attachment(b"secret", maintype="image", subtype="png", filename="scan.png")
    return message.as_bytes()
