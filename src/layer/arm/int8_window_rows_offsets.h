// Offsets of Int8WindowRows (layer/cpu/int8/int8.h) for assembly; int8_window_rows_offsets.cpp
// asserts them.
#ifndef QUOLL_LAYER_ARM_INT8_WINDOW_ROWS_OFFSETS_H
#define QUOLL_LAYER_ARM_INT8_WINDOW_ROWS_OFFSETS_H

#define INT8_WINDOW_ROWS_IN 0
#define INT8_WINDOW_ROWS_IN_ROW 8
#define INT8_WINDOW_ROWS_IN_STEP 16
#define INT8_WINDOW_ROWS_WEIGHT 24
#define INT8_WINDOW_ROWS_INIT 32
#define INT8_WINDOW_ROWS_SUMS 40
#define INT8_WINDOW_ROWS_WIDTH 48
#define INT8_WINDOW_ROWS_ROWS 52

#endif
