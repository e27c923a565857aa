// The archive of a deployment.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/output_files.h"
#include "common/process.h"
#include "deploy/deploy.h"
#include "mem/embed.h"
#include "quoll/log.h"
#include "quoll/platform.h"

namespace fs = std::filesystem;
using nlohmann::json;

namespace quoll {

std::string library_namespace(const std::string& library) {
    const std::string name = file_identifier(library);
    return is_namespace(name) ? name : name + "_";
}

namespace {

const char kIntroduction[] =
    "// Loads the models of this package. A function returns 0, or a negative code after a message "
    "in the log.\n"
    "// Inputs are given and outputs taken by an Extractor of the Net, see quoll/net.h.\n";

// In front of the function: what the model takes and gives.
std::string loader_of(const DeployConfig& config, const DeployModel& model,
                      const ModelDeployment& made, const std::string& identifier) {
    const bool files = !config.weights_as_code;
    std::string text = "// Inputs: " + made.interface_text(model.inputs) +
                       "; outputs: " + made.interface_text(model.outputs) + ".";
    text += files ? " folder: where the files of model/ are.\n" : "\n";
    text += "inline int load_" + identifier + "(quoll::Net* net" +
            (files ? ", const std::string& folder" : "") + ") {\n";
    if (model.precision == "fp16") text += "    net->opt.use_fp16_storage = true;\n";
    if (model.precision == "bf16") text += "    net->opt.use_bf16_storage = true;\n";
    if (model.gpu) text += "    net->opt.use_vulkan_compute = true;\n";
    if (model.gpu && model.slices) text += "    net->opt.vulkan_slice_us = 1000;\n";
    if (model.gpu && model.max_in_flight > 0)
        text +=
            "    net->opt.vulkan_max_in_flight = " + std::to_string(model.max_in_flight) + ";\n";
    if (!model.winograd) text += "    net->opt.use_winograd_convolution = false;\n";
    if (config.graph_as_code)
        text += "    if (net->load_param(" + identifier + "_param_bin, sizeof(" + identifier +
                "_param_bin)) < 0) return -1;\n";
    else
        text += "    if (net->load_param((folder + \"/" + model.tag +
                ".param\").c_str())) return "
                "-1;\n";
    if (config.weights_as_code)
        text += "    return net->load_model(" + identifier + "_bin, sizeof(" + identifier +
                "_bin)) < 0 ? -1 : 0;\n";
    else
        text += "    return net->load_model((folder + \"/" + model.tag +
                ".bin\").c_str()) ? -1 : "
                "0;\n";
    return text + "}\n";
}

// The files of an installed quoll: PREFIX/include/quoll, PREFIX/lib*/**/*quoll*.
int copy_sdk(const std::string& prefix, const std::string& to, std::string* what) {
    std::error_code error;
    const fs::path from(prefix);
    const auto options = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
    *what = prefix;
    if (!fs::exists(from / "include/quoll/net.h", error)) {
        *what += ": expected the folder that quoll is installed in, with include/quoll/net.h";
        return -1;
    }
    fs::create_directories(fs::path(to) / "include", error);
    if (!error) fs::copy(from / "include/quoll", fs::path(to) / "include/quoll", options, error);
    bool library = false;
    for (fs::recursive_directory_iterator it(from, error), end; !error && it != end;
         it.increment(error)) {
        const fs::path part = fs::relative(it->path(), from, error);
        if (part.string().compare(0, 3, "lib") != 0) {
            if (it->is_directory()) it.disable_recursion_pending();
            continue;
        }
        const std::string name = part.filename().string();
        if (name.find("quoll") == std::string::npos) continue;
        library |= name == "libquoll.a" || name == "libquoll.so";
        fs::create_directories((fs::path(to) / part).parent_path(), error);
        if (!error) fs::copy(it->path(), fs::path(to) / part, options, error);
        if (it->is_directory()) it.disable_recursion_pending();
    }
    if (error) *what += ": " + error.message();
    if (!error && !library) *what += ": there is no libquoll";
    return error || !library ? -1 : 0;
}

// For the machine that this runs on: the build that this program comes from.
int install_host(const DeployOptions& options, const std::string& to, std::string* what) {
    const std::string build = options.programs + "..";
    struct stat st;
    *what = "target_abis: host: expected --sdk host=PREFIX, the folder that quoll is installed in";
    if (stat((build + "/CMakeCache.txt").c_str(), &st) != 0) return -1;
    const std::string errors = options.work + "/install-errors.txt";
    const int code = run_process({"cmake", "--install", build, "--prefix", to},
                                 options.work + "/install.txt", errors);
    *what = "cmake --install " + build + (code > 0 ? ": " + last_line(errors) : "");
    return code == 0 ? 0 : -1;
}

int add_sdks(const DeployConfig& config, const DeployOptions& options, const std::string& stage,
             std::string* what) {
    for (const std::string& abi : config.abis) {
        std::string prefix;
        for (const std::string& sdk : options.sdks)
            if (sdk.compare(0, abi.size() + 1, abi + "=") == 0) prefix = sdk.substr(abi.size() + 1);
        const std::string to = stage + "/sdk/" + abi;
        if (!prefix.empty()) {
            if (copy_sdk(prefix, to, what)) return -1;
            continue;
        }
        *what = "target_abis: " + abi + ": expected --sdk " + abi +
                "=PREFIX, the folder that a quoll for it is installed in";
        if (abi != "host" || install_host(options, to, what)) return -1;
    }
    return 0;
}

int write_text(const std::string& path, const std::string& text, std::string* what) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (file) return 0;
    *what = path + ": cannot be written: " + strerror(errno);
    return -1;
}

int fill_stage(const DeployConfig& config, const DeployOptions& options,
               const std::vector<const ModelDeployment*>& models, const std::string& stage,
               std::string* what) {
    std::error_code error;
    fs::remove_all(stage, error);  // of a run before this one
    fs::create_directories(stage + "/model", error);
    json report = {{"library", config.library},
                   {"version", QUOLL_VERSION_STRING},
                   {"abis", config.abis},
                   {"models", json::array()}};
    for (const ModelDeployment* model : models) {
        report["models"].push_back(model->report());
        for (const std::string& file : model->files())
            if (!error)
                fs::copy_file(model->folder() + "/" + file, stage + "/model/" + file, error);
    }
    if (error) return *what = stage + ": " + error.message(), -1;
    if (write_text(stage + "/model/" + config.library + ".h", loader_header(config, models),
                   what) ||
        write_text(stage + "/report.json", report.dump(2) + "\n", what))
        return -1;
    return add_sdks(config, options, stage, what);
}

}  // namespace

