#include "quoll/option.h"

#include "quoll/cpu.h"

namespace quoll {

Option::Option()
    : lightmode(true),
      num_threads(get_physical_big_cpu_count()),
      blob_allocator(0),
      workspace_allocator(0),
      openmp_blocktime(20),
      use_fp16_storage(false),
      use_bf16_storage(false),
      use_fp32_split(6),
      use_fp16_arithmetic(false),
      use_vulkan_compute(false),
      blob_vkallocator(0),
      staging_vkallocator(0),
      vulkan_fallback(false),
      use_packing_layout(true),
      use_winograd_convolution(true),
      use_graph_fusion(true),
      use_reference_layers(false),
      check_finite(false),
      flush_denormals(3),
      pipeline_cache(0),
      workspace_vkallocator(0),
      use_fp16_packed(true),
      use_fp16_uniform(true),
      use_bf16_packed(false),
      use_int8_packed(true),
      use_int8_storage(true),
      use_int8_arithmetic(false),
      use_int8_uniform(true),
      use_subgroup_ops(true),
      use_shader_local_memory(true),
      use_tensor_storage(false) {}

}  // namespace quoll
