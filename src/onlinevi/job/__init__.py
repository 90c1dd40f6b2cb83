"""A file learned from in one pass: what ``onlinevi run`` does, for programs.

``job.py`` takes batches, ``playing.py`` predicts and learns, ``account.py`` keeps what a report needs in flat memory,
``saved.py`` is the checkpoint, ``outcome.py`` the results document; ``merging.py`` makes one model of several.
"""

from onlinevi.job.job import Job
from onlinevi.job.merging import merge_jobs
from onlinevi.job.outcome import results
from onlinevi.job.saved import load_job, save_job
from onlinevi.job.settings import Settings

__all__ = ["Job", "Settings", "load_job", "merge_jobs", "results", "save_job"]
