#include "runtime/file_format.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <vector>

#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/open_file.h"
#include "runtime/weights_id.h"

namespace quoll {

namespace {

// Without texts, what comes is what ncnn2mem makes: other formats are no params or weights of ours,
// whichever they are.
constexpr bool kKnowsFormats = QUOLL_STRING || QUOLL_STDIO;

// Bytes of the beginning that are looked at.
const size_t kHead = 4096;

// The fields of a protobuf message of which the first bytes are known.
class Fields {
public:
    Fields(const unsigned char* head, size_t have, uint64_t size)
        : head_(head), have_(have), size_(size) {}

    int number = 0, wire = 0;
    uint64_t value = 0;  // of a varint; the length of bytes

    // False at the end of the known bytes, and, with bad() true, if this is not protobuf.
    bool next() {
        uint64_t key = 0;
        if (at_ >= have_ || !varint(&key)) return false;
        number = (int)(key >> 3), wire = (int)(key & 7);
        bad_ = key > 1 << 16 || number == 0 || (wire != 0 && wire != 2) || !varint(&value);
        begin = at_;
        if (!bad_ && wire == 2) bad_ = value > size_ - at_, at_ += bad_ ? 0 : value;
        return !bad_;
    }
    bool bad() const { return bad_; }
    // Whether the known bytes of this field are text.
    bool is_text() const {
        for (uint64_t i = begin; i < begin + value && i < have_; i++)
            if ((head_[i] < 0x20 && !strchr("\t\r\n", head_[i])) || head_[i] == 0) return false;
        return true;
    }
    uint64_t begin = 0;  // of this field's bytes

private:
    bool varint(uint64_t* v) {
        *v = 0;
        for (int shift = 0; shift < 63; shift += 7) {
            if (at_ >= have_) break;
            const unsigned char byte = head_[at_++];
            *v |= (uint64_t)(byte & 0x7f) << shift;
            if (byte < 0x80) return true;
        }
        bad_ = true;
        return false;
    }

