"""Calls of every kind against a service, made from its own OpenAPI document: none may be answered by 5xx. Then once more with
rows of the columns that the model has, so that most are carried out.

    pip install schemathesis
    python tools/fuzz_service.py [--examples 100]

The service is one of this process, on a free port, with a model that has learned a few events. 503 and 507 would be honest
answers of a full machine; on an idle one there are none.
"""

from __future__ import annotations

import argparse
import copy
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

CONFIG = """
[parameters]
"path.model" = "clicks"
"""


def main() -> int:
    from helpers.served import RULE, rows, served

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=100, help="calls of each kind in each phase")
    options = parser.parse_args()
    program = shutil.which("st", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin") or shutil.which("st")
    if program is None:
        print("schemathesis is not there: pip install schemathesis", file=sys.stderr)
        return 2
    codes = []
    for narrow in (False, True):
        with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "models") as client:
            model = client.make("clicks", target="y", rule=RULE)
            model.learn_many([{"label": row.pop("y"), "row": row} for row in rows(60)])
            document = client.call("GET", "/openapi.json")
            (Path(folder) / "openapi.json").write_text(json.dumps(with_columns(document) if narrow else document))
            (Path(folder) / "schemathesis.toml").write_text(CONFIG)
            own = client._connection
            call = [program, "run", "openapi.json", "--url", f"http://{own.host}:{own.port}", "--checks", "not_a_server_error"]
            call += ["--phases", "examples,coverage,fuzzing", "--max-examples", str(options.examples)]
            # A stream has no end; and the model is to stay.
            call += ["--exclude-path", "/models/{model}/live", "--exclude-method", "DELETE"]
            codes.append(subprocess.run(call, cwd=folder, check=False).returncode)
            print(f"Behind them the model has {model.about()['events']:,} events.", flush=True)
    return max(codes)


def with_columns(document: Any) -> Any:
    """The document for one model: its columns and labels, nothing is taken back. Most calls are then carried out."""
    own = copy.deepcopy(document)
    del own["paths"]["/models"]["post"], own["paths"]["/models/{model}/rollback"]
    columns = {"a": {"type": ["number", "null"]}, "b": {"type": ["string", "null"]}}

    def narrowed(value: Any) -> Any:
        if isinstance(value, list):
            return [narrowed(one) for one in value]
        if not isinstance(value, dict):
            return value
        if str(value.get("description", "")).startswith("Values by columns"):
            return {"type": "object", "minProperties": 1, "properties": columns, "additionalProperties": False}
        return {key: {"enum": ["yes", "no"]} if key == "label" else narrowed(one) for key, one in value.items()}

    return narrowed(own)


if __name__ == "__main__":
    sys.exit(main())
