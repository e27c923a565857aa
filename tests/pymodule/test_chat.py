"""examples/python/chat.py: its words beside the package `tokenizers`, its steps with caches beside the ncnn module's run over all words."""
import builtins
import json

import numpy as np
import pytest

from conftest import ROOT
from test_examples import example

HIDDEN, HEADS, BLOCKS = 24, 3, 2
SPECIAL = ['<|im_start|>', '<|im_end|>']
# Of Qwen2's tokenizer.json.
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXTS = ["It's 42°C -- isn't it?  She'LL say: “naïve”, 3½ times.\n\n  Ünïcödé\tand\x1cwhite\u3000space \r\n",
         'def f(x):\n    return x ** 2  # ok\n', '你好,世界!١٢٣ नमस्ते 🙂🙃', 'Cafe\u0301 <|im_start|>user\nhello<|im_end|>', '   ', "o'clock'Tis", '']


def decoder():
    """Lines of a small decoder as pnnx writes them, and weights in their order: (tagged, sizes)."""
    lines, weights, blobs = [], [], iter(range(10000))

    def add(kind, inputs, params='', outputs=1):
        names = outputs if isinstance(outputs, list) else [str(next(blobs)) for _ in range(outputs)]
        lines.append(' '.join([kind, f'layer{len(lines)}', str(len(inputs)), str(len(names)), *inputs, *names, params]))
        return names

    def gemm(x, rows, columns):
        weights.append((True, (rows, columns)))
        return add('Gemm', [x], f'10=-1 2=0 3=1 4=0 5=1 6=1 7=0 8={rows} 9={columns}')[0]

    def norm(x):
        weights.append((False, (HIDDEN,)))
        return add('RMSNorm', [x], f'0={HIDDEN} 1=1e-6 2=1')[0]

    def heads(x):
        return add('Permute', add('Reshape', [x], f'0={HIDDEN // HEADS} 1={HEADS} 2=-1'), '0=2')[0]

    for name in ('in0', 'in1', 'in2', 'in3'):
        add('Input', [], outputs=[name])
    masks, cosines, sines = (add('Split', [name], outputs=count) for name, count in [('in1', BLOCKS), ('in2', 2 * BLOCKS), ('in3', 2 * BLOCKS)])
    add('Input', [], outputs=[f'cache_{kind}{i}' for i in range(BLOCKS) for kind in 'kv'])
    x = 'in0'
    for i in range(BLOCKS):
        rest, x = add('Split', [x], outputs=2)
        q, k, v = (heads(gemm(y, HIDDEN, HIDDEN)) for y in add('Split', [norm(x)], outputs=3))
        q, k = (add('RotaryEmbed', [y, cosines.pop(), sines.pop()], '0=0')[0] for y in (q, k))
        x = add('SDPA', [q, k, v, masks[i], f'cache_k{i}', f'cache_v{i}'], '5=1 6=0.35355339 7=1',
                [f'attention{i}', f'out_cache_k{i}', f'out_cache_v{i}'])[0]
        x = gemm(add('Reshape', add('Permute', [x], '0=2'), f'0={HIDDEN} 1=-1')[0], HIDDEN, HIDDEN)
        rest, x = add('Split', add('BinaryOp', [rest, x], '0=0'), outputs=2)
        gate, up = (gemm(y, 2 * HIDDEN, HIDDEN) for y in add('Split', [norm(x)], outputs=2))
        x = gemm(add('BinaryOp', [add('Swish', [gate])[0], up], '0=2')[0], HIDDEN, 2 * HIDDEN)
        x = add('BinaryOp', [rest, x], '0=0')[0]
    weights.append((False, (HIDDEN,)))
    add('RMSNorm', [x], f'0={HIDDEN} 1=1e-6 2=1', ['out0'])
    return lines, weights


