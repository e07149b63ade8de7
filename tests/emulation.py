"""A double of the device: the kernels, compiled for the host, on arrays of NumPy."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from pyboomer.compiling.device import Launch

COMPILER = shutil.which("g++") or shutil.which("c++")


class Recorded:
    def __init__(self, device: "EmulatedDevice", launches: Any, argument: Any) -> None:
        self.device, self.launches, self.argument = device, launches, argument

    def run(self) -> None:
        for launch in self.launches:
            self.device.launch(launch, self.argument)


class EmulatedDevice:
    """What `pyboomer.compiling.device.Device` promises, without a GPU."""

    name, n_processors, most_shared = "emulated", 1, 2**18 - 2**10

    def __init__(self, program: str) -> None:
        self.library = ctypes.CDLL(str(build(program)))
        self.free = 2**40

    def count_free(self) -> int:
        return self.free

    def put(self, array: np.ndarray) -> np.ndarray:
        return np.array(array, order="C")

    def zeros(self, shape: Any, dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype=dtype)

    def write(self, target: np.ndarray, source: np.ndarray) -> None:
        target[...] = source

    def read(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def address(self, array: np.ndarray) -> int:
        return array.ctypes.data

    def launch(self, launch: Launch, argument: np.ndarray) -> None:
        grid = (*launch.grid, 1, 1)[:3]
        kernel = ctypes.cast(getattr(self.library, launch.kernel), ctypes.c_void_p)
        self.library.emulate(kernel, ctypes.c_void_p(argument.ctypes.data), *grid, launch.threads)

    def record(self, launches: Any, argument: Any) -> Recorded:
        return Recorded(self, launches, argument)

    def wait(self) -> None:
        pass


def build(program: str) -> Path:
    """The library of the kernels, compiled once for each version of them."""
    header = Path(__file__).with_name("emulation.hpp")
    text = f'#include "{header}"\n{program}'
    stamp = hashlib.sha256((text + header.read_text()).encode()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"pyboomer-emulation-{os.getuid()}-{stamp}.so"
    if not library.exists():
        assert COMPILER is not None
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder) / "program.cpp", Path(folder) / "program.so"
            source.write_text(text)
            flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-U_FORTIFY_SOURCE", "-ffp-contract=off"]
            subprocess.run([COMPILER, *flags, "-o", str(made), str(source)], check=True)
            shutil.copy(made, library.with_suffix(f".{os.getpid()}"))
            os.replace(library.with_suffix(f".{os.getpid()}"), library)
    return library
