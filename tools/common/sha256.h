// SHA-256 (FIPS 180-4).
#ifndef QUOLL_TOOLS_SHA256_H
#define QUOLL_TOOLS_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include <string>

namespace quoll {

class Sha256 {
public:
    Sha256();
    void add(const void* data, size_t size);
    // 64 hexadecimal digits; nothing can be added afterwards.
    std::string finish();

private:
    void block(const unsigned char* p);

    uint32_t state_[8];
    unsigned char rest_[64];
    uint64_t size_;
};

// The hash of a file; "" after a message in the log if it cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace quoll

#endif
