#ifndef QUOLL_LAYER_LOOP_H
#define QUOLL_LAYER_LOOP_H

#include "layer/common/tensor.h"

namespace quoll {

// Where each iteration of a loop begins. Inputs: how often it runs at most (s32, one value),
// whether it runs at all (one value), then what the loop carries from one iteration to the next.
// Outputs: the count, the number of the iteration (s32, from 0), the condition, then the carried
// values. What is computed from these up to the LoopEnd that reads output 0 is the loop's body; the
// Extractor runs it again and again. ONNX Loop.
class LoopStart : public TensorOperator<LoopStart> {
public:
    LoopStart();
    static int shape(const LoopStart& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    // The outputs for iteration 0.
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
};

// Inputs: output 0 of the LoopStart, whether the loop goes on (one value), the carried values for
// the next iteration, then `scans` values that every iteration adds. Outputs: the carried values as
// the last iteration left them, then what was added, stacked along a new outermost axis.
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

// One whole or real number that is a condition or a count.
int read_number(const Layer& layer, const Mat& m, double* value);

}  // namespace quoll

#endif
