"""Talks with a language model that https://github.com/futz12/ncnn_llm has converted for ncnn, such as qwen3_0.6b of
https://mirrors.sdu.edu.cn/ncnn_modelzoo/.

    python chat.py FOLDER [--temperature 0.7] [--top-k 40] [--threads 4] [--bf16]

FOLDER has model.json and the files that it names: three nets (words to rows, the decoder, rows to scores of words), vocab.txt and
merges.txt. The decoder keeps nothing: keys and values of the words so far come out of one run and go into the next.
"""
import argparse
import codecs
import json
import pathlib
import re
import time
import unicodedata

import numpy as np
import quoll

# One turn, in the words that Qwen and others were trained with: what the user says, and the answer.
TEMPLATE = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n{}<|im_end|>\n"
# Where merges may not cross, as Qwen2 has it, on a text whose characters stand for their kinds (see kinds()).
PIECES = re.compile(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nA-Za-z0]?[A-Za-z]+|0| ?[^\sA-Za-z0]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def kinds(text):
    """A text of the same length: ASCII letters as they are, any other letter A, numbers 0, spaces of all kinds, the rest ! or '."""
    def kind(c):
        category = unicodedata.category(c)[0]
        if category == "L":
            return c if c.isascii() else "A"
        if category == "N":
            return "0"
        if c.isspace() and not "\x1c" <= c <= "\x1f":
            return c if c in " \r\n" else "\t"
        return c if c == "'" else "!"
    return "".join(map(kind, text))


def byte_letters():
    """The letter that stands for each byte in vocab.txt: printable ones themselves, the others 256, 257, ..."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}


class Words:
    """Text to numbers and back by byte-pair encoding (Sennrich et al., 2016) of UTF-8's bytes."""

    def __init__(self, vocabulary, merges, special):
        self.letters = byte_letters()
        self.bytes = {letter: byte for byte, letter in self.letters.items()}
        self.words = [*vocabulary, *(word for word in dict.fromkeys(special) if word not in set(vocabulary))]
        self.numbers = {word: i for i, word in enumerate(self.words)}
        self.ranks = {tuple(pair): i for i, pair in enumerate(merges)}
        self.special = set(special)
        longest_first = sorted(self.special, key=len, reverse=True)
        self.split = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if special else re.compile("(?!)")

    def merge(self, letters):
        """Neighbours become one as long as a pair of them is in the list, the earliest of the list first."""
        parts = list(letters)
        while len(parts) > 1:
            rank, at = min((self.ranks.get(pair, len(self.ranks)), i) for i, pair in enumerate(zip(parts, parts[1:])))
            if rank == len(self.ranks):
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        return parts

    def encode(self, text):
        found = []
        for part in self.split.split(unicodedata.normalize("NFC", text)):
            if part in self.special:
                found.append(self.numbers[part])
                continue
            for match in PIECES.finditer(kinds(part)):
                piece = part[match.start():match.end()].encode()
                found += [self.numbers[word] for word in self.merge(self.letters[b] for b in piece)]
        return found

    def decode(self, number):
        """Bytes, for a character may be of several words. Special words are none."""
        word = self.words[number] if number < len(self.words) else ""
        return b"" if word in self.special else bytes(self.bytes[letter] for letter in word)


