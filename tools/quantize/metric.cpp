#include "quantize/metric.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "common/npy.h"
#include "common/process.h"
#include "common/temporary_folder.h"
#include "quantize/detection_metric.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

typedef std::vector<std::string> Words;

Words words_of(std::string text) {
    const std::string kWordStart = "\xe2\x96\x81";  // U+2581, of SentencePiece
    for (size_t at; (at = text.find(kWordStart)) != std::string::npos;)
        text.replace(at, kWordStart.size(), " ");
    std::replace(text.begin(), text.end(), '|', ' ');
    std::istringstream stream(text);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

// Levenshtein's distance, row by row.
size_t edits(const Words& from, const Words& to) {
    std::vector<size_t> row(to.size() + 1);
    for (size_t i = 0; i <= to.size(); i++) row[i] = i;
    for (size_t k = 1; k <= from.size(); k++) {
        size_t diagonal = row[0];
        row[0] = k;
        for (size_t i = 1; i <= to.size(); i++) {
            const size_t replaced = diagonal + (from[k - 1] != to[i - 1]);
            diagonal = row[i];
            row[i] = std::min({replaced, row[i] + 1, row[i - 1] + 1});
        }
    }
    return row[to.size()];
}

class WordErrors : public TaskMetric {
public:
    explicit WordErrors(const MetricOptions& options) : options_(options) {}

    int add(const std::string& sample, const std::string& truth,
            const std::vector<Mat>& outputs) override {
        const Mat scores = outputs.empty() ? Mat() : outputs[0];
        if (scores.empty() || scores.dtype != DType::f32 || scores.dims < 2) {
            QUOLL_LOGE("%s: metric wer takes a first output of rows of scores, got %d axes",
                       sample.c_str(), scores.dims);
            return kError;
        }
        const size_t classes = options_.tokens.size();
        if (classes > 0 && (size_t)scores.w != classes) {
            QUOLL_LOGE("%s: rows of %d scores, but %zu tokens", sample.c_str(), scores.w, classes);
            return kError;
        }
        const Words expected = words_of(truth);
        errors_ += edits(words_of(greedy_text(scores)), expected);
        words_ += expected.size();
        return kOk;
    }

    int value(double* value) override {
        *value = (double)errors_ / (double)std::max<size_t>(1, words_);
        return kOk;
    }
    bool less_is_better() const override { return true; }

private:
    std::string greedy_text(const Mat& scores) const {
        std::string text;
        int last = -1;
        for (int q = 0; q < scores.c; q++) {
            const float* p = scores.channel(q);
            for (int y = 0; y < scores.h * scores.d; y++, p += scores.w) {
                const int best = (int)(std::max_element(p, p + scores.w) - p);
                if (best != last && best != options_.blank)
                    text += options_.tokens.empty() ? " " + std::to_string(best)
                                                    : options_.tokens[(size_t)best];
                last = best;
            }
        }
        return text;
    }

    const MetricOptions options_;
    size_t errors_ = 0, words_ = 0;
};

class ProgramMetric : public TaskMetric {
public:
    explicit ProgramMetric(const std::string& program)
        : program_(program), folder_("enginequantize") {}

    int add(const std::string& sample, const std::string& truth,
            const std::vector<Mat>& outputs) override {
        if (!folder_.ok()) return kError;
        std::string line = one_line(sample) + "\t" + one_line(truth);
        for (size_t i = 0; i < outputs.size(); i++) {
            const std::string path =
                folder_.file(std::to_string(samples_) + "_" + std::to_string(i) + ".npy");
            QUOLL_RETURN_IF_ERROR(write_npy(path, outputs[i]));
            line += "\t" + path;
        }
        samples_++, lines_ += line + "\n";
        return kOk;
    }

    int value(double* value) override {
        if (!folder_.ok()) return kError;
        const std::string list = folder_.file("samples.txt"), said = folder_.file("said.txt");
        std::ofstream file(list, std::ios::binary);
        if (!(file << lines_) || !file.flush()) {
            QUOLL_LOGE("%s cannot be written", list.c_str());
            return kError;
        }
        const std::string path =
            program_.find('/') == std::string::npos ? "./" + program_ : program_;
        const int code = run_process({path, list}, said, "");
        if (code < 0) return kError;
        if (code > 0) {
            QUOLL_LOGE("metric %s: exit code %d", program_.c_str(), code);
            return kError;
        }
        const std::string text = last_line(said);
        char* end = nullptr;
        *value = strtod(text.c_str(), &end);
        while (isspace((unsigned char)*end)) end++;
        if (!text.empty() && end != text.c_str() && *end == '\0' && std::isfinite(*value))
            return kOk;
        QUOLL_LOGE("metric %s: expected a number as the last line that it prints, got '%s'",
                   program_.c_str(), text.substr(0, 100).c_str());
        return kError;
    }

private:
    static std::string one_line(std::string text) {
        for (char& ch : text)
            if (iscntrl((unsigned char)ch)) ch = ' ';
        return text;
    }

    const std::string program_;
    TemporaryFolder folder_;
    std::string lines_;
    size_t samples_ = 0;
};

const char* const kNames[] = {"cosine", "sqnr", "top1", "top5", "map50", "map", "wer"};

}  // namespace

bool is_metric_name(const std::string& name) {
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::string metric_names() {
    std::string names;
    for (const char* name : kNames) names += (names.empty() ? "" : "|") + std::string(name);
    return names;
}

std::unique_ptr<TaskMetric> make_metric(const MetricOptions& options) {
    if (options.name == "map" || options.name == "map50")
        return std::make_unique<DetectionMetric>(options.name == "map");
    if (options.name == "wer") return std::make_unique<WordErrors>(options);
    return std::make_unique<ProgramMetric>(options.name);
}

int check_truths(const MetricOptions& options, const SampleSource& samples) {
    const bool wanted = options.is_class_metric() || is_metric_name(options.name);
    for (size_t i = 0; i < samples.count() && wanted && !options.is_distance(); i++) {
        std::string truth;
        if (!samples.truth(i, &truth)) {
            QUOLL_LOGE("metric %s needs labels of the samples (--labels, --test-labels)",
                       options.name.c_str());
            return kError;
        }
        std::vector<LabelledBox> boxes;
        const bool detects = options.name == "map" || options.name == "map50";
        if (!detects || parse_boxes(truth, &boxes)) continue;
        QUOLL_LOGE(
            "labels, line %zu: '%s': expected LABEL X1 Y1 X2 Y2; LABEL ... with X1 <= X2, Y1 <= Y2",
            i + 1, truth.substr(0, 100).c_str());
        return kError;
    }
    return kOk;
}

}  // namespace quoll
