"""From the source of a loop to machine code, with what is known of it on the way: ``values`` are what its expressions are.

``sources`` finds the syntax trees, ``translator`` writes them as LLVM's code with the help of ``expressions``, ``arrays``, the
functions that are ``known``, and the ``writer`` of instructions. ``natives`` makes machine code of that.
"""

from onlinevi.engine.llvm.natives import Loop, called_by_numba, translated
from onlinevi.engine.llvm.values import Form, NotTranslated

__all__ = ["Form", "Loop", "NotTranslated", "called_by_numba", "translated"]
