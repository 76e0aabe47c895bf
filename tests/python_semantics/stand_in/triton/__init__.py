"""Stands in for triton under CPython: as much of it as the programs use, with Triton's meaning."""

from . import language


def jit(function):
    return function


constexpr_function = jit


def cdiv(x, y):
    return (x + y - 1) // y


def next_power_of_2(n):
    return 1 if n <= 0 else 1 << (n - 1).bit_length()
