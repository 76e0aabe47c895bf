"""Random expressions and statements of Python, by the type of what they give.

A Body writes the lines of one function. It knows the type of every name that it has bound, so that most of what it writes means
something; some of it fails, which the programs catch and print, too. Nothing depends on the order of sets, on identities of
numbers or on time.
"""

INTS = ["0", "1", "-1", "2", "3", "5", "7", "-8", "10", "16", "63", "64", "100", "255", "-256", "1000", "4096", "2**31", "2**63 - 1",
        "-2**63", "2**64", "10**20", "-10**18 - 7", "3**50", "True", "False", "0x7f", "0b1011", "1_000"]
FLOATS = ["0.0", "-0.0", "0.5", "1.0", "-1.5", "2.5", "3.5", "0.1", "2.675", "1e16", "1e-5", "123456.789", "1e300", "-1e-300", "1e22",
          "float('inf')", "float('nan')", "5e-324", "4503599627370497.5", "9007199254740993.0", "1/3"]
TEXTS = ["''", "'a'", "'abc'", "'Hello World'", "' padded '", "'x,y,,z'", "'tab\\there'", "\"it's\"", "'\\u00e9t\\u00e9'", "'12'",
         "'-7'", "'3.5'", "'UPPER_case1'", "'line\\nline'", "'a-b-c'", "'ababab'", "'\\U0001f600!'", "r'\\d'"]
SCALARS = ("int", "float", "bool", "text")
TYPES = SCALARS + ("ints", "texts", "pair", "table", "group")


