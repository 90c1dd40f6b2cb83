"""What is recorded, however the stream is cut."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.catalogue import stream

import onlinevi as ovi

MODEL = ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB())


def test_the_average_loss_is_the_mean_of_the_losses_so_far() -> None:
    X, y = stream(ovi.Hinge(), count=300)
    state, first = MODEL.update_many(MODEL.init(5), X[:100], y[:100])
    state, second = MODEL.update_many(state, X[100:], y[100:])
    losses = np.concatenate([first.loss, second.loss])
    averages = np.concatenate([first.average_loss, second.average_loss])
    np.testing.assert_allclose(averages, np.cumsum(losses) / np.arange(1, 301), rtol=1e-13)
    assert second.steps.tolist() == list(range(101, 301))
    assert second.average_loss[-1] == state.average_loss


@pytest.mark.compiled
@pytest.mark.parametrize("count", [1, 5, 4095, 4096, 4097, 20_000])
def test_a_thinned_record_is_a_subset_of_the_whole(count: int) -> None:
    X, y = stream(ovi.Hinge(), count=count)
    whole = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB())
    thin = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB(), record="thinned")
    assert thin.state == whole.state
    assert len(thin.steps) <= 4096
    assert len(thin.steps) >= min(count, 2048)
    kept = thin.steps.astype(int) - 1
    assert kept[-1] == count - 1
    np.testing.assert_array_equal(thin.average_loss, whole.average_loss[kept])
    np.testing.assert_array_equal(thin.prediction, whole.prediction[kept])
    totals = np.diff(np.concatenate([[0.0], thin.steps])) @ thin.loss
    assert totals == pytest.approx(whole.loss.sum(), rel=1e-12)


@pytest.mark.compiled
def test_a_thinned_record_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = stream(ovi.Hinge(), count=9000)
    want = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB(), record="thinned")
    for values in (5, 35, 5 * 4096, 5 * 5000):
        monkeypatch.setattr("onlinevi.data.rows.BLOCK_VALUES", values)
        got = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB(), record="thinned")
        np.testing.assert_array_equal(got.steps, want.steps)
        np.testing.assert_array_equal(got.average_loss, want.average_loss)


def test_nothing_is_recorded_if_so_asked() -> None:
    X, y = stream(ovi.Hinge(), count=50)
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB(), record="none")
    assert len(trace.loss) == len(trace.steps) == 0
    assert trace.state == ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB()).state
    assert repr(trace).startswith("Trace(events=50, average_loss=0.")


@pytest.mark.compiled
def test_memory_beyond_the_data_is_what_is_recorded() -> None:
    import tracemalloc

    X, y = stream(ovi.Hinge(), count=60_000, dim=30)
    for record, most in (("none", 400_000), ("thinned", 6_000_000), ("all", 60_000 * 8 * 12)):
        ovi.learn(X[:10], y[:10], loss=ovi.Hinge(), rule=ovi.SVB(), record=record)
        tracemalloc.start()
        ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB(), record=record)
        assert tracemalloc.get_traced_memory()[1] < most, record
        tracemalloc.stop()
