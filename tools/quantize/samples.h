// The data that a model is calibrated and judged with.
#ifndef QUOLL_TOOLS_QUANTIZE_SAMPLES_H
#define QUOLL_TOOLS_QUANTIZE_SAMPLES_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/model_inputs.h"

namespace quoll {

// Inputs of a model by the names of their blobs.
typedef std::map<std::string, Mat> Blobs;

// Where samples come from; programs may bring their own. Functions are called by several threads.
class SampleSource {
public:
    virtual ~SampleSource() = default;
    virtual size_t count() const = 0;
    // Its name in messages: the file.
    virtual std::string name(size_t i) const = 0;
    // 0, or a negative code after a message in the log.
    virtual int read(size_t i, Blobs* inputs) const = 0;
    // The right class; -1: not known.
    virtual int label(size_t) const { return -1; }
    // The right answer, as text (see metric.h); false: not known.
    virtual bool truth(size_t i, std::string* text) const {
        *text = std::to_string(label(i));
        return label(i) >= 0;
    }
};

// How an image becomes an input: (pixel - mean) * norm by channel.
struct ImageForm {
    std::string pixel;              // RGB, BGR, GRAY, RGBA, BGRA; "": by the input's channels
    std::vector<float> mean, norm;  // none, one for all or one per channel
    int w = 0, h = 0;               // 0: the input's size, or the image's own where it says none
};
// "" or what is wrong with it.
std::string image_form_error(const ImageForm& form);

struct DataOptions {
    // Folders (with their subfolders), lists (.txt: one path per line, a label may follow), images,
    // .npy files; NAME=... for the input of that name, else for the model's first input. An array
    // with one axis more than the input, or with a larger batch, holds several samples.
    std::vector<std::string> data;
    std::map<std::string, ImageForm> forms;  // by input; "": of all others
    std::string labels;                      // a file of one number per line, in the data's order
    bool text_labels = false;                // its lines are text, which truth() gives
};

// Null after a message with what is wrong with the options; unreadable samples are found when they
// are read.
std::unique_ptr<SampleSource> open_samples(const std::vector<ModelInput>& inputs,
                                           const DataOptions& options);

// Lines of a text file, at least one. 0, or a negative code after a message.
int read_lines(const std::string& path, std::vector<std::string>* lines);

// Some samples of another source, which has to outlive this.
class SomeSamples : public SampleSource {
public:
    SomeSamples(const SampleSource& of, std::vector<size_t> which)
        : of_(of), which_(std::move(which)) {}
    size_t count() const override { return which_.size(); }
    std::string name(size_t i) const override { return of_.name(which_[i]); }
    int read(size_t i, Blobs* inputs) const override { return of_.read(which_[i], inputs); }
    int label(size_t i) const override { return of_.label(which_[i]); }
    bool truth(size_t i, std::string* text) const override { return of_.truth(which_[i], text); }

private:
    const SampleSource& of_;
    const std::vector<size_t> which_;
};

}  // namespace quoll

#endif
