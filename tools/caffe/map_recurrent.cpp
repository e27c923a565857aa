// Layers over sequences. Caffe's blobs are (time, item, ...), so that time is what the batch is
// elsewhere.
#include "caffe/converter.h"

namespace quoll {

namespace {

// The input as rows, one per step. Returns the values of a row, 0 after a failure.
int emit_rows(CaffeLayer& l, const std::string& to) {
    const caffe::RecurrentParameter& p = l.p.recurrent_param();
    const Shape s = l.shape(0);
    if (l.in.size() != 2 || l.out.size() != 1 || p.expose_hidden())
        l.fail("expected 2 inputs (values, markers of beginnings) and 1 output");
    else if (s.dims == 0 || s.size(0) != 1)
        l.fail("expected an input of a known size, with one sequence");
    else if (p.num_output() < 1 || p.num_output() > (1 << 20))
        l.fail("num_output: expected 1 to 1048576");
    if (!l.error.empty()) return 0;
    l.emit("BatchAxis", {l.in[0]}, {l.between("steps")}, "_steps").set("inverse", 1);
    emit_reshape(l, l.between("steps"), to, "_rows", {-1, (int64_t)(s.total() / s.n)});
    l.notes.push_back("all steps are one sequence; the markers in '" + l.p.bottom(1) +
                      "' are not read");
    return (int)(s.total() / s.n);
}

void emit_items(CaffeLayer& l, const std::string& rows) {
    emit_reshape(l, rows, l.between("items"), "_items",
                 {-1, 1, l.p.recurrent_param().num_output()});
    l.emit("BatchAxis", {l.between("items")}, l.out, "_pack");
    l.infer();
    Shape s((int)l.p.recurrent_param().num_output(), 1);
    s.n = l.shape(0).n;
    l.set_shape(l.out[0], s);
}

void map_lstm(CaffeLayer& l) {
    const int inputs = emit_rows(l, l.between("rows"));
    const int outputs = (int)l.p.recurrent_param().num_output();
    const Mat x = l.blob(0, (size_t)4 * outputs * inputs), bias = l.blob(1, (size_t)4 * outputs);
    const Mat h = l.blob(2, (size_t)4 * outputs * outputs);
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("LSTM", {l.between("rows")}, {l.between("states")}, "");
    m.set("num_output", outputs), m.set("weight_data_size", x.w);
    m.set_weight("weight_xc_data", x), m.set_weight("bias_c_data", bias);
    m.set_weight("weight_hc_data", h);
    emit_items(l, l.between("states"));
}

// h = tanh(Wx x + b + Wh h), output tanh(Wo h + bo).
void map_rnn(CaffeLayer& l) {
    const int inputs = emit_rows(l, l.between("rows"));
    const size_t outputs = l.p.recurrent_param().num_output();
    const Mat x = l.blob(0, outputs * inputs), bias = l.blob(1, outputs);
    const Mat h = l.blob(2, outputs * outputs);
    const Mat o = l.blob(3, outputs * outputs), o_bias = l.blob(4, outputs);
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("RNN", {l.between("rows")}, {l.between("states")}, "");
    m.set("num_output", (int)outputs), m.set("weight_data_size", x.w);
    m.set_weight("weight_xc_data", x), m.set_weight("bias_c_data", bias);
    m.set_weight("weight_hc_data", h);
    ModelLayer& fc = l.emit("InnerProduct", {l.between("states")}, {l.between("sums")}, "_output");
    fc.set("num_output", (int)outputs), fc.set("bias_term", 1);
    fc.set("weight_data_size", o.w);
    fc.set_weight("weight_data", o), fc.set_weight("bias_data", o_bias);
    l.emit("TanH", {l.between("sums")}, {l.between("outputs")}, "_tanh");
    emit_items(l, l.between("outputs"));
}

// The markers say that all steps are one sequence, which is how sequences are taken here.
void map_continuation_indicator(CaffeLayer& l) {
    l.notes.push_back("left out: what reads '" + l.p.top(0) + "' takes one sequence");
}

}  // namespace

CaffeMapper find_recurrent_mapper(const std::string& type) {
    static const std::pair<const char*, CaffeMapper> kTable[] = {
        {"ContinuationIndicator", map_continuation_indicator},
        {"LSTM", map_lstm},
        {"RNN", map_rnn}};
    return find_in(kTable, type);
}

}  // namespace quoll
