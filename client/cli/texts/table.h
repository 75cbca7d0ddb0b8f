// Tables of text, and the numbers with their units that stand in them and elsewhere.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::client {

// A table of text, its columns as wide as what is in them.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
  };

  explicit Table(std::vector<Column> columns);

  // REQUIRES: one cell a column.
  void AddRow(std::vector<std::string> cells);
  // The titles and the rows, two spaces between columns and none at the ends of lines. Widths are
  // counted in characters of UTF-8.
  std::string Text() const;

 private:
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

// Four significant digits, never with an exponent: 0.01235, 1.235, 123.5, 12346.
std::string NumberText(double value);
// 97.8%.
std::string PercentText(double fraction);
// 812 ns, 81.35 ms, 1.25 s.
std::string DurationText(std::chrono::nanoseconds length);
std::string DurationText(const google::protobuf::Duration& length);
std::string SecondsText(double seconds);
// The same in minutes, hours or days where it has a hundred of the unit below: 2.972 d.
std::string LongDurationText(const google::protobuf::Duration& length);
// 512 B, 97.39 MiB.
std::string BytesText(int64_t bytes);
// 2026-11-22 02:31:07Z, in UTC.
std::string TimeText(const google::protobuf::Timestamp& time);

}  // namespace stepcast::client
