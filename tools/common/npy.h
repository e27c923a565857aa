// NumPy's .npy files, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef QUOLL_TOOLS_NPY_H
#define QUOLL_TOOLS_NPY_H

#include <string>

#include "layer/common/tensorspec.h"
#include "quoll/mat.h"

namespace quoll {

// Reads an array of 1 to 4 axes in C order as a Mat: (w), (h, w), (c, h, w) or (c, d, h, w). With
// `batch` there is one axis more, in front: the batch count n. Little-endian elements become
//   float32, float16, float64: f32   int32: s32   int64: s32 (each value must fit)   int8: s8
//   uint8, bool: u8
// Anything else, an empty array, Fortran order or a short file: a negative code, and the log says
// what was found.
int read_npy(const std::string& path, bool batch, Mat* mat);

// Writes a Mat of elempack 1 as a version 1 file with the axes above; n comes first when it is not
// 1; an axis may be 0, as of a detector that found nothing. f32, s32, s8 and u8 keep their type,
// f16 is float16, bf16 is widened to float32.
int write_npy(const std::string& path, const Mat& mat);

// The same for the blob of an Input or Output layer that says what array it stands for: read_npy
// takes arrays of that rank, int16, uint16, uint32 and uint64, too, of which each value must fit;
// write_npy gives the array its rank and element type back. Types that NumPy lacks are
// arrays of their values: bfloat16 and floats of 8 bits and less as float32, integers of 4 and 2
// bits as int8 or uint8.
int read_npy(const std::string& path, const TensorSpec& array, Mat* mat);
int write_npy(const std::string& path, const TensorSpec& array, const Mat& mat);

}  // namespace quoll

#endif
