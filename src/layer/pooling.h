#ifndef QUOLL_LAYER_POOLING_H
#define QUOLL_LAYER_POOLING_H

#include "schema.h"

namespace quoll {

// The largest value or the average of a window that slides over w and h. global_pooling: of all
// pixels, [channels]. adaptive_pooling: output (i, j) covers rows h * i / out_h to (h * (i + 1) +
// out_h - 1) / out_h, columns alike; -233 keeps the size. Otherwise [outw, outh, channels]; see
// pad_mode. At most 3 axes.
class Pooling : public Operator<Pooling> {
public:
    Pooling();
    static void params(Pooling& s, ParamVisitor& v);
    static void weights(Pooling& s, WeightVisitor& v);
    static int shape(const Pooling& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    enum PoolMethod { PoolMethod_MAX = 0, PoolMethod_AVE = 1 };

    // One axis of the window. Input position p lies at p + before of the padded axis.
    struct Axis {
        int in, out, kernel, stride;
        int before;
        // Averages count positions of the padded axis in [counted_first, counted_last).
        int counted_first, counted_last;
    };
    // The windows over an input of w x h, when neither global nor adaptive.
    int window_axes(int w, int h, Axis* x, Axis* y) const;

    int pooling_type;
    int kernel_w, kernel_h;
    int stride_w, stride_h;
    int pad_left, pad_right, pad_top, pad_bottom;
    int global_pooling;
    int pad_mode;  // 0 full (a tail is padded), 1 valid, 2 SAME_UPPER, 3 SAME_LOWER
    int avgpool_count_include_pad;
    int adaptive_pooling;
    int out_w, out_h;

private:
    int window_axis(const char* name, int pad_before, int pad_after, Axis* axis) const;
    void pool_windows(const Mat& in, const Axis& x, const Axis& y, Mat& top) const;
    void pool_adaptive(const Mat& in, Mat& top) const;
};

}  // namespace quoll

#endif
