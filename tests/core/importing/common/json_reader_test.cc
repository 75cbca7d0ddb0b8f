#include "core/importing/common/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/importing/horovod/horovod_timeline.h"
#include "tests/core/importing/timeline_writer.h"

namespace stepcast::json_reader_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A reader of {"rows": [{"name": ..., "tags": [...], ...}]}, which writes down what it is told.
class RowReader : public JsonReader {
 public:
  explicit RowReader(bool may_end = false) : JsonReader(/*max_depth=*/8), may_end_(may_end) {}

  absl::Status ReadText(std::string_view text, StopCheck stop = NeverStop) {
    TextSource source(text);
    return Read(source, stop);
  }
  absl::Status ReadFrom(ByteSource& source) { return Read(source, NeverStop); }

  const std::vector<std::string>& heard() const { return heard_; }
  bool was_cut() const { return ended_early(); }

 protected:
  int BeginObject() override {
    if (place() == kTop) return kDocument;
    return place() == kRows ? kRow : kPassOver;
  }
  int BeginList() override {
    if (place() == kDocument && key() == "rows") return kRows;
    return place() == kRow && key() == "tags" ? kTags : kPassOver;
  }
  void End() override {
    if (place() == kRow) heard_.emplace_back("end");
  }
  void Text(std::string& value) override {
    if (value == "bad") FailAtByte("a bad one");
    Hear(value);
  }
  void Number(double value, std::optional<int64_t> whole) override {
    Hear(whole ? absl::StrCat(*whole) : absl::StrCat("about ", value));
  }
  void Boolean(bool value) override { Hear(value ? "true" : "false"); }
  bool MayEnd() const override { return may_end_ && place() == kRows; }

 private:
  enum Place { kDocument = 1, kRows, kRow, kTags };

  void Hear(const std::string& value) {
    heard_.push_back(place() == kTags ? value : absl::StrCat(std::string(key()), "=", value));
  }

  const bool may_end_;
  std::vector<std::string> heard_;
};

std::string FaultOf(const absl::Status& status) {
  const std::vector<Fault>& faults = DetailsOf(status).faults;
  EXPECT_EQ(DetailsOf(status).reason, "IMPORT_INVALID") << status;
  EXPECT_EQ(faults.size(), 1u) << status;
  return faults.empty() ? "" : absl::StrCat(faults[0].field, ": ", faults[0].description);
}

TEST(JsonReaderTest, SaysWhatIsInThePlacesThatAreEnteredAndNothingElse) {
  RowReader reader;
  ASSERT_TRUE(reader
                  .ReadText(R"({"x": {"rows": [{"name": "no"}]}, "rows": [
                    {"name": "a", "tags": ["t", {"u": 1}, 2], "of": {"name": "no", "b": [[3]]},
                     "last": -4, "half": 0.5, "yes": true, "none": null},
                    ["no"], {}]})")
                  .ok());
  EXPECT_THAT(reader.heard(), ElementsAre("name=a", "t", "2", "last=-4", "half=about 0.5",
                                          "yes=true", "end", "end"));
}

TEST(JsonReaderTest, AWholeNumberAboveInt64IsItsLargest) {
  RowReader reader;
  ASSERT_TRUE(reader.ReadText(R"({"n": 18446744073709551615})").ok());
  EXPECT_THAT(reader.heard(), ElementsAre(absl::StrCat("n=", INT64_MAX)));
}

TEST(JsonReaderTest, NamesTheByteOfWhatIsNoJson) {
  EXPECT_EQ(FaultOf(RowReader().ReadText(R"({"rows": [})")),
            "recording: byte 11: no JSON, or one that is cut short");
  EXPECT_EQ(FaultOf(RowReader().ReadText(R"({"rows": [{"name": )")),
            "recording: byte 19: no JSON, or one that is cut short");
  EXPECT_EQ(FaultOf(RowReader().ReadText("")),
            "recording: byte 0: no JSON, or one that is cut short");
}