class Chat:
    def __init__(self, folder, **options):
        folder = pathlib.Path(folder)
        settings = json.loads((folder / "model.json").read_text("utf-8"))
        tokenizer, rope, files = settings["tokenizer"], settings["setting"]["rope"], settings["params"]
        if tokenizer["type"] != "bbpe" or rope["type"] != "RoPE":
            raise SystemExit(f"{folder}/model.json: expected a tokenizer 'bbpe' and rope 'RoPE', got '{tokenizer['type']}' and '{rope['type']}'")

        def net(*names):
            name = next(n for n in names if f"{n}_param" in files)
            return quoll.load(folder / files[f"{name}_param"], folder / files[f"{name}_bin"], **options)
        self.embed, self.decoder, self.head = net("embed_token", "embed"), net("decoder"), net("proj_out", "lm_head")
        self.caches = [name for name in self.decoder.output_names() if name.startswith("out_cache_")]
        self.rates = float(rope["rope_theta"]) ** -(np.arange(0, rope["rope_head_dim"], 2) / rope["rope_head_dim"])
        self.kept, self.length = [], 0

        def lines(name):
            return (folder / tokenizer[name]).read_text("utf-8").split("\n")
        merges = [line.split(" ") for line in lines("merges_file") if line.count(" ") == 1 and not line.startswith("#version")]
        special = [*tokenizer.get("additional_special_tokens", []), *filter(None, [tokenizer.get("bos"), tokenizer["eos"]])]
        self.words = Words([line for line in lines("vocab_file") if line], merges, special)
        self.end = self.words.numbers[tokenizer["eos"]]
        self.begin = tokenizer.get("bos", "")

    def scores(self, numbers):
        """What comes after these words, which follow those of the calls before: a score for each word."""
        begin, end = self.length, self.length + len(numbers)
        angles = np.arange(begin, end)[:, None] * self.rates
        later = np.arange(end) > np.arange(begin, end)[:, None]
        inputs = {"in0": self.embed.run(np.array(numbers, np.int32))["out0"], "in1": np.where(later, np.float32(-1e38), np.float32(0)),
                  "in2": np.cos(angles).astype(np.float32), "in3": np.sin(angles).astype(np.float32)}
        inputs.update(zip((name[len("out_"):] for name in self.caches), self.kept))
        run = self.decoder.create_extractor()
        for name, value in inputs.items():
            run.input(name, value)
        rows = run.extract("out0").numpy()
        self.kept = [run.extract(name) for name in self.caches]
        self.length = end
        return self.head.run(rows[-1:])["out0"].ravel()

    def answer(self, numbers, most, choose):
        """Words that follow, one by one, as `choose` takes them from the scores, until the last one or `most`."""
        for _ in range(most):
            number = choose(self.scores(numbers))
            if number == self.end:
                return
            yield number
            numbers = [number]
        self.scores(numbers)  # so that what comes next follows the last one, too


def chooser(temperature, top_k, seed):
    """The best word at temperature 0, else one of the best top_k, with probability exp(score / temperature)."""
    rng = np.random.default_rng(seed)

    def choose(scores):
        if temperature == 0:
            return int(scores.argmax())
        best = np.argsort(scores)[-top_k:]
        weights = np.exp((scores[best] - scores[best[-1]]).astype(np.float64) / temperature)
        return int(rng.choice(best, p=weights / weights.sum()))
    return choose


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--temperature", type=float, default=0.7, help="0: always the best word; default: %(default)s")
    parser.add_argument("--top-k", type=int, default=40, help="words to choose from; default: %(default)s")
    parser.add_argument("--seed", type=int, help="of the choice; default: another one each time")
    parser.add_argument("--most", type=int, default=1024, help="words of an answer; default: %(default)s")
    parser.add_argument("--threads", type=int, default=quoll.get_physical_cpu_count(), help="default: %(default)s")
    parser.add_argument("--bf16", action="store_true", help="numbers of 16 bits between layers, faster where the processor has them")
    parser.add_argument("--template", default=TEMPLATE, help="one turn, {} for what you say, and {} for the answer; default: %(default)r")
    args = parser.parse_args()
    before, between, after = args.template.replace("\\n", "\n").split("{}")
    chat = Chat(args.folder, num_threads=args.threads, use_bf16_storage=args.bf16)
    choose, before = chooser(args.temperature, args.top_k, args.seed), chat.begin + before
    while True:
        try:
            said = input("> ")
        except EOFError:
            return
        count, start, text = 0, time.monotonic(), codecs.getincrementaldecoder("utf-8")("replace")
        for number in chat.answer(chat.words.encode(before + said + between), args.most, choose):
            print(text.decode(chat.words.decode(number)), end="", flush=True)
            count += 1
        print(f"\n[{count} words, {count / (time.monotonic() - start):.1f} a second]")
        before = after + args.template.replace("\\n", "\n").split("{}")[0]


if __name__ == "__main__":
    main()
