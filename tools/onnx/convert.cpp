#include "onnx/convert.h"

#include <math.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "common/npy.h"
#include "graph/optimize.h"
#include "graph/param_file.h"
#include "onnx/converter.h"
#include "onnx/functions.h"
#include "onnx/fuse.h"
#include "onnx/limits.h"
#include "onnx/suggest.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "quoll/status.h"

namespace quoll {

using namespace onnx_tool;

namespace {

class Conversion {
public:
    // to_net: the model goes into a Net while source.file is there.
    Conversion(const OnnxOptions& options, const OnnxModel& source, bool to_net, OnnxResult* result)
        : options_(options),
          to_net_(to_net),
          graph_(source.graph),
          converter_(std::make_shared<Converter>(source.opsets, source.strings, &report_)),
          result_(result) {}

    int run() {
        Converter& c = *converter_;
        c.set_keep_names(options_.keep_names);
        c.set_compute_large(options_.compute_large_constants);
        c.set_leave_matrices(to_net_);
        for (const ValueInfo& v : outputs()) c.reserve(param_word(v.name));
        add_inputs();
        for (const auto& shape : options_.shapes) check_input(shape.first, "sizes");
        for (const auto& constant : options_.constants) check_input(constant.first, "a constant");
        for (const auto& t : graph_.initializers)
            if (!c.find_value(t.first)) c.add_constant(t.first, t.second);
        const std::vector<const Node*> order = sorted_nodes();
        for (const Node* node : order)
            for (const std::string& name : node->outputs) c.reserve_value(name);
        Fusion fusion(graph_, options_.outputs, cut_, converter_.get());
        for (size_t i = 0; i < order.size() && !beyond_limits_; i++) {
            if (options_.progress) options_.progress(i, order.size());
            run_node(*order[i], &fusion);
        }
        if (options_.progress) options_.progress(order.size(), order.size());
        for (const ValueInfo& v : outputs()) {
            std::vector<Dim> declared;
            for (const DimInfo& d : v.shape)
                declared.push_back(d.value >= 0 ? Dim(d.value) : Dim());
            if (!c.add_output(v.name, v.type, v.has_shape ? &declared : nullptr))
                name_maker(v.name);
        }
        for (const Problem& p : c.problems)
            result_->problems.push_back({p.node, p.op, p.reason, p.opset});
        if (result_->problems.empty()) c.finish();
        result_->counts = report_.counts;
        result_->notes.assign(report_.notes.begin(), report_.notes.end());
        if (!result_->problems.empty()) return kError;
        // A Net that takes the model checks it.
        const bool checked = to_net_ && options_.storage == DType::f32;
        if (!checked && (c.model.check() != 0 || c.model.check_weights() != 0)) return kError;
        OptimizeReport stored;
        if (options_.storage != DType::f32 &&
            store_weights(&c.model, options_.storage, &stored) != 0)
            return kError;
        result_->model = std::move(c.model);
        result_->storage = converter_;
        return kOk;
    }

private:
    // What was said of an output is said of the node that makes it.
    void name_maker(const std::string& output) {
        for (const Node& n : graph_.nodes) {
            if (std::count(n.outputs.begin(), n.outputs.end(), output) == 0) continue;
            for (Problem& p : converter_->problems)
                if (p.node == output && p.op == "output")
                    p = {n.label(), n.op, "output " + output + ": " + p.reason,
                         converter_->opset(n.domain)};
        }
    }
    std::vector<ValueInfo> outputs() const {
        if (options_.outputs.empty()) return graph_.outputs;
        std::vector<ValueInfo> chosen;
        for (const std::string& name : options_.outputs) {
            chosen.emplace_back();
            chosen.back().name = name;
            for (const auto* list : {&graph_.outputs, &graph_.infos})
                for (const ValueInfo& v : *list)
                    if (v.name == name) chosen.back() = v;
        }
        return chosen;
    }

