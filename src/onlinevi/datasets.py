"""The paper's data sets and two more, found on this machine or downloaded; see ``onlinevi.data.catalogue``."""

from onlinevi.data.catalogue import Dataset, DataUnavailable, Status, WrongContent, fetch, load, names, path, status

__all__ = ["DataUnavailable", "Dataset", "Status", "WrongContent", "fetch", "load", "names", "path", "status"]
