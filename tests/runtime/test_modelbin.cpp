// Weights in every storage form, truncated at every byte, through every kind of reader.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/modelbin.h"

namespace {

using quoll::DType;
using quoll::Mat;

template <class T>
void append(std::string* bytes, const std::vector<T>& values) {
    bytes->append((const char*)values.data(), values.size() * sizeof(T));
    while (bytes->size() % 4) bytes->push_back('\0');
}

std::string tagged(uint32_t tag) { return std::string((const char*)&tag, 4); }

// A reader of unknown length that can only copy, as an application's own would be.
class PlainReader : public quoll::DataReader {
public:
    explicit PlainReader(const std::string& bytes) : bytes_(bytes) {}
    size_t read(void* buf, size_t size) const override {
        const size_t count = std::min(size, bytes_.size() - at_);
        memcpy(buf, bytes_.data() + at_, count);
        at_ += count;
        return count;
    }

private:
    std::string bytes_;
    mutable size_t at_ = 0;
};

struct Form {
    const char* name;
    std::string bytes;
    DType dtype;
};

// The same seven values in every form.
const float kValues[7] = {0.f, 1.f, -2.f, 3.f, -4.f, 5.f, 127.f};

std::vector<Form> forms() {
    std::vector<Form> all;
    std::string f32 = tagged(0), f16 = tagged(0x01306B47), bf16 = tagged(0x36314642),
                s8 = tagged(0x000D4B38), table = tagged(0x00000101);
    std::vector<float> entries(256, -99.f);
    std::vector<uint8_t> indexes;
    std::vector<uint16_t> halves, bfloats;
    std::vector<int8_t> bytes;
    for (int i = 0; i < 7; i++) {
        entries[200 + i] = kValues[i];
        indexes.push_back((uint8_t)(200 + i));
        halves.push_back(quoll::float32_to_float16(kValues[i]));
        bfloats.push_back(quoll::float32_to_bfloat16(kValues[i]));
        bytes.push_back((int8_t)kValues[i]);
    }
    append(&f32, std::vector<float>(kValues, kValues + 7));
    append(&f16, halves);
    append(&bf16, bfloats);
    append(&s8, bytes);
    append(&table, entries);
    append(&table, indexes);
    all.push_back({"f32", f32, DType::f32});
    all.push_back({"f16", f16, DType::f32});
    all.push_back({"bf16", bf16, DType::f32});
    all.push_back({"int8", s8, DType::s8});
    all.push_back({"table", table, DType::f32});
    // One scale per row, one per column, one for all.
    const std::vector<int8_t> codes = {0, 2, -8, 3, -4, 5, 1};
    const std::vector<float> scales = {1, 0.5f, 0.25f, 1, 1, 1, 127};
    for (uint32_t tag : {0x38534F52u, 0x38534C43u}) {
        std::string scaled = tagged(tag) + tagged(7);
        append(&scaled, scales);
        append(&scaled, codes);
        all.push_back({tag == 0x38534F52u ? "rows" : "columns", scaled, DType::f32});
    }
    std::string scaled = tagged(0x38534F52) + tagged(1);
    append(&scaled, std::vector<float>{1.f});
    append(&scaled, bytes);
    all.push_back({"scaled", scaled, DType::f32});
    // One scale and zero point for each value.
    std::string affine = tagged(0x38534652) + tagged(7);
    append(&affine, scales);
    append(&affine, std::vector<float>{5, 0, -10, 100, 3, -5, 0});
    append(&affine, std::vector<int8_t>{5, 2, -18, 103, -1, 0, 1});
    all.push_back({"affine", affine, DType::f32});
    return all;
}

void expect_values(const Mat& m, DType dtype) {
    ASSERT_FALSE(m.empty());
    ASSERT_EQ(m.w, 7);
    ASSERT_EQ(m.dtype, dtype);
    for (int i = 0; i < 7; i++)
        EXPECT_EQ(dtype == DType::s8 ? (float)((const signed char*)m)[i] : m[i], kValues[i]);
}

TEST(ModelBin, ReadsEveryFormFromEveryReader) {
    for (const Form& form : forms()) {
        SCOPED_TRACE(form.name);
        // A raw f32 weight behind it must be found at the right place: data is padded to 4 bytes.
        const float marker = 42.f;
        const std::string bytes = form.bytes + std::string((const char*)&marker, 4);
        std::vector<uint32_t> aligned((bytes.size() + 3) / 4);
        memcpy(aligned.data(), bytes.data(), bytes.size());
        const unsigned char* p = (const unsigned char*)aligned.data();
        quoll::DataReaderFromMemory memory(p, bytes.size());
        quoll::ModelBinFromDataReader from_memory(memory);
        expect_values(from_memory.load(7, 0), form.dtype);
        EXPECT_EQ(from_memory.load(1, 1)[0], 42.f);
        EXPECT_EQ(p, (const unsigned char*)aligned.data() + bytes.size());

        PlainReader plain(bytes);
        quoll::ModelBinFromDataReader from_plain(plain);
        expect_values(from_plain.load(7, 0), form.dtype);
        EXPECT_EQ(from_plain.load(1, 1)[0], 42.f);

        const std::string path = testing::TempDir() + "quoll_modelbin_" + form.name;
        FILE* fp = fopen(path.c_str(), "wb+");
        ASSERT_TRUE(fp);
        fwrite(bytes.data(), 1, bytes.size(), fp);
        rewind(fp);
        quoll::DataReaderFromStdio stdio(fp);
        quoll::ModelBinFromDataReader from_file(stdio);
        expect_values(from_file.load(7, 0), form.dtype);
        EXPECT_EQ(from_file.load(1, 1)[0], 42.f);
        fclose(fp);

        quoll::DataReaderFromMmap map(path.c_str());
        ASSERT_TRUE(map.ok());
        quoll::ModelBinFromDataReader from_map(map);
        expect_values(from_map.load(7, 0), form.dtype);
        EXPECT_EQ(from_map.load(1, 1)[0], 42.f);
        remove(path.c_str());
    }
}

TEST(ModelBin, TruncationIsAnError) {
    for (const Form& form : forms()) {
        for (size_t size = 0; size < form.bytes.size(); size++) {
            const std::string bytes = form.bytes.substr(0, size);
            PlainReader plain(bytes);
            EXPECT_TRUE(quoll::ModelBinFromDataReader(plain).load(7, 0).empty())
                << form.name << " " << size;
            const unsigned char* p = (const unsigned char*)bytes.data();
            quoll::DataReaderFromMemory memory(p, size);
            EXPECT_TRUE(quoll::ModelBinFromDataReader(memory).load(7, 0).empty())
                << form.name << " " << size;
        }
    }
}

TEST(ModelBin, ScalesMustDivideTheWeight) {
    for (uint32_t tag : {0x38534F52u, 0x38534C43u, 0x38534652u}) {
        for (int scales : {0, -7, 3, 14, 2000000000}) {
            const std::string bytes =
                tagged(tag) + tagged((uint32_t)scales) + std::string(400, '\0');
            PlainReader plain(bytes);
            EXPECT_TRUE(quoll::ModelBinFromDataReader(plain).load(7, 0).empty()) << scales;
        }
    }
}

TEST(ModelBin, FormsAreWrittenAsTheyAreRead) {
    for (const Form& form : forms()) {
        const std::string bytes = form.bytes;
        PlainReader plain(bytes);
        std::vector<unsigned char> written;
        const quoll::StoredWeight stored = quoll::ModelBinFromDataReader(plain).load_stored(7);
        ASSERT_EQ(stored.save(quoll::DataWriterToMemory(&written), true), 0) << form.name;
        EXPECT_EQ(std::string(written.begin(), written.end()), bytes) << form.name;
    }
}

TEST(ModelBin, AbsurdCountsAreErrorsNotAllocations) {
    PlainReader plain(std::string(1000, '\0'));
    quoll::ModelBinFromDataReader mb(plain);
    EXPECT_TRUE(mb.load(2000000000, 0).empty());
    EXPECT_TRUE(mb.load(100000, 100000, 1).empty());
    EXPECT_TRUE(mb.load(-5, 0).empty());
    EXPECT_TRUE(mb.load(5, 9).empty());
}

TEST(ModelBin, MemoryIsUsedInPlace) {
    std::vector<float> weights(9, 1.5f);
    memset(weights.data(), 0, 4);
    const unsigned char* p = (const unsigned char*)weights.data();
    quoll::DataReaderFromMemory memory(p);
    const Mat m = quoll::ModelBinFromDataReader(memory).load(8, 0);
    EXPECT_EQ(m.data, &weights[1]);
    EXPECT_EQ(m.refcount, nullptr);
}

TEST(ModelBin, FromMatArrayChecksSizes) {
    Mat weights[2] = {Mat(4), Mat(2, 3)};
    weights[0].fill(1.f);
    weights[1].fill(2.f);
    quoll::ModelBinFromMatArray mb(weights);
    EXPECT_EQ(mb.load(4, 1).w, 4);
    EXPECT_TRUE(mb.load(7, 1).empty());
}

}  // namespace
