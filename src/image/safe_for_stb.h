// Before stb_image sees a JPEG: its versions below 2.28, which distributions have, write the codes
// of a Huffman table behind the table's end when there are more than 256.
#ifndef QUOLL_IMAGE_SAFE_FOR_STB_H
#define QUOLL_IMAGE_SAFE_FOR_STB_H

#include <stddef.h>
#include <string.h>

#include <vector>

namespace quoll {

typedef std::vector<unsigned char> FileBytes;

// The position of the marker after the first 0xff bytes, of which stb_image accepts any number; 0
// if this is no JPEG.
inline size_t jpeg_start(const FileBytes& bytes) {
    size_t at = 0;
    while (at < bytes.size() && bytes[at] == 0xff) at++;
    return at > 0 && at < bytes.size() && bytes[at] == 0xd8 ? at : 0;
}

// The same picture without application data and comments, which may have any bytes; JFIF's and
// Adobe's segments (0xe0, 0xee) tell about colours. (ISO/IEC 10918-1, annex B)
inline FileBytes jpeg_without_notes(const FileBytes& bytes) {
    size_t at = jpeg_start(bytes) + 1;
    FileBytes kept(bytes.begin(), bytes.begin() + at);
    while (at + 4 <= bytes.size() && bytes[at] == 0xff) {
        const unsigned char marker = bytes[at + 1];
        const size_t end = at + 2 + bytes[at + 2] * 256u + bytes[at + 3];
        const bool has_length = marker >= 0xc0 && (marker < 0xd0 || marker > 0xda);
        if (!has_length || end > bytes.size()) break;  // the scan, or nothing that is known
        const bool note = marker == 0xfe || (marker > 0xe0 && marker < 0xf0 && marker != 0xee);
        if (!note) kept.insert(kept.end(), bytes.begin() + at, bytes.begin() + end);
        at = end;
    }
    kept.insert(kept.end(), bytes.begin() + at, bytes.end());
    return kept;
}

// Whether each table, wherever a reader may find one, has at most 256 codes.
inline bool jpeg_tables_fit(const FileBytes& bytes) {
    for (size_t i = 0; i + 4 < bytes.size(); i++) {
        if (bytes[i] != 0xff || bytes[i + 1] != 0xc4) continue;
        long left = bytes[i + 2] * 256L + bytes[i + 3] - 2;
        for (size_t at = i + 4; left > 0 && at < bytes.size();) {
            int codes = 0;
            for (size_t k = at + 1; k < at + 17 && k < bytes.size(); k++) codes += bytes[k];
            if (codes > 256) return false;
            at += 17 + (size_t)codes;
            left -= 17 + codes;
        }
    }
    return true;
}

// Whether the sizes of a PNM are ints.
inline bool pnm_sizes_fit(const FileBytes& bytes) {
    const auto is = [](unsigned char ch, const char* set) { return ch && strchr(set, ch); };
    size_t at = 2;
    for (int i = 0; i < 3; i++) {
        while (at < bytes.size() && is(bytes[at], " \t\n\v\f\r#")) {
            if (bytes[at++] != '#') continue;
            while (at < bytes.size() && !is(bytes[at], "\n\r")) at++;
        }
        const size_t first = at;
        while (at < bytes.size() && is(bytes[at], "0123456789")) at++;
        if (at - first > 9) return false;
    }
    return true;
}

// Null; or why stb_image must not read this file. Others it reads as they are then.
inline const char* make_safe_for_stb(FileBytes* bytes) {
    if (bytes->size() > 2 && (*bytes)[0] == 'P' && !pnm_sizes_fit(*bytes))
        return "a size of more than nine digits";
    if (!jpeg_start(*bytes)) return nullptr;
    *bytes = jpeg_without_notes(*bytes);
    return jpeg_tables_fit(*bytes) ? nullptr : "a Huffman table of more than 256 codes";
}

}  // namespace quoll

#endif
