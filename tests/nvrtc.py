"""NVRTC is NVIDIA's compiler as a library: it needs no GPU. It comes with the wheel nvidia-cuda-nvrtc."""

import ctypes
from importlib.util import find_spec
from pathlib import Path


def find_nvrtc() -> Path | None:
    """The library, if the wheel is installed."""
    spec = find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return next((path for folder in folders for path in sorted(Path(folder).rglob("libnvrtc.so.*"))), None)


def compile_program(text: str, options: tuple[str, ...]) -> tuple[bytes, str]:
    """The PTX of a program, and what the compiler has to say."""
    library = ctypes.CDLL(str(find_nvrtc()))
    program = ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"pyboomer.cu", 0, None, None) == 0
    words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), words)

    def read(name: str) -> bytes:
        size = ctypes.c_size_t()
        assert getattr(library, f"nvrtcGet{name}Size")(program, ctypes.byref(size)) == 0
        found = ctypes.create_string_buffer(size.value)
        assert getattr(library, f"nvrtcGet{name}")(program, found) == 0
        return found.value

    log = read("ProgramLog").decode()
    ptx = b"" if failed else read("PTX")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx, log
