#include "layer/cpu/dwconv/dwconv.h"

namespace quoll {

DwconvRowKernel select_dwconv_row(const DwconvKernels& kernels, int pack, int kernel_w,
                                  int stride_w, int dilation_w) {
    for (int i = 0; i < kDwconvPacks; i++) {
        if (kDwconvPack[i] != pack) continue;
#define QUOLL_DWCONV_ROW(name, kernel, stride) \
    if (kernel_w == kernel && stride_w == stride && dilation_w == 1) return kernels.name[i];
#include "layer/cpu/dwconv/kernels.inc"
#undef QUOLL_DWCONV_ROW
        return kernels.any[i];
    }
    return nullptr;
}

}  // namespace quoll
