"""The names of the ncnn module: programs written for `import ncnn` run with `import quoll.ncnn as ncnn`.

What returns a code there returns a code here, after the reason on stderr. For programs that cannot be changed:
`import sys, quoll.ncnn; sys.modules["ncnn"] = quoll.ncnn`.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, List, Optional, Sequence, Set, Tuple, Union

from . import _core
from ._core import (  # noqa: F401
    Allocator, Blob, DataReaderFromEmpty, GpuInfo, ModelBin, PoolAllocator, UnlockedPoolAllocator, __version__,
    cpu_support_arm_asimdhp, cpu_support_arm_neon, cpu_support_arm_vfpv4, cpu_support_x86_avx, cpu_support_x86_avx2,
    destroy_gpu_instance, get_big_cpu_count, get_cpu_count, get_cpu_powersave, get_default_gpu_index,
    get_gpu_count, get_gpu_info, get_kmp_blocktime, get_little_cpu_count, get_omp_dynamic, get_omp_num_threads, get_omp_thread_num,
    get_physical_big_cpu_count, get_physical_cpu_count, get_physical_little_cpu_count, layer_to_index, set_cpu_powersave,
    set_kmp_blocktime, set_omp_dynamic, set_omp_num_threads, Mat)

_FAILED = -1


class BorderType:
    BORDER_CONSTANT = _core.BORDER_CONSTANT
    BORDER_REPLICATE = _core.BORDER_REPLICATE
    BORDER_REFLECT = _core.BORDER_REFLECT
    BORDER_TRANSPARENT = _core.BORDER_TRANSPARENT


class DataReader:
    """Derive from it and override read(n) -> bytes."""

    def read(self, size: int) -> bytes:
        raise NotImplementedError("DataReader.read")


class Option(_core.Option):
    """ncnn's options. Those that this engine has no use for are kept, and change nothing."""
    openmp_blocktime = 20
    use_bf16_packed = False
    use_fp16_packed = True
    use_int8_arithmetic = True
    use_int8_inference = True
    use_int8_packed = True
    use_int8_storage = True
    use_sgemm_convolution = True
    use_subgroup_ops = True
    use_tensor_storage = False
    use_winograd23_convolution = True
    use_winograd43_convolution = True
    use_winograd63_convolution = True
    use_shader_pack8 = False
    use_image_storage = False


class ParamDict(_core.ParamDict):
    def __init__(self) -> None:
        super().__init__()
        self._untyped: Set[int] = set()

    def type(self, id: int) -> int:
        """As quoll's, but 4 for an array that was set: ncnn's Mats do not tell ints from floats."""
        return 4 if id in self._untyped else super().type(id)

    def set(self, id: int, value: Any) -> None:
        super().set(id, value)
        (self._untyped.add if super().type(id) in (5, 6) else self._untyped.discard)(id)


def _code(function: Callable[..., Any], *args: Any) -> int:
    try:
        function(*args)
        return 0
    except _core.Error as error:
        _say(error)
        return _FAILED


def _say(error: BaseException) -> None:
    cause = f" ({type(error.__cause__).__name__}: {error.__cause__})" if error.__cause__ else ""
    print(f"{error}{cause}", file=sys.stderr)


class Layer:
    """A layer in Python: forward(bottom, top, opt) or, unless one_blob_only, forward(bottoms, tops, opt), which fill the given
    Mats; or forward_inplace(blobs, opt) with support_inplace. All return 0, or a negative code."""

    def __init__(self) -> None:
        self.one_blob_only = False
        self.support_inplace = False
        self.support_packing = self.support_vulkan = self.support_bf16_storage = self.support_fp16_storage = False
        self.type = self.name = ""
        self.typeindex = -1
        self.bottoms: List[int] = []
        self.tops: List[int] = []
        self.bottom_shapes: List[Mat] = []
        self.top_shapes: List[Mat] = []

    def load_param(self, pd: _core.ParamDict) -> int:
        return 0

    def load_model(self, mb: ModelBin) -> int:
        return 0

    def create_pipeline(self, opt: _core.Option) -> int:
        return 0

    def destroy_pipeline(self, opt: _core.Option) -> int:
        return 0

    def forward(self, bottoms: Any, tops: Any, opt: _core.Option) -> int:
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def forward_inplace(self, blobs: Any, opt: _core.Option) -> int:
        raise NotImplementedError(f"{type(self).__name__}.forward_inplace")

    def _load_param(self, pd: _core.ParamDict) -> None:
        self._check("load_param", self.load_param(pd))

    def _load_model(self, mb: ModelBin) -> None:
        self._check("load_model", self.load_model(mb))

    def _create_pipeline(self, opt: _core.Option) -> None:
        self._check("create_pipeline", self.create_pipeline(opt))

    def _forward(self, inputs: Sequence[Mat], outputs: int, opt: _core.Option) -> Sequence[Mat]:
        if self.support_inplace and type(self).forward is Layer.forward:
            blobs = [mat.clone() for mat in inputs]
            code = self.forward_inplace(blobs[0] if self.one_blob_only else blobs, opt)
            self._check("forward_inplace", code)
            return blobs
        tops = [Mat() for _ in range(outputs)]
        code = self.forward(inputs[0], tops[0], opt) if self.one_blob_only else self.forward(inputs, tops, opt)
        self._check("forward", code)
        return tops

    def _check(self, what: str, code: Optional[int]) -> None:
        if code:
            raise RuntimeError(f"{what} returned {code}")


