"""The plotting library that a report carries."""

from __future__ import annotations


def plotly_script() -> str:
    """plotly.js as its Python package carries it, 4.8 MB: no request is made to draw a chart."""
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('a report needs plotly for its charts: pip install "onlinevi[report]"') from error
    script: str = get_plotlyjs()
    return script
