// Reads tests/data/pixel_cases.bin and image_cases.bin, which tests/oracle/make_pixel_fixture.py and
// make_image_fixture.py write.
#ifndef QUOLL_TESTS_PIXEL_CASES_H
#define QUOLL_TESTS_PIXEL_CASES_H

#include <gtest/gtest.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <string>
#include <vector>

#include "quoll/mat.h"

struct CaseArray {
    std::vector<int> shape;  // outermost first
    std::vector<unsigned char> bytes;
    std::vector<float> values;

    // The f32 values as a Mat of as many axes.
    quoll::Mat mat() const {
        const std::vector<int>& s = shape;
        quoll::Mat flat((int)values.size(), (void*)values.data());
        switch (s.size()) {
            case 1:
                return flat.clone();
            case 2:
                return flat.reshape(s[1], s[0]).clone();
            case 3:
                return flat.reshape(s[2], s[1], s[0]).clone();
        }
        return flat.reshape(s[3], s[2], s[1], s[0]).clone();
    }
};

struct PixelCase {
    std::string op;
    std::vector<int> params;
    CaseArray given, expected;

    std::string name() const {
        std::string text = op + "(";
        for (int p : params) text += std::to_string(p) + " ";
        return text + ")";
    }
};

class PixelCaseReader {
public:
    explicit PixelCaseReader(FILE* file) : file_(file) {}

    uint32_t word() {
        uint32_t v = 0;
        ok_ = ok_ && fread(&v, 4, 1, file_) == 1;
        return v;
    }
    template <class T>
    std::vector<T> many(size_t count) {
        ok_ = ok_ && count < 1000000;
        std::vector<T> v(ok_ ? count : 0);
        ok_ = ok_ && fread(v.data(), sizeof(T), v.size(), file_) == v.size();
        return v;
    }
    CaseArray array() {
        CaseArray a;
        const std::vector<char> kind = many<char>(1);
        a.shape = many<int>(word());
        size_t count = 1;
        for (int s : a.shape) count *= s;
        if (ok_ && kind[0] == 'B') a.bytes = many<unsigned char>(count);
        if (ok_ && kind[0] == 'f') a.values = many<float>(count);
        return a;
    }
    PixelCase next() {
        PixelCase c;
        const std::vector<char> op = many<char>(word());
        c.op.assign(op.begin(), op.end());
        c.params = many<int>(word());
        c.given = array();
        c.expected = array();
        return c;
    }
    bool ok() const { return ok_; }

private:
    FILE* file_;
    bool ok_ = true;
};

// The cases whose operation begins with `prefix`; fails the test when there are none.
inline std::vector<PixelCase> pixel_cases(const char* prefix,
                                          const char* path = "tests/data/pixel_cases.bin") {
    std::vector<PixelCase> found;
    FILE* file = fopen(path, "rb");
    if (!file) {
        ADD_FAILURE() << path << ": run from the source tree";
        return found;
    }
    PixelCaseReader reader(file);
    const std::vector<char> magic = reader.many<char>(4);
    EXPECT_EQ(std::string(magic.begin(), magic.end()), "QPX1");
    const uint32_t count = reader.word();
    for (uint32_t i = 0; i < count && reader.ok(); i++) {
        PixelCase c = reader.next();
        if (c.op.compare(0, strlen(prefix), prefix) == 0) found.push_back(c);
    }
    EXPECT_TRUE(reader.ok()) << path << " is damaged";
    EXPECT_FALSE(found.empty()) << prefix;
    fclose(file);
    return found;
}

// Compares an f32 Mat with expected values, or bytes, of any packing.
inline void expect_result(const quoll::Mat& m, const CaseArray& expected, float tolerance,
                          const std::string& name) {
    ASSERT_FALSE(m.empty()) << name;
    ASSERT_EQ(m.dims, (int)expected.shape.size()) << name;
    quoll::Mat flat;
    quoll::flatten(m, flat);
    const size_t count = expected.bytes.size() + expected.values.size();
    ASSERT_EQ((size_t)flat.w, count) << name;
    for (int axis = 0; axis < m.dims; axis++)
        ASSERT_EQ(m.logical_shape().size(axis), expected.shape[axis]) << name;
    for (size_t i = 0; i < count; i++) {
        const float want = expected.values.empty() ? expected.bytes[i] : expected.values[i];
        ASSERT_NEAR(flat[i], want, tolerance) << name << " value " << i;
    }
}

#endif
