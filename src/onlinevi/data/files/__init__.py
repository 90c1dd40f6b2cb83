"""Files and pipes as streams of batches: CSV, NDJSON, Parquet, Arrow, LIBSVM, packed or not, in flat memory.

>>> import tempfile, pathlib
>>> from onlinevi.data import open_stream
>>> path = pathlib.Path(tempfile.mkdtemp()) / "prices.csv"
>>> _ = path.write_text("size,price\\n50,100\\n80,150\\n")
>>> with open_stream(path) as stream:
...     [(batch.rows.tolist(), batch.columns["price"].to_pylist()) for batch in stream], stream.position.rows
([([0, 1], ['100', '150'])], 2)
"""

from onlinevi.data.files.batch import Batch
from onlinevi.data.files.digest import Position
from onlinevi.data.files.refused import BadInput, Collect, Policy, Refused, Skip, Stop
from onlinevi.data.files.stream import Stream, open_stream
from onlinevi.data.files.values import MISSING

__all__ = ["MISSING", "BadInput", "Batch", "Collect", "Policy", "Position", "Refused", "Skip", "Stop", "Stream", "open_stream"]
