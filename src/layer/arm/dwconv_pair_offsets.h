// Offsets of DwconvPair (layer/cpu/dwconv/dwconv.h) for assembly; dwconv_pair_offsets.cpp asserts
// them.
#ifndef QUOLL_LAYER_ARM_DWCONV_PAIR_OFFSETS_H
#define QUOLL_LAYER_ARM_DWCONV_PAIR_OFFSETS_H

#define DWCONV_PAIR_IN 0
#define DWCONV_PAIR_ROW_STEP 8
#define DWCONV_PAIR_FIRST 16
#define DWCONV_PAIR_LAST 20
#define DWCONV_PAIR_WEIGHT 24
#define DWCONV_PAIR_BIAS 32
#define DWCONV_PAIR_OUT 40
#define DWCONV_PAIR_SECOND 48
#define DWCONV_PAIR_OUT_W 56
#define DWCONV_PAIR_BEFORE 60
#define DWCONV_PAIR_AFTER 64
#define DWCONV_PAIR_LOW 68
#define DWCONV_PAIR_HIGH 72

#endif
