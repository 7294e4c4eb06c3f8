"""The lock of llvmlite, which forks wait for."""

class _LLVMLock:
    def __enter__(self) -> None: ...
    def __exit__(self, *exc_details: object) -> None: ...

class _Lib:
    _lock: _LLVMLock

lib: _Lib
