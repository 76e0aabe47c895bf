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


def check_alignment(name, word, address, elements, alignment):
    """Where the tensor lies; one without elements lies nowhere."""
    if elements and address % alignment:
        raise InvalidArgumentError(f"{name}: {word} is at {address:#x}; multiples of {alignment} bytes are accepted")


def or_default(value, default):
    """The value of an option, or what stands for one that was not given: 0 is given."""
    return default if value is None else value


def number_or_zero(name, **option):
    """A number for the C interface, where 0 stands for the default: that is None here, and 0 itself is refused."""
    (word, value), = option.items()
    if value is not None and value == 0:
        raise InvalidArgumentError(f"{name}: {word}={value}; numbers other than 0 are accepted, and None for the default")
    return or_default(value, 0.0)
