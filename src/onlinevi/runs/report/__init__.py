"""One run as a document of plain values, ``results.py``, and as one page for people who were not there, ``page.py``."""
