"""From the columns of a stream to the features and labels of a learner.

>>> import tempfile, pathlib
>>> from onlinevi.data import Columns, encode, open_stream
>>> path = pathlib.Path(tempfile.mkdtemp()) / "flats.csv"
>>> _ = path.write_text("size,city,let\\n50,Rome,no\\n80,Oslo,yes\\n,Rome,yes\\n")
>>> with open_stream(path) as stream:
...     schema = Columns().learn(stream.peek(), target="let")
...     for batch in stream:
...         schema, rows = encode(schema, batch)
>>> schema.task.why
"two classes: 'no' is −1, 'yes' is +1"
>>> [schema.name(place) for place in range(schema.width)]
['size', 'city=Rome', 'city=Oslo']
>>> rows.X.tolist(), rows.y.tolist()
([[50.0, 1.0, 0.0], [80.0, 0.0, 1.0], [nan, 1.0, 0.0]], [-1.0, 1.0, 1.0])
"""

from onlinevi.data.schema.encoder import Encoded, encode, encode_one
from onlinevi.data.schema.kinds import KINDS, NUMBERS, Kind
from onlinevi.data.schema.look import Seen, first_look
from onlinevi.data.schema.schema import BUCKET, ONE, Columns, Schema
from onlinevi.data.schema.spelling import bucket
from onlinevi.data.schema.task import MOST_CLASSES, Task, class_name, guess_task, named_classes
from onlinevi.data.schema.times import seconds

__all__ = [
    "BUCKET",
    "KINDS",
    "MOST_CLASSES",
    "NUMBERS",
    "ONE",
    "Columns",
    "Encoded",
    "Kind",
    "Schema",
    "Seen",
    "Task",
    "bucket",
    "class_name",
    "encode",
    "encode_one",
    "first_look",
    "guess_task",
    "named_classes",
    "seconds",
]
