from typing import Any, Callable

class UnpackException(Exception): ...
class ExtraData(UnpackException, ValueError): ...
class FormatError(ValueError, UnpackException): ...
class StackError(ValueError, UnpackException): ...
class OutOfData(UnpackException): ...

class Packer:
    def __init__(
        self,
        *,
        use_bin_type: bool = ...,
        strict_types: bool = ...,
        autoreset: bool = ...,
    ) -> None: ...
    def pack(self, obj: Any) -> bytes: ...
    def reset(self) -> None: ...

def packb(o: Any, *, use_bin_type: bool = ..., strict_types: bool = ...) -> bytes: ...
def unpackb(
    packed: bytes | bytearray | memoryview,
    *,
    raw: bool = ...,
    use_list: bool = ...,
    strict_map_key: bool = ...,
    object_hook: Callable[[dict[Any, Any]], Any] | None = ...,
    object_pairs_hook: Callable[[list[tuple[Any, Any]]], Any] | None = ...,
    max_str_len: int = ...,
    max_bin_len: int = ...,
    max_array_len: int = ...,
    max_map_len: int = ...,
    max_ext_len: int = ...,
) -> Any: ...
