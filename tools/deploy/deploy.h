// What is done to each model of a deployment file, and to all of them.
#ifndef QUOLL_TOOLS_DEPLOY_DEPLOY_H
#define QUOLL_TOOLS_DEPLOY_DEPLOY_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deploy/config.h"
#include "graph/analysis.h"

namespace quoll {

struct DeployOptions {
    std::string programs;  // folder of the other programs, with a '/' behind it
    std::string work;      // folder for what is made on the way
    std::string python = "python3";
    std::vector<std::string> inputs;  // files that the archive must not overwrite
    std::vector<std::string> sdks;    // ABI=PREFIX
    int rounds = 10, threads = 0;
    bool validate = true, benchmark = true;
};

// Why a step failed: *what says where, the log may say more. Codes are the program's exit codes.
enum DeployStatus { kDeployed = 0, kDeployFailed = 1, kDeployWrongAnswers = 3 };

// One model on its way through a folder of its own, <work>/<tag>.
class ModelDeployment {
public:
    ModelDeployment(const DeployConfig& config, const DeployModel& model,
                    const DeployOptions& options);

    // The steps, in this order.
    DeployStatus check_files();
    DeployStatus convert();
    DeployStatus optimize();
    DeployStatus validate();
    DeployStatus benchmark();
    DeployStatus embed();

    const std::string& what() const { return what_; }
    const nlohmann::json& report() const { return report_; }
    // What the package gets of it, as names in its folder.
    std::vector<std::string> files() const;
    std::string folder() const { return folder_; }
    // "data (3,224,224)", for comments.
    std::string interface_text(const std::vector<DeployTensor>& tensors) const;

private:
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    DeployStatus fail(const std::string& what) { return what_ = what, kDeployFailed; }
    DeployStatus fail_at(const DeployTensor& tensor, const std::string& what) {
        return fail(tensor.place + what);
    }
    // Runs one of our programs; its messages go on to stderr. Codes other than `allowed` fail.
    DeployStatus run(std::vector<std::string> words, const std::string& out, int allowed,
                     int* code);
    DeployStatus check_sum(const std::string& file, const std::string& sum, const std::string& key);
    DeployStatus find_inputs(const Model& model);
    DeployStatus check_outputs();
    DeployStatus make_arrays(std::vector<std::string>* inputs);
    DeployStatus compare(const std::string& param, const std::vector<std::string>& reference,
                         const std::vector<std::string>& inputs, const std::string& against);
    DeployStatus compare_all(const std::vector<std::string>& inputs);
    std::string onnx_trouble();
    std::vector<std::string> cut_options(bool with_checks) const;
    std::vector<std::string> run_options() const;
    std::vector<std::string> size_options() const;
    bool is_batched(const DeployTensor& tensor) const;

    const DeployConfig& config_;
    const DeployModel& model_;
    const DeployOptions& options_;
    const std::string folder_;
    std::string what_;
    std::vector<Shape> shapes_;  // of the inputs
    BlobSizes sizes_;            // of all blobs, as far as they are known
    nlohmann::json report_;
};

// Writes the archive: libraries and headers for each ABI, the models' files, a header that loads
// them, report.json.
DeployStatus write_package(const DeployConfig& config, const DeployOptions& options,
                           const std::vector<const ModelDeployment*>& models,
                           const std::string& archive, std::string* what);

// C++11 functions that load the models of the package.
std::string loader_header(const DeployConfig& config,
                          const std::vector<const ModelDeployment*>& models);
// The namespace of what the package's headers declare.
std::string library_namespace(const std::string& library);

}  // namespace quoll

#endif
