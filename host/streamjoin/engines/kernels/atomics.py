"""Atomic operations for kernels whose threads share state."""

import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import fused


@intrinsic
def fetch_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Add ``value`` to ``array[index]`` and return the old value, as one atomic step.

    What a thread wrote before its step is visible to threads whose step is later.
    """
    signature = array.dtype(array, types.uintp, array.dtype)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        array_type = sig.args[0]
        view = context.make_array(array_type)(context, builder, args[0])
        address = cgutils.get_item_pointer(
            context, builder, array_type, view, [args[1]], wraparound=False
        )
        return builder.atomic_rmw("add", address, args[2], "acq_rel")

    return signature, generate


def _address(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> tuple[Any, int]:
    """Return the element's address and its bytes."""
    view = context.make_array(sig.args[0])(context, builder, args[0])
    address = cgutils.get_item_pointer(
        context, builder, sig.args[0], view, [args[1]], wraparound=False
    )
    return address, sig.args[0].dtype.bitwidth // 8


@intrinsic
def load_acquire(typing_context: Any, array: Any, index: Any) -> Any:
    """Read ``array[index]``; what its writer wrote before :func:`store_release` is then visible."""
    signature = array.dtype(array, types.uintp)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        address, align = _address(context, builder, sig, args)
        return builder.load_atomic(address, "acquire", align)

    return signature, generate


@intrinsic
def store_release(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Write ``array[index]`` after all earlier writes of this thread."""
    signature = types.void(array, types.uintp, array.dtype)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        address, align = _address(context, builder, sig, args)
        builder.store_atomic(args[2], address, "release", align)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def compare_exchange(typing_context: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Write ``value`` to ``array[index]`` if it holds ``expected``, atomically; return whether."""
    signature = types.boolean(array, types.uintp, array.dtype, array.dtype)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        address, _ = _address(context, builder, sig, args)
        both = builder.cmpxchg(address, args[2], args[3], "acquire", "monotonic")
        return builder.extract_value(both, 1)

    return signature, generate


@intrinsic
def pause(typing_context: Any) -> Any:
    """Signal the processor that the thread spins, where there is an instruction for it."""
    signature = types.void()

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        if platform.machine().lower() in {"x86_64", "amd64", "i686"}:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(
                cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), []
            )
        return context.get_dummy_value()

    return signature, generate


_sched_yield = types.ExternalFunction("sched_yield", types.int32())

SPINS = 64
"""Pauses before a waiting thread lets another one run."""


@fused
def lock(locks: NDArray[np.uint32], index: int) -> None:
    """Wait for a lock, which its holder keeps for less than a microsecond of CPU time."""
    spins = 0
    while not compare_exchange(locks, index, np.uint32(0), np.uint32(1)):
        spins += 1
        if spins % SPINS:
            pause()
        else:
            _sched_yield()


@fused
def try_lock(locks: NDArray[np.uint32], index: int) -> bool:
    """Take a lock unless another thread has it; return whether."""
    return compare_exchange(locks, index, np.uint32(0), np.uint32(1))


@fused
def give_way() -> None:
    """Let another thread run."""
    _sched_yield()


@fused
def unlock(locks: NDArray[np.uint32], index: int) -> None:
    """Release a lock; the next holder sees what this one wrote."""
    store_release(locks, index, np.uint32(0))
