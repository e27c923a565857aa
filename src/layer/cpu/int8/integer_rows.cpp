#include "layer/cpu/int8/integer_rows.h"

namespace quoll {

void flip_bytes(const unsigned char* __restrict from, int n, unsigned char flip,
                unsigned char* __restrict to) {
    for (int i = 0; i < n; i++) to[i] = from[i] ^ flip;
}

void flip_words(int32_t* row, int n, int32_t flip) {
    for (int i = 0; i < n; i++) row[i] ^= flip;
}

void subtract_from_all(int32_t* row, int n, uint32_t less) {
    for (int i = 0; i < n; i++) row[i] = (int32_t)((uint32_t)row[i] - less);
}

uint32_t sum_of_bytes(const unsigned char* from, int n, unsigned char flip) {
    uint32_t sum = 0;
    for (int i = 0; i < n; i++) sum += (uint32_t)(from[i] ^ flip);
    return sum;
}

}  // namespace quoll
