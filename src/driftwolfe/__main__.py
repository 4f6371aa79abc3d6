"""``python -m driftwolfe``, the same as the command ``driftwolfe``."""

import sys

from driftwolfe.cli import main

if __name__ == "__main__":
    sys.exit(main())
