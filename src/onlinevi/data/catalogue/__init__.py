"""The paper's data sets and two more, found on this machine or downloaded, each checked against its sha256.

>>> from onlinevi import datasets
>>> datasets.names()
('toy', 'breast', 'pima', 'cover', 'boston', 'california', 'a9a', 'electricity')
>>> toy = datasets.load("toy", seed=0)
>>> toy.X.shape, toy.names
((10000, 2), ('x1', 'x2'))
"""

from onlinevi.data.catalogue.entry import Dataset, DataUnavailable, WrongContent
from onlinevi.data.catalogue.lookup import Status, fetch, load, names, path, status

__all__ = ["DataUnavailable", "Dataset", "Status", "WrongContent", "fetch", "load", "names", "path", "status"]
