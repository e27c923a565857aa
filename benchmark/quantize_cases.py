"""Models and samples of quantize_compare.py: each case has samples to calibrate with and others to judge with."""
import collections
import pathlib
import wave

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = 352  # of the digit detector
WORDS = 64  # tokens of a text

# model: an ONNX file. calibration, test: lists of {input: array}. labels: of the latter, or None. transformer: NNCF is told so.
Case = collections.namedtuple('Case', 'name model calibration test labels transformer', defaults=(None, False))


def named(name, arrays):
    """A sample of the one input for each array, with a batch axis in front."""
    return [{name: array[None]} for array in arrays]


def input_name(model):
    import onnx
    return onnx.load(str(model)).graph.input[0].name


def crops(photos, count, w, h, mean, norm, rng, left, right):
    """[count][3][h][w] RGB, parts of various sizes of the photos between these parts of their width."""
    from PIL import Image
    images = [Image.open(path).convert('RGB') for path in photos]
    images = [i.crop((int(left * i.width), 0, int(right * i.width), i.height)) for i in images]
    out = []
    for i in range(count):
        image = images[i % len(images)]
        part = rng.uniform(0.3, 1)
        cw, ch = int(image.width * part), int(image.height * part)
        x, y = int(rng.integers(0, image.width - cw + 1)), int(rng.integers(0, image.height - ch + 1))
        pixels = np.asarray(image.crop((x, y, x + cw, y + ch)).resize((w, h)), np.float32)
        out.append(((pixels - mean) * norm).transpose(2, 0, 1))
    return np.stack(out).astype(np.float32)


def digits(count):
    held = np.load(ROOT / 'models/digits/heldout.npz')
    images = (held['images'].astype(np.float32) / 255)[:, None]
    model = ROOT / 'models/digits/digits.onnx'
    name = input_name(model)
    return Case('digits', model, named(name, images[:180][:count]), named(name, images[180:]), held['labels'][180:])


class ParamNet:
    """ONNX of a .param of ncnn with the few layers that the digit detector has."""

    def __init__(self, param, binary):
        self.values, self.at = np.fromfile(binary, np.float32), 0
        self.nodes, self.constants, self.same = [], [], {}
        for line in param.read_text().splitlines()[2:]:
            kind, name, inputs, outputs, *rest = line.split()
            blobs, fields = rest[:int(inputs) + int(outputs)], dict(word.split('=') for word in rest[int(inputs) + int(outputs):])
            params = {int(k): int(v) for k, v in fields.items()}
            sources = [self.same.get(b, b) for b in blobs[:int(inputs)]]
            getattr(self, kind)(name, params, sources, blobs[int(inputs):])

    def take(self, count):
        self.at += count
        return self.values[self.at - count:self.at]

    def node(self, kind, inputs, output, **attributes):
        import onnx
        self.nodes.append(onnx.helper.make_node(kind, inputs, [output], name=output, **attributes))

    def Input(self, name, params, sources, outputs):
        self.input, self.size = outputs[0], [1, params[2], params[1], params[0]]

    def Split(self, name, params, sources, outputs):
        self.same.update((output, sources[0]) for output in outputs)

    def Convolution(self, name, params, sources, outputs):
        import onnx
        kernel, group = params[1], params.get(7, 1)
        tag = self.take(1)
        assert tag.view(np.int32)[0] == 0, f'{name}: its weights are not of float32'
        weight = self.take(params[6]).reshape(params[0], -1, kernel, kernel)
        arrays = [weight, self.take(params[0])] if params.get(5) else [weight]
        words = [f'{name}.{i}' for i in range(len(arrays))]
        self.constants += [onnx.numpy_helper.from_array(a, w) for a, w in zip(arrays, words)]
        activation = {0: None, 1: 'Relu', 4: 'Sigmoid'}[params.get(9, 0)]
        made = f'{name}.sum' if activation else outputs[0]
        self.node('Conv', [*sources, *words], made, kernel_shape=[kernel] * 2, strides=[params.get(3, 1)] * 2, pads=[params.get(4, 0)] * 4, group=group)
        if activation:
            self.node(activation, [made], outputs[0])

    ConvolutionDepthWise = Convolution

    def Softmax(self, name, params, sources, outputs):
        self.node('Softmax', sources, outputs[0], axis=params[0] + 1)

    def Concat(self, name, params, sources, outputs):
        self.node('Concat', sources, outputs[0], axis=params[0] + 1)

    def save(self, path, output, size):
        import onnx
        infos = [onnx.helper.make_tensor_value_info(n, 1, s) for n, s in ((self.input, self.size), (output, size))]
        graph = onnx.helper.make_graph(self.nodes, 'net', infos[:1], infos[1:], self.constants)
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 13)], ir_version=8), str(path))


