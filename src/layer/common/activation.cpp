#include "layer/common/activation.h"

#include "layer/common/schema.h"

namespace quoll {

namespace {

struct Row {
    int num_params;
    float without;
    const char *word, *params;
};
const Row kRows[] = {{0, 0.f, "none", ""},
#define QUOLL_ACTIVATION(number, name, formula, kernel, num_params, without, word, params) \
    {num_params, without, word, params},
                     QUOLL_ACTIVATIONS(QUOLL_ACTIVATION)
#undef QUOLL_ACTIVATION
};
const int kMostType = (int)(sizeof(kRows) / sizeof(kRows[0])) - 1;

// Rows are numbered from 1 without gaps.
#define QUOLL_ACTIVATION(number, ...) +(number)
static_assert(2 * (0 QUOLL_ACTIVATIONS(QUOLL_ACTIVATION)) == kMostType * (kMostType + 1), "");
#undef QUOLL_ACTIVATION

const Row& row_of(int type) { return kRows[type >= 0 && type <= kMostType ? type : 0]; }

// "0 none, 1 relu, ..."
std::string types_in_words() {
    std::string text;
    for (int type = 0; type <= kMostType; type++)
        text += (type ? ", " : "") + std::to_string(type) + " " + kRows[type].word;
    return text;
}

// "leakyrelu: slope; ..."
std::string params_in_words() {
    std::string text;
    for (const Row& row : kRows)
        if (*row.params)
            text += std::string(text.empty() ? "" : "; ") + row.word + ": " + row.params;
    return text;
}

}  // namespace

Activation::Activation(int activation_type, const Mat& params)
    : type(activation_type), a(row_of(activation_type).without), b(0.f) {
    if (params.w > 0 && num_params() > 0) a = params[0];
    if (params.w > 1 && num_params() > 1) b = params[1];
}

int Activation::num_params() const { return row_of(type).num_params; }

float activate(float x, const Activation& f) {
    switch (f.type) {
#define QUOLL_ACTIVATION(number, name, formula, ...) \
    case number:                                     \
        return evaluate<activations::formula>(x, f.a, f.b);
        QUOLL_ACTIVATIONS(QUOLL_ACTIVATION)
#undef QUOLL_ACTIVATION
    }
    return x;
}

void activate_all(float* values, size_t n, const Activation& f) {
    for (size_t i = 0; i < n && f.type != kActivationNone; i++) values[i] = activate(values[i], f);
}

void activation_lines(int& type, Mat& params, ParamVisitor& v) {
    static const std::string types = types_in_words(), words = params_in_words();
    v(9, "activation_type", type, 0, types.c_str(), between(0, kMostType));
    v.floats(10, "activation_params", params, words.c_str());
}

int check_activation(const Layer& layer, int type, const Mat& params) {
    const int needed = row_of(type).num_params;
    if (params.w >= needed) return kOk;
    return layer.fail("activation_params (10): activation_type %d needs %d values, got %d", type,
                      needed, params.w);
}

}  // namespace quoll
