#include "quantize/samples.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <mutex>

#include "common/image_file.h"
#include "common/model_files.h"
#include "common/npy.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

const char* const kImageEnds[] = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tga", ".gif"};

struct PixelType {
    const char* name;
    int type, channels;
};
const PixelType kPixels[] = {{"RGB", Mat::PIXEL_RGB, 3},
                             {"BGR", Mat::PIXEL_RGB2BGR, 3},
                             {"GRAY", Mat::PIXEL_RGB2GRAY, 1},
                             {"RGBA", Mat::PIXEL_RGB2RGBA, 4},
                             {"BGRA", Mat::PIXEL_RGB2BGRA, 4}};

const PixelType* find_pixel(const std::string& name) {
    for (const PixelType& p : kPixels)
        if (name == p.name) return &p;
    return nullptr;
}

std::string lower(std::string text) {
    for (char& ch : text) ch = (char)tolower((unsigned char)ch);
    return text;
}

bool is_image(const std::string& path) {
    const std::string name = lower(path);
    return std::any_of(std::begin(kImageEnds), std::end(kImageEnds),
                       [&](const char* end) { return ends_with(name, end); });
}

struct Item {
    std::string path;
    int batch;  // item of an array of several; -1: all of the file
    int label;
};

std::string name_of(const Item& item) {
    return item.path + (item.batch < 0 ? "" : "[" + std::to_string(item.batch) + "]");
}

// The samples of one input.
struct InputData {
    ModelInput input;
    ImageForm form;
    std::vector<Item> items;
    std::map<std::string, Mat> arrays;  // those with several samples
};

bool is_folder(const std::string& path) {
    struct stat st;
    return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}
bool is_there(const std::string& path) {
    struct stat st;
    return stat(path.c_str(), &st) == 0;
}

// True of one sample whose first axis has the size that the model fixes: states of two layers, say.
bool is_one_sample(const Mat& m, const ModelInput& input) {
    return m.n <= 1 || (input.array.said() && input.array.size(0) == m.n);
}

// Arrays of more axes, or of more items, than the input has become batches.
int read_array(const std::string& path, const ModelInput& input, Mat* m) {
    if (input.array.said()) {
        TensorSpec array = input.array;
        if (array.batch && array.size(0) > 0) {
            array.sizes = array.sizes.clone();
            ((int*)array.sizes.data)[0] = -1;
        }
        return read_npy(path, array, m);
    }
    const int dims = input.size.dims;
    if (dims > 0) {
        const LogMute mute;
        if (read_npy(path, false, m) == kOk && m->dims <= dims) return kOk;
    }
    return read_npy(path, dims > 0, m);
}

class Reader {
public:
    explicit Reader(InputData* data) : data_(data) {}

    int add(const std::string& path) {
        if (is_folder(path)) return add_folder(path);
        if (ends_with(path, ".txt")) return add_list(path);
        if (!is_there(path)) {
            QUOLL_LOGE("%s cannot be read: %s", path.c_str(), strerror(errno));
            return kError;
        }
        return add_file(path, -1);
    }

private:
    int add_file(const std::string& path, int label) {
        Item item = {path, -1, label};
        if (ends_with(path, ".npy")) {
            Mat m;
            // What cannot be read is told when its turn comes.
            {
                const LogMute mute;
                if (read_array(path, data_->input, &m)) m = Mat();
            }
            const bool one = is_one_sample(m, data_->input);
            for (int n = 0; !one && n < m.n; n++) {
                item.batch = n;
                data_->items.push_back(item);
            }
            if (!one) return data_->arrays[path] = m, kOk;
        }
        data_->items.push_back(item);
        return kOk;
    }

    int add_folder(const std::string& path) {
        std::vector<std::string> names;
        DIR* const dir = opendir(path.c_str());
        if (!dir) {
            QUOLL_LOGE("%s cannot be read: %s", path.c_str(), strerror(errno));
            return kError;
        }
        while (const struct dirent* entry = readdir(dir))
            if (entry->d_name[0] != '.') names.push_back(path + "/" + entry->d_name);
        closedir(dir);
        std::sort(names.begin(), names.end());
        const size_t before = data_->items.size();
        for (const std::string& name : names) {
            if (is_folder(name)) {
                // Links may lead back: folders do not go on for ever.
                if (std::count(name.begin(), name.end(), '/') < 60) (void)add_folder(name);
            } else if (is_image(name) || ends_with(name, ".npy")) {
                QUOLL_RETURN_IF_ERROR(add_file(name, -1));
            }
        }
        if (data_->items.size() > before) return kOk;
        QUOLL_LOGE("%s: no images and no .npy files in this folder", path.c_str());
        return kError;
    }

