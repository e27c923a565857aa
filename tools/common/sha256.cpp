#include "common/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <memory>

#include "quoll/log.h"

namespace quoll {

namespace {

// The first 32 bits of the fractions of the cube roots of the first 64 primes, FIPS 180-4, 4.2.2.
const uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t turn(uint32_t v, int bits) { return v >> bits | v << (32 - bits); }

uint32_t load(const unsigned char* p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

}  // namespace

// The first 32 bits of the fractions of the square roots of the first 8 primes, 5.3.3.
Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      rest_{},
      size_(0) {}

void Sha256::block(const unsigned char* p) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++) w[i] = load(p + i * 4);
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    uint32_t s[8];
    memcpy(s, state_, sizeof(s));
    for (int i = 0; i < 64; i++) {
        const uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        const uint32_t one =
            s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice + kRound[i] + w[i];
        const uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof(s[0]));
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++) state_[i] += s[i];
}

void Sha256::add(const void* data, size_t size) {
    const unsigned char* p = (const unsigned char*)data;
    while (size > 0) {
        const size_t have = (size_t)(size_ % 64), take = std::min(size, 64 - have);
        memcpy(rest_ + have, p, take);
        size_ += take, p += take, size -= take;
        if (have + take == 64) block(rest_);
    }
}

std::string Sha256::finish() {
    const uint64_t bits = size_ * 8;
    const unsigned char one = 0x80, zero = 0;
    add(&one, 1);
    while (size_ % 64 != 56) add(&zero, 1);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    add(length, 8);
    std::string text;
    for (uint32_t v : state_) {
        char hex[9];
        snprintf(hex, sizeof(hex), "%08x", v);
        text += hex;
    }
    return text;
}

std::string sha256_of_file(const std::string& path) {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "rb"), fclose);
    Sha256 sum;
    unsigned char buffer[1 << 16];
    size_t got = 0;
    while (file && (got = fread(buffer, 1, sizeof(buffer), file.get())) > 0) sum.add(buffer, got);
    if (file && !ferror(file.get())) return sum.finish();
    QUOLL_LOGE("%s: %s", path.c_str(), strerror(errno));
    return "";
}

}  // namespace quoll
