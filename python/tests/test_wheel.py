"""The wheel as a user installs it: in fresh virtual environments, below a path with spaces, for every Python that is here, without NumPy or
PyTorch, as another user who cannot write to the package; and two versions beside each other."""
import glob
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

import pytest
from conftest import environment

import ditron

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(ditron.__file__).absolute().parents[2]
PROGRAM = """
import ctypes, os, sys
import ditron
import ditron.language as tl

@ditron.jit
def triple(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 3 * tl.load(x + i, mask=i < n), mask=i < n)

class Numbers:
    dtype = "float32"

    def __init__(self, count):
        self.memory = (ctypes.c_float * count)(*range(count))
        self.nbytes = 4 * count

    def data_ptr(self):
        return ctypes.addressof(self.memory)

x = Numbers(100)
compiled = triple[(1,)](x, 100, BLOCK=128)
assert list(x.memory) == [3.0 * i for i in range(100)] and "store" in compiled.asm["llir"]
assert "numpy" not in sys.modules and "torch" not in sys.modules
try:
    triple[(1,)](x, 100, BLOCK=100)
    sys.exit("BLOCK=100 compiled")
except ditron.CompilationError as error:
    assert error.file.endswith("program.py") and error.line == 8 and os.path.exists(error.file)
folder = os.path.dirname(ditron.__file__)
print(folder, os.access(folder, os.W_OK), os.geteuid())
"""


def interpreters():
    """(version, path) of each version that is here; first those that every user may run."""
    versions = {}
    of_all = [*glob.glob("/usr/bin/python3"), *glob.glob("/usr/bin/python3.??")]
    for path in [*of_all, sys.executable, *glob.glob(os.path.expanduser("~/.pyenv/versions/3.1*/bin/python"))]:
        version = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True).stdout.strip()
        if version and tuple(map(int, version.split("."))) >= (3, 10):
            versions.setdefault(version, path)
    return sorted(versions.items())


@pytest.fixture(scope="module")
def folder():
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="a wheel's ", ignore_cleanup_errors=True) as made:
        os.chmod(made, 0o755)
        yield pathlib.Path(made)


@pytest.fixture(scope="module")
def wheel(folder):
    """Of the build whose package is being tested."""
    if not (BUILD / "bin" / "ditron-import").exists():
        pytest.skip("the package under test is not that of a build folder")
    sys.path.insert(0, str(ROOT / "python"))
    import wheel_builder

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as package:
        patch.setenv("BUILD_DIRECTORY", str(BUILD))
        wheel_builder.write_package(package)
        made = folder / f"ditron-{wheel_builder.version()}-{wheel_builder.TAG}.whl"
        wheel_builder.pack(package, made)
    return made


def install(python, wheel, place):
    """A virtual environment with nothing but the wheel; its Python."""
    if not place.exists():
        subprocess.run([python, "-m", "venv", place], check=True, env=environment())
        subprocess.run([place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-index", wheel],
                       check=True, env=environment())
    return place / "bin" / "python"


def run_program(python, home, **options):
    """What the program says, run with that home folder and without what this process's environment says of packages and caches."""
    home.mkdir(exist_ok=True)
    (home / "program.py").write_text(PROGRAM, encoding="utf-8")
    variables = {"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run([python, "program.py"], cwd=home, capture_output=True, text=True, timeout=300, env=variables, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def cached(home):
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and path.name != "program.py"}


@pytest.mark.parametrize("version, python", interpreters())
def test_every_python(folder, wheel, version, python):
    installed = install(python, wheel, folder / f"environment of {version}")
    out = run_program(installed, folder / f"home of {version}")
    assert f"environment of {version}/lib/python{version}/site-packages/ditron" in out


def test_a_user_who_cannot_write_to_the_package(folder, wheel):
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    other = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    found = [each for each in interpreters() if each[1].startswith("/usr/bin/")]
    if not found:
        pytest.skip("there is no Python in /usr/bin, which every user may run")
    installed = install(found[0][1], wheel, folder / f"environment of {found[0][0]}")
    home = folder / "home of nobody"
    home.mkdir()
    shutil.chown(home, "nobody", "nogroup")
    out = run_program(installed, home, **other)
    assert " False 65534" in out and all((home / path).stat().st_uid == 65534 for path in cached(home))
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)  # and without a place for the cache
    shutil.rmtree(home / ".cache")
    assert " False 65534" in run_program(installed, home, **other) and not cached(home)


def another_version(wheel, folder):
    """The wheel as of another build: its version and the library's build id are others."""
    import wheel_builder

    package = folder / "unpacked"
    shutil.unpack_archive(wheel, package, "zip")  # without the modes, which pack sets
    for information in package.glob("*.dist-info"):
        shutil.rmtree(information)
    library = package / "ditron" / "libditron.so"
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
    build = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes).group(1))
    content = library.read_bytes()
    assert content.count(build) == 1
    library.write_bytes(content.replace(build, bytes(reversed(build))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wheel_builder, "version", lambda: "99.1")
        made = folder / f"ditron-99.1-{wheel_builder.TAG}.whl"
        wheel_builder.pack(package, made)
    return made


def test_two_versions_share_no_compiled_kernels(folder, wheel):
    version, python = interpreters()[0]
    first, second = install(python, wheel, folder / f"environment of {version}"), install(python, another_version(wheel, folder), folder / "second")
    listed = subprocess.run([second, "-m", "pip", "list", "--disable-pip-version-check"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"ditron +99\.1", listed)
    home = folder / "home of both"
    kept = []
    for installed, place in 2 * [(first, f"environment of {version}"), (second, "second")]:
        assert f"{place}/lib" in run_program(installed, home)
        kept.append(cached(home))
    assert len(kept[0]) > 0 and len(kept[1] - kept[0]) == len(kept[0]) and kept[1] == kept[2] == kept[3]
