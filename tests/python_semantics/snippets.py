"""Pieces of Python with holes: $i, $j, $k small ints, $n any int, $f a float, $t a text, $l a list of ints.

Each piece is the body of a function, in whose names `log` prints a value. The holes are filled anew each time.
"""

SNIPPETS = [
# Functions
"""
def f(a, b=$i, *rest, c=$j, **more):
    return (a, b, rest, c, sorted(more.items()))
log(f(1)); log(f(1, 2, 3, 4)); log(f(1, c=5, d=$k)); log(f(*[1, 2], **{'c': 3, 'z': 4}))
for bad in (lambda: f(), lambda: f(1, a=2), lambda: (lambda x: x)(1, 2), lambda: (lambda x, /: x)(x=1)):
    try:
        log(bad())
    except TypeError:
        log('TypeError')
""",
"""
def f(x, seen=[]):
    seen.append(x)
    return list(seen)
log(f($i)); log(f($j)); log(f($k, [])); log(f(0))
""",
"""
n = $i
def f(x=n, y=lambda: n):
    return (x, y())
n = $j + 10
log(f()); log(f(1))
""",
"""
fs = [lambda: i for i in range($i)]
log([g() for g in fs])
gs = [lambda i=i: i for i in range($i)]
log([g() for g in gs])
hs = []
for j in range(3):
    hs.append(lambda x: x + j)
log([h($j) for h in hs])
""",
"""
def counter():
    count = $i
    def up(by=1):
        nonlocal count
        count += by
        return count
    return up
a, b = counter(), counter()
log((a(), a($j), b(), a()))
""",
"""
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
log(fact(20 + $i))
def fib(n, memo={}):
    if n not in memo:
        memo[n] = n if n < 2 else fib(n - 1) + fib(n - 2)
    return memo[n]
log(fib(30 + $j))
""",
"""
def compose(*functions):
    def run(x):
        for function in functions:
            x = function(x)
        return x
    return run
log(compose(abs, str, lambda s: s * 2)(-$i))
""",
"""
calls = []
def note(tag):
    calls.append(tag)
    def decorate(function):
        calls.append('on ' + function.__name__)
        def wrapper(*args, **kwargs):
            calls.append(tag + str(args) + str(kwargs))
            return function(*args, **kwargs)
        return wrapper
    return decorate
fns = [note('a'), note('b')]
@fns[$b]
@note('outer')
def twice(x, *, scale=2):
    return x * scale
log(twice($i)); log(twice(2, scale=$j)); log(calls)
""",
"""
def wrap(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args) + 1
    return inner
@wrap
def plus(a, b):
    return a + b
log(plus($i, $j)); log(plus.__name__)
""",
"""
order = []
def e(x):
    order.append(x)
    return x
e(1) + e(2) * e(3)
[e(4), e(5)][e(0)]
{e('k'): e('v')}
e(6) < e(7) < e(6) < e(8)
(lambda *a, **k: None)(e(9), *[e(10)], x=e(11))
e(0) and e(12) or e(13)
log(order)
""",
"""
x = $i
def shadow():
    try:
        y = x + 1
        return y
    finally:
        order.append('finally')
order = []
log(shadow()); log(order)
def early(n):
    for i in range(10):
        try:
            if i == n:
                return i
            if i % 2:
                continue
        finally:
            order.append(i)
    return 'end'
log(early($j)); log(order)
""",
"""
total = 0
def add(n):
    nonlocal total
    total += n
[add(i) for i in range($i)]
log(total)
def gen():
    return (i * i for i in range($j))
log(sum(gen())); log(list(gen())); log(max(gen(), default=None))
""",
"""
try:
    print_me = undefined_name
except NameError as error:
    log(type(error).__name__)
try:
    None.missing
except AttributeError as error:
    log(type(error).__name__)
log(getattr($i, 'missing', 'fallback')); log(hasattr('', 'upper')); log(callable(log))
""",
# Iterators
"""
it = iter([$i, $j, $k])
log(next(it)); log(list(it)); log(list(it)); log(next(it, 'end'))
try:
    next(it)
except StopIteration:
    log('StopIteration')
""",
"""
z = zip(range($i + 2), 'abcdef')
log(next(z)); log(list(z)); log(list(z))
m = map(lambda x: x * $j, [1, 2, 3])
log(sum(m)); log(sum(m))
e = enumerate('ab', $i)
log(dict(e)); log(dict(e))
r = reversed([1, 2, 3])
log(tuple(r)); log(tuple(r))
f = filter(None, [0, 1, $k])
log(list(f)); log(list(f))
""",
"""
seen = []
g = (seen.append(x) or x * 2 for x in range($i + 1))
log(list(seen)); log(next(g)); log(list(seen)); log(list(g)); log(seen); log(list(g))
""",
"""
seen = []
def see(x):
    seen.append(x)
    return x > 1
log(any(see(x) for x in range($i))); log(seen); log(all(map(see, [3, 0, 5]))); log(seen)
m = map(see, [1, 2])
log(seen)
log(list(m)); log(seen)
""",
"""
it = iter(range(10))
log([(a, b) for a, b in zip(it, it)])
it = iter('abcdef')
for c in it:
    log(c + next(it, '-'))
    if c == 'c':
        break
log(list(it))
log(3 in iter([1, 2, 3])); log(type(iter([])) is type(iter([])))
""",
"""
log(list(itertools.islice(itertools.count($i, $j), 4))); log(list(itertools.islice(itertools.cycle('ab'), $k)))
log(list(zip(itertools.repeat($i), 'ab'))); log(list(itertools.takewhile(lambda x: x < 20, itertools.count(3, 5))))
log(list(itertools.zip_longest([1], 'ab', fillvalue=$j)))
log(list(itertools.starmap(pow, [(2, 3), (3, 2)]))); log(list(itertools.product('ab', [0, 1]))); log(list(itertools.combinations($l, 2))[:5])
log([(k, list(g)) for k, g in itertools.groupby(sorted($l), key=lambda x: x % 2)])
""",
"""
a, b = itertools.tee([1, 2, 3])
log(list(a)); log(list(b)); log(list(itertools.chain.from_iterable([[1], (2, $i)]))); log(list(itertools.compress('abcd', [1, 0, $j, 1])))
log(list(itertools.dropwhile(lambda x: x < 3, [1, 5, 2]))); log(list(itertools.accumulate($l, max))); log(list(itertools.pairwise('abc')))
""",
"""
d = {'a': 1, 'b': $i}
keys, values, items = d.keys(), d.values(), d.items()
d['c'] = $j
log(list(keys)); log(sum(values)); log(sorted(items)); log('c' in keys); log(('a', 1) in items); log(len(keys))
log(keys == {'a', 'b', 'c'}); log(sorted(keys & {'a', 'z'})); log(sorted(keys | ['z'])); log(keys); log(values); log(items)
log(list(reversed(d))); log(max(d, key=d.get)); log(next(iter(d)))
""",
"""
l = [3, 1, 2]
for x in l:
    if len(l) < 6:
        l.append(x + $i)
log(l)
for i, x in enumerate(l):
    l[i] = x * 2
log(l)
d = {'a': 1}
try:
    for k in d:
        d[k + 'x'] = 2
except RuntimeError:
    log('RuntimeError')
""",
# Exceptions
"""
try:
    raise ValueError('bad', $i)
except ValueError as error:
    log(error.args); log(str(error)); log(repr(error)); log(isinstance(error, Exception)); log(type(error) is ValueError)
try:
    raise KeyError('k')
except LookupError as error:
    log(str(error)); log(type(error).__name__)
try:
    raise TypeError
except (ValueError, TypeError) as error:
    log(repr(error)); log(str(error) == '')
""",
"""
class Mine(ValueError):
    def __init__(self, code, text='none'):
        super().__init__(text)
        self.code = code
class Deeper(Mine):
    pass
for cls in (Mine, Deeper):
    try:
        raise cls($i, text='t')
    except Mine as error:
        log((type(error).__name__, error.code, str(error), isinstance(error, ValueError)))
try:
    try:
        raise Deeper(2)
    except Mine as error:
        log('inner')
        raise
except ValueError as error:
    log(('outer', error.code))
""",
"""
def risky(n):
    try:
        if n == 0:
            raise ValueError('zero')
        return 10 // (n - 1)
    except ZeroDivisionError:
        return 'div'
    else:
        return 'never'
    finally:
        done.append(n)
done = []
for n in (0, 1, $i + 2):
    try:
        log(risky(n))
    except ValueError as error:
        log('caught ' + str(error))
log(done)
""",
"""
try:
    try:
        raise KeyError('a')
    except KeyError as first:
        raise RuntimeError('b') from first
except RuntimeError as second:
    log(str(second)); log(repr(second.__cause__))
try:
    assert $i > 100, f'too small: {$i}'
except AssertionError as error:
    log(str(error))
def f():
    try:
        return 'try'
    finally:
        return 'finally'
log(f())
""",
"""
out = []
for i in range(4):
    try:
        if i == $i:
            continue
        if i == $j:
            break
        out.append(i)
    finally:
        out.append('f')
else:
    out.append('else')
log(out)
""",
"""
class Stack:
    log = []
    def __init__(self, name, swallows=False):
        self.name, self.swallows = name, swallows
    def __enter__(self):
        Stack.log.append('enter ' + self.name)
        return self.name * 2
    def __exit__(self, kind, value, trace):
        Stack.log.append(('exit', self.name, kind.__name__ if kind else None))
        return self.swallows
with Stack('a') as a, Stack('b'):
    log(a)
with Stack('c', swallows=True):
    raise ValueError('x')
try:
    with Stack('d'):
        1 // 0
except ZeroDivisionError:
    log('through')
log(Stack.log)
""",
# Classes
"""
class Config:
    kind = 'base'
    shared = []
    def __init__(self, block, stages=$i):
        self.block = block
        self.stages = stages
        self.shared.append(block)
    def total(self):
        return self.block * self.stages
    @property
    def area(self):
        return self.block ** 2
    @staticmethod
    def half(x):
        return x // 2
    @classmethod
    def make(cls, n):
        return cls(n * 2, stages=1)
a, b = Config($j), Config.make($k)
log((a.block, a.stages, a.total(), a.area, a.half(9), Config.half(4), b.block, b.total(), Config.shared, a.kind, type(b).__name__))
a.kind = 'own'
a.block += 5
log((a.kind, b.kind, Config.kind, a.total(), isinstance(a, Config), isinstance(a, int), a == a, a == b, a is a))
Config.kind = 'changed'
log((a.kind, b.kind)); log(hasattr(a, 'nope')); log(getattr(a, 'block')); setattr(a, 'extra', 3); log(a.extra); log(sorted(vars(b).items()))
try:
    a.missing
except AttributeError:
    log('AttributeError')
try:
    a.area = 4
except AttributeError:
    log('no setter')
del a.extra
log(hasattr(a, 'extra')); log(a.__dict__)
""",
"""
class Base:
    def __init__(self, x):
        self.x = x
    def name(self):
        return 'base' + self.suffix()
    def suffix(self):
        return '.b'
class Left(Base):
    def suffix(self):
        return '.l' + super().suffix()
class Right(Base):
    def suffix(self):
        return '.r' + super().suffix()
class Both(Left, Right):
    def __init__(self, x, y):
        super().__init__(x)
        self.y = y
o = Both($i, $j)
log((o.x, o.y, o.name(), isinstance(o, Right), issubclass(Both, Base), [c.__name__ for c in Both.__mro__]))
""",
"""
class V:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __add__(self, o):
        return V(self.x + o.x, self.y + o.y)
    def __mul__(self, k):
        return V(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __neg__(self):
        return V(-self.x, -self.y)
    def __eq__(self, o):
        return isinstance(o, V) and (self.x, self.y) == (o.x, o.y)
    def __hash__(self):
        return hash((self.x, self.y))
    def __lt__(self, o):
        return self.x < o.x
    def __repr__(self):
        return f'V({self.x}, {self.y})'
    def __iter__(self):
        return iter((self.x, self.y))
    def __len__(self):
        return 2
    def __getitem__(self, i):
        return (self.x, self.y)[i]
    def __bool__(self):
        return self.x != 0
    def __call__(self, k):
        return k + self.x
    def __contains__(self, k):
        return k in (self.x, self.y)
a, b = V($i, $j), V(1, 2)
log(a + b); log(a * 3); log(2 * b); log(-a); log(a == V($i, $j)); log(a != b); log(sorted([b, a])); log([*a]); log(len(a)); log(b[1]); log(b[-1])
log(bool(a)); log(a(4)); log($i in a); log(str(b)); log(f'{b}'); log({a: 1}[V($i, $j)]); log([a, b].index(V(1, 2))); x, y = b; log(x - y)
log(max(a, b, key=lambda v: v.y)); log(b in [V(1, 2)])
a += b
log(a)
""",
"""
class Box:
    def __init__(self):
        self._d = {}
    def __setitem__(self, k, v):
        self._d[k] = v
    def __getitem__(self, k):
        return self._d[k]
    def __delitem__(self, k):
        del self._d[k]
    def __getattr__(self, name):
        if name.startswith('x'):
            return name + '!'
        raise AttributeError(name)
    @property
    def size(self):
        return len(self._d)
    @size.setter
    def size(self, n):
        self._d = {i: i for i in range(n)}
b = Box()
b['k'] = $i
b['k'] += 2
log(b['k']); log(b.xyz); log(hasattr(b, 'abc')); del b['k']; log(b.size); b.size = $j; log(b.size); log(getattr(b, 'q', 1))
""",
"""
class Registry(type(object)):
    pass
registry = {}
def register(name):
    def add(cls):
        registry[name] = cls
        return cls
    return add
@register('a')
class A:
    value = $i
@register('b')
class B(A):
    value = A.value + 1
    other = [value * i for i in (1, 2)] if False else value
log({k: c.value for k, c in registry.items()}); log(registry['b'].__name__); log(B.other); log(B().value); log(A is registry['a'])
""",
"""
class Lazy:
    count = 0
    @functools.cached_property
    def value(self):
        Lazy.count += 1
        return Lazy.count + $i
    def __str__(self):
        return 'lazy'
l = Lazy()
log((l.value, l.value, Lazy.count)); log(str(l)); log(f'{l!s:>6}')
class Meta:
    x = $j
    y = x + 1
    def get(self):
        return self.y
    table = {'a': x}
log(Meta().get()); log(Meta.table); Meta.table['b'] = 1; log(Meta().table)
""",
"""
@dataclasses.dataclass
class P:
    x: int
    y: int = $i
    tags: list = dataclasses.field(default_factory=list)
    def norm(self):
        return self.x * self.x + self.y
p, q = P(1), P(x=2, y=3)
p.tags.append('t')
log(p); log(q); log(p == P(1, $i, ['t'])); log(p == q); log(q.norm()); log(dataclasses.replace(q, x=9)); log(dataclasses.asdict(p))
log([f.name for f in dataclasses.fields(P)]); p.x = 7; log(p.x)
@dataclasses.dataclass(frozen=True, order=True)
class Q:
    x: int
    y: int = 2
    z: float = 0.5
    def __post_init__(self):
        assert self.x != 13
a, b = Q(1, 2), Q(1, 3)
log(a < b); log(sorted([b, a])[0].y); log(a.z)
try:
    a.x = 3
except AttributeError as error:
    log(type(error).__name__)
try:
    Q(13)
except AssertionError:
    log('asserted')
try:
    P()
except TypeError:
    log('TypeError')
""",
"""
class N(typing.NamedTuple):
    a: int
    b: str = 'd'
    def both(self):
        return (self.b, self.a)
    @property
    def double(self):
        return self.a * 2
n = N($i)
log(n); log(n.both()); log(n.double); log(n[0]); log(n == ($i, 'd')); log(n._replace(a=4)); log(n._asdict()); log(N._fields); x, y = n; log(y)
M = collections.namedtuple('M', 'p q', defaults=[$j])
log(M(1)); log(M(1, 2).q); log(len(n)); log(isinstance(n, tuple)); log(M._make([3, 4])); log(sorted([M(2), M(1)]))
""",
"""
class Color(enum.Enum):
    RED = 1
    GREEN = $i + 5
    ALIAS = 1
    @property
    def shown(self):
        return self.name.lower() + str(self.value)
    @classmethod
    def first(cls):
        return cls.RED
log(Color.RED); log(Color.RED.name); log(Color.GREEN.value); log(len(Color)); log([c.name for c in Color]); log(Color(1)); log(Color['RED'])
log(Color.RED is Color.ALIAS); log(Color.RED == 1); log(Color.RED == Color(1)); log(Color.GREEN.shown); log(Color.first()); log(Color.RED in Color)
log({Color.RED: 'r'}[Color.ALIAS]); log(isinstance(Color.RED, Color)); log(f'{Color.RED}'); log(str(Color.GREEN)); log(list(Color))
try:
    Color(77)
except ValueError:
    log('ValueError')
try:
    Color['NOPE']
except KeyError:
    log('KeyError')
""",
"""
class Mode(enum.IntEnum):
    OFF = 0
    ON = 1
    MANY = $i + 2
log(Mode.ON.name); log(Mode.ON + 1); log(Mode.ON == 1); log(Mode.OFF < Mode.ON); log([1, 2, 3][Mode.ON]); log(Mode(1)); log(int(Mode.MANY)); log(len(Mode))
log(max(Mode)); log(f'{Mode.ON}'); log(f'{Mode.ON:3d}'); log(repr(Mode.ON)); log(isinstance(Mode.ON, int)); log(bool(Mode.OFF)); log(sum(Mode)); log(Mode.ON * 2.5)
class S(str, enum.Enum):
    A = 'a'
    B = 'b' * $j
log(S.A == 'a'); log(S.A.value); log(S('a').name); log(S.A.upper()); log(S.B in ('b',))
class Auto(enum.Enum):
    X = enum.auto()
    Y = enum.auto()
log([(m.name, m.value) for m in Auto])
class F(enum.IntFlag):
    R = 1
    W = 2
log(int(F.R | F.W)); log(bool(F.R & F.W))
""",
# functools
"""
runs = []
@functools.lru_cache(maxsize=None)
def slow(x, y=1):
    runs.append(x)
    return x * 10 + y
log([slow($i), slow($i), slow($i, 2), slow($j + 20)]); log(runs)
@functools.cache
def fib(n):
    runs.append(n)
    return n if n < 2 else fib(n - 1) + fib(n - 2)
log(fib(50)); log(len(runs))
slow.cache_clear()
slow($i)
log(len(runs)); log(slow.__name__)
""",
"""
half = functools.partial(operator.floordiv, $n)
log(half($i + 1)); p = functools.partial(dict, a=1); log(p(b=$j)); log(p(a=3)); log(functools.reduce(lambda a, b: a * 31 + b, $l, 7))
log(functools.reduce(operator.add, [[1], [2]])); log(sorted($l, key=functools.cmp_to_key(lambda a, b: b - a)))
try:
    functools.reduce(operator.add, [])
except TypeError:
    log('TypeError')
log(p.keywords); log(half.args)
""",
"""
log(sorted([('b', $i), ('a', $j), ('b', 0)], key=operator.itemgetter(0))); log(operator.attrgetter('real')($i)) if False else log(0)
log(operator.mul($i, $j)); log(operator.truediv(1, $i + 1)); log(operator.methodcaller('upper')('x')); log(min($l, default='none'))
log(sorted($l, key=lambda x: (x % 3, -x))); log(sum([0.5, 0.25, $i])); log(sum(($l, [1]), [])); log(max([[1, 2], [1, 3]])); log(min('b', 'a', key=ord))
""",
# Collections
"""
c = collections.Counter('mississippi')
log(c['s']); log(c['z']); log(c.most_common(2)); log(sum(c.values())); log(sorted(c.items())); log(sorted(c)); c.update('zz'); log(c['z'])
d = collections.defaultdict(list)
d['a'].append($i); d['b'].append(2)
log(dict(d)); log(len(d)); log(d.get('zz')); log('zz' in d)
q = collections.deque([1, 2, 3])
q.append(4); q.appendleft(0)
log(q.popleft()); log(list(q)); log(q[0])
o = collections.OrderedDict(a=1)
o['b'] = 2
log(list(o)); o.move_to_end('a'); log(list(o.items()))
""",
"""
s = {1, 2, $i}
s.add(3); s.discard(99); s |= {7}
log(sorted(s)); log(s >= {1, 2}); log(s.isdisjoint({100})); log(sorted(s ^ {1, 50})); log(len(s)); log(frozenset([1]) == {1}); log(type(frozenset()).__name__)
log(frozenset([2])); log(set()); log(sorted(s.union([9], (8,)))); log({1: 'a', True: 'b', 1.0: 'c'}); log({$i} == {float($i)}); log(frozenset())
try:
    {[]}
except TypeError:
    log('unhashable')
try:
    {}[[]] = 1
except TypeError:
    log('unhashable key')
log({frozenset([1]): 2}[frozenset([1])]); log(hash((1, 2)) == hash((1, 2)))
""",
"""
a = [[0] * 2 for _ in range(2)]
b = [[0] * 2] * 2
a[0][0] = $i
b[0][0] = $i
log(a); log(b); c = a; c.append(1); log(a); d = a[:]; d.append(2); log(len(a)); e = copy.deepcopy(b); e[0][0] = 99; log(b); log(a == d[:-1]); log([1, 2] < [1, 3])
log((1, 2) < (1, 2, 0)); log([] == ()); log((1,) + (2,)); t = (1, [2]); t[1].append(3); log(t); log([1, 2, 3][::-1]); log((1, 2, 3)[-2:]); log([None, True, 1.0, 'x'])
x = y = []
x.append(1)
log(y); l = [1, 2, 3, 4, 5]; l[1:3] = [9]; log(l); l[::2] = [0] * len(l[::2]); log(l); del l[1:]; log(l); l[5:] = [7]; log(l)
try:
    l[::2] = [1, 2, 3, 4, 5]
except ValueError:
    log('ValueError')
try:
    (1, 2)[0] = 3
except TypeError:
    log('TypeError')
try:
    (1, 2)[2]
except IndexError:
    log('IndexError')
""",
# Text
"""
s = $t
log(s[::-1]); log(list(s)); log(len(s)); log([c for c in s][:3]); log(s[-1:]); log(s.encode() == s.encode()) if False else log(0)
log('{:>{w}}|{:<{w}}'.format(1, 2, w=$i + 3)); log(f'{$n:,}'); log(f'{$f:.3e}'); log(f'{"a"!r:>6}'); log(f'{$i=}'); log(f'{$i = :>4}'); log('%s %r %d%%' % ('a', 'b', $i))
log('%(k)s-%(n)05d' % {'k': 'v', 'n': $i}); log('a{{b}}'.format()); log('{0[1]} {1.real}'.format([1, 2], $i)); log(f"{'nested ' + f'{$i}'}"); log('%5.1f|%-6s|%+d' % ($f, 'x', 3))
log('abc'.translate(str.maketrans('ab', 'xy'))); log('a\\tb'.expandtabs(4)); log('x'.isprintable()); log('Ab'.istitle())
""",
"""
log(int('  42 ')); log(int('-0x1f', 16)); log(int('1_000')); log(int('z', 36)); log(float(' 1e-3 ')); log(float('-inf')); log(str(1e16)); log(repr(0.1 + 0.2)); log(str(1e15)); log(1e-7)
for bad in ('', '1.5', '0x10', '1__0', 'abc', ' '):
    try:
        log(int(bad))
    except ValueError:
        log('ValueError')
log(bool('False')); log(int(True)); log(str(None)); log(int(-3.99)); log(float($n % 10 ** 25)); log(round(-2.5)); log(round(1.005, 2)); log(round($n, -2)); log(-7 // 2); log(-7 % 3); log(7 % -3)
log(-7.5 // 2); log(-7.5 % 2); log(2 ** -2); log((-2) ** 3); log(10 ** 18 / 3); log(2 ** 1000 % 1000003); log(1 << 70); log(-1 >> 3); log(~$i); log($i ^ -1); log(True + True); log(True & False)
""",
"""
log(2 ** 53 == 2.0 ** 53); log(2 ** 53 + 1 == float(2 ** 53 + 1)); log(10 ** 400 > 1e308); log(2 ** 63 < 9.3e18); log(float('nan') == float('nan')); log(0.0 == -0.0); log(1 == True)
log('1' == 1); log(1 < 2 < 3 > 0); log(None is None); log([] is []); log(not []); log(0 or 'x'); log('' and 1); log(1 if [] else 2); log((lambda: None)())
try:
    1 < 'a'
except TypeError:
    log('TypeError')
try:
    10 ** 400 * 1.0
except OverflowError:
    log('OverflowError')
try:
    'a' + 1
except TypeError:
    log('TypeError')
try:
    [1] + (2,)
except TypeError:
    log('TypeError')
log(math.inf > 10 ** 500); log(min(1, 1.0)); log(max(True, 1)); log(divmod(-7, 2)); log(divmod(7.5, -2)); log(pow(3, -1, 7)); log(pow(2, $i)); log(abs(-0.0)); log((0.1).hex()); log((5).to_bytes(2, 'big'))
""",
"""
log(math.sqrt(2)); log(math.floor(-0.5)); log(math.log(8, 2)); log(math.prod($l)); log(math.isqrt($n * $n)); log(math.comb(10, $i)); log(math.hypot(3, 4)); log(math.copysign(1, -0.0)); log(math.pi)
log(math.factorial($i)); log(math.exp(1)); log(math.isclose(0.1 + 0.2, 0.3)); log(math.fmod(-7, 3)); log(math.nan != math.nan); log(math.atan2(1, 2)); log(math.dist([0, 0], [3, 4])); log(math.log2(1 << $i))
for bad in (lambda: math.sqrt(-1), lambda: math.log(0), lambda: math.factorial(-1), lambda: math.exp(10000), lambda: 1 / 0, lambda: 1 % 0, lambda: 0.0 ** -1, lambda: 1 << -1):
    try:
        log(bad())
    except (ValueError, ArithmeticError) as error:
        log(type(error).__name__)
""",
"""
log(type(1)); log(type('')); log(type(None).__name__); log(type([]) is list); log(type(1) == int); log(isinstance(True, int)); log(type(True) is int); log(isinstance(None, type(None)))
log(int); log(type(lambda: 0).__name__); log(type(log).__name__); log(type(range(3)).__name__); log(range(0, 10, 3)); log(list(range(5))[$j:]); log(range(10)[2:8:2]); log(5 in range(0, 10, 5)); log(len(range(0, -9, -2)))
log(range(3) == range(0, 3)); log(range(10)[-1]); log(list(reversed(range(4)))); log(range(5).index(3)); log(repr(type(1.5))); log(issubclass(bool, int)); log(type(type(1)).__name__); log(str(int))
""",
# Names and statements
"""
GLOBALS['n'] = $i
def change():
    GLOBALS['n'] += 1
    return GLOBALS['n']
log(change()); log(change())
a = b = $j
a += 1
log((a, b)); (c, d), e = (1, 2), 3; log((c, d, e)); *f, g = 'abc'; log(f); h, *_, k = range(5); log((h, k, _))
i = 5
log([i for i in range(3)]); log(i); log({i: j for i, j in zip('ab', (1, 2))}); log(i)
for i in range(3):
    pass
log(i)
del a
try:
    a
except NameError:
    log('NameError')
x: int = $k
log(x)
""",
"""
def f():
    if (n := $i) > 3:
        return n
    while (n := n + 1) < 5:
        pass
    return ('w', n)
log(f()); log([y for x in range(6) if (y := x % 3)]); log([[(i, j) for j in range(i)] for i in range(3)]); log([x for row in [[1], [2, $j]] for x in row if x > 1])
log({(i, j): i * j for i in range(2) for j in range(2)}); log(sorted({x // 2 for x in range(7)})); log(sum(x for x in range(5) if x % 2)); log(dict(a=1, **{'b': $k}))
log(1 if $i > 2 else 2 if $j else 3); log((lambda x, *y, z=1, **w: (x, y, z, w))(1, 2, z=3, q=4)); log([*range(3), *'ab']); log({**{'a': 1}, 'a': 2}); log(print('x'))
match_like = {'a': lambda: 1, 'b': lambda: $i}
log(match_like['b']())
""",
"""
def scope():
    try:
        log(late)
    except UnboundLocalError:
        log('UnboundLocalError')
    late = 1
    return late
late = 5
log(scope())
def classes():
    x = 'local'
    class C:
        y = x
        z = 'class'
        def m(self):
            return x
    return (C.y, C.z, C().m())
log(classes())
""",
"""
def search(rows, wanted):
    for i, row in enumerate(rows):
        for j, x in enumerate(row):
            if x == wanted:
                break
        else:
            continue
        return (i, j)
    else:
        return None
log(search([[1, 2], [3, $i]], $i)); log(search([], 1)); log(search([[9]], 8))
n = 0
while True:
    n += 1
    if n > $j + 2:
        break
else:
    log('never')
log(n)
""",
"""
def numbers(n):
    for i in range(n):
        yield i * 2
    yield 'end'
log(list(numbers($i))); g = numbers(2); log(next(g)); log(next(g)); log(list(g))
def chain(*its):
    for it in its:
        yield from it
log(list(chain([1], (2, 3))))
@contextlib.contextmanager
def managed(x):
    log('in')
    yield x + 1
    log('out')
with managed($j) as m:
    log(m)
""",
"""
op = '$o'
match op:
    case 'add' | 'plus':
        log('sum')
    case 'neg':
        log('minus')
    case _:
        log('other')
match [$i, $j]:
    case [0, x]:
        log(x)
    case [x, y] if x > y:
        log(x - y)
    case [x, *rest]:
        log(rest)
""",
"""
class Node:
    __slots__ = ('value', 'next')
    def __init__(self, value, next=None):
        self.value, self.next = value, next
    def __iter__(self):
        self.at = None if False else None if False else None
        return iter([self.value])
def total(node):
    return 0 if node is None else node.value + total(node.next)
log(total(Node($i, Node($j))))
class It:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return self
    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n
log(list(It($i))); log(sum(It(3))); log([x for x in It(2)]); a, b = It(2); log((a, b)); log(max(It(4))); log(dict(zip('ab', It(2))))
""",
"""
class A:
    @classmethod
    def who(cls):
        return cls.__name__
    def __init_subclass__(cls, **kwargs):
        subclasses.append(cls.__name__)
subclasses = []
class B(A):
    pass
log(B.who()); log(subclasses); log(B.__bases__ == (A,)); log(A.__doc__); log(B().who()); log(type(B()) is B); log(isinstance(B, type)); log(B.__module__ == A.__module__)
o = B()
o.f = lambda x: x + $i
log(o.f(1)); m = 'abc'.upper; log(m()); g = [].append; h = str.upper; log(h('x')); log(list(map(str.strip, [' a', 'b '])))
""",
"""
import abc
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        ...
    def twice(self):
        return self.area() * 2
class Square(Shape):
    def __init__(self, side):
        self.side = side
    def area(self):
        return self.side ** 2
log(Square($i).twice())
try:
    Shape()
except TypeError:
    log('TypeError')
class D(dict):
    def __missing__(self, key):
        return key * 2
log(D(a=1)['a']); log(D()['x'])
class L(list):
    def top(self):
        return self[-1]
log(L([1, $j]).top())
""",
"""
ns = types.SimpleNamespace(a=$i, b='x')
ns.c = 3
log(ns.a + ns.c); log(ns)
t = tl.constexpr($i)
log(t.value); log(isinstance(t, int)); log(t + 1 == $i + 1); log(bool(t)); log(isinstance(t.value, int)); log(f'{t}'); log(isinstance(t, tl.constexpr)); log([t][0].value)
log(tl.float32 == tl.float32); log(tl.int32.primitive_bitwidth); log(triton.cdiv($n % 1000, 7)); log(triton.next_power_of_2($i + 3))
""",
]
