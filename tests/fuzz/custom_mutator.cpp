// libFuzzer's own changes of bytes, in turn with those of fuzz::Mutator, which knows lines, fields
// and messages.
#include <string.h>

#include <algorithm>

#include "mutate.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
    // What next() makes is made of the inputs that libFuzzer chose lately.
    const size_t kRecent = 32;
    static std::vector<fuzz::Bytes> recent;
    static size_t calls = 0;
    if (size) {
        fuzz::Bytes input(data, data + size);
        if (recent.size() < kRecent)
            recent.push_back(std::move(input));
        else
            recent[calls++ % kRecent] = std::move(input);
    }
    if (recent.empty() || seed % 2) return LLVMFuzzerMutate(data, size, max_size);
    const fuzz::Bytes made = fuzz::Mutator(recent, seed).next();
    const size_t made_size = std::min(made.size(), max_size);
    if (!made_size) return LLVMFuzzerMutate(data, size, max_size);
    memcpy(data, made.data(), made_size);
    return made_size;
}
