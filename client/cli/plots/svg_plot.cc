#include <array>
#include <cstdio>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "client/cli/plots/throughput_plot.h"
#include "client/cli/texts/characters.h"
#include "client/cli/texts/table.h"

namespace stepcast::client {

namespace {

constexpr int kWidth = 760;
constexpr int kHeight = 480;
// Edges of the frame. On the left there is room for the longest tick.
constexpr double kLeft = 120;
constexpr double kRight = 730;
constexpr double kTop = 76;
constexpr double kBottom = 380;
constexpr size_t kTitleLength = 64;  // characters that fit
constexpr size_t kScenarioLength = 96;

constexpr char kStyle[] =
    "<style>text{font-family:sans-serif;font-size:12px;fill:#333}.title{font-size:16px;font-weight:"
    "bold}.grid{stroke:#ddd}.frame{stroke:#333;fill:"
    "none}"
    ".runs{fill:#1f77b4;fill-opacity:.1}.band{fill:#1f77b4;fill-opacity:.2}.bar{stroke:#1f77b4;"
    "stroke-opacity:.6}.curve{stroke:#1f77b4;stroke-width:"
    "2;fill:none}"
    ".linear{stroke:#888;stroke-dasharray:5 "
    "4}.point{fill:#1f77b4}.tie{fill:#fff;stroke:#d62728;stroke-width:2}.chosen{fill:#d62728}</"
    "style>\n";

// With a tenth of a unit, which is finer than a screen.
std::string Length(double length) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", length);
  return text.data();
}

std::string Escaped(std::u32string_view characters) {
  std::string text;
  for (const char c : Utf8(characters)) {
    switch (c) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '"':
        text += "&quot;";
        break;
      case '\'':
        text += "&apos;";
        break;
      default:
        text += c;
    }
  }
  return text;
}

std::string WorkersText(int32_t workers) {
  return absl::StrCat(workers, workers == 1 ? " worker" : " workers");
}

class SvgDrawing {
 public:
  explicit SvgDrawing(const ThroughputPlot& plot)
      : plot_(plot),
        workers_(WorkersAxis(plot, 16)),
        throughput_(ThroughputAxis(plot, 9)),
        linear_(LinearScaling(plot, workers_, throughput_)) {}

  std::string Svg() {
    const std::u32string title = Characters(plot_.title);
    const std::u32string scenario = Characters(plot_.scenario);
    absl::StrAppend(&svg_,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
                    "xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"",
                    kWidth, "\" height=\"", kHeight, "\" viewBox=\"0 0 ", kWidth, " ", kHeight,
                    "\">\n<title>", Escaped(title), "</title>\n", kStyle, "<rect width=\"", kWidth,
                    "\" height=\"", kHeight, "\" fill=\"#fff\"/>\n");
    AddText("title", kLeft, 30, "start", Shortened(title, kTitleLength));
    AddText("scenario", kLeft, 50, "start", Shortened(scenario, kScenarioLength));
    AddAxes();
    AddIntervals();
    if (linear_)
      AddLine("linear", X(linear_->from_workers), Y(linear_->from_throughput),
              X(linear_->to_workers), Y(linear_->to_throughput));
    AddCurve();
    AddPoints();
    AddLegend();
    return svg_ + "</svg>\n";
  }

 private:
  double X(double workers) const { return kLeft + workers_.Fraction(workers) * (kRight - kLeft); }
  double Y(double throughput) const {
    return kBottom - throughput_.Fraction(throughput) * (kBottom - kTop);
  }

  void AddText(std::string_view style, double x, double y, std::string_view anchor,
               std::u32string_view text) {
    absl::StrAppend(&svg_, "<text class=\"", std::string(style), "\" x=\"", Length(x), "\" y=\"",
                    Length(y), "\" text-anchor=\"", std::string(anchor), "\">", Escaped(text),
                    "</text>\n");
  }
  void AddLine(const char* style, double x1, double y1, double x2, double y2) {
    absl::StrAppend(&svg_, "<line class=\"", style, "\" x1=\"", Length(x1), "\" y1=\"", Length(y1),
                    "\" x2=\"", Length(x2), "\" y2=\"", Length(y2), "\"/>\n");
  }

  void AddAxes() {
    for (const double tick : throughput_.ticks) {
      AddLine("grid", kLeft, Y(tick), kRight, Y(tick));
      AddText("tick", kLeft - 8, Y(tick) + 4, "end", Characters(throughput_.TickText(tick)));
    }
    for (const double tick : workers_.ticks) {
      AddLine("grid", X(tick), kTop, X(tick), kBottom);
      AddText("tick", X(tick), kBottom + 18, "middle", Characters(workers_.TickText(tick)));
    }
    absl::StrAppend(&svg_, "<rect class=\"frame\" x=\"", Length(kLeft), "\" y=\"", Length(kTop),
                    "\" width=\"", Length(kRight - kLeft), "\" height=\"", Length(kBottom - kTop),
                    "\"/>\n");
    AddText("unit", kLeft, kTop - 8, "start", U"examples/s");
    AddText("unit", (kLeft + kRight) / 2, kBottom + 38, "middle", U"workers");
  }

