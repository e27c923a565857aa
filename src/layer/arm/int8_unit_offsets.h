// Offsets of Int8UnitTile (layer/cpu/int8/int8_units.h) for assembly of 64-bit machines, behind those of TileOperands in
// split_tile_offsets.h; int8_sme.cpp asserts them.
#ifndef QUOLL_LAYER_ARM_INT8_UNIT_OFFSETS_H
#define QUOLL_LAYER_ARM_INT8_UNIT_OFFSETS_H

#define INT8_UNIT_STEP_K_GROUPS 88
#define INT8_UNIT_INIT 96
#define INT8_UNIT_SUMS 104
#define INT8_UNIT_B_PAIR 112
#define INT8_UNIT_B_COLUMNS 120
#define INT8_UNIT_SIZE 152

#endif
