#include "cpu_features.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/kernel_set.h"

namespace quoll {

#if defined(QUOLL_AVXVNNI)
extern const Int8Kernels int8_kernels_avxvnni;
#endif
#if defined(QUOLL_AVX512VNNI)
extern const Int8Kernels int8_kernels_avx512vnni;
#endif

Int8KernelList available_int8_kernels() {
    Int8KernelList list = {};
    for (Isa isa : available_isas()) {
        list.kernels[list.count++] = kernel_set(isa).int8;
#if defined(QUOLL_AVXVNNI)
        if (isa == Isa::avx2 && host_cpu_features().has(CpuFeature::avx_vnni))
            list.kernels[list.count++] = &int8_kernels_avxvnni;
#endif
#if defined(QUOLL_AVX512VNNI)
        if (isa == Isa::avx512 && host_cpu_features().has(CpuFeature::avx512_vnni))
            list.kernels[list.count++] = &int8_kernels_avx512vnni;
#endif
    }
    return list;
}

const Int8Kernels& int8_kernels() {
    const Int8KernelList list = available_int8_kernels();
    return *list.kernels[list.count - 1];
}

}  // namespace quoll
