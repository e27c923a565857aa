// What engineinfo says of a model, as text and as JSON.
#ifndef QUOLL_TOOLS_INFO_REPORT_H
#define QUOLL_TOOLS_INFO_REPORT_H

#include <string>
#include <utility>
#include <vector>

#include "common/model_files.h"
#include "info/exec_plan.h"

namespace quoll {

struct ModelReport {
    std::string path;
    const Model* model;
    ModelFacts facts;
    bool has_weights;
    ExecPlan plan;        // empty unless asked for
    MemoryReport memory;  // with the plan
};

// A line for each layer: type, name, blobs with sizes, multiply-accumulates, weights.
std::string layer_table(const ModelReport& report);
std::string summary(const ModelReport& report);
std::string io_table(const ModelReport& report);
std::string json_text(const ModelReport& report);

// The layer's params as in a text param, without the leading blank.
std::string params_text(const ModelLayer& layer);
// The same by the schema's names; the id where the schema has none.
std::vector<std::pair<std::string, std::string>> named_params(const ModelLayer& layer);

}  // namespace quoll

#endif
