#include "deploy/slurm/settings.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "stepcast/advice.h"
#include "stepcast/profile_encoding.h"

namespace stepcast::slurm {

namespace {

constexpr size_t kMaxFile = size_t{64} << 10;
constexpr size_t kMaxShown = 100;
constexpr size_t kMaxMessage = 300;
constexpr int32_t kMaxWorkersPerNode = 4096;
constexpr double kMaxPrice = 1e12;

absl::Status Wrong(std::string_view setting, std::string_view value, std::string_view right) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(setting), ": \"",
                                                 client::PrintableText(value, kMaxShown),
                                                 "\" is not ", std::string(right)));
}

template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// One setting's way from its text.
using Take = std::function<absl::Status(const std::string& name, const std::string& value)>;

Take Text(std::string& text) {
  return [&text](const std::string& name, const std::string& value) {
    if (value.empty()) return Wrong(name, value, "a text");
    text = value;
    return absl::OkStatus();
  };
}

Take Switch(bool& on) {
  return [&on](const std::string& name, const std::string& value) {
    if (value != "true" && value != "false") return Wrong(name, value, "true or false");
    on = value == "true";
    return absl::OkStatus();
  };
}

Take File(std::string& content, FileReader read) {
  return [&content, read](const std::string& name, const std::string& value) {
    absl::StatusOr<std::string> found = read(value);
    if (!found.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ": ",
          client::PrintableText(
              std::string_view(found.status().message().data(), found.status().message().size()),
              kMaxMessage)));
    }
    content = *std::move(found);
    return content.empty() ? Wrong(name, value, "a file with anything in it") : absl::OkStatus();
  };
}

Take Token(std::string& token, FileReader read) {
  return [&token, read](const std::string& name, const std::string& value) {
    absl::Status taken = File(token, read)(name, value);
    if (!taken.ok()) return taken;
    absl::StripAsciiWhitespace(&token);
    const bool is_plain = !token.empty() && token.find_first_of(" \t\r\n") == std::string::npos;
    return is_plain ? absl::OkStatus() : Wrong(name, value, "a file with one token in it");
  };
}

Take Time(std::chrono::nanoseconds& time, absl::Duration least, absl::Duration most) {
  return [&time, least, most](const std::string& name, const std::string& value) {
    absl::Duration length;
    if (!absl::ParseDuration(value, &length) || length < least || length > most) {
      return Wrong(name, value,
                   absl::StrCat("a time from ", absl::FormatDuration(least), " to ",
                                absl::FormatDuration(most)));
    }
    time = absl::ToChronoNanoseconds(length);
    return absl::OkStatus();
  };
}

absl::Status TakeMode(const std::string& name, const std::string& value, Mode& mode) {
  if (value != "advise" && value != "set") return Wrong(name, value, "advise or set");
  mode = value == "set" ? Mode::kSet : Mode::kAdvise;
  return absl::OkStatus();
}

absl::Status TakeNodeRule(const std::string& name, const std::string& value, Settings& settings) {
  static const auto& rules = *new std::map<std::string, NodeRule>{
      {"auto", NodeRule::kAuto}, {"gpus", NodeRule::kGpus}, {"tasks", NodeRule::kTasks}};
  if (const auto rule = rules.find(value); rule != rules.end()) {
    settings.node_rule = rule->second;
    return absl::OkStatus();
  }
  const std::optional<int32_t> count = NumberOf<int32_t>(value);
  if (!count || *count < 1 || *count > kMaxWorkersPerNode) {
    return Wrong(name, value,
                 absl::StrCat("auto, gpus, tasks or a number from 1 to ", kMaxWorkersPerNode));
  }
  settings.node_rule = NodeRule::kFixed;
  settings.workers_per_node = *count;
  return absl::OkStatus();
}

absl::Status TakeRate(const std::string& name, const std::string& value, double& rate) {
  client::AdviceQuestion question;
  if (!client::SetAdviceField("intra-bandwidth", value, question).ok())
    return Wrong(name, value, "a rate from 1 to 1e15 bytes per second: 300GB/s, 300e9");
  rate = question.intra_node_bandwidth_bytes_per_second;
  return absl::OkStatus();
}

