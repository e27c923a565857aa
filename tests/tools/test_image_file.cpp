#include <stdint.h>
#include <stdio.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/image_file.h"
#include "gtest/gtest.h"
#include "image/safe_for_stb.h"

namespace quoll {
namespace {

TEST(ImageFile, png_comes_back_as_it_went) {
    Image image, back;
    image.w = 5, image.h = 3;
    image.rgb.resize(5 * 3 * 3);
    for (size_t i = 0; i < image.rgb.size(); i++) image.rgb[i] = (unsigned char)(i * 37);
    const std::string path = testing::TempDir() + "quoll_image_file.png";
    ASSERT_EQ(write_png(path, image), 0);
    ASSERT_EQ(read_image(path, &back), 0);
    EXPECT_EQ(back.w, 5);
    EXPECT_EQ(back.h, 3);
    EXPECT_EQ(back.rgb, image.rgb);
    remove(path.c_str());
    EXPECT_LT(read_image(path, &back), 0);
    EXPECT_LT(write_png("/nonexistent/folder/x.png", image), 0);
}

// Sizes that the file cannot hold are refused before memory is taken for them.
TEST(ImageFile, pixels_have_to_be_there) {
    const std::string path = testing::TempDir() + "quoll_image_file.pnm";
    for (const char* text :
         {"P6 0 3 255\n", "P5 3999999999 1 255\n0", "P5\n# 9\n1 # 9\r 4294967297 255\n0",
          "P5 4 4 255\n0123456789", "P6 32768 32768 255\n0123456789"}) {
        FILE* fp = fopen(path.c_str(), "wb");
        ASSERT_TRUE(fp);
        fputs(text, fp);
        fclose(fp);
        Image image;
        EXPECT_LT(read_image(path, &image), 0) << text;
        EXPECT_TRUE(image.rgb.empty());
    }
    remove(path.c_str());
}

// stb_image reads behind the end of such ones.
TEST(ImageFile, pnm_of_16_bits_is_refused) {
    const std::string path = testing::TempDir() + "quoll_image_file.pnm";
    for (const char* kind : {"P5", "P6"}) {
        FILE* fp = fopen(path.c_str(), "wb");
        ASSERT_TRUE(fp);
        fprintf(fp, "%s 64 64 65535\n%s", kind, std::string(64 * 64 * 6, 'x').c_str());
        fclose(fp);
        Image image;
        EXPECT_LT(read_image(path, &image), 0) << kind;
        EXPECT_TRUE(image.rgb.empty());
    }
    remove(path.c_str());
}

// Bits in the order of deflate (RFC 1951): numbers from the lowest bit on, Huffman codes from the
// highest.
class Bits {
public:
    void number(unsigned value, int bits) {
        for (int i = 0; i < bits; i++) bit(value >> i & 1);
    }
    void code(unsigned value, int bits) {
        while (bits-- > 0) bit(value >> bits & 1);
    }
    std::string bytes;

private:
    void bit(unsigned one) {
        if (used_++ % 8 == 0) bytes.push_back(0);
        if (one) bytes.back() = (char)(bytes.back() | 1 << (used_ - 1) % 8);
    }
    int used_ = 0;
};

std::string big_endian(uint32_t value) {
    return {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8), (char)value};
}

std::string chunk(const char* type, const std::string& data) {
    return big_endian((uint32_t)data.size()) + type + data +
           "crc?";  // which stb_image does not look at
}

// A grey pixel, made of a stream of `count` times 258 zeros.
std::string png_of_zeros(int count) {
    Bits bits;
    bits.number(0x0178, 16);               // zlib's head
    bits.number(1, 1), bits.number(1, 2);  // the last block, of fixed codes
    bits.code(0x30, 8);                    // a zero
    for (int i = 0; i < count; i++) bits.code(0xc5, 8), bits.code(0, 5);  // 258 times more
    bits.code(0, 7);
    const std::string head = big_endian(1) + big_endian(1) + std::string("\x08\0\0\0\0", 5);
    return "\x89PNG\r\n\x1a\n" + chunk("IHDR", head) + chunk("IDAT", bits.bytes + "adler") +
           chunk("IEND", "");
}

int read_bytes_of_image(const std::string& bytes, Image* image) {
    const std::string path = testing::TempDir() + "quoll_image_file.png";
    FILE* fp = fopen(path.c_str(), "wb");
    if (!fp || fwrite(bytes.data(), 1, bytes.size(), fp) != bytes.size()) return 1;
    fclose(fp);
    const int status = read_image(path, image);
    remove(path.c_str());
    return status;
}

// Found by libFuzzer: memory for what a stream expands to, whatever the size of the picture.
TEST(ImageFile, streams_make_no_more_than_the_picture) {
    Image image;
    EXPECT_EQ(read_bytes_of_image(png_of_zeros(1), &image), 0);
    EXPECT_EQ(image.rgb.size(), 3u);
    EXPECT_LT(read_bytes_of_image(png_of_zeros(100000), &image), 0);  // 26 MB from 163 KB
}

// Found by libFuzzer: stb_image wrote the codes behind the table.
TEST(ImageFile, tables_of_a_jpeg_have_256_codes) {
    for (int codes : {255, 256, 257, 4080}) {
        std::string table(1, 0x00);
        for (int i = 0, left = codes; i < 16; i++) {
            table.push_back((char)std::min(left, 255));
            left -= std::min(left, 255);
        }
        table.append((size_t)codes, '\0');
        const int length = (int)table.size() + 2;
        for (const char* start : {"\xff\xd8", "\xff\xff\xff\xd8"}) {
            const std::string bytes =
                std::string(start) + "\xff\xc4" + (char)(length >> 8) + (char)length + table;
            std::vector<unsigned char> jpeg(bytes.begin(), bytes.end());
            EXPECT_EQ(make_safe_for_stb(&jpeg) == nullptr, codes <= 256) << codes;
            Image image;
            EXPECT_LT(read_bytes_of_image(bytes, &image), 0);
        }
    }
    // A comment may have any bytes.
    const std::string noted(
        "\xff\xd8\xff\xfe\0\x17\xff\xc4\0\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\xd9",
        29);
    std::vector<unsigned char> jpeg(noted.begin(), noted.end());
    EXPECT_EQ(make_safe_for_stb(&jpeg), nullptr);
    EXPECT_EQ(jpeg.size(), 4u);
}

// Found by libFuzzer: memory for as much as a chunk says that it has.
TEST(ImageFile, chunks_have_no_more_than_the_file) {
    std::string bytes = png_of_zeros(1);
    bytes.replace(bytes.find("IDAT") - 4, 4, big_endian(0x3fffffff));
    Image image;
    EXPECT_LT(read_bytes_of_image(bytes, &image), 0);
}

}  // namespace
}  // namespace quoll
