// What small programs need of OpenCV 4, by its names, for 8-bit images of 1, 3 and 4 channels: link
// ncnn_simpleocv and define USE_NCNN_SIMPLEOCV. Images are BGR or BGRA, rows without gaps.
#ifndef NCNN_SIMPLEOCV_H
#define NCNN_SIMPLEOCV_H

#include "platform.h"

#if NCNN_SIMPLEOCV

#include <limits.h>
#include <string.h>

#include "allocator.h"
#include "mat.h"

typedef unsigned char uchar;
#if defined(_WIN32)
typedef unsigned short ushort;
typedef unsigned int uint;
#endif

enum {
    CV_LOAD_IMAGE_UNCHANGED = -1,
    CV_LOAD_IMAGE_GRAYSCALE = 0,
    CV_LOAD_IMAGE_COLOR = 1,
};
enum { CV_IMWRITE_JPEG_QUALITY = 1 };

#define CV_8UC1 1
#define CV_8UC3 3
#define CV_8UC4 4
#define CV_32FC1 4

namespace cv {

// A conversion that stays within the type.
template <typename T>
inline T saturate_cast(int v) {
    return T(v);
}
template <>
inline uchar saturate_cast<uchar>(int v) {
    return (uchar)std::min(std::max(v, 0), UCHAR_MAX);
}

template <typename T>
struct Scalar_ {
    Scalar_(T v0 = 0, T v1 = 0, T v2 = 0, T v3 = 0) : v{v0, v1, v2, v3} {}
    T operator[](int i) const { return v[i]; }
    T& operator[](int i) { return v[i]; }
    T v[4];
};
typedef Scalar_<uchar> Scalar;

template <typename T>
struct Point_ {
    Point_() : x(0), y(0) {}
    Point_(T x_, T y_) : x(x_), y(y_) {}
    template <typename U>
    operator Point_<U>() const {
        return Point_<U>(saturate_cast<U>((int)x), saturate_cast<U>((int)y));
    }
    T x, y;
};
typedef Point_<int> Point;
typedef Point_<float> Point2f;

template <typename T>
struct Size_ {
    Size_() : width(0), height(0) {}
    Size_(T w, T h) : width(w), height(h) {}
    template <typename U>
    operator Size_<U>() const {
        return Size_<U>(saturate_cast<U>((int)width), saturate_cast<U>((int)height));
    }
    T width, height;
};
typedef Size_<int> Size;
typedef Size_<float> Size2f;

template <typename T>
struct Rect_ {
    Rect_() : x(0), y(0), width(0), height(0) {}
    Rect_(T x_, T y_, T w, T h) : x(x_), y(y_), width(w), height(h) {}
    Rect_(Point_<T> p, Size_<T> size) : x(p.x), y(p.y), width(size.width), height(size.height) {}
    template <typename U>
    operator Rect_<U>() const {
        return Rect_<U>(saturate_cast<U>((int)x), saturate_cast<U>((int)y),
                        saturate_cast<U>((int)width), saturate_cast<U>((int)height));
    }
    T area() const { return width * height; }
    T x, y, width, height;
};
typedef Rect_<int> Rect;
typedef Rect_<float> Rect2f;

// The common part, empty if there is none; and the rectangle around both.
template <typename T>
inline Rect_<T> operator&(const Rect_<T>& a, const Rect_<T>& b) {
    const T x = std::max(a.x, b.x), y = std::max(a.y, b.y);
    const T w = std::min(a.x + a.width, b.x + b.width) - x;
    const T h = std::min(a.y + a.height, b.y + b.height) - y;
    return w > 0 && h > 0 ? Rect_<T>(x, y, w, h) : Rect_<T>();
}
template <typename T>
inline Rect_<T> operator|(const Rect_<T>& a, const Rect_<T>& b) {
    const T x = std::min(a.x, b.x), y = std::min(a.y, b.y);
    return Rect_<T>(x, y, std::max(a.x + a.width, b.x + b.width) - x,
                    std::max(a.y + a.height, b.y + b.height) - y);
}
template <typename T>
inline Rect_<T>& operator&=(Rect_<T>& a, const Rect_<T>& b) {
    return a = a & b;
}
template <typename T>
inline Rect_<T>& operator|=(Rect_<T>& a, const Rect_<T>& b) {
    return a = a | b;
}

// Copies share the pixels. Of a type the number is the bytes of a pixel: CV_32FC1 is one float.
struct Mat {
    Mat() : data(0), rows(0), cols(0), c(0) {}
    Mat(int rows_, int cols_, int type) : Mat() { create(rows_, cols_, type); }
    // Pixels that the caller keeps alive.
    Mat(int rows_, int cols_, int type, void* pixels)
        : data((uchar*)pixels), rows(rows_), cols(cols_), c(type) {}
    Mat& operator=(const Scalar& s) {
        for (size_t i = 0; i < total(); i++) data[i] = s[(int)(i % (size_t)c)];
        return *this;
    }
    // Uninitialised; empty when memory runs out.
    void create(int rows_, int cols_, int type) {
        release();
        rows = rows_, cols = cols_, c = type;
        if (total() == 0) return;
        owner_.reset((uchar*)ncnn::fastMalloc(total()), ncnn::fastFree);
        data = owner_.get();
    }
    void release() { *this = Mat(); }
    Mat clone() const { return (*this)(Rect(0, 0, cols, rows)); }
    bool empty() const { return data == 0 || total() == 0; }
    int channels() const { return c; }
    int type() const { return c; }
    size_t total() const { return (size_t)cols * rows * c; }
    const uchar* ptr(int y) const { return data + (size_t)y * cols * c; }
    uchar* ptr(int y) { return data + (size_t)y * cols * c; }
    template <typename T>
    const T* ptr(int y) const {
        return (const T*)ptr(y);
    }
    template <typename T>
    T* ptr(int y) {
        return (T*)ptr(y);
    }
    // A copy of the rectangle, which has to lie within.
    Mat operator()(const Rect& roi) const {
        if (empty()) return Mat();
        Mat m(roi.height, roi.width, c);
        for (int y = 0; y < roi.height && m.data; y++)
            memcpy(m.ptr(y), ptr(roi.y + y) + (size_t)roi.x * c, (size_t)roi.width * c);
        return m;
    }

