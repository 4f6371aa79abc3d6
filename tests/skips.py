"""What was skipped, in one line for each reason."""

from collections import Counter


def lines(reports):
    """Return a line for each reason that tests were skipped for, the most frequent first."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    return [f"{count} skipped: {reason}" for reason, count in reasons.most_common()]
