"""triton.testing: timing, reports and comparison."""
import functools
import math
import os
import statistics
import sys
import time

from ditron import _device


def _quantile(values, fraction):
    """Linear between the nearest two."""
    values = sorted(values)
    place = fraction * (len(values) - 1)
    low, high = math.floor(place), math.ceil(place)
    return values[low] + (values[high] - values[low]) * (place - low)


def _summary(times, quantiles, return_mode):
    if quantiles is not None:
        found = [_quantile(times, each) for each in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return times
    return {"min": min, "max": max, "mean": statistics.mean, "median": statistics.median}[return_mode](times)


def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """Milliseconds of a call: on a GPU by events with a cleared cache; on the simulator of this process's clock, once."""
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise AssertionError(f"return_mode is '{return_mode}'; accepted are min, max, mean, median, all")
    if _device.current_index() is None:
        start = time.perf_counter()
        fn()
        return _summary([(time.perf_counter() - start) * 1000], quantiles, return_mode)
    import torch

    fn()
    torch.cuda.synchronize()
    cache = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int, device="cuda")
    estimate = _time(torch, fn, cache, 5, None)
    once = max(statistics.mean(estimate), 1e-3)
    for _ in range(max(1, int(warmup / once))):
        fn()
    return _summary(_time(torch, fn, cache, max(1, int(rep / once)), grad_to_none), quantiles, return_mode)


def _time(torch, fn, cache, count, grad_to_none):
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
    for begin, end in events:
        for each in grad_to_none or ():
            each.grad = None
        cache.zero_()
        begin.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in events]


def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
    """Milliseconds of a call; on the simulator as do_bench."""
    return do_bench(fn, 0, rep, grad_to_none, quantiles, return_mode)


def assert_close(x, y, atol=None, rtol=None, err_msg=""):
    """Fails unless two arrays or tensors agree within tolerances (0.01 unless told; ints exactly)."""
    import numpy

    def array(value):
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            value = (value.float() if value.is_floating_point() else value).numpy()
        return numpy.asarray(value)

    tolerance = 1e-2 if atol is None else atol(None) if callable(atol) else atol
    relative = 0.0 if rtol is None else rtol(None) if callable(rtol) else rtol
    numpy.testing.assert_allclose(array(x), array(y), atol=tolerance, rtol=relative, equal_nan=True, err_msg=err_msg)


class Benchmark:
    """What perf_report draws: x_names over x_vals, a line for each of line_vals."""

    def __init__(self, x_names, x_vals, line_arg, line_vals, line_names, plot_name, args, xlabel="", ylabel="", x_log=False, y_log=False,
                 styles=None):
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})


class Mark:
    def __init__(self, fn, benchmarks):
        self.fn, self.benchmarks = fn, benchmarks

    def _rows(self, bench):
        names = bench.x_names
        for x in bench.x_vals:
            values = tuple(x) if isinstance(x, (list, tuple)) else (x,) * len(names)
            results = []
            for line in bench.line_vals:
                result = self.fn(**dict(zip(names, values)), **{bench.line_arg: line}, **bench.args)
                results.append(result[0] if isinstance(result, tuple) else result)
            yield values, results

    def run(self, show_plots=False, print_data=False, save_path="", return_df=False, **keywords):
        """Runs everything and prints a table. There are no plots."""
        tables = []
        for bench in self.benchmarks if isinstance(self.benchmarks, list) else [self.benchmarks]:
            rows = list(self._rows(bench))
            header = [*bench.x_names, *bench.line_names]
            lines = ["  ".join(str(value) for value in [*xs, *results]) for xs, results in rows]
            if print_data:
                print(f"{bench.plot_name}:\n{'  '.join(header)}", *lines, sep="\n")
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                with open(os.path.join(save_path, f"{bench.plot_name}.csv"), "w", encoding="utf-8") as file:
                    file.write(",".join(header) + "\n" + "".join(",".join(map(str, [*xs, *results])) + "\n" for xs, results in rows))
            tables.append(rows)
        if return_df and "pandas" in sys.modules:
            import pandas
            frames = [pandas.DataFrame([[*xs, *results] for xs, results in rows]) for rows in tables]
            return frames if isinstance(self.benchmarks, list) else frames[0]
        return None


def perf_report(benchmarks):
    """Decorator: a function that is run for every point of the benchmarks."""
    return lambda fn: Mark(fn, benchmarks)


def runtime_of(fn):
    return do_bench(fn)


def get_dram_gbps(device=None):
    """GB/s of an H100's memory, for plots."""
    return 3350.0


def get_max_tensorcore_tflops(dtype, clock_rate=None, device=None):
    """Peak of an H100, for plots."""
    return 989.0


def get_max_simd_tflops(dtype, clock_rate=None, device=None):
    return 67.0


def nvsmi(attributes):
    raise NotImplementedError("triton.testing.nvsmi: Ditron does not have it")


def cuda_memcheck(**_):
    """Decorator: does nothing; the simulator checks every access."""
    return lambda fn: functools.wraps(fn)(fn)


def catch_oor(kernel, pytest_handle=None):
    """Runs a function; when a kernel needs more resources than there are, skips the test."""
    from ditron import ResourceExhaustedError
    try:
        return kernel()
    except ResourceExhaustedError as problem:
        if pytest_handle is not None:
            pytest_handle.skip(str(problem))
        raise
