// A model whose files are encrypted: a DataReader decrypts graph and weights while they are read,
// so that the plain model is never in a file.
//   encrypted seal KEY PLAIN SEALED                     encrypts a file
//   encrypted run KEY MODEL.param.sealed MODEL.bin.sealed   runs the digits model
// KEY is 64 hexadecimal digits. A sealed file is a nonce of 12 bytes and the encrypted content.
#include <quoll/datareader.h>
#include <quoll/log.h>
#include <quoll/net.h>
#include <stdio.h>
#include <string.h>

#include <fstream>
#include <random>
#include <string>

#include "../digit_picture.h"
#include "../usage.h"
#include "chacha20.h"

// Reads a sealed file from its beginning to its end.
class DecryptingReader : public quoll::DataReader {
public:
    // `nonce` is what the file begins with; `fp` stands behind it and stays the caller's.
    DecryptingReader(FILE* fp, const unsigned char* key, const unsigned char* nonce)
        : file_(fp), cipher_(key, nonce, 0) {}

    size_t read(void* buf, size_t size) const override {
        const size_t count = file_.read(buf, size);
        cipher_.apply((unsigned char*)buf, count);
        return count;
    }
    // Lets the loader refuse counts that the file cannot hold.
    size_t remaining() const override { return file_.remaining(); }

private:
    quoll::DataReaderFromStdio file_;
    mutable ChaCha20 cipher_;
};

static bool parse_key(const char* text, unsigned char* key) {
    static const char kDigits[] = "0123456789abcdef";
    if (strlen(text) != 2 * ChaCha20::kKeySize) return false;
    for (int i = 0; i < ChaCha20::kKeySize; i++) {
        const char *high = strchr(kDigits, text[2 * i]), *low = strchr(kDigits, text[2 * i + 1]);
        if (!high || !low) return false;
        key[i] = (unsigned char)((high - kDigits) * 16 + (low - kDigits));
    }
    return true;
}

static int seal(const unsigned char* key, const char* plain, const char* sealed) {
    unsigned char nonce[ChaCha20::kNonceSize];
    std::random_device random;
    for (unsigned char& byte : nonce) byte = (unsigned char)random();
    ChaCha20 cipher(key, nonce, 0);

    // All of it before anything is written: SEALED may be the same file.
    std::ifstream in(plain, std::ios::binary);
    std::string content;
    char chunk[4096];
    while (in.read(chunk, sizeof(chunk)), in.gcount() > 0)
        content.append(chunk, (size_t)in.gcount());
    if (in.bad() || content.empty()) {
        fprintf(stderr, "encrypted: %s is empty or cannot be read\n", plain);
        return 1;
    }
    cipher.apply((unsigned char*)&content[0], content.size());
    std::ofstream out(sealed, std::ios::binary);
    const bool opened = out.is_open();
    out.write((const char*)nonce, sizeof(nonce));
    out.write(content.data(), (std::streamsize)content.size());
    out.close();
    if (out) return 0;
    // No half of a file. It may be a device, which must not be removed.
    if (opened) std::ofstream(sealed, std::ios::binary | std::ios::trunc);
    fprintf(stderr, "encrypted: %s cannot be written\n", sealed);
    return 1;
}

// Calls load(reader) on a sealed file.
template <class Load>
static int load_sealed(const char* path, const unsigned char* key, const Load& load) {
    FILE* fp = fopen(path, "rb");
    unsigned char nonce[ChaCha20::kNonceSize];
    int status = -1;
    if (fp && fread(nonce, 1, sizeof(nonce), fp) == sizeof(nonce))
        status = load(DecryptingReader(fp, key, nonce));
    if (fp) fclose(fp);
    if (status) fprintf(stderr, "encrypted: %s: no sealed model, or another key\n", path);
    return status;
}

static int run(const unsigned char* key, const char* param, const char* bin) {
    quoll::set_log_level(quoll::kLogOff);  // with another key messages would quote noise
    quoll::Net net;
    if (load_sealed(param, key, [&](const quoll::DataReader& r) { return net.load_param(r); }) ||
        load_sealed(bin, key, [&](const quoll::DataReader& r) { return net.load_model(r); }))
        return 1;
    quoll::Extractor ex = net.create_extractor();
    quoll::Mat out;
    if (ex.input("data", digit_picture()) || ex.extract("prob", out)) return 1;
    return show_digit(out) == 2 ? 0 : 1;
}

static const char kUsage[] =
    "usage: encrypted seal KEY PLAIN SEALED\n"
    "       encrypted run KEY MODEL.param.sealed MODEL.bin.sealed\n"
    "KEY is 64 hexadecimal digits in lower case.\n";

int main(int argc, char** argv) {
    unsigned char key[ChaCha20::kKeySize];
    const std::string command = argc == 5 ? argv[1] : "";
    const bool right = (command == "seal" || command == "run") && parse_key(argv[2], key);
    int code;
    if (usage(argc, argv, right, kUsage, &code)) return code;
    return command == "seal" ? seal(key, argv[3], argv[4]) : run(key, argv[3], argv[4]);
}