std::string loader_header(const DeployConfig& config,
                          const std::vector<const ModelDeployment*>& models) {
    const std::string space = library_namespace(config.library);
    const std::string guard = "QUOLL_PACKAGE_" + space + "_H";
    std::string text = kIntroduction;
    text += "#ifndef " + guard + "\n#define " + guard +
            "\n\n#include <quoll/net.h>\n\n#include "
            "<string>\n\n";
    if (config.graph_as_code)
        for (const DeployModel& model : config.models)
            text += "#include \"" + model.tag + ".id.h\"\n#include \"" + model.tag + ".mem.h\"\n";
    text += "\nnamespace " + space + " {\n";
    std::vector<std::string> tags;
    for (const DeployModel& model : config.models) tags.push_back(model.tag);
    const std::vector<std::string> identifiers = unique_identifiers(tags);
    for (size_t i = 0; i < models.size(); i++)
        text += "\n" + loader_of(config, config.models[i], *models[i], identifiers[i]);
    return text + "\n}  // namespace " + space + "\n\n#endif\n";
}

DeployStatus write_package(const DeployConfig& config, const DeployOptions& options,
                           const std::vector<const ModelDeployment*>& models,
                           const std::string& archive, std::string* what) {
    const std::string stages = options.work + "/package";
    if (fill_stage(config, options, models, stages + "/" + config.library, what))
        return kDeployFailed;
    OutputFiles files(options.inputs);
    const std::string file = files.add(archive), errors = options.work + "/tar-errors.txt";
    *what = "";
    if (file.empty()) return kDeployFailed;
    // The same content gives the same bytes.
    const int code =
        run_process({"tar", "--create", "--gzip", "--file=" + file, "--sort=name", "--owner=0",
                     "--group=0", "--numeric-owner", "--mtime=@0", "--mode=u+rwX,go+rX,go-w",
                     "--directory=" + stages, config.library},
                    "", errors);
    if (code != 0) {
        *what = archive + " cannot be written: " + (code > 0 ? last_line(errors) : "");
        return kDeployFailed;
    }
    return files.commit() ? kDeployFailed : kDeployed;
}

}  // namespace quoll
