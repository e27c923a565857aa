// Colours a photo by what each of its pixels belongs to, with any net that gives scores of classes
// at the cells of a grid, such as torchvision's deeplabv3_mobilenet_v3_large and
// lraspp_mobilenet_v3_large converted by onnx2engine (classes: docs of Pascal VOC).
#include <algorithm>
#include <vector>

#include <quoll/image.h>
#include <quoll/net.h>
#include "picture.h"
#include "usage.h"

using namespace quoll;

namespace {

const char kUsage[] =
    "segment MODEL.param MODEL.bin PHOTO OUT.png [--size WxH] [--gpu N]: colours of what is where\n"
    "  --size WxH  of the net's input; default 520x520. Pixels are normalised as in torchvision\n";

// The class with the largest score at each cell. scores: (classes, h, w).
std::vector<int> best_classes(const Mat& scores) {
    std::vector<int> best((size_t)scores.w * scores.h, 0);
    for (int k = 1; k < scores.c; k++)
        for (int y = 0; y < scores.h; y++)
            for (int x = 0; x < scores.w; x++) {
                int& now = best[(size_t)y * scores.w + x];
                if (scores.channel(k).row(y)[x] > scores.channel(now).row(y)[x]) now = k;
            }
    return best;
}

// Bit 0 to 2 of the class number make the top bits of red, green and blue, bit 3 to 5 the next
// ones, and so on: the palette of Pascal VOC's pictures. Class 0, the background, is black.
void colour_of(int label, unsigned char* rgb) {
    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int bit = 7; bit >= 0; bit--, label >>= 3)
        for (int c = 0; c < 3; c++) rgb[c] |= (unsigned char)(((label >> c) & 1) << bit);
}

// Each pixel half as it was, half in its class's colour; prints the classes and their parts.
void paint(const std::vector<int>& classes, int w, int h, Picture* photo) {
    std::vector<int> pixels;
    for (int y = 0; y < photo->h; y++)
        for (int x = 0; x < photo->w; x++) {
            const int label = classes[(size_t)(y * h / photo->h) * w + x * w / photo->w];
            if (label >= (int)pixels.size()) pixels.resize(label + 1);
            pixels[label]++;
            unsigned char colour[3], *rgb = &photo->rgb[((size_t)y * photo->w + x) * 3];
            colour_of(label, colour);
            for (int c = 0; c < 3 && label > 0; c++)
                rgb[c] = (unsigned char)((rgb[c] + colour[c]) / 2);
        }
    for (size_t label = 0; label < pixels.size(); label++)
        if (pixels[label])
            printf("class %d: %.1f %%\n", (int)label, 100.0 * pixels[label] / photo->w / photo->h);
}

}  // namespace

int main(int argc, char** argv) {
    int w = 0, h = 0, code;
    const char* size = take_option("--size", &argc, argv, "520x520");
    const char* gpu = take_option("--gpu", &argc, argv);
    const bool good = argc == 5 && sscanf(size, "%dx%d", &w, &h) == 2 && w > 0 && h > 0;
    if (usage(argc, argv, good, kUsage, &code)) return code;
    Net net;
    Picture photo;
    if (!use_gpu(gpu, &net) || net.load_param(argv[1]) || net.load_model(argv[2]) ||
        !read_picture(argv[3], &photo))
        return 1;
    Mat in = Mat::from_pixels_resize(photo.rgb.data(), Mat::PIXEL_RGB, photo.w, photo.h, w, h),
        scores;
    const float mean[3] = {123.675f, 116.28f, 103.53f};
    const float norm[3] = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f};
    in.substract_mean_normalize(mean, norm);
    Extractor ex = net.create_extractor();
    if (ex.input(net.input_indexes()[0], in) || ex.extract(net.output_indexes()[0], scores))
        return 1;
    if (scores.dims != 3 || scores.c < 2) {
        fprintf(stderr, "%s: expected an output of (classes, h, w)\n", argv[1]);
        return 1;
    }
    paint(best_classes(scores), scores.w, scores.h, &photo);
    return !write_picture(argv[4], photo);
}
