// Finds the faces of a photo with the detector slim-320 of
// Ultra-Light-Fast-Generic-Face-Detector-1MB and draws boxes around them. Shows what surrounds a
// detector's net: pixels in, anchors, non-maximum suppression.
#include <math.h>
#include <stdio.h>

#include <algorithm>
#include <vector>

#include <quoll/image.h>
#include <quoll/net.h>
#include "picture.h"
#include "usage.h"

using namespace quoll;

namespace {

// The net sees 320 x 240 RGB pixels as (x - 127) / 128.
const int kWidth = 320, kHeight = 240;
const float kMean[3] = {127.f, 127.f, 127.f};
const float kNorm[3] = {1 / 128.f, 1 / 128.f, 1 / 128.f};

// An anchor for every cell of four grids, in the order of the net's rows: the pixels of a cell, and
// the sides of the square anchors that sit in its centre.
struct Grid {
    int cell;
    std::vector<float> sides;
};
const Grid kGrids[] = {{8, {10, 16, 24}}, {16, {32, 48}}, {32, {64, 96}}, {64, {128, 192, 256}}};

// Box regression is measured in these parts of the anchor's size (Liu et al., SSD, 2016).
const float kCenterVariance = 0.1f, kSizeVariance = 0.2f;

// Corners and sizes in parts of the picture's width and height.
struct Box {
    float x0, y0, x1, y1, score;
};

struct Anchor {
    float x, y, w, h;  // centre and size
};

float clip(float v) { return std::min(std::max(v, 0.f), 1.f); }

std::vector<Anchor> make_anchors() {
    std::vector<Anchor> anchors;
    for (const Grid& grid : kGrids) {
        const int columns = (kWidth + grid.cell - 1) / grid.cell;
        const int rows = (kHeight + grid.cell - 1) / grid.cell;
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < columns; x++)
                for (float side : grid.sides)
                    anchors.push_back({(x + 0.5f) / columns, (y + 0.5f) / rows, clip(side / kWidth),
                                       clip(side / kHeight)});
    }
    return anchors;
}

Box decode(const Anchor& a, const float* offsets, float score) {
    const float x = a.x + offsets[0] * kCenterVariance * a.w;
    const float y = a.y + offsets[1] * kCenterVariance * a.h;
    const float w = a.w * expf(offsets[2] * kSizeVariance);
    const float h = a.h * expf(offsets[3] * kSizeVariance);
    return {x - w / 2, y - h / 2, x + w / 2, y + h / 2, score};
}

// Area of the intersection over area of the union.
float overlap(const Box& a, const Box& b) {
    const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const float h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (w <= 0 || h <= 0) return 0;
    const float areas = (a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0);
    return w * h / (areas - w * h);
}

// The best box of each group of boxes that overlap by more than `limit`.
std::vector<Box> suppress(std::vector<Box> boxes, float limit) {
    std::stable_sort(boxes.begin(), boxes.end(),
                     [](const Box& a, const Box& b) { return a.score > b.score; });
    std::vector<Box> kept;
    for (const Box& box : boxes)
        if (std::none_of(kept.begin(), kept.end(),
                         [&](const Box& k) { return overlap(k, box) > limit; }))
            kept.push_back(box);
    return kept;
}

int detect(const Net& net, const Picture& image, float score_limit, float overlap_limit,
           std::vector<Box>* faces) {
    Mat in = Mat::from_pixels_resize(image.rgb.data(), Mat::PIXEL_RGB, image.w, image.h, kWidth,
                                     kHeight);
    if (in.empty()) return -1;
    in.substract_mean_normalize(kMean, kNorm);
    Extractor ex = net.create_extractor();
    Mat scores, offsets;  // a row for each anchor: (background, face) and (x, y, w, h)
    if (ex.input("input", in) || ex.extract("scores", scores) || ex.extract("boxes", offsets))
        return -1;
    const std::vector<Anchor> anchors = make_anchors();
    const int count = (int)anchors.size();
    if (scores.w != 2 || scores.h != count || offsets.w != 4 || offsets.h != count) {
        fprintf(stderr, "expected scores 2 x %d and boxes 4 x %d, got %d x %d and %d x %d\n", count,
                count, scores.w, scores.h, offsets.w, offsets.h);
        return -1;
    }
    std::vector<Box> boxes;
    for (int i = 0; i < count; i++)
        if (scores.row(i)[1] > score_limit)
            boxes.push_back(decode(anchors[i], offsets.row(i), scores.row(i)[1]));
    *faces = suppress(boxes, overlap_limit);
    return 0;
}

void show(const std::vector<Box>& faces, Picture* image) {
    const int thickness = std::max(1, image->w / 400), margin = std::max(1, image->w / 600);
    const unsigned int green = 0x00ff00;  // 0xBBGGRR
    unsigned char* pixels = image->rgb.data();
    for (const Box& face : faces) {
        const int x0 = (int)(clip(face.x0) * image->w), x1 = (int)(clip(face.x1) * image->w);
        const int y0 = (int)(clip(face.y0) * image->h), y1 = (int)(clip(face.y1) * image->h);
        char text[32];
        snprintf(text, sizeof(text), "%.2f", face.score);
        printf("face at %d,%d size %dx%d score %.4f\n", x0, y0, x1 - x0, y1 - y0, face.score);
        draw_rectangle_c3(pixels, image->w, image->h, x0, y0, x1 - x0, y1 - y0, green, thickness);
        int w = 0, h = 0;
        get_text_drawing_size(text, 6 * margin, &w, &h);
        const int top = y0 >= h ? y0 - h : y1;  // outside, so that small faces are seen
        draw_rectangle_c3(pixels, image->w, image->h, x0, top, w + 2 * margin, h, green, -1);
        draw_text_c3(pixels, image->w, image->h, text, x0 + margin, top, 6 * margin, 0);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const float score_limit = 0.7f, overlap_limit = 0.3f;
    const char* gpu = take_option("--gpu", &argc, argv);
    int code;
    if (usage(argc, argv, argc == 4 || argc == 5,
              "detect_faces slim_320.param slim_320.bin PHOTO [BOXES.png] [--gpu N]: finds faces "
              "with slim-320\n",
              &code))
        return code;
    Net net;
    Picture image;
    std::vector<Box> faces;
    if (!use_gpu(gpu, &net) || net.load_param(argv[1]) || net.load_model(argv[2]) ||
        !read_picture(argv[3], &image) || detect(net, image, score_limit, overlap_limit, &faces))
        return 1;
    show(faces, &image);
    printf("%d faces in %s\n", (int)faces.size(), argv[3]);
    return argc == 5 && !write_picture(argv[4], image);
}
