"""One front door: tables of any kind, the same bits as a file, and what is wrong with a table in a sentence."""

from __future__ import annotations

import copy
import io
import pickle
import weakref
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.run_files import table, write_rows

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.data import BadInput
from onlinevi.runs import merge_jobs

FEW = 160


@pytest.fixture
def flats() -> pd.DataFrame:
    """A column of each kind, holes, and two things to predict; an index of its own."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(70.0, 20.0, FEW),
            "rooms": rng.integers(1, 6, FEW),
            "town": rng.choice(["Bonn", "Köln", "Ulm"], FEW),
            "lift": rng.random(FEW) < 0.5,
            "listed": pd.date_range("2024-01-01", periods=FEW, freq="D"),
        },
        index=range(1000, 1000 + FEW),
    )
    frame["price"] = 3.0 * frame["size"] + 40.0 * (frame["town"] == "Bonn") + rng.normal(0.0, 5.0, FEW)
    frame["sold"] = (frame["price"] > 220.0).astype(int)
    frame.loc[1003, "size"] = np.nan
    return frame


def learned(table: Any, target: str = "price", **settings: Any) -> ovi.Model:
    return ovi.fit(table, target=target, **{"rule": "implicit", **settings})


@pytest.fixture
def model(flats: pd.DataFrame) -> ovi.Model:
    return learned(flats)


@pytest.mark.parametrize("rule", ["implicit", "auto"])
def test_a_table_gives_what_the_command_line_says_of_its_file(rule: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("rows.csv"), 300)
    call = ["run", "rows.csv", "--target", "sold", "--rule", rule, "--checkpoint", "model.ovi", "--predictions", "said.csv"]
    assert main([*call, "--effort", "light"] if rule == "auto" else call) == 0
    settings = {"rule": rule} | ({"effort": "light"} if rule == "auto" else {})
    model = ovi.Model("sold", **settings)
    said = model.learn(pd.read_csv("rows.csv"))
    assert said["probability"].tolist() == [float(row["probability"]) for row in table(Path("said.csv"))]
    assert said["label"].tolist() == [row["label"] for row in table(Path("said.csv"))]
    of_file, of_run = ovi.fit("rows.csv", target="sold", **settings), ovi.open("model.ovi")
    for other in (of_file, of_run):
        assert other.predict("rows.csv").equals(model.predict("rows.csv"))
        assert other.state.mean.tolist() == model.state.mean.tolist()
    assert main(["predict", "model.ovi", "rows.csv", "-o", "new.csv"]) == 0
    chances = [float(row["probability"]) for row in table(Path("new.csv"))]
    assert model.predict(pl.read_csv("rows.csv"))["probability"].to_list() == chances


def test_what_comes_back_is_of_the_callers_kind(model: ovi.Model, flats: pd.DataFrame) -> None:
    said = model.predict(flats)
    assert said.index.tolist() == flats.index.tolist()
    assert list(said.columns) == ["prediction", "std", "lower", "upper"]
    numbers = said["prediction"].tolist()
    assert model.predict(pl.from_pandas(flats))["prediction"].to_list() == numbers
    arrow = pa.Table.from_pandas(flats, preserve_index=False)
    for given in (arrow, arrow.to_reader(), arrow.to_batches()[0]):
        assert model.predict(given)["prediction"].to_pylist() == numbers
    assert model.predict(arrow.to_batches(max_chunksize=7))["prediction"].to_pylist() == pytest.approx(numbers)
    rows = flats.astype(object).where(flats.notna(), None).to_dict("records")
    assert [row["prediction"] for row in model.predict(rows)] == numbers
    assert [row["prediction"] for row in model.predict(row for row in rows)] == numbers
    assert model.predict(rows[0])["prediction"] == pytest.approx(numbers[0])
    assert model.predict({name: flats[name].tolist() for name in flats})["prediction"] == numbers
    chunks = model.predict(flats.iloc[k : k + 50] for k in range(0, FEW, 50))
    assert (chunks.index.tolist(), chunks["prediction"].tolist()) == (flats.index.tolist(), pytest.approx(numbers))


def test_an_index_of_any_kind_comes_back(model: ovi.Model, flats: pd.DataFrame) -> None:
    for index in (flats["listed"], pd.MultiIndex.from_arrays([flats["town"], flats["rooms"]]), pd.RangeIndex(FEW, name="n")):
        given = flats.set_index(index)
        said = model.predict(given)
        assert said.index.equals(given.index)
        assert said.index.names == given.index.names


def test_fitting_a_stream_keeps_none_of_its_rows(flats: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with what is learned from: rows of an iterable are taken as they come, and let go."""

    class Row(dict):  # a dict that a weak reference can look after
        pass

    alive: list[Any] = []
    most: list[int] = []

    def rows() -> Any:
        for row in flats.astype({"listed": str}).fillna(0.0).to_dict("records") * 4:
            one = Row(row)
            alive.append(weakref.ref(one))
            most.append(sum(ref() is not None for ref in alive))
            yield one

    monkeypatch.setattr("onlinevi.runs.model.Collected", None)
    monkeypatch.setattr("onlinevi.data.sources.memory.ROWS", 50)
    assert ovi.fit(rows(), target="price", rule="implicit").count == len(alive) == 4 * FEW
    assert max(most) <= 2 * 50 + 1


