// Loops over rows of integers that compilers make vectors of, apart from code that is to be small.
#ifndef QUOLL_LAYER_CPU_INT8_INTEGER_ROWS_H
#define QUOLL_LAYER_CPU_INT8_INTEGER_ROWS_H

#include <stdint.h>

namespace quoll {

// to[i] = from[i] ^ flip; apart from each other.
void flip_bytes(const unsigned char* from, int n, unsigned char flip, unsigned char* to);
// row[i] ^= flip.
void flip_words(int32_t* row, int n, int32_t flip);
// row[i] -= less, as integers that wrap.
void subtract_from_all(int32_t* row, int n, uint32_t less);
// Of from[i] ^ flip.
uint32_t sum_of_bytes(const unsigned char* from, int n, unsigned char flip);

}  // namespace quoll

#endif
