"""lit configuration: the tests lie in the test folders of the rooms, beside the code that they test.

A folder `Inputs` holds files that tests read.
"""
import os
import subprocess
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
if os.environ.get("CONFORMANCE_ALL"):
    config.environment["CONFORMANCE_ALL"] = "1"
config.environment["DITRON_CACHE"] = "0"  # every test compiles for itself, and none sees the user's kernels

# Whole words only: `ditron` must not be replaced within `ditron-opt` or in paths.
for tool in ["ditron-opt", "ditron-layout", "ditron-import", "ditron"]:
    config.substitutions.append((r"(?<![\w/%.-])" + tool + r"(?![\w/.-])", os.path.join(bin_dir, tool)))
for tool in ["FileCheck", "not", "split-file"]:
    config.substitutions.append((r"(?<![\w/%.-])" + tool + r"(?![\w/.-])", os.path.join(config.llvm_tools_dir, tool)))
config.substitutions.append(("%kernels", os.path.join(config.ditron_source_root, "kernels")))
config.substitutions.append(("%python", sys.executable))

# NVIDIA's assembler. With it every kernel that a test compiles for CUDA is assembled too, so that PTX which ptxas refuses fails
# the test that made it. Tests that are about its output say `REQUIRES: ptxas`; lit counts those that were skipped.
search = subprocess.run([os.path.join(config.ditron_source_root, "utils", "find-ptxas"), config.ditron_binary_root],
                        capture_output=True, text=True)
if search.returncode == 0:
    ptxas = search.stdout.strip()
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
    config.environment["DITRON_PTXAS"] = ptxas
    # libdevice lies beside it in the toolkit and in the wheels.
    config.environment["CUDA_HOME"] = os.path.dirname(os.path.dirname(os.path.realpath(ptxas)))
