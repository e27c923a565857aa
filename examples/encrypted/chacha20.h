// The stream cipher ChaCha20 of RFC 8439.
#ifndef QUOLL_EXAMPLES_CHACHA20_H
#define QUOLL_EXAMPLES_CHACHA20_H

#include <stddef.h>
#include <stdint.h>

// Encrypts and decrypts, which is the same. It keeps the content secret, but does not detect
// changes; a product would add a signature.
class ChaCha20 {
public:
    enum { kKeySize = 32, kNonceSize = 12, kBlockSize = 64 };
    // Never use a nonce twice with the same key. `counter` is the number of the first block.
    ChaCha20(const unsigned char key[kKeySize], const unsigned char nonce[kNonceSize],
             uint32_t counter);
    // Combines the next `size` bytes of the key stream with `bytes`, in place.
    void apply(unsigned char* bytes, size_t size);

private:
    void next_block();
    uint32_t state_[16];
    unsigned char block_[kBlockSize];
    size_t used_;  // bytes of block_
};

#endif