TEST(JsonReaderTest, ANumberThatJsonDoesNotHaveIsNamed) {
  for (const auto& [value, name] :
       {std::pair("NaN", "NaN"), std::pair("nan", "NaN"), std::pair("Infinity", "Infinity"),
        std::pair("-Infinity", "Infinity"), std::pair("inf", "Infinity"), std::pair("-nan", "NaN"),
        std::pair("-nan(ind)", "NaN"), std::pair("-inf", "Infinity")}) {
    EXPECT_THAT(FaultOf(RowReader().ReadText(absl::StrCat("{\"rows\": [{\"a\": ", value, "}]}"))),
                HasSubstr(absl::StrCat(": ", name, ", which is not a number of JSON")))
        << value;
  }
  for (const char* const word : {"N/A", "nought", "-", "1.x"}) {
    EXPECT_THAT(FaultOf(RowReader().ReadText(absl::StrCat("{\"rows\": [{\"a\": ", word, " }]}"))),
                HasSubstr("no JSON"))
        << word;
  }
  EXPECT_THAT(FaultOf(RowReader().ReadText(R"({"rows": [{"a": N/A}]})")),
              HasSubstr("byte 17: no JSON: \"N/A\" is no value of it"));
}

// Hands on some bytes at a time.
class PieceSource final : public ByteSource {
 public:
  PieceSource(std::string_view text, size_t piece) : text_(text), piece_(piece) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    const size_t read = text_.copy(buffer, std::min(size, piece_));
    text_.remove_prefix(read);
    return read;
  }

 private:
  std::string_view text_;
  size_t piece_;
};

TEST(JsonReaderTest, KeysWithoutAValueAndPathsOfWindowsAreRead) {
  const std::string text =
      "{\"rows\": [{\"a\": ,\"b\":, \"(c)\":   , \"d\":\n, \"e\": \"C:\\Users\\users\\n:\"},\n"
      "{\"f\": \"x\\\": ,\", \"g\": \"\\u0041\\\\\", \"h\": \n}, {\"i\":}, {}, {\"j\": \"bad\"}]}";
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{5}, size_t{1} << 16}) {
    PieceSource source(text, piece);
    RowReader reader;
    EXPECT_EQ(FaultOf(reader.ReadFrom(source)),
              absl::StrCat("recording: byte ", text.find("}]}"), ": a bad one"))
        << piece;
    EXPECT_THAT(reader.heard(),
                ElementsAre("a=0", "b=0", "(c)=0", "d=0", "e=C:/Users/users\n:", "end", "f=x\": ,",
                            "g=A\\", "h=0", "end", "i=0", "end", "end", "j=bad"))
        << piece;
  }
  // None of them is a key's.
  for (const char* const wrong : {R"({"rows": [,]})", R"({"rows": [{"a"}]})", R"({"rows": [{:,}]})",
                                  R"({"rows": [{"a": "\)"}) {
    EXPECT_THAT(FaultOf(RowReader().ReadText(wrong)), HasSubstr("cut short")) << wrong;
  }
}

// Random rows, some of whose values are missing, are heard as the same rows with zeros there.
TEST(JsonReaderTest, MissingValuesAreHeardAsZerosWhereverTheyAre) {
  constexpr const char* kValues[] = {"12",   R"(": ,")", R"("x\": }")", "-3.5",
                                     "true", R"("::")",  "{\"k\": 1}",  "[1, 2]"};
  constexpr const char* kSpaces[] = {"", " ", "\n  ", "\t", " \r\n "};
  int missing = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random({seed, 5});
    const auto space = [&] { return kSpaces[random.Below(std::size(kSpaces))]; };
    std::string begin = "{\"rows\": [";
    std::string with_zeros = begin;
    std::string without = begin;
    const auto both = [&](std::string_view text) {
      with_zeros += text;
      without += text;
    };
    for (uint64_t row = 0; row < 3; ++row) {
      both(row > 0 ? ",{" : "{");
      for (uint64_t key = 0; key < 4; ++key) {
        both(key > 0 ? absl::StrCat(",", space(), "\"", key, "\"") : "\"(c)\"");
        both(absl::StrCat(":", space()));
        const uint64_t value = random.Below(std::size(kValues) + 4);
        if (value < std::size(kValues)) {
          both(absl::StrCat(kValues[value], space()));
        } else {
          with_zeros += '0';
          ++missing;
        }
      }
      both("}");
    }
    both("]}");
    RowReader expected;
    ASSERT_TRUE(expected.ReadText(with_zeros).ok()) << with_zeros;
    for (const size_t piece : {1 + random.Below(9), uint64_t{1} << 16}) {
      PieceSource source(without, piece);
      RowReader reader;
      ASSERT_TRUE(reader.ReadFrom(source).ok()) << without;
      ASSERT_EQ(reader.heard(), expected.heard()) << without;
    }
  }
  EXPECT_GT(missing, 4000);
}

