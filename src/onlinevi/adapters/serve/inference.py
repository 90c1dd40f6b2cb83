"""The Open Inference Protocol, version 2: columns as tensors in, predictions as tensors out."""

from __future__ import annotations

from typing import Any, NamedTuple

from onlinevi.adapters.serve.keeper import Keeper
from onlinevi.adapters.serve.requests import MOST_ROWS, Refused, Rows, read_rows
from onlinevi.adapters.serve.schemas import NUMBERS
from onlinevi.engine import __version__
from onlinevi.runs import NAMES, Layout, joined_names

EXTENSIONS = ["onlinevi.learn"]
DATATYPES = {"string": "BYTES", NAMES: "BYTES", "double": "FP64", "int64": "INT64"}


def server() -> dict[str, Any]:
    """The metadata of the service."""
    return {"name": "onlinevi", "version": __version__, "extensions": EXTENSIONS}


def metadata(keeper: Keeper) -> dict[str, Any]:
    """The columns of a model and what it says, as tensors of a value a row."""
    job = keeper.published.job
    inputs, outputs = [], []
    if job is not None:
        kinds = job.schema.kinds
        inputs = [
            {"name": name, "datatype": "FP64" if kind == "number" else "BYTES", "shape": [-1]} for name, kind in kinds.items()
        ]
        outputs = [
            {"name": name, "datatype": DATATYPES[kind], "shape": [-1]}
            for name, kind in Layout(job, labels=False).columns.items()
            if name != "row"
        ]
    return {"name": keeper.name, "platform": "onlinevi", "inputs": inputs, "outputs": outputs}


class Inference(NamedTuple):
    """A request: its id, its rows, and the names of the outputs that it wants, None for all."""

    id: str | None
    rows: Rows
    wanted: tuple[str, ...] | None


def read_request(body: Any, known: Any) -> Inference:
    """A request, or why it is none."""
    if not isinstance(body, dict) or not isinstance(body.get("inputs"), list) or not body["inputs"]:
        raise Refused(422, "the body needs inputs: a list with a tensor for each column", "inputs")
    columns: dict[str, list[Any]] = {}
    for k, tensor in enumerate(body["inputs"]):
        place = f"inputs[{k}]"
        if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
            raise Refused(422, "a tensor needs its name: that of a column", place)
        shape, data, datatype = tensor.get("shape"), tensor.get("data"), tensor.get("datatype")
        if not isinstance(datatype, str) or datatype not in ("BYTES", *NUMBERS):
            raise Refused(422, f"a tensor has a datatype: one of BYTES, {', '.join(NUMBERS)}", f"{place}.datatype")
        if not isinstance(shape, list) or not shape or any(not isinstance(n, int) or isinstance(n, bool) for n in shape):
            raise Refused(422, "a tensor has a shape: the number of rows", f"{place}.shape")
        values = data[0] if isinstance(data, list) and shape == [1, len(data)] and isinstance(data[0], list) else data
        if isinstance(values, list) and len(shape) == 2 and shape[1] == 1:
            values = [one[0] if isinstance(one, list) and len(one) == 1 else one for one in values]
        elif len(shape) != 1:
            raise Refused(422, f"shape {shape}: a column has a value a row, so its shape is [rows]", f"{place}.shape")
        if not isinstance(values, list) or len(values) != shape[0] or not 1 <= shape[0] <= MOST_ROWS:
            raise Refused(422, f"data needs {shape[0]} values, from 1 to {MOST_ROWS:,}", f"{place}.data")
        if tensor["name"] in columns:
            raise Refused(422, f"column {tensor['name'][:60]!r} comes twice", place)
        columns[tensor["name"]] = values
    counts = {len(values) for values in columns.values()}
    if len(counts) > 1:
        raise Refused(422, f"the tensors have {sorted(counts)} rows: needs as many of each column", "inputs")
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if not isinstance(body.get("id"), str | None):
        raise Refused(422, "the id of a request is a text", "id")
    return Inference(body.get("id"), read_rows({"rows": rows}, known), _wanted(body.get("outputs")))


def _wanted(outputs: Any) -> tuple[str, ...] | None:
    if outputs is None:
        return None
    if not isinstance(outputs, list) or not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in outputs):
        raise Refused(422, "outputs needs to be a list of objects, each with the name of an output", "outputs")
    return tuple(one["name"] for one in outputs)


def as_outputs(keeper: Keeper, asked: Inference, said: dict[str, Any]) -> dict[str, Any]:
    """Predictions as tensors; a row that cannot be used refuses the call."""
    rows = said["predictions"]
    for k, row in enumerate(rows):
        if "error" in row:
            raise Refused(422, f"row {k}: {row['error']}", row.get("place"))
    there = {tensor["name"]: tensor for tensor in metadata(keeper)["outputs"]}
    for name in asked.wanted or ():
        if name not in there:
            raise Refused(422, f"there is no output {name[:60]!r}: the model has {', '.join(there)}", "outputs")
    outputs = [
        {**there[name], "shape": [len(rows)], "data": [_datum(row.get(name)) for row in rows]}
        for name in (there if asked.wanted is None else asked.wanted)
    ]
    answer = {"model_name": keeper.name, "parameters": {"events": said["events"]}, "outputs": outputs}
    return answer if asked.id is None else answer | {"id": asked.id}


def _datum(value: Any) -> Any:
    """A value of a tensor; several names are one text."""
    return joined_names(value) if isinstance(value, list) else value
