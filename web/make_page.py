"""Joins module, engine, model and page into one file that runs from a disk.

make_page.py FOLDER MODEL.param MODEL.bin: FOLDER has quoll-core.mjs and quoll-core.wasm, and gets demo.html.
"""
import base64
import gzip
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
LIMIT = 3_000_000


def packed(data):
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def plain_script(text):
    """A module's text without its imports and exports."""
    text = re.sub(r'^import .*?;$', '', text, flags=re.M)
    return re.sub(r'^export (default \w+;)?', '', text, flags=re.M)


def main(folder, param, weights):
    folder = pathlib.Path(folder)
    core = re.sub(r'^export default Module;?$', '', (folder / 'quoll-core.mjs').read_text(), flags=re.M)
    parts = {
        'SCRIPT': '\n'.join([core, 'const createCore = Module;', plain_script((HERE / 'quoll.mjs').read_text()), (HERE / 'demo.js').read_text()]),
        'WASM': packed((folder / 'quoll-core.wasm').read_bytes()),
        'BIN': packed(pathlib.Path(weights).read_bytes()),
        'PARAM': pathlib.Path(param).read_text(),
    }
    page = (HERE / 'demo.html').read_text()
    for name, text in parts.items():
        assert page.count(f'@{name}@') == 1, name
        page = page.replace(f'@{name}@', text.replace('</script', '<\\/script'))
    data = page.encode()
    if len(data) >= LIMIT:
        sys.exit(f'demo.html has {len(data)} bytes, more than {LIMIT}')
    (folder / 'demo.html').write_bytes(data)
    print(f'{folder}/demo.html: {len(data)} bytes')


main(*sys.argv[1:])
