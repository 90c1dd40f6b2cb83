"""The data sets: the right numbers in the right order, found where they should be, refused where they are wrong."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from onlinevi import datasets
from onlinevi.data import replace_file
from onlinevi.data.catalogue import storage, tables
from onlinevi.data.catalogue.catalogue import CATALOGUE
from onlinevi.data.catalogue.entry import Table

SHAPES = {
    "toy": (10_000, 2),
    "breast": (569, 30),
    "pima": (768, 8),
    "cover": (581_012, 54),
    "boston": (506, 13),
    "california": (20_640, 8),
    "a9a": (32_561, 123),
    "electricity": (45_312, 8),
}
POSITIVES = {"breast": 357, "pima": 268, "cover": 283_301, "a9a": 7_841, "electricity": 19_237}
"""As their publishers count them: benign, diabetic, lodgepole pine, above 50,000 dollars, price up."""
FIRST_ROWS = {
    "breast": (17.99, 10.38, 122.8),
    "pima": (6.0, 148.0, 72.0),
    "cover": (2596.0, 51.0, 3.0),
    "boston": (0.00632, 18.0, 2.31),
    "california": (-122.23, 37.88, 41.0),
    "electricity": (0.0, 2.0, 0.0),
}

STAND_INS: dict[str, tuple[bytes, np.ndarray, list[float]]] = {
    "pima": (
        b"pregnancies,glucose,blood_pressure,skin_thickness,insulin,bmi,diabetes_pedigree,age,outcome\n"
        b"6,148,72,35,0,33.6,0.627,50,1\n1,85,66,29,0,26.6,0.351,31,0\n",
        np.array([[6, 148, 72, 35, 0, 33.6, 0.627, 50], [1, 85, 66, 29, 0, 26.6, 0.351, 31]]),
        [1.0, -1.0],
    ),
    "boston": (b"rooms,age,medv\n6.5,65.2,24.00\n7,1,21.60\n", np.array([[6.5, 65.2], [7.0, 1.0]]), [24.0, 21.6]),
    "california": (b"longitude,median_house_value\n-122.23,452600\n-1,5\n", np.array([[-122.23], [-1.0]]), [452600.0, 5.0]),
    "cover": (
        b"".join(b"%d,-6," % row + b"0," * 51 + b"1,%d\n" % kind for row, kind in ((2596, 5), (2590, 2))),
        np.array([[2596.0, -6.0] + [0.0] * 51 + [1.0], [2590.0, -6.0] + [0.0] * 51 + [1.0]]),
        [-1.0, 1.0],
    ),
    "a9a": (
        b"-1 3:1 11:1 \n+1 123:0.5 \n-1 \n",
        np.stack([np.eye(123)[2] + np.eye(123)[10], 0.5 * np.eye(123)[122], np.zeros(123)]),
        [-1.0, 1.0, -1.0],
    ),
    "electricity": (b"date,day,class\n0,2,UP\n0.5,3,DOWN\n", np.array([[0.0, 2.0], [0.5, 3.0]]), [1.0, -1.0]),
}
"""A few rows in each file's format: content, features, labels."""


