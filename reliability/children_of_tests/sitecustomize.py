"""Python reads this first: what a process executes that a test has started belongs to that test."""

import os

if "EXECUTED_TEST" in os.environ:
    import atexit

    try:
        from coverage import Coverage
    except ImportError:  # another environment
        pass
    else:
        lines, process = (
            Coverage(f"{os.environ['EXECUTED']}/lines.{os.urandom(8).hex()}"),
            os.getpid(),
        )
        for option, value in (
            ("context", os.environ["EXECUTED_TEST"]),
            ("include", [os.environ["EXECUTED_LIBRARY"]]),
            ("disable_warnings", ["no-data-collected"]),
        ):
            lines.set_option(f"run:{option}", value)
        lines.start()

        @atexit.register
        def end() -> None:
            if os.getpid() == process:  # not in a fork
                lines.stop()
                lines.save()
