// ncnn2int8: a model in int8 by a table, by the arguments of ncnn's program of that name.
#include <stdio.h>

#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "quantize/int8_model.h"
#include "quantize/ncnn_forms.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string in_param, in_bin, out_param, out_bin, table;
};

const char kProgram[] = "ncnn2int8";
const char kFooter[] =
    "Convolutions and inner products without a line of weights in the table stay in float. Of "
    "Gemm, "
    "attention, Embed\n"
    "and recurrent layers no table is needed: they find the scales of what they read in each "
    "run.\n"
    "Exit code: 0, 1 when a file is at fault, 2 for a wrong command line. Files are written whole "
    "or not at all.\n";

int run(const Arguments& a, MessageLog* log) {
    const auto fail = [&](const std::string& what) { return log->fail(kProgram, what); };
    Model model;
    std::vector<std::string> done;
    if (load_model_files(a.in_param, a.in_bin, &model)) return fail("cannot load " + a.in_param);
    if (!a.table.empty()) {
        ScaleTable table;
        if (read_table(a.table, &table) || quantize_by_table(table, &model, &done)) return fail("");
    }
    if (make_ncnn_forms(&model, &done)) return fail("");
    OutputFiles files({a.in_param, a.in_bin, a.table});
    if (save_model_files(model, a.out_param, a.out_bin, &files) || files.commit()) return fail("");
    printf("%zu layers in int8\n", done.size());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Makes layers of a model int8 as ncnn has them, by its table.", kProgram);
    line.footer(kFooter);
    line.option("IN.param", a.in_param, "the graph").required();
    line.option("IN.bin", a.in_bin, "the weights").required();
    line.option("OUT.param", a.out_param, "graph to write").required();
    line.option("OUT.bin", a.out_bin, "weights to write").required();
    line.option("TABLE", a.table, "scales, as ncnn2table writes them");
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions(kProgram, [&] { return run(a, &log); });
}
