"""A checkpoint that was damaged or forged is refused, before it takes memory."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoints import SAMPLES, little_memory, load_bytes, places, rewrite, sealed
from helpers.states import arrays_of

import onlinevi as ovi
from onlinevi.checkpoint import CheckpointError

# --- damage


def test_any_flipped_bit_is_found(saved: bytes, path: Path) -> None:
    rng = np.random.default_rng(0)
    for place in range(len(saved)):
        damaged = bytearray(saved)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(CheckpointError):
            load_bytes(damaged)


def test_any_cut_is_found(saved: bytes, path: Path) -> None:
    for size in [*range(0, len(saved), 37), *range(len(saved) - 80, len(saved))]:
        with pytest.raises(CheckpointError):
            load_bytes(saved[:size])
    with pytest.raises(CheckpointError):
        load_bytes(saved + b"\0")


def test_foreign_files_are_refused(path: Path) -> None:
    np.savez(path.with_suffix(".npz"), belief=np.zeros(3))
    for raw, why in (
        (b"", "some other file"),
        (b"\x80\x04pickle", "some other file"),
        (b'{"format": "onlinevi checkpoint"}', "some other file"),
        (path.with_suffix(".npz").read_bytes(), "does not end in a seal"),
    ):
        path.write_bytes(raw)
        with pytest.raises(CheckpointError, match=why) as refused:
            ovi.load(path)
        assert str(path) in str(refused.value)
    with pytest.raises(FileNotFoundError):
        ovi.load(path.with_name("nowhere"))


# --- forgery: the seal fits, what it seals was made up


def test_a_forged_file_is_refused_or_loads_a_finite_state(saved: bytes) -> None:
    """Bytes anywhere are changed and the file is sealed anew."""
    rng, loaded = np.random.default_rng(1), 0
    for _ in range(3_000):
        forged = bytearray(saved)
        for place in rng.integers(0, len(saved), rng.integers(1, 4)):
            forged[place] = rng.integers(256)
        try:
            state = load_bytes(sealed(forged)).state
        except CheckpointError:
            continue
        assert np.isfinite(state.array).all()
        loaded += 1
    assert 0 < loaded < 2_000  # some bytes of a zip file mean nothing


HUGE = 10**15
FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "dim": lambda header: header["state"]["facts"].update(dim=HUGE),
    "dim not whole": lambda header: header["state"]["facts"].update(dim=5.0),
    "negative dim": lambda header: header["state"]["facts"].update(dim=-5),
    "horizon": lambda header: header["state"]["facts"].update(horizon="soon"),
    "a rank and a dim": lambda header: (
        header["learner"].update(family={"is": "LowRank", "rank": HUGE}),
        header["state"]["facts"].update(dim=HUGE),
    ),
    "a run": lambda header: header["learner"]["family"].update(prior_std={"runs": [[1.0, HUGE]]}),
    "many runs": lambda header: header["learner"]["family"].update(prior_std=[{"runs": [[1.0, 3_000]]}] * 1_000),
    "a negative run": lambda header: header["learner"]["family"].update(prior_std={"runs": [[1.0, -5]]}),
    "a class that is not ours": lambda header: header["learner"].update(loss={"is": "Popen", "args": "true"}),
    "a config that is none": lambda header: header.update(learner={"is": ["Linear"]}),
    "a loss as learner": lambda header: header.update(learner={"is": "Hinge"}),
    "a bad setting": lambda header: header["learner"].update(discount=7.0),
    "a setting of another type": lambda header: header["learner"].update(discount=[1.0]),
    "sums": lambda header: header["state"]["facts"]["sums"].update(count="3"),
    "no sums": lambda header: header["state"]["facts"].pop("sums"),
    "another format": lambda header: header.update(format="tar"),
    "version": lambda header: header.update(version=True),
    "no arrays": lambda header: header.update(arrays=[]),
    "not a number": lambda header: header["state"]["facts"]["sums"].update(loss=float("nan")),
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forged_header_is_refused_before_memory_is_taken(forgery: Any, saved: bytes, path: Path) -> None:
    rewrite(path, saved, forgery)
    with little_memory(), pytest.raises(CheckpointError):
        ovi.load(path)


STRANGE = [None, True, -1, 0, 3, HUGE, 10**400, 0.5, -0.0, 1e308, "inf", "", [], {}, [1.0], {"is": "Auto"}, {"float": "nan"}]


@pytest.mark.parametrize(("sample", "tries"), [("auto_v1.ovi", 150), ("classes_v1.ovi", 100)])
def test_strange_values_anywhere_in_a_header_are_refused_or_do_no_harm(sample: str, tries: int, path: Path) -> None:
    """In the largest headers there are: of a default with a pool, inputs and residuals, and of several classes."""
    raw = (SAMPLES / sample).read_bytes()
    rng, refused = np.random.default_rng(2), 0

    def edit(header: dict[str, Any]) -> None:
        everywhere = [place for part in ("learner", "state") for place in places(header[part])]
        container, key = everywhere[rng.integers(len(everywhere))]
        container[key] = STRANGE[rng.integers(len(STRANGE))]

    for _ in range(tries):
        rewrite(path, raw, edit)
        try:
            state = ovi.load(path).state
        except CheckpointError:
            refused += 1
            continue
        assert all(np.isfinite(array).all() for array in arrays_of(state))
    assert tries / 2 < refused < tries


def test_a_forged_pool_is_refused_before_memory_is_taken(path: Path) -> None:
    raw = (SAMPLES / "auto_v1.ovi").read_bytes()
    load_bytes(raw)  # the compiler is imported here
    rewrite(path, raw, lambda header: header["state"]["pool"]["state"].update(dim=HUGE))
    with little_memory(), pytest.raises(CheckpointError, match="different numbers of features"):
        ovi.load(path)
    rewrite(path, raw, lambda header: header["state"]["pool"]["state"]["learners"][0].update(dim=HUGE))
    with little_memory(), pytest.raises(CheckpointError, match="features, but has a belief of"):
        ovi.load(path)
    rewrite(path, raw, lambda header: header["state"]["pool"]["learner"]["learners"].extend([{"is": "AdaHedge"}] * 1_000))
    with little_memory(), pytest.raises(CheckpointError, match="make no Aggregate"):
        ovi.load(path)


def test_a_header_nested_deeper_than_python_goes_is_refused() -> None:
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
        archive.comment = b"sha256:" + b"0" * 64
        archive.writestr("header.json", "[" * 100_000)
    with pytest.raises(CheckpointError, match="RecursionError"):
        load_bytes(sealed(buffer.getvalue()))


def test_forged_sizes_and_contents_of_arrays_are_refused(saved: bytes, path: Path) -> None:
    for values in (HUGE, -1, 9.0, True, 11):
        rewrite(path, saved, lambda header: None, table=lambda table, v=values: table["belief"].update(values=v))  # type: ignore[misc]
        with little_memory(), pytest.raises(CheckpointError, match="claims"):
            ovi.load(path)
    rewrite(path, saved, lambda header: None, table=lambda table: table["belief"].update(sha256="0" * 64))
    with pytest.raises(CheckpointError, match="another sha256"):
        ovi.load(path)
    rewrite(path, saved, lambda header: None, add={"belief": np.full(10, np.inf)})
    with pytest.raises(CheckpointError, match="not finite"):
        ovi.load(path)
    rewrite(path, saved, lambda header: None, add={"belief": np.ones(12)})
    with pytest.raises(CheckpointError, match="5 features, but has a belief of 12 values"):
        ovi.load(path)
    rewrite(path, saved, lambda header: None, drop={"totals"})
    with pytest.raises(CheckpointError, match="'totals' has 0 values"):
        ovi.load(path)


def test_a_zip_bomb_is_refused(saved: bytes, path: Path) -> None:
    rewrite(path, saved, lambda header: None, add={"bomb": np.zeros(3_000_000)}, compression=zipfile.ZIP_DEFLATED)
    with little_memory(), pytest.raises(CheckpointError, match="compressed"):
        ovi.load(path)


def test_overlapping_parts_are_refused(saved: bytes) -> None:
    """Two names for the bytes of one array would claim more than the file has, again and again."""
    with zipfile.ZipFile(buffer := io.BytesIO(saved), "a") as archive:
        archive.comment = b"sha256:" + b"0" * 64
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("belief.npy", b"")
    with pytest.raises(CheckpointError, match="names other arrays"):
        load_bytes(sealed(buffer.getvalue()))
    with zipfile.ZipFile(buffer := io.BytesIO(saved), "a") as archive:
        archive.comment = b"sha256:" + b"0" * 64
        archive.infolist()[1].file_size = archive.infolist()[1].compress_size = len(saved)
        archive._didModify = True  # type: ignore[attr-defined]
    with pytest.raises(CheckpointError, match="larger than the file"):
        load_bytes(sealed(buffer.getvalue()))
