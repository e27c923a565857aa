"""The WebAssembly build with threads in a headless Chromium: on a page that is cross-origin isolated, and on one that is not."""
import functools
import http.server
import json
import shutil
import threading

import numpy as np
import pytest

from browser import Browser
from conftest import ROOT

PLAIN, THREADED = ROOT / 'build-wasm' / 'web', ROOT / 'build-wasm-threads' / 'web'
RUN = """(async () => {
  const bytes = async name => new Uint8Array(await (await fetch(name)).arrayBuffer());
  const engine = await (await import("./quoll.mjs")).quoll(%s);
  const net = engine.load({ param: await bytes("digits.param"), bin: await bytes("digits.bin") });
  const answers = [];
  for (const values of %s) {
    net.input("data", { sizes: [1, 8, 8], values });
    answers.push([...net.run().prob.values]);
  }
  const bench = engine.load({ param: await bytes("wide.param") });
  bench.input("x", { sizes: [16, 64, 64], values: new Float32Array(16 * 64 * 64).map((_, i) => (i * 37 %% 101) / 101 - 0.5) });
  const wide = [...bench.run().y.values.subarray(0, 64 * 64)];
  return { threads: engine.threads, isolated: crossOriginIsolated, answers, wide };
})()"""
# Work that is shared among threads.
WIDE = "7767517\n3 3\nInput x 0 1 x 0=64 1=64 2=16\nPooling p 1 1 x p 0=1 1=5 2=1 3=2\nUnaryOp u 1 1 p y 0=7\n"


class Handler(http.server.SimpleHTTPRequestHandler):
    isolated = True
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, '.mjs': 'text/javascript', '.wasm': 'application/wasm'}

    def end_headers(self):
        if self.isolated:
            self.send_header('Cross-Origin-Opener-Policy', 'same-origin')
            self.send_header('Cross-Origin-Embedder-Policy', 'require-corp')
        super().end_headers()

    def log_message(self, *_):
        pass


class OpenHandler(Handler):
    isolated = False


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    """Both builds in one folder, as docs/build/wasm.md says."""
    if not (PLAIN / 'quoll.mjs').is_file() or not (THREADED / 'quoll-core-threads.mjs').is_file():
        pytest.skip('no WebAssembly builds (cmake --preset wasm, wasm-threads)')
    folder = tmp_path_factory.mktemp('site')
    for file in [*PLAIN.glob('quoll*'), *THREADED.glob('quoll*'), *(ROOT / 'models' / 'digits').glob('digits.*')]:
        shutil.copy(file, folder)
    (folder / 'wide.param').write_text(WIDE)
    (folder / 'page.html').write_text('<!doctype html><title>threads</title>')
    return folder


def answers(site, handler, options):
    reference = np.load(ROOT / 'models' / 'digits' / 'digits_reference.npz')
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with Browser() as browser:
            browser.open(f'http://127.0.0.1:{server.server_port}/page.html')
            data = [x.ravel().tolist() for x in reference['data'][:3]]
            said = browser.js(RUN % (json.dumps(options), json.dumps(data)))
            assert browser.errors == []
    finally:
        server.shutdown(), server.server_close()
    np.testing.assert_allclose(said['answers'], reference['prob_onnxruntime'][:3], rtol=1e-4, atol=1e-6)
    return said


def test_threads_of_an_isolated_page(site):
    said, alone = answers(site, Handler, {'threads': 3}), answers(site, Handler, {'threads': 1})
    assert said['isolated'] and said['threads'] == 3 and alone['threads'] == 1
    np.testing.assert_allclose(said['wide'], alone['wide'], rtol=1e-6)
    x = (np.arange(16 * 64 * 64) * 37 % 101 / 101 - 0.5).reshape(16, 64, 64)[0]
    padded, count = np.pad(x, 2), np.pad(np.ones_like(x), 2)
    windows = [(padded[i:i + 64, j:j + 64], count[i:i + 64, j:j + 64]) for i in range(5) for j in range(5)]
    mean = sum(w for w, _ in windows) / sum(c for _, c in windows)
    np.testing.assert_allclose(np.reshape(said['wide'], (64, 64)), np.exp(mean), rtol=1e-5)


def test_another_page_has_one_thread(site):
    said = answers(site, OpenHandler, {})
    assert not said['isolated'] and said['threads'] == 1
