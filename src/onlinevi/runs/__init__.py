"""A stream learned from, from settings to report: what ``onlinevi run`` and ``onlinevi compare`` do, for programs.

``settings.py`` says what is asked; ``job.py`` takes batches, predicts and learns; ``run.py`` drives a job through a source,
from and to ``places.py``.
``warm.py`` compiles what it will need.
On the way ``metrics.py`` keeps what reports need in flat memory, ``rejected.py`` the rows left out, ``predictions.py`` and
``writers.py`` write tables, and ``checkpoint.py`` saves it all. At the end ``hindsight.py`` finds the best fixed weights in
rows that ``replay.py`` reads again, ``theorem.py`` says what was promised before the data, ``results.py`` makes a report's
document and ``summary.py`` a model's. ``compare.py`` has several rules on one source, ``merge.py`` one model of several, and
``shards/`` learns from many shards side by side.
"""

from onlinevi.runs import charts
from onlinevi.runs.charts import plot, plot_comparison
from onlinevi.runs.checkpoint import load_job, save_job
from onlinevi.runs.compare import Comparison
from onlinevi.runs.hindsight import InHindsight, look_back
from onlinevi.runs.job import Job
from onlinevi.runs.merge import merge_jobs
from onlinevi.runs.metrics import certified_regret
from onlinevi.runs.places import Places, bad_rows_file, refuse_overwriting
from onlinevi.runs.predictions import absent_columns, columns_of, predict_stream
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.report.headline import cells_as_missing, headline
from onlinevi.runs.report.page import write_report
from onlinevi.runs.report.results import Results
from onlinevi.runs.results import results_of
from onlinevi.runs.run import Run, Stopped, Stopper
from onlinevi.runs.settings import DEFAULT_LOSS, DROP, Settings
from onlinevi.runs.shards import (
    BadShard,
    Fleet,
    Progress,
    ShardReport,
    dask_cluster,
    is_pattern,
    learn_shards,
    shards_of,
)
from onlinevi.runs.summary import shards_told, summarise
from onlinevi.runs.warm import warm_for, warm_task
from onlinevi.runs.writers import STANDARD_OUTPUT, TextTable, check_format, open_table, print_rows

__all__ = [
    "DEFAULT_LOSS",
    "DROP",
    "STANDARD_OUTPUT",
    "BadShard",
    "Comparison",
    "Fleet",
    "InHindsight",
    "Job",
    "Places",
    "Progress",
    "Rejected",
    "Results",
    "Run",
    "Settings",
    "ShardReport",
    "Stopped",
    "Stopper",
    "TextTable",
    "absent_columns",
    "bad_rows_file",
    "cells_as_missing",
    "certified_regret",
    "charts",
    "check_format",
    "columns_of",
    "dask_cluster",
    "headline",
    "is_pattern",
    "learn_shards",
    "load_job",
    "look_back",
    "merge_jobs",
    "open_table",
    "plot",
    "plot_comparison",
    "predict_stream",
    "print_rows",
    "refuse_overwriting",
    "results_of",
    "save_job",
    "shards_of",
    "shards_told",
    "summarise",
    "warm_for",
    "warm_task",
    "write_report",
]
