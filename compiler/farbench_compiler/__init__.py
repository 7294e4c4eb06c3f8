"""Tensor expressions, schedules, loop IR, LLVM, linking, targets and the operator library."""
