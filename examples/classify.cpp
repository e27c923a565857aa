// Classifies a picture, or every cell of a sheet of pictures, and draws the labels on it.
#include <stdio.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <quoll/image.h>
#include <quoll/log.h>
#include <quoll/net.h>
#include "common/cli.h"
#include "common/image_file.h"
#include "common/run_options.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string param, bin, image;
    std::string names, labels, out;
    std::vector<float> mean = {0.f}, norm = {1.f / 255.f};
    int grid = 0, top = 3;
    bool bgr = false;
    RunOptions run;  // --gpu
};

struct Guess {
    int label;
    float score;
};

// The model, and how it wants its input.
struct Classifier {
    Net net;
    Shape input;  // w, h and 1 or 3 channels
    const Arguments* args;
    std::vector<std::string> names;

    std::string name(int label) const {
        return label < (int)names.size() ? names[label] : std::to_string(label);
    }
};

void add_options(CommandLine* line, Arguments* a) {
    line->option("MODEL.param", a->param, "a net with one input of 1 or 3 channels").required();
    line->option("MODEL.bin", a->bin, "its weights").required();
    line->option("IMAGE", a->image, "JPEG, PNG, BMP, ...").required();
    line->option("--names", a->names, "text file: the name of each class, one a line");
    line->option("--mean", a->mean,
                 "subtracted from each channel's 0..255 (one value, or one a channel)")
        .separated_by(',');
    line->option("--norm", a->norm, "then multiplied with it; default 1/255").separated_by(',');
    line->flag("--bgr", a->bgr, "channels in the order blue, green, red");
    line->option("--top", a->top, "labels to print for one picture").between(1, 1000);
    line->option("--grid", a->grid, "the image is a sheet of square cells of N pixels")
        .between(1, 4096);
    line->option("--labels", a->labels,
                 "text file: the true class number of each cell, row by row");
    line->option("--out", a->out, "PNG to write: the image with the labels on it");
    a->run.add_gpu_to(line);
}

int read_lines(const std::string& path, std::vector<std::string>* lines) {
    std::ifstream file(path);
    if (!file) {
        QUOLL_LOGE("%s cannot be opened", path.c_str());
        return -1;
    }
    for (std::string line; std::getline(file, line);) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        lines->push_back(line);
    }
    return 0;
}

int read_labels(const std::string& path, std::vector<int>* labels) {
    std::ifstream file(path);
    for (int label; file >> label;) labels->push_back(label);
    if (file.eof() && !labels->empty()) return 0;
    QUOLL_LOGE("%s: expected class numbers separated by blanks", path.c_str());
    return -1;
}

// The Input layer says the size of the pictures.
int load(const Arguments& a, Classifier* classifier) {
    Net& net = classifier->net;
    classifier->args = &a;
    std::string why;
    if (a.run.apply_gpu(&net, &why)) {
        QUOLL_LOGE("%s", why.c_str());
        return -1;
    }
    if (net.load_param(a.param.c_str()) || net.load_model(a.bin.c_str())) return -1;
    if (!a.names.empty() && read_lines(a.names, &classifier->names)) return -1;
    if (net.input_indexes().size() != 1 || net.output_indexes().empty()) {
        QUOLL_LOGE("%s: expected one input and an output", a.param.c_str());
        return -1;
    }
    std::vector<Shape> shapes;
    const Blob& blob = net.blobs()[net.input_indexes()[0]];
    if (net.layers()[blob.producer]->infer_shapes({}, shapes)) return -1;
    classifier->input = shapes[0];
    if (shapes[0].dims != 3 || (shapes[0].c != 1 && shapes[0].c != 3)) {
        QUOLL_LOGE("%s: input %s: expected a size of three axes with 1 or 3 channels",
                   a.param.c_str(), blob.name.c_str());
        return -1;
    }
    return 0;
}

int widen(const std::vector<float>& values, int channels, const char* option, float* out) {
    if (values.size() != 1 && values.size() != (size_t)channels) {
        QUOLL_LOGE("--%s: expected 1 or %d values, got %zu", option, channels, values.size());
        return -1;
    }
    for (int i = 0; i < channels; i++) out[i] = values[values.size() == 1 ? 0 : i];
    return 0;
}

