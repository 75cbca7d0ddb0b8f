#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/plots/throughput_plot.h"
#include "client/cli/texts/characters.h"

namespace stepcast::client {

namespace {

constexpr int kRows = 16;
constexpr int kDotsAcross = 2;  // of one character
constexpr int kDotsDown = 4;

struct Glyphs {
  char32_t point, tie, chosen, bar, runs, linear;
  char32_t side, side_tick, corner, bottom, bottom_tick;
};

constexpr Glyphs kUtf8Glyphs{U'\u25cf', U'\u25c7', U'\u25c6', U'\u2502', U'\u254e', U'\u2804',
                             U'\u2502', U'\u2524', U'\u2514', U'\u2500', U'\u252c'};
constexpr Glyphs kAsciiGlyphs{U'o', U'=', U'#', U'|', U':', U'.', U'|', U'+', U'+', U'-', U'+'};

struct Dot {
  int x = 0;
  int y = 0;
};

// Bresenham's line. REQUIRES: from.x <= to.x.
template <typename Put>
void ForEachDot(Dot from, Dot to, Put put) {
  const int across = to.x - from.x;
  const int down = -std::abs(to.y - from.y);
  const int step = from.y < to.y ? 1 : -1;
  for (int error = across + down;;) {
    put(from);
    if (from.x == to.x && from.y == to.y) return;
    const int twice = 2 * error;
    if (twice >= down) {
      error += down;
      ++from.x;
    }
    if (twice <= across) {
      error += across;
      from.y += step;
    }
  }
}

// The inside of the frame, a grid of characters that dots and glyphs are put on.
class Canvas {
 public:
  Canvas(int columns, const PlotAxis& workers, const PlotAxis& throughput)
      : columns_(columns),
        workers_(workers),
        throughput_(throughput),
        rows_(kRows, std::u32string(static_cast<size_t>(columns), U' ')) {}

  int DotX(double workers) const {
    return Nearest(workers_.Fraction(workers), columns_ * kDotsAcross);
  }
  int DotY(double throughput) const {
    return kRows * kDotsDown - 1 - Nearest(throughput_.Fraction(throughput), kRows * kDotsDown);
  }
  int Column(double workers) const { return DotX(workers) / kDotsAcross; }
  int Row(double throughput) const { return DotY(throughput) / kDotsDown; }

  void PutDot(Dot dot) {
    constexpr char32_t kBraille = 0x2800;
    constexpr std::array<std::array<char32_t, kDotsDown>, kDotsAcross> kBits{
        {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
    char32_t& cell =
        rows_[static_cast<size_t>(dot.y / kDotsDown)][static_cast<size_t>(dot.x / kDotsAcross)];
    if (cell < kBraille || cell > kBraille + 0xff) cell = kBraille;
    cell |= kBits[static_cast<size_t>(dot.x % kDotsAcross)][static_cast<size_t>(dot.y % kDotsDown)];
  }
  void PutGlyph(int column, int row, char32_t glyph) {
    rows_[static_cast<size_t>(row)][static_cast<size_t>(column)] = glyph;
  }
  const std::u32string& RowText(int row) const { return rows_[static_cast<size_t>(row)]; }

 private:
  static int Nearest(double fraction, int dots) {
    return static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * (dots - 1)));
  }

  const int columns_;
  const PlotAxis& workers_;
  const PlotAxis& throughput_;
  std::vector<std::u32string> rows_;
};

class TerminalDrawing {
 public:
  TerminalDrawing(const ThroughputPlot& plot, const Terminal& terminal)
      : plot_(plot),
        utf8_(terminal.utf8),
        glyphs_(terminal.utf8 ? kUtf8Glyphs : kAsciiGlyphs),
        width_(std::clamp(terminal.columns, 40, 160)),
        throughput_(ThroughputAxis(plot, 6)),
        label_width_(LabelWidth()),
        columns_(width_ - label_width_ - 2),
        workers_(WorkersAxis(plot, std::max(3, columns_ / 4))),
        linear_(LinearScaling(plot, workers_, throughput_)),
        canvas_(columns_, workers_, throughput_) {}

  std::string Text() {
    DrawLinear();
    if (utf8_) DrawCurve();
    DrawBars();
    DrawPoints();
    AddText(plot_.title);
    if (!plot_.scenario.empty()) AddText(plot_.scenario);
    AddLine(U"");
    AddLine(Padding(label_width_ - 10) + U"examples/s");
    for (int row = 0; row < kRows; ++row) AddRow(row);
    AddWorkersAxis();
    AddLine(U"");
    AddLegend();
    return Utf8(text_);
  }

 private:
  static std::u32string Padding(int width) {
    return std::u32string(static_cast<size_t>(std::max(width, 0)), U' ');
  }

  int LabelWidth() const {
    size_t width = 10;  // of the title
    for (const double tick : throughput_.ticks)
      width = std::max(width, throughput_.TickText(tick).size());
    return static_cast<int>(width);
  }

  void DrawLinear() {
    if (!linear_) return;
    constexpr int kEvery = 4;  // so that it looks thinner than the curve
    ForEachDot({canvas_.DotX(linear_->from_workers), canvas_.DotY(linear_->from_throughput)},
               {canvas_.DotX(linear_->to_workers), canvas_.DotY(linear_->to_throughput)},
               [&, i = 0](Dot dot) mutable {
                 if (!utf8_)
                   canvas_.PutGlyph(dot.x / kDotsAcross, dot.y / kDotsDown, glyphs_.linear);
                 if (utf8_ && i++ % kEvery == 0) canvas_.PutDot(dot);
               });
  }

