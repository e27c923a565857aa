#include "validate/references.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "common/npy.h"
#include "common/process.h"
#include "common/temporary_folder.h"
#include "quoll/log.h"

namespace quoll {

int run_net(const Net& net, const Blobs& inputs, const std::vector<std::string>& wanted,
            Blobs* answers) {
    Extractor ex = net.create_extractor();
    ex.set_light_mode(wanted.size() <= net.output_indexes().size());
    for (const auto& input : inputs)
        QUOLL_RETURN_IF_ERROR(ex.input(input.first.c_str(), input.second));
    for (const std::string& name : wanted) {
        const int index = net.find_blob_index_by_name(name.c_str());
        if (index < 0) return kError;
        Mat m;
        QUOLL_RETURN_IF_ERROR(ex.extract(index, m));
        (*answers)[name] = m;
    }
    return kOk;
}

namespace {

// argv: model, folder, 1 for all tensors. The folder has names.txt, a line per input, and
// in<i>.npy; it gets answers.txt and out<i>.npy.
const char kScript[] = R"(
import sys
try:
    import numpy as np, onnxruntime
    model, folder, every = sys.argv[1:4]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    source = model
    if every == '1':
        import onnx
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        graph = onnx.load(model)
        there = {o.name for o in graph.graph.output}
        for node in graph.graph.node:
            for name in node.output:
                if name and name not in there:
                    graph.graph.output.append(onnx.ValueInfoProto(name=name))
        source = graph.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=['CPUExecutionProvider'])
    given = open(folder + '/names.txt').read().split('\n')[:-1]
    arrays = {name: np.load(folder + '/in%d.npy' % i) for i, name in enumerate(given)}
    feed, wants = {}, session.get_inputs()
    for want in wants:
        if want.name in arrays:
            array = arrays[want.name]
        elif len(wants) == len(arrays) == 1:
            array = next(iter(arrays.values()))
        else:
            sys.exit('input %r is not given' % want.name)
        while array.ndim < len(want.shape):
            array = array[None]
        types = {'tensor(float)': 'f4', 'tensor(int64)': 'i8', 'tensor(int32)': 'i4', 'tensor(float16)': 'f2',
                 'tensor(bool)': '?', 'tensor(uint8)': 'u1', 'tensor(int8)': 'i1', 'tensor(double)': 'f8'}
        feed[want.name] = array.astype(types[want.type])
    names = [o.name for o in session.get_outputs()]
    kept = []
    for name, array in zip(names, session.run(names, feed)):
        if not isinstance(array, np.ndarray) or array.dtype.kind not in 'fiub' or array.size == 0:
            continue
        while array.ndim > 4 and array.shape[0] == 1:
            array = array[0]
        if array.ndim == 4 and array.shape[0] == 1:
            array = array[0]
        if array.ndim == 0:
            array = array.reshape(1)
        if array.ndim > 4:
            continue
        array = array.astype(np.float32 if array.dtype.kind == 'f' else np.int32)
        np.save(folder + '/out%d.npy' % len(kept), np.ascontiguousarray(array))
        kept.append(name)
    open(folder + '/answers.txt', 'w').write('\n'.join(kept) + '\n')
except Exception as e:
    sys.exit('%s: %s' % (type(e).__name__, str(e).splitlines()[0] if str(e) else ''))
)";

// Runs the script; its last line on stderr is the reason of a failure.
int run_python(const std::string& python, const std::vector<std::string>& args,
               const std::string& errors) {
    std::vector<std::string> words = {python, "-c", kScript};
    words.insert(words.end(), args.begin(), args.end());
    const int code = run_process(words, "", errors);
    if (code > 0) QUOLL_LOGE("ONNX Runtime, in %s: %s", python.c_str(), last_line(errors).c_str());
    return code == 0 ? kOk : kError;
}

}  // namespace

int run_onnx(const std::string& python, const std::string& model,
             const std::vector<ModelInput>& arrays, const Blobs& inputs, bool all, Blobs* answers) {
    struct stat st;
    if (stat(model.c_str(), &st) != 0) {
        QUOLL_LOGE("%s: %s", model.c_str(), strerror(errno));
        return kError;
    }
    TemporaryFolder folder("enginevalidate");
    if (!folder.ok()) return kError;
    std::ofstream names(folder.file("names.txt"));
    int i = 0;
    for (const auto& input : inputs) {
        names << input.first << "\n";
        const std::string file = folder.file("in" + std::to_string(i++) + ".npy");
        const auto array = std::find_if(arrays.begin(), arrays.end(), [&](const ModelInput& a) {
            return a.name == input.first && a.array.said();
        });
        QUOLL_RETURN_IF_ERROR(array == arrays.end() ? write_npy(file, input.second)
                                                    : write_npy(file, array->array, input.second));
    }
    names.close();
    QUOLL_RETURN_IF_ERROR(
        run_python(python, {model, folder.path(), all ? "1" : "0"}, folder.file("errors.txt")));
    std::ifstream list(folder.file("answers.txt"));
    std::string name;
    for (i = 0; std::getline(list, name); i++) {
        Mat m;
        QUOLL_RETURN_IF_ERROR(read_npy(folder.file("out" + std::to_string(i) + ".npy"), false, &m));
        (*answers)[name] = m;
    }
    return kOk;
}

int read_folder(const std::string& folder, const std::vector<std::string>& names, Blobs* answers) {
    struct stat st;
    if (stat(folder.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) {
        QUOLL_LOGE("%s is no folder", folder.c_str());
        return kError;
    }
    for (const std::string& name : names) {
        std::string file = name;
        for (char& ch : file)
            if (ch == '/') ch = '_';
        file = folder + "/" + file + ".npy";
        if (stat(file.c_str(), &st) != 0) continue;
        Mat m;
        QUOLL_RETURN_IF_ERROR(read_npy(file, false, &m));
        (*answers)[name] = m;
    }
    return kOk;
}

}  // namespace quoll
