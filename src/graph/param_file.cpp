#include "graph/param_file.h"

#include <limits.h>

#include <algorithm>

#include "quoll/datawriter.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/text_reader.h"

namespace quoll {

namespace {

// First token of a text param, first word of a binary one.
const int kParamMagic = 7767517;
// More inputs or outputs than any layer has; guards counts.
const int kMostBlobsPerLayer = 1 << 16;
// Longest layer type, layer name or blob name.
const size_t kLongestName = 4096;

bool is_space(int ch) { return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n'; }

// The next word, or "" at the end of the text. `same_line`: also "" at the end of the line, which
// stays unread. A word beyond kLongestName comes back cut, and the caller finds it wrong.
std::string read_word(const DataReader& dr, bool same_line) {
    int ch = next_of_text(dr);
    while (is_space(ch) && !(same_line && ch == '\n')) ch = next_of_text(dr);
    std::string word;
    while (ch != -1 && !is_space(ch) && word.size() < kLongestName) {
        word.push_back((char)ch);
        ch = next_of_text(dr);
    }
    if (ch != -1) dr.unget_char(ch);
    return word;
}

// A count from 0 to `most`.
bool parse_count(const std::string& word, int most, int* value) {
    long long v = 0;
    if (word.empty() || word.size() > 10) return false;
    for (char ch : word) {
        if (ch < '0' || ch > '9') return false;
        v = v * 10 + (ch - '0');
    }
    *value = (int)v;
    return v <= most;
}

bool read_int(const DataReader& dr, int* v) { return dr.read(v, 4) == 4; }

void append_int(std::string* bytes, int v) { bytes->append((const char*)&v, 4); }

}  // namespace

bool is_param_word(const std::string& word) {
    for (char ch : word)
        if (is_space((unsigned char)ch) || ch == '\0') return false;
    return !word.empty() && word.size() < kLongestName;
}

std::string param_word(const std::string& name) {
    const auto odd = [](char ch) {
        return (unsigned char)ch <= 32 || ch == 127 || ch == '"' || ch == '\'';
    };
    if (std::none_of(name.begin(), name.end(), odd)) return name;
    std::string word;
    for (char ch : name) {
        static const char kDigits[] = "0123456789ABCDEF";
        if (odd(ch) || ch == '%')
            word += {'%', kDigits[(unsigned char)ch >> 4], kDigits[ch & 15]};
        else
            word += ch;
    }
    return word;
}

int ParamFileReader::read_header() {
    if (is_text()) return read_text_header();
    if (binary_) return read_binary_header();
    QUOLL_LOGE("[Net] text params are not part of this build (QUOLL_STRING is off)");
    return kError;
}

int ParamFileReader::read_layer(ParamRecord* record) {
    *record = ParamRecord();
    const int status = is_text() ? read_text_layer(record) : read_binary_layer(record);
    layers_read_++;
    return status;
}

int ParamFileReader::read_text_header() {
    int magic = 0;
    const std::string first = read_word(dr_, false);
    if (!parse_count(first, INT_MAX, &magic) || magic != kParamMagic) {
        QUOLL_LOGE("[Net] param: expected the magic number %d, got '%.40s'", kParamMagic,
                   first.c_str());
        return kError;
    }
    const std::string layer_word = read_word(dr_, false), blob_word = read_word(dr_, false);
    if (!parse_count(layer_word, INT_MAX, &layer_count_) || layer_count_ == 0 ||
        !parse_count(blob_word, INT_MAX, &blob_count_) || blob_count_ == 0) {
        QUOLL_LOGE("[Net] param: expected the layer count and the blob count, got '%.40s %.40s'",
                   layer_word.c_str(), blob_word.c_str());
        return kError;
    }
    return kOk;
}

// "Type name inputs outputs input-names output-names id=value ..."
int ParamFileReader::read_text_layer(ParamRecord* record) {
    record->type = read_word(dr_, false), record->name = read_word(dr_, true);
    if (record->type.empty() || record->name.empty()) {
        QUOLL_LOGE("[Net] param: the text ends where layer %d should be", layers_read_ + 1);
        return kError;
    }
    const char *type = record->type.c_str(), *name = record->name.c_str();
    int counts[2] = {0, 0};
    for (int& count : counts) {
        const std::string word = read_word(dr_, true);
        if (parse_count(word, kMostBlobsPerLayer, &count)) continue;
        QUOLL_LOGE("[%s %s] expected a number of inputs and of outputs (at most %d), got '%.40s'",
                   type, name, kMostBlobsPerLayer, word.c_str());
        return kError;
    }
    for (int i = 0; i < counts[0] + counts[1]; i++) {
        int id = -1;
        const int status = read_text_blob(*record, &id);
        if (status == kOk && id < 0)
            QUOLL_LOGE("[%s %s] expected %d inputs and %d outputs, got %d names", type, name,
                       counts[0], counts[1], i);
        if (id < 0) return kError;
        (i < counts[0] ? record->bottoms : record->tops).push_back(id);
    }
    return record->params.load_param(dr_, ("[" + record->type + " " + record->name + "]").c_str());
}

// *id stays -1 at the end of the line.
int ParamFileReader::read_text_blob(const ParamRecord& record, int* id) {
    const std::string blob = read_word(dr_, true);
    if (blob.empty()) return kOk;
    const auto known = blob_of_name_.emplace(blob, (int)blob_names_.size());
    if (known.second) blob_names_.push_back(blob);
    if (blob_names_.size() > (size_t)blob_count_) {
        QUOLL_LOGE("[%s %s] blob '%s' is one more than the %d that the header announces",
                   record.type.c_str(), record.name.c_str(), blob.c_str(), blob_count_);
        return kError;
    }
    *id = known.first->second;
    return kOk;
}

int ParamFileReader::read_binary_header() {
    int magic = 0;
    if (!read_int(dr_, &magic) || magic != kParamMagic) {
        QUOLL_LOGE("[Net] binary param: expected the magic number %d, got %d", kParamMagic, magic);
        return kError;
    }
    // A layer takes at least 16 bytes, and there are no blobs without a layer that makes them.
    if (!read_int(dr_, &layer_count_) || !read_int(dr_, &blob_count_) || layer_count_ <= 0 ||
        blob_count_ <= 0 || (size_t)layer_count_ > dr_.remaining() / 16 ||
        (size_t)blob_count_ > dr_.remaining() / 4) {
        QUOLL_LOGE("[Net] binary param: bad counts of layers and blobs: %d and %d", layer_count_,
                   blob_count_);
        return kError;
    }
    return kOk;
}

int ParamFileReader::read_binary_layer(ParamRecord* record) {
    int counts[2] = {0, 0};
    if (!read_int(dr_, &record->typeindex) || !read_int(dr_, &counts[0]) ||
        !read_int(dr_, &counts[1]) || counts[0] < 0 || counts[1] < 0 ||
        counts[0] > kMostBlobsPerLayer || counts[1] > kMostBlobsPerLayer) {
        QUOLL_LOGE(
            "[Net] binary param: layer %d of type %d has %d inputs and %d outputs, or the file "
            "ends",
            layers_read_, record->typeindex, counts[0], counts[1]);
        return kError;
    }
    record->name = std::to_string(layers_read_);
    for (int i = 0; i < counts[0] + counts[1]; i++) {
        int id = -1;
        QUOLL_RETURN_IF_ERROR(read_binary_blob(*record, &id));
        (i < counts[0] ? record->bottoms : record->tops).push_back(id);
    }
    const std::string where =
        "[layer type " + std::to_string(record->typeindex) + " " + record->name + "]";
    return record->params.load_param_bin(dr_, where.c_str());
}

int ParamFileReader::read_binary_blob(const ParamRecord& record, int* id) {
    if (!read_int(dr_, id) || *id < 0 || *id >= blob_count_) {
        QUOLL_LOGE("[layer type %d %s] blob index: expected 0 to %d, got %d, or the file ends",
                   record.typeindex, record.name.c_str(), blob_count_ - 1, *id);
        return kError;
    }
    // Indexes are given out in order of appearance; without a known length nothing else bounds
    // them.
    if ((size_t)*id > blob_names_.size() && dr_.remaining() == (size_t)-1) {
        QUOLL_LOGE("[layer type %d %s] blob index %d comes before index %zu", record.typeindex,
                   record.name.c_str(), *id, blob_names_.size());
        return kError;
    }
    if ((size_t)*id >= blob_names_.size()) blob_names_.resize(*id + 1);
    return kOk;
}

int ParamFileWriter::write(const std::string& bytes) const {
    if (dw_.write(bytes.data(), bytes.size()) == bytes.size()) return kOk;
    QUOLL_LOGE("[Model] param: %zu bytes could not be written", bytes.size());
    return kError;
}

int ParamFileWriter::write_header(size_t layers, size_t blobs) const {
    std::string bytes;
    if (is_text()) {
        bytes = std::to_string(kParamMagic) + "\n" + std::to_string(layers) + " " +
                std::to_string(blobs) + "\n";
        return write(bytes);
    }
    append_int(&bytes, kParamMagic);
    append_int(&bytes, (int)layers);
    append_int(&bytes, (int)blobs);
    return write(bytes);
}

static void append_word(std::string* line, const std::string& word, bool column) {
    const size_t kColumn = 24;
    *line += word;
    line->append(column && word.size() < kColumn ? kColumn - word.size() + 1 : 1, ' ');
}

int ParamFileWriter::write_layer(const ParamRecord& record,
                                 const std::vector<std::string>& blob_names) const {
    const std::string where = "[" + record.type + " " + record.name + "]";
    std::string bytes;
    if (!is_text()) {
        append_int(&bytes, record.typeindex);
        append_int(&bytes, (int)record.bottoms.size());
        append_int(&bytes, (int)record.tops.size());
        for (int id : record.bottoms) append_int(&bytes, id);
        for (int id : record.tops) append_int(&bytes, id);
        QUOLL_RETURN_IF_ERROR(write(bytes));
        return record.params.save_param_bin(dw_, where.c_str());
    }
    append_word(&bytes, record.type, columns_);
    append_word(&bytes, record.name, columns_);
    bytes += std::to_string(record.bottoms.size()) + " " + std::to_string(record.tops.size());
    for (int id : record.bottoms) bytes += " " + blob_names[id];
    for (int id : record.tops) bytes += " " + blob_names[id];
    QUOLL_RETURN_IF_ERROR(write(bytes));
    QUOLL_RETURN_IF_ERROR(record.params.save_param(dw_, where.c_str()));
    return write("\n");
}

}  // namespace quoll