class Body:
    def __init__(self, rng, indent="    "):
        self.rng = rng
        self.lines = []
        self.indent = indent
        self.names = {kind: [] for kind in TYPES}
        self.count = 0

    # Lines

    def write(self, line):
        self.lines.append(self.indent + line)

    def block(self, line):
        self.write(line)
        self.indent += "    "

    def end(self):
        self.indent = self.indent[:-4]

    def fresh(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self, *options):
        return self.rng.choice(options)

    # Expressions

    def expr(self, kind, depth=2):
        known = self.names[kind]
        if known and self.rng.random() < 0.4:
            return self.rng.choice(known)
        return getattr(self, kind)(depth)

    def any_scalar(self, depth):
        return self.expr(self.pick(*SCALARS), depth)

    def any_value(self, depth):
        return self.expr(self.pick(*TYPES), depth)

    def int(self, depth):
        if depth <= 0:
            return self.pick(*INTS)
        a = lambda: self.expr("int", depth - 1)
        form = self.rng.randrange(23)
        if form < 7:
            return f"({a()} {self.pick('+', '-', '*', '//', '%', '&', '|', '^')} {a()})"
        if form == 7:
            return f"({a()} {self.pick('<<', '>>')} {self.rng.randrange(0, 70)})"
        if form == 8:
            return f"({a()} ** {self.rng.randrange(0, 5)})"
        if form == 9:
            return f"({self.pick('-', '~', '+', 'not ')}{a()})"
        if form == 10:
            return f"len({self.expr(self.pick('text', 'ints', 'texts', 'table', 'group'), depth - 1)})"
        if form == 11:
            return f"{self.pick('min', 'max')}({a()}, {a()}, {a()})"
        if form == 12:
            return f"{self.pick('min', 'max', 'sum')}({self.expr('ints', depth - 1)}{self.pick('', ' or [0]')})"
        if form == 13:
            return f"round({self.expr('float', depth - 1)})"
        if form == 14:
            return f"int({self.expr(self.pick('float', 'text', 'bool'), depth - 1)})"
        if form == 15:
            return f"({a()} if {self.expr('bool', depth - 1)} else {a()})"
        if form == 16:
            return f"divmod({a()}, {a()})[{self.pick(0, 1, -1)}]"
        if form == 17:
            return f"abs({a()})"
        if form == 18:
            return f"{self.expr('ints', depth - 1)}[{self.rng.randrange(-3, 3)}]"
        if form == 19:
            return f"math.{self.pick('gcd', 'lcm')}({a()}, {a()})"
        if form == 20:
            return f"math.{self.pick('floor', 'ceil', 'trunc')}({self.expr('float', depth - 1)})"
        if form == 21:
            return f"({a()}).{self.pick('bit_length', 'bit_count')}()"
        return f"{self.expr('text', depth - 1)}.{self.pick('find', 'count', 'rfind')}({self.pick(*TEXTS)})"

    def float(self, depth):
        if depth <= 0:
            return self.pick(*FLOATS)
        a = lambda: self.expr(self.pick("float", "float", "int"), depth - 1)
        form = self.rng.randrange(12)
        if form < 5:
            return f"({a()} {self.pick('+', '-', '*', '/', '/', '//', '%')} {self.expr('float', depth - 1)})"
        if form == 5:
            return f"({self.expr('int', depth - 1)} / {self.expr('int', depth - 1)})"
        if form == 6:
            return f"float({self.expr(self.pick('int', 'text', 'float'), depth - 1)})"
        if form == 7:
            return f"round({self.expr('float', depth - 1)}, {self.rng.randrange(-3, 6)})"
        if form == 8:
            return f"math.{self.pick('sqrt', 'fabs', 'log2', 'modf', 'frexp')}({a()})"
        if form == 9:
            return f"({self.expr('float', depth - 1)} ** {self.pick(0, 1, 2, 0.5, -1, 3)})"
        if form == 10:
            return f"abs({self.expr('float', depth - 1)})"
        return f"({self.expr('int', depth - 1)} ** {self.pick(-1, -2, 0.5)})"

    def bool(self, depth):
        if depth <= 0:
            return self.pick("True", "False")
        kind = self.pick("int", "float", "text", "ints", "pair")
        a = lambda: self.expr(kind, depth - 1)
        operator = self.pick("<", "<=", ">", ">=", "==", "!=")
        form = self.rng.randrange(10)
        if form < 3:
            return f"({a()} {operator} {a()})"
        if form == 3:
            return f"({self.expr('int', depth - 1)} {operator} {self.expr('float', depth - 1)} {self.pick('<', '>=', '!=')} {self.expr('int', 0)})"
        if form == 4:
            return f"({self.any_scalar(depth - 1)} {self.pick('and', 'or')} {self.any_scalar(depth - 1)})"
        if form == 5:
            return f"(not {self.any_value(depth - 1)})"
        if form == 6:
            return f"({self.expr('int', depth - 1)} {self.pick('in', 'not in')} {self.expr(self.pick('ints', 'group', 'pair'), depth - 1)})"
        if form == 7:
            return f"({self.expr('text', 0)} {self.pick('in', 'not in')} {self.expr(self.pick('text', 'texts', 'table'), depth - 1)})"
        if form == 8:
            return f"isinstance({self.any_value(depth - 1)}, {self.pick('int', 'float', 'str', 'bool', '(int, str)', 'list', 'tuple', 'object')})"
        return f"{self.pick('any', 'all')}({self.expr(self.pick('ints', 'texts'), depth - 1)})"

    def text(self, depth):
        if depth <= 0:
            return self.pick(*TEXTS)
        a = lambda: self.expr("text", depth - 1)
        form = self.rng.randrange(14)
        if form == 0:
            return f"({a()} + {a()})"
        if form == 1:
            return f"({a()} * {self.rng.randrange(-1, 4)})"
        if form == 2:
            return f"{self.pick('str', 'repr')}({self.any_value(depth - 1)})"
        if form == 3:
            return f"{a()}.{self.pick('upper', 'lower', 'strip', 'title', 'capitalize', 'swapcase', 'lstrip', 'rstrip')}()"
        if form == 4:
            return f"{a()}.replace({self.expr('text', 0)}, {self.expr('text', 0)}{self.pick('', ', 1')})"
        if form == 5:
            return f"{a()}.{self.pick('center', 'ljust', 'rjust')}({self.rng.randrange(0, 14)}{self.pick('', ', chr(42)')})"
        if form == 6:
            return f"{a()}.zfill({self.rng.randrange(0, 10)})"
        if form == 7:
            return f"{a()}{self.slice()}"
        if form == 8:
            return f"{self.expr('text', 0)}.join({self.expr('texts', depth - 1)})"
        if form == 9:
            return f"{self.pick('hex', 'oct', 'bin')}({self.expr('int', depth - 1)})"
        if form == 10:
            return self.formatted(depth)
        if form == 11:
            return f"{a()}.{self.pick('removeprefix', 'removesuffix')}({self.expr('text', 0)})"
        if form == 12:
            return f"type({self.any_value(depth - 1)}).__name__"
        return f"{a()}[{self.rng.randrange(-3, 4)}]"

    def slice(self):
        bound = lambda: self.pick("", "", str(self.rng.randrange(-4, 6)), str(self.rng.randrange(-4, 6)))
        step = self.pick("", "", f":{self.pick('', 1, 2, -1, -2, 3, -3)}")
        return f"[{bound()}:{bound()}{step}]"

    def spec(self, kind):
        """A format specification, nearly always one that Python accepts."""
        align = self.pick("", "", "<", ">", "^", "*<", "0>", "_^") if kind == "text" else \
            self.pick("", "", "<", ">", "^", "=", "*<", "0=", "x^")
        if kind == "text":
            return align + self.pick("", "8", "12", "3") + self.pick("", "", ".2", ".0") + self.pick("", "s")
        sign = self.pick("", "", "+", "-", " ")
        zero = self.pick("", "", "0")
        width = self.pick("", "6", "12", "20")
        group = self.pick("", "", ",", "_")
        if kind == "int":
            code = self.pick("", "d", "d", "x", "X", "o", "b", "n", "c", "e", ".3f", "%")
            if code in ("n", "c") or (group == "," and code in ("x", "X", "o", "b")):
                group = ""
            if code == "c":
                sign = zero = ""
            return align + sign + self.pick("", "", "#") * (code in ("x", "X", "o", "b", "d")) + zero + width + group + code
        precision = self.pick("", ".0", ".1", ".3", ".6", ".10")
        code = self.pick("", "e", "E", "f", "F", "g", "G", "%", "n")
        if code == "n":
            group = ""
        return align + sign + self.pick("", "", "#") + zero + width + group + precision + code

    def formatted(self, depth):
        kind = self.pick("int", "float", "text")
        value = self.expr(kind, depth - 1)
        form = self.rng.randrange(5)
        if form == 0:
            return f"format({value}, {self.spec(kind)!r})"
        if form == 1:
            name = self.rng.choice(self.names[kind]) if self.names[kind] else self.pick(*{"int": INTS, "float": FLOATS[:-1]}.get(kind, ["'f'"]))
            name = name if "'" not in name and "\\" not in name and "[" not in name else "1"
            spec = self.spec("int" if name == "1" else kind)
            return "f\"<{" + name + self.pick("", "!r", "!s").replace("!r", "") + ":" + spec + "}>\""
        if form == 2:
            return f"'[{{:{self.spec(kind)}}}]'.format({value})"
        if form == 3:
            flags = self.pick("", "-", "+", "0", " ", "#", "-#")
            width = self.pick("", "8", "3")
            code = {"int": self.pick("d", "i", "x", "X", "o", "s", "r", "5.3d"), "float": self.pick("f", ".2f", "e", ".3g", "G", "d", "s"),
                    "text": self.pick("s", "r", ".2s", "c")}[kind]
            return f"'%{flags}{width if code[0].isalpha() else ''}{code}|' % ({value},)"
        return "'{0}-{1!r}-{name}'.format(" + f"{value}, {self.any_scalar(depth - 1)}, name={self.any_scalar(depth - 1)})"

    def ints(self, depth):
        if depth <= 0:
            return "[" + ", ".join(self.pick(*INTS[:16]) for _ in range(self.rng.randrange(0, 5))) + "]"
        a = lambda: self.expr("ints", depth - 1)
        form = self.rng.randrange(15)
        if form == 0:
            return f"({a()} + {a()})"
        if form == 1:
            return f"({a()} * {self.rng.randrange(-1, 3)})"
        if form == 2:
            return f"{a()}{self.slice()}"
        if form == 3:
            return f"sorted({a()}{self.pick('', ', reverse=True', ', key=abs', ', key=lambda x: -x', ', key=lambda x: x % 3')})"
        if form == 4:
            return f"[x {self.pick('+', '*', '-', '%', '//')} {self.rng.randrange(1, 5)} for x in {a()}{self.pick('', ' if x > 0', ' if x % 2')}]"
        if form == 5:
            return f"list(range({self.rng.randrange(-3, 4)}, {self.rng.randrange(-4, 8)}, {self.pick(1, 2, 3, -1, -2)}))"
        if form == 6:
            return f"list(map({self.pick('abs', 'int', 'lambda x: x * x', 'operator.neg', 'bool')}, {a()}))"
        if form == 7:
            return f"list(filter({self.pick('None', 'lambda x: x > 1', 'bool')}, {a()}))"
        if form == 8:
            return f"list(reversed({a()}))"
        if form == 9:
            return f"[x * y for x in {a()} for y in {self.expr('ints', 0)} if x != y]"
        if form == 10:
            return f"list(itertools.{self.pick('accumulate', 'chain')}({a()}))"
        if form == 11:
            return f"sorted({self.expr('group', depth - 1)})"
        if form == 12:
            return f"list({self.expr('table', depth - 1)}.values())"
        if form == 13:
            return f"[*{a()}, *{self.expr('pair', depth - 1)}, {self.expr('int', 0)}]"
        return f"list(itertools.islice({a()}, {self.rng.randrange(0, 3)}, {self.rng.randrange(0, 5)}, {self.rng.randrange(1, 3)}))"

    def texts(self, depth):
        form = self.rng.randrange(7) if depth > 0 else 0
        if form == 0:
            return "[" + ", ".join(self.pick(*TEXTS) for _ in range(self.rng.randrange(0, 4))) + "]"
        if form == 1:
            return f"{self.expr('text', depth - 1)}.{self.pick('split', 'rsplit')}({self.pick('', repr(','), repr('a'), repr('-') + ', 1', 'None, 1')})"
        if form == 2:
            return f"list({self.expr('text', depth - 1)})"
        if form == 3:
            return f"[str(x) for x in {self.expr(self.pick('ints', 'pair'), depth - 1)}]"
        if form == 4:
            return f"sorted({self.expr('texts', depth - 1)}, key={self.pick('len', 'str.lower', 'lambda s: s[::-1]')})"
        if form == 5:
            return f"list({self.expr('table', depth - 1)})"
        return f"list({self.expr('text', depth - 1)}.partition({self.pick(*TEXTS[1:])}))"

    def pair(self, depth):
        if depth <= 0:
            return f"({self.pick(*INTS[:10])}, {self.pick(*INTS[:10])})"
        form = self.rng.randrange(5)
        if form == 0:
            return f"divmod({self.expr('int', depth - 1)}, {self.expr('int', depth - 1)})"
        if form == 1:
            return f"tuple({self.expr('ints', depth - 1)})"
        if form == 2:
            return f"({self.expr('int', depth - 1)}, *{self.expr('ints', depth - 1)})"
        if form == 3:
            return f"({self.expr('pair', depth - 1)} + {self.expr('pair', depth - 1)})"
        return f"{self.expr('pair', depth - 1)}{self.slice()}"

    def table(self, depth):
        if depth <= 0:
            return "{" + ", ".join(f"{self.pick(*TEXTS[:6])}: {self.pick(*INTS[:12])}" for _ in range(self.rng.randrange(0, 4))) + "}"
        form = self.rng.randrange(5)
        if form == 0:
            return f"{{k: len(k) for k in {self.expr('texts', depth - 1)}}}"
        if form == 1:
            return f"dict(zip({self.expr('texts', depth - 1)}, {self.expr('ints', depth - 1)}))"
        if form == 2:
            return f"{{**{self.expr('table', depth - 1)}, {self.expr('text', 0)}: {self.expr('int', depth - 1)}}}"
        if form == 3:
            return f"({self.expr('table', depth - 1)} | {self.expr('table', depth - 1)})"
        return f"dict(sorted({self.expr('table', depth - 1)}.items(){self.pick('', ', reverse=True', ', key=lambda kv: kv[1]')}))"

    def group(self, depth):
        if depth <= 0:
            return "{" + ", ".join(self.pick(*INTS[:14]) for _ in range(self.rng.randrange(1, 5))) + "}"
        form = self.rng.randrange(4)
        if form == 0:
            return f"set({self.expr(self.pick('ints', 'pair'), depth - 1)})"
        if form == 1:
            return f"({self.expr('group', depth - 1)} {self.pick('|', '&', '-', '^')} {self.expr('group', depth - 1)})"
        if form == 2:
            return f"{{x % 5 for x in {self.expr('ints', depth - 1)}}}"
        return f"{self.pick('set', 'frozenset')}({self.expr('group', depth - 1)})"

    # Statements

    def log(self, expression):
        self.write(f"log({expression})")

    def guarded(self, line):
        """A line that may fail, whose failure is printed."""
        self.block("try:")
        self.write(line)
        self.end()
        self.block("except Exception as error:")
        self.write("log(type(error).__name__)")
        self.end()

    def bind(self, kind=None):
        kind = kind or self.pick(*TYPES)
        name = self.fresh()
        start = {"int": "0", "float": "0.0", "bool": "False", "text": "''", "ints": "[]", "texts": "[]", "pair": "()", "table": "{}",
                 "group": "set()"}[kind]
        self.write(f"{name} = {start}")
        self.guarded(f"{name} = {self.expr(kind, 3)}")
        self.names[kind].append(name)
        self.write(f"log({name})")

    def statement(self, depth=2):
        forms = [self.change_int, self.change_list, self.change_table, self.unpack, self.walrus]
        if depth > 0:
            forms += [self.branch, self.loop, self.count_down, self.catch]
        self.rng.choice(forms)(depth)

    def nested(self, depth):
        before = {kind: list(names) for kind, names in self.names.items()}
        for _ in range(self.rng.randrange(1, 3)):
            if self.rng.random() < 0.5:
                self.guarded(f"log({self.any_value(2)})")
            else:
                self.statement(depth - 1)
        self.names = before

    def change_int(self, depth):
        if not self.names["int"]:
            return self.bind("int")
        name = self.rng.choice(self.names["int"])
        self.guarded(f"{name} {self.pick('+', '-', '*', '//', '%', '|', '^', '&')}= {self.expr('int', 1)}")
        self.guarded(f"{name} %= 10**30")

    def change_list(self, depth):
        if not self.names["ints"]:
            return self.bind("ints")
        name = self.rng.choice(self.names["ints"])
        index = self.rng.randrange(-3, 4)
        self.guarded(self.pick(
            f"{name}.append({self.expr('int', 1)})", f"{name}.extend({self.expr('ints', 1)})", f"{name}.insert({index}, 9)",
            f"log({name}.pop({self.pick('', index)}))", f"{name}.remove({self.expr('int', 0)})", f"{name}.sort(reverse=True)",
            f"{name}.reverse()", f"{name}[{index}] = {self.expr('int', 1)}", f"{name}{self.slice()} = {self.expr('ints', 1)}",
            f"del {name}[{index}]", f"del {name}{self.slice()}", f"{name} += {self.expr('ints', 1)}", f"{name}[{index}] += 3",
            f"log({name}.index({self.expr('int', 0)}))", f"{name}[{index}], x = 5, 6", f"{name} *= 2"))
        self.log(f"{name}[:40]")

    def change_table(self, depth):
        if not self.names["table"]:
            return self.bind("table")
        name, key = self.rng.choice(self.names["table"]), self.expr("text", 0)
        self.guarded(self.pick(
            f"{name}[{key}] = {self.expr('int', 1)}", f"log({name}.pop({key}, None))", f"log({name}.setdefault({key}, 3))",
            f"{name}.update({self.expr('table', 1)})", f"del {name}[{key}]", f"log({name}.get({key}, -1))", f"log({name}[{key}])",
            f"log({name}.popitem())", f"{name} |= {self.expr('table', 0)}", f"log(list({name}.items()))", f"log({key} in {name}.keys())"))
        self.log(name)

    def unpack(self, depth):
        a, b, c = self.fresh("u"), self.fresh("u"), self.fresh("u")
        self.write(f"{a} = {b} = {c} = 0")
        self.guarded(self.pick(f"{a}, {b} = {self.expr('pair', 1)}", f"{a}, *{b} = {self.expr('ints', 1)}",
                               f"*{a}, {b}, {c} = {self.expr('texts', 1)}", f"({a}, {b}), {c} = {self.expr('pair', 1)}, {self.expr('int', 1)}",
                               f"[{a}, [{b}, *{c}]] = 1, {self.expr('ints', 1)}", f"{a}, {b} = {b}, {a} = 3, 4"))
        self.log(f"({a}, {b}, {c})")

    def walrus(self, depth):
        name = self.fresh("w")
        self.write(f"{name} = 0")
        self.guarded(f"log([{name} := x + 1 for x in {self.expr('ints', 1)}])")
        self.guarded(f"log(({name} := {self.expr('int', 1)}) + {name})")
        self.log(name)

    def branch(self, depth):
        self.block("try:")
        self.block(f"if {self.expr('bool', 2)}:")
        self.nested(depth)
        self.end()
        if self.rng.random() < 0.5:
            self.block(f"elif {self.any_value(1)}:")
            self.nested(depth)
            self.end()
        self.block("else:")
        self.nested(depth)
        self.end()
        self.end()
        self.block("except Exception as error:")
        self.write("log(type(error).__name__)")
        self.end()

    def loop(self, depth):
        i = self.fresh("i")
        target, iterable = self.rng.choice([
            (i, f"range({self.rng.randrange(0, 4)}, {self.rng.randrange(0, 7)})"), (i, self.expr("ints", 1) + "[:5]"),
            (f"{i}, _", f"enumerate({self.expr('texts', 1)}, {self.rng.randrange(0, 3)})"), (f"_, {i}", f"list({self.expr('table', 1)}.items())"),
            (f"{i}, _", f"zip({self.expr('ints', 1)}, {self.expr('text', 1)})"), (i, f"reversed({self.expr('ints', 1)}[:5])")])
        self.block("try:")
        self.block(f"for {target} in {iterable}:")
        self.log(i)
        self.nested(depth)
        if self.rng.random() < 0.5:
            self.block(f"if {i} == {self.expr('int', 0)}:")
            self.write(self.pick("break", "continue"))
            self.end()
        self.end()
        if self.rng.random() < 0.5:
            self.block("else:")
            self.log("'no break'")
            self.end()
        self.end()
        self.block("except Exception as error:")
        self.write("log(type(error).__name__)")
        self.end()

    def count_down(self, depth):
        name = self.fresh("n")
        self.write(f"{name} = {self.rng.randrange(1, 5)}")
        self.block(f"while {name} > 0:")
        self.write(f"{name} -= 1")
        self.nested(depth)
        if self.rng.random() < 0.4:
            self.block(f"if {name} == 1:")
            self.write(self.pick("break", "continue"))
            self.end()
        self.end()
        self.block("else:")
        self.log(f"'ended', {name}"[:7])
        self.end()

    def catch(self, depth):
        self.block("try:")
        self.nested(depth)
        self.write(self.pick("pass", "raise ValueError('given')", f"log({self.expr('int', 2)})", "log({}['missing'])", "log([][0])",
                             "raise KeyError('k')", "int('x')", "assert False, 'no'", "log(1 // 0)"))
        self.end()
        self.block(f"except {self.pick('ValueError', 'LookupError', 'ArithmeticError', '(KeyError, IndexError)')} as caught:")
        self.log("('caught', type(caught).__name__)")
        self.end()
        self.block("except Exception as other:")
        self.log("('other', type(other).__name__)")
        self.end()
        if self.rng.random() < 0.5:
            self.block("else:")
            self.log("'else'")
            self.end()
        if self.rng.random() < 0.5:
            self.block("finally:")
            self.log("'finally'")
            self.end()
