"""A vector is eight float64 numbers that the CPU handles as one: its widest registers hold as many.

Loops over labels are short, and compilers rarely make vector code of short loops. So compiled code that has to be fast
says what it wants: `load` eight numbers, add, multiply or divide them, `store` them, take their `total`. Numba compiles
this to one instruction each where the CPU has 512-bit registers, to two or four elsewhere. With
``NUMBA_DISABLE_JIT=1`` the same code runs on small NumPy arrays.

Vectors are read from and written to flat positions of C-contiguous arrays, whatever their dimensions.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable
from numpy.typing import NDArray

from pyboomer.compiling.kernel import inner, plain

LANES = 8
CACHE = 2**18  # numbers that fit the second-level cache
_FLAGS = ("contract", "nsz")  # products may be fused with sums; NaN and infinity keep their meaning
_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_INTEGERS = ir.VectorType(ir.IntType(64), LANES)


class VectorType(types.Type):
    """Numba's type of a vector."""

    def __init__(self) -> None:
        super().__init__(name="Vector")


VECTOR = VectorType()


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _DOUBLES)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, position: Any) -> Any:
    if array_type.layout != "C":
        raise TypeError(f"vectors are read from C-contiguous arrays, not from {array_type}")
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [position])


@intrinsic
def _load(typing_context: Any, array: Any, position: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_value_type(signature.args[0].dtype)
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        wide = builder.bitcast(pointer, ir.VectorType(element, LANES).as_pointer())
        loaded = builder.load(wide, align=signature.args[0].dtype.bitwidth // 8)
        if isinstance(element, ir.IntType):
            return builder.sitofp(loaded, _DOUBLES)
        return builder.fpext(loaded, _DOUBLES) if isinstance(element, ir.FloatType) else loaded

    return VECTOR(array, types.intp), generate


@intrinsic
def _store(typing_context: Any, array: Any, position: Any, vector: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_value_type(signature.args[0].dtype)
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        vector = args[2]
        if isinstance(element, ir.FloatType):
            vector = builder.fptrunc(vector, ir.VectorType(element, LANES))
        elif isinstance(element, ir.IntType):
            vector = builder.fptosi(vector, ir.VectorType(element, LANES))
        wide = builder.bitcast(pointer, vector.type.as_pointer())
        builder.store(vector, wide, align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, VECTOR), generate


@intrinsic
def _add_integers(typing_context: Any, target: Any, place: Any, source: Any, position: Any) -> Any:  # noqa: ARG001
    """Add sixteen int32 numbers of an array to those of another: a histogram takes these and no other instructions."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(ir.IntType(32), 2 * LANES)
        pointers = [
            builder.bitcast(_pointer(context, builder, signature.args[i], args[i], args[i + 1]), kind.as_pointer())
            for i in (0, 2)
        ]
        total = builder.add(*(builder.load(pointer, align=4) for pointer in pointers))
        builder.store(total, pointers[0], align=4)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp), generate


@intrinsic
def _gather(typing_context: Any, array: Any, rows: Any, first: Any, size: Any, column: Any) -> Any:  # noqa: ARG001
    """A column of eight rows, whose numbers are in `rows` from position `first` on; a row has `size` numbers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.Constant(_DOUBLES, ir.Undefined)
        for i, pointer in enumerate(_scattered(context, builder, signature, args)):
            number = builder.load(pointer)
            number = builder.sitofp(number, ir.DoubleType()) if isinstance(number.type, ir.IntType) else number
            vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), i))
        return vector

    return VECTOR(array, rows, types.intp, types.intp, types.intp), generate


