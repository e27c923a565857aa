"""enginequantize --metric: detection against the formulas in NumPy, pycocotools where it is there and cases by hand; word error
rates against a recursion and jiwer where it is there; programs of the user. Models are identities, so that the float ones' outputs
are the inputs, and those after quantisation what enginerun gives."""
import functools
import json
import os
import stat
import sys

import numpy as np
import pytest

from conftest import last_line, run_program
from engine import run_engine

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')


def identity(folder, rows, columns):
    """A net of rows x columns that gives its input back, exactly in float."""
    (folder / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 data 0={columns} 1={rows}\n'
                                    f'InnerProduct fc 1 1 data out 0={columns} 1=0 2={columns * columns}\n')
    np.concatenate([np.zeros(1, np.float32), np.eye(columns, dtype=np.float32).ravel()]).tofile(folder / 'm.bin')


def judge(folder, x, labels, *args, code=0):
    """(metric before, after) by the report, the outputs after, for x [samples][rows][columns]."""
    identity(folder, *x.shape[1:])
    np.save(folder / 'x.npy', x)
    (folder / 'labels.txt').write_text('\n'.join(labels) + '\n')
    done = run_program('enginequantize', folder / 'm.param', folder / 'm.bin', folder / 'q.param', folder / 'q.bin', '--data',
                       folder / 'x.npy', '--test', folder / 'x.npy', '--test-labels', folder / 'labels.txt', '--no-equalize',
                       '--report', folder, *args)
    assert done.returncode == code, done.stderr
    if code:
        return last_line(done.stderr)
    task = json.loads((folder / 'report.json').read_text())['accuracy']['task']
    assert f"{task['before']:.4f} -> {task['after']:.4f}" in done.stdout
    after = [run_engine(folder / 'q.param', folder / 'q.bin', {'data': sample}, ['out'])['out'] for sample in x]
    return task['before'], task['after'], np.array(after)


# ---- Boxes. A truth is (label, x1, y1, x2, y2), what is found (label, score, x1, y1, x2, y2).

