"""autotune, heuristics and Config: which compile-time values a launch uses when it does not say so itself."""
import builtins
import inspect
import os

from . import _device
from ._errors import CompilationError, Error, ResourceExhaustedError
from ._jit import KernelInterface
from ._tensors import MockTensor, is_tensor, is_type, pointer_of


class Config:
    """Values of parameters and launch options that belong together."""

    def __init__(self, kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, pre_hook=None, ir_override=None, **ignored):
        self.kwargs = kwargs
        self.num_warps, self.num_stages, self.num_ctas, self.maxnreg = num_warps, num_stages, num_ctas, maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def __setstate__(self, state):
        self.__dict__.update(Config({}).__dict__)
        self.__dict__.update(state)

    def all_kwargs(self):
        options = {"num_warps": self.num_warps, "num_ctas": self.num_ctas, "num_stages": self.num_stages, "maxnreg": self.maxnreg}
        return {**self.kwargs, **{name: value for name, value in options.items() if value is not None}}

    def __str__(self):
        return ", ".join(f"{name}: {value}" for name, value in {**self.kwargs, "num_warps": self.num_warps, "num_ctas": self.num_ctas,
                                                              "num_stages": self.num_stages, "maxnreg": self.maxnreg}.items())

    def _key(self):
        return (*self.all_kwargs().items(), self.pre_hook)

    def __hash__(self):
        return hash(self._key())

    def __eq__(self, other):
        return isinstance(other, Config) and self._key() == other._key()


