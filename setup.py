"""Packages: onnxeval and all below it, and the folder cli/ as onnxeval_cli; and the kernels in C, where a compiler is.

Everything else is in pyproject.toml.
"""

import hashlib
import itertools
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import BaseError, CCompilerError

NATIVE = Path("onnxeval/fast/native")
#: Objects under names that tell what they were compiled from, so that the next build takes those that have not changed.
OBJECTS = Path("build/kernels")
fingerprint = runpy.run_path("onnxeval/fast/interface.py")["fingerprint"]

#: Files that are compiled once for each instruction set, under names of its own; all others are compiled once.
KERNELS = (
    "activations",
    "attention",
    "byte_pool",
    "cells",
    "chain",
    "conv",
    "depthwise",
    "direct",
    "excess",
    "gather",
    "gemm",
    "integer_conv",
    "integer_depthwise",
    "integer_products",
    "integers",
    "lrn",
    "map",
    "move",
    "nbits",
    "patches",
    "pooling",
    "quantize",
    "quantized_lstm",
    "reduce",
    "requantize",
    "resample",
    "rotary",
    "rows",
    "search",
    "table",
    "tile",
    "winograd",
)

#: Of these, the files that instructions for 8-bit integers make a difference to.
INTEGER_KERNELS = (
    "byte_pool",
    "excess",
    "integer_conv",
    "integer_depthwise",
    "integer_products",
    "integers",
    "quantize",
    "quantized_lstm",
    "requantize",
    "table",
)

#: Instruction set -> what compiles for it, by architecture, each better than the one before; module.c looks for them.
TIERS = {
    "x86_64": {
        "v2": ["-msse4.2", "-mpopcnt"],
        "v3": ["-mavx2", "-mfma", "-mf16c"],
        "v4": ["-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"],
        "v4vnni": ["-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni"],
    },
    "aarch64": {"neon": ["-fno-schedule-insns"]},  # else GCC loads ahead until sums leave their registers
}
#: Instruction set -> the one that it shares everything with but INTEGER_KERNELS.
SHARED = {"v4vnni": "v4"}
TIERS.update(amd64=TIERS["x86_64"], arm64=TIERS["aarch64"])

#: One build serves Python 3.11 and all later ones, but for free-threaded ones, which have no stable interface.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")

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
    "-Wno-pass-failed",
]

NOTE = """
*** onnxeval is installed without its compiled kernels, for there is no C compiler that builds them: %s
*** Everything works all the same, with NumPy alone, but slower. `onnxeval --version` says which kernels are in use.
"""


def architecture() -> str:
    """The machine that is built for: _PYTHON_HOST_PLATFORM names another one than this."""
    return sysconfig.get_platform().rpartition("-")[2]


