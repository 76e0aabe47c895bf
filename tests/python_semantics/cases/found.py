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
# --- numbers of too many digits have no text, and a text of too many is no number
for convert in (str, repr, ascii, lambda n: f"{n}", lambda n: "{}".format(n), lambda n: "%s" % (n,), lambda n: str([n])):
    try:
        log(len(convert(10 ** 4300)))
    except ValueError:
        log("too long")
    log(len(convert(10 ** 4200)))
log(hex(10 ** 4300)[:10])
# --- the order of small integers in a set
numbers = {3, 0}
log(str(numbers))
log(f"{numbers}")
log([each for each in {5, 2, 7, 1}])
numbers.add(1)
log(str(numbers))
log(str({1, 2} | {0}))
log(list(frozenset([6, 4, 0])))
# --- comparisons of constexprs are constexprs
t = tl.constexpr(3)
log(str(t < 4))
log(repr(t == 3))
log(f"{t != 3} {t >= 1}")
log(str([t, t + 1]))
log("%s %r" % (t, t))
log(str(t in [3]))
log(str([tl.constexpr("a"), 2 + t]))
log(str(t is None))
# --- combinations of flags
class Access(enum.IntFlag):
    READ = 1
    WRITE = 2
    RUN = 4
log(repr(Access(0)))
log(bool(Access(0)))
log(repr(Access.READ | Access.RUN))
log(str(Access.READ | Access.RUN))
log((Access.READ | Access.RUN).name)
log((Access.READ | Access.WRITE).value)
log(repr(Access.READ & Access.WRITE))
log(repr(Access.READ & Access.READ))
log(repr(~Access.READ))
log(repr(Access(9)))
log(Access(3) is (Access.READ | Access.WRITE))
log(isinstance(Access.READ | Access.WRITE, Access))
log(repr(Access.READ + 2))
# --- a context that swallows the exception
class Swallow:
    def __enter__(self):
        return self
    def __exit__(self, kind, value, trace):
        return kind is ValueError
place = 1
with Swallow():
    place = 2
    raise ValueError("x")
    place = 3
log(place)
# --- descriptors
class Celsius:
    def __set_name__(self, owner, name):
        self.name = name
    def __get__(self, thing, owner):
        return (self.name, owner.__name__, thing is None)
class Whole:
    def __get__(self, thing, owner):
        return thing.kept
    def __set__(self, thing, value):
        thing.kept = value * 2
class Room:
    warmth = Celsius()
    size = Whole()
room = Room()
log(room.warmth)
log(Room.warmth)
room.warmth = 1
log(room.warmth)
room.size = 4
log(room.size)
log(room.kept)
# --- characters by number
for number, form in ((65, "c"), (65, "5c"), (65, "<5c"), (0x20ac, "*^5c"), (65, "05c"), (0, "0=c"), (65, "+c"), (65, "#c"), (65, ",c"),
                     (65, ".2c"), (-1, "c"), (0x110000, "c"), (True, "c")):
    try:
        log(format(number, form))
    except Exception as error:
        log(type(error).__name__)
log("{:3c}|".format(66))
log(f"{67:c}")