class Autotuner(KernelInterface):
    """A kernel that tries its configurations on the first launch for each key, and then uses the fastest.

    On simulated GPUs nothing is timed: virtual time says little of a real one's, so the first configuration that compiles is used.
    """

    def __init__(self, fn, arg_names, configs, key, reset_to_zero=None, restore_value=None, pre_hook=None, post_hook=None,
                 prune_configs_by=None, warmup=None, rep=None, use_cuda_graph=False, do_bench=None, cache_results=False):
        self.configs = list(configs) if configs else [Config({})]
        self.keys = list(key)
        self.fn = fn
        self.arg_names = arg_names
        self.cache = {}
        self.best_config = None
        self.bench_time = None
        self.configs_timings = {}
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), list(restore_value or ())
        self.restore_copies = {}
        self.pre_hook, self.post_hook = pre_hook, post_hook
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        prune = prune_configs_by or {}
        self.perf_model, self.configs_top_k = prune.get("perf_model"), prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        self.base_fn = fn
        while not inspect.isfunction(self.base_fn):
            self.base_fn = self.base_fn.fn
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        self.do_bench = do_bench
        self.__name__ = getattr(fn, "__name__", None)
        self.__doc__ = getattr(fn, "__doc__", None)
        self.__module__ = getattr(fn, "__module__", None)
        self.__qualname__ = getattr(fn, "__qualname__", None)

    def ditron_module(self):
        return self.fn.ditron_module()

    def __call__(self, *arguments, **keywords):
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")

    def __getattr__(self, name):
        if name.startswith("__") or name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    def run(self, *arguments, **keywords):
        self.nargs = dict(zip(self.arg_names, arguments))
        config = self.best_config if self.best_config in self.configs and len(self.configs) == 1 else None
        if len(self.configs) > 1:
            given = {**self.nargs, **keywords}
            key = tuple([given[name] if _is_plain(given.get(name)) else str(type(given[name])) for name in self.keys if name in given] +
                        [str(value.dtype) for value in given.values() if hasattr(value, "dtype")])
            config = self.cache.get(key)
            if config is None:
                config = self.cache[key] = self._choose(arguments, keywords)
        else:
            config = self.configs[0]
        self.best_config = config
        if os.environ.get("TRITON_PRINT_AUTOTUNING") == "1":
            print(f"Triton autotuning for function {self.base_fn.__name__}; best config selected: {config};")
        return self._run_with(config, arguments, keywords)

    def _prepare(self, config, keywords):
        """The configuration's pre_hook, before each run with it and before it is compiled: it may change arguments that the choice of the
        variant depends on, such as the block_shape of descriptors."""
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **keywords, **config.all_kwargs()})

    def _run_with(self, config, arguments, keywords):
        conflicts = config.kwargs.keys() & keywords.keys()
        if conflicts:
            raise ValueError(f"Conflicting meta-parameters: {', '.join(conflicts)}. Make sure that you don't re-define auto-tuned symbols.")
        self._prepare(config, keywords)
        try:
            result = self.fn.run(*arguments, **keywords, **config.all_kwargs())
        finally:
            self.nargs = None
        return result

    def prune_configs(self, keywords):
        configs = self.configs
        if self.early_config_prune:
            configs = self.early_config_prune(configs, self.nargs, **keywords)
            if not configs:
                raise Error("No valid autotuner configs after pruning. `early_config_prune` should return at least one config.")
        if self.perf_model:
            top = self.configs_top_k
            top = int(len(self.configs) * top) if isinstance(top, float) and top <= 1.0 else top
            if len(configs) > top:
                estimated = {config: self.perf_model(**{**self.nargs, **keywords, **config.all_kwargs()}) for config in configs}
                configs = sorted(estimated, key=estimated.get)[:max(top, 1)]
        return configs

    def _choose(self, arguments, keywords):
        configs = self.prune_configs(keywords)
        nargs = self.nargs
        if len(configs) == 1:
            return configs[0]
        simulated = _is_simulated([*nargs.values(), *keywords.values()])
        failures, times = [], {}
        for config in configs:
            self.nargs = nargs
            try:
                if simulated:
                    self.warmup_with(config, arguments, keywords)
                    self.nargs = nargs
                    return config
                times[config] = self._bench(config, arguments, keywords)
            except (CompilationError, ResourceExhaustedError, NotImplementedError) as problem:
                failures.append(problem)
        self.nargs = nargs
        if not times:
            raise failures[0]
        self.configs_timings = times
        return builtins.min(times, key=times.get)

    def warmup_with(self, config, arguments, keywords):
        if not any(is_type(each) or isinstance(each, MockTensor) for each in self.nargs.values()):  # hooks change tensors: these are none
            self._prepare(config, keywords)
        keywords = {**keywords, **config.all_kwargs()}
        grid = keywords.pop("grid", (1, 1, 1))
        keywords.pop("warmup", None)
        return self.fn.warmup(*arguments, grid=grid, **keywords)

    def _bench(self, config, arguments, keywords):
        """Milliseconds of one launch on a GPU: the median of some."""
        import torch

        nargs = self.nargs
        given = {**nargs, **keywords}
        copies = {name: given[name].clone() for name in self.restore_value if name in given}

        def once():
            self.nargs = nargs
            for name in self.reset_to_zero:
                if name in given:
                    given[name].zero_()
            if self.pre_hook is not None:
                self.pre_hook({**given, **config.all_kwargs()})
            self._run_with(config, arguments, keywords)
            for name, copy in copies.items():
                given[name].copy_(copy)

        once()
        times = []
        for _ in range(10):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            once()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        if self.post_hook is not None:
            self.post_hook(given, exception=None)
        return sorted(times)[len(times) // 2]

    def warmup(self, *arguments, **keywords):
        self.nargs = dict(zip(self.arg_names, arguments))
        made = [self.warmup_with(config, arguments, keywords) for config in self.prune_configs(keywords)]
        self.nargs = None
        return made


def _is_plain(value):
    try:
        hash(value)
    except TypeError:
        return False
    return not hasattr(value, "data_ptr")


class Heuristics(KernelInterface):
    """A kernel some of whose parameters are computed from the others."""

    def __init__(self, fn, arg_names, values):
        self.fn, self.arg_names, self.values = fn, arg_names, values
        for name in ("__name__", "__doc__", "__module__", "__qualname__"):
            setattr(self, name, getattr(fn, name, None))

    def ditron_module(self):
        return self.fn.ditron_module()

    def __getattr__(self, name):
        if name.startswith("__") or name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    def _with_values(self, arguments, keywords):
        named = dict(zip(self.arg_names, arguments))
        for name, function in self.values.items():
            keywords[name] = function({**named, **keywords})
        return keywords

    def run(self, *arguments, **keywords):
        return self.fn.run(*arguments, **self._with_values(arguments, keywords))

    def warmup(self, *arguments, **keywords):
        return self.fn.warmup(*arguments, **self._with_values(arguments, keywords))

    def __call__(self, *arguments, **keywords):
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")


def _is_simulated(values):
    """True if a launch with these arguments goes to the simulator: where its tensors are, as JITFunction.run_slowly has it."""
    if _device.of_thread.placed is not None:
        return _device.of_thread.placed.index is None
    tensors = [getattr(value, "base", value) if hasattr(value, "block_shape") else value for value in values]
    first = next((pointer_of(each).device for each in tensors if is_tensor(each)), _device.current_index())
    return first is None


def autotune(configs, key, prune_configs_by=None, reset_to_zero=None, restore_value=None, pre_hook=None, post_hook=None, warmup=None, rep=None,
             use_cuda_graph=False, do_bench=None, cache_results=False):
    """Decorator: the kernel is tried with every configuration; `key` names the arguments whose values ask for a new choice."""

    def decorate(fn):
        return Autotuner(fn, fn.arg_names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook, prune_configs_by, warmup, rep,
                         use_cuda_graph, do_bench, cache_results)

    return decorate


def heuristics(values):
    """Decorator: parameters whose values functions compute from the other arguments."""
    return lambda fn: Heuristics(fn, fn.arg_names, values)


autotune.__ditron_name__ = "triton.autotune"
heuristics.__ditron_name__ = "triton.heuristics"
Config.__ditron_name__ = "triton.Config"
