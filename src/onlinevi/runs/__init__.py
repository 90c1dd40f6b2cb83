"""A stream learned from, from settings to report: what ``onlinevi run`` and ``onlinevi compare`` do, for programs.

``job.py`` takes batches, ``playing.py`` predicts and learns, ``account.py`` keeps what a report needs in flat memory,
``saved.py`` is the checkpoint, ``outcome.py`` the results document, ``predictions.py`` the table of predictions in a file of
text or of Arrow's kind; ``running.py`` drives a job through a source, ``comparing.py`` several;
``looking_back.py`` finds the best fixed weights in hindsight, ``promised.py`` what a theorem said before the data;
``merging.py`` makes one model of those of shards.
"""

from onlinevi.runs import charts
from onlinevi.runs.charts import plot, plot_comparison
from onlinevi.runs.comparing import Comparison
from onlinevi.runs.described import described
from onlinevi.runs.job import Job
from onlinevi.runs.left_out import LeftOut
from onlinevi.runs.looking_back import LookedBack, look_back
from onlinevi.runs.merging import merge_jobs
from onlinevi.runs.moments import certified_regret
from onlinevi.runs.outcome import results
from onlinevi.runs.predicting import absent_columns, predict_stream
from onlinevi.runs.predictions import check_format, columns_of, open_table
from onlinevi.runs.report.headline import headline
from onlinevi.runs.report.page import write_report
from onlinevi.runs.report.results import Results
from onlinevi.runs.running import Places, Run
from onlinevi.runs.saved import load_job, save_job
from onlinevi.runs.settings import Settings
from onlinevi.runs.stopper import Stopped, Stopper
from onlinevi.runs.text_table import TextTable

__all__ = [
    "Comparison",
    "Job",
    "LeftOut",
    "LookedBack",
    "Places",
    "Results",
    "Run",
    "Settings",
    "Stopped",
    "Stopper",
    "TextTable",
    "absent_columns",
    "certified_regret",
    "charts",
    "check_format",
    "columns_of",
    "described",
    "headline",
    "load_job",
    "look_back",
    "merge_jobs",
    "open_table",
    "plot",
    "plot_comparison",
    "predict_stream",
    "results",
    "save_job",
    "write_report",
]
