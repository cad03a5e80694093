"""Packages: onnxeval and all below it, and the folder cli/ as onnxeval_cli; and the kernels in C, where a compiler is.

Everything else is in pyproject.toml.
"""

import os
import platform
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import BaseError, CCompilerError

NATIVE = Path("onnxeval/fast/native")

#: Files that are compiled once for each instruction set, under names of its own; all others are compiled once.
KERNELS = (
    "activations",
    "chain",
    "conv",
    "depthwise",
    "gemm",
    "integers",
    "patches",
    "pooling",
    "recurrent",
    "rows",
    "table",
    "tile",
    "winograd",
)

#: Instruction set -> what compiles for it, by architecture. tables.h has the same names.
TIERS = {
    "x86_64": {
        "v2": ["-msse4.2", "-mpopcnt"],
        "v3": ["-mavx2", "-mfma"],
        "v4": ["-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"],
        "v4vnni": ["-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni"],
    },
    "aarch64": {"neon": []},
}
TIERS.update(AMD64=TIERS["x86_64"], arm64=TIERS["aarch64"])

FLAGS = [
    "-std=gnu11",
    "-O3",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-fno-semantic-interposition",
    "-pthread",
    "-g0",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
]

NOTE = """
*** onnxeval is installed without its compiled kernels, for there is no C compiler that builds them: %s
*** Everything works all the same, with NumPy alone, but slower. `onnxeval --version` says which kernels are in use.
"""


class CleanBuild(build_py):
    """Without what an earlier build left behind: a module that has moved since would register its operators twice."""

    def run(self) -> None:
        if not self.editable_mode:
            for package in ("onnxeval", "onnxeval_cli"):
                shutil.rmtree(Path(self.build_lib, package), ignore_errors=True)
        super().run()


class BuildKernels(build_ext):
    """Compile each kernel file for each instruction set; leave the extension out where that fails.

    ONNXEVAL_CFLAGS and ONNXEVAL_LDFLAGS are appended to what is compiled and linked with.
    """

    def build_extension(self, extension: Extension) -> None:
        tiers = TIERS.get(platform.machine(), {"generic": []})
        extra = os.environ.get("ONNXEVAL_CFLAGS", "").split()
        jobs = [(path, f"{path.stem}", []) for path in sorted(NATIVE.glob("*.c")) if path.stem not in KERNELS]
        jobs += [
            (NATIVE / f"{name}.c", f"{name}.{tier}", [*flags, f"-DTIER={tier}", "-mprefer-vector-width=512"])
            if "v4" in tier
            else (NATIVE / f"{name}.c", f"{name}.{tier}", [*flags, f"-DTIER={tier}"])
            for tier, flags in tiers.items()
            for name in KERNELS
        ]

        def compiled(job: tuple[Path, str, list[str]]) -> list[str]:
            path, name, flags = job
            folder = str(Path(self.build_temp, name))
            return self.compiler.compile(
                [str(path)],
                output_dir=folder,
                include_dirs=extension.include_dirs,
                extra_postargs=[*FLAGS, *flags, *extra],
                depends=[str(header) for header in NATIVE.glob("*.h")],
            )

        try:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = [each for part in pool.map(compiled, jobs) for each in part]
            target = self.get_ext_fullpath(extension.name)
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            linked = ["-pthread", "-lm", "-Wl,-s", *os.environ.get("ONNXEVAL_LDFLAGS", "").split()]
            self.compiler.link_shared_object(objects, target, extra_postargs=linked, build_temp=self.build_temp)
        except (BaseError, CCompilerError, OSError) as error:
            self.warn(NOTE % error)
            raise  # the extension is optional: setuptools goes on without it


setup(
    packages=[*find_packages(include=["onnxeval", "onnxeval.*"]), "onnxeval_cli"],
    cmdclass={"build_py": CleanBuild, "build_ext": BuildKernels},
    ext_modules=[Extension("onnxeval.fast._native", [str(path) for path in sorted(NATIVE.glob("*.c"))], optional=True)],
)
