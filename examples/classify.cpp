// Classifies a picture, or each cell of a sheet of pictures, and draws the labels on it.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <quoll/image.h>
#include <quoll/net.h>
#include "picture.h"
#include "usage.h"

using namespace quoll;

namespace {

const char kUsage[] =
    "classify MODEL.param MODEL.bin PICTURE [options]: classes of a picture, the likeliest first\n"
    "  --mean M[,M,M]  subtracted from each channel's 0..255; default 0\n"
    "  --norm N[,N,N]  then multiplied with it; default 0.003921569, which is 1/255\n"
    "  --order RGB     channels of a model that takes three: RGB (default) or BGR\n"
    "  --names FILE    the name of each class, one a line; default: its number\n"
    "  --top N         classes to print; default 3\n"
    "  --grid N        the picture is a sheet of square cells of N pixels: a class for each of "
    "them\n"
    "  --labels FILE   with --grid: the right class number of each cell, row by row\n"
    "  --out FILE.png  the picture with the labels on it\n"
    "  --gpu N         Vulkan device that runs the layers that it can; default: the CPU\n";

struct Guess {
    int label;
    float score;
};

// The model, and how it wants its input.
struct Classifier {
    Net net;
    Shape input;  // w, h and 1 or 3 channels
    float mean[3], norm[3];
    bool bgr;
    std::vector<std::string> names;

    std::string name(int label) const {
        return label < (int)names.size() ? names[label] : std::to_string(label);
    }
};

// One number for all three, or three with commas.
bool read_three(const char* option, const char* text, float* values) {
    const int count = sscanf(text, "%f,%f,%f", &values[0], &values[1], &values[2]);
    if (count == 1) values[1] = values[2] = values[0];
    if (count == 1 || count == 3) return true;
    fprintf(stderr, "%s %s: expected one number, or three with commas\n", option, text);
    return false;
}

bool read_lines(const char* path, std::vector<std::string>* lines) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines->push_back(line);
    if (!lines->empty()) return true;
    fprintf(stderr, "%s has no lines, or cannot be read\n", path);
    return false;
}

bool read_labels(const char* path, std::vector<int>* labels) {
    std::ifstream file(path);
    for (int label; file >> label;) labels->push_back(label);
    if (file.eof() && !labels->empty()) return true;
    fprintf(stderr, "%s: expected class numbers separated by blanks\n", path);
    return false;
}

// The Input layer says the size of the pictures.
bool load(const char* param, const char* bin, Classifier* classifier) {
    Net& net = classifier->net;
    if (net.load_param(param) || net.load_model(bin)) return false;
    if (net.input_indexes().size() != 1 || net.output_indexes().empty()) {
        fprintf(stderr, "%s: expected one input and an output\n", param);
        return false;
    }
    std::vector<Shape> shapes;
    const Layer* input = net.layers()[net.blobs()[net.input_indexes()[0]].producer];
    if (input->infer_shapes(std::vector<Shape>(), shapes)) return false;
    classifier->input = shapes[0];
    if (shapes[0].dims == 3 && (shapes[0].c == 1 || shapes[0].c == 3)) return true;
    fprintf(stderr, "%s: expected an input of a size that it says, with 1 or 3 channels\n", param);
    return false;
}

// The classes of the part of w x h pixels at (x, y), the likeliest first; none after a message.
std::vector<Guess> classify(const Classifier& classifier, const Picture& picture, int x, int y,
                            int w, int h) {
    const int type = classifier.input.c == 1 ? (int)Mat::PIXEL_RGB2GRAY
                     : classifier.bgr        ? (int)Mat::PIXEL_RGB2BGR
                                             : (int)Mat::PIXEL_RGB;
    Mat in = Mat::from_pixels_roi_resize(picture.rgb.data(), type, picture.w, picture.h, x, y, w, h,
                                         classifier.input.w, classifier.input.h);
    in.substract_mean_normalize(classifier.mean, classifier.norm);
    Mat out, scores;
    Extractor ex = classifier.net.create_extractor();
    std::vector<Guess> guesses;
    if (ex.input(classifier.net.input_indexes()[0], in) ||
        ex.extract(classifier.net.output_indexes()[0], out))
        return guesses;
    flatten(out, scores);
    for (int i = 0; i < scores.w; i++) guesses.push_back({i, scores[i]});
    std::stable_sort(guesses.begin(), guesses.end(),
                     [](const Guess& p, const Guess& q) { return p.score > q.score; });
    return guesses;
}

