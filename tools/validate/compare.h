// How near one array is to another.
#ifndef QUOLL_TOOLS_VALIDATE_COMPARE_H
#define QUOLL_TOOLS_VALIDATE_COMPARE_H

#include <string>

#include "quoll/mat.h"

namespace quoll {

// Measures of X (expected) and X' (got). Values that are not finite in either are left out of the
// numbers and counted.
struct Comparison {
    bool same_shape = false;
    double similarity = 0;      // X.X' / (|X| |X'|); 1 if both are 0; 0 if no place is finite
    double sqnr = 0;            // 10 log10(|X|^2 / |X - X'|^2), dB; infinite if they are the same
    double pixel_accuracy = 0;  // part of the places whose largest value has the same index
    double signal = 0, noise = 0;          // |X|^2, |X - X'|^2
    double max_error = 0;                  // largest |X - X'|
    double error_sum = 0;                  // of |X - X'|
    double range = 0;                      // largest X less smallest
    double largest = 0;                    // largest finite |X|, whatever X' is there
    size_t count = 0, compared = 0;        // values; those that are finite in both
    size_t bad_got = 0, bad_expected = 0;  // values that are no numbers, or infinite
    size_t only_got = 0;                   // those in X' where X has a finite one

    // In parts of the range; of arrays of one value, of that.
    double relative_error() const;
};

// Axes of size 1 in front do not matter. The index of the largest value is that of the channel in a
// blob of 3 or 4 axes (the last axis in NHWC), else the one along the last axis.
Comparison compare(const Mat& got, const Mat& expected);

// "0.99987"; "inf", "nan".
std::string metric_text(double value);

}  // namespace quoll

#endif
