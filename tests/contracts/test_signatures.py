"""What public names take, and the defaults, are those of `signatures.txt`: a change of either is meant.

`python tests/contracts/test_signatures.py` writes the file anew.
"""

import inspect
import sys
from pathlib import Path

PROMISED = Path(__file__).with_name("signatures.txt")
CALL = "a public signature has changed; if that is meant: python tests/contracts/test_signatures.py"


def shown(name, thing):
    """One line: the name, the parameters and their defaults, without annotations."""
    given, kind = [], None
    for each in inspect.signature(thing).parameters.values():
        if each.kind is each.KEYWORD_ONLY and kind not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            given.append("*")
        kind, plain = each.kind, each.replace(annotation=each.empty)
        called = getattr(each.default, "__name__", "")  # the address of a function says nothing
        given.append(f"{each.name}={called}" if called not in ("", "_empty") else str(plain))
    return f"{name}({', '.join(given)})"


def signatures():
    """A line for each public class and function, and for each method of theirs that has defaults."""
    from contracts.test_docstrings import THINGS

    for name, thing in sorted(THINGS.items()):
        if not (inspect.isclass(thing) and issubclass(thing, Exception)):
            yield shown(name, thing)
        for own, member in sorted(vars(thing).items()) if inspect.isclass(thing) else ():
            inside = getattr(member, "__func__", member)
            public = not own.startswith("_") and inspect.isfunction(inside)
            if public and "=" in (line := shown(f"{name}.{own}", inside)):
                yield line


def test_signatures_and_defaults_are_those_that_are_promised():
    assert [*signatures()] == PROMISED.read_text().splitlines(), CALL


if __name__ == "__main__":
    sys.path.insert(0, str(PROMISED.parents[1]))
    PROMISED.write_text("\n".join(signatures()) + "\n")