    int add_list(const std::string& path) {
        std::ifstream file(path);
        if (!file) {
            QUOLL_LOGE("%s cannot be read: %s", path.c_str(), strerror(errno));
            return kError;
        }
        const size_t slash = path.rfind('/');
        const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
        std::string line;
        while (std::getline(file, line)) {
            while (!line.empty() && isspace((unsigned char)line.back())) line.pop_back();
            if (line.empty() || line[0] == '#') continue;
            int label = -1;
            const size_t space = line.find_last_of(" \t");
            if (!exists(line, folder) && space != std::string::npos) {
                char* end = nullptr;
                const long v = strtol(line.c_str() + space + 1, &end, 10);
                if (*end == '\0' && v >= 0 && v < (1 << 24)) {
                    label = (int)v;
                    line.resize(space);
                }
            }
            const bool beside = !is_there(line) && line[0] != '/' && is_there(folder + line);
            QUOLL_RETURN_IF_ERROR(add_file(beside ? folder + line : line, label));
        }
        return kOk;
    }
    static bool exists(const std::string& line, const std::string& folder) {
        return is_there(line) || is_there(folder + line);
    }

    InputData* const data_;
};

int read_picture(const InputData& data, const std::string& path, Mat* m) {
    Image image;
    QUOLL_RETURN_IF_ERROR(read_image(path, &image));
    const Shape& size = data.input.size;
    const int channels = size.dims == 3 ? size.c : size.dims > 0 ? 1 : 3;
    const char* by_channels = channels == 1 ? "GRAY" : channels == 4 ? "RGBA" : "RGB";
    const PixelType* pixel = find_pixel(data.form.pixel.empty() ? by_channels : data.form.pixel);
    const bool sized = size.dims >= 2 && size.w > 0 && size.h > 0;
    const int w = data.form.w ? data.form.w : sized ? size.w : image.w;
    const int h = data.form.h ? data.form.h : sized ? size.h : image.h;
    if (size.dims == 3 && size.c > 0 && size.c != pixel->channels) {
        QUOLL_LOGE("[image %s] --pixel %s has %d channels, input '%s' %d", path.c_str(),
                   pixel->name, pixel->channels, data.input.name.c_str(), size.c);
        return kError;
    }
    *m = Mat::from_pixels_resize(image.rgb.data(), pixel->type, image.w, image.h, w, h);
    if (m->empty()) {
        QUOLL_LOGE("[image %s] out of memory", path.c_str());
        return kOutOfMemory;
    }
    const auto values = [&](const std::vector<float>& given) {
        return std::vector<float>(given.size() == 1 ? std::vector<float>(4, given[0]) : given);
    };
    const std::vector<float> mean = values(data.form.mean), norm = values(data.form.norm);
    if ((!mean.empty() && (int)mean.size() < pixel->channels) ||
        (!norm.empty() && (int)norm.size() < pixel->channels)) {
        QUOLL_LOGE("[image %s] --mean or --norm: expected 1 or %d values", path.c_str(),
                   pixel->channels);
        return kError;
    }
    m->substract_mean_normalize(mean.empty() ? nullptr : mean.data(),
                                norm.empty() ? nullptr : norm.data());
    return kOk;
}

class FileSamples : public SampleSource {
public:
    std::vector<InputData> data;
    std::vector<int> labels;
    std::vector<std::string> truths;

    size_t count() const override { return data[0].items.size(); }
    std::string name(size_t i) const override { return name_of(data[0].items[i]); }
    int label(size_t i) const override {
        return i < labels.size() ? labels[i] : data[0].items[i].label;
    }
    bool truth(size_t i, std::string* text) const override {
        if (truths.empty()) return SampleSource::truth(i, text);
        *text = truths[i];
        return true;
    }
    int read(size_t i, Blobs* inputs) const override {
        for (const InputData& d : data) {
            const Item& item = d.items[i];
            Mat m;
            if (item.batch >= 0)
                m = d.arrays.at(item.path).batch(item.batch).clone();
            else if (ends_with(item.path, ".npy"))
                QUOLL_RETURN_IF_ERROR(read_array(item.path, d.input, &m));
            else
                QUOLL_RETURN_IF_ERROR(read_picture(d, item.path, &m));
            QUOLL_RETURN_IF_ERROR(check(d, item, m));
            (*inputs)[d.input.name] = m;
        }
        return kOk;
    }

private:
    static int check(const InputData& d, const Item& item, const Mat& m) {
        if (m.empty()) {
            QUOLL_LOGE("%s: no values, or no memory for them", name_of(item).c_str());
            return kError;
        }
        if (m.dtype != DType::f32) return kOk;
        for (int q = 0; q < m.c; q++) {
            const float* p = m.channel(q);
            for (size_t i = 0; i < (size_t)m.w * m.h * m.d; i++) {
                if (std::isfinite(p[i])) continue;
                QUOLL_LOGE("%s: input '%s' has values that are NaN or infinite",
                           name_of(item).c_str(), d.input.name.c_str());
                return kError;
            }
        }
        return kOk;
    }
};