def test_columns_of_any_make_are_what_they_hold(flats: pd.DataFrame) -> None:
    """Categories of pandas and of polars, nullable numbers, flags and text, times with a zone, durations."""
    flats = flats.drop(columns="sold")
    odd = flats.assign(
        rooms=flats["rooms"].astype("Int64"),
        town=flats["town"].astype("category"),
        lift=flats["lift"].astype("boolean"),
        listed=flats["listed"].dt.tz_localize("UTC"),
        free=pd.to_timedelta(flats["rooms"], unit="h"),
    )
    odd.iloc[5, 1:5] = None
    model = learned(odd)
    kinds = {"size": "number", "rooms": "number", "town": "category", "lift": "flag", "listed": "time", "free": "number"}
    assert dict(model.job.schema.kinds) == kinds
    said = model.predict(odd)["prediction"].tolist()
    for town in (pl.Categorical(), pl.Enum(["Bonn", "Köln", "Ulm"]), pl.String()):
        frame = pl.from_pandas(odd).with_columns(pl.col("town").cast(town))
        assert model.predict(frame)["prediction"].to_list() == said
    hours = odd.assign(free=odd["free"].dt.total_seconds())
    assert model.predict(hours)["prediction"].tolist() == said
    row = odd.iloc[7]
    assert model.predict(row)["prediction"] == pytest.approx(said[7])
    assert isinstance(parts := model.explain(row), pd.Series)
    assert (parts.name, parts.dtype) == (row.name, np.dtype(float))


def test_results_of_duckdb_are_tables(flats: pd.DataFrame) -> None:
    import duckdb

    connection, columns = duckdb.connect(), ["size", "rooms", "town", "lift", "price"]
    connection.register("flats", flats[columns])
    want = learned(flats[columns]).predict(flats)["prediction"].tolist()
    model = learned(connection.sql("select * from flats"))
    said = model.predict(connection.sql("select * from flats"))
    assert isinstance(said, pa.Table)
    assert said["prediction"].to_pylist() == want
    with pytest.raises(TypeError, match=r"holds no rows that can be read: call \.\w*arrow_table\(\) first"):
        model.predict(connection.execute("select * from flats"))


class Capsule:
    """Whatever speaks Arrow and nothing else, as a result of DuckDB does."""

    def __init__(self, table: Any) -> None:
        self.__arrow_c_stream__ = table.__arrow_c_stream__


def test_whatever_speaks_arrow_is_a_table(model: ovi.Model, flats: pd.DataFrame) -> None:
    said = model.predict(Capsule(pa.Table.from_pandas(flats)))
    assert isinstance(said, pa.Table)
    assert said["prediction"].to_pylist() == model.predict(flats)["prediction"].tolist()


