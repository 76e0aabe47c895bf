#!/usr/bin/env python3
"""Builds the wheel of the package: one file for every CPython from 3.10 on, with the compiler inside.

A PEP 517 backend of the project's own (pyproject.toml), so that `pip install .` needs nothing but what builds Ditron; and a program:

usage: python/wheel_builder.py FOLDER

Uses the build folder `build`, or the one that the environment variable BUILD_DIRECTORY names, as ./dev does, and makes it if need be.
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TAG = "cp310-abi3-manylinux_2_36_x86_64"  # Debian 12's C library
TARGETS = ("ditron-shared", "ditron-import", "ditron-native")


def version():
    return re.search(r"project\(\s*\w+\s+VERSION\s+([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)


def metadata():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return (f"Metadata-Version: 2.1\nName: ditron\nVersion: {version()}\nSummary: A distributed tensor compiler for kernels in the Triton language, "
            f"on simulated and NVIDIA GPUs\nRequires-Python: >=3.10\nDescription-Content-Type: text/markdown\n\n{readme}")


def build_folder():
    return ROOT / os.environ.get("BUILD_DIRECTORY", "build")


def compile_all():
    build = build_folder()
    if not (build / "build.ninja").exists():
        subprocess.run([str(ROOT / "dev"), "build", *TARGETS], check=True)
    else:
        subprocess.run(["ninja", "-C", str(build), *TARGETS], check=True)


def write_package(folder):
    """The package as it is installed, in `folder`."""
    sys.path.insert(0, str(ROOT / "python"))
    import stage

    build = build_folder()
    stage.stage(folder, build / "lib" / "libditron.so", build / "bin" / "ditron-import")
    package = pathlib.Path(folder) / "ditron"
    stage.place(build / "python" / "ditron" / "_native.abi3.so", package / "_native.abi3.so", False)
    strip = "/usr/lib/llvm-22/bin/llvm-strip"
    subprocess.run([strip if os.path.exists(strip) else "strip", "--strip-unneeded", package / "libditron.so"], check=True)


def pack(folder, wheel):
    """Writes the files of a folder into a wheel, with the list of them."""
    information = f"ditron-{version()}.dist-info"
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}
    files[f"{information}/METADATA"] = metadata().encode()
    files[f"{information}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: ditron\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode()
    record = ""
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes from the same files
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            archive.writestr(entry, content)
        record += f"{information}/RECORD,,\n"
        archive.writestr(zipfile.ZipInfo(f"{information}/RECORD", (1980, 1, 1, 0, 0, 0)), record)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    compile_all()
    name = f"ditron-{version()}-{TAG}.whl"
    os.makedirs(wheel_directory, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write_package(folder)
        pack(folder, os.path.join(wheel_directory, name))
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("Ditron is built from a clone of its repository; there is no source archive")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
