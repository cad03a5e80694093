"""Build the compiled kernels for arm64 and run their tests on an emulated processor.

    python tests/fast/emulate.py [--wheel FILE] [PYTEST ARGUMENT ...]

With --wheel, the kernels of that wheel are tested instead. Python for arm64 comes from Debian, what it needs from PyPI;
both stay in ~/.cache/onnxeval-arm64, and nothing is installed. Needs apt and Debian's keys (debian-archive-keyring),
qemu-aarch64 (qemu-user) and a C compiler: aarch64-linux-gnu-gcc (gcc-aarch64-linux-gnu), or the one that CC names.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

from copies import ROOT, build_kernels, copy_package, run_tests

CACHE = Path.home() / ".cache" / "onnxeval-arm64"
SOURCE = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main"
PACKAGES = ("python3", "libstdc++6")
PYTHON = "3.11"  # bookworm's
#: Wheels are for a C library, and bookworm's is 2.36.
PLATFORMS = ("manylinux2014_aarch64", *(f"manylinux_2_{minor}_aarch64" for minor in range(17, 37)))

#: A Python that starts another one starts it emulated too.
_START = """#!/bin/sh
exec qemu-aarch64 -L "{root}" "{root}/usr/bin/python{python}" "$@"
"""
_SITE = "import sys\nsys.executable = {start!r}\n"


def main() -> int:
    arguments = sys.argv[1:]
    wheel = None
    if arguments[:1] == ["--wheel"]:
        wheel, arguments = Path(arguments[1]), arguments[2:]
    for command in ("apt-get", "dpkg-deb", "qemu-aarch64"):
        if not shutil.which(command):
            sys.exit(f"there is no {command} here")
    for part, fill in (("root", unpack_python), ("site", download_packages)):
        if not (CACHE / part).exists():
            with tempfile.TemporaryDirectory(dir=made(CACHE)) as folder:
                fill(made(Path(folder, part)), Path(folder))
                Path(folder, part).rename(CACHE / part)
    start = CACHE / "python"
    start.write_text(_START.format(root=CACHE / "root", python=PYTHON))
    start.chmod(0o755)
    with tempfile.TemporaryDirectory() as folder:
        copy_package(folder)
        if wheel is None:
            compiler = os.environ.get("CC", "aarch64-linux-gnu-gcc")
            build_kernels(folder, CC=compiler, LDSHARED=f"{compiler} -shared", _PYTHON_HOST_PLATFORM="linux-aarch64")
        else:
            with zipfile.ZipFile(wheel) as archive:
                archive.extract("onnxeval/fast/_native.abi3.so", folder)
        Path(folder, "sitecustomize.py").write_text(_SITE.format(start=str(start)))
        return run_tests(folder, [str(start)], arguments, PYTHONPATH=f"{folder}:{CACHE / 'site'}")


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def unpack_python(root: Path, scratch: Path) -> None:
    """Debian's Python for arm64 and all that it depends on, as its packages have them."""
    for part in ("lists/partial", "archives/partial"):
        made(scratch / part)
    (scratch / "status").touch()  # nothing is installed
    (scratch / "sources.list").write_text(SOURCE)
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
        "Dir::State::lists": scratch / "lists",
        "Dir::State::status": scratch / "status",
        "Dir::Cache": scratch,
        "Dir::Etc::sourcelist": scratch / "sources.list",
        "Dir::Etc::sourceparts": "-",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "install", "--yes", "--download-only", "--no-install-recommends", *PACKAGES], check=True)
    for package in (scratch / "archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(root)], check=True)


def download_packages(site: Path, _scratch: Path) -> None:
    """What the package and these tests need from PyPI."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = [each for each in project["optional-dependencies"]["dev"] if re.match(r"(hypothesis|onnx|pytest)\W", each)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site), "--only-binary=:all:"]
    pip += ["--python-version", PYTHON, *(f"--platform={platform}" for platform in PLATFORMS)]
    subprocess.run([*pip, *project["dependencies"], *pinned], check=True)


if __name__ == "__main__":
    sys.exit(main())