bool classify_picture(const Classifier& classifier, int top, Picture* picture) {
    const std::vector<Guess> guesses = classify(classifier, *picture, 0, 0, picture->w, picture->h);
    const int margin = std::max(1, picture->h / 200), font = 6 * margin;
    for (int i = 0; i < std::min((int)guesses.size(), top); i++) {
        char text[160];
        snprintf(text, sizeof(text), "%s %.4f", classifier.name(guesses[i].label).c_str(),
                 guesses[i].score);
        printf("%s\n", text);
        unsigned char* pixels = picture->rgb.data();
        int w = 0, h = 0;
        get_text_drawing_size(text, font, &w, &h);
        draw_rectangle_c3(pixels, picture->w, picture->h, 0, i * h, w + 2 * margin, h, 0, -1);
        draw_text_c3(pixels, picture->w, picture->h, text, margin, i * h, font, 0xffffff);
    }
    return !guesses.empty();
}

// The sheet with each pixel `scale` times as large, as a canvas for the labels.
Picture enlarge(const Picture& picture, int scale) {
    Picture large = {picture.w * scale, picture.h * scale, {}};
    large.rgb.resize((size_t)large.w * large.h * 3);
    for (int y = 0; y < large.h; y++)
        for (int x = 0; x < large.w; x++)
            std::copy_n(&picture.rgb[((size_t)(y / scale) * picture.w + x / scale) * 3], 3,
                        &large.rgb[((size_t)y * large.w + x) * 3]);
    return large;
}

// How much larger: cells of 96 pixels, of a canvas that takes at most 200 MB.
int canvas_scale(const Picture& picture, int cell) {
    int scale = std::max(1, 96 / cell);
    while (scale > 1 && (double)picture.w * picture.h * scale * scale > 0x1p26) scale--;
    return scale;
}

// draw: whether the picture becomes the canvas.
bool classify_sheet(const Classifier& classifier, int cell, const std::vector<int>& labels,
                    bool draw, Picture* picture) {
    const int columns = picture->w / cell, rows = picture->h / cell, cells = columns * rows;
    if (cells == 0 || (!labels.empty() && (int)labels.size() != cells)) {
        fprintf(stderr, "a sheet of %d x %d pixels has %d cells of %d; there are %d labels\n",
                picture->w, picture->h, cells, cell, (int)labels.size());
        return false;
    }
    const int scale = canvas_scale(*picture, cell), side = cell * scale;
    Picture canvas = {};
    if (draw) canvas = enlarge(*picture, scale);
    int right = 0;
    for (int i = 0; i < cells; i++) {
        const int x = i % columns, y = i / columns;
        const std::vector<Guess> guesses =
            classify(classifier, *picture, x * cell, y * cell, cell, cell);
        if (guesses.empty()) return false;
        const bool wrong = !labels.empty() && labels[i] != guesses[0].label;
        right += !wrong;
        const std::string name = classifier.name(guesses[0].label);
        printf("%s%s%s", wrong ? "!" : " ", name.c_str(), x + 1 < columns ? " " : "\n");
        if (!draw) continue;
        unsigned char* pixels = canvas.rgb.data();  // colours are 0xBBGGRR
        draw_rectangle_c3(pixels, canvas.w, canvas.h, x * side, y * side, side - 1, side - 1,
                          0x404040, 1);
        draw_text_c3(pixels, canvas.w, canvas.h, name.c_str(), x * side + 3, y * side + 3, 10,
                     wrong ? 0x4040ff : 0x40ff40);
    }
    if (!labels.empty())
        printf("%d of %d cells right (%.1f %%); '!' marks the others\n", right, cells,
               100.0 * right / cells);
    if (draw) *picture = canvas;
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    Classifier classifier;
    std::vector<int> labels;
    Picture picture;
    const char* mean = take_option("--mean", &argc, argv, "0");
    const char* norm = take_option("--norm", &argc, argv, "0.003921569");
    const std::string order = take_option("--order", &argc, argv, "RGB");
    const char* names = take_option("--names", &argc, argv);
    const int top = atoi(take_option("--top", &argc, argv, "3"));
    const int cell = atoi(take_option("--grid", &argc, argv, "0"));
    const char* labels_file = take_option("--labels", &argc, argv);
    const char* out = take_option("--out", &argc, argv);
    const char* gpu = take_option("--gpu", &argc, argv);
    classifier.bgr = order == "BGR";
    int code;
    const bool good = argc == 4 && top > 0 && cell >= 0 && (order == "RGB" || order == "BGR");
    if (usage(argc, argv, good, kUsage, &code)) return code;
    if (!read_three("--mean", mean, classifier.mean) ||
        !read_three("--norm", norm, classifier.norm) || !use_gpu(gpu, &classifier.net) ||
        !load(argv[1], argv[2], &classifier) || (names && !read_lines(names, &classifier.names)) ||
        (labels_file && !read_labels(labels_file, &labels)) || !read_picture(argv[3], &picture))
        return 1;
    if (!(cell ? classify_sheet(classifier, cell, labels, out != nullptr, &picture)
               : classify_picture(classifier, top, &picture)))
        return 1;
    return out && !write_picture(out, picture);
}
