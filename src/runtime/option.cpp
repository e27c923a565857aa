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
      use_packing_layout(true),
      use_winograd_convolution(true),
      use_winograd23_convolution(true),
      use_winograd43_convolution(true),
      use_winograd63_convolution(true),
      use_graph_fusion(true),
      use_reference_layers(false),
      check_finite(false),
      flush_denormals(3),
      use_local_pool_allocator(true),
      use_sgemm_convolution(true),
      use_int8_inference(true),
      use_int8_packed(true),
      use_int8_storage(true),
      use_int8_arithmetic(false),
      use_fp16_packed(true),
      use_bf16_packed(false),
      use_int16_packed(false),
      use_int16_storage(false),
      use_fp16_uniform(true),
      use_int8_uniform(true),
      use_subgroup_ops(true),
      use_shader_local_memory(true),
      use_tensor_storage(false),
      use_cooperative_matrix(true),
      use_weights_in_host_memory(false),
      use_mapped_model_loading(false),
      use_a53_a55_optimized_kernel(false),
      vulkan_device_index(-1),
      use_reserved_m0(false),
      use_reserved_0(false),
      use_reserved_1p(false),
      use_reserved_2f(false),
      use_reserved_3f(false),
      use_reserved_11(false) {}

}  // namespace quoll
