"""The hand-written pages of docs/operators speak of layers that exist."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = set(re.findall(r'^QUOLL_LAYER(?:_FAST)?\(\d+, (\w+),', (ROOT / 'src/layer/layer_list.inc').read_text(), re.M))


def test_layers_of_the_mapping_tables_exist():
    rows = [line.split('|')[2:] for line in (ROOT / 'docs/operators/mace-neuropilot.md').read_text().splitlines()
            if line.startswith('| ') and not line.startswith('|---')]
    named = {name for cells in rows for name in re.findall(r'`([A-Z]\w*)`', ' '.join(cells))}
    assert len(named) > 40
    assert not named - LAYERS


@pytest.mark.parametrize('page', sorted(p.name for p in (ROOT / 'docs/operators').glob('*.md')))
def test_links_between_pages(page):
    text = (ROOT / 'docs/operators' / page).read_text()
    for target in re.findall(r'\]\(([^)#:]+)\)', text):
        assert (ROOT / 'docs/operators' / target).exists(), target
