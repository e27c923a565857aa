// What the files of the harness share.
#ifndef QUOLL_TESTS_LAYER_LAYER_TEST_PRIVATE_H
#define QUOLL_TESTS_LAYER_LAYER_TEST_PRIVATE_H

#include <map>
#include <random>

#include "layer/common/schema.h"
#include "layer_test.h"
#include "quoll/log.h"
#include "quoll/net.h"

namespace quoll {

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    float uniform(ValueRange range) {
        return range.low + (range.high - range.low) * (float)(engine_() / 4294967296.0);
    }
    int integer(int low, int high) {
        return low + (int)(engine_() % ((unsigned)(high - low) + 1u));
    }

private:
    std::mt19937 engine_;
};

// Blobs come in the layouts that the plan of a run forecasts.
class ExpectAsPlanned : public LayerObserver {
public:
    void before(const Layer&) override {}
    void after(const Layer&, const std::vector<Mat>&) override {}
    void unexpected(const Layer& layer, const char* what) override {
        ADD_FAILURE() << layer.type << ": " << what;
    }
};

// The same in every run, unless QUOLL_TEST_SEED is set.
unsigned seed_of(const char* type, size_t index);

// What a layer with loaded params wants to read, in file order.
struct WeightNeed {
    std::string name;
    int64_t count;
    WeightKind kind;
};
std::vector<WeightNeed> weights_needed(Layer& layer);

// A case with its values.
struct PreparedCase {
    unsigned seed;
    std::string text;  // operator, params, shapes and seed, for messages
    std::vector<Mat> inputs, weights;
    std::vector<WeightKind> kinds;
    Tolerance tolerance;
    bool stored = false;  // f16 or bf16 in place of f32
};
// What prepare() makes of the inputs.
std::vector<Mat> random_inputs(const LayerCase& c, Random& random);
// False after a test failure: the params or weights were refused.
bool prepare(const char* type, const LayerCase& c, size_t index, PreparedCase* prepared);

// The case with blobs of a storage type; what the reference gives of what they hold into `want`.
PreparedCase stored_case(const char* type, const LayerCase& c, const PreparedCase& p, DType storage,
                         std::vector<Mat>* want);

// The weights as a model file holds them.
std::vector<unsigned> weight_words(const PreparedCase& p);

LayerPtr make_case_layer(const char* type, const LayerCase& c, const PreparedCase& p,
                         bool reference, const Option& opt = Option());
int run_status(const Layer& layer, const std::vector<Mat>& inputs, std::vector<Mat>* outputs,
               const Option& opt, bool inplace);

// The .param of a net with that layer; blobs in0, in1, ... and out0, out1, ...
std::string net_text(const char* type, const LayerCase& c);
// The levels of set_cpu_mask() that make a difference on this machine. Under QUOLL_CPU_MASK the
// highest alone: set_cpu_mask() gives those below it in a run without the variable, too.
const std::vector<const char*>& isa_levels();
// The forms of a layer that checks run, reference (true) and fast. Under QUOLL_CPU_MASK and on an
// emulated processor the fast one alone: the reference is the same code everywhere, and a run
// without the variable on the machine's own processor tests it.
const std::vector<bool>& forms_tested();

// Values of elempack that layers are tried with; 0: mixed.
const int kPacks[] = {1, 4, 8, 16, 0};
// f32 becomes the storage type, and that f32; others stay.
Mat to_storage(const Mat& m, DType storage);
Mat from_storage(const Mat& m);
std::vector<Mat> cloned(const std::vector<Mat>& mats);
// Bit by bit.
bool same_values(const std::vector<Mat>& a, const std::vector<Mat>& b);
// Each input with elempack `pack` where its outermost axis allows; pack 0 mixes them.
std::vector<Mat> packed(const std::vector<Mat>& inputs, int pack);
std::vector<Shape> logical_shapes(const std::vector<Mat>& mats);
// Do inferred shapes (dims 0: unknown) say what was produced?
testing::AssertionResult shapes_hold(const std::vector<Shape>& inferred,
                                     const std::vector<Mat>& produced);

// Drops log messages while it lives: for checks that provoke them.
class Silence {
public:
    Silence() : level_(get_log_level()) { set_log_level(kLogOff); }
    ~Silence() { set_log_level(level_); }

private:
    LogLevel level_;
};

// The case table of each operator that has one.
typedef std::map<std::string, const std::vector<LayerCase>*> CaseTables;
const CaseTables& case_tables();

// The checks, each over all cases of an operator.
typedef void (*LayerCheck)(const char* type, const std::vector<LayerCase>& cases);
void check_vulkan(const char* type, const std::vector<LayerCase>& cases);
void check_batch(const char* type, const std::vector<LayerCase>& cases);
void check_allocation_failure(const char* type, const std::vector<LayerCase>& cases);
void check_empty_inputs(const char* type, const std::vector<LayerCase>& cases);
void check_in_a_net(const char* type, const std::vector<LayerCase>& cases);
void check_saving(const char* type, const std::vector<LayerCase>& cases);
void check_odd_inputs(const char* type, const std::vector<LayerCase>& cases);
void check_odd_params(const char* type, const std::vector<LayerCase>& cases);

}  // namespace quoll

#endif
