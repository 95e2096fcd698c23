"""Builders of letters as PDF, DOCX and EML files."""

from __future__ import annotations

import io
import zipfile
from email.message import EmailMessage

from docx import Document
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

LETTER = "I am Ann Lee of Leeds."


def pdf(*contents: bytes, picture: bool = False, flate: bool = False) -> bytes:
    """Return a PDF with a page for each content stream."""
    writer = PdfWriter()
    font = named({"Type": "Font", "Subtype": "Type1", "BaseFont": "Helvetica"})
    resources = DictionaryObject({NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})})
    if picture:
        resources[NameObject("/XObject")] = named({"Im1": "None"})
    for content in contents:
        stream = DecodedStreamObject()
        stream.set_data(content)
        page = writer.add_blank_page(595, 842)
        page[NameObject("/Resources")] = resources
        page[NameObject("/Contents")] = writer._add_object(
            stream.flate_encode(9) if flate else stream
        )
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def named(values: dict[str, str]) -> DictionaryObject:
    return DictionaryObject(
        {NameObject(f"/{key}"): NameObject(f"/{value}") for key, value in values.items()}
    )


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
