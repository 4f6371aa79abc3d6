"""From the words of a command line to an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from driftwolfe.cli.parser import make_parser
from driftwolfe.terminal import show


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    options = make_parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except ImportError as problem:
        print(
            f"driftwolfe: {problem.name or problem} is missing; "
            "pip install 'driftwolfe[experiments]' brings what experiments need",
            file=sys.stderr,
        )
        return 2
    except (ValueError, FileNotFoundError) as problem:
        show(f"driftwolfe: {problem}", sys.stderr)
        return 2
    except MemoryError:
        show("driftwolfe: there is not enough memory for that; ask for less", sys.stderr)
        return 1
    except BrokenPipeError:  # a reader such as `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as problem:  # such as a full disk: what was asked for was right
        show(f"driftwolfe: {problem}", sys.stderr)
        return 1
    return status
