#include <stdio.h>

#include <algorithm>
#include <string>

#include "common/draw.h"
#include "gtest/gtest.h"

namespace quoll {
namespace {

const Color kWhite = {255, 255, 255};

Image black(int w, int h) {
    Image image;
    image.w = w, image.h = h;
    image.rgb.assign((size_t)w * h * 3, 0);
    return image;
}

int lit(const Image& image, int x, int y) {
    return image.rgb[((size_t)y * image.w + x) * 3] == 255;
}

int count_lit(const Image& image) {
    return (int)std::count(image.rgb.begin(), image.rgb.end(), 255) / 3;
}

TEST(Draw, rectangles_are_clipped_to_the_picture) {
    Image image = black(8, 6);
    fill_rectangle(image, -3, -2, 5, 4, kWhite);
    EXPECT_EQ(count_lit(image), 2 * 2);
    fill_rectangle(image, 6, 5, 2147483647, 2147483647, kWhite);
    EXPECT_EQ(count_lit(image), 2 * 2 + 2 * 1);
    fill_rectangle(image, 100, 100, 5, 5, kWhite);
    fill_rectangle(image, 3, 3, -1, 5, kWhite);
    EXPECT_EQ(count_lit(image), 2 * 2 + 2 * 1);
}

TEST(Draw, a_border_lies_inside) {
    Image image = black(10, 10);
    draw_rectangle(image, 2, 3, 6, 5, 1, kWhite);
    EXPECT_EQ(count_lit(image), 6 * 5 - 4 * 3);
    EXPECT_TRUE(lit(image, 2, 3) && lit(image, 7, 7) && !lit(image, 3, 4) && !lit(image, 8, 8));
}

TEST(Draw, text_stays_in_its_box) {
    const std::string text = "37 of 40 = 92.5 %";
    const int w = text_width(text, 2), h = text_height(2);
    Image image = black(w + 20, h + 20);
    draw_text(image, 10, 10, text, 2, kWhite);
    EXPECT_GT(count_lit(image), 100);
    for (int y = 0; y < image.h; y++)
        for (int x = 0; x < image.w; x++)
            if (lit(image, x, y)) {
                EXPECT_TRUE(x >= 10 && x < 10 + w && y >= 10 && y < 10 + h) << x << ' ' << y;
            }
}

TEST(Draw, letters_differ_and_other_bytes_are_question_marks) {
    Image one = black(20, 20), seven = one, odd = one, question = one, empty = one;
    draw_text(one, 0, 0, "1", 1, kWhite);
    draw_text(seven, 0, 0, "7", 1, kWhite);
    draw_text(odd, 0, 0, "\x01\xe9", 1, kWhite);
    draw_text(question, 0, 0, "??", 1, kWhite);
    draw_text(empty, 0, 0, "", 1, kWhite);
    EXPECT_NE(one.rgb, seven.rgb);
    EXPECT_EQ(odd.rgb, question.rgb);
    EXPECT_EQ(count_lit(empty), 0);
}

TEST(ImageFile, png_comes_back_as_it_went) {
    Image image = black(5, 3), back;
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