    void add_input(const ValueInfo& info) {
        Converter& c = *converter_;
        const auto refuse = [&](const std::string& why) {
            c.problems.push_back({info.name, "input", why, c.opset("")});
            c.add_value(info.name)->bad = true;
        };
        const auto given = options_.shapes.find(info.name);
        std::vector<Dim> shape;
        for (const DimInfo& d : info.shape) {
            if (d.value > 2147483647) return refuse("a size beyond 32 bits");
            shape.push_back(d.value >= 0 ? Dim(d.value) : c.symbols.named(d.name));
            if (shape.back().symbol == 0)
                shape.back() = c.symbols.named(info.name + "." + std::to_string(shape.size() - 1));
        }
        if (given != options_.shapes.end()) {
            if (info.has_shape && given->second.size() != shape.size())
                return refuse("the shape given has " + std::to_string(given->second.size()) +
                              " sizes, expected " + std::to_string(shape.size()));
            shape.resize(given->second.size());
            for (size_t i = 0; i < shape.size(); i++) {
                if (given->second[i] >= 0)
                    shape[i] = Dim(given->second[i]);
                else if (shape[i].known() || shape[i].symbol == 0)
                    shape[i] = c.symbols.named(info.name + "." + std::to_string(i));
            }
        } else if (!info.has_shape && info.is_tensor && info.type != ElementType::kUndefined) {
            return refuse("its rank is not known; give it with --shape");
        }
        if (!info.is_tensor) return refuse("it is no tensor");
        if (!is_supported(info.type))
            return refuse(std::string("a tensor of type ") + type_name(info.type));
        const auto constant = options_.constants.find(info.name);
        if (constant == options_.constants.end()) return c.add_input(info.name, info.type, shape);
        Tensor numbers;
        std::string why;
        if (numbers_of(constant->second, info, shape, &numbers, &why)) {
            c.add_constant(info.name, numbers);
            return;
        }
        if (!why.empty()) return refuse(why);
        TensorSpec array;
        array.rank = (int)shape.size(), array.element_type = (int)info.type;
        Mat values;
        if (read_npy(constant->second, array, &values) != 0)
            return refuse(constant->second + " cannot be read");
        std::vector<int64_t> dims;
        const Shape have = values.logical_shape();
        for (int a = 0; a < have.dims && a < array.rank; a++) dims.push_back(have.size(a));
        if (array.rank > 4) return refuse("a constant of rank " + std::to_string(array.rank));
        c.add_constant(info.name, tensor_of_mat(values, info.type, dims));
    }

    // The option's text as the input's values; false if it is a file's name, or, with *why, if they
    // do not fit.
    static bool numbers_of(const std::string& text, const ValueInfo& info,
                           const std::vector<Dim>& shape, Tensor* tensor, std::string* why) {
        std::vector<double> numbers;
        if (!read_numbers(text, &numbers)) return false;
        std::vector<int64_t> sizes;
        for (const Dim& d : shape)
            sizes.push_back(d.known() ? d.value : shape.size() == 1 ? (int64_t)numbers.size() : 1);
        const int64_t count = element_count(sizes);
        if (count < 0 || count > 1 << 20 ||
            (numbers.size() != 1 && (int64_t)numbers.size() != count)) {
            *why = "constant " + text + ": expected 1 or " + std::to_string(count) + " numbers";
            return false;
        }
        *tensor = Tensor(info.type, sizes);
        for (int64_t i = 0; i < count; i++) {
            const double v = numbers[numbers.size() == 1 ? 0 : (size_t)i];
            if (!is_float(info.type) && !(v == floor(v) && fabs(v) < 9e18)) {
                *why = "constant " + text + ": expected whole numbers for " + type_name(info.type);
                return false;
            }
            if (is_float(info.type))
                tensor->set_float((size_t)i, (float)v);
            else
                tensor->set_int((size_t)i, (int64_t)v);
        }
        return true;
    }

    // A value within the graph of which the file says nothing: floats, of the sizes given.
    void add_untyped_input(const std::string& name) {
        const bool made = std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& n) {
            return std::count(n.outputs.begin(), n.outputs.end(), name) != 0;
        });
        const bool sized = options_.shapes.count(name) != 0;
        if (!made || !sized) {
            converter_->problems.push_back(
                {name, "input",
                 made ? "its sizes are not known; give them with --shape" : "no such value", 0});
            return;
        }
        ValueInfo info;
        info.name = name, info.type = ElementType::kFloat;
        add_input(info);
    }

