// Offsets of DwconvPlanes (layer/cpu/dwconv/dwconv.h) for assembly; dwconv_planes_offsets.cpp
// asserts them.
#ifndef QUOLL_LAYER_ARM_DWCONV_PLANES_OFFSETS_H
#define QUOLL_LAYER_ARM_DWCONV_PLANES_OFFSETS_H

#define DWCONV_PLANES_TAPS 0
#define DWCONV_PLANES_WEIGHT 8
#define DWCONV_PLANES_NUM_TAPS 16
#define DWCONV_PLANES_BIAS 24
#define DWCONV_PLANES_OUT 32
#define DWCONV_PLANES_COUNT 40
#define DWCONV_PLANES_LOW 48
#define DWCONV_PLANES_HIGH 52

#endif
