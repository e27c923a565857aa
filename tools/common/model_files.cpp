#include "common/model_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>

#include "common/run_options.h"
#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/log.h"
#include "runtime/file_format.h"

namespace quoll {

bool ends_with(const std::string& s, const std::string& end) {
    return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

int read_bytes(const std::string& path, std::vector<unsigned char>* bytes) {
    FILE* fp = fopen(path.c_str(), "rb");
    if (!fp) {
        QUOLL_LOGE("%s cannot be opened: %s", path.c_str(), strerror(errno));
        return -1;
    }
    struct stat st;
    const bool known = fstat(fileno(fp), &st) == 0;
    bool right = known && (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode));
    if (!right)
        QUOLL_LOGE("%s is %s, expected a file", path.c_str(),
                   known && S_ISDIR(st.st_mode) ? "a folder" : "a device");
    // A regular file may be longer than it says, in /proc.
    bytes->resize(right && st.st_size > 0 ? (size_t)st.st_size + 1 : (size_t)1 << 16);
    size_t size = 0;
    while (right) {
        size += fread(bytes->data() + size, 1, bytes->size() - size, fp);
        if (size < bytes->size()) break;
        bytes->resize(size * 2);
    }
    if (right && ferror(fp)) {
        QUOLL_LOGE("%s cannot be read: %s", path.c_str(), strerror(errno));
        right = false;
    }
    fclose(fp);
    bytes->resize(size);
    return right ? 0 : -1;
}

std::string foreign_format_of(const std::string& path, const std::string& expected) {
    struct stat st;
    if (stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return "";
    FILE* const fp = fopen(path.c_str(), "rb");
    if (!fp) return "";
    unsigned char head[4096];
    const size_t have = fread(head, 1, sizeof(head), fp);
    fclose(fp);
    const char* const format =
        unexpected_format(head, have, (uint64_t)st.st_size, FileKind::kBinaryParam);
    return format && expected.compare(0, expected.size(), format,
                                      std::min(expected.size(), strlen(format))) != 0
               ? format
               : "";
}

int read_text(const std::string& path, const char* expected, std::string* text) {
    std::vector<unsigned char> bytes;
    if (read_bytes(path, &bytes)) return -1;
    const std::string format = foreign_format_of(path, expected);
    if (!format.empty())
        QUOLL_LOGE("%s: expected %s, it is %s", path.c_str(), expected, format.c_str());
    text->assign(bytes.begin(), bytes.end());
    return format.empty() ? 0 : -1;
}

int read_weights(const std::string& path, std::vector<unsigned char>* bytes) {
    if (read_bytes(path, bytes)) return -1;
    const char* const format =
        unexpected_format(bytes->data(), bytes->size(), bytes->size(), FileKind::kWeights);
    if (format) QUOLL_LOGE("%s: expected weights, it is %s", path.c_str(), format);
    return format ? -1 : 0;
}

// Reads by copying: the bytes may go before the Model does.
class CopiedBytes : public DataReaderFromMemory {
public:
    using DataReaderFromMemory::DataReaderFromMemory;
    size_t reference(size_t, const void**) const override { return 0; }
};

int load_model_files(const std::string& param, const std::string& bin, Model* model) {
    if (ends_with(param, ".param.bin") ? model->load_param_bin(param.c_str())
                                       : model->load_param(param.c_str()))
        return -1;
    if (check_acyclic(*model)) return -1;
    if (bin.empty()) return 0;
    std::vector<unsigned char> bytes;
    if (read_weights(bin, &bytes)) return -1;
    const unsigned char* p = bytes.data();
    if (model->check_weights_id(p, bytes.size()) ||
        model->load_model(CopiedBytes(p, bytes.size()), true)) {
        QUOLL_LOGE("the weights are in %s", bin.c_str());
        return -1;
    }
    return 0;
}

int write_bytes(const std::vector<unsigned char>& bytes, const std::string& path,
                const std::string& target) {
    FILE* fp = path.empty() ? nullptr : fopen(path.c_str(), "wb");
    if (!fp && !path.empty())
        QUOLL_LOGE("%s cannot be opened: %s", target.c_str(), strerror(errno));
    if (!fp) return -1;
    const bool written = fwrite(bytes.data(), 1, bytes.size(), fp) == bytes.size();
    if (fclose(fp) == 0 && written) return 0;
    QUOLL_LOGE("%s cannot be written: %s", target.c_str(), strerror(errno));
    return -1;
}

int write_file(const std::string& target, const std::string& text, OutputFiles* files) {
    return write_bytes(std::vector<unsigned char>(text.begin(), text.end()), files->add(target),
                       target);
}

int save_model_files(Model& model, const std::string& param, const std::string& bin,
                     OutputFiles* files) {
    std::vector<unsigned char> bytes;
    const DataWriterToMemory writer(&bytes);
    const bool binary = ends_with(param, ".param.bin");
    if (model.number_weights()) return -1;
    if (binary ? model.save_param_bin(writer) : model.save_param(writer)) return -1;
    if (write_bytes(bytes, files->add(param), param)) return -1;
    bytes.clear();
    if (model.save_model(writer)) return -1;
    return write_bytes(bytes, files->add(bin), bin);
}

std::string grouped(int64_t number) {
    std::string text = std::to_string(number);
    for (int at = (int)text.size() - 3; at > (number < 0 ? 1 : 0); at -= 3) text.insert(at, ",");
    return text;
}

std::string size_text(const Shape& shape) { return shape.dims ? axes_text(shape) : "?"; }

}  // namespace quoll
