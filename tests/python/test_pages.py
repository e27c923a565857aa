"""The pages of engineinfo and benchmark, and the demo of the WebAssembly build, in a browser by clicks. QUOLL_SHOTS: a folder for pictures of them."""
import json
import math
import os
import pathlib
import re

import pytest

from browser import Browser
from conftest import ROOT, run_program
from graphs import BUNDLED, random_weights

DIGITS = [ROOT / 'models' / 'digits' / f'digits.{end}' for end in ('param', 'bin')]
SQUEEZENET = ROOT / 'benchmark' / 'models' / 'squeezenet.param'


def shot(browser, name):
    if os.environ.get('QUOLL_SHOTS'):
        browser.screenshot(pathlib.Path(os.environ['QUOLL_SHOTS']) / f'{name}.png')


@pytest.fixture(scope='module')
def browser():
    with Browser() as b:
        yield b
        assert b.errors == []


def test_model_page(browser, tmp_path):
    done = run_program('engineinfo', SQUEEZENET, '--html', tmp_path / 'm.html', '--json', tmp_path / 'm.json')
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / 'm.json').read_text())
    assert not re.search(r'(src|href)=', (tmp_path / 'm.html').read_text())
    browser.open(tmp_path / 'm.html', 'document.querySelectorAll("#layers tr").length > 1')
    assert browser.js('document.querySelectorAll("#layers tr.row").length') == len(facts['layers'])
    assert browser.js('document.querySelectorAll("g.layer").length') == len(facts['layers'])
    # Arrows lead to what they point at.
    assert browser.js('getComputedStyle(document.querySelector("path[data-from]")).markerEnd').startswith('url(')
    browser.type('#search', 'conv pad_left')
    hits = [l for l in facts['layers'] if 'conv' in l['name'] and 'pad_left' in l['fields']]
    assert 1 < len(hits) < len(facts['layers'])
    assert browser.js('document.getElementById("found").textContent') == f'{len(hits)} of {len(facts["layers"])}'
    assert browser.js('document.querySelectorAll("#layers tr.row").length') == len(hits)
    side = browser.js('document.getElementById("side").innerText')
    assert hits[0]['name'] in side and 'num_output' in side and hits[0]['fields']['num_output'] in side
    box = 'document.querySelector(".graph svg").viewBox.baseVal.width'
    before = browser.js(box)
    browser.wheel('.graph svg', -300)
    zoomed = browser.js(box)
    assert zoomed < before
    browser.click('#fit')
    assert browser.js(box) > zoomed
    shot(browser, 'model')
    # By multiply-accumulates, most first.
    browser.js('document.querySelector("#search").value = ""; document.querySelector("#search").oninput()')
    browser.click('#layers th:nth-child(5)')
    most = max(facts['layers'], key=lambda l: l['macs'] or 0)
    first = browser.js('[...document.querySelectorAll("#layers tr.row")[0].children].map(td => td.innerText)')
    assert first[2] == most['name'] and first[4].replace(',', '') == str(most['macs'])


def test_model_page_of_open_sizes(browser, data, tmp_path):
    """It begins at the first layer, and says how the sizes can be given."""
    done = run_program('engineinfo', data / 'models' / 'fastestdet' / 'FastestDet.param', '--html', tmp_path / 'm.html', '--brief')
    assert done.returncode == 0, done.stderr
    browser.open(tmp_path / 'm.html', 'document.querySelectorAll("#layers tr").length > 1')
    middles = browser.js('[".graph", "g.layer rect"].map(s => document.querySelector(s).getBoundingClientRect()).map(r => r.x + r.width / 2)')
    assert abs(middles[0] - middles[1]) < 5
    assert 'engineinfo --shape input.1=C,H,W' in browser.js('document.body.innerText')
    assert '\u2265 0' not in browser.js('document.getElementById("cards").innerText')
    shot(browser, 'model-open')


