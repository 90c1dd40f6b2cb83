"""Many shards, one posterior and one certificate: on any executor, the same bits whatever it does.

``sources.py`` says what a shard is, ``preparation.py`` makes one preparation for all, ``matrices.py`` and ``tables.py`` are
what a worker does, ``attempts.py`` asks workers until they have, ``kept.py`` keeps what is done, ``drive.py`` goes
through the stages, and ``fleet.py`` is what comes of them. ``with_dask.py`` has what is Dask's, which is imported when used.
"""

from onlinevi.runs.shards.drive import learn_shards
from onlinevi.runs.shards.fleet import BadShard, Fleet, Progress, ShardReport
from onlinevi.runs.shards.sources import Shard, is_pattern, shards_of
from onlinevi.runs.shards.with_dask import dask_cluster

__all__ = ["BadShard", "Fleet", "Progress", "Shard", "ShardReport", "dask_cluster", "is_pattern", "learn_shards", "shards_of"]
