#include <stdio.h>

#include <string>

#include "common/image_file.h"
#include "gtest/gtest.h"

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
         {"P6 0 3 255\n", "P5 4 4 255\n0123456789", "P6 32768 32768 255\n0123456789"}) {
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

}  // namespace
}  // namespace quoll