def version_of(compiler: list[str]) -> str:
    """What a compiler says of itself; nothing where it does not."""
    command = [*itertools.takewhile(lambda word: not word.startswith("-"), compiler), "--version"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def shared_names(tier: str) -> list[str]:
    """What lets files of an instruction set call the functions that it shares with another one."""
    if tier not in SHARED:
        return []
    files = [NATIVE / f"{name}.c" for name in KERNELS if name not in INTEGER_KERNELS]
    names = [name for path in files for name in re.findall(r"^\w.*\bNAMED\((\w+)\)", path.read_text(), re.MULTILINE)]
    return [f"-D{name}_{tier}={name}_{SHARED[tier]}" for name in sorted(set(names))]


class CleanBuild(build_py):
    """Without what an earlier build left behind: a module that has moved since would register its operators twice."""

    def run(self) -> None:
        if not self.editable_mode:
            for package in ("onnxeval", "onnxeval_cli"):
                shutil.rmtree(Path(self.build_lib, package), ignore_errors=True)
        super().run()


class BuildKernels(build_ext):
    """Compile each kernel file for each instruction set; leave the extension out where that fails.

    An instruction set that the compiler does not know is left out alone. ONNXEVAL_CFLAGS and ONNXEVAL_LDFLAGS are
    appended to what is compiled and linked with. Objects of an earlier build are taken where Python, the compiler, the
    flags, the file and all headers are the same.
    """

    def copy_extensions_to_source(self) -> None:
        for earlier in NATIVE.parent.glob("_native.*"):
            if earlier.suffix in (".so", ".pyd"):  # under another name it might be imported before the new one
                earlier.unlink()
        super().copy_extensions_to_source()

    def build_extension(self, extension: Extension) -> None:
        extra = os.environ.get("ONNXEVAL_CFLAGS", "").split()
        compiler = getattr(self.compiler, "compiler_so", [])  # the command and the flags that come with Python
        common = hashlib.sha256(repr((sys.version, compiler, version_of(compiler))).encode())
        for header in sorted(NATIVE.glob("*.h")):
            common.update(header.read_bytes())
        used: set[Path] = set()

        def compiled(name: str, *flags: str) -> list[str]:
            source = NATIVE / f"{name}.c"
            options = [*FLAGS, *flags, *extra]
            digest = common.copy()
            digest.update(repr((extension.define_macros, options)).encode() + source.read_bytes())
            kept = OBJECTS / f"{name}.{digest.hexdigest()[:20]}.o"
            used.add(kept)
            if not kept.exists():
                (made,) = self.compiler.compile(
                    [str(source)],
                    output_dir=str(Path(self.build_temp, kept.stem)),
                    macros=extension.define_macros,
                    include_dirs=extension.include_dirs,
                    extra_postargs=options,
                )
                OBJECTS.mkdir(parents=True, exist_ok=True)
                partial = kept.with_suffix(f".{os.getpid()}.part")
                shutil.move(made, partial)
                partial.replace(kept)
            return [str(kept)]

        def compiled_for(tier: str, name: str) -> list[str]:
            if tier in failed or (tier in SHARED and name not in INTEGER_KERNELS):
                return []
            flags = [*tiers[tier], f"-DTIER={tier}"]
            if "v4" in tier:
                flags.append("-mprefer-vector-width=512")
            try:
                return compiled(name, *flags)
            except CCompilerError as error:
                failed[tier] = error
                return []

        known = TIERS.get(architecture(), {"generic": []})
        tiers = {tier: [*flags, *shared_names(tier)] for tier, flags in known.items()}
        failed: dict[str, Exception] = {}
        shared = [path.stem for path in sorted(NATIVE.glob("*.c")) if path.stem not in (*KERNELS, "module")]
        try:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                parts = [pool.submit(compiled, name) for name in shared]
                of_tiers = {tier: [pool.submit(compiled_for, tier, name) for name in KERNELS] for tier in tiers}
                objects = [each for part in parts for each in part.result()]
                built = {tier: [each for part in parts for each in part.result()] for tier, parts in of_tiers.items()}
            failed.update({tier: failed[other] for tier, other in SHARED.items() if other in failed and tier in tiers})
            built_tiers = [tier for tier in tiers if tier not in failed]
            objects += [each for tier in built_tiers for each in built[tier]]
            if not built_tiers:
                raise next(iter(failed.values()))
            table = "FOR_EACH_TIER(X)=" + " ".join(f"X({tier})" for tier in built_tiers)
            objects += compiled("module", f"-D{table}", f'-DINTERFACE="{fingerprint()}"')
            target = self.get_ext_fullpath(extension.name)
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            linked = ["-pthread", "-lm", "-Wl,-s", *os.environ.get("ONNXEVAL_LDFLAGS", "").split()]
            self.compiler.link_shared_object(objects, target, extra_postargs=linked, build_temp=self.build_temp)
            for earlier in set(OBJECTS.glob("*.o")) - used:
                earlier.unlink()
        except (BaseError, CCompilerError, OSError) as error:
            self.warn(NOTE % error)
            raise  # the extension is optional: setuptools goes on without it
        for tier, error in failed.items():
            self.warn(f"the compiled kernels are built without {tier}: {error}")


setup(
    packages=[*find_packages(include=["onnxeval", "onnxeval.*"]), "onnxeval_cli"],
    cmdclass={"build_py": CleanBuild, "build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
    ext_modules=[
        Extension(
            "onnxeval.fast._native",
            [str(path) for path in sorted(NATIVE.glob("*.c"))],
            define_macros=[("Py_LIMITED_API", "0x030b0000")] if STABLE else [],
            py_limited_api=STABLE,
            optional=True,
        )
    ],
)