def overlap(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def average_precision(found, truths, label, least, coco):
    """By the definitions, recall level by recall level: quadratic, and without the running envelope."""
    rows = [(row[1], i, row[2:]) for i, sample in enumerate(found) for row in sample if round(float(row[0])) == label]
    rows.sort(key=lambda row: -row[0])
    open_truths = {(i, k): t[1:] for i, sample in enumerate(truths) for k, t in enumerate(sample) if t[0] == label}
    count, taken, right = len(open_truths), set(), []
    for _, i, box in rows:
        near = [(overlap(box, t), key) for key, t in open_truths.items() if key[0] == i and not (coco and key in taken)]
        most, key = max(near, default=(0, None))
        right.append(most >= least and key not in taken)
        if right[-1]:
            taken.add(key)
    hits = np.cumsum(right)
    recall, precision = hits / count, hits / np.arange(1, len(hits) + 1)
    best = lambda r: max(precision[recall >= r], default=0)
    if coco:
        return np.mean([best(k * 0.01) for k in range(101)])
    return sum(best(k / count) / count for k in range(1, count + 1))


def mean_precision(found, truths, coco):
    labels = {t[0] for sample in truths for t in sample}
    steps = [0.5 + 0.05 * k for k in range(10)] if coco else [0.5]
    return np.mean([average_precision(found, truths, label, step, coco) for label in labels for step in steps])


def truth_lines(truths):
    return ['; '.join(f"{t[0]} {' '.join(map(repr, t[1:]))}" for t in sample) for sample in truths]


def scene(seed):
    """16 samples of up to 4 truths of 3 labels, and 8 rows found: most near a truth, some elsewhere, some twice."""
    rng = np.random.default_rng(seed)
    found, truths = np.zeros((16, 8, 6), np.float32), []
    for sample in found:
        corners = rng.uniform(0, 0.6, (rng.integers(0, 5), 2))
        boxes = np.concatenate([corners, corners + rng.uniform(0.15, 0.4, corners.shape)], 1)
        labels = rng.integers(0, 3, len(boxes))
        truths.append([(int(c), *map(float, b)) for c, b in zip(labels, boxes)])
        for row in sample:
            row[1] = rng.random()
            if len(boxes) and rng.random() < 0.8:
                k = rng.integers(len(boxes))
                row[0], row[2:] = labels[k], boxes[k] + rng.normal(0, 0.03, 4)
            else:
                a = rng.uniform(0, 0.6, 2)
                row[0], row[2:] = rng.integers(0, 3), np.concatenate([a, a + 0.2])
    return found, truths


@pytest.mark.parametrize('metric', ['map50', 'map'])
@pytest.mark.parametrize('seed', [1, 2])
def test_detection(metric, seed, tmp_path):
    found, truths = scene(seed)
    before, after, outputs = judge(tmp_path, found, truth_lines(truths), '--metric', metric)
    assert before == pytest.approx(mean_precision(found.astype(float), truths, metric == 'map'), abs=1e-9)
    assert after == pytest.approx(mean_precision(outputs.astype(float), truths, metric == 'map'), abs=1e-9)
    assert 0.05 < before < 0.95


def test_detection_as_pycocotools(tmp_path):
    coco, cocoeval = pytest.importorskip('pycocotools.coco'), pytest.importorskip('pycocotools.cocoeval')
    found, truths = scene(3)
    size = lambda b: [float(b[0]), float(b[1]), float(b[2] - b[0]), float(b[3] - b[1])]
    right, scale = coco.COCO(), 1000  # its areas are in pixels
    notes = [{'id': n + 1, 'image_id': i, 'category_id': t[0], 'bbox': size(np.array(t[1:]) * scale), 'iscrowd': 0, 'area': 1.0}
             for n, (i, t) in enumerate((i, t) for i, sample in enumerate(truths) for t in sample)]
    right.dataset = {'images': [{'id': i} for i in range(len(truths))], 'categories': [{'id': c} for c in range(3)], 'annotations': notes}
    right.createIndex()
    rows = [{'image_id': i, 'category_id': int(r[0]), 'score': float(r[1]), 'bbox': size(r[2:].astype(float) * scale)}
            for i, sample in enumerate(found) for r in sample]
    evaluation = cocoeval.COCOeval(right, right.loadRes(rows), 'bbox')
    evaluation.evaluate(), evaluation.accumulate(), evaluation.summarize()
    before, _, _ = judge(tmp_path, found, truth_lines(truths), '--metric', 'map')
    assert before == pytest.approx(evaluation.stats[0], abs=1e-9)


def test_detection_by_hand(tmp_path):
    box, beside = (0, 0, 1, 1), (2, 2, 3, 3)
    rows = lambda *found: np.array([[c, s, *b] for c, s, b in found], np.float32)
    # Right, the same truth again, elsewhere: recall 1/2 at precision 1, the second truth is never found.
    x = np.stack([rows((1, .9, box), (1, .8, box), (1, .7, beside)), rows((0, 0, box), (0, 0, box), (0, 0, box))])
    before, _, _ = judge(tmp_path, x, ['1 0 0 1 1', '1 0 0 1 1'], '--metric', 'map50')
    assert before == pytest.approx(0.5)
    # A wrong one before the right ones: precisions 0, 1/2, 2/3 at recalls 0, 1/2, 1: the envelope is 2/3 throughout.
    x = np.stack([rows((1, .9, beside), (1, .8, box)), rows((1, .7, box), (0, 0, box))])
    before, _, _ = judge(tmp_path, x, ['1 0 0 1 1', '1 0 0 1 1'], '--metric', 'map50')
    assert before == pytest.approx(2 / 3)


# ---- Words.

@functools.lru_cache(None)
def edits(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b[1:]) + (a[0] != b[0]), edits(a[1:], b) + 1, edits(a, b[1:]) + 1)


