# Each was a silent difference. A part begins with a line of dashes; `log` prints a value.
# --- an iterator ends once
it = iter([1, 2, 3])
log(next(it))
log(list(it))
log(list(it))
z = zip([1, 2], "ab")
log(list(z))
log(list(z))
# --- two names of one iterator share its place
it = iter(range(6))
log(list(zip(it, it)))
# --- map, filter and generators compute when they are asked
seen = []
m = map(seen.append, [1, 2])
log(seen)
log(any(seen.append(x) or x > 0 for x in [0, 1, 2]))
log(seen)
# --- a dict that grows under a loop
d = {"a": 1}
try:
    for key in d:
        d[key + "x"] = 1
except RuntimeError:
    log("RuntimeError")
# --- keys are a view and compare as a set
d = {"a": 1}
keys = d.keys()
d["b"] = 2
log(list(keys))
log(keys == {"b", "a"})
log(keys)
# --- frozensets
log(frozenset([1]))
log(type(frozenset() | {1}).__name__)
log(isinstance(frozenset(), set))
# --- characters, not bytes
log(list("\u00e9t"))
log("\u00e9t"[0])
log("a\u00e9t"[::-1])
# --- a class body runs once
class Holder:
    items = []
    @property
    def size(self):
        return len(self.items)
Holder.items.append(1)
log(Holder.items)
log(Holder().size)
# --- a cached function runs once
runs = []
@functools.lru_cache(maxsize=None)
def slow(x):
    runs.append(x)
    return x
log([slow(1), slow(1), runs])
# --- enumerations
class Mode(enum.IntEnum):
    OFF = 0
    ON = 1
log((Mode.ON.name, Mode.ON + 1, len(Mode), Mode(0) is Mode.OFF, Mode["ON"].value, [m.name for m in Mode]))
log(f"{Mode.ON}")
# --- the first base wins
class A:
    def name(self):
        return "A"
class B:
    def name(self):
        return "B"
class C(A, B):
    pass
log(C().name())
# --- `finally` sees the exception out
def leaves():
    try:
        raise ValueError("x")
    finally:
        return "left"
log(leaves())
# --- the name of an exception ends with its clause
try:
    raise KeyError("k")
except KeyError as error:
    log((str(error), error.args, type(error).__name__))
try:
    log(error)
except NameError:
    log("NameError")
# --- a comprehension stops at the first false condition
log([x for x in [0, 1, 2] if x if 2 // x])
# --- what tl.constexpr made is no int
log(isinstance(tl.constexpr(5), int))
log(isinstance(tl.constexpr(5).value, int))
# --- slices are assigned and deleted
l = [1, 2, 3, 4]
l[1:3] = [9]
del l[::2]
log(l)
# --- a list cannot be a key
try:
    {}[[]] = 1
except TypeError:
    log("TypeError")
