"""CLIP's byte-pair tokenizer: text -> ids between <|startoftext|> and <|endoftext|>.

Cleaning is CLIP's: mend broken unicode (ftfy), unescape HTML twice, collapse white space, lower
case. The merges are OpenAI's (see NOTICE); the splitting and merging is done by `tokenizers`.
"""

from __future__ import annotations

import functools
import gzip
import html
from collections.abc import Sequence
from importlib.resources import files

import ftfy
import numpy as np
from numpy.typing import NDArray

from naclip.errors import VocabularyError

START, END = 49406, 49407
WORDS = (
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
)
END_OF_WORD = "</w>"


def clean(text: str) -> str:
    text = html.unescape(html.unescape(ftfy.fix_text(text)))
    return " ".join(text.split()).lower()


def byte_alphabet() -> list[str]:
    """A printable character for each byte, in the order in which CLIP numbers them.

    Bytes that print stand for themselves; the others take the characters from 256 on.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + n) for n in range(len(hidden))]


class Tokenizer:
    def __init__(self) -> None:
        from tokenizers import Regex
        from tokenizers import Tokenizer as Fast
        from tokenizers.models import BPE
        from tokenizers.pre_tokenizers import ByteLevel, Split
        from tokenizers.pre_tokenizers import Sequence as Steps

        packed = files("naclip").joinpath("data/bpe_merges.txt.gz").read_bytes()
        lines = gzip.decompress(packed).decode("utf-8").splitlines()
        merges = [(left, right) for left, right in (line.split() for line in lines)]
        letters = byte_alphabet()
        words = [*letters, *(letter + END_OF_WORD for letter in letters)]
        words += [left + right for left, right in merges] + ["<|startoftext|>", "<|endoftext|>"]
        vocabulary = {word: number for number, word in enumerate(words)}
        self._fast = Fast(BPE(vocabulary, merges, end_of_word_suffix=END_OF_WORD))
        self._fast.pre_tokenizer = Steps(
            [
                Split(Regex(WORDS), "removed", invert=True),
                ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )

    def encode(self, texts: Sequence[str], context: int = 77) -> NDArray[np.int64]:
        """(texts, context) ids, zeros behind the end token; a text that does not fit is refused."""
        ids = np.zeros((len(texts), context), dtype=np.int64)
        encoded = self._fast.encode_batch([clean(text) for text in texts])
        for row, text, tokens in zip(ids, texts, encoded, strict=True):
            count = len(tokens.ids) + 2
            if count > context:
                raise VocabularyError(
                    f"{shortened(text)!r} is {count} tokens long, CLIP reads {context}: "
                    "use a shorter name or template"
                )
            row[:count] = [START, *tokens.ids, END]
        return ids

    def portable(self) -> str:
        """tokenizer.json of the library `tokenizers`, to be used without naclip.

        It cleans as `clean` does, but that it neither mends broken unicode nor unescapes HTML.
        """
        from tokenizers import Regex, normalizers
        from tokenizers import Tokenizer as Fast
        from tokenizers.processors import TemplateProcessing

        copy = Fast.from_str(self._fast.to_str())
        copy.normalizer = normalizers.Sequence(
            [
                normalizers.NFC(),
                normalizers.Replace(Regex(r"\s+"), " "),
                normalizers.Strip(),
                normalizers.Lowercase(),
            ]
        )
        start, end = "<|startoftext|>", "<|endoftext|>"
        copy.post_processor = TemplateProcessing(
            single=f"{start} $A {end}", special_tokens=[(start, START), (end, END)]
        )
        return str(copy.to_str())


def shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


@functools.cache
def clip_tokenizer() -> Tokenizer:
    return Tokenizer()