def digit_pages(images, count, rng):
    """[count][3][PAGE][PAGE]: dark digits of various sizes on light paper, some the other way."""
    from PIL import Image
    out = []
    for _ in range(count):
        page = np.ones((PAGE, PAGE, 3)) * rng.uniform(0.6, 1, 3) - rng.uniform(0, 0.08, (PAGE, PAGE, 1))
        colour = rng.uniform(0, 0.35, 3)
        for x, y in rng.permutation([(x, y) for x in range(3) for y in range(3)])[:rng.integers(3, 9)]:
            side = int(rng.uniform(0.12, 0.32) * PAGE)
            cover = Image.fromarray(images[rng.integers(len(images))]).resize((side, side), Image.BILINEAR)
            cover = np.asarray(cover, np.float32)[..., None] / 255
            x, y = (int((v + rng.uniform(0, 1)) * (PAGE - side) / 3) for v in (x, y))
            part = page[y:y + side, x:x + side]
            part += cover * (colour - part)
        page = np.clip(page if rng.random() < 0.7 else 1 - page, 0, 1)
        out.append(page[..., ::-1].transpose(2, 0, 1))
    return np.stack(out).astype(np.float32)


def digit_detector(count, folder):
    rng, base, model = np.random.default_rng(3), ROOT / 'models/digit_detector/digit_detector', folder / 'digit_detector.onnx'
    ParamNet(base.with_suffix('.param'), base.with_suffix('.bin')).save(model, 'grid', [1, 15, 22, 22])
    held = np.load(ROOT / 'models/digits/heldout.npz')['images'].astype(np.uint8)
    return Case('digit detector', model, named('image', digit_pages(held[:180], count, rng)), named('image', digit_pages(held[180:], 24, rng)))


def trained(folder, count, judged):
    """The classifiers that quantize_train.py made."""
    arrays = np.load(folder / 'fashion.npz')
    for path in sorted(folder.glob('*.onnx')):
        name = input_name(path)
        yield Case(path.stem, path, named(name, arrays['calibration'][:count]), named(name, arrays['test'][:judged]), arrays['labels'][:judged],
                   'transformer' in path.stem)


def photo_model(name, model, w, h, mean, norm, photos, count):
    rng, blob = np.random.default_rng(7), input_name(model)
    return Case(name, model, named(blob, crops(photos, count, w, h, mean, norm, rng, 0, 2 / 3)),
                named(blob, crops(photos, 24, w, h, mean, norm, rng, 2 / 3, 1)))


def text_image(lines, w, h, size, rng):
    """[3][h][w] in -1..1: words below each other on plain paper, with some noise."""
    from PIL import Image, ImageDraw, ImageFont
    paper = rng.uniform(0, 255, 3) if rng.random() < 0.3 else rng.uniform(180, 255, 3)
    ink = rng.uniform(0, 90, 3) if paper.mean() > 120 else rng.uniform(180, 255, 3)
    image = Image.new('RGB', (w, h), tuple(int(v) for v in paper))
    draw, y = ImageDraw.Draw(image), int(rng.uniform(0, h / 8))
    for line in lines:
        draw.text((int(rng.uniform(0, w / 12)), y), line, tuple(int(v) for v in ink), font=ImageFont.load_default(int(size * rng.uniform(0.8, 1.1))))
        y += int(size * rng.uniform(1.4, 2.5))
    pixels = np.asarray(image, np.float32) + rng.normal(0, rng.uniform(0, 8), (h, w, 1))
    return (np.clip(pixels, 0, 255).transpose(2, 0, 1) / 127.5 - 1).astype(np.float32)


def text_words(text, count, rng):
    words = text.split()
    start = int(rng.integers(0, len(words) - count))
    return ' '.join(words[start:start + count])