  void AddBand(const char* style, double PlotPoint::*lower, double PlotPoint::*upper) {
    if (plot_.points.size() < 2) return;
    std::string corners;
    for (const PlotPoint& point : plot_.points)
      absl::StrAppend(&corners, Length(X(point.workers)), ",", Length(Y(point.*upper)), " ");
    for (auto point = plot_.points.rbegin(); point != plot_.points.rend(); ++point) {
      absl::StrAppend(&corners, Length(X(point->workers)), ",", Length(Y((*point).*lower)), " ");
    }
    corners.pop_back();
    absl::StrAppend(&svg_, "<polygon class=\"", style, "\" points=\"", corners, "\"/>\n");
  }

  // A band needs two points; one has a bar only.
  void AddIntervals() {
    if (!plot_.runs.empty()) AddBand("runs", &PlotPoint::run_lower, &PlotPoint::run_upper);
    if (plot_.interval.empty()) return;
    AddBand("band", &PlotPoint::lower, &PlotPoint::upper);
    for (const PlotPoint& point : plot_.points) {
      if (point.lower < point.upper)
        AddLine("bar", X(point.workers), Y(point.upper), X(point.workers), Y(point.lower));
    }
  }

  void AddCurve() {
    std::string corners;
    for (const PlotPoint& point : plot_.points) {
      absl::StrAppend(&corners, corners.empty() ? "" : " ", Length(X(point.workers)), ",",
                      Length(Y(point.throughput)));
    }
    if (plot_.points.size() > 1)
      absl::StrAppend(&svg_, "<polyline class=\"curve\" points=\"", corners, "\"/>\n");
  }

  void AddCircle(PlotPoint::Mark mark, double x, double y, const std::string& title) {
    const char* const style = mark == PlotPoint::Mark::kChosen ? "chosen"
                              : mark == PlotPoint::Mark::kTie  ? "tie"
                                                               : "point";
    absl::StrAppend(
        &svg_, "<circle class=\"", style, "\" cx=\"", Length(x), "\" cy=\"", Length(y), "\" r=\"",
        mark == PlotPoint::Mark::kNone ? 3 : 5, "\"",
        title.empty() ? "/>\n" : absl::StrCat("><title>", title, "</title></circle>\n"));
  }
  void AddPoints() {
    for (const PlotPoint& point : plot_.points) {
      std::string title = absl::StrCat(WorkersText(point.workers), ": ",
                                       NumberText(point.throughput), " examples/s");
      if (point.lower < point.upper)
        absl::StrAppend(&title, ", ", NumberText(point.lower), " .. ", NumberText(point.upper));
      if (point.run_lower < point.run_upper) {
        absl::StrAppend(&title, ", single runs ", NumberText(point.run_lower), " .. ",
                        NumberText(point.run_upper));
      }
      AddCircle(point.mark, X(point.workers), Y(point.throughput), title);
    }
  }

  void AddLegend() {
    constexpr double kRowHeight = 22;
    double y = 438;
    constexpr double kSample = 24;       // width of what stands before a name
    constexpr double kPerCharacter = 7;  // at most, in these words
    double x = kLeft;
    const auto add_name = [&](const std::string& name) {
      AddText("legend", x + kSample + 4, y + 4, "start", Characters(name));
      x += kSample + kPerCharacter * static_cast<double>(name.size()) + 16;
    };
    AddLine("curve", x, y, x + kSample, y);
    add_name("prediction");
    if (!plot_.interval.empty()) {
      absl::StrAppend(&svg_, "<rect class=\"band\" x=\"", Length(x), "\" y=\"", Length(y - 6),
                      "\" width=\"", Length(kSample), "\" height=\"12\"/>\n");
      add_name(plot_.interval);
    }
    if (!plot_.runs.empty()) {
      absl::StrAppend(&svg_, "<rect class=\"runs\" x=\"", Length(x), "\" y=\"", Length(y - 6),
                      "\" width=\"", Length(kSample), "\" height=\"12\"/>\n");
      add_name(plot_.runs);
    }
    if (linear_) {
      AddLine("linear", x, y, x + kSample, y);
      add_name("linear scaling");
    }
    x = kLeft;
    y += kRowHeight;
    for (const PlotPoint& point : plot_.points) {
      if (point.mark != PlotPoint::Mark::kChosen) continue;
      AddCircle(point.mark, x + kSample / 2, y, "");
      add_name(absl::StrCat(plot_.chosen, ": ", WorkersText(point.workers)));
    }
    if (plot_.ties) {
      AddCircle(PlotPoint::Mark::kTie, x + kSample / 2, y, "");
      add_name("as good");
    }
  }

  const ThroughputPlot& plot_;
  const PlotAxis workers_;
  const PlotAxis throughput_;
  const std::optional<PlotLine> linear_;
  std::string svg_;
};

}  // namespace

std::string SvgPlot(const ThroughputPlot& plot) { return SvgDrawing(plot).Svg(); }

}  // namespace stepcast::client