@pytest.mark.parametrize("size", [9, 100])
def test_any_split_gives_the_same_bits(size: int, model: ovi.Model, flats: pd.DataFrame) -> None:
    parts = [flats.iloc[k : k + size] for k in range(0, FEW, size)]
    once = ovi.Model("price", rule="implicit")
    said = once.learn(iter(parts))
    assert once.state.mean.tolist() == model.state.mean.tolist()
    behind = learned(flats.iloc[:100])  # kinds are known by then
    more = [behind.learn(part) for part in (flats.iloc[k : k + size] for k in range(100, FEW, size))]
    assert pd.concat(more).equals(said.iloc[100:])
    assert behind.state.mean.tolist() == model.state.mean.tolist()
    assert behind.count == FEW
    assert len(behind.job.origins) == 1


def test_learning_says_what_was_predicted_before_the_label(flats: pd.DataFrame) -> None:
    once, by_row = ovi.Model("price", rule="implicit"), learned(flats.iloc[:90])
    said = once.learn(flats)
    assert said["label"].tolist() == flats["price"].tolist()
    assert once.metrics["average_loss"] == pytest.approx(said["loss"].mean())
    for k in range(90, 110):
        row = flats.iloc[k : k + 1]
        assert by_row.predict(row)["prediction"].iloc[0] == pytest.approx(said["prediction"].iloc[k])
        by_row.learn(row)
    assert len(once.learn(flats.iloc[:0])) == 0


def test_classes_come_back_as_they_were_written(flats: pd.DataFrame) -> None:
    for labels, kind in (
        (flats["sold"], "int64"),
        (flats["sold"].astype(bool), "bool"),
        (flats["sold"].map({0: 0.5, 1: 1.5}), "float64"),
        (flats["sold"].map({0: "no", 1: "yes"}), "str"),
        (flats["sold"].astype(str), "str"),
    ):
        model = learned(flats.assign(sold=labels).drop(columns="price"), "sold", task="classes")
        said = model.predict(flats)
        assert said["prediction"].dtype == kind
        assert (said["prediction"] == labels).mean() > 0.8
        again = pickle.loads(pickle.dumps(model))
        assert again.predict(flats).equals(said)


def test_several_classes(flats: pd.DataFrame) -> None:
    model = learned(flats.drop(columns="sold"), "town")
    assert model.classes == ("Bonn", "Köln", "Ulm")
    assert set(model.predict(flats)["prediction"]) <= set(model.classes)


def test_it_is_saved_opened_copied_and_goes_on(model: ovi.Model, flats: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "model.ovi")
    opened, twin = ovi.open(tmp_path / "model.ovi"), copy.deepcopy(model)
    said = model.learn(flats)
    for other in (opened, twin):
        assert other.learn(flats).equals(said)
        assert other.state.mean.tolist() == model.state.mean.tolist()
    assert main(["info", str(tmp_path / "model.ovi")]) == 0
    fresh = copy.deepcopy(ovi.Model("price", drop="sold"))
    assert (fresh.settings.drop, fresh.count) == (("sold",), 0)


