// How well a model does its task, from its outputs and the right answers.
#ifndef QUOLL_TOOLS_QUANTIZE_METRIC_H
#define QUOLL_TOOLS_QUANTIZE_METRIC_H

#include <memory>
#include <string>
#include <vector>

#include "quantize/samples.h"

namespace quoll {

struct MetricOptions {
    // "map50", "map" or "wer"; a program to run; or one of those that evaluate() has itself:
    // "cosine", "sqnr", "top1", "top5".
    std::string name = "cosine";
    std::vector<std::string> tokens;  // of wer: text of each class
    int blank = 0;                    // of wer: the class that stands for nothing
    bool is_class_metric() const { return name == "top1" || name == "top5"; }
    bool is_distance() const { return name == "cosine" || name == "sqnr"; }
    // Whether a TaskMetric computes it.
    bool is_task() const { return !is_class_metric() && !is_distance(); }
};
// Whether the name is that of a built-in metric.
bool is_metric_name(const std::string& name);
std::string metric_names();

// A metric over all samples of a model.
class TaskMetric {
public:
    virtual ~TaskMetric() = default;
    // Outputs in the order of the model's, f32. 0, or a negative code after a message.
    virtual int add(const std::string& sample, const std::string& truth,
                    const std::vector<Mat>& outputs) = 0;
    virtual int value(double* value) = 0;
    virtual bool less_is_better() const { return false; }
};

// map50: mean over classes of the average precision of boxes at an intersection over union of 0.5,
//   the area below the precision that is made monotonic (PASCAL VOC 2012 development kit, section
//   3.4.1; boxes without its pixel added to their sizes). map: COCO's, the mean over
//   intersections over union from 0.5 to 0.95 in steps of 0.05 of the precision at 101 recalls, of
//   at most 100 boxes per class and sample (cocodataset.org, "Detection evaluation"). The first
//   output has rows of label, score, x1, y1, x2, y2, as DetectionOutput; the truth is "LABEL X1 Y1
//   X2 Y2; LABEL ...".
// wer: substitutions, deletions and insertions that turn what was recognised into the truth, by the
//   truths' words. The first output has a row of scores of classes for each moment; runs of one
//   class are one, blanks none (greedy decoding of CTC, Graves et al. 2006, section 3.2). With
//   tokens words end at white space, '|' and U+2581; else the truth is numbers of classes, each a
//   word.
// A program is called with a file of one line a sample: its name, its truth and the paths of its
//   outputs as .npy files, with tabs between. The last line that it prints is the value, more being
//   better.
std::unique_ptr<TaskMetric> make_metric(const MetricOptions& options);

// Checks that the metric can read the right answers of the samples. Returns 0, or a negative code
// after a message.
int check_truths(const MetricOptions& options, const SampleSource& samples);

}  // namespace quoll

#endif