@intrinsic
def _scatter(typing_context: Any, array: Any, rows: Any, first: Any, size: Any, column: Any, vector: Any) -> Any:  # noqa: ARG001
    """Write what `gather` reads."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for i, pointer in enumerate(_scattered(context, builder, signature, args[:-1])):
            builder.store(builder.extract_element(args[-1], ir.Constant(ir.IntType(32), i)), pointer)
        return context.get_dummy_value()

    return types.void(array, rows, types.intp, types.intp, types.intp, VECTOR), generate


def _scattered(context: Any, builder: Any, signature: Any, args: Any) -> list[Any]:
    """Where a column of eight rows lies, see `_gather`."""
    array, rows, first, size, column = args
    pointers = []
    for i in range(LANES):
        place = builder.add(first, ir.Constant(first.type, i))
        row = builder.zext(builder.load(_pointer(context, builder, signature.args[1], rows, place)), size.type)
        position = builder.add(builder.mul(row, size), column)
        pointers.append(_pointer(context, builder, signature.args[0], array, position))
    return pointers


@intrinsic
def _transpose(typing_context: Any, array: Any, position: Any) -> Any:  # noqa: ARG001
    """Exchange rows and columns of eight vectors, which lie one behind the other from a position on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *args)
        places = [ir.Constant(args[1].type, i) for i in range(LANES)]
        wide = builder.bitcast(pointer, _DOUBLES.as_pointer())
        vectors = [builder.load(builder.gep(wide, [place]), align=8) for place in places]
        lanes = range(LANES)
        for step in (1, 2, 4):  # squares of this size change places with those beside them, along the diagonal
            upper = [lane if not lane & step else LANES + lane - step for lane in lanes]
            lower = [lane + step if not lane & step else LANES + lane for lane in lanes]
            masks = [ir.Constant(ir.VectorType(ir.IntType(32), LANES), lane) for lane in (upper, lower)]
            for i in lanes:
                if not i & step:
                    pair = vectors[i], vectors[i + step]
                    vectors[i], vectors[i + step] = (builder.shuffle_vector(*pair, mask) for mask in masks)
        for place, vector in zip(places, vectors, strict=True):
            builder.store(vector, builder.gep(wide, [place]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def _prefetch(typing_context: Any, array: Any, position: Any) -> Any:  # noqa: ARG001
    """Ask for the cache line of a number that will soon be needed, to be kept in the second-level cache."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(_pointer(context, builder, signature.args[0], args[0], args[1]), byte)
        function = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0i8")
        builder.call(fetch, [pointer, *(ir.Constant(word, flag) for flag in (0, 2, 1))])  # read, keep it, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _fill(builder: Any, number: Any) -> Any:
    """A vector of one number, eight times."""
    one = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_DOUBLES, ir.Undefined), mask)


@intrinsic
def _splat(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return _fill(builder, args[0])

    return VECTOR(types.float64), generate


def _halve(builder: Any, vector: Any) -> list[Any]:
    """The two halves of a vector."""
    half = vector.type.count // 2
    nothing = ir.Constant(vector.type, ir.Undefined)
    places = [ir.Constant(ir.VectorType(ir.IntType(32), half), list(range(i, i + half))) for i in (0, half)]
    return [builder.shuffle_vector(vector, nothing, place) for place in places]


def _reduction(combine: Any) -> Any:
    """One number of eight: halves are combined, three times. LLVM's own reductions combine one after the other."""

    @intrinsic
    def reduce(typing_context: Any, vector: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            vector = args[0]
            while vector.type.count > 1:
                vector = combine(builder, *_halve(builder, vector))
            return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

        return types.float64(VECTOR), generate

    return reduce


def _add(builder: Any, a: Any, b: Any) -> Any:
    return builder.fadd(a, b)


def _multiply(builder: Any, a: Any, b: Any) -> Any:
    return builder.fmul(a, b)


def _choose_larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@intrinsic
def _larger(typing_context: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return _choose_larger(builder, *args)

    return VECTOR(VECTOR, VECTOR), generate


@intrinsic
def _where_above(typing_context: Any, a: Any, limit: Any, value: Any, otherwise: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return VECTOR(VECTOR, VECTOR, VECTOR, VECTOR), generate


def _comparison(symbol: str) -> Any:
    @intrinsic
    def compare(typing_context: Any, vector: Any, value: Any) -> Any:  # noqa: ARG001
        """A bit for each number of a vector: whether it compares so with a value; NaN never does."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            bits = builder.bitcast(builder.fcmp_ordered(symbol, *args), ir.IntType(LANES))
            return builder.zext(bits, ir.IntType(64))

        return types.uint64(VECTOR, VECTOR), generate

    return compare


@intrinsic
def _count_trailing_zeros(typing_context: Any, word: Any) -> Any:  # noqa: ARG001
    """The position of the lowest bit that is set in a 64-bit word other than 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        function = ir.FunctionType(ir.IntType(64), [ir.IntType(64), ir.IntType(1)])
        cttz = cgutils.get_or_insert_function(builder.module, function, "llvm.cttz.i64")
        return builder.call(cttz, [args[0], ir.Constant(ir.IntType(1), 1)])

    return types.int64(types.uint64), generate


@intrinsic
def _power_of_two(typing_context: Any, shifted: Any) -> Any:  # noqa: ARG001
    """2^n, where n is what the last bits of n + 1.5 * 2^52 hold: moved to the place of the exponent."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        bits = builder.bitcast(args[0], _INTEGERS)
        exponent = builder.add(bits, ir.Constant(_INTEGERS, [1023] * LANES))
        return builder.bitcast(builder.shl(exponent, ir.Constant(_INTEGERS, [52] * LANES)), _DOUBLES)

    return VECTOR(VECTOR), generate


@intrinsic
def _add_bits(typing_context: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    """The sums of numbers whose bits are taken for those of integers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(builder.add(*(builder.bitcast(vector, _INTEGERS) for vector in args)), _DOUBLES)

    return VECTOR(VECTOR, VECTOR), generate


def _define(symbol: Any, name: str) -> None:
    """Let an operator work on vectors, and on a vector and a number.

    Not by `overload`: Numba would look at it, and compile something for it, at every sum of two numbers in any code.
    """

    @type_callable(symbol)
    def type_operation(context: Any) -> Any:  # noqa: ARG001
        def choose(a: Any, b: Any) -> Any:
            if VECTOR in (a, b) and all(kind is VECTOR or isinstance(kind, types.Number) for kind in (a, b)):
                return VECTOR(*(VECTOR if kind is VECTOR else types.float64 for kind in (a, b)))
            return None

        return choose

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        pairs = zip(signature.args, args, strict=True)
        a, b = (value if kind is VECTOR else _fill(builder, value) for kind, value in pairs)
        return getattr(builder, name)(a, b, flags=_FLAGS)

    for kinds in ((VECTOR, VECTOR), (VECTOR, types.float64), (types.float64, VECTOR)):
        lower_builtin(symbol, *kinds)(generate)


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")

if config.DISABLE_JIT:

    def load(array: Any, position: int) -> Any:
        return array.reshape(-1)[position : position + LANES].astype(np.float64)

    def store(array: Any, position: int, vector: Any) -> None:
        array.reshape(-1)[position : position + LANES] = vector

    def gather(array: Any, rows: Any, first: int, size: int, column: int) -> Any:
        return array.reshape(-1)[rows[first : first + LANES].astype(np.int64) * size + column].astype(np.float64)

    def scatter(array: Any, rows: Any, first: int, size: int, column: int, vector: Any) -> None:
        array.reshape(-1)[rows[first : first + LANES].astype(np.int64) * size + column] = vector

    def transpose(array: Any, position: int) -> None:
        block = array.reshape(-1)[position : position + LANES * LANES].reshape(LANES, LANES)
        block[:] = block.T.copy()

    def prefetch(array: Any, position: int) -> None:
        """Nothing to do: there is no waiting for memory that would be felt."""

    def splat(value: float) -> Any:
        return np.full(LANES, value)

    total, product, largest, larger = np.sum, np.prod, np.max, np.maximum

    def where_above(a: Any, limit: Any, value: Any, otherwise: Any) -> Any:
        return np.where(a > limit, value, otherwise)

    def power_of_two(shifted: Any) -> Any:
        return 2.0 ** (shifted - _ROUND)

    def add_integers(target: Any, place: int, source: Any, position: int) -> None:
        target.reshape(-1)[place : place + 2 * LANES] += source.reshape(-1)[position : position + 2 * LANES]

    def add_bits(a: Any, b: Any) -> Any:
        return (a.view(np.int64) + b.view(np.int64)).view(np.float64)

    def count_trailing_zeros(word: np.uint64) -> int:
        return (int(word) & -int(word)).bit_length() - 1

    def at_most(vector: Any, value: Any) -> np.uint64:
        return _pack(vector <= value)

    def equal(vector: Any, value: Any) -> np.uint64:
        return _pack(vector == value)

    def _pack(bits: Any) -> np.uint64:
        return np.uint64(sum(int(bit) << i for i, bit in enumerate(bits)))

else:
    load, store, gather, scatter, transpose = _load, _store, _gather, _scatter, _transpose
    prefetch, splat, add_integers = _prefetch, _splat, _add_integers
    total, product, largest = _reduction(_add), _reduction(_multiply), _reduction(_choose_larger)
    larger, where_above, add_bits = _larger, _where_above, _add_bits
    power_of_two, count_trailing_zeros = _power_of_two, _count_trailing_zeros
    at_most, equal = _comparison("<="), _comparison("==")


@plain
def pad(k: int) -> int:
    """How many numbers the vectors have that hold k numbers."""
    return -(-k // LANES) * LANES


def make_zeros(shape: tuple[int, int]) -> NDArray[np.float64]:
    """An array of zeros that starts where a cache line does: vectors that straddle two take much longer."""
    size = shape[0] * shape[1]
    numbers = np.zeros(size + LANES)
    start = -numbers.ctypes.data % (8 * LANES) // 8
    return numbers[start : start + size].reshape(shape)


@inner(forceinline=True)
def gather_columns(array: Any, rows: Any, size: int, column: int, block: Any, position: int) -> None:
    """Copy eight columns of eight rows, of `size` numbers each, to a block of vectors, one for each column.

    Eight rows are read as they lie, which takes a fraction of the time that `gather` takes for eight columns.
    """
    for i in range(LANES):
        store(block, position + i * LANES, load(array, rows[i] * size + column))
    transpose(block, position)


@inner(forceinline=True)
def scatter_columns(array: Any, rows: Any, size: int, column: int, block: Any, position: int) -> None:
    """Write what `gather_columns` reads; the block is used up."""
    transpose(block, position)
    for i in range(LANES):
        store(array, rows[i] * size + column, load(block, position + i * LANES))


# exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2; ln 2 is split in two numbers, so that r is exact
_ROUND = 1.5 * 2.0**52  # adding it leaves the nearest whole number in the last bits
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


@inner(error_model="numpy", forceinline=True)
def exp(x: Any) -> Any:
    """The exponential of each number, for numbers up to 700; exact to about one unit in the last place.

    LLVM has no vector exponential without a further library. Below -708 the result stays at exp(-708).
    """
    x = larger(x, splat(-708.0))
    shifted = x * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = splat(1.6059043836821613e-10)  # Taylor's series: 1 / 13!
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.755731922398589e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 1.984126984126984e-04
    p = p * r + 1.388888888888889e-03
    p = p * r + 8.333333333333333e-03
    p = p * r + 4.166666666666666e-02
    p = p * r + 1.666666666666667e-01
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * power_of_two(shifted)
