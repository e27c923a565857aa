// Finds things in a picture and draws boxes: digits with models/digit_detector, the 80 kinds of
// COCO with FastestDet (https://github.com/dog-qiuqiu/FastestDet), whose outputs mean the same.
// Shows what surrounds a detector's net: a picture in, boxes from the cells of a grid, non-maximum
// suppression.
#include <math.h>
#include <quoll/image.h>
#include <quoll/net.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <vector>

#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>

namespace {

const int kSize = 352;  // the nets see 352 x 352 BGR pixels, 0 to 1

// Corners in parts of the picture's width and height.
struct Box {
    float x0, y0, x1, y1, score;
    int kind;
};

float sigmoid(float v) { return 1 / (1 + expf(-v)); }

// Each cell of the grid has in its channels: whether there is something, its centre and size, and
// how likely each kind is.
std::vector<Box> decode(const quoll::Mat& out, float least_score) {
    const int kFirstKind = 5, kinds = out.c - kFirstKind;
    std::vector<Box> boxes;
    for (int y = 0; y < out.h; y++)
        for (int x = 0; x < out.w; x++) {
            const auto at = [&](int channel) { return out.channel(channel).row(y)[x]; };
            int kind = 0;
            for (int k = 1; k < kinds; k++)
                if (at(kFirstKind + k) > at(kFirstKind + kind)) kind = k;
            const float score = powf(at(0), 0.6f) * powf(at(kFirstKind + kind), 0.4f);
            if (score < least_score) continue;
            const float cx = (tanhf(at(1)) + x) / out.w, cy = (tanhf(at(2)) + y) / out.h;
            const float w = sigmoid(at(3)), h = sigmoid(at(4));
            boxes.push_back({cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, kind});
        }
    return boxes;
}

// Area of the intersection over area of the union.
float overlap(const Box& a, const Box& b) {
    const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0),
                h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (w <= 0 || h <= 0) return 0;
    return w * h / ((a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - w * h);
}

// The best box of each group of boxes that overlap.
std::vector<Box> suppress(std::vector<Box> boxes, float limit) {
    std::sort(boxes.begin(), boxes.end(),
              [](const Box& a, const Box& b) { return a.score > b.score; });
    std::vector<Box> kept;
    for (const Box& box : boxes)
        if (std::none_of(kept.begin(), kept.end(),
                         [&](const Box& k) { return overlap(k, box) > limit; }))
            kept.push_back(box);
    return kept;
}

// stbi_write_png does not say when a disk is full.
bool write_png(const char* path, const unsigned char* rgb, int w, int h) {
    std::vector<unsigned char> png;
    const auto append = [](void* to, void* data, int size) {
        std::vector<unsigned char>* bytes = (std::vector<unsigned char>*)to;
        bytes->insert(bytes->end(), (unsigned char*)data, (unsigned char*)data + size);
    };
    FILE* const fp =
        stbi_write_png_to_func(append, &png, w, h, 3, rgb, w * 3) ? fopen(path, "wb") : nullptr;
    const bool all = fp && fwrite(png.data(), 1, png.size(), fp) == png.size();
    return fp && fclose(fp) == 0 && all;
}

}  // namespace

int main(int argc, char** argv) {
    const char* const usage = "usage: detector MODEL.param MODEL.bin PHOTO [OUT.png]\n";
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return fputs(usage, stdout) < 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return printf("quoll %s\n", QUOLL_VERSION_STRING) < 0;
    if (argc != 4 && argc != 5) {
        fputs(usage, stderr);
        return 2;
    }
    quoll::Net net;
    if (net.load_param(argv[1]) || net.load_model(argv[2])) return 1;  // stderr says why

    int w, h, channels;
    unsigned char* rgb = stbi_load(argv[3], &w, &h, &channels, 3);
    if (!rgb) {
        fprintf(stderr, "%s: %s\n", argv[3], stbi_failure_reason());
        return 1;
    }
    quoll::Mat in =
        quoll::Mat::from_pixels_resize(rgb, quoll::Mat::PIXEL_RGB2BGR, w, h, kSize, kSize);
    const float norm[3] = {1 / 255.f, 1 / 255.f, 1 / 255.f};
    in.substract_mean_normalize(nullptr, norm);

    quoll::Extractor ex = net.create_extractor();
    quoll::Mat out;
    if (ex.input(net.input_indexes()[0], in) || ex.extract(net.output_indexes()[0], out)) return 1;
    if (out.dims != 3 || out.c < 6) {
        fprintf(stderr,
                "%s: the output is no grid of a score, a box and kinds: it has %d dimensions and "
                "%d channels\n",
                argv[1], out.dims, out.c);
        return 1;
    }

    for (const Box& box : suppress(decode(out, 0.6f), 0.45f)) {
        const int x0 = (int)(std::max(box.x0, 0.f) * w), x1 = (int)(std::min(box.x1, 1.f) * w);
        const int y0 = (int)(std::max(box.y0, 0.f) * h), y1 = (int)(std::min(box.y1, 1.f) * h);
        printf("kind %d at %d,%d size %dx%d score %.3f\n", box.kind, x0, y0, x1 - x0, y1 - y0,
               box.score);
        quoll::draw_rectangle_c3(rgb, w, h, x0, y0, x1 - x0, y1 - y0, 0x00ff00,
                                 std::max(2, w / 300));
    }
    const bool written = argc < 5 || write_png(argv[4], rgb, w, h);
    if (!written) fprintf(stderr, "%s: cannot be written\n", argv[4]);
    stbi_image_free(rgb);
    return written ? 0 : 1;
}