class _BuiltinLayer:
    """What create_layer gives: methods that return codes."""

    def __init__(self, layer: _core.BuiltinLayer):
        self._layer = layer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)

    def load_param(self, pd: _core.ParamDict) -> int:
        return _code(self._layer.load_param, pd)

    def load_model(self, mb: Any) -> int:
        return _code(self._layer.load_model, mb)

    def create_pipeline(self, opt: _core.Option) -> int:
        return _code(self._layer.create_pipeline, opt)

    def destroy_pipeline(self, opt: _core.Option) -> int:
        return _code(self._layer.destroy_pipeline, opt)

    def forward(self, bottoms: Any, tops: Any, opt: _core.Option) -> int:
        one = isinstance(bottoms, Mat)
        try:
            results = self._layer.forward([bottoms] if one else list(bottoms), opt)
        except _core.Error as error:
            _say(error)
            return _FAILED
        for top, result in zip([tops] if one else tops, results):
            top.assign(result)
        return 0

    def forward_inplace(self, blobs: Any, opt: _core.Option) -> int:
        mats = [blobs] if isinstance(blobs, Mat) else list(blobs)
        results = [Mat() for _ in mats]
        code = self.forward(mats, results, opt) if self._layer.support_inplace else _FAILED
        for mat, result in zip(mats, results if code == 0 else []):
            if mat.elempack == 1 and mat.dtype != "bfloat16":
                mat.numpy()[...] = result.numpy()
            else:  # of which numpy() is a copy
                mat.assign(result)
        return code


def create_layer(kind: Union[str, int]) -> Optional[_BuiltinLayer]:
    """A built-in layer, by its name or type index; None if there is none."""
    if isinstance(kind, int):
        kind = next((name for name in _core.layer_types() if _core.layer_to_index(name) == kind), "")
    try:
        return _BuiltinLayer(_core.create_layer(kind))
    except _core.Error:
        return None


class ModelBinFromMatArray:
    """Weights for a layer of create_layer."""

    def __init__(self, weights: Sequence[Mat]):
        self._weights = list(weights)

    def __iter__(self) -> Any:
        return iter(self._weights)


class Extractor:
    def __init__(self) -> None:
        raise TypeError("ncnn.Extractor: No constructor defined!")

    @classmethod
    def _of(cls, net: "Net") -> "Extractor":
        self = cls.__new__(cls)
        self._extractor = _core.create_extractor(net)
        return self

    def __enter__(self) -> "Extractor":
        return self

    def __exit__(self, *_: Any) -> None:
        self.clear()

    def clear(self) -> None:
        try:
            self._extractor.clear()
        except _core.Error:  # the Net was cleared first
            pass

    def set_light_mode(self, enable: bool) -> None:
        self._extractor.set_light_mode(enable)

    def set_num_threads(self, num_threads: int) -> None:
        self._extractor.set_num_threads(num_threads)

    def set_blob_allocator(self, allocator: Optional[Allocator]) -> None:
        self._extractor.set_blob_allocator(allocator)

    def set_workspace_allocator(self, allocator: Optional[Allocator]) -> None:
        self._extractor.set_workspace_allocator(allocator)

    def set_kvcache_allocator(self, allocator: Optional[Allocator]) -> None:
        """Caches are blobs like others here."""

    def set_kvcache_max_seqlen_hint(self, max_seqlen_hint: int) -> None:
        """Caches are blobs like others here."""

    def input(self, blob: Union[str, int], mat: Mat) -> int:
        return _code(self._extractor.input, blob, mat)

    def extract(self, blob: Union[str, int], feat: Union[Mat, int, None] = None, type: int = 0) -> Union[int, Tuple[int, Mat]]:
        """(code, Mat); or with a Mat to fill, the code."""
        if isinstance(feat, int):
            feat, type = None, feat
        try:
            code, mat = 0, self._extractor.extract(blob, type)
        except _core.Error as error:
            _say(error)
            code, mat = _FAILED, Mat()
        if feat is None:
            return code, mat
        if code == 0:
            feat.assign(mat)
        return code


