"""quoll.ray on a cluster of several node processes on this machine. Needs ray; scripts/test.sh runs it where build/venv-ray has it."""
import os
import pathlib
import signal

import numpy as np
import pytest

import quoll

ray = pytest.importorskip('ray')
psutil = pytest.importorskip('psutil')
import quoll.ray  # noqa: E402

DIGITS = pathlib.Path(__file__).resolve().parents[2] / 'models/digits/digits'
MODEL = (f'{DIGITS}.param', f'{DIGITS}.bin')


@pytest.fixture(scope='module')
def cluster():
    from ray.cluster_utils import Cluster
    made = Cluster(initialize_head=True, head_node_args={'num_cpus': 1, 'include_dashboard': False})
    made.add_node(num_cpus=2)
    made.add_node(num_cpus=2)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def workers():
    return [p for p in psutil.process_iter(['cmdline']) if 'MapWorker' in ' '.join(p.info['cmdline'] or [])]


def test_columns_of_float64():
    """As tables have them."""
    images = np.random.default_rng(0).uniform(0, 1, (3, 1, 8, 8))
    worker = quoll.ray._Worker(MODEL, {'data': 'image'}, None, {})
    np.testing.assert_array_equal(worker({'image': images})['prob'], quoll.load(*MODEL).predict(images))


def test_every_row_once_though_a_worker_dies(cluster):
    count = 600
    images = np.random.default_rng(0).uniform(0, 1, (count, 1, 8, 8)).astype(np.float32)
    expected = quoll.load(*MODEL).predict(images)
    dataset = ray.data.from_items([{'id': i, 'image': images[i]} for i in range(count)], override_num_blocks=30)
    killed, rows = [], []
    for row in quoll.ray.map_batches(dataset, MODEL, 'image', batch_size=5, workers=2).iter_rows():
        rows.append(row)
        if not killed and len(rows) >= 20:
            mine = workers()
            assert mine, 'there are no workers to kill'
            killed.append(mine[0].pid)
            os.kill(mine[0].pid, signal.SIGKILL)
    assert killed and sorted(row['id'] for row in rows) == list(range(count))
    for row in rows:
        np.testing.assert_allclose(row['prob'], expected[row['id']], atol=1e-6)
