"""quoll.ray.deployment: requests at the same time, which it may run as batches, each get their own answer. Needs ray with Serve."""
import pathlib

import numpy as np
import pytest

import quoll

ray = pytest.importorskip('ray')
serve = pytest.importorskip('ray.serve')
import quoll.ray  # noqa: E402

DIGITS = pathlib.Path(__file__).resolve().parents[2] / 'models/digits/digits'
MODEL = (f'{DIGITS}.param', f'{DIGITS}.bin')


@pytest.fixture(scope='module')
def handle():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    serve.start(proxy_location='Disabled')  # requests come by the handle
    yield serve.run(quoll.ray.deployment(MODEL, max_batch_size=4, batch_wait_timeout_s=0.2), route_prefix=None)
    serve.shutdown()
    ray.shutdown()


def test_answers_of_requests_at_the_same_time(handle):
    images = np.random.default_rng(1).uniform(0, 1, (20, 1, 8, 8)).astype(np.float32)
    expected = quoll.load(*MODEL).predict(images)
    answers = [handle.remote(image) for image in images]
    for answer, row in zip(answers, expected):
        np.testing.assert_allclose(answer.result(timeout_s=60)['prob'], row, atol=1e-6)


def test_a_wrong_request_says_why_and_the_next_one_is_served(handle):
    with pytest.raises(Exception, match='channels'):
        handle.remote(np.zeros((3, 8, 8), np.float32)).result(timeout_s=60)
    assert handle.remote(np.zeros((1, 8, 8), np.float32)).result(timeout_s=60)['prob'].shape == (10,)