// Any objective but deadline, which needs examples that are a job's own.
absl::Status TakeObjective(const std::string& name, const std::string& value,
                           std::string& objective) {
  client::AdviceQuestion question;
  const bool is_one = client::SetAdviceField("objective", value, question).ok() &&
                      question.objective != client::AdviceObjective::kDeadline;
  if (!is_one) return Wrong(name, value, "knee, throughput, efficiency=0.8 or cost");
  objective = value;
  return absl::OkStatus();
}

Take Price(const std::function<void(double)>& set) {
  return [set](const std::string& name, const std::string& value) {
    const std::optional<double> price = NumberOf<double>(value);
    if (!price || !std::isfinite(*price) || *price < 0 || *price > kMaxPrice)
      return Wrong(name, value, "an amount from 0 to 1e12");
    set(*price);
    return absl::OkStatus();
  };
}

std::map<std::string, Take> TakesOf(Settings& settings, FileReader read) {
  client::ClientCredentials& credentials = settings.client.credentials;
  client::AdviserOptions& adviser = settings.adviser;
  return {
      {"server", Text(settings.client.server)},
      {"tls", Switch(credentials.use_tls)},
      {"tls-ca", File(credentials.root_certificates, read)},
      {"tls-cert", File(credentials.certificate, read)},
      {"tls-key", File(credentials.private_key, read)},
      {"token-file", Token(credentials.token, read)},
      {"mode",
       [&](const auto& name, const auto& value) { return TakeMode(name, value, settings.mode); }},
      {"raise-min", Switch(settings.raise_min)},
      {"workers-per-node",
       [&](const auto& name, const auto& value) { return TakeNodeRule(name, value, settings); }},
      {"intra-bandwidth",
       [&](const auto& name, const auto& value) {
         return TakeRate(name, value, settings.intra_node_bandwidth_bytes_per_second);
       }},
      {"objective",
       [&](const auto& name, const auto& value) {
         return TakeObjective(name, value, settings.objective);
       }},
      {"worker-hour", Price([&](double price) { settings.prices.set_worker_hour(price); })},
      {"node-hour", Price([&](double price) { settings.prices.set_node_hour(price); })},
      {"wait", Time(adviser.wait, absl::ZeroDuration(), absl::Seconds(1))},
      {"call-timeout", Time(adviser.call_timeout, absl::Milliseconds(100), absl::Minutes(5))},
      {"keep", Time(adviser.keep, absl::ZeroDuration(), absl::Hours(24))},
  };
}

absl::StatusOr<Settings> SettingsOf(const YAML::Node& root, FileReader read) {
  Settings settings;
  if (root.IsNull()) return settings;
  if (!root.IsMap()) return absl::InvalidArgumentError("must be a map of settings");
  std::map<std::string, Take> takes = TakesOf(settings, read);
  for (const auto& field : root) {
    const std::string name = field.first.IsScalar() ? field.first.Scalar() : "";
    const auto take = takes.find(name);
    if (take == takes.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", field.first.Mark().line + 1, ": there is no setting \"",
                       client::PrintableText(name, kMaxShown), "\", or it is given twice"));
    }
    if (!field.second.IsScalar())
      return absl::InvalidArgumentError(absl::StrCat(name, ": must have one plain value"));
    if (absl::Status taken = take->second(name, field.second.Scalar()); !taken.ok()) return taken;
    takes.erase(take);
  }
  client::ClientCredentials& credentials = settings.client.credentials;
  if (credentials.certificate.empty() != credentials.private_key.empty())
    return absl::InvalidArgumentError("tls-cert and tls-key: one is given without the other");
  return settings;
}

}  // namespace

absl::StatusOr<Settings> ParseSettings(const std::string& text, FileReader read) {
  if (text.size() > kMaxFile) {
    return absl::InvalidArgumentError(absl::StrCat(text.size(), " bytes, more than ", kMaxFile));
  }
  // The library reports what is not YAML by an exception.
  try {
    return SettingsOf(YAML::Load(text), read);
  } catch (const YAML::Exception& exception) {
    return absl::InvalidArgumentError(absl::StrCat("line ", exception.mark.line + 1, ": not YAML"));
  }
}

absl::StatusOr<Settings> ReadSettings(const std::string& path) {
  const absl::StatusOr<std::string> text = client::ReadFile(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<Settings> settings = ParseSettings(*text, client::ReadFile);
  if (settings.ok()) return settings;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", settings.status().message()));
}

}  // namespace stepcast::slurm
