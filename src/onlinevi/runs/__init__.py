"""A stream learned from, from settings to report: what ``onlinevi run`` and ``onlinevi compare`` do, for programs.

``settings.py`` says what is asked; ``job.py`` takes batches, predicts and learns; ``run.py`` drives a job through a source,
from and to ``places.py``, and ``model.py`` by tables in memory, for programs.
``warm.py`` compiles what it will need, and ``late/`` has rows wait for labels that come later.
On the way ``metrics/`` keeps what reports need in flat memory, ``rejected.py`` the rows left out, ``predictions.py`` and
``writers.py`` write tables, and ``checkpoint.py`` saves it all. At the end ``hindsight.py`` finds the best fixed weights in
rows that ``replay.py`` reads again, ``promises.py`` says what was promised before the data, ``results.py`` makes a report's
document and ``summary.py`` a model's. ``compare.py`` has several rules on one source, ``merge.py`` one model of several, and
``shards/`` learns from many shards side by side.
"""

from onlinevi.runs import charts
from onlinevi.runs.certainty import certified
from onlinevi.runs.charts import plot, plot_comparison
from onlinevi.runs.checkpoint import load_job, pack_job, save_job, unpack_job
from onlinevi.runs.class_weights import ClassWeights, as_class_weight
from onlinevi.runs.compare import Comparison
from onlinevi.runs.decisions import Costs, Decisions, as_costs, read_costs
from onlinevi.runs.hindsight import InHindsight, look_back
from onlinevi.runs.job import Job
from onlinevi.runs.late import Wait
from onlinevi.runs.merge import merge_jobs
from onlinevi.runs.metrics import Thinned, certified_regret
from onlinevi.runs.model import Model, fit, open_model
from onlinevi.runs.places import Places, bad_rows_file, place_of, refuse_overwriting
from onlinevi.runs.predictions import (
    Asked,
    Collected,
    Layout,
    Predictions,
    absent_columns,
    columns_of,
    predict_one,
    predict_stream,
)
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.report.document import to_plain
from onlinevi.runs.report.headline import cells_as_missing, headline
from onlinevi.runs.report.measures import side_by_side
from onlinevi.runs.report.measures import table as metrics_table
from onlinevi.runs.report.page import charts_script, page_style, parts_of, plotly_script, write_report
from onlinevi.runs.report.results import RegretCurve, Results
from onlinevi.runs.results import results_of, weighing
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
from onlinevi.runs.summary import metrics_by_name, shards_told, summarise, weights
from onlinevi.runs.warm import warm_for, warm_task
from onlinevi.runs.writers import (
    NAMES,
    STANDARD_OUTPUT,
    JSONRows,
    TextTable,
    check_format,
    joined_names,
    open_table,
    print_rows,
)

__all__ = [
    "DEFAULT_LOSS",
    "DROP",
    "NAMES",
    "STANDARD_OUTPUT",
    "Asked",
    "BadShard",
    "ClassWeights",
    "Collected",
    "Comparison",
    "Costs",
    "Decisions",
    "Fleet",
    "InHindsight",
    "JSONRows",
    "Job",
    "Layout",
    "Model",
    "Places",
    "Predictions",
    "Progress",
    "RegretCurve",
    "Rejected",
    "Results",
    "Run",
    "Settings",
    "ShardReport",
    "Stopped",
    "Stopper",
    "TextTable",
    "Thinned",
    "Wait",
    "absent_columns",
    "as_class_weight",
    "as_costs",
    "bad_rows_file",
    "cells_as_missing",
    "certified",
    "certified_regret",
    "charts",
    "charts_script",
    "check_format",
    "columns_of",
    "dask_cluster",
    "fit",
    "headline",
    "is_pattern",
    "joined_names",
    "learn_shards",
    "load_job",
    "look_back",
    "merge_jobs",
    "metrics_by_name",
    "metrics_table",
    "open_model",
    "open_table",
    "pack_job",
    "page_style",
    "parts_of",
    "place_of",
    "plot",
    "plot_comparison",
    "plotly_script",
    "predict_one",
    "predict_stream",
    "print_rows",
    "read_costs",
    "refuse_overwriting",
    "results_of",
    "save_job",
    "shards_of",
    "shards_told",
    "side_by_side",
    "summarise",
    "to_plain",
    "unpack_job",
    "warm_for",
    "warm_task",
    "weighing",
    "weights",
    "write_report",
]