def ocr(folder, texts, count):
    """PP-OCR's three nets (of rapidocr-onnxruntime) on drawn text: half of the texts to calibrate with, the others to judge with."""
    shapes = {'det': (320, 320, 18, 8, 4), 'rec': (320, 48, 30, 1, 3), 'cls': (192, 48, 30, 1, 2)}
    for model in sorted(folder.glob('*.onnx')):
        kind = next((k for k in shapes if f'_{k}_' in model.name), None)
        if kind is None:
            continue
        w, h, size, lines, words = shapes[kind]
        rng, blob = np.random.default_rng(11), input_name(model)
        halves = ' '.join(texts[0::2]), ' '.join(texts[1::2])
        sets = []
        judged = 120 if kind == 'cls' else 24  # two scores, mostly almost 0 and 1: few samples make the figure
        for half, number in zip(halves, (min(count, 32) if kind == 'det' else count, judged)):
            images = [text_image([text_words(half, words, rng) for _ in range(lines)], w, h, size, rng) for _ in range(number)]
            if kind == 'cls':  # every other line upside down
                images = [i[:, ::-1, ::-1].copy() if n % 2 else i for n, i in enumerate(images)]
            sets.append(named(blob, images))
        yield Case(f'PP-OCR {kind}', model, *sets)


def speech(model, sounds, count):
    """silero_vad_openvino_16k.onnx on sounds of 48 kHz (Debian's alsa-utils): windows in the order of time with the state that the float net has then."""
    import onnxruntime
    session = onnxruntime.InferenceSession(str(model), providers=['CPUExecutionProvider'])
    sets = [], []
    for number, path in enumerate(sorted(sounds.glob('*.wav'))):
        with wave.open(str(path)) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).reshape(-1, file.getnchannels())[:, 0]
        third = samples[:len(samples) // 3 * 3].reshape(-1, 3).mean(1) / 32768
        state, before = np.zeros((2, 1, 128), np.float32), np.zeros(64)
        for start in range(0, len(third) - 512, 512):
            window = np.concatenate([before, third[start:start + 512]]).astype(np.float32)
            before = third[start + 448:start + 512]
            feed = {'input': window[None], 'state': state}
            sets[number % 2].append(feed)
            state = session.run(['stateN'], feed)[0]
    rng = np.random.default_rng(5)
    return Case('silero-vad', model, [sets[0][i] for i in rng.permutation(len(sets[0]))[:count]], sets[1])


def sentences(model, tokenizer, texts, count):
    """MiniLM on pieces of texts: half of the texts to calibrate with, the others to judge with. tokenizer: its tokenizer.json."""
    import tokenizers
    words = tokenizers.Tokenizer.from_file(str(tokenizer))
    words.enable_truncation(WORDS)
    words.enable_padding(length=WORDS)
    rng, sets = np.random.default_rng(9), []
    for half, number in ((' '.join(texts[0::2]), count), (' '.join(texts[1::2]), 24)):
        coded = [words.encode(text_words(half, int(rng.integers(6, 45)), rng)) for _ in range(number)]
        sets.append([{'ids': np.array([c.ids], np.int64), 'mask': np.array([c.attention_mask], np.int64)} for c in coded])
    return Case('MiniLM', model, *sets, transformer=True)


def all_cases(args, folder):
    """folder: for models that are made."""
    count = args.samples
    yield digits(count)
    yield digit_detector(count, folder)
    if args.trained:
        yield from trained(args.trained, args.trained_samples, args.judged)
    texts = [path.read_text(errors='replace') for path in sorted(args.texts.iterdir()) if path.is_file()] if args.texts.is_dir() else []
    if args.ocr:
        yield from ocr(args.ocr, texts, count)
    if args.vad:
        yield speech(*args.vad, count)
    if args.sentences:
        yield sentences(*args.sentences, texts, count)
    if args.data:
        photos = sorted((args.data / 'images').glob('*.jpg'))
        for name, file, *form in (('slim-320', 'slim-320/version-slim-320_without_postprocessing.onnx', 320, 240, 127, 1 / 128),
                                  ('FastestDet', 'fastestdet/FastestDet.onnx', 352, 352, 0, 1 / 255)):
            yield photo_model(name, args.data / 'models' / file, *form, photos, count)
        for model, *form in args.image_model:
            yield photo_model(model.stem, model, *form, photos, count)
