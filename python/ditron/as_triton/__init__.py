"""After `import ditron.as_triton`, `import triton` is Ditron.

    python -m ditron.as_triton SCRIPT ARGUMENTS...
    python -m ditron.as_triton -m MODULE ARGUMENTS...
    python -m pytest -p ditron.as_triton ...

Where PyTorch finds no GPU, its device "cuda" becomes the simulated one: tensors lie in host memory, kernels run on them in place with
bounds checks. What Ditron does not have is an AttributeError or ImportError that names it.
"""
from . import _modules, _torch

_modules.install()
_torch.install()