def test_profile_page(browser, tmp_path):
    page, report = tmp_path / 'p.html', tmp_path / 'p.json'
    done = run_program('benchmark', '5', '1', f'param={DIGITS[0]}', '--profile', page, '--json', report)
    assert done.returncode == 0, done.stderr
    row = json.loads(report.read_text())['rows'][0]
    layers = row['profile']['layers'] if 'profile' in row else None
    browser.open(page, 'document.querySelectorAll("#layers tr").length > 1')
    names = browser.js('[...document.querySelectorAll("#layers tr.row")].map(tr => tr.children[2].innerText)')
    assert 'stem' in names and 'fc' in names and (layers is None or len(names) == len(layers))
    medians = browser.js('[...document.querySelectorAll("#layers tr.row")].map(tr => [3, 4, 5].map(i => +tr.children[i].innerText))')
    assert all(low <= mid <= high for mid, low, high in medians)
    assert browser.js('document.querySelectorAll("#timeline rect").length') == len(names)
    ticks = browser.js('[...document.querySelectorAll("#timeline text")].map(t => t.textContent).filter(t => t.endsWith(" ms"))')
    assert len(ticks) >= 3 and [float(t.split()[0]) for t in ticks] == sorted(float(t.split()[0]) for t in ticks)
    assert browser.js('document.querySelectorAll("#runs circle").length') == 5
    browser.click('#layers th:nth-child(4)')
    sorted_medians = browser.js('[...document.querySelectorAll("#layers tr.row")].map(tr => +tr.children[3].innerText)')
    assert sorted_medians == sorted(sorted_medians, reverse=True)
    # On a telephone only tables and charts are scrolled sideways, not the page.
    browser.call('Emulation.setDeviceMetricsOverride', width=390, height=844, deviceScaleFactor=1, mobile=True)
    try:
        assert browser.js('document.documentElement.scrollWidth') == 390
    finally:
        browser.call('Emulation.setDeviceMetricsOverride', width=1280, height=900, deviceScaleFactor=1, mobile=False)
    browser.wheel('#timeline svg', -300)
    zoomed = browser.js('[...document.querySelectorAll("#timeline text")].map(t => t.textContent).filter(t => t.endsWith(" ms"))')
    assert zoomed != ticks
    shot(browser, 'profile')
    browser.type('#search', 'Convolution')
    assert 0 < browser.js('document.querySelectorAll("#layers tr.row").length') < len(names)


# ---------------------------------------------------------------- the demo page

def ink(browser, points):
    x, y = browser.js('(() => { const p = document.getElementById("pad"); p.scrollIntoView(); const r = p.getBoundingClientRect(); return [r.x, r.y] })()')
    browser.drag([(x + a, y + b) for a, b in points])


def line(a, b, steps=12):
    return [(a[0] + (b[0] - a[0]) * i / steps, a[1] + (b[1] - a[1]) * i / steps) for i in range(steps + 1)]


