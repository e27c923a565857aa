// Random parameters of every operator go through a Model's files, text and binary, and come back.
// Those that an operator takes only in combinations are in the case tables of tests/layer, each of
// which has a test of this kind (round_trip).
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/model.h"
#include "layer/common/schema.h"
#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/layer.h"
#include "quoll/log.h"

namespace {

using quoll::Layer;
using quoll::Mat;
using quoll::Model;
using quoll::Range;

// Sets about half of the parameters to random values of their ranges, and those whose defaults are
// out of range.
class Setter : public quoll::ParamVisitor {
public:
    explicit Setter(unsigned seed) : rng_(seed) {}
    std::set<std::string> set, all;  // names

    void operator()(int, const char* name, int& field, int def, const char*, Range range) override {
        if (!wanted(name, field >= range.low && field <= range.high)) return;
        field = integer(range);
        if (field == def && range.high > range.low) field += field + 1 <= range.high ? 1 : -1;
    }
    void operator()(int, const char* name, float& field, float def, const char*,
                    Range range) override {
        if (!wanted(name, field >= range.low && field <= range.high)) return;
        do field = (float)number(range);
        while (field == def && range.high > range.low);
    }
    void ints(int, const char* name, Mat& field, const char*, Range range) override {
        if (!wanted(name, true)) return;
        field.create(quoll::Shape(3, quoll::DType::s32));
        for (int i = 0; i < 3; i++) ((int*)field.data)[i] = integer(range);
    }
    void floats(int, const char* name, Mat& field, const char*, Range range) override {
        if (!wanted(name, true)) return;
        field.create(3);
        for (int i = 0; i < 3; i++) field[i] = (float)number(range);
    }
    void operator()(int, const char* name, std::string& field, const char*, const char*) override {
        // Words, and what operators that read formulas take.
        static const char* const kTexts[] = {"word", "0w", "+(0w,1)", "ij,jk->ik"};
        if (wanted(name, true)) field = kTexts[rng_() % 4];
    }

private:
    bool wanted(const std::string& name, bool may_stay) {
        all.insert(name);
        if (may_stay && rng_() % 2) return false;
        set.insert(name);
        return true;
    }
    double number(Range range) {
        const double low = std::max(range.low, -1000.), high = std::min(range.high, 1000.);
        if (high <= low) return low;
        return std::uniform_real_distribution<double>(low, high)(rng_);
    }
    int integer(Range range) {
        const int low = (int)std::ceil(std::max(range.low, rng_() % 2 ? 0. : -1000.));
        const double most = rng_() % 2 ? low + 3. : std::max(low + 1000., 1000.);
        const int high = (int)std::floor(std::min(range.high, most));
        return std::uniform_int_distribution<int>(low, std::max(low, high))(rng_);
    }
    std::mt19937 rng_;
};

// What the fields hold, by name.
class Getter : public quoll::ParamVisitor {
public:
    std::map<std::string, std::string> values;

    void operator()(int, const char* name, int& field, int, const char*, Range) override {
        values[name] = std::to_string(field);
    }
    void operator()(int, const char* name, float& field, float, const char*, Range) override {
        values[name] = exact(field);
    }
    void ints(int, const char* name, Mat& field, const char*, Range) override {
        std::string& text = values[name] = "ints";
        for (int i = 0; i < field.w; i++) text += " " + std::to_string(((int*)field.data)[i]);
    }
    void floats(int, const char* name, Mat& field, const char*, Range) override {
        std::string& text = values[name] = "floats";
        for (int i = 0; i < field.w; i++) text += " " + exact(field[i]);
    }
    void operator()(int, const char* name, std::string& field, const char*, const char*) override {
        values[name] = "'" + field + "'";
    }

private:
    static std::string exact(float value) {
        char text[40];
        snprintf(text, sizeof(text), "%a", value);
        return text;
    }
};

std::map<std::string, std::string> fields_of(Layer& op) {
    Getter getter;
    op.visit_params(getter);
    return getter.values;
}

// The operator of the last layer of a model that went through a file.
std::unique_ptr<Layer> through_file(const Model& model, bool binary) {
    std::vector<unsigned char> bytes;
    const quoll::DataWriterToMemory writer(&bytes);
    if (binary ? model.save_param_bin(writer) : model.save_param(writer)) return nullptr;
    const unsigned char* p = bytes.data();
    const quoll::DataReaderFromMemory reader(p, bytes.size());
    Model again;
    if (binary ? again.load_param_bin(reader) : again.load_param(reader)) return nullptr;
    return again.layers.back().make_operator();
}

// One random combination; adds what it sets to *seen, unless the operator refuses it.
void check(const std::string& type, unsigned seed, std::set<std::string>* seen,
           std::set<std::string>* all) {
    const std::unique_ptr<Layer> op(quoll::create_layer_reference(type.c_str()));
    ASSERT_TRUE(op != nullptr);
    Setter setter(seed);
    op->visit_params(setter);
    *all = setter.all;
    Model model;
    model.add("Input", "in", {}, {"in"});
    model.add(type, "layer", {"in"}, {"out"}).set_params(*op);
    if (!model.layers.back().make_operator()) return;
    for (bool binary : {false, true}) {
        SCOPED_TRACE(binary ? "binary" : "text");
        const std::unique_ptr<Layer> again = through_file(model, binary);
        ASSERT_TRUE(again != nullptr);
        EXPECT_EQ(fields_of(*op), fields_of(*again));
    }
    seen->insert(setter.set.begin(), setter.set.end());
}

TEST(RoundTrip, ParametersOfEveryOperator) {
    const unsigned kMostSeeds = 400;  // some operators refuse most combinations
    size_t tested = 0, parameters = 0;
    quoll::set_log_level(quoll::kLogOff);
    for (const std::string& type : quoll::layer_types()) {
        std::set<std::string> seen, all;
        for (unsigned seed = 1; seed <= 5 || (seen != all && seed <= kMostSeeds); seed++) {
            SCOPED_TRACE(type + ", seed " + std::to_string(seed));
            check(type, seed, &seen, &all);
            if (HasFatalFailure()) return;
        }
        tested += seen.size();
        parameters += all.size();
    }
    EXPECT_GT(tested, parameters * 3 / 4) << parameters;
}

}  // namespace
