"""``python -m onlinevi``."""

import sys

from onlinevi_command import main

sys.exit(main())
