#include "onnx/window.h"

#include <algorithm>

namespace quoll {
namespace onnx_tool {

bool read_window(Op& op, const Value* x, const std::vector<int64_t>& kernel, Window* w) {
    w->axes = x->rank() - 2;
    if (w->axes < 1 || w->axes > 3) return op.fail("%d spatial axes, expected 1 to 3", w->axes);
    const size_t n = (size_t)w->axes;
    w->kernel = op.attr_ints("kernel_shape");
    if (w->kernel.empty()) w->kernel = kernel;
    w->stride = op.attr_ints("strides");
    w->dilation = op.attr_ints("dilations");
    std::vector<int64_t> pads = op.attr_ints("pads");
    if (w->stride.empty()) w->stride.assign(n, 1);
    if (w->dilation.empty()) w->dilation.assign(n, 1);
    if (pads.empty()) pads.assign(2 * n, 0);
    if (w->kernel.size() != n || w->stride.size() != n || w->dilation.size() != n ||
        pads.size() != 2 * n)
        return op.fail("kernel, strides, dilations or pads are not for %zu axes", n);
    const int64_t kMost = 1 << 24;
    for (const auto* list : {&w->kernel, &w->stride, &w->dilation})
        for (int64_t v : *list)
            if (v < 1 || v > kMost) return op.fail("a window size of %lld", (long long)v);
    for (int64_t v : pads)
        if (v < 0 || v > kMost) return op.fail("a padding of %lld", (long long)v);
    w->before.assign(pads.begin(), pads.begin() + (ptrdiff_t)n);
    w->behind.assign(pads.begin() + (ptrdiff_t)n, pads.end());
    const std::string mode = op.attr_string("auto_pad", "NOTSET");
    w->auto_pad = mode == "SAME_UPPER"   ? Window::kSameUpper
                  : mode == "SAME_LOWER" ? Window::kSameLower
                  : mode == "VALID"      ? Window::kValid
                                         : Window::kExplicit;
    if (w->auto_pad != Window::kExplicit) w->before.assign(n, 0), w->behind.assign(n, 0);
    return true;
}

void resolve_same(const Value* x, bool dilated, Window* w) {
    const bool upper = w->auto_pad == Window::kSameUpper;
    if (!upper && w->auto_pad != Window::kSameLower) return;
    Window same = *w;
    for (int a = 0; a < w->axes; a++) {
        const Dim& size = x->shape[a + 2];
        if (!size.known() || (w->dilation[a] != 1 && !dilated)) return;
        const int64_t count = (size.value + w->stride[a] - 1) / w->stride[a];
        const int64_t total =
            std::max<int64_t>((count - 1) * w->stride[a] + w->extent(a) - size.value, 0);
        same.before[a] = upper ? total / 2 : (total + 1) / 2;
        same.behind[a] = total - same.before[a];
    }
    same.auto_pad = Window::kExplicit;
    *w = same;
}

Dim window_size(Op& op, const Window& w, int axis, const Dim& size, bool ceil_mode) {
    Symbols& s = op.c.symbols;
    const int64_t stride = w.stride[axis];
    if (w.auto_pad == Window::kSameUpper || w.auto_pad == Window::kSameLower)
        return s.divide(s.add(size, Dim(stride - 1)), Dim(stride));
    const int64_t pads = w.before[axis] + w.behind[axis];
    const Dim room = s.add(size, Dim(pads - w.extent(axis)));
    Dim count = s.add(s.divide(s.add(room, Dim(ceil_mode ? stride - 1 : 0)), Dim(stride)), Dim(1));
    // A last window that would begin in the padding behind is left out.
    if (ceil_mode && count.known() && size.known() &&
        (count.value - 1) * stride >= size.value + w.before[axis])
        count.value--;
    return count;
}

static const char* const kAxes[] = {"w", "h", "d"};

void Window::set_sizes(ModelLayer* layer, bool with_dilation) const {
    for (int i = 0; i < axes; i++) {
        const int a = axes - 1 - i;
        layer->set((std::string("kernel_") + kAxes[i]).c_str(), (int)kernel[a]);
        layer->set((std::string("stride_") + kAxes[i]).c_str(), (int)stride[a]);
        if (with_dilation)
            layer->set((std::string("dilation_") + kAxes[i]).c_str(), (int)dilation[a]);
    }
}

void Window::set_pads(ModelLayer* layer) const {
    static const char* const kBefore[] = {"pad_left", "pad_top", "pad_front"};
    static const char* const kBehind[] = {"pad_right", "pad_bottom", "pad_behind"};
    for (int i = 0; i < axes; i++) {
        const int a = axes - 1 - i;
        layer->set(kBefore[i], (int)before[a]);
        layer->set(kBehind[i], (int)behind[a]);
    }
}

}  // namespace onnx_tool
}  // namespace quoll
