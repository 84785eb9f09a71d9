# mypy: allow-untyped-calls
"""Sixteen floats at a time inside Numba functions, in registers.

Numba leaves vectorising to LLVM, which gives up on loops over as many arrays as refinement and
decoding read: it cannot prove that they do not overlap. `Lanes` says it outright. LLVM splits the
sixteen into whatever the CPU has: one AVX-512 register, two of AVX, four of SSE or NEON.

    v = load(array, i) * fill(2.0); store(array, i, v)      # i counts elements of the whole array

Arrays are float32 and C-contiguous; nothing checks bounds.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

WIDTH = 16
FLOATS = ir.VectorType(ir.FloatType(), WIDTH)
INTS = ir.VectorType(ir.IntType(32), WIDTH)


class Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes")


lanes = Lanes()


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, FLOATS)


def _built_in(function: Any) -> Any:
    return intrinsic(function)


def _constant(value: float) -> ir.Constant:
    return ir.Constant(FLOATS, [float(np.float32(value))] * WIDTH)


def _llvm(builder: ir.IRBuilder, name: str, arguments: int) -> Any:
    """One of LLVM's own functions, of so many lanes."""
    kind = ir.FunctionType(FLOATS, [FLOATS] * arguments)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f32")


def _element(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, index: Any) -> Any:
    """Pointer to 16 floats that begin at an element of an array."""
    start = cgutils.create_struct_proxy(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(start, [index]), FLOATS.as_pointer())


@_built_in
def load(typing: Any, array: Any, index: Any) -> Any:
    def code(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.load(_element(context, builder, array, *args), align=4)

    return lanes(array, types.intp), code


@_built_in
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    def code(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        builder.store(args[2], _element(context, builder, array, *args[:2]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), code


@_built_in
def fill(typing: Any, value: Any) -> Any:
    """One number in all lanes."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        first = builder.insert_element(ir.Constant(FLOATS, ir.Undefined), args[0], _index(0))
        return builder.shuffle_vector(first, first, ir.Constant(INTS, [0] * WIDTH))

    return lanes(types.float32), code


def _index(value: int) -> ir.Constant:
    return ir.Constant(ir.IntType(32), value)


@_built_in
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once where the CPU can."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.call(_llvm(builder, "fmuladd", 3), args)

    return lanes(lanes, lanes, lanes), code


@_built_in
def where_above(typing: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """`yes` where a > b, else `no`."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return lanes(lanes, lanes, lanes, lanes), code


@_built_in
def root(typing: Any, a: Any) -> Any:
    def code(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.call(_llvm(builder, "sqrt", 1), args)

    return lanes(lanes), code


# exp(x) = 2^n 2^f with n whole and |f| <= 1/2; the polynomial for 2^f is fitted to the relative
# error (9e-8 before rounding).
LOG2_E = 1.44269504
TO_WHOLE = 12582912.0  # 1.5 * 2^23: added, a float keeps no digits behind the point
POWERS_OF_F = (0.693146978, 0.240222421, 0.0555073375, 0.00967151286, 0.0013264724)


@_built_in
def exp_below_0(typing: Any, a: Any) -> Any:
    """exp(a) for a <= 0, within 2e-7 of itself; 1e-38 and less is 1e-38."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        fma = _llvm(builder, "fmuladd", 3)
        low = _constant(-87.0)
        x = builder.select(builder.fcmp_ordered(">", args[0], low), args[0], low)
        t = builder.fmul(x, _constant(LOG2_E))
        n = builder.fsub(builder.fadd(t, _constant(TO_WHOLE)), _constant(TO_WHOLE))
        f = builder.fsub(t, n)
        power: Any = _constant(POWERS_OF_F[-1])
        for coefficient in (*POWERS_OF_F[-2::-1], 1.0):
            power = builder.call(fma, [power, f, _constant(coefficient)])
        exponent = builder.add(builder.fptosi(n, INTS), ir.Constant(INTS, [127] * WIDTH))
        shifted = builder.shl(exponent, ir.Constant(INTS, [23] * WIDTH))
        return builder.fmul(power, builder.bitcast(shifted, FLOATS))

    return lanes(lanes), code


def _operator(function: Any, instruction: str) -> None:
    @_built_in
    def primitive(typing: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(*args)

        return lanes(lanes, lanes), code

    @overload(function)
    def between_lanes(a: Any, b: Any) -> Any:
        def applied(a: Any, b: Any) -> Any:
            return primitive(a, b)

        return applied if a == lanes and b == lanes else None


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")