def test_files_and_tables_follow_each_other(flats: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "flats.parquet"
    pq.write_table(pa.Table.from_pandas(flats, preserve_index=False), path)
    model = learned(path)
    said = model.predict(path)
    assert said.column_names == ["row", "prediction", "std", "lower", "upper"]
    with path.open("rb") as file:
        assert model.predict(file).drop_columns("row").equals(said.drop_columns("row"))
    model.learn(flats)
    model.learn(flats)
    assert [str(origin) for origin in model.job.origins] == [
        f"rows 0 to {FEW - 1} of {path}",
        f"rows 0 to {2 * FEW - 1} of tables in memory",
    ]


def test_tables_with_rows_in_common_are_not_merged(flats: pd.DataFrame) -> None:
    one, other = learned(flats), learned(flats.iloc[:100])
    with pytest.raises(ValueError, match="rows in common"):
        merge_jobs({"one": one.job, "other": learned(flats).job})
    assert one.job.origins[0].position.sha256 != other.job.origins[0].position.sha256


def test_rows_hold_whatever_python_has(flats: pd.DataFrame) -> None:
    rows: list[dict[str, Any]] = [
        {"a": np.float32(k), "b": Decimal("1.5"), "when": datetime(2024, 1, 1 + k % 28), "deep": {"c": k % 3 == 0}, "y": k}
        for k in range(60)
    ]
    rows[7] = {"a": None, "y": 7, "b": pd.NA, "when": pd.NaT, "new": "x"}
    model = learned(rows, "y", task="numbers")
    assert dict(model.job.schema.kinds) == {"a": "number", "b": "number", "when": "time", "deep.c": "flag", "new": "category"}
    assert model.count == 60
    assert model.predict({"a": 3})["prediction"] < model.predict({"a": 55, "deep": {"c": True}})["prediction"]


def test_mixed_cells_are_text_as_in_a_file(flats: pd.DataFrame) -> None:
    mixed = flats.assign(rooms=[*flats["rooms"][:-1].tolist(), "12O"])
    with pytest.raises(BadInput, match=r"the table, row 159, column 'rooms': needs a finite number; it reads '12O'"):
        learned(mixed)
    assert learned(mixed, bad_rows="skip").metrics["bad_rows"] == 1
    assert learned(mixed, bad_rows="missing").metrics["cells_as_missing"] == 1


def test_nothing_is_lost_on_a_bad_row(flats: pd.DataFrame, tmp_path: Path) -> None:
    bad = flats.copy()
    bad.loc[1100, "price"] = np.inf
    with pytest.raises(BadInput, match="row 100, column 'price'") as stopped:
        learned(bad)
    kept = stopped.value.learned
    assert kept.count == 100
    assert kept.state.mean.tolist() == learned(flats.iloc[:100]).state.mean.tolist()
    said = kept.learn(flats.iloc[100:])
    assert len(said) == FEW - 100
    skipping = ovi.Model("price", rule="implicit", bad_rows=str(tmp_path / "bad.ndjson"))
    said = skipping.learn(bad)
    assert said.index[said["prediction"].isna()].tolist() == [1100]
    skipping.learn(bad)
    assert (tmp_path / "bad.ndjson").read_text().count('"row": 100') == 2
    assert skipping.metrics["bad_rows"] == 2
    assert ovi.fit(bad, "price", rule="implicit", bad_rows="skip").count == FEW - 1


def test_a_row_that_cannot_be_predicted_has_nulls(model: ovi.Model, flats: pd.DataFrame) -> None:
    odd = flats.assign(size=flats["size"].astype(object))
    odd.loc[1001, "size"] = "huge"
    with pytest.raises(BadInput, match=r"row 1, column 'size'.*bad_rows='skip'"):
        model.predict(odd)
    said = model.predict(odd, bad_rows="skip")
    assert said["prediction"].isna().tolist() == [False, True, *[False] * (FEW - 2)]
    assert model.predict(odd, bad_rows="missing").notna().all().all()
    assert len(model.predict(odd.iloc[1:2], bad_rows="skip")) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda flats: ovi.fit(flats, target="prise"), r"no column is called 'prise' \(did you mean 'price'\?\)"),
        (lambda flats: ovi.fit(flats.iloc[:0], target="price"), "the stream is empty"),
        (lambda flats: ovi.fit([], target="price"), "the stream is empty"),
        (lambda flats: ovi.fit(flats.assign(price=np.nan), target="price"), "the target has no value in the rows seen"),
        (lambda flats: ovi.fit(flats.assign(rooms=7), target="rooms"), r"tell the task=…, name all classes=…"),
        (lambda flats: ovi.fit(flats.assign(price=np.inf), target="price", task="numbers"), "needs to be a finite number"),
        (lambda flats: ovi.fit(flats[["price"]], target="price"), "no column is left to predict from"),
        (lambda flats: ovi.fit(flats, target="price", colour="red"), "colour='red': is no setting of a run"),
        (lambda flats: ovi.fit(flats, target=3), "needs the name of a column"),
        (lambda flats: ovi.fit(flats, target="sold", loss="squared"), "another task=…"),
        (lambda flats: ovi.fit(np.ones((3, 2)), target="price"), r"no column names: give pandas.DataFrame"),
        (lambda flats: ovi.fit(7, target="price"), "holds no rows that can be read: needs a table"),
        (lambda flats: ovi.fit([1, 2], target="price"), "is no table and no row"),
        (lambda flats: ovi.fit([{"price": 1.0}, 3], target="price"), "is no row: each needs to be a dict"),
        (lambda flats: ovi.fit([{"a": b"x", "price": 1.0}], target="price"), "a row holds b'x'"),
        (lambda flats: ovi.fit(pl.from_pandas(flats).lazy(), target="price"), r"call .collect\(\) first"),
        (lambda flats: ovi.fit(pd.concat([flats, flats], axis=1), target="price"), "two columns are called 'size'"),
        (lambda flats: ovi.fit({"a": [1.0, 2.0], "price": [1.0]}, target="price"), "different lengths"),
        (lambda flats: ovi.fit(io.StringIO("a,price\n1,2\n"), target="price"), "open it as binary"),
        (lambda flats: ovi.fit(flats.assign(size=flats["listed"].dt.time), target="price"), "column 'size' holds"),
        (
            lambda flats: learned(flats).predict(flats.rename(columns={"size": "Size"})),
            r"the table lacks 'size' \(did you mean 'Size'\?\)",
        ),
        (lambda flats: learned(flats).learn(flats.drop(columns=["size", "town"])), "the table lacks 'size', 'town'"),
        (lambda flats: learned(flats).predict(flats.assign(size=[[1.0]] * FEW)), "column 'size' holds list"),
        (lambda flats: learned(flats).predict({"x": 1.0}), "none of the columns of the model"),
        (lambda flats: ovi.Model("price").predict(flats), r"call learn\(table\) first"),
    ],
)
def test_what_is_wrong_is_said(call: Any, words: str, flats: pd.DataFrame) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        call(flats)


