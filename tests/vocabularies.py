"""Small tokenizers of the kinds that models have, trained here on a little code."""

from __future__ import annotations

import functools

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

KINDS = ("byte_level", "sentence_piece", "word_piece")
SAMPLE = '''def total(items):
    """Add up the prices."""
    result = 0
    for item in items:
        result += item.price
    return result


class Basket:
    def __init__(self, items):
        self.items = items

    def add(self, item):
        self.items.append(item)
        return len(self.items)

    def render(self, width):
        lines = [f"{item.name}: {item.price}" for item in self.items]
        return "\\n".join(line[:width] for line in lines)
'''


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345678"


def letters() -> PreTrainedTokenizerFast:
    """Return a tokenizer that writes each id as one letter."""
    vocabulary = {letter: number for number, letter in enumerate(LETTERS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="a")


@functools.cache
def vocabulary(kind: str) -> PreTrainedTokenizerFast:
    """Return a tokenizer: byte-level BPE as GPT-2's, Unigram with a leading space as SentencePiece's, or WordPiece."""
    tokenizer, trainer = {"byte_level": _byte_level, "sentence_piece": _sentence_piece, "word_piece": _word_piece}[
        kind
    ]()
    texts = [SAMPLE, SAMPLE.replace("\n", "\n    "), SAMPLE.replace("\n", "\\n"), '{"name": "write", "arguments": {}}']
    tokenizer.train_from_iterator(texts * 4, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<eos>")


def _byte_level() -> tuple[Tokenizer, trainers.Trainer]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<unk>", "<eos>"]
    return tokenizer, trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, special_tokens=special)


def _sentence_piece() -> tuple[Tokenizer, trainers.Trainer]:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n|▁+|[^▁\n]+"), "isolated")
    strip = decoders.Strip(" ", 1, 0)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), strip])
    special = ["<unk>", "<eos>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return tokenizer, trainers.BpeTrainer(vocab_size=700, special_tokens=special)


def _word_piece() -> tuple[Tokenizer, trainers.Trainer]:
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer, trainers.WordPieceTrainer(vocab_size=400, special_tokens=["<unk>", "<eos>"])
