"""Sizes that operators are given, checked before anything is computed from them or cut to the width of the C interface."""
from ._errors import InvalidArgumentError

MOST_COUNT = 2**32 - 1  # of ranks, experts, calls: what the C interface has 32 bits for


def check_sizes(name, least=1, most=2**63 - 1, **sizes):
    for word, value in sizes.items():
        if not least <= value <= most:
            raise InvalidArgumentError(f"{name}: {word}={value}; {least} to {most} are accepted")


def check_counts(name, **counts):
    """The same of options that may be 0."""
    check_sizes(name, 0, MOST_COUNT, **counts)