// The classes of the picture at (x, y) of w x h pixels, the likeliest first.
int classify(const Classifier& classifier, const Image& image, int x, int y, int w, int h,
             std::vector<Guess>* guesses) {
    const Arguments& a = *classifier.args;
    const int type = classifier.input.c == 1 ? (int)Mat::PIXEL_RGB2GRAY
                     : a.bgr                 ? (int)Mat::PIXEL_RGB2BGR
                                             : (int)Mat::PIXEL_RGB;
    Mat in = Mat::from_pixels_roi_resize(image.rgb.data(), type, image.w, image.h, x, y, w, h,
                                         classifier.input.w, classifier.input.h);
    if (in.empty()) return -1;
    float mean[3], norm[3];
    if (widen(a.mean, in.c, "mean", mean) || widen(a.norm, in.c, "norm", norm)) return -1;
    in.substract_mean_normalize(mean, norm);

    Mat out, scores;
    Extractor ex = classifier.net.create_extractor();
    if (ex.input(classifier.net.input_indexes()[0], in) ||
        ex.extract(classifier.net.output_indexes()[0], out))
        return -1;
    flatten(out, scores);
    guesses->clear();
    for (int i = 0; i < scores.w; i++) guesses->push_back({i, scores[i]});
    std::stable_sort(guesses->begin(), guesses->end(),
                     [](const Guess& p, const Guess& q) { return p.score > q.score; });
    return 0;
}

int classify_picture(const Classifier& classifier, Image* image) {
    std::vector<Guess> guesses;
    if (classify(classifier, *image, 0, 0, image->w, image->h, &guesses)) return -1;
    const int margin = std::max(1, image->h / 200), font = 6 * margin;
    const int count = std::min((int)guesses.size(), classifier.args->top);
    for (int i = 0; i < count; i++) {
        char text[160];
        snprintf(text, sizeof(text), "%s %.4f", classifier.name(guesses[i].label).c_str(),
                 guesses[i].score);
        printf("%s\n", text);
        unsigned char* pixels = image->rgb.data();
        int w = 0, h = 0;
        get_text_drawing_size(text, font, &w, &h);
        draw_rectangle_c3(pixels, image->w, image->h, 0, i * h, w + 2 * margin, h, 0, -1);
        draw_text_c3(pixels, image->w, image->h, text, margin, i * h, font, 0xffffff);
    }
    return 0;
}

// The sheet with each cell `scale` times as large, as a canvas for the labels.
Image enlarge(const Image& image, int scale) {
    Image large;
    large.w = image.w * scale, large.h = image.h * scale;
    large.rgb.resize((size_t)large.w * large.h * 3);
    for (int y = 0; y < large.h; y++)
        for (int x = 0; x < large.w; x++)
            std::copy_n(&image.rgb[((size_t)(y / scale) * image.w + x / scale) * 3], 3,
                        &large.rgb[((size_t)y * large.w + x) * 3]);
    return large;
}

int classify_sheet(const Classifier& classifier, Image* image) {
    const int cell = classifier.args->grid;
    const int columns = image->w / cell, rows = image->h / cell, cells = columns * rows;
    if (cells == 0) {
        QUOLL_LOGE("an image of %d x %d pixels has no cell of %d", image->w, image->h, cell);
        return -1;
    }
    std::vector<int> labels;
    if (!classifier.args->labels.empty() && read_labels(classifier.args->labels, &labels))
        return -1;
    if (!labels.empty() && (int)labels.size() != cells) {
        QUOLL_LOGE("the sheet has %d x %d cells, but there are %zu labels", columns, rows,
                   labels.size());
        return -1;
    }
    const int scale = std::max(1, 96 / cell), side = cell * scale;
    Image canvas = enlarge(*image, scale);
    int right = 0;
    for (int i = 0; i < cells; i++) {
        const int x = i % columns, y = i / columns;
        std::vector<Guess> guesses;
        if (classify(classifier, *image, x * cell, y * cell, cell, cell, &guesses)) return -1;
        const bool wrong = !labels.empty() && labels[i] != guesses[0].label;
        right += !wrong;
        const std::string name = classifier.name(guesses[0].label);
        printf("%s%s%s", wrong ? "!" : " ", name.c_str(), x + 1 < columns ? " " : "\n");
        unsigned char* pixels = canvas.rgb.data();  // colours are 0xBBGGRR
        draw_rectangle_c3(pixels, canvas.w, canvas.h, x * side, y * side, side - 1, side - 1,
                          0x404040, 1);
        draw_text_c3(pixels, canvas.w, canvas.h, name.c_str(), x * side + 3, y * side + 3, 10,
                     wrong ? 0x4040ff : 0x40ff40);
    }
    if (!labels.empty())
        printf("%d of %d cells right (%.1f %%); '!' marks the others\n", right, cells,
               100.0 * right / cells);
    *image = canvas;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Classifies a picture, or every cell of a sheet.", "classify");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    Classifier classifier;
    Image image;
    if (load(a, &classifier)) return log.fail("classify", "");
    if (read_image(a.image, &image)) return log.fail("classify", "");
    if (a.grid ? classify_sheet(classifier, &image) : classify_picture(classifier, &image))
        return log.fail("classify", "");
    if (!a.out.empty() && write_png(a.out, image, {a.param, a.bin, a.image, a.names, a.labels}))
        return log.fail("classify", "");
    return 0;
}
