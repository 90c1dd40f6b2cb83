"""A file learned from in one pass: what ``onlinevi run`` and ``onlinevi compare`` do, for programs.

``job.py`` takes batches, ``playing.py`` predicts and learns, ``account.py`` keeps what a report needs in flat memory,
``saved.py`` is the checkpoint, ``outcome.py`` the results document, ``predictions.py`` the table of predictions in a file of
text or of Arrow's kind; ``running.py`` drives a job through a source, ``comparing.py`` several;
``looking_back.py`` finds the best fixed weights in hindsight, ``promised.py`` what a theorem said before the data;
``merging.py`` makes one model of those of shards.
"""

from onlinevi.job.job import Job
from onlinevi.job.looking_back import LookedBack, look_back
from onlinevi.job.merging import merge_jobs
from onlinevi.job.outcome import results
from onlinevi.job.saved import load_job, save_job
from onlinevi.job.settings import Settings

__all__ = ["Job", "LookedBack", "Settings", "load_job", "look_back", "merge_jobs", "results", "save_job"]
