"""triton.profiler (Proton), as far as tutorials use it: sessions and scopes that record nothing, and say so once.

What launches take is measured by triton.testing.do_bench, or by a function in triton.knobs.runtime.launch_enter_hook.
"""
import contextlib
import warnings

_sessions = []  # their names; a session's number is its place
_warned = False


def start(name=None, *, context="shadow", data="tree", backend=None, mode=None, hook=None):
    """A session; gives its number. `hook="triton"` is taken like the rest."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn("triton.profiler: Ditron records nothing, and writes no profile; triton.testing.do_bench measures", stacklevel=2)
    _sessions.append(name or "proton")
    return len(_sessions) - 1


def _check(session):
    if session is not None and not 0 <= session < len(_sessions):
        raise ValueError(f"triton.profiler: there is no session {session}; {len(_sessions)} have been started")


def activate(session=None):
    _check(session)


def deactivate(session=None, flushing=False):
    _check(session)


def finalize(session=None, output_format=""):
    _check(session)


class scope(contextlib.ContextDecorator):  # named as a function, as in Triton
    """with scope(name, metrics): ..., or @scope(name, metrics)"""

    def __init__(self, name=None, metrics=None):
        self.name, self.metrics = name, metrics

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def parse(metrics, filename, *_, **__):
    """viewer.parse: of what start() has not recorded."""
    return None, list(metrics)


def print_tree(tree, metrics, *_, **__):
    """viewer.print_tree"""
    print(f"triton.profiler: nothing was recorded ({', '.join(metrics)})")
