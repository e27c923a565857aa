// ConvRunner: convolutions some of whose taps read nothing but padding, run by runners that have
// only the other taps.
#include <algorithm>

#include "layer/cpu/conv/conv_runner.h"

namespace quoll {

namespace {

bool reads(const WindowAxis& axis, int tap) {
    const int64_t at = (int64_t)tap * axis.dilation - axis.before;  // of the first output
    const int64_t first = at < 0 ? (-at + axis.stride - 1) / axis.stride : 0;
    return first < axis.out && at + first * axis.stride < axis.in;
}

// The axis without the taps before the first and after the last one that reads the input, if there
// are such, and if the padding that is left is not negative. `first`: the number of the first tap
// that stays.
WindowAxis live_axis(const WindowAxis& axis, int* first) {
    *first = 0;
    int begin = 0, end = axis.kernel;
    while (begin < end && !reads(axis, begin)) begin++;
    while (end > begin && !reads(axis, end - 1)) end--;
    WindowAxis live = axis;
    live.before -= begin * axis.dilation;
    live.after -= (axis.kernel - end) * axis.dilation;
    if (begin == end || live.before < 0 || live.after < 0) return axis;
    live.kernel = end - begin;
    if (live.kernel == 1) live.dilation = 1;
    *first = begin;
    return live;
}

}  // namespace

// For windows far wider than the input: those of segmentation heads (ASPP), 3x3 ones on one pixel.
bool ConvRunner::drops_taps(const ConvolutionFields& s, const ConvGeometry& g) const {
    if (kFewKernels) return false;
    int first;
    return s.axes == 2 && s.pad_value == 0.f && pair_ == 1 && !narrows_ && joined_ == 1 &&
           (live_axis(g.x, &first).kernel < g.x.kernel ||
            live_axis(g.y, &first).kernel < g.y.kernel);
}

// Makes fields, geometry and runner for the taps that stay.
int ConvRunner::live_taps(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g,
                          const Option& opt, ConvLiveTaps* live) const {
    int x0, y0;
    live->geometry = g;
    const WindowAxis& x = live->geometry.x = live_axis(g.x, &x0);
    const WindowAxis& y = live->geometry.y = live_axis(g.y, &y0);
    ConvolutionFields& f = live->fields = s;
    f.kernel_w = x.kernel, f.dilation_w = x.dilation;
    f.kernel_h = y.kernel, f.dilation_h = y.dilation;
    f.pad_left = x.before, f.pad_right = x.after, f.pad_top = y.before, f.pad_bottom = y.after;
    const int windows = s.weight_data_size / s.maxk(), at[] = {x0, x.kernel, y0, y.kernel};
    f.weight_data_size = windows * f.maxk();
    std::lock_guard<std::mutex> lock(lock_);
    for (const Live& other : live_)
        if (std::equal(at, at + 4, other.at)) live->runner = other.runner;
    if (live->runner) return kOk;
    f.weight_data = Mat(f.weight_data_size);  // planning may have an allocator of one run
    if (f.weight_data.empty()) return kOutOfMemory;
    float* to = f.weight_data;
    for (const float *w = raw_weights_, *end = w + windows * s.maxk(); w < end; w += s.maxk())
        for (int i = y0; i < y0 + y.kernel; i++, to += x.kernel)
            std::copy_n(w + i * s.kernel_w + x0, x.kernel, to);
    // The hints of sizes are for all taps.
    Layer unhinted;
    unhinted.type = layer.type, unhinted.name = layer.name;
    const std::shared_ptr<ConvRunner> made = std::make_shared<ConvRunner>();
    Option same = opt;
    same.use_fp16_storage = false;  // one tap alone could be of planar half floats
    QUOLL_RETURN_IF_ERROR(made->create(unhinted, f, same));
    f.weight_data.release();
    live->runner = made;
    live_.push_back({{at[0], at[1], at[2], at[3]}, made});
    return kOk;
}

}  // namespace quoll
