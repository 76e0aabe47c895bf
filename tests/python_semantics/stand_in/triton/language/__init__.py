"""Stands in for triton.language: constexpr and static_print, which are all that the programs use of it at compile time."""


class constexpr:
    def __init__(self, value):
        self.value = value.value if isinstance(value, constexpr) else value

    def __repr__(self):
        return f"constexpr[{self.value}]"

    def __hash__(self):
        return hash((self.__class__, self.value))

    def __bool__(self):
        return bool(self.value)

    def __index__(self):
        return self.value

    def __eq__(self, other):
        return constexpr(self.value == plain(other))

    def __ne__(self, other):
        return constexpr(self.value != plain(other))

    def __lt__(self, other):
        return constexpr(self.value < plain(other))

    def __le__(self, other):
        return constexpr(self.value <= plain(other))

    def __gt__(self, other):
        return constexpr(self.value > plain(other))

    def __ge__(self, other):
        return constexpr(self.value >= plain(other))

    def __add__(self, other):
        return constexpr(self.value + plain(other))

    __radd__ = __add__


def plain(value):
    return value.value if isinstance(value, constexpr) else value


class dtype:
    def __init__(self, name, bits):
        self.name, self.primitive_bitwidth = name, bits


float32, int32 = dtype("fp32", 32), dtype("int32", 32)


def static_print(*values):
    print(*map(plain, values))
