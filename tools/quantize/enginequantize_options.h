// The command line of enginequantize.
#ifndef QUOLL_TOOLS_QUANTIZE_ENGINEQUANTIZE_OPTIONS_H
#define QUOLL_TOOLS_QUANTIZE_ENGINEQUANTIZE_OPTIONS_H

#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "quantize/evaluate.h"

namespace quoll {

struct Arguments {
    std::vector<std::string> files;
    DataOptions data, test;
    std::vector<std::string> pixel, mean, norm, resize;
    std::string method = "best", kind, table_out, table_in, report;
    std::vector<std::string> layers, ranges, range_logs, overrides;
    std::string override_out;
    std::vector<double> constant;
    double percentile = 99.99, ema_decay = 0.999, enhance_ratio = 10, holdout = 0.1;
    double max_error = 1.0, mean_error = 1e-2;
    std::string weights = "minmax", rounding;
    int limit = 0, threads = 0, seed = 1;
    bool strict = false, no_fusion = false, no_bias = false, no_equalize = false,
         hard_ranges = false;
    std::string max_drop, budget, tokens;
    MetricOptions metric;
    InputArguments inputs_said;
};

void add_options(CommandLine* line, Arguments* a);
// How images become inputs. False: `why` says what is wrong.
bool parse_forms(const Arguments& a, const std::vector<ModelInput>& inputs, DataOptions* data,
                 std::string* why);
// What the command line says besides the data; -1 and a reason, "" where it has been logged.
int read_options(const Arguments& a, QuantizeOptions* o, std::string* why);

}  // namespace quoll

#endif
