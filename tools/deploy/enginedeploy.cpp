// enginedeploy: from a deployment file to an archive that an application is built with.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/cli.h"
#include "common/run_options.h"
#include "common/temporary_folder.h"
#include "deploy/deploy.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string config, archive, keep;
    bool check = false, no_validate = false, no_benchmark = false;
    DeployOptions options;
};

const char kFooter[] =
    "Each model is checked against its SHA-256, converted, optimised, validated, timed, and packed "
    "with\n"
    "libraries and headers into OUT.tar.gz (default: LIBRARY.tar.gz in the current folder), which "
    "is written\n"
    "whole or not at all. docs/tools/enginedeploy.md describes the file.\n"
    "Exit code: 0, 1 when a file is at fault (every problem of the deployment file is listed with "
    "its line),\n"
    "2 for a wrong command line, 3 when a model's answers are wrong.\n";

void add_options(CommandLine* line, Arguments* a) {
    DeployOptions& o = a->options;
    line->footer(kFooter);
    line->option("quoll.yml", a->config, "the deployment file").required();
    line->option("OUT.tar.gz", a->archive, "the archive to write");
    line->flag("--check", a->check, "read the deployment file, and do nothing else");
    line->flag("--no-validate", a->no_validate, "do not compare answers");
    line->flag("--no-benchmark", a->no_benchmark, "measure no times");
    line->option("--round", o.rounds, "timed runs of each model, default 10").between(1, 1000000);
    line->option("--threads", o.threads, "threads that a layer may use; default: the physical cores").between(1, kMostThreads);
    line->option("--python", o.python, "the Python that has onnxruntime, default python3");
    line->option("--sdk", o.sdks,
                 "ABI=PREFIX: where quoll for that ABI is installed, once for each; host is "
                 "taken from the build that this program belongs to")
        .one_at_a_time()
        .check([](const std::string& text) {
            for (const char* abi : {"host=", "arm64-v8a=", "armeabi-v7a="})
                if (text.compare(0, strlen(abi), abi) == 0 && text.size() > strlen(abi))
                    return std::string();
            return "'" + text + "': expected host=PREFIX, arm64-v8a=PREFIX or armeabi-v7a=PREFIX";
        });
    line->option("--keep", a->keep, "FOLDER for what is made on the way; it stays");
}

// The folder of the running program, with a '/' behind it.
std::string own_folder() {
    char buffer[PATH_MAX];
    if (!realpath("/proc/self/exe", buffer)) return "";
    const std::string path = buffer;
    return path.substr(0, path.rfind('/') + 1);
}

int read_config(const std::string& path, DeployConfig* config, MessageLog* log) {
    std::vector<std::string> problems;
    if (read_deploy_config(path, config, &problems)) {
        for (size_t i = 1; i < problems.size(); i++)
            fprintf(stderr, "%s\n", printable(problems[i]).c_str());
        return log->fail("enginedeploy", problems.empty() ? "" : problems[0]);
    }
    for (const std::string& note : config->notes) fprintf(stderr, "%s\n", note.c_str());
    return 0;
}

DeployStatus deploy_model(const DeployOptions& options, const std::string& tag,
                          ModelDeployment* model) {
    struct Step {
        const char* name;
        DeployStatus (ModelDeployment::*run)();
        bool wanted;
    };
    const Step steps[] = {{"check files", &ModelDeployment::check_files, true},
                          {"convert", &ModelDeployment::convert, true},
                          {"optimize", &ModelDeployment::optimize, true},
                          {"validate", &ModelDeployment::validate, options.validate},
                          {"benchmark", &ModelDeployment::benchmark, options.benchmark},
                          {"write files", &ModelDeployment::embed, true}};
    for (const Step& step : steps) {
        if (!step.wanted) continue;
        printf("%s: %s\n", tag.c_str(), step.name);
        if (DeployStatus status = (model->*step.run)()) return status;
    }
    return kDeployed;
}

int deploy(const Arguments& a, const DeployConfig& config, MessageLog* log) {
    std::vector<ModelDeployment> models;
    models.reserve(config.models.size());
    std::vector<const ModelDeployment*> done;
    for (const DeployModel& model : config.models) {
        models.emplace_back(config, model, a.options);
        const DeployStatus status = deploy_model(a.options, model.tag, &models.back());
        if (status) return log->fail("enginedeploy", models.back().what()), status;
        done.push_back(&models.back());
    }
    const std::string archive = a.archive.empty() ? config.library + ".tar.gz" : a.archive;
    printf("pack %s\n", archive.c_str());
    std::string what;
    if (write_package(config, a.options, done, archive, &what))
        return log->fail("enginedeploy", what);
    return 0;
}

int run(Arguments a, MessageLog* log) {
    DeployConfig config;
    if (read_config(a.config, &config, log)) return 1;
    if (a.check) return 0;
    a.options.programs = own_folder();
    a.options.inputs = {a.config};
    for (const DeployModel& model : config.models)
        a.options.inputs.insert(a.options.inputs.end(), {model.graph, model.weights});
    a.options.validate = !a.no_validate;
    a.options.benchmark = !a.no_benchmark;
    if (!a.keep.empty()) {
        if (mkdir(a.keep.c_str(), 0777) && errno != EEXIST)
            return log->fail("enginedeploy", "--keep " + a.keep + ": " + strerror(errno));
        a.options.work = a.keep;
        return deploy(a, config, log);
    }
    const TemporaryFolder folder("enginedeploy");
    if (!folder.ok()) return log->fail("enginedeploy", "");
    a.options.work = folder.path();
    return deploy(a, config, log);
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line(
        "Converts, optimises, validates, times and packs the models of a deployment file.",
        "enginedeploy");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions("enginedeploy", [&] { return run(a, &log); });
}