class Net(_core.Net):
    def __init__(self) -> None:
        super().__init__()
        self.opt = Option()
        self._vulkan: Optional[int] = None

    def __enter__(self) -> "Net":
        return self

    def __exit__(self, *_: Any) -> None:
        self.clear()

    def load_param(self, source: Any) -> int:
        return _code(super().load_param, source)

    def load_param_bin(self, source: Any) -> int:
        return _code(super().load_param_bin, source)

    def load_param_mem(self, mem: str) -> int:
        return _code(super().load_param_mem, mem)

    def load_model(self, source: Any) -> int:
        return _code(super().load_model, source)

    def load_model_mem(self, mem: Union[bytes, str]) -> int:
        return _code(super().load_model_mem, mem if isinstance(mem, bytes) else mem.encode("latin-1"))

    def create_extractor(self) -> Extractor:
        return Extractor._of(self)

    def register_custom_layer(self, kind: Union[str, int], creator: Callable[[], Layer],
                              destroyer: Optional[Callable[[Layer], None]] = None) -> int:
        return _code(super().register_custom_layer, kind, creator, destroyer)

    def set_vulkan_device(self, device: Any) -> None:
        index = device if isinstance(device, int) else device.index
        if _code(super().set_vulkan_device, index) == 0:
            self._vulkan = index

    def vulkan_device(self) -> Optional["VulkanDevice"]:
        return None if self._vulkan is None else VulkanDevice(self._vulkan)


def create_gpu_instance(driver_path: Optional[str] = None) -> int:
    return _code(_core.create_gpu_instance)


class VulkanDevice:
    """A device by its number; Nets open it themselves."""

    def __init__(self, device_index: Optional[int] = None):
        self.index = get_default_gpu_index() if device_index is None else device_index

    def info(self) -> GpuInfo:
        return get_gpu_info(self.index)


def get_gpu_device(device_index: int = 0) -> Optional[VulkanDevice]:
    return VulkanDevice(device_index) if 0 <= device_index < get_gpu_count() else None


def _into(dst: Mat, function: Callable[..., Mat], *args: Any) -> None:
    try:
        dst.assign(function(*args))
    except _core.Error as error:
        _say(error)
        dst.release()


_DEFAULT = _core.Option()


def resize_nearest(src: Mat, dst: Mat, w: int, h: int, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.resize_nearest, src, w, h, opt)


def resize_bilinear(src: Mat, dst: Mat, w: int, h: int, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.resize_bilinear, src, w, h, opt)


def resize_bicubic(src: Mat, dst: Mat, w: int, h: int, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.resize_bicubic, src, w, h, opt)


def convert_packing(src: Mat, dst: Mat, elempack: int, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.convert_packing, src, elempack, opt)


def flatten(src: Mat, dst: Mat, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.flatten, src, opt)


def cast_float32_to_float16(src: Mat, dst: Mat, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.cast_float32_to_float16, src, opt)


def cast_float16_to_float32(src: Mat, dst: Mat, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.cast_float16_to_float32, src, opt)


def cast_float32_to_bfloat16(src: Mat, dst: Mat, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.cast_float32_to_bfloat16, src, opt)


def cast_bfloat16_to_float32(src: Mat, dst: Mat, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.cast_bfloat16_to_float32, src, opt)


def cast_int8_to_float32(src: Mat, dst: Mat, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.cast_int8_to_float32, src, opt)


def quantize_to_int8(src: Mat, dst: Mat, scale_data: Mat, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.quantize_to_int8, src, scale_data, opt)


def copy_make_border(src: Mat, dst: Mat, top: int, bottom: int, left: int, right: int, type: int, v: float,
                     opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.copy_make_border, src, top, bottom, left, right, int(type), v, opt)


def copy_make_border_3d(src: Mat, dst: Mat, top: int, bottom: int, left: int, right: int, front: int, behind: int, type: int, v: float,
                        opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.copy_make_border_3d, src, top, bottom, left, right, front, behind, int(type), v, opt)


def copy_cut_border(src: Mat, dst: Mat, top: int, bottom: int, left: int, right: int, opt: _core.Option = _DEFAULT) -> None:
    _into(dst, _core.copy_cut_border, src, top, bottom, left, right, opt)