    uchar* data;
    int rows, cols;
    int c;

private:
    std::shared_ptr<uchar> owner_;
};

enum ImreadModes { IMREAD_UNCHANGED = -1, IMREAD_GRAYSCALE = 0, IMREAD_COLOR = 1 };
enum ImwriteFlags { IMWRITE_JPEG_QUALITY = 1 };

// Any format of stb_image's. Empty, after a message, if the file cannot be read.
Mat imread(const std::string& path, int flags = IMREAD_COLOR);
Mat imdecode(const std::vector<uchar>& buf, int flags = IMREAD_COLOR);
// By the ending: .jpg, .jpeg (quality 95 unless params say {IMWRITE_JPEG_QUALITY, q}), .png, .bmp.
// False, after a message, if it cannot be written.
bool imwrite(const std::string& path, const Mat& m,
             const std::vector<int>& params = std::vector<int>());
// There are no windows: writes <name>.png.
void imshow(const std::string& name, const Mat& m);
// No keys either: returns -1 at once.
int waitKey(int delay = 0);

#if NCNN_PIXEL
// Bilinear. A size of 0 x 0: that of src times sw and sh.
void resize(const Mat& src, Mat& dst, const Size& size, float sw = 0.f, float sh = 0.f,
            int flags = 0);
#endif

#if NCNN_PIXEL_DRAWING
enum { FILLED = -1 };
enum { FONT_HERSHEY_SIMPLEX = 0 };
void rectangle(Mat& img, Point pt1, Point pt2, const Scalar& color, int thickness = 1);
void rectangle(Mat& img, Rect rec, const Scalar& color, int thickness = 1);
void circle(Mat& img, Point center, int radius, const Scalar& color, int thickness = 1);
void line(Mat& img, Point p0, Point p1, const Scalar& color, int thickness = 1);
// org: the lower left corner of the text. A character of scale 1 is 20 pixels wide.
void putText(Mat& img, const std::string& text, Point org, int fontFace, double fontScale,
             Scalar color, int thickness = 1);
Size getTextSize(const std::string& text, int fontFace, double fontScale, int thickness,
                 int* baseLine);
#endif

}  // namespace cv

#endif  // NCNN_SIMPLEOCV

#endif