int read_labels(const std::string& path, std::vector<int>* labels) {
    std::ifstream file(path);
    if (!file) {
        QUOLL_LOGE("%s cannot be read: %s", path.c_str(), strerror(errno));
        return kError;
    }
    std::string word;
    while (file >> word) {
        char* end = nullptr;
        const long v = strtol(word.c_str(), &end, 10);
        if (*end != '\0' || v < 0 || v > (1 << 24)) {
            QUOLL_LOGE("%s: '%s' is no label: expected whole numbers from 0 on", path.c_str(),
                       word.c_str());
            return kError;
        }
        labels->push_back((int)v);
    }
    return kOk;
}

// Which input a word of --data is for, and what is left of it.
InputData* input_of(const std::string& word, std::vector<InputData>* data, std::string* path) {
    for (InputData& d : *data) {
        const std::string start = d.input.name + "=";
        if (word.compare(0, start.size(), start) != 0) continue;
        *path = word.substr(start.size());
        return &d;
    }
    *path = word;
    return &(*data)[0];
}

}  // namespace

int read_lines(const std::string& path, std::vector<std::string>* lines) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        lines->push_back(line);
    }
    if (!file.bad() && !lines->empty()) return kOk;
    QUOLL_LOGE("%s cannot be read, or is empty", path.c_str());
    return kError;
}

std::string image_form_error(const ImageForm& form) {
    if (!form.pixel.empty() && !find_pixel(form.pixel))
        return "pixel '" + form.pixel + "': expected RGB, BGR, GRAY, RGBA or BGRA";
    for (const std::vector<float>* values : {&form.mean, &form.norm}) {
        if (values->size() != 2 && values->size() <= 4) continue;
        return std::to_string(values->size()) + " values of mean or norm: expected 1, 3 or 4";
    }
    return "";
}

std::unique_ptr<SampleSource> open_samples(const std::vector<ModelInput>& inputs,
                                           const DataOptions& options) {
    auto samples = std::make_unique<FileSamples>();
    if (inputs.empty()) {
        QUOLL_LOGE("the model has no inputs");
        return nullptr;
    }
    for (const ModelInput& input : inputs) {
        InputData d;
        d.input = input;
        const auto own = options.forms.find(input.name), other = options.forms.find("");
        if (own != options.forms.end())
            d.form = own->second;
        else if (other != options.forms.end())
            d.form = other->second;
        const std::string wrong = image_form_error(d.form);
        if (!wrong.empty()) {
            QUOLL_LOGE("%s", wrong.c_str());
            return nullptr;
        }
        samples->data.push_back(d);
    }
    for (const std::string& word : options.data) {
        std::string path;
        InputData* const d = input_of(word, &samples->data, &path);
        if (Reader(d).add(path)) return nullptr;
    }
    const size_t count = samples->count();
    if (count == 0) {
        QUOLL_LOGE("no samples of input '%s'", samples->data[0].input.name.c_str());
        return nullptr;
    }
    for (const InputData& d : samples->data) {
        if (d.items.size() == count) continue;
        QUOLL_LOGE("input '%s' has %zu samples, '%s' %zu", d.input.name.c_str(), d.items.size(),
                   samples->data[0].input.name.c_str(), count);
        return nullptr;
    }
    if (!options.labels.empty()) {
        const bool text = options.text_labels;
        if (text ? read_lines(options.labels, &samples->truths)
                 : read_labels(options.labels, &samples->labels))
            return nullptr;
        const size_t labels = text ? samples->truths.size() : samples->labels.size();
        if (labels != count) {
            QUOLL_LOGE("%s has %zu labels, there are %zu samples", options.labels.c_str(), labels,
                       count);
            return nullptr;
        }
    }
    return samples;
}

}  // namespace quoll
