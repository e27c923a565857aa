// Hostile arrays, of any kind and as inputs of each rank and type.
#include "common/npy.h"
#include "harness.h"
#include "layer/common/tensorspec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet();
    const fuzz::File file(data, size);
    quoll::Mat mat;
    for (bool batch : {false, true})
        if (quoll::read_npy(file.path(), batch, &mat) == 0 && mat.empty()) abort();
    quoll::TensorSpec array;
    array.rank = size ? data[size - 1] % 5 : 0;
    array.element_type = size > 1 ? data[size - 2] % 29 : 1;
    quoll::read_npy(file.path(), array, &mat);
    return 0;
}