@pytest.fixture(scope='module')
def demo():
    page = ROOT / 'build-wasm' / 'web' / 'demo.html'
    if not page.is_file():
        pytest.skip('no WebAssembly build: cmake --preset wasm')
    assert page.stat().st_size < 3_000_000
    with Browser() as b:
        b.call('Network.enable')
        b.call('Network.emulateNetworkConditions', offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        b.open(page, 'document.documentElement.dataset.ready === "1"')
        yield b
        assert b.errors == []


def test_digits_are_read(demo):
    ring = [(128 + 55 * math.sin(t / 20 * 2 * math.pi), 128 - 85 * math.cos(t / 20 * 2 * math.pi)) for t in range(21)]
    seven = line((60, 50), (190, 50)) + line((190, 50), (110, 220))
    one = line((85, 80), (135, 35)) + line((135, 35), (135, 225))
    four = line((140, 30), (60, 150)) + line((60, 150), (190, 150)) + line((160, 100), (160, 225))
    for points, digit in ((ring, '0'), (seven, '7'), (one, '1'), (four, '4')):
        demo.click('#clear')
        ink(demo, points)
        assert demo.js('document.getElementById("digit").textContent') == digit
    assert demo.js('document.querySelectorAll("#times tr").length') > 5
    shot(demo, 'demo-digits')


def drop(demo, files, photo, ready):
    """The model first: it runs at once on a picture that is there already."""
    for some in files, [photo]:
        demo.js('document.getElementById("status").textContent = ""')
        demo.choose_files('#files', some)
        demo.wait('/^Model: inputs| ms$/.test(document.getElementById("status").textContent)')
    demo.wait(ready)


RAN = '/ ms$/.test(document.getElementById("status").textContent)'


def boxes_found(demo):
    return int(demo.js('document.getElementById("results").textContent').split()[0])


def test_a_detector_is_dropped_in(demo, data, tmp_path):
    """FastestDet and its picture, nothing set by hand; with names of classes."""
    names = tmp_path / 'names.txt'
    names.write_text('person\n' + 'thing\n' * 79)
    files = [data / 'models' / 'fastestdet' / f'FastestDet.{end}' for end in ('param', 'bin')]
    drop(demo, [*files, names], data / 'images' / 'street.jpg', RAN)
    assert boxes_found(demo) >= 2
    assert demo.js('document.querySelectorAll("#times tr").length') > 50
    demo.js('document.getElementById("photo").scrollIntoView()')
    shot(demo, 'demo-boxes')


def test_the_face_detector_is_dropped_in(demo, data):
    files = [data / 'models' / 'slim-320' / f'slim_320.{end}' for end in ('param', 'bin')]
    for photo in sorted((data / 'images').glob('faces-*.jpg')):
        drop(demo, files, photo, RAN)
        done = run_program('detect_faces', *files, photo)
        assert boxes_found(demo) == int(done.stdout.splitlines()[-1].split()[0]), photo
    demo.js('document.getElementById("photo").scrollIntoView()')
    shot(demo, 'demo-faces')


@pytest.mark.parametrize('place', ['#drop', '#times-of'])
def test_files_are_dropped(demo, place, data):
    """On the box, and on a part of the page that is no place for files."""
    demo.js('document.getElementById("results").textContent = ""')
    demo.drop_files(place, [data / 'models' / 'slim-320' / f'slim_320.{end}' for end in ('param', 'bin')])
    demo.wait('/^Model: inputs| ms$/.test(document.getElementById("status").textContent)')
    demo.drop_files(place, [data / 'images' / 'faces-1.jpg'])
    demo.wait('/boxes/.test(document.getElementById("results").textContent)')
    assert demo.js('document.querySelectorAll("#drop.over").length') == 0


@pytest.mark.parametrize('name', ['squeezenet', 'mobilenet_v3'])
def test_a_classifier_is_dropped_in(demo, name, data, tmp_path):
    param = BUNDLED[0].parent / f'{name}.param'
    binary = random_weights(param, tmp_path)
    drop(demo, [param, binary], data / 'images' / 'street.jpg', RAN)
    assert demo.js('document.querySelectorAll("#results .row").length') == 5
    times = demo.js('[...document.querySelectorAll("#times tr")].slice(1).map(r => +r.children[2].textContent)')
    assert len(times) > 30 and all(ms >= 0 for ms in times) and sum(times) > 0


def test_the_camera(demo, tmp_path):
    """Chromium's own test picture, until the button is pressed again."""
    param = BUNDLED[0].parent / 'squeezenet.param'
    demo.choose_files('#files', [param, random_weights(param, tmp_path)])
    demo.wait('/^Model: inputs| ms$/.test(document.getElementById("status").textContent)')
    demo.click('#camera')
    demo.wait('document.getElementById("photo").width === 640 && ' + RAN)
    assert demo.js('document.querySelectorAll("#results .row").length') == 5
    demo.js('document.getElementById("photo").scrollIntoView()')
    shot(demo, 'demo-camera')
    demo.click('#camera')
    demo.wait('document.getElementById("video").srcObject.getTracks().every(t => t.readyState === "ended")')


def test_errors_are_said(demo, tmp_path):
    (tmp_path / 'x.param').write_text('7767517\n1 1\nInput in 0 1\n')
    (tmp_path / 'x.bin').write_bytes(b'')
    demo.choose_files('#files', [tmp_path / 'x.param', tmp_path / 'x.bin'])
    demo.wait('document.getElementById("status").className === "error" && /Input/.test(document.getElementById("status").textContent)')
