// Copies between places whose elements lie at regular steps: what operators that reorder elements
// (Flip, Reorg, Diag) share.
#ifndef QUOLL_LAYER_STRIDED_H
#define QUOLL_LAYER_STRIDED_H

#include <stddef.h>
#include <string.h>

namespace quoll {

// dst[sum of i * to] = src[sum of i * from] for all indexes i below size; steps count elements of
// elemsize bytes and may be negative.
inline void copy_strided(const void* src, const ptrdiff_t from[4], void* dst, const ptrdiff_t to[4],
                         const int size[4], size_t elemsize) {
    const ptrdiff_t es = (ptrdiff_t)elemsize;
    for (int i = 0; i < size[0]; i++) {
        for (int j = 0; j < size[1]; j++) {
            for (int k = 0; k < size[2]; k++) {
                const char* s = (const char*)src + (i * from[0] + j * from[1] + k * from[2]) * es;
                char* d = (char*)dst + (i * to[0] + j * to[1] + k * to[2]) * es;
                for (int l = 0; l < size[3]; l++)
                    memcpy(d + l * to[3] * es, s + l * from[3] * es, elemsize);
            }
        }
    }
}

}  // namespace quoll

#endif
