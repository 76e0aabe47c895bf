"""Hooks of launches: what programs have called before and after every launch of a kernel.

A hook is given a LazyDict, which computes what the kernel's @jit(launch_metadata=...) says of the launch only if the hook asks. While there are
none the Dispatcher looks at the lengths of two lists; while there is one every launch goes through JITFunction.run_slowly.
"""
from . import _native


class HookChain:
    """Several hooks as one, in the order in which they were added, or in the other one. `calls` is the list of them."""

    def __init__(self, reversed=False):
        self._calls = []
        self.reversed = reversed

    @property
    def calls(self):
        """Always the same list: the Dispatcher looks at it."""
        return self._calls

    def add(self, hook):
        if hook not in self._calls:
            self._calls.append(hook)

    def remove(self, hook):
        if hook in self._calls:
            self._calls.remove(hook)

    def __call__(self, *arguments, **keywords):
        for hook in self._calls[::-1] if self.reversed else list(self._calls):
            hook(*arguments, **keywords)


class LazyDict:
    """A dictionary some of whose entries functions compute when get() is called first."""

    def __init__(self, data):
        self.data, self.extras = data, []

    def add(self, function, arguments):
        """function(*arguments) is a dictionary of further entries."""
        self.extras.append((function, arguments))

    def get(self):
        while self.extras:
            function, arguments = self.extras.pop(0)
            self.data = {**self.data, **function(*arguments)}
        return self.data


class Hooks:
    """The hooks in force, those before and those after a launch, each as it was given: a HookChain, a function or None."""

    def __init__(self):
        self.given = [None, None]
        self.chains = [None, None]
        self.set(0, HookChain())
        self.set(1, HookChain(reversed=True))

    def set(self, place, hook):
        """From the next launch on. 0: before launches; 1: after them."""
        if hook is not None and not callable(hook):
            raise TypeError(f"a hook of launches is a function, a HookChain or None, not {hook!r}")
        chain = hook
        if not isinstance(hook, HookChain):
            chain = HookChain()
            if hook is not None:
                chain.add(hook)
        self.given[place], self.chains[place] = hook, chain
        _native.set_launch_hooks(*[[] if each is None else each.calls for each in self.chains])

    def __bool__(self):
        before, after = self.chains
        return bool(before.calls or after.calls)


of_launches = Hooks()
