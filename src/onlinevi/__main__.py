"""``python -m onlinevi``."""

import sys

from onlinevi.cli import main

sys.exit(main())
