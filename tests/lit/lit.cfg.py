"""lit configuration: the tests lie in the test folders of the rooms, beside the code that they test.

A folder `Inputs` holds files that tests read.
"""
import glob
import os
import shutil
import sys

sys.path.insert(0, os.path.join(config.ditron_source_root, "tests", "lit"))
import room_format  # a module of its own: worker processes find the class by its name

config.name = "Ditron"
config.test_format = room_format.RoomTests(execute_external=False)
config.suffixes = [".mlir", ".test", ".py"]
config.excludes = ["Inputs", "lit.local.cfg", "lit.cfg.py"]
config.test_source_root = os.path.join(config.ditron_source_root, "ditron")
config.test_exec_root = os.path.join(config.ditron_binary_root, "tests", "lit", "output")

bin_dir = os.path.join(config.ditron_binary_root, "bin")
config.environment["PATH"] = os.pathsep.join([bin_dir, config.llvm_tools_dir, config.environment["PATH"]])
for name in os.environ:
    if name.startswith("DITRON_"):  # tests say which knobs they need
        config.environment.pop(name, None)

# Whole words only: `ditron` must not be replaced within `ditron-opt` or in paths.
for tool in ["ditron-opt", "ditron-layout", "ditron-import", "ditron"]:
    config.substitutions.append((r"(?<![\w/%.-])" + tool + r"(?![\w/.-])", os.path.join(bin_dir, tool)))
for tool in ["FileCheck", "not", "split-file"]:
    config.substitutions.append((r"(?<![\w/%.-])" + tool + r"(?![\w/.-])", os.path.join(config.llvm_tools_dir, tool)))
config.substitutions.append(("%kernels", os.path.join(config.ditron_source_root, "kernels")))
config.substitutions.append(("%python", sys.executable))

# NVIDIA's assembler: on PATH, of the toolkit, or of the wheel nvidia-cuda-nvcc in this Python. Tests that need it say
# `REQUIRES: ptxas`; lit counts those that were skipped.
wheels = [found for folder in sys.path for found in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "bin", "ptxas")))]
ptxas = next(filter(None, [shutil.which("ptxas"), shutil.which("ptxas", path="/usr/local/cuda/bin")] + wheels), None)
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