def test_a_single_row_is_enough_where_its_label_tells_the_task(flats: pd.DataFrame) -> None:
    assert learned(flats.iloc[:1]).count == 1


def test_columns_beyond_those_known_say_nothing(model: ovi.Model, flats: pd.DataFrame) -> None:
    assert model.predict(flats.assign(extra="x")).equals(model.predict(flats))
    model.learn(flats.assign(extra="x"))
    assert "extra" in model.job.schema.kinds


def test_what_it_tells(model: ovi.Model, flats: pd.DataFrame, tmp_path: Path) -> None:
    assert model.metrics["events"] == FEW
    assert 0.8 < model.metrics["coverage"] < 1.0
    assert "fixed weights" in model.certificate.sentence
    assert model.info()["schema"]["columns"]["town"] == "category"
    assert repr(model).startswith("Model(target='price', numbers, rows=160, average_loss=")
    page = model.report(tmp_path / "page.html")
    assert "price" in page.read_text(encoding="utf-8")


def test_columns_that_matter_have_their_names() -> None:
    rng = np.random.default_rng(0)
    size, other = rng.standard_normal((2, 120))
    town = rng.choice(["Bonn", "Köln", "Jena"], 120)
    price = 3.0 * size + np.where(town == "Jena", 4.0, 0.0)
    model = ovi.fit({"other": other, "size": size, "town": town.tolist(), "price": price}, target="price", rule="implicit")
    assert [told["name"] for told in model.importance] == ["size", "town", "other"]
    assert sum(told["value"] for told in model.importance) == pytest.approx(1.0)
    assert model.info()["importance"] == model.importance