    const unsigned char* const head_;
    const uint64_t have_, size_;
    uint64_t at_ = 0;
    bool bad_ = false;
};

// One letter per field number from 0 on: v varint, t text, m message; a space: there is no such
// field. Fields beyond have to be messages.
bool is_message(const unsigned char* head, size_t have, uint64_t size, const char* kinds,
                int first) {
    Fields fields(head, have, size);
    int count = 0;
    while (fields.next()) {
        const size_t known = strlen(kinds);
        const char kind = (size_t)fields.number < known ? kinds[fields.number] : 'm';
        const bool fits = kind == 'v' ? fields.wire == 0 : kind != ' ' && fields.wire == 2;
        if (!fits || (kind == 't' && !fields.is_text())) return false;
        if (count++ == 0 && fields.number != first) return false;
        if (fields.number > 127) return false;
    }
    return !fields.bad() && count >= 2;
}

bool begins(const unsigned char* head, size_t have, const char* with, size_t length) {
    return have >= length && memcmp(head, with, length) == 0;
}

// Caffe's text form: comments aside it begins with one of these.
bool is_prototxt(const unsigned char* head, size_t have) {
    size_t at = 0;
    while (at < have && (head[at] == '#' || strchr(" \t\r\n", head[at]))) {
        if (head[at] == '#')
            while (at < have && head[at] != '\n') at++;
        else if (head[at] == '\0')
            return false;
        else
            at++;
    }
    for (const char* word :
         {"name:", "name :", "layer {", "layer{", "layers {", "layers{", "input:"})
        if (begins(head + at, have - at, word, strlen(word))) return true;
    return false;
}

struct Signature {
    size_t at;
    const char* bytes;
    size_t length;
    const char* name;
};

const Signature kSignatures[] = {
    {4, "TFL3", 4, "a TFLite model"},
    {0, "PK\3\4", 4, "a ZIP archive, as PyTorch and NumPy write them"},
    {0, "\x80\2\x8a\n", 4, "a PyTorch file"},
    {0, "\x89HDF\r\n\x1a\n", 8, "an HDF5 file, as Keras writes them"},
    {0, "GGUF", 4, "a GGUF model"},
    {0, "\x93NUMPY", 6, "a NumPy array"},
    {0, "<?xml", 5, "an XML file, as OpenVINO writes them"},
    {0, "\x1f\x8b\x08", 3, "a gzip archive"},
};

const char* foreign_format(const unsigned char* head, size_t have, uint64_t size) {
    for (const Signature& s : kSignatures)
        if (have >= s.at && begins(head + s.at, have - s.at, s.bytes, s.length)) return s.name;
    if (is_message(head, have, size, " vtttvtmm", 1))
        return "an ONNX model, which onnx2engine converts";
    if (is_message(head, have, size, " tmtvvmvm", 1))
        return "a caffemodel, which caffe2engine converts";
    if (is_prototxt(head, have)) return "a prototxt, which caffe2engine converts";
    return nullptr;
}

}  // namespace

const char* unexpected_format(const unsigned char* head, size_t have, uint64_t size,
                              FileKind expected) {
    static const char kBinaryMagic[] = {(char)0xdd, (char)0x85, 0x76, 0};
    size_t at = 0;
    while (at < have && head[at] && strchr(" \t\r\n", head[at])) at++;
    const bool text = begins(head + at, have - at, "7767517", 7);
    const bool binary = begins(head, have, kBinaryMagic, 4);
    if (text)
        return expected == FileKind::kTextParam ? nullptr : "a text param, which load_param takes";
    if (binary)
        return expected == FileKind::kBinaryParam ? nullptr
                                                  : "a binary param, which load_param_bin takes";
    const char* const foreign = kKnowsFormats ? foreign_format(head, have, size) : nullptr;
    if (foreign || expected == FileKind::kWeights) return foreign;
    static const char* const kTags[] = {"\0\0\0\0", "\x47\x6b\x30\1", "\x38\x4b\x0d\0",
                                        "\x56\xc0\2\0"};
    for (const char* tag : kTags)
        if (begins(head, have, tag, 4))
            return "a file of weights, as it seems, which load_model takes";
    return nullptr;
}

#if QUOLL_STDIO
// Samples a regular file of weights.
static WeightsId id_of_file(FILE* fp, uint64_t size) {
    WeightsId id;
    std::vector<unsigned char> bytes;
    const WeightsHash place(size);
    for (int i = 0; i < place.count(); i++) {
        const size_t old = bytes.size();
        bytes.resize(old + place.length());
        if (fseeko(fp, (off_t)place.begin(i), SEEK_SET) != 0 ||
            fread(&bytes[old], 1, place.length(), fp) != place.length())
            return id;
    }
    id.size = size;
    id.hash = WeightsHash::of_samples(size, bytes.data(), bytes.size());
    return id;
}

int check_file_format(const char* path, const char* what, FileKind expected, const WeightsId& id) {
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return kOk;
    FILE* const fp = open_to_read(path);
    if (!fp) return kOk;
    unsigned char head[kHead];
    const size_t have = fread(head, 1, sizeof(head), fp);
    const uint64_t size = (uint64_t)st.st_size;
    WeightsId theirs;
    theirs.size = size;
    if (id.size && size >= id.size) theirs = id_of_file(fp, id.size);
    fclose(fp);
    const char* const format = unexpected_format(head, have, size, expected);
    if (format) {
        QUOLL_LOGE("[Net] %s: expected %s, %s is %s", what,
                   expected == FileKind::kWeights     ? "weights"
                   : expected == FileKind::kTextParam ? "a text param"
                                                      : "a binary param",
                   path, format);
        return kError;
    }
    return check_weights_id(id, theirs);
}
#endif

}  // namespace quoll