TEST(JsonReaderTest, TheFirstFailureEndsTheReading) {
  RowReader reader;
  EXPECT_EQ(FaultOf(reader.ReadText(R"({"rows": [{"a": "bad", "b": "bad"}, {)")),
            "recording: byte 21: a bad one");
  EXPECT_THAT(reader.heard(), ElementsAre("a=bad"));
}

TEST(JsonReaderTest, BoundsTheDepthOfWhatIsPassedOver) {
  EXPECT_TRUE(RowReader().ReadText(R"({"deep": [[[[[[[[1]]]]]]]]})").ok());
  EXPECT_THAT(FaultOf(RowReader().ReadText(R"({"deep": [[[[[[[[[1]]]]]]]]]})")),
              HasSubstr("nested more than 8 deep"));
}

TEST(JsonReaderTest, BoundsATextANumberAndTheSpaceBetween) {
  const std::string block(3 << 20, '1');
  const std::string space(3 << 20, ' ');
  const std::string fault = "a text, a number or the space between two is longer than a mebibyte";
  EXPECT_THAT(FaultOf(RowReader().ReadText(absl::StrCat("{\"a\": \"", block, "\"}"))),
              HasSubstr(fault));
  EXPECT_THAT(FaultOf(RowReader().ReadText(absl::StrCat("{\"a\": ", block, "}"))),
              HasSubstr(fault));
  EXPECT_THAT(FaultOf(RowReader().ReadText(absl::StrCat("{\"a\": ", space, "1}"))),
              HasSubstr(fault));
}

TEST(JsonReaderTest, ATextMayEndWhereTheReaderSaysSo) {
  RowReader reader(/*may_end=*/true);
  EXPECT_TRUE(reader.ReadText(R"({"rows": [{"a": 1},)").ok());
  EXPECT_TRUE(reader.was_cut());
  RowReader whole(/*may_end=*/true);
  EXPECT_TRUE(whole.ReadText(R"({"rows": []})").ok());
  EXPECT_FALSE(whole.was_cut());
  for (const char* text : {R"({"rows": [{"a": 1)", R"({"rows": [[)", R"({"rows": [}])"}) {
    EXPECT_THAT(FaultOf(RowReader(/*may_end=*/true).ReadText(text)), HasSubstr("no JSON")) << text;
  }
}

// Fails after some bytes.
class BrokenSource final : public ByteSource {
 public:
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    if (std::exchange(was_read_, true)) return absl::UnavailableError("gone");
    return std::string_view(R"({"rows": [)").copy(buffer, size);
  }

 private:
  bool was_read_ = false;
};

TEST(JsonReaderTest, FailsWithWhatTheSourceOrTheStopCheckFailsWith) {
  BrokenSource source;
  EXPECT_EQ(RowReader(/*may_end=*/true).ReadFrom(source), absl::UnavailableError("gone"));
  const auto stop = [] { return absl::CancelledError("enough"); };
  EXPECT_EQ(RowReader().ReadText("{}", stop), absl::CancelledError("enough"));
}

// A list of Horovod's may end early, which must not hide why its bytes did.
TEST(JsonReaderTest, ATimelineOfHorovodWithTooMuchSpaceIsRefused) {
  const std::string text =
      testing::WriteHorovodTimeline(4, /*ended=*/false) + std::string(3 << 20, ' ');
  TextSource source(text);
  const auto imported =
      ImportHorovodTimeline(source,
                            {.recording = {.model = "m",
                                           .batch_size = 8,
                                           .platform = {.bandwidth_bytes_per_second = 1e8}}},
                            {}, NeverStop);
  EXPECT_THAT(FaultOf(imported.status()), HasSubstr("longer than a mebibyte"));
}

}  // namespace
}  // namespace stepcast::json_reader_test
