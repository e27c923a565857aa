// Photographs from files, annotated pictures to files.
#ifndef QUOLL_TOOLS_IMAGE_FILE_H
#define QUOLL_TOOLS_IMAGE_FILE_H

#include <string>
#include <vector>

namespace quoll {

// Interleaved 8-bit RGB, rows from top to bottom without gaps.
struct Image {
    int w = 0, h = 0;
    std::vector<unsigned char> rgb;  // w * h * 3 bytes
};

// JPEG, PNG, BMP, PNM, TGA or GIF; grey and alpha are converted to RGB, and photographs turned as
// their EXIF tag says. 0, or a negative code after a message in the log.
int read_image(const std::string& path, Image* image);
// Whole or not at all; `inputs`: files that must not be overwritten.
int write_png(const std::string& path, const Image& image,
              const std::vector<std::string>& inputs = {});

}  // namespace quoll

#endif