    // What is given to a name that the model lacks would go unnoticed.
    void check_input(const std::string& name, const std::string& given) {
        const auto& chosen = options_.inputs;
        const bool found = std::any_of(graph_.inputs.begin(), graph_.inputs.end(),
                                       [&](const ValueInfo& v) { return v.name == name; }) ||
                           std::find(chosen.begin(), chosen.end(), name) != chosen.end();
        if (found && !graph_.initializers.count(name)) return;
        converter_->problems.push_back(
            {name, "input",
             given + " given to " + (found ? "what has values in the file" : "no input"), 0});
    }

    void add_inputs() {
        std::set<std::string> wanted(options_.inputs.begin(), options_.inputs.end());
        for (const ValueInfo& v : graph_.inputs)
            if (!graph_.initializers.count(v.name) && (wanted.empty() || wanted.count(v.name)))
                add_input(v), wanted.erase(v.name);
        for (const std::string& name : wanted) {
            const auto at = std::find_if(graph_.infos.begin(), graph_.infos.end(),
                                         [&](const ValueInfo& v) { return v.name == name; });
            if (at != graph_.infos.end())
                add_input(*at);
            else
                add_untyped_input(name);
            cut_.insert(name);
        }
    }

    // The nodes that some output needs.
    void find_needed(std::unordered_set<const Node*>* needed) const {
        std::unordered_map<std::string, const Node*> makers;
        for (const Node& n : graph_.nodes)
            for (const std::string& o : n.outputs) makers[o] = &n;
        std::vector<std::string> open;
        for (const ValueInfo& v : outputs()) open.push_back(v.name);
        while (!open.empty()) {
            const std::string name = open.back();
            open.pop_back();
            const auto found = makers.find(name);
            if (name.empty() || cut_.count(name) || found == makers.end()) continue;
            if (needed->insert(found->second).second) add_reads(*found->second, &open);
        }
    }

    std::vector<const Node*> sorted_nodes() const {
        std::unordered_set<const Node*> needed;
        find_needed(&needed);
        std::vector<const Node*> nodes;
        for (const Node& n : graph_.nodes)
            if (needed.count(&n)) nodes.push_back(&n);
        return in_order(nodes);
    }

    void run_node(const Node& node, Fusion* fusion) {
        // What lies before a cut is not converted.
        bool cut = !node.outputs.empty();
        bool some = false;
        for (const std::string& o : node.outputs) {
            cut = cut && cut_.count(o) != 0;
            some = some || cut_.count(o) != 0;
        }
        if (cut) return;
        // It makes its other outputs.
        Node rest;
        if (some) {
            rest = node;
            rest.name = node.label();
            for (std::string& o : rest.outputs)
                if (cut_.count(o)) o.clear();
        }
        const auto refuse = [&](const std::string& why) {
            converter_->problems.push_back(
                {node.name, node.op, why, converter_->opset(node.domain)});
        };
        // A file may ask for anything; what no check has foreseen is that node's error.
        try {
            if (some)
                converter_->run_node(rest);
            else if (!fusion->run(node))
                converter_->run_node(node);
        } catch (const LimitError& e) {
            refuse(e.what());
            beyond_limits_ = true;  // so would be the next
        } catch (const std::bad_alloc&) {
            refuse("it needs more memory than there is");
        } catch (const std::exception& e) {
            refuse(std::string("cannot be converted (") + e.what() + ")");
        }
    }

    const OnnxOptions& options_;
    const bool to_net_;
    const Graph& graph_;
    Report report_;
    std::shared_ptr<Converter> converter_;
    OnnxResult* result_;
    std::set<std::string> cut_;
    bool beyond_limits_ = false;
};

// What else reading and converting throw, as running out of memory, is an error of the file.
template <class Convert>
int without_exceptions(const std::string& what, const OnnxOptions& options, Convert convert) {
    try {
        const Limits limits(options.limits);
        return convert(limits);
    } catch (const std::bad_alloc&) {
        QUOLL_LOGE("[onnx] %s: needs more memory than there is", what.c_str());
        return kOutOfMemory;
    } catch (const std::exception& e) {
        QUOLL_LOGE("[onnx] %s: cannot be converted (%s)", what.c_str(), e.what());
        return kError;
    }
}

