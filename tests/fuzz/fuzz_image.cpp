// Hostile pictures.
#include "common/image_file.h"
#include "harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet();
    const fuzz::File file(data, size);
    quoll::Image image;
    if (quoll::read_image(file.path(), &image) == 0 &&
        (image.w < 1 || image.h < 1 || image.rgb.size() != (size_t)image.w * image.h * 3))
        abort();
    return 0;
}