def greedy(scores, blank):
    classes = scores.argmax(1)
    return [int(c) for i, c in enumerate(classes) if c != blank and (i == 0 or c != classes[i - 1])]


@pytest.mark.parametrize('blank', [0, 3])
def test_word_errors_of_numbers(blank, tmp_path):
    rng = np.random.default_rng(blank)
    x = rng.normal(size=(8, 20, 4)).astype(np.float32)
    truths = [greedy(sample, blank) for sample in x]
    for truth in truths[:5]:
        truth[rng.integers(len(truth))] = 9
    truths[5].insert(2, 1), truths[6].pop()
    labels = [' '.join(map(str, t)) for t in truths]
    before, after, outputs = judge(tmp_path, x, labels, '--metric', 'wer', '--blank', blank)
    rate = lambda x: sum(edits(tuple(greedy(s, blank)), tuple(t)) for s, t in zip(x, truths)) / sum(map(len, truths))
    assert before == pytest.approx(rate(x)) and after == pytest.approx(rate(outputs)) and before > 0


def test_word_errors_of_texts(tmp_path):
    tokens = ['', 'a', 'b', '|', '\u2581c']
    texts = [[1, 1, 0, 1, 2, 3, 2, 2], [1, 4, 2, 0, 2, 3, 1, 0], [0, 0, 0, 0, 0, 0, 0, 0]]  # 'aab b', 'a cbb a', ''
    said, right = ['aab b', 'a cbb a', ''], ['aab b', 'a cb b a', 'ab']
    x = np.eye(5, dtype=np.float32)[np.array(texts)]
    (tmp_path / 'tokens.txt').write_text('\n'.join(tokens) + '\n')
    before, after, _ = judge(tmp_path, x, right, '--metric', 'wer', '--tokens', tmp_path / 'tokens.txt')
    assert before == after == pytest.approx((0 + 2 + 1) / (2 + 4 + 1))
    try:
        import jiwer
    except ImportError:
        return
    assert before == pytest.approx(jiwer.wer(right, said))


# ---- Programs.

def program(folder, text):
    path = folder / 'metric.py'
    path.write_text(f'#!{sys.executable}\n{text}')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


COUNTED = """import sys
import numpy as np
rows = [line.rstrip('\\n').split('\\t') for line in open(sys.argv[1])]
assert all(name.startswith('/') and name.endswith(f'[{i}]') for i, (name, _, _) in enumerate(rows))
print('not this line')
print(np.mean([np.load(path).sum() * float(label) for _, label, path in rows]))
"""


def test_program(tmp_path):
    x = np.random.default_rng(1).normal(size=(6, 3, 5)).astype(np.float32)
    weights = [1, 2, -1, 0.5, 3, 0]
    before, after, outputs = judge(tmp_path, x, list(map(str, weights)), '--metric', program(tmp_path, COUNTED))
    value = lambda x: np.mean([a.sum() * w for a, w in zip(x, weights)])
    assert before == pytest.approx(value(x), rel=1e-5) and after == pytest.approx(value(outputs), rel=1e-5) and before != after


