"""``python -m onlinevi``."""

import sys

from onlinevi.adapters.cli import main

sys.exit(main())
