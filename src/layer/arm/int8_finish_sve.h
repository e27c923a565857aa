// Sums of int8 products to bytes by SVE: int8_finish_s8_rows_sve.S, called by int8_finish_sve.cpp,
// which asserts the offsets.
#ifndef QUOLL_LAYER_ARM_INT8_FINISH_SVE_H
#define QUOLL_LAYER_ARM_INT8_FINISH_SVE_H

#define INT8_SVE_ROWS_SUMS 0
#define INT8_SVE_ROWS_SCALE 16
#define INT8_SVE_ROWS_TO 32
#define INT8_SVE_ROWS_BYTES 64
#define INT8_SVE_ROWS_TOP_SCALE 72

#endif