int convert_source(bool is_read, const OnnxModel& source, const std::string& why,
                   const OnnxOptions& options, bool to_net, OnnxResult* result) {
    if (is_read) return Conversion(options, source, to_net, result).run();
    QUOLL_LOGE("[onnx] %s", why.c_str());
    return kError;
}

// file: keeps what the model's weights refer to; null if they are to lie in memory.
int convert_file(const std::string& path, const OnnxOptions& options, OnnxResult* result,
                 std::shared_ptr<const void>* file) {
    return without_exceptions(path, options, [&](const Limits& limits) {
        OnnxModel source;
        std::string why;
        const bool is_read = read_onnx(path, &source, &why);
        result->source_bytes = (size_t)limits.bytes_of_file();
        result->data_files = source.data_files;
        if (file) *file = source.file;
        return convert_source(is_read, source, why, options, file != nullptr, result);
    });
}

}  // namespace

int convert_onnx(const std::string& path, const OnnxOptions& options, OnnxResult* result) {
    return convert_file(path, options, result, nullptr);
}

int convert_onnx(const void* data, size_t size, const std::string& folder,
                 const OnnxOptions& options, OnnxResult* result) {
    return without_exceptions("the model in memory", options, [&](const Limits& limits) {
        OnnxModel source;
        std::string why;
        const bool is_read = read_onnx(data, size, folder, &source, &why);
        result->source_bytes = (size_t)limits.bytes_of_file();
        return convert_source(is_read, source, why, options, false, result);
    });
}

std::string suggest_options(const std::string& path, const OnnxOptions& options, double seconds) {
    const auto begin = std::chrono::steady_clock::now();
    const LogLevel level = get_log_level();
    set_log_level(kLogOff);
    std::string found;
    OnnxModel source;
    const int read = without_exceptions(path, options, [&](const Limits&) {
        std::string why;
        return read_onnx(path, &source, &why) ? kOk : kError;
    });
    if (read != kOk) {
        set_log_level(level);
        return "";
    }
    for (OnnxOptions& candidate : candidate_options(source, options)) {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        if (!found.empty() || (seconds > 0 && passed.count() > seconds)) break;
        candidate.progress = nullptr;
        OnnxResult result;
        const int made = without_exceptions(path, options, [&](const Limits&) {
            return Conversion(candidate, source, false, &result).run();
        });
        if (made == kOk) found = option_text(options, candidate);
    }
    set_log_level(level);
    return found;
}

int load_onnx(const std::string& path, const OnnxOptions& options, Net* net) {
    OnnxResult result;
    std::shared_ptr<const void> file;
    const int status = convert_file(path, options, &result, &file);
    for (const OnnxProblem& p : result.problems)
        QUOLL_LOGE("[onnx] %s (%s, opset %d): %s", p.node.c_str(), p.op.c_str(), p.opset,
                   p.reason.c_str());
    if (status != 0) return status;
    result.storage.reset();  // the weights that layers have packed can go
    return result.model.move_to_net(net);
}

std::string onnx_operator_page() {
    std::string page =
        "# ONNX operators\n\n"
        "The ONNX operators that `onnx2engine` and `load_onnx` convert, from opset 7 on. This page "
        "is written by `onnx2engine --operators` from the converter's own table; a test fails when "
        "it is out of date.\n\n"
        "- **Floats.** float16, bfloat16 and double become float32, and so do floats of 8, 6 and 4 "
        "bits, to which Cast and QuantizeLinear round.\n"
        "- **Integers.** Those wider than a byte become 32-bit ones; those of 4 and 2 bits take a "
        "byte.\n"
        "- **Strings** become their places in a table that Input and Output layers have (param "
        "26).\n"
        "- **Axes.** Blobs have four axes and a batch; tensors of higher rank are held with "
        "neighbouring axes merged.\n\n"
        "| operator | opsets | limits |\n|---|---|---|\n";
    for (const OpEntry* entry : all_ops()) {
        const int since = *entry->domain ? entry->since : std::max(7, entry->since);
        page += std::string("| ") + (*entry->domain ? std::string(entry->domain) + "::" : "") +
                entry->op + " | " + std::to_string(since) +
                (entry->until ? " to " + std::to_string(entry->until) : " on") + " | " +
                entry->limits + " |\n";
    }
    return page;
}

}  // namespace quoll