@pytest.mark.parametrize('order', ['<', '>'])
def test_photographs_are_turned_as_exif_says(order, tmp_path):
    """As Pillow turns them."""
    image, ops = pytest.importorskip('PIL.Image'), pytest.importorskip('PIL.ImageOps')
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput in 0 1 data\nAbsVal a 1 1 data out\n')
    (tmp_path / 'm.bin').write_bytes(b'')
    photo = image.fromarray(np.random.default_rng(1).integers(0, 256, (2, 3, 3), np.uint8).repeat(16, 0).repeat(16, 1))
    for turned in range(1, 9):
        exif = image.Exif()
        exif.endian = order
        exif[0x112] = turned
        photo.save(tmp_path / 'x.jpg', exif=exif, quality=95, subsampling=0)
        right = np.array(ops.exif_transpose(image.open(tmp_path / 'x.jpg'))).transpose(2, 0, 1).astype(np.float32)
        np.save(tmp_path / 'right.npy', right)
        metric = program(tmp_path, 'import sys\nimport numpy as np\n'
                                   "got = np.load(open(sys.argv[1]).readline().strip().split('\\t')[-1])\n"
                                   f"right = np.load({str(tmp_path / 'right.npy')!r})\n"
                                   'assert got.shape == right.shape and abs(got - right).mean() < 2\nprint(1)\n')
        done = run_program('enginequantize', tmp_path / 'm.param', tmp_path / 'm.bin', tmp_path / 'q.param', tmp_path / 'q.bin',
                           '--data', tmp_path / 'x.jpg', '--kind', 'float', '--metric', metric)
        assert done.returncode == 0, (turned, done.stderr)


def test_mixed_precision_by_a_program(tmp_path):
    """A loss of anything is too much for it: the only layer stays in float."""
    x = np.random.default_rng(1).normal(size=(6, 3, 5)).astype(np.float32)
    np.save(tmp_path / 'right.npy', x)
    nearness = ("import sys\nimport numpy as np\nright = "
                f"np.load({str(tmp_path / 'right.npy')!r})\n"
                "print(-sum(abs(np.load(line.split('\\t')[2].strip()) - x).max() for line, x in zip(open(sys.argv[1]), right)))\n")
    metric = program(tmp_path, nearness)
    before, after, outputs = judge(tmp_path, x, [''] * 6, '--metric', metric)
    assert before == 0 and after == pytest.approx(-sum(abs(outputs - x).max((1, 2))))
    before, after, outputs = judge(tmp_path, x, [''] * 6, '--metric', metric, '--max-drop', '0.0001')
    assert before == after == 0 and (outputs == x).all()


@pytest.mark.parametrize('text, word', [('print("nothing")', "got 'nothing'"), ('', "got ''"), ('print("nan")', "got 'nan'"),
                                        ('import sys\nprint(1)\nsys.exit(3)', 'exit code 3')])
def test_bad_programs(text, word, tmp_path):
    message = judge(tmp_path, np.ones((3, 2, 4), np.float32), ['1'] * 3, '--metric', program(tmp_path, text), code=1)
    assert 'metric.py' in message and word in message
    assert not list(tmp_path.glob('q.*'))


@pytest.mark.parametrize('args, labels, word', [
    (['--metric', 'bleu'], ['1'] * 3, 'expected cosine|sqnr|top1|top5|map50|map|wer or a program'),
    (['--metric', 'map'], ['1 0 0 1 1', '1 0 0 1', ''], "line 2: '1 0 0 1'"),
    (['--metric', 'map'], ['1 1 0 0 1', '', ''], 'X1 <= X2'), (['--metric', 'map'], ['x 0 0 1 1', '', ''], "'x 0 0 1 1'"),
    (['--metric', 'map50'], [''] * 3, 'rows of 6 values'), (['--metric', 'wer'], ['1'] * 2, '2 labels, there are 3'),
    (['--metric', 'wer', '--tokens', '/missing'], ['1'] * 3, '/missing')])
def test_bad_labels(args, labels, word, tmp_path):
    assert word in judge(tmp_path, np.ones((3, 2, 4), np.float32), labels, *args, code=1)
    assert not list(tmp_path.glob('q.*'))


def test_no_labels(tmp_path):
    identity(tmp_path, 2, 6)
    np.save(tmp_path / 'x.npy', np.ones((3, 2, 6), np.float32))
    for metric in 'top5', 'map50', 'wer':
        done = run_program('enginequantize', tmp_path / 'm.param', tmp_path / 'm.bin', tmp_path / 'q.param', tmp_path / 'q.bin', '--data',
                           tmp_path / 'x.npy', '--metric', metric)
        assert done.returncode == 1 and f'metric {metric} needs labels' in last_line(done.stderr)