def write_net(path, lines, weights):
    rng = np.random.default_rng(5)
    blobs = sum(int(line.split()[3]) for line in lines)
    path.with_suffix('.param').write_text(f'7767517\n{len(lines)} {blobs}\n' + '\n'.join(lines) + '\n')
    with open(path.with_suffix('.bin'), 'wb') as file:
        for tagged, sizes in weights:
            values = rng.normal(size=sizes) * sizes[-1] ** -0.5 if tagged else rng.uniform(0.5, 1.5, sizes)
            file.write(bytes(4 if tagged else 0) + values.astype(np.float32).tobytes())


@pytest.fixture
def folder(tmp_path):
    """A model whose vocabulary is the bytes, four words made of them, and the special ones; the head's weights are those of the words' rows."""
    letters = list(example('chat').byte_letters().values())
    words = [*letters, 'he', 'll', 'llo', 'hello', SPECIAL[0]]
    count = len(words) + 1
    (tmp_path / 'vocab.txt').write_text('\n'.join(words) + '\n', 'utf-8')
    (tmp_path / 'merges.txt').write_text('#version: 0.2\nl l\nh e\nll o\nhe llo\n', 'utf-8')
    write_net(tmp_path / 'decoder', *decoder())
    embed = f'Embed embed 1 1 in0 out0 0={HIDDEN} 1={count} 2=0 3={HIDDEN * count}'
    write_net(tmp_path / 'embed', ['Input in0 0 1 in0', embed], [(True, (count, HIDDEN))])
    head = f'Gemm gemm 1 1 in0 out0 10=-1 2=0 3=1 4=0 5=1 6=1 7=1 8={count} 9={HIDDEN}'
    write_net(tmp_path / 'head', ['Input in0 0 1 in0', head], [])
    (tmp_path / 'model.json').write_text(json.dumps({
        'params': {'embed_token_param': 'embed.param', 'embed_token_bin': 'embed.bin', 'decoder_param': 'decoder.param',
                   'decoder_bin': 'decoder.bin', 'proj_out_param': 'head.param', 'proj_out_bin': 'embed.bin'},
        'tokenizer': {'type': 'bbpe', 'vocab_file': 'vocab.txt', 'merges_file': 'merges.txt', 'bos': '', 'eos': SPECIAL[1],
                      'additional_special_tokens': SPECIAL},
        'setting': {'attn_cnt': BLOCKS, 'rope': {'type': 'RoPE', 'rope_head_dim': HIDDEN // HEADS, 'rope_theta': 10000.0}}}))
    return tmp_path


def run_ncnn(ncnn, path, weights, inputs):
    net = ncnn.Net()
    net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
    assert net.load_param(str(path.with_suffix('.param'))) == 0 and net.load_model(str(weights.with_suffix('.bin'))) == 0
    ex = net.create_extractor()
    for name, value in inputs.items():
        ex.input(name, ncnn.Mat(value).clone())
    status, out = ex.extract('out0')
    assert status == 0
    return np.array(out)


def scores_of_all(ncnn, folder, numbers):
    """The scores after each of the words, by one run over all of them."""
    embed, n, half = folder / 'embed', len(numbers), HIDDEN // HEADS // 2
    angles = (np.arange(n)[:, None] / 10000.0 ** (np.arange(half) / half)).astype(np.float32)
    inputs = {'in0': run_ncnn(ncnn, embed, embed, {'in0': np.array(numbers, np.int32)}), 'in1': np.triu(np.full((n, n), -1e38, np.float32), 1),
              'in2': np.cos(angles), 'in3': np.sin(angles)}
    rows = run_ncnn(ncnn, folder / 'decoder', folder / 'decoder', inputs)
    return np.stack([run_ncnn(ncnn, folder / 'head', embed, {'in0': row[None]}).ravel() for row in rows])


def test_answers_with_caches(folder):
    ncnn = pytest.importorskip('ncnn')
    chat = example('chat').Chat(folder, num_threads=1)
    seen = []

    def choose(scores):
        seen.append(scores.copy())
        return int(scores[:chat.end].argmax())

    first = chat.words.encode('hello you')
    answer = list(chat.answer(first, 4, choose))
    second = chat.words.encode(' and?')
    answer2 = list(chat.answer(second, 2, choose))
    wanted = scores_of_all(ncnn, folder, first + answer + second + answer2)
    at = [len(first) - 1 + i for i in range(4)] + [len(first) + 4 + len(second) - 1 + i for i in range(2)]
    np.testing.assert_allclose(seen, wanted[at], rtol=1e-4, atol=1e-4)
    assert len(answer) == 4 and len(answer2) == 2 and chat.length == len(first) + 4 + len(second) + 2


def test_an_answer_ends_with_the_last_word(folder):
    chat = example('chat').Chat(folder)
    script = iter([5, 6, chat.end, 7])
    assert list(chat.answer([1, 2], 9, lambda scores: next(script))) == [5, 6] and next(script) == 7
    assert chat.length == 4


def test_words_of_a_model(folder):
    words = example('chat').Chat(folder).words
    assert [words.words[i] for i in words.encode('hello<|im_end|>hell')] == ['hello', '<|im_end|>', 'he', 'll']
    text = ''.join(TEXTS)
    assert b''.join(map(words.decode, words.encode('Zoë 🙂'))).decode() == 'Zoë 🙂'
    assert b''.join(map(words.decode, words.encode(text.replace(SPECIAL[0], '').replace(SPECIAL[1], '')))).decode().startswith("It's 42°C")


def test_choice():
    chooser = example('chat').chooser
    scores = np.log(np.array([1, 4, 2, 1e-3], np.float32))
    assert chooser(0, 4, 0)(scores) == 1 and {chooser(1, 1, s)(scores) for s in range(9)} == {1}
    choose = chooser(1, 2, 0)
    counts = np.bincount([choose(scores) for _ in range(6000)], minlength=4)
    np.testing.assert_allclose(counts / 6000, [0, 2 / 3, 1 / 3, 0], atol=0.03)
    choose = chooser(0.5, 2, 0)  # squares of the same
    np.testing.assert_allclose(np.bincount([choose(scores) for _ in range(6000)], minlength=4) / 6000, [0, .8, .2, 0], atol=0.03)


def test_a_conversation(folder, monkeypatch, capsys):
    said = iter(['hello', 'hello again'])

    def ask(prompt):
        try:
            return next(said)
        except StopIteration:
            raise EOFError from None
    monkeypatch.setattr(builtins, 'input', ask)
    monkeypatch.setattr('sys.argv', ['chat.py', str(folder), '--most', '3', '--seed', '1', '--threads', '1', '--top-k', '5'])
    example('chat').main()
    assert capsys.readouterr().out.count('a second]') == 2


def test_other_kinds_of_models_are_refused(folder):
    settings = json.loads((folder / 'model.json').read_text())
    settings['setting']['rope']['type'] = 'LongRoPE'
    (folder / 'model.json').write_text(json.dumps(settings))
    with pytest.raises(SystemExit, match="expected a tokenizer 'bbpe' and rope 'RoPE', got 'bbpe' and 'LongRoPE'"):
        example('chat').Chat(folder)


def test_words_beside_tokenizers():
    """A vocabulary of our own texts, merged and split as Qwen2 does."""
    tokenizers = pytest.importorskip('tokenizers')
    from tokenizers import Regex, normalizers, pre_tokenizers, trainers
    peer = tokenizers.Tokenizer(tokenizers.models.BPE())
    peer.normalizer = normalizers.NFC()
    peer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERN), 'isolated'),
                                                  pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    texts = [*TEXTS, *((ROOT / name).read_text('utf-8') for name in ('README.md', 'CONTRIBUTING.md', 'examples/python/chat.py'))]
    peer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=2000, special_tokens=SPECIAL, show_progress=False,
                                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(peer.to_str())['model']
    merges = [pair.split(' ') if isinstance(pair, str) else pair for pair in model['merges']]
    words = example('chat').Words(sorted(model['vocab'], key=model['vocab'].get), merges, SPECIAL)
    for text in texts:
        assert words.encode(text) == peer.encode(text).ids, text[:80]