  void DrawCurve() {
    for (size_t i = 1; i < plot_.points.size(); ++i) {
      const PlotPoint& from = plot_.points[i - 1];
      const PlotPoint& to = plot_.points[i];
      ForEachDot({canvas_.DotX(from.workers), canvas_.DotY(from.throughput)},
                 {canvas_.DotX(to.workers), canvas_.DotY(to.throughput)},
                 [this](Dot dot) { canvas_.PutDot(dot); });
    }
  }

  void DrawBar(int32_t workers, double lower, double upper, char32_t glyph) {
    if (lower == upper) return;
    for (int row = canvas_.Row(upper); row <= canvas_.Row(lower); ++row)
      canvas_.PutGlyph(canvas_.Column(workers), row, glyph);
  }

  void DrawBars() {
    for (const PlotPoint& point : plot_.points) {
      DrawBar(point.workers, point.run_lower, point.run_upper, glyphs_.runs);
      DrawBar(point.workers, point.lower, point.upper, glyphs_.bar);
    }
  }

  // The marked ones last, so that no other hides them.
  void DrawPoints() {
    for (const auto& [mark, glyph] : {std::pair(PlotPoint::Mark::kNone, glyphs_.point),
                                      {PlotPoint::Mark::kTie, glyphs_.tie},
                                      {PlotPoint::Mark::kChosen, glyphs_.chosen}}) {
      for (const PlotPoint& point : plot_.points) {
        if (point.mark == mark)
          canvas_.PutGlyph(canvas_.Column(point.workers), canvas_.Row(point.throughput), glyph);
      }
    }
  }

  void AddLine(std::u32string line) {
    line.erase(line.find_last_not_of(U' ') + 1);
    text_ += line + U'\n';
  }
  void AddText(std::string_view text) {
    std::u32string line = Shortened(Characters(text), static_cast<size_t>(width_));
    if (!utf8_)
      std::replace_if(
          line.begin(), line.end(), [](char32_t c) { return c > U'~'; },
          U'?');  // the end of a cut one, too
    AddLine(std::move(line));
  }

  void AddRow(int row) {
    std::u32string label;
    for (const double tick : throughput_.ticks) {
      if (canvas_.Row(tick) == row) label = Characters(throughput_.TickText(tick));
    }
    const char32_t side = label.empty() ? glyphs_.side : glyphs_.side_tick;
    AddLine(Padding(label_width_ - static_cast<int>(label.size())) + label + U' ' + side +
            canvas_.RowText(row));
  }

  void AddWorkersAxis() {
    std::u32string line = Padding(label_width_ + 1) + glyphs_.corner +
                          std::u32string(static_cast<size_t>(columns_), glyphs_.bottom);
    std::u32string labels = Padding(width_);
    int free = 0;  // the first column that no label, nor the space behind it, takes
    for (const double tick : workers_.ticks) {
      const int column = label_width_ + 2 + canvas_.Column(tick);
      line[static_cast<size_t>(column)] = glyphs_.bottom_tick;
      const std::u32string label = Characters(workers_.TickText(tick));
      const int length = static_cast<int>(label.size());
      const int begin = std::min(column - (length - 1) / 2, width_ - length);
      if (begin < free) continue;
      labels.replace(static_cast<size_t>(begin), label.size(), label);
      free = begin + length + 1;
    }
    AddLine(std::move(line));
    AddLine(std::move(labels));
    AddLine(Padding(label_width_ + 2 + (columns_ - 7) / 2) + U"workers");
  }

  void AddLegend() {
    const auto entry = [](char32_t glyph, const std::string& text) {
      return glyph + (U' ' + Characters(text));
    };
    std::vector<std::u32string> entries;
    const auto is_plain = [](const PlotPoint& point) {
      return point.mark == PlotPoint::Mark::kNone;
    };
    if (std::any_of(plot_.points.begin(), plot_.points.end(), is_plain))
      entries.push_back(entry(glyphs_.point, "prediction"));
    for (const PlotPoint& point : plot_.points) {
      if (point.mark != PlotPoint::Mark::kChosen) continue;
      entries.push_back(
          entry(glyphs_.chosen, absl::StrCat(plot_.chosen, ": ", point.workers,
                                             point.workers == 1 ? " worker" : " workers")));
    }
    if (plot_.ties) entries.push_back(entry(glyphs_.tie, "as good"));
    if (!plot_.interval.empty()) entries.push_back(entry(glyphs_.bar, plot_.interval));
    if (!plot_.runs.empty()) entries.push_back(entry(glyphs_.runs, plot_.runs));
    if (linear_) entries.push_back(entry(glyphs_.linear, "linear scaling"));
    std::u32string line;
    for (const std::u32string& next : entries) {
      if (!line.empty() && line.size() + 3 + next.size() > static_cast<size_t>(width_))
        AddLine(std::exchange(line, U""));
      line += (line.empty() ? U"" : U"   ") + next;
    }
    if (!line.empty()) AddLine(std::move(line));
  }

  const ThroughputPlot& plot_;
  const bool utf8_;
  const Glyphs& glyphs_;
  const int width_;
  const PlotAxis throughput_;
  const int label_width_;
  const int columns_;  // inside the frame
  const PlotAxis workers_;
  const std::optional<PlotLine> linear_;
  Canvas canvas_;
  std::u32string text_;
};

}  // namespace

std::string TerminalPlot(const ThroughputPlot& plot, const Terminal& terminal) {
  return TerminalDrawing(plot, terminal).Text();
}

}  // namespace stepcast::client
