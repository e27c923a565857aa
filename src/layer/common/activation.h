// The activation that convolution-like operators apply to their results.
#ifndef QUOLL_LAYER_ACTIVATION_H
#define QUOLL_LAYER_ACTIVATION_H

#include <math.h>

#include "layer/common/activation_functions.h"
#include "quoll/mat.h"

namespace quoll {

class Layer;
class ParamVisitor;

// Values of the parameter activation_type.
enum ActivationType {
    kActivationNone = 0,
#define QUOLL_ACTIVATION(number, name, ...) kActivation##name = number,
    QUOLL_ACTIVATIONS(QUOLL_ACTIVATION)
#undef QUOLL_ACTIVATION
};

// One activation with its parameters, ready to be applied.
struct Activation {
    int type;
    float a, b;  // the parameters, 0 where there are none

    Activation() : type(kActivationNone), a(0.f), b(0.f) {}
    Activation(int type, float a, float b = 0.f) : type(type), a(a), b(b) {}
    // The activation of a loaded operator: activation_params may hold more values than the type
    // has.
    Activation(int activation_type, const Mat& params);
    // An activation of a type without parameters.
    static Activation plain(int type) { return Activation(type, Mat()); }
    // How many parameters the type has.
    int num_params() const;
};

// The scalar reference.
float activate(float x, const Activation& f);
// Of each of n values; nothing if there is no activation.
void activate_all(float* values, size_t n, const Activation& f);

// The two schema lines (ids 9 and 10).
void activation_lines(int& type, Mat& params, ParamVisitor& v);
// After loading: are there as many activation_params as the type needs?
int check_activation(const Layer& layer, int type, const Mat& params);

// The number type of the references: double precision, so that a formula is rounded once. min, max
// and select behave as those of vectors: NaN in the second operand of min and max stays.
struct Real {
    double value;

    static Real set(float x) { return Real{x}; }
    static Real zero() { return Real{0}; }
    friend Real operator+(Real x, Real y) { return Real{x.value + y.value}; }
    friend Real operator*(Real x, Real y) { return Real{x.value * y.value}; }
    friend Real operator/(Real x, Real y) { return Real{x.value / y.value}; }
    friend bool operator<(Real x, Real y) { return x.value < y.value; }
    friend bool operator>(Real x, Real y) { return x.value > y.value; }
    friend bool operator==(Real x, Real y) { return x.value == y.value; }
    friend Real select(bool yes, Real x, Real y) { return yes ? x : y; }
    friend Real min(Real x, Real y) { return x < y ? x : y; }
    friend Real max(Real x, Real y) { return x > y ? x : y; }
    friend Real fma(Real x, Real y, Real z) { return x * y + z; }
    friend Real exp(Real x) { return Real{::exp(x.value)}; }
    friend Real exp_in_sum(Real x) { return exp(x); }
    friend Real tanh(Real x) { return Real{::tanh(x.value)}; }
    friend Real normal_distribution(Real x) { return Real{.5 * (1 + ::erf(x.value * M_SQRT1_2))}; }
    friend Real sigmoid(Real x) { return Real{1 / (1 + ::exp(-x.value))}; }
};

// Evaluates a formula of activation_functions.h for one value.
template <class Formula>
float evaluate(float x, float a = 0.f, float b = 0.f) {
    const float params[] = {a, b};
    return (float)Formula(params)(Real{x}).value;
}

}  // namespace quoll

#endif
