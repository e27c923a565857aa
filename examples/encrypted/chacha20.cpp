#include "chacha20.h"

static uint32_t load_le32(const unsigned char* p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t rotate_left(uint32_t v, int bits) { return v << bits | v >> (32 - bits); }

// RFC 8439, section 2.1.
static void quarter_round(uint32_t* s, int a, int b, int c, int d) {
    s[a] += s[b], s[d] = rotate_left(s[d] ^ s[a], 16);
    s[c] += s[d], s[b] = rotate_left(s[b] ^ s[c], 12);
    s[a] += s[b], s[d] = rotate_left(s[d] ^ s[a], 8);
    s[c] += s[d], s[b] = rotate_left(s[b] ^ s[c], 7);
}

// Section 2.3: "expand 32-byte k", key, counter, nonce.
ChaCha20::ChaCha20(const unsigned char key[kKeySize], const unsigned char nonce[kNonceSize],
                   uint32_t counter)
    : used_(kBlockSize) {
    static const unsigned char kConstants[] = "expand 32-byte k";
    for (int i = 0; i < 4; i++) state_[i] = load_le32(kConstants + 4 * i);
    for (int i = 0; i < 8; i++) state_[4 + i] = load_le32(key + 4 * i);
    state_[12] = counter;
    for (int i = 0; i < 3; i++) state_[13 + i] = load_le32(nonce + 4 * i);
}

void ChaCha20::next_block() {
    uint32_t s[16];
    for (int i = 0; i < 16; i++) s[i] = state_[i];
    for (int i = 0; i < 10; i++) {
        for (int c = 0; c < 4; c++) quarter_round(s, c, 4 + c, 8 + c, 12 + c);
        for (int c = 0; c < 4; c++)
            quarter_round(s, c, 4 + (c + 1) % 4, 8 + (c + 2) % 4, 12 + (c + 3) % 4);
    }
    for (int i = 0; i < 16; i++) {
        const uint32_t v = s[i] + state_[i];
        for (int b = 0; b < 4; b++) block_[4 * i + b] = (unsigned char)(v >> 8 * b);
    }
    state_[12]++;
    used_ = 0;
}

void ChaCha20::apply(unsigned char* bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (used_ == kBlockSize) next_block();
        bytes[i] ^= block_[used_++];
    }
}
