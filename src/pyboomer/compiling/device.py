"""The device is a GPU as CuPy gives it: arrays in its memory, kernels, and launches that are recorded once.

CuPy is imported here and nowhere else, when a device is asked for.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

OPTIONS = ("--std=c++17",)
CURE = 'install CuPy for your CUDA, pip install "pyboomer[cuda]" (CUDA 13) or pip install cupy-cuda12x (CUDA 12)'


def read_files(package: str, *names: str) -> str:
    """Files of the folder `kernels` of a package, one behind another."""
    folder = files(package) / "kernels"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def list_kernels(program: str) -> tuple[str, ...]:
    """The names of all kernels of a program."""
    return tuple(re.findall(r"^KERNEL .*?(\w+)\(const Fit", program, flags=re.MULTILINE))


@cache
def find_fields(program: str, struct: str) -> tuple[tuple[str, str], ...]:
    """The fields of a struct, in their order: name and kind, "f8" for a double, "i4" for an int, else "i8"."""
    found = re.search(rf"^struct {struct} {{\n(.*?)^}};", program, flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    fields = []
    for kind, name in re.findall(r"^\s*(\S.*?)(\w+);", found[1], flags=re.MULTILINE):
        fields.append((name, "f8" if kind.strip() == "double" else "i4" if kind.strip() == "int" else "i8"))
    return tuple(fields)


def pack_fit(program: str, values: dict[str, Any]) -> np.ndarray:
    """The struct `Fit` that all kernels of a program take, as bytes; every field needs a value."""
    packed = np.zeros(1, dtype=list(find_fields(program, "Fit")))
    assert set(values) == set(packed.dtype.names or ()), set(values) ^ set(packed.dtype.names or ())
    for name, value in values.items():
        packed[name] = value
    return packed.view(np.uint8)


class NoDevice(ValueError):
    """A device was asked for that cannot be used here; the message says why, and what to do."""


class Launch(NamedTuple):
    """A kernel, and how many threads run it."""

    kernel: str
    grid: tuple[int, ...]
    threads: int
    shared: int = 0  # bytes


class Recording:
    """Launches that the host asks for as one, by a CUDA graph: it need not wait between them, nor the device."""

    def __init__(self, device: "Device", launches: Sequence[Launch], argument: Any) -> None:
        self.stream = device.stream
        self.stream.begin_capture()
        for launch in launches:
            device.launch(launch, argument)
        self.graph = self.stream.end_capture()

    def run(self) -> None:
        """Launch all; this does not wait for them."""
        self.graph.launch(stream=self.stream)


class Device:
    """A GPU; see `find_device`."""

    def __init__(self, cupy: Any, program: str) -> None:
        self.cupy = cupy
        self.stream = cupy.cuda.Stream(non_blocking=True)
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.name = properties["name"].decode()
        self.n_processors = int(properties["multiProcessorCount"])
        self.most_shared = int(properties["sharedMemPerBlockOptin"])
        self._program = program

    def _prepare(self, launch: Launch) -> Any:
        """The kernel of a launch, which may use as much shared memory as that needs."""
        kernel = load_kernel(self._program, launch.kernel)
        if launch.shared > 48 * 1024 and kernel.max_dynamic_shared_size_bytes < launch.shared:
            kernel.max_dynamic_shared_size_bytes = launch.shared
        return kernel

    def count_free(self) -> int:
        """Bytes of memory that are free, those that CuPy keeps for later included."""
        pool = self.cupy.get_default_memory_pool()
        return int(self.cupy.cuda.Device().mem_info[0]) + int(pool.free_bytes())

    def put(self, array: np.ndarray) -> Any:
        """An array of the host, copied to the device; one of the device stays as it is."""
        with self.stream:
            return self.cupy.ascontiguousarray(self.cupy.asarray(array))

    def zeros(self, shape: Any, dtype: Any) -> Any:
        """An array of zeros."""
        with self.stream:
            return self.cupy.zeros(shape, dtype=dtype)

    def write(self, target: Any, source: np.ndarray) -> None:
        """Copy numbers of the host to an array of the device, or a contiguous part of one."""
        target.set(np.ascontiguousarray(source), stream=self.stream)

    def read(self, array: Any) -> np.ndarray:
        """Copy an array, or a contiguous part of one, to the host, once all that was launched has finished."""
        return np.asarray(array.get(stream=self.stream))

    def address(self, array: Any) -> int:
        """Where an array begins."""
        return int(array.data.ptr)

    def launch(self, launch: Launch, argument: Any) -> None:
        """Launch a kernel; this does not wait for it."""
        kernel = self._prepare(launch)
        with self.stream:
            kernel(launch.grid, (launch.threads,), (argument,), shared_mem=launch.shared)

    def record(self, launches: Sequence[Launch], argument: Any) -> Recording:
        """Record launches, to be run as often as needed."""
        for launch in launches:  # what is loaded or set for a kernel cannot be recorded
            self._prepare(launch)
        return Recording(self, launches, argument)

    def wait(self) -> None:
        """Wait for all that was launched."""
        self.stream.synchronize()


def find_device(program: str) -> Device:
    """The GPU that CuPy considers the current one, for the kernels of a program.

    Each is a queue of its own, so that threads which learn at the same time do not disturb each other.
    """
    return Device(import_cupy(), program)


@cache
def load_program(program: str) -> Any:
    """The kernels of a program; what is compiled is kept on disk by CuPy."""
    return import_cupy().RawModule(code=program, options=OPTIONS)


@cache
def load_kernel(program: str, name: str) -> Any:
    """A kernel of a program."""
    return load_program(program).get_function(name)


def import_cupy() -> Any:
    """CuPy, if there is a GPU that it can use."""
    try:
        import cupy
    except ImportError as error:
        raise NoDevice(f'device="cuda" needs CuPy, which cannot be imported ({error}): {CURE}') from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NoDevice(
            f'device="cuda" needs an NVIDIA GPU and its driver, which CuPy does not find ({error}): '
            'check that nvidia-smi lists one, or set device="cpu"'
        ) from None
    if count == 0:
        raise NoDevice('device="cuda" needs an NVIDIA GPU, and there is none: set device="cpu"')
    return cupy


def is_there_a_device() -> bool:
    """Whether there is a GPU that can be used."""
    try:
        import_cupy()
    except NoDevice:
        return False
    return True
