"""A tiny checkpoint of the usual layout, which tags each piece of a word by a table."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.errors import InputFileError, MissingExtraError, UnknownNameError
from pii_bench.files import sha256_of_folder
from pii_bench.systems.detectors import HUGGING_FACE, LabelMap
from pii_bench.systems.detectors.hugging_face import HuggingFaceDetector
from pii_bench.taxonomy import PiiType
from tests.systems.detectors.texts import ANY_TEXT, pieces

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_POSITIONS: Final = 18


def save_tiny_checkpoint(folder: Path, tags: Mapping[str, str], *, head: bool = True) -> Path:
    """Save a BERT of one layer, made by hand, with the tokenizer of its few words.

    A piece's embedding is one number of its own, all that would mix pieces is zero, and the
    head reads the tag off that number: `tags[piece]`, for all other pieces `O`. It sees 16
    tokens at a time.
    """
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    pieces = [*_SPECIAL, *tags]
    names = ["O", *sorted(set(tags.values()) - {"O"})]
    config = transformers.BertConfig(
        vocab_size=len(pieces),
        hidden_size=len(pieces),
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=1,
        max_position_embeddings=_POSITIONS,
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
    )
    model = transformers.BertForTokenClassification(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
        model.bert.embeddings.word_embeddings.weight.copy_(torch.eye(len(pieces)))
        for number, piece in enumerate(pieces):
            model.classifier.weight[names.index(tags.get(piece, "O")), number] = 1.0
    (model if head else model.bert).save_pretrained(folder)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(vocabulary)).save_pretrained(folder)
    return folder


CONLL = {"ann": "B-PER", "lee": "I-PER", "leeds": "B-LOC", "french": "B-MISC"}
TEXT = "Ann Lee left Leeds"
FOUND = [("Ann Lee", "PER"), ("Leeds", "LOC")]


@pytest.mark.parametrize("module", ["torch", "transformers"])
def test_a_missing_package_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    if module == "transformers":
        monkeypatch.setitem(sys.modules, "torch", sys)  # whatever it is, it is there
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(
        MissingExtraError,
        match=rf"^{module} is not installed: run `.* -m pip install -e '\.\[hf\]'` in the folder",
    ):
        HuggingFaceDetector(tmp_path)


class TestCheckpoint:
    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        for package in ("torch", "transformers"):
            if importlib.util.find_spec(package) is None:
                pytest.skip(f"{package} is not installed: run `pip install -e '.[hf]'`")

    @pytest.fixture
    def conll(self, tmp_path: Path) -> HuggingFaceDetector:
        return HuggingFaceDetector(save_tiny_checkpoint(tmp_path / "tiny", CONLL))

    @pytest.mark.parametrize(
        "tags",
        [
            CONLL,
            {"ann": "B-PER", "lee": "E-PER", "leeds": "S-LOC"},
            {"ann": "B-PER", "lee": "L-PER", "leeds": "U-LOC"},
            {"ann": "PER", "lee": "PER", "leeds": "LOC"},
        ],
        ids=["BIO", "BIOES", "BILOU", "without prefixes"],
    )
    def test_every_tagging_scheme_is_read(self, tmp_path: Path, tags: Mapping[str, str]) -> None:
        detector = HuggingFaceDetector(save_tiny_checkpoint(tmp_path, tags))

        assert pieces(TEXT, detector.detect(TEXT)) == FOUND

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            # Two names in a row are two, and a label without a type is ignored.
            ("Ann Ann", [("Ann", "PER")] * 2),
            ("french", []),
            # Offsets are code points.
            ("😀 é Leeds", [("Leeds", "LOC")]),
            # Longer than the model sees.
            (" x ".join([TEXT] * 50), FOUND * 50),
        ],
        ids=["two", "without a type", "emoji", "long"],
    )
    def test_entities_are_found(
        self, conll: HuggingFaceDetector, text: str, found: list[tuple[str, str]]
    ) -> None:
        assert pieces(text, conll.detect(text)) == found

    def test_a_word_has_the_tag_of_its_first_subword(self, tmp_path: Path) -> None:
        tags = {"leeds": "B-LOC", "lee": "B-PER", "##s": "O", "##l": "B-ORG"}
        detector = HuggingFaceDetector(save_tiny_checkpoint(tmp_path, tags))

        text = "leels, leeds"

        assert pieces(text, detector.detect(text)) == [("leels", "PER"), ("leeds", "LOC")]

    def test_parts_of_a_name_an_address_or_an_amount_are_joined(self, tmp_path: Path) -> None:
        names = {"ann": "B-GIVENNAME", "lee": "B-SURNAME"}
        address = {"14": "B-BUILDINGNUM", "court": "B-STREET"}
        amount = {"$": "B-CURRENCYSYMBOL", "90": "B-AMOUNT"}
        # Two facts about a person are not joined.
        facts = {"40": "B-AGE", "nurse": "B-JOBTITLE"}
        tags = names | address | amount | facts
        detector = HuggingFaceDetector(save_tiny_checkpoint(tmp_path, tags))

        text = "Ann  Lee 14 Court $90 Ann, Lee 40 nurse"

        assert pieces(text, detector.detect(text)) == [
            ("Ann  Lee", "PER"),
            ("14 Court", "LOC"),
            ("$90", "QUANTITY"),
            ("Ann", "PER"),
            ("Lee", "PER"),
            ("40", "DEM"),
            ("nurse", "DEM"),
        ]

    @pytest.mark.parametrize("text", ANY_TEXT.values(), ids=ANY_TEXT)
    def test_any_text_is_accepted(self, conll: HuggingFaceDetector, text: str) -> None:
        spans = conll.detect(text)

        assert len(spans) == text.count("Ann Lee")

    def test_a_label_map_must_have_every_label(self, tmp_path: Path) -> None:
        save_tiny_checkpoint(tmp_path, {"ann": "B-PERS", "leeds": "B-VILLE"})
        labels = LabelMap("mine.json", {"PERS": PiiType.PER, "VILLE": None})

        with pytest.raises(UnknownNameError, match=r"^unknown label of Hugging Face 'PERS'"):
            HuggingFaceDetector(tmp_path)
        assert pieces(TEXT, HuggingFaceDetector(tmp_path, labels).detect(TEXT)) == [("Ann", "PER")]

    def test_a_checkpoint_without_head_is_refused(self, tmp_path: Path) -> None:
        save_tiny_checkpoint(tmp_path, CONLL, head=False)

        with pytest.raises(InputFileError, match=r"lacks weights of .* \(classifier\.bias\)"):
            HuggingFaceDetector(tmp_path)

    def test_a_folder_without_a_checkpoint_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputFileError, match=r"transformers cannot load"):
            HuggingFaceDetector(tmp_path)

    def test_a_checkpoint_without_tokenizer_is_refused(self, tmp_path: Path) -> None:
        save_tiny_checkpoint(tmp_path, CONLL)
        for name in ("tokenizer.json", "vocab.txt"):
            (tmp_path / name).unlink()

        with pytest.raises(InputFileError, match=r"has no tokenizer$"):
            HuggingFaceDetector(tmp_path)

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("model.safetensors", b"half of a header"),
            ("config.json", b"{"),
            ("config.json", b'{"model_type": "somebodys-own"}'),
            ("config.json", b'{"model_type": "bert", "hidden_size": 2}'),
            ("tokenizer.json", b"{}"),
        ],
        ids=["weights", "no JSON", "unknown architecture", "other sizes", "tokenizer"],
    )
    def test_a_broken_checkpoint_is_refused(
        self, tmp_path: Path, name: str, content: bytes
    ) -> None:
        save_tiny_checkpoint(tmp_path, CONLL)
        (tmp_path / name).write_bytes(content)

        with pytest.raises(InputFileError, match=r"transformers cannot load"):
            HuggingFaceDetector(tmp_path)

    def test_name_and_identity_depend_on_checkpoint_and_map(self, tmp_path: Path) -> None:
        one = save_tiny_checkpoint(tmp_path / "a" / "my ner", CONLL)
        other = save_tiny_checkpoint(tmp_path / "b" / "my ner", CONLL | {"lee": "O"})
        labels = LabelMap("mine.json", {"PER": PiiType.PER, "LOC": None, "MISC": None})

        made = [HuggingFaceDetector(one), HuggingFaceDetector(other, labels)]

        hashes = [sha256_of_folder(folder) for folder in (one, other)]
        assert [each.name for each in made] == [f"hf-my-ner-{sha256[:8]}" for sha256 in hashes]
        assert len(set(hashes)) == 2
        assert [each.identity["weights"] for each in made] == [f"sha256:{x}" for x in hashes]
        assert [each.identity["labels"] for each in made] == [
            f"sha256:{each.sha256}" for each in (HUGGING_FACE, labels)
        ]
        assert made[0].identity["runtime"].startswith("transformers ")
