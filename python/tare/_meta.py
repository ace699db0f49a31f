# SPDX-License-Identifier: Apache-2.0
"""What is known of a node besides its arguments, under torch's keys."""
from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from ._dtypes import dtype_at
from ._library import call, lib, out, text

if TYPE_CHECKING:
    from .graph import Node

__all__ = ["NodeMeta", "TensorMeta"]

_ANNOTATION = "quantization_annotation"



class TensorMeta:
    """dtype and shape of a value; -1 stands for a symbolic size."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: Any, shape: tuple[int, ...]) -> None:
        self.dtype = dtype
        self.shape = shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def dim(self) -> int:
        """As torch calls it."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"TensorMeta(dtype={self.dtype}, shape={self.shape})"


class NodeMeta(MutableMapping[str, Any]):
    """A node's meta, as torch.export calls it: val, nn_module_stack, source_fn_stack, torch_fn.

    Reading asks the model each time.
    """

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def _read(self) -> dict[str, Any]:
        made, place = out("tare_node_meta")
        call("node_meta_read", self._node._handle, place)
        try:
            meta = made.contents
            found: dict[str, Any] = {}
            if meta.module_count:
                found["nn_module_stack"] = {
                    text(meta.modules[i].name): (text(meta.modules[i].name), text(meta.modules[i].function))
                    for i in range(meta.module_count)}
            if meta.source_count:
                found["source_fn_stack"] = [(text(meta.sources[i].name), text(meta.sources[i].function))
                                            for i in range(meta.source_count)]
            if meta.has_value:
                values = tuple(TensorMeta(dtype_at(value.dtype), tuple(value.shape[:value.rank]))
                               for value in meta.values[:meta.value_count])
                found["val"] = values if meta.value_is_tuple else values[0] if values else None
            if lib.model_annotation(self._node.model._handle, self._node._handle):
                found[_ANNOTATION] = self[_ANNOTATION]
            if meta.torch_function is not None:
                found["torch_fn"] = (text(meta.torch_call), text(meta.torch_function))
        finally:
            lib.node_meta_destroy(made)
        return found

    def __getitem__(self, key: str) -> Any:
        if key == _ANNOTATION:
            from .quantizer import read_annotation
            found = read_annotation(self._node)
            if found is None:
                raise KeyError(key)
            return found
        return self._read()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key != _ANNOTATION:
            raise KeyError(f"'{key}' cannot be set; a quantizer sets '{_ANNOTATION}'")
        from .quantizer import write_annotation
        write_annotation(self._node, value)

    def __delitem__(self, key: str) -> None:
        if key != _ANNOTATION:
            raise KeyError(f"'{key}' cannot be removed")
        with self._node.model._changing() as handle:
            lib.model_clear_annotation(handle, self._node._handle)

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return repr(dict(self))
