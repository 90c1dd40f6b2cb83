"""Labels that come by key: each row is learned when its label comes, in an order that depends on times alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.late_runs import by_hand, in_order, learned, two_streams, write
from helpers.states import bits

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

from onlinevi.runs import Settings, Wait
from onlinevi.runs.checkpoint import _late_as_it_was
from onlinevi.runs.late import rows_from_json

KEY = Wait(("id",), ("at",))
WAITS = {
    "seconds": replace(KEY, seconds=12.0),
    "otherwise": replace(KEY, seconds=12.0, otherwise="no"),
    "rows": replace(KEY, rows=5, otherwise="no"),
    "both": replace(KEY, seconds=12.0, rows=5),
    "for ever": KEY,
    "little room": replace(KEY, seconds=60.0, otherwise="yes", most=4),
}
PLAIN = Settings("y", rule="implicit", drop=("at",), classes=("no", "yes"))


def known(job: Any) -> Any:
    """All that is kept of a job."""
    late = job.late.to_json()
    late["position"] = late["position"][1]
    return bits(job.state), late, job.metrics.to_json(), job.snapshots.to_json(), job.joins, job.schema, job.alarms.to_json()


@pytest.mark.parametrize("name", WAITS)
def test_rows_are_learned_when_their_labels_come(name: str, tmp_path: Path) -> None:
    wait, fates = WAITS[name], Counter[str]()
    for seed in range(3):
        rows, labels = two_streams(seed)
        files = write(tmp_path / "rows.ndjson", rows), write(tmp_path / "labels.ndjson", labels)
        job, said = learned(replace(PLAIN, wait=wait), *files)
        state, counts, by_row = by_hand(job, rows, labels, wait)
        assert job.state.alone() == state.alone()
        assert [prediction for _, _, prediction in said] == by_row
        assert [row for row, _, _ in said] == list(range(len(rows)))
        found = asdict(job.late.counts)
        times = [record["at"] for _, _, record in in_order(rows, labels)]
        assert found.pop("out_of_order") == sum(
            record["at"] < max((one["at"] for one in records[:place]), default=-1e9)
            for records in (rows, labels)
            for place, record in enumerate(records)
        ), times
        assert {what: count for what, count in found.items() if count} == dict(counts)
        assert job.metrics.count == counts["labelled"] + counts["otherwise"] == job.state.count
        assert sum(map(counts.__getitem__, ("labelled", "otherwise", "left_out", "crowded", "repeated"))) + len(
            job.late.rows
        ) == len(rows)
        assert sum(map(counts.__getitem__, ("labelled", "duplicates", "too_late", "orphans"))) + len(job.late.labels) == len(
            labels
        )
        fates += counts
    wanted = {"labelled", "early", "duplicates", "repeated"} | ({"orphans"} if name != "for ever" else set())
    assert wanted <= fates.keys()
    assert ("too_late" in fates) == (name != "for ever")
    assert ("crowded" in fates) == (name == "little room")


@pytest.mark.parametrize("name", ["otherwise", "rows", "little room"])
def test_any_split_of_either_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    rows, labels = two_streams(5)
    for place, row in enumerate(rows):
        row |= {"town": f"t{place // 15}"} | ({"late": place} if place > 50 else {})
    del rows[7]["id"], rows[11]["at"], labels[3]["y"], labels[9]["id"]
    rows[20]["a"], labels[15]["at"] = "soon", "never"
    files = write(tmp_path / "rows.ndjson", rows), write(tmp_path / "labels.ndjson", labels)
    settings = replace(PLAIN, wait=WAITS[name], look=5)
    want, said = learned(settings, *files)
    assert want.rejected.count == 7 - 1
    for sizes in ((1, 1), (7, 3), (3, 8192), (8192, 2)):
        job, again = learned(settings, *files, sizes)
        assert known(job) == known(want)
        assert again == said
        assert job.rejected.to_json() == want.rejected.to_json()


def test_classes_join_when_their_labels_come(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows = [{"id": place, "at": place, "x": float(rng.standard_normal())} for place in range(40)]
    labels = [
        {"id": str(place), "at": place + int(rng.integers(1, 9)), "kind": f"c{min(place // 8, int(rng.integers(0, 5)))}"}
        for place in range(40)
    ]
    labels.sort(key=lambda label: label["at"])
    files = write(tmp_path / "rows.ndjson", rows), write(tmp_path / "labels.ndjson", labels)
    settings = Settings("kind", rule="implicit", wait=replace(KEY, seconds=20.0), classes=("c0", "c1", "c2"), drop=("at",))
    want, said = learned(settings, *files)
    assert want.class_names == ("c0", "c1", "c2", "c3", "c4")
    assert want.metrics.count == want.state.count == 40
    for sizes in ((1, 1), (8192, 3)):
        job, again = learned(settings, *files, sizes)
        assert known(job) == known(want)
        assert again == said


def test_labels_so_many_rows_later_are_as_with_a_delay(tmp_path: Path) -> None:
    """Of a delay of 5 the label of row r comes behind row r + 5."""
    rng, delay, count = np.random.default_rng(3), 5, 60
    rows = [
        {"id": place, "at": place, "x": float(x), "y": float(x) + place % 3}
        for place, x in enumerate(rng.standard_normal(count))
    ]
    labels = [{"id": row["id"], "at": row["at"] + delay + 0.5, "y": row["y"]} for row in rows[: count - delay]]
    files = write(tmp_path / "rows.ndjson", rows), write(tmp_path / "labels.ndjson", labels)
    settings = Settings("y", rule="implicit", task="numbers", drop=("at",))
    by_key, said = learned(replace(settings, wait=KEY), *files)
    from onlinevi.runs import Places, Run, Stopper

    after = []
    with Run(replace(settings, delay=delay, drop=("at", "id")), Places(files[0])) as run:
        run.job.on_rows = lambda rows, forecast, *_: after.extend(forecast.prediction.tolist())
        run.go(Stopper())
    assert by_key.state.alone() == run.job.state.alone()
    assert [prediction for _, _, prediction in said] == after
    assert len(run.job.late.rows) == delay


@pytest.mark.parametrize(
    ("waited", "row", "weight"),
    [
        ([7, [1.0, None], [1.0]], [[1.0, np.nan]], None),
        ([7, {"width": 3, "at": [2], "values": [0.5]}, [1.0], [2.0]], [[0.0, 0.0, 0.5]], 2.0),
    ],
)
def test_rows_that_waited_in_a_file_of_the_first_versions_go_on(waited: Any, row: Any, weight: float | None) -> None:
    """Such a file has each as a list: its number, the row, the label, and a weight where there was one."""
    late = _late_as_it_was([waited, waited])
    assert late["came"] == 2
    for place, (key, found) in enumerate(rows_from_json(late["rows"])):
        assert (key, found.number, found.came, found.label, found.weight) == (7, 7, place, 1.0, weight)
        matrix = found.row.matrix
        np.testing.assert_array_equal(matrix.toarray() if weight else matrix, row)
