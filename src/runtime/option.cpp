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
      use_cooperative_matrix(true),
      use_packing_layout(true),
      use_winograd_convolution(true),
      use_graph_fusion(true),
      use_reference_layers(false),
      check_finite(false),
      flush_denormals(3) {}

}  // namespace quoll
