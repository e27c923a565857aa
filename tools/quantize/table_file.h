// ncnn's calibration tables, and range files of other tools.
#ifndef QUOLL_TOOLS_QUANTIZE_TABLE_FILE_H
#define QUOLL_TOOLS_QUANTIZE_TABLE_FILE_H

#include <map>
#include <string>
#include <vector>

#include "quantize/histogram.h"

namespace quoll {

// By the names of layers; values are multiplied by the scales before they are rounded.
struct ScaleTable {
    std::vector<std::string> order;                     // of the layers
    std::map<std::string, std::vector<float>> weights;  // lines LAYER_param_0
    std::map<std::string, std::vector<float>> inputs;   // lines LAYER
    bool empty() const { return weights.empty() && inputs.empty(); }
};

// Lines with a name and numbers. Lines that begin with '#' are ignored, so that the layer stays in
// float. Returns 0, or a negative code after a message with the line's number.
int parse_table(const std::string& text, const std::string& path, ScaleTable* table);
int read_table(const std::string& path, ScaleTable* table);
// As ncnn2table writes it: the lines of all weights, then those of all inputs.
std::string table_text(const ScaleTable& table);

// MACE's overall_range: lines NAME@@LOW,HIGH; also of its range log, whose lines have
// "Tensor range @@NAME@@LOW,HIGH" somewhere, of which each tensor's extremes are taken.
int parse_range_log(const std::string& text, const std::string& path,
                    std::map<std::string, ValueRange>* ranges);

}  // namespace quoll

#endif
