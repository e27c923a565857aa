// ncnn2mem: a model as a binary param without names, and as C++ headers.
#include <errno.h>
#include <string.h>

#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "common/output_files.h"
#include "mem/embed.h"
#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/log.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string param, bin, id_header, mem_header, param_bin, name_space;
    bool external_weights = false;
};

typedef std::vector<unsigned char> ByteVector;

const char kFooter[] =
    "Writes MODEL.param.bin (the graph without names), ID.h (enums of layers and blobs, in the "
    "namespace\n"
    "<MODEL.param>_id) and MEM.h (arrays <MODEL.param>_bin and <MODEL.bin>, 64-byte aligned). What "
    "is no letter\n"
    "or digit in a file name becomes '_'. Files are written whole or not at all.\n"
    "Exit code: 0, 1 when a file is at fault, 2 for a wrong command line.\n";

void add_options(CommandLine* line, Arguments* a) {
    line->footer(kFooter);
    line->option("MODEL.param", a->param, "the graph, as text").required();
    line->option("MODEL.bin", a->bin, "the weights").required();
    line->option("ID.h", a->id_header, "header to write: numbers of layers and blobs").required();
    line->option("MEM.h", a->mem_header, "header to write: the model's bytes").required();
    line->option("--param-bin", a->param_bin,
                 "where the binary param goes; default: MODEL.param with .bin appended");
    line->option("--namespace", a->name_space,
                 "NAME or A::B around all that the headers declare, so that several models fit "
                 "into one program")
        .check([](const std::string& text) {
            return is_namespace(text) ? "" : "'" + text + "' is no C++ namespace";
        });
    line->flag("--external-weights", a->external_weights,
               "leave the weights in MODEL.bin: MEM.h has the graph alone");
}

// Reads the graph and the weights, and makes sure that they belong together.
int load(const Arguments& a, Model* model, ByteVector* weights) {
    if (model->load_param(a.param.c_str()) || read_weights(a.bin, weights)) return -1;
    if (model->check_weights_id(weights->data(), weights->size())) return -1;
    const std::vector<std::string> custom = model->custom_types();
    if (!custom.empty()) {
        QUOLL_LOGW("%s is taken as it is: what custom layers (%s) read of it is not known",
                   a.bin.c_str(), custom[0].c_str());
        return 0;
    }
    const unsigned char* p = weights->data();
    const DataReaderFromMemory reader(p, weights->size());
    if (model->load_model(reader)) return -1;
    if (reader.remaining() > 0)
        QUOLL_LOGW("%s: %zu bytes more than the model reads", a.bin.c_str(), reader.remaining());
    return 0;
}

// Opens `path` and calls write(FILE*), which returns 0 if all went well.
template <class Write>
int write_file(const std::string& path, const std::string& target, const Write& write) {
    FILE* fp = path.empty() ? nullptr : fopen(path.c_str(), "wb");
    if (!fp && !path.empty())
        QUOLL_LOGE("%s cannot be opened: %s", target.c_str(), strerror(errno));
    if (!fp) return -1;
    const int status = write(fp);
    if (fclose(fp) == 0 && status == 0) return 0;
    QUOLL_LOGE("%s cannot be written: %s", target.c_str(), strerror(errno));
    return -1;
}

int write_all(const Arguments& a, const Model& model, const ByteVector& weights) {
    ByteVector param;
    if (model.save_param_bin(DataWriterToMemory(&param))) return -1;
    Embedding names;
    names.name_space = a.name_space;
    names.param = file_identifier(a.param);
    if (!a.external_weights) names.weights = file_identifier(a.bin);
    if (names.weights == names.param + "_bin") {
        QUOLL_LOGE("%s and %s.bin would both be called %s", a.bin.c_str(), a.param.c_str(),
                   names.weights.c_str());
        return -1;
    }
    OutputFiles files({a.param, a.bin});
    const std::string param_bin = a.param_bin.empty() ? a.param + ".bin" : a.param_bin;
    if (write_file(files.add(param_bin), param_bin,
                   [&](FILE* fp) {
                       return fwrite(param.data(), 1, param.size(), fp) == param.size() ? 0 : -1;
                   }) ||
        write_file(files.add(a.id_header), a.id_header,
                   [&](FILE* fp) { return write_id_header(fp, names, model); }) ||
        write_file(files.add(a.mem_header), a.mem_header, [&](FILE* fp) {
            return write_mem_header(fp, names, {param.data(), param.size()},
                                    {weights.data(), weights.size()});
        }))
        return -1;
    return files.commit();
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Turns a model into a binary param without names and C++ headers.",
                     "ncnn2mem");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions("ncnn2mem", [&] {
        Model model;
        ByteVector weights;
        if (load(a, &model, &weights) || write_all(a, model, weights))
            return log.fail("ncnn2mem", "");
        return 0;
    });
}
