// simpleocv.h: files, drawing, and what a detector does with them.
#include "check.h"
#include "simpleocv.h"

int main() {
    cv::Mat sheet = cv::imread("models/digits/sheet.png");
    CHECK(!sheet.empty() && sheet.channels() == 3 && sheet.type() == CV_8UC3);
    const cv::Mat grey = cv::imread("models/digits/sheet.png", cv::IMREAD_GRAYSCALE);
    CHECK(grey.channels() == 1 && grey.cols == sheet.cols && grey.rows == sheet.rows);
    CHECK(cv::imread("models/digits/nothing.png").empty());

    cv::Mat part = sheet(cv::Rect(8, 4, 16, 12));
    CHECK(part.cols == 16 && part.rows == 12 && part.ptr(0)[0] == sheet.ptr(4)[8 * 3]);
    cv::Mat shared = part, copy = part.clone();
    shared = cv::Scalar(10, 20, 30);
    CHECK(part.ptr(3)[4] == 20 && part.data == shared.data && copy.data != part.data);

    // BGR in memory is BGR again after a file, which has RGB.
    CHECK(cv::imwrite("test_ncnn_images.png", part));
    cv::Mat back = cv::imread("test_ncnn_images.png");
    CHECK(back.total() == part.total() && memcmp(back.data, part.data, part.total()) == 0);
    FILE* fp = fopen("test_ncnn_images.png", "rb");
    std::vector<uchar> bytes(1 << 16);
    bytes.resize(fread(&bytes[0], 1, bytes.size(), fp));
    fclose(fp);
    CHECK(cv::imdecode(bytes).total() == part.total());
    CHECK(remove("test_ncnn_images.png") == 0);
    CHECK(cv::imwrite("test_ncnn_images.jpg", part, {cv::IMWRITE_JPEG_QUALITY, 80}));
    remove("test_ncnn_images.jpg");
    CHECK(!cv::imwrite("test_ncnn_images.xyz", part) && !cv::imwrite("a.png", cv::Mat()));

    cv::resize(sheet, back, cv::Size(20, 10));
    CHECK(back.cols == 20 && back.rows == 10);
    cv::resize(back, back, cv::Size(), 0.5f, 0.5f);
    CHECK(back.cols == 10 && back.rows == 5);

    cv::Mat canvas(100, 200, CV_8UC3);
    canvas = cv::Scalar(0, 0, 0);
    cv::rectangle(canvas, cv::Rect(10, 10, 20, 20), cv::Scalar(1, 2, 3), cv::FILLED);
    CHECK(canvas.ptr(15)[15 * 3] == 1 && canvas.ptr(15)[15 * 3 + 2] == 3 && canvas.ptr(9)[30] == 0);
    cv::rectangle(canvas, cv::Point(80, 60), cv::Point(60, 40), cv::Scalar(9, 9, 9), 1);
    CHECK(canvas.ptr(40)[70 * 3] == 9 && canvas.ptr(50)[70 * 3] == 0);
    cv::circle(canvas, cv::Point(120, 50), 5, cv::Scalar(7, 7, 7), -1);
    cv::line(canvas, cv::Point(150, 0), cv::Point(150, 99), cv::Scalar(5, 5, 5));
    CHECK(canvas.ptr(50)[120 * 3] == 7 && canvas.ptr(70)[150 * 3] == 5);
    int base = -1;
    const cv::Size size = cv::getTextSize("face 99%", cv::FONT_HERSHEY_SIMPLEX, 0.5, 1, &base);
    CHECK(size.width > 0 && size.height > 0 && base >= 0);
    canvas = cv::Scalar(0, 0, 0);
    cv::putText(canvas, "face 99%", cv::Point(20, 60), cv::FONT_HERSHEY_SIMPLEX, 0.5,
                cv::Scalar(255, 255, 255));
    size_t inside = 0, drawn = 0;
    for (int y = 0; y < canvas.rows; y++)
        for (int x = 0; x < canvas.cols; x++) {
            if (!canvas.ptr(y)[x * 3]) continue;
            drawn++;
            inside += x >= 20 && x < 20 + size.width && y < 60 && y >= 60 - size.height;
        }
    CHECK(drawn > 20 && inside == drawn);

    cv::Rect2f a(0, 0, 10, 10), b(5, 5, 10, 10);
    CHECK((a & b).area() == 25.f && (a | b).area() == 225.f &&
          (a & cv::Rect2f(20, 20, 1, 1)).area() == 0);
    const cv::Rect whole = a;
    a &= b;
    CHECK(whole.width == 10 && a.x == 5.f && cv::saturate_cast<uchar>(300) == 255);
    CHECK(cv::waitKey(1) == -1);

    const ncnn::Mat in =
        ncnn::Mat::from_pixels(sheet.data, ncnn::Mat::PIXEL_BGR2RGB, sheet.cols, sheet.rows);
    CHECK(in.c == 3 && in.w == sheet.cols);
    return result_of_checks();
}
