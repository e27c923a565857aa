// Draws the joints of a person with any net that gives a heat map for each of COCO's 17 key points,
// such as SimpleBaseline and HRNet of mmpose or torchvision-style exports, converted by
// onnx2engine. The picture should show one person, upright, and little else.
#include <algorithm>

#include <quoll/image.h>
#include <quoll/net.h>
#include "picture.h"
#include "usage.h"

using namespace quoll;

namespace {

const char kUsage[] =
    "pose MODEL.param MODEL.bin PHOTO OUT.png [--size WxH] [--least SCORE] [--gpu N]: joints of a "
    "person\n"
    "  --size WxH     of the net's input; default 192x256. Pixels are normalised as in "
    "torchvision\n"
    "  --least SCORE  of the joints that are drawn; default 0.3\n";

// In the order of COCO: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles, the left
// one first.
const int kBones[][2] = {{5, 7},   {7, 9},   {6, 8},   {8, 10},  {5, 6}, {5, 11}, {6, 12}, {11, 12},
                         {11, 13}, {13, 15}, {12, 14}, {14, 16}, {0, 1}, {0, 2},  {1, 3},  {2, 4}};

struct Joint {
    float x, y, score;  // in parts of the picture
};

float quarter(float slope) { return slope > 0 ? 0.25f : slope < 0 ? -0.25f : 0; }

// The largest value of a heat map, a quarter of a cell towards the larger neighbour on each axis
// (Newell et al., 2016).
Joint peak(const Mat& map) {
    int at_x = 0, at_y = 0;
    for (int y = 0; y < map.h; y++)
        for (int x = 0; x < map.w; x++)
            if (map.row(y)[x] > map.row(at_y)[at_x]) at_x = x, at_y = y;
    const float* row = map.row(at_y);
    const bool inner_x = at_x > 0 && at_x + 1 < map.w, inner_y = at_y > 0 && at_y + 1 < map.h;
    const float dx = inner_x ? quarter(row[at_x + 1] - row[at_x - 1]) : 0;
    const float dy = inner_y ? quarter(map.row(at_y + 1)[at_x] - map.row(at_y - 1)[at_x]) : 0;
    const Joint joint = {(at_x + 0.5f + dx) / map.w, (at_y + 0.5f + dy) / map.h,
                         map.row(at_y)[at_x]};
    return joint;
}

}  // namespace

int main(int argc, char** argv) {
    int w = 0, h = 0, code;
    const char* size = take_option("--size", &argc, argv, "192x256");
    const float least = (float)atof(take_option("--least", &argc, argv, "0.3"));
    const char* gpu = take_option("--gpu", &argc, argv);
    const bool good = argc == 5 && sscanf(size, "%dx%d", &w, &h) == 2 && w > 0 && h > 0;
    if (usage(argc, argv, good, kUsage, &code)) return code;
    Net net;
    Picture photo;
    if (!use_gpu(gpu, &net) || net.load_param(argv[1]) || net.load_model(argv[2]) ||
        !read_picture(argv[3], &photo))
        return 1;
    Mat in = Mat::from_pixels_resize(photo.rgb.data(), Mat::PIXEL_RGB, photo.w, photo.h, w, h),
        maps;
    const float mean[3] = {123.675f, 116.28f, 103.53f};
    const float norm[3] = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f};
    in.substract_mean_normalize(mean, norm);
    Extractor ex = net.create_extractor();
    if (ex.input(net.input_indexes()[0], in) || ex.extract(net.output_indexes()[0], maps)) return 1;
    if (maps.dims != 3 || maps.c != 17) {
        fprintf(stderr, "%s: expected an output of (17, h, w): COCO's key points\n", argv[1]);
        return 1;
    }
    Joint joints[17];
    for (int k = 0; k < 17; k++) {
        joints[k] = peak(maps.channel(k));
        printf("joint %d at %.1f,%.1f score %.3f\n", k, joints[k].x * photo.w,
               joints[k].y * photo.h, joints[k].score);
    }
    unsigned char* rgb = photo.rgb.data();
    const int thick = std::max(2, photo.w / 200);
    const auto x_of = [&](int k) { return (int)(joints[k].x * photo.w); };
    const auto y_of = [&](int k) { return (int)(joints[k].y * photo.h); };
    for (const auto& bone : kBones) {
        const int a = bone[0], b = bone[1];
        if (std::min(joints[a].score, joints[b].score) >= least)
            draw_line_c3(rgb, photo.w, photo.h, x_of(a), y_of(a), x_of(b), y_of(b), 0x00ff00,
                         thick);
    }
    for (int k = 0; k < 17; k++)
        if (joints[k].score >= least)
            draw_circle_c3(rgb, photo.w, photo.h, x_of(k), y_of(k), 2 * thick, 0x0000ff, -1);
    return !write_picture(argv[4], photo);
}
