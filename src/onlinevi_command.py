"""Where the command ``onlinevi`` begins.

It stands beside the package: to import that takes a moment, which may be interrupted, and in which a variable of the
environment may turn out to be wrong. Both end in a line, as all else does.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; its exit code."""
    try:
        from onlinevi.adapters.cli import main as run
        from onlinevi.data import spare_pandas
    except KeyboardInterrupt:
        print("onlinevi: interrupted before anything was begun", file=sys.stderr)
        return 130
    except ValueError as error:
        print(f"onlinevi: {error}", file=sys.stderr)
        return 2
    spare_pandas()
    return run()


if __name__ == "__main__":
    sys.exit(main())
