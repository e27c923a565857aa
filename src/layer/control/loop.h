#ifndef QUOLL_LAYER_LOOP_H
#define QUOLL_LAYER_LOOP_H

#include "layer/common/tensor.h"

namespace quoll {

// The beginning of each iteration of a loop. Inputs: the maximum number of iterations (s32, one
// value), whether the loop runs at all (one value), then the values that it carries from one
// iteration to the next. Outputs: the count, the index of the iteration (s32, from 0), the
// condition, then the carried values. The loop's body is what is computed from these up to the
// LoopEnd that reads output 0; the Extractor runs it repeatedly. ONNX Loop.
class LoopStart : public TensorOperator<LoopStart> {
public:
    LoopStart();
    static int shape(const LoopStart& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    // The outputs for iteration 0.
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
};

// The end of a loop's body. Inputs: output 0 of the LoopStart, whether the loop goes on (one
// value), the carried values for the next iteration, then `scans` values to collect. Outputs: the
// carried values after the last iteration, then the collected ones of all iterations, stacked along
// a new outermost axis.
class LoopEnd : public TensorOperator<LoopEnd> {
public:
    LoopEnd();
    static void params(LoopEnd& s, ParamVisitor& v);
    static int shape(const LoopEnd& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    // The outputs of a loop of one iteration.
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    // What the iterations added as scan number `scan`, elempack 1, as one blob.
    int stack(const std::vector<Mat>& parts, int scan, Mat* all, const Option& opt) const;

    int scans = 0;
    Mat ranks;  // axes of each scan without the new one
    Mat types;  // of loops that never run: the type of each scan, and its sizes without the new
                // axis,
    Mat sizes;  // those of all scans one behind the other
};

// One integer or float that is a condition or a count.
int read_number(const Layer& layer, const Mat& m, double* value);

}  // namespace quoll

#endif
