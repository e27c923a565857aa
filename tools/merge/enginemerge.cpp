// enginemerge: several models in one.
#include <stdio.h>

#include <set>
#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "common/progress.h"

using namespace quoll;

namespace {

const char kFooter[] =
    "FILES: IN1.param IN1.bin [IN2.param IN2.bin ...] OUT.param OUT.bin. Names that two models "
    "share get a prefix in\n"
    "the later one, which is told on stdout. Exit code: 0, 1 when a file is at fault, 2 for a "
    "wrong command line.\n";

struct Arguments {
    std::vector<std::string> files, prefixes;
    bool always = false;
};

// "net/alexnet.param" -> "alexnet"
std::string stem(const std::string& path) {
    std::string name = path.substr(path.rfind('/') + 1);
    for (const char* end : {".param.bin", ".param"}) {
        if (!ends_with(name, end)) continue;
        name.resize(name.size() - std::string(end).size());
        break;
    }
    for (char& ch : name)
        if (ch == ' ' || ch == '\t' || ch == '\n') ch = '_';
    return name.empty() ? "model" : name;
}

// Gives names in one model that are unlike those taken so far.
class Renamer {
public:
    Renamer(const char* what, const std::string& prefix, bool always, std::set<std::string>* taken)
        : what_(what), prefix_(prefix), always_(always), taken_(taken) {}

    // The names of the model, before any is looked up.
    void add(const std::vector<std::string>& names) {
        std::set<std::string> own(names.begin(), names.end());
        for (const std::string& name : names) {
            if (renamed_.count(name)) continue;
            std::string fresh = always_ || taken_->count(name) ? prefix_ + "/" + name : name;
            while (taken_->count(fresh) || (fresh != name && own.count(fresh))) fresh += "_";
            renamed_[name] = fresh;
            own.insert(fresh);  // no other gets it
            if (fresh != name) printf("%s %s -> %s\n", what_, name.c_str(), fresh.c_str());
        }
        for (const auto& name : renamed_) taken_->insert(name.second);
    }
    const std::string& of(const std::string& name) { return renamed_[name]; }

private:
    const char* what_;
    const std::string prefix_;
    const bool always_;
    std::set<std::string>* taken_;
    std::map<std::string, std::string> renamed_;
};

struct Taken {
    std::set<std::string> layers, blobs;
};

void append(Model* part, const std::string& prefix, bool always, Taken* taken, Model* whole) {
    std::vector<std::string> names;
    for (const ModelLayer& layer : part->layers) names.push_back(layer.name);
    Renamer layers("layer", prefix, always, &taken->layers);
    Renamer blobs("blob", prefix, always, &taken->blobs);
    layers.add(names);
    blobs.add(part->blob_names());
    for (ModelLayer& layer : part->layers) {
        layer.name = layers.of(layer.name);
        for (auto* list : {&layer.inputs, &layer.outputs})
            for (std::string& blob : *list) blob = blobs.of(blob);
        // Numbers of custom types hold in one file only.
        if (layer.custom()) layer.custom_index = -1;
        whole->layers.push_back(layer);
    }
}

int run(const Arguments& a, MessageLog* log) {
    const auto fail = [&](const std::string& what) { return log->fail("enginemerge", what); };
    const size_t models = a.files.size() / 2 - 1;
    Model whole;
    Taken taken;
    bool shares = false;
    const std::vector<std::string> inputs(a.files.begin(), a.files.end() - 2);
    Progress progress("merge", (long long)models);
    for (size_t i = 0; i < models; i++) {
        progress.update((long long)i, a.files[2 * i]);
        Model part;
        if (load_model_files(a.files[2 * i], a.files[2 * i + 1], &part))
            return fail("cannot load " + a.files[2 * i]);
        const std::string prefix = i < a.prefixes.size() ? a.prefixes[i] : stem(a.files[2 * i]);
        append(&part, prefix, a.always, &taken, &whole);
        shares = shares || part.shares_weights();
    }
    if (shares) whole.share_weights();
    OutputFiles files(inputs);
    const std::string &param = a.files[2 * models], &bin = a.files[2 * models + 1];
    if (save_model_files(whole, param, bin, &files) || files.commit()) return fail("");
    Progress::hide();
    printf("%zu models, %zu layers, %zu blobs\n", models, whole.layers.size(),
           whole.blob_names().size());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Puts several models into one, side by side.", "enginemerge");
    line.footer(kFooter);
    line.option("FILES", a.files, "pairs of .param and .bin; the last pair is written").required();
    line.option("--prefix", a.prefixes,
                "what names that collide begin with, once for each model; default: its file name")
        .one_at_a_time();
    line.flag("--always", a.always, "all names get the prefix, also where none collide");
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    if (a.files.size() < 4 || a.files.size() % 2 != 0) {
        log.fail("enginemerge",
                 "expected pairs of .param and .bin, at least one to read and one "
                 "to write, got " +
                     std::to_string(a.files.size()) + " files");
        return 2;
    }
    return without_exceptions("enginemerge", [&] { return run(a, &log); });
}
