// ConvRunner: convolutions with so few outputs that most columns of a tile would be empty. Their
// wide windows are cut into columns of taps: one product has the outputs of each column, as if they
// were channels, and reads a pixel once a row of the window. Sums of neighbouring pixels follow.
#include <algorithm>

#include "layer/cpu/cast/cast.h"
#include "layer/cpu/conv/conv_padding.h"
#include "layer/cpu/conv/conv_runner.h"
#include "layer/cpu/unary/unary.h"
#include "runtime/thread_pool.h"

namespace quoll {

#if defined(__x86_64__) || defined(__i386__)

namespace {

int tile_columns(int outputs) {
    return (outputs + kUnitColumns / 2 - 1) / (kUnitColumns / 2) * (kUnitColumns / 2);
}

// The sums take some of the time that the product saves.
bool is_worth_it(const ConvolutionFields& s) {
    return s.kernel_w * tile_columns(s.num_output) > 3 * tile_columns(s.num_output * s.kernel_w);
}

}  // namespace

int ConvRunner::create_columns(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    columns_.reset();
    if (s.axes != 2 || s.group != 1 || s.kernel_w < 2 || s.stride_w != 1 || s.add_input ||
        s.pad_value != 0.f || s.pad_left < 0 || out_pack_ != 1 || pair_ != 1 || in_pack_ == 1 ||
        !opt.use_bf16_storage || !candidates_.split || !is_worth_it(s))
        return kOk;
    const auto made = std::make_shared<ConvLiveTaps>(ConvLiveTaps{{}, s, {}, {}});
    ConvolutionFields& f = made->fields;
    f.num_output = s.num_output * s.kernel_w;
    f.kernel_w = f.dilation_w = 1;
    f.pad_left = f.pad_right = 0;
    f.bias_term = 0, f.bias_data = Mat();
    f.activation_type = kActivationNone;
    f.weight_data = Mat(s.weight_data_size);
    if (f.weight_data.empty())
        return layer.fail("out of memory for %d weights", s.weight_data_size);
    const int rows = s.weight_data_size / f.num_output;  // of a filter: [input][kernel_h]
    for (int i = 0; i < s.num_output; i++)
        for (int x = 0; x < s.kernel_w; x++)
            for (int k = 0; k < rows; k++)
                f.weight_data[(i * s.kernel_w + x) * rows + k] =
                    s.weight_data[(i * rows + k) * s.kernel_w + x];
    Layer unhinted;
    unhinted.type = layer.type, unhinted.name = layer.name;
    const auto runner = std::make_shared<ConvRunner>();
    QUOLL_RETURN_IF_ERROR(runner->create(unhinted, f, opt));
    f.weight_data.release();
    made->runner = runner;
    columns_ = made;
    return kOk;
}

// Leaves the plan as it is if the product would not run on tiles.
int ConvRunner::plan_columns(const Layer& layer, const ConvGeometry& g, const Option& opt,
                             ConvRunPlan* plan) const {
    const auto made = std::make_shared<ConvLiveTaps>(*columns_);
    const ConvRunner& runner = *made->runner;
    ConvGeometry& own = made->geometry = g;
    own.x = WindowAxis{g.x.in, g.x.in, 1, 1, 1, 0, 0};
    own.num_output = made->fields.num_output;
    QUOLL_RETURN_IF_ERROR(
        runner.plan(layer, made->fields, own, DType::bf16, false, opt, &made->plan));
    if (made->plan.live || !runner.multiplies_bf16(made->plan, made->fields, own)) return kOk;
    Call call = runner.planned_call(made->plan, made->fields, own, DType::bf16, false, 1, opt);
    call.reduced_out = false;
    const Mat sums = Mat::of_shape(Shape(own.x.out, own.y.out, own.num_output / runner.out_pack_));
    call.shape.out_step =
        Mat::channel_step(3, sums.w, sums.h, 1, sizeof(float) * runner.out_pack_) *
        runner.out_pack_;
    runner.make_plan(call, &made->plan);
    plan->algorithm = made->plan.algorithm;
    plan->columns = made;
    return kOk;
}

int ConvRunner::forward_columns(const ConvRunPlan& plan, const ConvolutionFields& s,
                                const ConvGeometry& g, const Mat& bottom, Mat& top,
                                const Option& opt) const {
    const ConvLiveTaps& columns = *plan.columns;
    const ConvRunner& runner = *columns.runner;
    const ConvGeometry& own = columns.geometry;
    Mat in, sums, planes, out;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, runner.in_pack_, opt, &in));
    in = conv_channels(columns.fields, in);
    sums.create(Shape(own.x.out, own.y.out, own.num_output), runner.out_pack_,
                opt.workspace_allocator);
    if (sums.empty()) return kOutOfMemory;
    const Call call = runner.call_of(own, in, sums, opt);
    QUOLL_RETURN_IF_ERROR(runner.run(columns.plan, call,
                                     runner.blobs_of(columns.fields, call, in, Mat(), sums), opt));
    QUOLL_RETURN_IF_ERROR(with_elempack(sums, 1, opt, &planes));
    QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, DType::bf16, 1, opt, &top, &out));
    const int threads = threads_for(opt, (double)planes.w * planes.h * planes.c);
    Mat rows(out.w, threads, (size_t)4u, opt.workspace_allocator);
    if (rows.empty()) return kOutOfMemory;
    run_tasks((int64_t)out.c * out.h, threads, [&](int64_t i, int thread) {
        const int q = (int)(i / out.h), y = (int)(i % out.h);
        float* const row = rows.row(thread);
        std::fill_n(row, out.w, s.bias_term ? bias_[(size_t)q] : 0.f);
        for (int k = 0; k < s.kernel_w; k++)
            add_shifted(planes.channel(q * s.kernel_w + k).row(y), planes.w,
                        (int)g.x.position(0, k), row, out.w);
        const float limits[] = {activation_.low, activation_.high};
        host_kernel_set().unary->clip(row, row, out.w, limits);
        activation_.finish(row, out.w);
        host_kernel_set().cast->bf16.narrow(row, out.channel(q).row<uint16_t>(y), out.w);
    });
    return kOk;
}

#endif

}  // namespace quoll
