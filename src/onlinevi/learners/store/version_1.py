"""Files of format version 1: learners that had a layout each, as the compositions that they are now."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.learners.described import CheckpointError, Facts
from onlinevi.learners.one_vs_rest import coupling


def upgraded(config: Facts, facts: Facts) -> tuple[Facts, Facts]:
    """The config and the state of a file of version 1 in the words of version 2; ``at`` says where its arrays lie."""
    return _config(config), _node(config, facts, "")


def _config(config: Any) -> Any:
    if not isinstance(config, dict):
        return config
    match config.get("is"):
        case "Prepared":
            prepare = {"is": "Prepare", "inputs": config["inputs"], "inner": config["linear"]}
            return _calibrated(config["calibration"], prepare)
        case "Classes":
            own = {name: config[name] for name in ("known", "grows")}
            return {"is": "OneVsRest", "inner": _config(config["learner"]), **own}
        case _:
            return config


def _calibrated(calibration: Facts | None, inner: Facts) -> Facts:
    return inner if calibration is None else {"is": "Calibrate", "calibration": calibration, "inner": inner}


def _node(config: Facts, facts: Facts, at: str) -> Facts:
    match config.get("is"):
        case "Prepared":
            return _prepared(facts, _leaf(facts["learned"], f"{at}learned/"), at)
        case "Auto":
            pool = facts["pool"]
            made_of = {"is": "Prepare", "inputs": config["inputs"], "inner": pool["learner"]}
            calibration = {"is": "Calibration", "coverage": config["coverage"]}
            made_of = _calibrated(None if facts["residuals"] is None else calibration, made_of)
            inside = _prepared(facts, _pool(pool["state"], f"{at}pool/"), at)
            return {"facts": {}, "configs": {"made_of": made_of}, "parts": {"made_of": inside}}
        case "Classes":
            return _classes(config["learner"], facts, at)
        case "Aggregate":
            return _pool(facts, at)
        case "Linear" | "Inputs" | "Calibration":
            return _leaf(facts, at)
        case other:
            raise CheckpointError(f"it holds a {other!r}, which files of version 1 do not: take a backup")


def _leaf(facts: Facts, at: str) -> Facts:
    return {"facts": facts, "at": at}


def _prepared(facts: Facts, inner: Facts, at: str) -> Facts:
    node = {"facts": {}, "parts": {"inputs": _leaf(facts["inputs"], f"{at}inputs/"), "inner": inner}}
    if facts["residuals"] is None:
        return node
    return {"facts": {}, "parts": {"inner": node, "residuals": _leaf(facts["residuals"], f"{at}residuals/")}}


def _pool(facts: Facts, at: str) -> Facts:
    own = {name: fact for name, fact in facts.items() if name != "learners"}
    parts = {f"learners/{k}": _leaf(one, f"{at}learners/{k}/") for k, one in enumerate(facts["learners"])}
    return {"facts": own, "at": at, "parts": parts}


def _classes(config: Facts, facts: Facts, at: str) -> Facts:
    parts = {f"classes/{k}": _node(config, one, f"{at}classes/{k}/") for k, one in enumerate(facts["classes"])}
    if facts["later"] is not None:
        parts["later"] = _node(config, facts["later"], f"{at}later/")
    number, totals = len(facts["classes"]), np.array(list(facts["coupled"].values()), dtype=float)
    # What was paid in all was not kept; the mixture of every boldness has paid this. What is not finite is refused later.
    with np.errstate(invalid="ignore"):
        paid = float(-np.logaddexp.reduce(-totals) + np.log(len(coupling.BOLDNESS)))
    own = {"classes": number, "coupled": facts["coupled"], "seen": [True] * number, "paid": paid}
    return {"facts": own, "parts": parts}
