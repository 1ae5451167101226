"""``python -m streamjoin``."""

import sys

from streamjoin.cli import main

sys.exit(main())
