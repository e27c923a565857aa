// From protobuf to Graph.
#include <errno.h>
#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <limits.h>
#include <onnx/onnx_pb.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "common/model_files.h"
#include "onnx/functions.h"
#include "onnx/graph.h"
#include "onnx/limits.h"
#include "onnx/tensor_reader.h"
#include "runtime/mapped_file.h"

namespace quoll {
namespace onnx_tool {

std::string Node::label() const {
    if (!name.empty()) return name;
    for (const std::string& output : outputs)
        if (!output.empty()) return output;
    return "unnamed";
}

namespace {

// Subgraphs of subgraphs; protobuf itself ends at 100 levels.
const int kMostLevels = 32;

// Numbers of fields in onnx.proto that libonnx 1.12 does not know.
const int kNodeOverload = 8, kFunctionDefault = 11, kFunctionOverload = 13;

// The strings and messages of a field, whether or not the message's class knows it.
std::vector<std::string> fields_of(const google::protobuf::MessageLite& message, int number) {
    std::vector<std::string> found;
    google::protobuf::UnknownFieldSet all;
    if (!all.ParseFromString(message.SerializeAsString())) return found;
    for (int i = 0; i < all.field_count(); i++) {
        const google::protobuf::UnknownField& field = all.field(i);
        if (field.number() == number &&
            field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
            found.push_back(field.length_delimited());
    }
    return found;
}

std::string text_of(const google::protobuf::MessageLite& message, int number) {
    const std::vector<std::string> found = fields_of(message, number);
    return found.empty() ? "" : found.back();
}

class Reader {
public:
    Reader(const std::string& folder, StringTable* strings,
           const std::shared_ptr<const void>& keeper, std::string* why)
        : tensors_(folder, strings, keeper, why), why_(why) {}
    const std::set<std::string>& data_files() const { return tensors_.files(); }

    // Takes the data of tensors away as it goes, so that it is not held twice. outside: where it
    // lies, as far as they do not hold it themselves.
    bool graph(onnx::GraphProto* from, int level, Graph* to, const OutsideData& outside = {});
    bool node(onnx::NodeProto* from, int level, Node* to, const OutsideNode& outside = {});
    bool functions(onnx::ModelProto* from, Functions* to);

private:
    bool fail(const std::string& why) {
        *why_ = why;
        return false;
    }
    // tensor, graph: where their data lies; null if they hold it themselves.
    bool attribute(onnx::AttributeProto* from, int level, Attribute* to, const RawData* tensor,
                   const OutsideData* graph);
    static ValueInfo info(const onnx::ValueInfoProto& from);

    TensorReader tensors_;
    std::string* why_;
    bool overloads_ = false;  // some function has one: nodes are asked which they call
};

ValueInfo Reader::info(const onnx::ValueInfoProto& from) {
    ValueInfo to;
    to.name = from.name();
    to.is_tensor = from.type().has_tensor_type() || !from.has_type();
    if (!from.type().has_tensor_type()) return to;
    const onnx::TypeProto::Tensor& tensor = from.type().tensor_type();
    to.type = (ElementType)tensor.elem_type();
    to.has_shape = tensor.has_shape();
    // Exporters write "?" or "-1" for each open size: texts without a letter are no names, by which
    // sizes would be the same.
    const auto is_letter = [](unsigned char ch) {  // of any script, in UTF-8
        return ((ch | 32) >= 'a' && (ch | 32) <= 'z') || ch >= 0x80;
    };
    for (const auto& dim : tensor.shape().dim()) {
        const std::string& name = dim.dim_param();
        DimInfo d;
        if (dim.has_dim_value() && dim.dim_value() >= 0) d.value = dim.dim_value();
        if (std::any_of(name.begin(), name.end(), is_letter)) d.name = name;
        to.shape.push_back(d);
    }
    return to;
}

// Number i, or null.
static const RawData* data_at(const std::vector<RawData>& all, size_t i) {
    return i < all.size() && all[i].data ? &all[i] : nullptr;
}

bool Reader::attribute(onnx::AttributeProto* from, int level, Attribute* to, const RawData* tensor,
                       const OutsideData* outside) {
    to->reference = from->ref_attr_name();
    to->f = from->f(), to->i = from->i(), to->s = from->s();
    to->floats.assign(from->floats().begin(), from->floats().end());
    to->ints.assign(from->ints().begin(), from->ints().end());
    to->strings.assign(from->strings().begin(), from->strings().end());
    switch (from->type()) {
        case onnx::AttributeProto::FLOAT:
            to->kind = Attribute::kFloat;
            break;
        case onnx::AttributeProto::INT:
            to->kind = Attribute::kInt;
            break;
        case onnx::AttributeProto::STRING:
            to->kind = Attribute::kString;
            break;
        case onnx::AttributeProto::FLOATS:
            to->kind = Attribute::kFloats;
            break;
        case onnx::AttributeProto::INTS:
            to->kind = Attribute::kInts;
            break;
        case onnx::AttributeProto::STRINGS:
            to->kind = Attribute::kStrings;
            break;
        case onnx::AttributeProto::TENSOR:
            to->kind = Attribute::kTensor;
            if (from->has_t()) return tensors_.read(from->t(), &to->t, tensor);
            return !to->reference.empty() || fail("attribute " + from->name() + " has no tensor");
        case onnx::AttributeProto::GRAPH:
            to->kind = Attribute::kGraph;
            to->g = std::make_shared<Graph>();
            return graph(from->mutable_g(), level + 1, to->g.get(),
                         outside ? *outside : OutsideData());
        default:
            to->kind = Attribute::kOther;
    }
    return true;
}

bool Reader::node(onnx::NodeProto* from, int level, Node* to, const OutsideNode& outside) {
    Limits::add_nodes_of_file(1);
    to->name = from->name(), to->op = from->op_type();
    to->domain = from->domain() == "ai.onnx" ? "" : from->domain();
    if (overloads_) to->overload = text_of(*from, kNodeOverload);
    to->inputs.assign(from->input().begin(), from->input().end());
    to->outputs.assign(from->output().begin(), from->output().end());
    while (!to->inputs.empty() && to->inputs.back().empty()) to->inputs.pop_back();
    size_t number = 0;
    for (auto& a : *from->mutable_attribute()) {
        const auto inner = outside.graphs.find(number);
        if (!attribute(&a, level, &to->attributes[a.name()], data_at(outside.tensors, number),
                       inner == outside.graphs.end() ? nullptr : inner->second.get()))
            return fail("node " + to->label() + " (" + to->op + "): " + *why_);
        number++;
    }
    return true;
}

bool Reader::functions(onnx::ModelProto* from, Functions* to) {
    for (const auto& f : from->functions())
        overloads_ = overloads_ || !text_of(f, kFunctionOverload).empty();
    for (auto& f : *from->mutable_functions()) {
        Function function;
        function.inputs.assign(f.input().begin(), f.input().end());
        function.outputs.assign(f.output().begin(), f.output().end());
        for (const std::string& bytes : fields_of(f, kFunctionDefault)) {
            onnx::AttributeProto a;
            if (!a.ParseFromString(bytes))
                return fail("function " + f.name() + ": an attribute cannot be parsed");
            if (!attribute(&a, 0, &function.defaults[a.name()], nullptr, nullptr)) return false;
        }
        const std::string key = function_key(f.domain(), f.name(), text_of(f, kFunctionOverload));
        for (auto& n : *f.mutable_node()) {
            function.nodes.emplace_back();
            if (!node(&n, 0, &function.nodes.back())) return false;
        }
        (*to)[key] = function;
    }
    return true;
}

bool Reader::graph(onnx::GraphProto* from, int level, Graph* to, const OutsideData& outside) {
    if (level > kMostLevels)
        return fail("subgraphs are nested deeper than " + std::to_string(kMostLevels));
    size_t number = 0;
    for (auto& t : *from->mutable_initializer()) {
        const RawData* data = data_at(outside.initializers, number++);
        if (!tensors_.read(t, &to->initializers[t.name()], data)) return false;
        delete t.release_raw_data();
    }
    if (from->sparse_initializer_size() > 0)
        return fail("sparse initializers (" + from->sparse_initializer(0).values().name() +
                    ") are not supported");
    static const OutsideNode kNone;
    for (auto& n : *from->mutable_node()) {
        const auto data = outside.nodes.find(to->nodes.size());
        to->nodes.emplace_back();
        if (!node(&n, level, &to->nodes.back(), data == outside.nodes.end() ? kNone : data->second))
            return false;
    }
    for (const auto& v : from->input()) to->inputs.push_back(info(v));
    for (const auto& v : from->output()) to->outputs.push_back(info(v));
    for (const auto& v : from->value_info()) to->infos.push_back(info(v));
    return true;
}

bool parse_file(const std::string& path, onnx::ModelProto* proto, std::string* why) {
    google::protobuf::SetLogHandler(nullptr);
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        *why = path + ": " + strerror(errno);
        return false;
    }
    google::protobuf::io::FileInputStream stream(fd);
    const bool parsed = proto->ParseFromZeroCopyStream(&stream);
    const int error = stream.GetErrno();
    close(fd);
    if (error != 0)
        *why = path + ": " + strerror(error);
    else if (parsed && proto->has_graph())
        return true;
    else {
        const std::string format = foreign_format_of(path, "an ONNX model");
        *why = path + ": no ONNX model" +
               (!format.empty() ? ", it is " + format
                : parsed        ? " (it has no graph)"
                                : ", or one that is cut short (protobuf cannot be parsed)");
    }
    return false;
}

}  // namespace

static bool read_model(onnx::ModelProto* proto, const OutsideData& outside,
                       const std::string& folder, OnnxModel* model, std::string* why) {
    Reader reader(folder, model->strings.get(), outside.keeper, why);
    model->producer = proto->producer_name();
    for (const auto& set : proto->opset_import())
        model->opsets[set.domain() == "ai.onnx" ? "" : set.domain()] =
            (int)std::min<int64_t>(std::max<int64_t>(set.version(), 0), 1 << 20);
    if (!model->opsets.count("")) model->opsets[""] = 1;
    Functions functions;
    if (!reader.functions(proto, &functions)) return false;
    for (const auto& f : proto->functions())
        for (const auto& set : f.opset_import())
            model->opsets.emplace(set.domain() == "ai.onnx" ? "" : set.domain(),
                                  (int)set.version());
    if (!reader.graph(proto->mutable_graph(), 0, &model->graph, outside)) return false;
    model->data_files.assign(reader.data_files().begin(), reader.data_files().end());
    proto->Clear();
    return inline_functions(functions, &model->graph, why);
}

// The large tensors stay outside of *proto. False if that cannot be, for whatever reason.
static bool parse_split(const void* data, size_t size, onnx::ModelProto* proto,
                        OutsideData* outside) {
    google::protobuf::SetLogHandler(nullptr);
    std::string rest;
    if (take_raw_data((const unsigned char*)data, size, &rest, outside) && rest.size() <= INT_MAX &&
        proto->ParseFromString(rest) && proto->has_graph())
        return true;
    proto->Clear();
    *outside = OutsideData();
    return false;
}

static bool parse_mapped(const std::string& path, onnx::ModelProto* proto, OutsideData* outside) {
    const std::shared_ptr<MappedFile> file(MappedFile::open(path.c_str()), [](MappedFile* file) {
        if (file) file->close();
    });
    const size_t size = file ? file->remaining() : 0;
    const void* data = nullptr;
    if (size == 0 || file->reference(size, &data) != size ||
        !parse_split(data, size, proto, outside))
        return false;
    outside->keeper = file;
    return true;
}

bool read_onnx(const std::string& path, OnnxModel* model, std::string* why) {
    onnx::ModelProto proto;
    OutsideData outside;
    if (!parse_mapped(path, &proto, &outside) && !parse_file(path, &proto, why)) return false;
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
    model->file = outside.keeper;
    if (read_model(&proto, outside, folder.empty() ? "/" : folder, model, why)) return true;
    *why = path + ": " + *why;
    return false;
}

bool read_onnx(const void* data, size_t size, const std::string& folder, OnnxModel* model,
               std::string* why) {
    onnx::ModelProto proto;
    OutsideData outside;
    if (!parse_split(data, size, &proto, &outside) &&
        (size > INT_MAX || !proto.ParseFromArray(data, (int)size) || !proto.has_graph())) {
        *why = "no ONNX model, or one that is cut short";
        return false;
    }
    return read_model(&proto, outside, folder, model, why);
}

}  // namespace onnx_tool
}  // namespace quoll
