"""quoll: neural-network inference that loads ncnn's models unchanged and converts ONNX.

    import quoll
    net = quoll.load("model.param", "model.bin")          # or quoll.load("model.onnx")
    image = quoll.image_input("photo.jpg", (224, 224), mean=[123.7, 116.3, 103.5], norm=[0.0171, 0.0175, 0.0174])
    scores = quoll.run(net, {"data": image})["prob"]      # a NumPy array

docs/python.md tells the rest; quoll.ncnn has the names of the ncnn module.
"""
from ._core import (  # noqa: F401
    BORDER_CONSTANT, BORDER_REFLECT, BORDER_REPLICATE, BORDER_TRANSPARENT, Allocator, Blob, BuiltinLayer, DataReaderFromEmpty, Error,
    Extractor, GpuInfo, LayerInfo, LayerTime, Mat, ModelBin, Option, ParamDict, PoolAllocator, Port, UnlockedPoolAllocator,
    __version__, cast_bfloat16_to_float32, cast_float16_to_float32, cast_float32_to_bfloat16, cast_float32_to_float16,
    cast_int8_to_float32, convert_packing, copy_cut_border, copy_make_border, copy_make_border_3d, create_gpu_instance, create_layer,
    destroy_gpu_instance, flatten, get_cpu_count, get_default_gpu_index, get_gpu_count, get_gpu_info, get_log_level,
    get_physical_cpu_count, layer_to_index, layer_types, quantize_to_int8, resize_bicubic, resize_bilinear, resize_nearest,
    set_cpu_powersave, set_log_level)
from ._image import draw_boxes, image_input, imread, imwrite
from ._layer import Layer
from ._net import Net, load, run
from ._pool import Pool
from ._times import Benchmark, Profile, benchmark, profile
from ._tools import convert, quantize, run_tool, tool_path, tools

__all__ = [name for name in dir() if not name.startswith("_")]
