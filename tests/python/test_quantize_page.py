"""enginequantize's report in a headless Chromium: drawn, sortable, zoomable. Skipped where there is no chromium."""
import html.parser
import json
import os
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest

from conftest import ROOT, run_program

DIGITS = ROOT / 'models' / 'digits'
CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser')
pytestmark = [pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine'),
              pytest.mark.skipif(CHROMIUM is None, reason='no chromium')]
# What a user does: sorts by a column twice, zooms the series, opens a layer.
ACTIONS = """<script>
const heads = () => [...document.querySelectorAll('#layers th')], own = () => heads().find(h => h.textContent.startsWith('own dB'));
own().click(); own().click();
const svg = document.querySelector('#series svg'), box = svg.getBoundingClientRect();
for (let i = 0; i < 4; i++)
  document.querySelector('#series svg').dispatchEvent(new WheelEvent('wheel', {deltaY: -100, clientX: box.left + box.width / 2, cancelable: true}));
document.querySelector('#layers tr.row').click();
</script>"""


class Page(html.parser.HTMLParser):
    """Cells by row of the tables, and how many circles and bars there are, by the id around them."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.counts, self.ids, self.cell = {}, {}, [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        name = dict(attrs).get('id')
        if name in ('outputs', 'layers', 'series', 'frontier', 'cards'):
            self.at = name
        if tag == 'tr':
            self.rows.setdefault(self.at, []).append([])
        self.cell = tag in ('td', 'th')
        if self.cell:
            self.rows[self.at][-1].append('')
        if tag in ('circle', 'rect'):
            self.counts[self.at, tag] = self.counts.get((self.at, tag), 0) + 1

    def handle_data(self, data):
        if self.cell:
            self.rows[self.at][-1][-1] += data


def chromium(page, folder, *args):
    command = [CHROMIUM, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', f'--user-data-dir={folder}/profile',
               '--virtual-time-budget=3000', '--window-size=1200,1600', *args, page.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout.decode()


def png_pixels(path):
    """[h][w][channels] of an 8-bit PNG without interlacing."""
    data, at, packed = path.read_bytes(), 8, b''
    w, h, depth, kind = struct.unpack('>IIBB', data[16:26])
    while at < len(data):
        size, name = struct.unpack('>I4s', data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if name == b'IDAT' else b''
        at += size + 12
    channels = {2: 3, 6: 4}[kind]
    assert depth == 8
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(h, 1 + w * channels)
    out = np.zeros((h, w, channels), np.uint8)
    for y, line in enumerate(lines):
        row, above = line[1:].astype(int).reshape(w, channels), out[y - 1].astype(int) if y else np.zeros((w, channels), int)
        if line[0] == 0:
            out[y] = row
        elif line[0] == 2:
            out[y] = (row + above) & 255
        else:
            left, corner = np.zeros(channels, int), np.zeros(channels, int)
            for x in range(w):
                paeth = left + above[x] - corner
                near = [abs(paeth - v) for v in (left, above[x], corner)]
                best = np.where((near[0] <= near[1]) & (near[0] <= near[2]), left, np.where(near[1] <= near[2], above[x], corner))
                guess = {1: left, 3: (left + above[x]) // 2, 4: best}[int(line[0])]
                corner, left = above[x], (row[x] + guess) & 255
                out[y, x] = left
    return out


@pytest.fixture(scope='module')
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp('report')
    np.save(folder / 'x.npy', (np.load(DIGITS / 'heldout.npz')['images'].astype(np.float32) / 255)[:, None])
    done = run_program('enginequantize', DIGITS / 'digits.param', DIGITS / 'digits.bin', folder / 'q.param', folder / 'q.bin', '--data',
                       folder / 'x.npy', '--limit', 100, '--max-drop', '50%', '--report', folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads((folder / 'report.json').read_text())


def test_page_as_drawn(report):
    folder, data = report
    page = Page(chromium(folder / 'report.html', folder, '--dump-dom'))
    assert [row[0] for row in page.rows['layers'][1:]] == [layer['name'] for layer in data['layers']]
    assert page.rows['outputs'][1][0] == data['accuracy']['outputs'][0]['blob']
    assert page.counts['series', 'circle'] == 3 * len(data['layers'])  # three series
    assert page.counts['frontier', 'circle'] == len(data['frontier'])


def test_page_sorts_and_zooms(report):
    folder, data = report
    text = (folder / 'report.html').read_text().replace('</html>', ACTIONS + '</html>')
    (folder / 'acted.html').write_text(text)
    page = Page(chromium(folder / 'acted.html', folder, '--dump-dom'))
    head, rows = page.rows['layers'][0], [row for row in page.rows['layers'][1:] if len(row) > 1]
    column = [i for i, name in enumerate(head) if name.startswith('own dB')][0]
    values = [float(row[column]) for row in rows]
    assert values == sorted(values, reverse=True) and len(set(values)) > 2 and head[column].endswith('\u25bc')
    assert page.counts['series', 'circle'] < 3 * len(data['layers'])  # zoomed into some
    opened = [layer for layer in data['layers'] if layer['name'] == rows[0][0]][0]['histogram']
    assert page.counts['layers', 'rect'] == len(opened['positive']) + len(opened['negative'])


def test_screenshot(report):
    folder, _ = report
    chromium(folder / 'report.html', folder, f'--screenshot={folder}/page.png')
    pixels = png_pixels(folder / 'page.png')
    assert pixels.shape[:2] == (1600, 1200)
    colours = {tuple(c) for c in pixels[::2, ::2].reshape(-1, pixels.shape[2])[:, :3]}
    assert {(0x25, 0x63, 0xeb), (0xea, 0x58, 0x0c)} <= colours  # the series
    drawn = (pixels[:, :, :3] != pixels[0, 0, :3]).any(2)
    filled = drawn.reshape(16, 100, 1200).any((1, 2))
    assert filled[:10].all()  # from top to bottom, no part is blank
    assert not drawn[:, :4].any() and not drawn[:, 1170:1180].any()  # within its margins