def zipped(text: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("electricity.csv", text)
    return buffer.getvalue()


PACKING: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zip": zipped, ".csv": bytes}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test alone."""
    monkeypatch.setattr(storage, "user_cache", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def own(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder that holds a stand-in for every file, with a catalogue that expects them and knows no address."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv(storage.VARIABLE, str(folder))
    for name, (text, _, _) in STAND_INS.items():
        file = CATALOGUE[name].file
        assert file is not None
        expected = replace(file, sha256=hashlib.sha256(text).hexdigest(), origins=())
        monkeypatch.setitem(CATALOGUE, name, replace(CATALOGUE[name], file=expected, package=None))
        (folder / file.name).write_bytes(PACKING[Path(file.name).suffix](text))
    return folder


def real(name: str) -> datasets.Dataset:
    if not datasets.status(name).available:
        pytest.skip(f"{name} is not on this machine")
    return datasets.load(name)


@pytest.mark.parametrize("name", SHAPES)
def test_the_real_data(name: str) -> None:
    """Shape, order, labels and types, for what is on this machine."""
    data = real(name)
    assert data.X.shape == SHAPES[name]
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.y.shape == SHAPES[name][:1]
    assert len(set(data.names)) == SHAPES[name][1]
    assert data.provenance
    assert data.licence
    if name != "a9a":
        assert data.X.flags.c_contiguous
    if name in FIRST_ROWS:
        assert tuple(data.X[0, :3]) == FIRST_ROWS[name]
    if name in POSITIVES:
        assert np.unique(data.y).tolist() == [-1.0, 1.0]
        assert (data.y == 1.0).sum() == POSITIVES[name]


def test_names_in_the_order_of_the_paper() -> None:
    assert datasets.names() == tuple(SHAPES)


def test_breast_names_are_those_of_its_package() -> None:
    sklearn = pytest.importorskip("sklearn.datasets")
    assert datasets.load("breast").names == tuple(sklearn.load_breast_cancer().feature_names)


def test_the_california_copy_is_whole() -> None:
    """A popular copy blanks 207 values; this one has every room."""
    data = real("california")
    assert np.isfinite(data.X).all()
    assert data.names[4] == "total_bedrooms"
    assert data.X[:, 4].min() == 1.0


def test_toy_is_drawn_as_stated() -> None:
    """Draws in order: labels, then noise; + rows through the lower Cholesky factor, by hand [[1, 0], [1, √2]]."""
    rng = np.random.default_rng(7)
    positive = rng.random(10_000) < 2 / 3
    z = rng.standard_normal((10_000, 2))
    X = np.where(positive[:, None], np.stack([1 + z[:, 0], 1 + z[:, 0] + np.sqrt(2) * z[:, 1]], axis=1), z - 1)
    toy = datasets.load("toy", seed=7)
    np.testing.assert_allclose(toy.X, X, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(toy.y, np.where(positive, 1.0, -1.0))
    np.testing.assert_array_equal(datasets.load("toy").X, datasets.load("toy", seed=0).X)
    assert (toy.X != datasets.load("toy").X).any()


def test_toy_has_the_stated_moments() -> None:
    toy = datasets.load("toy", seed=1)
    plus = toy.X[toy.y == 1.0]
    np.testing.assert_allclose((toy.y == 1.0).mean(), 2 / 3, atol=0.02)
    np.testing.assert_allclose(plus.mean(axis=0), [1.0, 1.0], atol=0.1)
    np.testing.assert_allclose(np.cov(plus.T), [[1.0, 1.0], [1.0, 3.0]], atol=0.2)


@pytest.mark.parametrize("name", STAND_INS)
def test_each_format(own: Path, name: str) -> None:
    _, X, y = STAND_INS[name]
    data = datasets.load(name)
    np.testing.assert_array_equal(data.X.toarray() if scipy.sparse.issparse(data.X) else data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.X.dtype == data.y.dtype == np.float64
    assert storage.VARIABLE in data.provenance
    assert datasets.fetch(name) == datasets.path(name) == own / CATALOGUE[name].file.name  # type: ignore[union-attr]


def test_own_folder_comes_before_the_cache(own: Path, cache: Path) -> None:
    cache.mkdir()
    (own / "pima.csv").rename(cache / "pima.csv")
    assert datasets.status("pima") == datasets.Status("pima", True, "the user's cache", cache / "pima.csv")
    assert datasets.load("pima").X.shape == (2, 8)
    (own / "pima.csv").write_bytes((cache / "pima.csv").read_bytes())
    assert datasets.status("pima").path == own / "pima.csv"


@pytest.mark.parametrize("name", STAND_INS)
def test_wrong_content_is_refused(own: Path, name: str) -> None:
    """Also where the right content was parsed before."""
    file = CATALOGUE[name].file
    assert file is not None
    datasets.load(name)
    wrong = STAND_INS[name][0].replace(b"0", b"4")
    (own / file.name).write_bytes(PACKING[Path(file.name).suffix](wrong))
    with pytest.raises(datasets.WrongContent) as refused:
        datasets.load(name)
    for part in (str(own / file.name), hashlib.sha256(wrong).hexdigest(), file.sha256, "remove the file"):
        assert part in str(refused.value)


@pytest.mark.parametrize("name", ["cover", "a9a", "electricity"])
def test_a_file_cut_short_is_refused(own: Path, name: str) -> None:
    path = datasets.path(name)
    assert path is not None
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(datasets.WrongContent, match="cannot be unpacked"):
        datasets.load(name)


def test_what_cannot_be_had_says_where_and_how(own: Path, cache: Path) -> None:
    (own / "pima.csv").unlink()
    assert datasets.status("pima") == datasets.Status("pima", False, "nowhere", None)
    with pytest.raises(datasets.DataUnavailable) as error:
        datasets.load("pima")
    assert isinstance(error.value, LookupError)
    assert str(error.value).splitlines() == [
        "the data set 'pima' cannot be had. Looked in:",
        f"  ONLINEVI_DATA: no pima.csv in {own}",
        f"  the user's cache: no pima.csv in {cache}",
        "  download: no address known",
        f"To get it: put pima.csv into {own}.",
    ]


def test_without_platformdirs_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(storage.VARIABLE, "")
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(datasets.DataUnavailable, match=r"needs pip install 'onlinevi\[data\]'"):
        datasets.load("pima")


def test_without_the_package_the_extra_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None)
    with pytest.raises(
        datasets.DataUnavailable, match=r"scikit-learn: not installed\nTo get it: pip install 'onlinevi\[data\]'"
    ):
        datasets.load("breast")


def test_a_rounded_copy_in_a_package_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = CATALOGUE["breast"].package
    assert package is not None
    rounded = replace(package, module="numpy", read=lambda: Table(np.ones((3, 30)), np.ones(3)))
    monkeypatch.setitem(CATALOGUE, "breast", replace(CATALOGUE["breast"], package=rounded))
    with pytest.raises(datasets.WrongContent, match="the copy in scikit-learn"):
        datasets.load("breast")


def test_boston_in_a_package_is_the_file(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlxtend")
    monkeypatch.delenv(storage.VARIABLE, raising=False)
    boston = datasets.load("boston")
    assert "mlxtend" in boston.provenance
    assert boston.X.shape == SHAPES["boston"]
    assert datasets.fetch("boston") is None


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(ValueError, match="name='iris': no such data set; there are toy, breast"):
        datasets.load("iris")


def never(raw: bytes) -> Table:
    raise AssertionError("parsed twice")


def test_a_large_text_is_parsed_once(own: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = datasets.load("cover")
    file = CATALOGUE["cover"].file
    assert file is not None
    monkeypatch.setitem(CATALOGUE, "cover", replace(CATALOGUE["cover"], file=replace(file, parse=never)))
    second = datasets.load("cover")
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)


def test_a_damaged_parse_is_parsed_anew(own: Path, cache: Path) -> None:
    first = datasets.load("cover")
    (kept,) = (cache / "parsed").iterdir()
    whole = kept.read_bytes()
    middle = whole.index(b"\x00\x00" * 20)
    for damaged in (b"", whole[:-30], whole[: len(whole) // 2], whole[:middle] + b"\x07" + whole[middle + 1 :]):
        kept.write_bytes(damaged)
        np.testing.assert_array_equal(datasets.load("cover").X, first.X)
        assert kept.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_only_time(own: Path, cache: Path) -> None:
    cache.write_text("a file where a folder should be")
    assert datasets.load("cover").X.shape == (2, 54)


def test_an_unfinished_write_leaves_nothing(tmp_path: Path) -> None:
    def fail(file: object) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        replace_file(tmp_path / "target", fail)
    assert list(tmp_path.iterdir()) == []


def test_the_real_cover_is_fast_the_second_time(cache: Path) -> None:
    """Without the text: unpacking alone takes longer than this. Best of three, since other work may run beside."""
    real("cover")
    path = datasets.path("cover")
    assert path is not None
    start = time.perf_counter()
    storage.unpacked(path.read_bytes())
    unpacking = time.perf_counter() - start
    file = CATALOGUE["cover"].file
    assert file is not None
    raw, times = path.read_bytes(), []
    for _ in range(3):
        start = time.perf_counter()
        storage.parsed_table(raw, replace(file, parse=never), "kept")
        times.append(time.perf_counter() - start)
    assert min(times) < unpacking


def published(name: str) -> bytes:
    """The real file of a data set, or its stand-in with the real columns."""
    entry = CATALOGUE[name]
    assert entry.file is not None
    found = datasets.path(name)
    if found is not None:
        return found.read_bytes()
    label = {"pima": "outcome", "boston": "medv", "california": "median_house_value"}[name]
    row = (
        "-1.50,2.25,3,4,5,6,7,8.1250,9" if name == "california" else ",".join(f"{k}.50" for k in range(len(entry.columns) + 1))
    )
    return f"{','.join([*entry.columns, label])}\n{row}\n{row}\n".encode()


def convert(name: str, raw: bytes) -> bytes:
    file = CATALOGUE[name].file
    assert file is not None
    return file.origins[-1].convert(raw)


def test_pima_from_its_origin() -> None:
    """Published without a header; line ends of any system, with or without the last."""
    text = published("pima")
    rows = text.partition(b"\n")[2]
    for raw in (rows, rows.rstrip(), rows.replace(b"\n", b"\r\n")):
        assert convert("pima", raw) == text


def test_boston_from_its_origin() -> None:
    """Published as 22 lines of description, then eleven and three values a row."""
    text = published("boston")
    rows = [line.split(",") for line in text.decode().splitlines()[1:]]
    body = "".join(f" {'  '.join(row[:11])}\n  {'   '.join(row[11:])}\n" for row in rows)
    assert convert("boston", ("about\n" * 22 + body).encode()) == text


def test_california_from_its_origin() -> None:
    """Published in an archive, with six decimals and no header."""
    text = published("california")
    rows = [line.split(",") for line in text.decode().splitlines()[1:]]
    member = "".join(",".join(f"{float(cell):.6f}" for cell in row) + "\n" for row in rows).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("CaliforniaHousing/cal_housing.data")
        info.size = len(member)
        archive.addfile(info, io.BytesIO(member))
    assert convert("california", buffer.getvalue()) == text


def test_a9a_from_its_origin() -> None:
    assert storage.unpacked(convert("a9a", STAND_INS["a9a"][0])) == STAND_INS["a9a"][0]


def test_cover_values_fit_their_type() -> None:
    data = real("cover")
    assert data.X.max() < np.iinfo(np.int16).max
    assert data.X.min() > np.iinfo(np.int16).min


def test_sparse_rows_match_an_independent_reader() -> None:
    reader = pytest.importorskip("sklearn.datasets").load_svmlight_file
    text = STAND_INS["a9a"][0]
    X, y = reader(io.BytesIO(text), n_features=123)
    table = tables.a9a(text)
    np.testing.assert_array_equal(table.X.toarray(), X.toarray())
    np.testing.assert_array_equal(table.y, y)


def test_importing_is_light() -> None:
    heavy = ["sklearn", "platformdirs", "mlxtend", "pandas", "urllib.request"]
    check = f"import sys, onlinevi.datasets; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
