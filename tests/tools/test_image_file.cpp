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

}  // namespace
}  // namespace quoll
