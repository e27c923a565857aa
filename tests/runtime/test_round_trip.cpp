// Every parameter of every operator goes through a Model's files, text and binary, and comes back.
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "datareader.h"
#include "datawriter.h"
#include "graph/model.h"
#include "layer.h"
#include "layer/schema.h"
#include "log.h"

namespace {

using quoll::Layer;
using quoll::Mat;
using quoll::Model;
using quoll::Range;

// Sets parameters to random values of their ranges, other than those they have.
class Setter : public quoll::ParamVisitor {
public:
    explicit Setter(unsigned seed) : rng_(seed) {}
    int count = 0;

    void operator()(int, const char*, int& field, int def, const char*, Range range) override {
        count++;
        int value = integer(range);
        if (value == def && range.high > range.low) value += value + 1 <= range.high ? 1 : -1;
        field = value;
    }
    void operator()(int, const char*, float& field, float def, const char*, Range range) override {
        count++;
        do field = (float)number(range);
        while (field == def && range.high > range.low);
    }
    void ints(int, const char*, Mat& field, const char*, Range range) override {
        count++;
        field.create(quoll::Shape(3, quoll::DType::s32));
        for (int i = 0; i < 3; i++) ((int*)field.data)[i] = integer(range);
    }
    void floats(int, const char*, Mat& field, const char*, Range range) override {
        count++;
        field.create(3);
        for (int i = 0; i < 3; i++) field[i] = (float)number(range);
    }
    void operator()(int, const char*, std::string& field, const char*, const char*) override {
        count++;
        field = "word_" + std::to_string(rng_() % 1000);
    }

private:
    double number(Range range) {
        const double low = std::max(range.low, -1000.), high = std::min(range.high, 1000.);
        if (high <= low) return low;
        return std::uniform_real_distribution<double>(low, high)(rng_);
    }
    int integer(Range range) {
        const int low = (int)std::ceil(std::max(range.low, -1000.));
        const int high = (int)std::floor(std::min(range.high, std::max(low + 1000., 1000.)));
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

void check(const std::string& type, unsigned seed, int* count) {
    const std::unique_ptr<Layer> op(quoll::create_layer_reference(type.c_str()));
    ASSERT_TRUE(op != nullptr);
    Setter setter(seed);
    op->visit_params(setter);
    *count += setter.count;
    Model model;
    model.add("Input", "in", {}, {"in"});
    model.add(type, "layer", {"in"}, {"out"}).set_params(*op);
    for (bool binary : {false, true}) {
        SCOPED_TRACE(binary ? "binary" : "text");
        const std::unique_ptr<Layer> again = through_file(model, binary);
        ASSERT_TRUE(again != nullptr);
        EXPECT_EQ(fields_of(*op), fields_of(*again));
    }
}

TEST(RoundTrip, EveryParameterOfEveryOperator) {
    int parameters = 0;
    for (const std::string& type : quoll::layer_types()) {
        for (unsigned seed = 1; seed <= 5; seed++) {
            SCOPED_TRACE(type + ", seed " + std::to_string(seed));
            check(type, seed, &parameters);
            if (HasFatalFailure()) return;
        }
    }
    EXPECT_GT(parameters, 5 * 300);
}

}  // namespace
