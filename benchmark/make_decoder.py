#!/usr/bin/env python3
"""Writes the .param of a language model's decoder, as bench_llm takes it, without weights.

    make_decoder.py llama3_8b OUT.param [--blocks N] [--bits 4] [--block 32]

Rotary attention of several queries' heads a key's, gated feed-forward layers and RMS norms, of the
published sizes; matrices quantised in blocks. The embedding and the head are left out.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from param_graph import Layer, param_text  # noqa: E402

SWAP_FIRST_AXES = 2  # Permute: rows of tokens to channels of heads, and back
MULTIPLY = 2


@dataclass(frozen=True)
class Sizes:
    hidden: int
    blocks: int
    heads: int
    key_heads: int
    head: int  # values of a head
    inner: int  # of the feed-forward layers
    bias: bool  # of queries, keys and values


MODELS = {
    "llama3_8b": Sizes(4096, 32, 32, 8, 128, 14336, False),
    "qwen2_5_0_5b": Sizes(896, 24, 14, 2, 64, 4864, True),
    "qwen2_5_7b": Sizes(3584, 28, 28, 4, 128, 18944, True),
}


class Decoder:
    """Its layers, in the order in which they run."""

    def __init__(self, sizes, quantize_term):
        self.sizes = sizes
        self.quantize_term = quantize_term
        self.layers = []
        for name in ("in0", "in1", "in2", "in3"):
            self.add("Input", [], [name])
        caches = [f"cache_{kind}{i}" for i in range(sizes.blocks) for kind in "kv"]
        self.add("Input", [], caches)
        x = "in0"
        for block in range(sizes.blocks):
            x = self.feed_forward(self.attention(x, block))
        self.add("RMSNorm", [x], ["out0"], {0: sizes.hidden, 1: 1e-6})

    def add(self, kind, bottoms, tops=None, params=None):
        name = f"{kind.lower()}_{len(self.layers)}"
        tops = tops or [name]
        self.layers.append(Layer(kind, name, bottoms, tops, params or {}))
        return tops[0]

    def norm(self, x):
        return self.add("RMSNorm", [x], params={0: self.sizes.hidden, 1: 1e-6})

    def product(self, x, depth, columns, bias=False):
        params = {3: 1, 5: 1, 6: 1, 8: columns, 9: depth, 10: 4 if bias else -1}
        return self.add("Gemm", [x], params=params | {18: self.quantize_term})

    def heads(self, x, count):
        s = self.sizes
        rows = self.product(x, s.hidden, count * s.head, s.bias)
        by_token = self.add("Reshape", [rows], params={0: s.head, 1: count, 2: -1})
        return self.add("Permute", [by_token], params={0: SWAP_FIRST_AXES})

    def attention(self, x, block):
        s = self.sizes
        normed = self.norm(x)
        q, k, v = (self.heads(normed, n) for n in (s.heads, s.key_heads, s.key_heads))
        q, k = (self.add("RotaryEmbed", [y, "in2", "in3"]) for y in (q, k))
        caches = [f"cache_k{block}", f"cache_v{block}"]
        tops = [f"attended_{block}"] + [f"out_{name}" for name in caches]
        y = self.add("SDPA", [q, k, v, "in1"] + caches, tops, {5: 1, 6: s.head**-0.5, 7: 1})
        by_token = self.add("Permute", [y], params={0: SWAP_FIRST_AXES})
        rows = self.add("Reshape", [by_token], params={0: s.heads * s.head, 1: -1})
        return self.add("BinaryOp", [x, self.product(rows, s.heads * s.head, s.hidden)])

    def feed_forward(self, x):
        s = self.sizes
        normed = self.norm(x)
        gate = self.add("Swish", [self.product(normed, s.hidden, s.inner)])
        up = self.product(normed, s.hidden, s.inner)
        inner = self.add("BinaryOp", [gate, up], params={0: MULTIPLY})
        return self.add("BinaryOp", [x, self.product(inner, s.inner, s.hidden)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--blocks", type=int, help="fewer blocks than the model has")
    parser.add_argument("--bits", type=int, default=4, choices=(4, 8))
    parser.add_argument("--block", type=int, default=32, choices=(32, 64, 128))
    args = parser.parse_args()
    sizes = MODELS[args.model]
    if args.blocks:
        sizes = Sizes(**{**sizes.__dict__, "blocks": args.blocks})
    decoder = Decoder(sizes, args.bits * 100 + (32, 64, 128).index(args.block))
    args.out.write_text(param_text(decoder.layers))


if __name__ == "__main__":
    main()
