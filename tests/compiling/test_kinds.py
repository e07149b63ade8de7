"""A function that depends on a kind does what was written for the kind of its first argument."""

from typing import Any, NamedTuple

import pytest
from numba import config, njit
from numba.core.errors import TypingError

from pyboomer.compiling.kernel import inner, kernel, plain
from pyboomer.compiling.kinds import by_kind

compiled_only = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")


class Square(NamedTuple):
    side: float


class Circle(NamedTuple):
    radius: float  # as a tuple, no different from a square


class Rectangle(NamedTuple):
    width: float
    height: float


class Stranger(NamedTuple):
    size: float


class Picture(NamedTuple):
    shape: Any
    copies: int


@by_kind
def measure(shape: Any, scale: float) -> float:  # noqa: ARG001
    """The area of a shape."""
    raise AssertionError("what is declared is never run")


@measure.of(Square, compile=plain)
def measure_square(shape: Square, scale: float) -> float:
    return scale * shape.side**2


@measure.of(Circle, compile=kernel)
def measure_circle(shape: Circle, scale: float) -> float:
    return scale * 3.0 * shape.radius**2


@measure.of(Rectangle, Picture, compile=kernel)
def measure_product(shape: Any, scale: float) -> float:
    return scale * product(shape)


@by_kind
def product(thing: Any) -> float:
    """What there is, times how much there is of it."""


@product.of(Rectangle, compile=kernel)
def multiply_sides(thing: Rectangle) -> float:
    return thing.width * thing.height


@product.of(Picture, compile=kernel)
def multiply_copies(thing: Picture) -> float:
    return thing.copies * measure(thing.shape, 1.0)


@njit
def measure_compiled(shape: Any, scale: float) -> float:
    return measure(shape, scale)


@njit
def measure_both(one: Any, other: Any) -> tuple[float, float]:
    return measure(one, 1.0), measure(other, 1.0)


SHAPES = [
    (Square(3.0), 9.0),
    (Circle(3.0), 27.0),
    (Rectangle(3.0, 5.0), 15.0),
    (Picture(Square(3.0), 2), 18.0),
    (Picture(Circle(3.0), 2), 54.0),
    (Picture(Picture(Rectangle(3.0, 5.0), 2), 2), 60.0),
]


@pytest.mark.parametrize(("shape", "area"), SHAPES, ids=str)
@pytest.mark.parametrize("call", [measure, measure_compiled])
def test_the_kind_of_the_first_argument_decides(call: Any, shape: Any, area: float) -> None:
    assert call(shape, 1.0) == area
    assert call(shape, 0.5) == 0.5 * area


def test_one_compiled_function_may_ask_about_several_kinds() -> None:
    for one, area in SHAPES[:3]:
        for other, other_area in SHAPES[:3]:
            assert measure_both(one, other) == (area, other_area)


@pytest.mark.parametrize("stranger", [Stranger(3.0), (3.0,), 3.0], ids=repr)
def test_an_unknown_kind_is_an_error(stranger: Any) -> None:
    message = f"measure is not written for {type(stranger).__name__}, but for Square, Circle, Rectangle, Picture"
    with pytest.raises(TypeError, match=message):
        measure(stranger, 1.0)


@compiled_only
def test_python_is_told_if_only_compiled_code_can_call_a_function() -> None:
    double = inner(lambda x: 2 * x)
    with pytest.raises(TypeError, match="is for compiled code; Python can run"):
        double(2)
    assert double.py_func(2) == 4


@compiled_only
@pytest.mark.parametrize("stranger", [Stranger(3.0), (3.0,), 3.0], ids=repr)
def test_an_unknown_kind_is_not_compiled(stranger: Any) -> None:
    with pytest.raises((TypeError, TypingError), match="measure is not written for"):
        measure_compiled(stranger, 1.0)


@compiled_only
def test_a_wrong_number_of_arguments_is_not_compiled() -> None:
    @njit
    def measure_without_scale(shape: Any) -> float:
        return measure(shape)

    with pytest.raises(TypingError):
        measure_without_scale(Square(3.0))


def test_a_function_keeps_its_name_and_says_what_it_does() -> None:
    assert measure.__name__ == "measure"
    assert measure.__doc__ == "The area of a shape."


def test_an_implementation_may_be_called_by_its_own_name() -> None:
    assert measure_square(Square(3.0), 1.0) == 9.0
    assert measure.implementations[Rectangle] is measure.implementations[Picture] is measure_product


@compiled_only
def test_only_the_case_at_hand_is_compiled() -> None:
    @by_kind
    def choose(shape: Any) -> float:
        """Some number."""

    choose.of(Square, compile=kernel)(lambda shape: shape.side)
    choose.of(Circle, compile=kernel)(lambda shape: shape.nothing_of_the_kind)  # cannot be compiled

    @njit
    def choose_compiled(shape: Any) -> float:
        return choose(shape)

    assert choose_compiled(Square(3.0)) == 3.0
    assert not choose.implementations[Circle].compiled.signatures
    with pytest.raises(TypingError):
        choose_compiled(Circle(3.0))
